// Philox 4x32-10: four words of a key and a counter.
fn philox_round(x: vec4<u32>, k: vec2<u32>) -> vec4<u32> {
    return vec4<u32>(mul_high(x.z, 0xcd9e8d57u) ^ x.y ^ k.x, x.z * 0xcd9e8d57u, mul_high(x.x, 0xd2511f53u) ^ x.w ^ k.y, x.x * 0xd2511f53u);
}
// Written out: turns of loops are counted by some drivers.
fn philox(key: vec2<u32>, counter: u32) -> vec4<u32> {
    let step = vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    var x = philox_round(vec4<u32>(counter, 0u, 0u, 0u), key);
    x = philox_round(x, key + step);
    x = philox_round(x, key + step * 2u);
    x = philox_round(x, key + step * 3u);
    x = philox_round(x, key + step * 4u);
    x = philox_round(x, key + step * 5u);
    x = philox_round(x, key + step * 6u);
    x = philox_round(x, key + step * 7u);
    x = philox_round(x, key + step * 8u);
    return philox_round(x, key + step * 9u);
}
// Element i is word i / 16 % 4 of block i / 64 * 16 + i % 16.
fn random_words(key: vec2<u32>, i: u32) -> vec4<u32> { return philox(key, (i / 64u) * 16u + i % 16u); }
fn uniform_f32(key: vec2<u32>, i: u32) -> f32 {
    let words = random_words(key, i);
    return f32(words[(i / 16u) % 4u] >> 8u) * 5.9604644775390625e-8;
}
fn sine_of_turn(t: u32) -> f32 {
    let left = bitcast<i32>(t << 1u) >> 1u;
    let y = sin_half_turn(f32(left) * 1.4629180792671596e-9);
    return from_bits(bitcast<u32>(y) ^ ((t ^ bitcast<u32>(left)) & 0x80000000u));
}
fn normal_f32(key: vec2<u32>, i: u32) -> f32 {
    let words = random_words(key, i);
    let which = (i / 16u) % 4u;
    let pair = select(words.xy, words.zw, which >= 2u);
    let u = fma(f32(pair.x >> 1u), 4.656612873077393e-10, 2.3283064365386963e-10);
    let r = sqrt(-2.0 * f_ln(u));
    return r * sine_of_turn(pair.y + select(0x40000000u, 0u, (which & 1u) == 1u));
}
