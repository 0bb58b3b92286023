fn from_f16(h: u32) -> f32 {
    let e = h & 0x7c00u;
    let s = (h & 0x8000u) << 16u;
    if (e == 0u) { return flip(f32(h & 0x3ffu) * 5.9604644775390625e-8, from_bits(s)); }
    if (e == 0x7c00u) { return from_bits(s | 0x7f800000u | ((h & 0x3ffu) << 13u)); }
    return from_bits(s | (((h & 0x7fffu) + 0x1c000u) << 13u));
}
// To nearest, ties to even.
fn to_f16(x: f32) -> u32 {
    let b = bitcast<u32>(x);
    let s = (b >> 16u) & 0x8000u;
    let a = b & 0x7fffffffu;
    if (a > 0x7f800000u) { return s | 0x7e00u; }
    if (a >= 0x477ff000u) { return s | 0x7c00u; }
    if (a < 0x38800000u) {
        let e = a >> 23u;
        if (e < 102u) { return s; }
        let m = (a & 0x7fffffu) | 0x800000u;
        let shift = 126u - e;
        let q = m >> shift;
        let rest = m & ((1u << shift) - 1u);
        let half = 1u << (shift - 1u);
        return s | (q + select(0u, 1u, rest > half || (rest == half && (q & 1u) == 1u)));
    }
    let r = a - 0x38000000u;
    return s | ((r + 0xfffu + ((r >> 13u) & 1u)) >> 13u);
}
fn from_bf16(h: u32) -> f32 { return from_bits(h << 16u); }
fn to_bf16(x: f32) -> u32 {
    let b = bitcast<u32>(x);
    // One that was a bf16 keeps its bits: moves go this way too.
    if (is_nan(x)) { return (b >> 16u) | select(0x40u, 0u, (b & 0xffffu) == 0u); }
    return (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
}
fn as_f16(x: f32) -> f32 { return from_f16(to_f16(x)); }
fn as_bf16(x: f32) -> f32 { return from_bf16(to_bf16(x)); }
