fn mul_high(a: u32, b: u32) -> u32 {
    let al = a & 0xffffu; let ah = a >> 16u;
    let bl = b & 0xffffu; let bh = b >> 16u;
    let mid = ah * bl + ((al * bl) >> 16u);
    let more = al * bh + (mid & 0xffffu);
    return ah * bh + (mid >> 16u) + (more >> 16u);
}
fn sin_half_turn(r: f32) -> f32 {
    let z = r * r;
    let p = fma(z, fma(z, fma(z, 2.6061027e-6, -0.00019809778), 0.008333069), -0.1666666);
    return fma(z * r, p, r);
}
// What is left of |x| modulo π, in -π/2..π/2, and in the top bit of `odd` whether an odd multiple was taken
// off; `quarter` adds half of π before. By integers: 1/π to 256 bits, the window that matters times the mantissa.
struct Turned { r: f32, odd: u32 }
fn turn(x: f32, quarter: bool) -> Turned {
    var table = array<u32, 10>(0u, 0x517cc1b7u, 0x27220a94u, 0xfe13abe8u, 0xfa9a6ee0u, 0x6db14accu, 0x9e21c820u, 0xff28b1d5u, 0xef5de2b0u, 0u);
    let b = bitcast<u32>(x) & 0x7fffffffu;
    let m = (b & 0x7fffffu) | 0x800000u;
    // Exponent of the mantissa's last bit, plus 31: at least 6 for |x| from a half up.
    let at = (b >> 23u) - 119u;
    let q = at >> 5u;
    let s = at & 31u;
    var w = vec3<u32>(table[q], table[q + 1u], table[q + 2u]);
    if (s > 0u) {
        w = (w << vec3<u32>(s)) | (vec3<u32>(table[q + 1u], table[q + 2u], table[q + 3u]) >> vec3<u32>(32u - s));
    }
    var low = m * w.y;
    let carry = mul_high(m, w.z);
    low = low + carry;
    var high = m * w.x + mul_high(m, w.y) + select(0u, 1u, low < carry);
    high = high + select(0u, 0x40000000u, quarter);
    // Bit 31 is the multiple's parity, below it the fraction: as a signed one its own nearest.
    var top = (high << 1u) | (low >> 31u);
    var rest = low << 1u;
    let back = (top >> 31u) == 1u;
    let odd = (high ^ (top & 0x80000000u)) & 0x80000000u;
    if (back) {
        rest = ~rest + 1u;
        top = ~top + select(0u, 1u, rest == 0u);
    }
    let turns = fma(f32(rest), 5.421010862427522e-20, f32(top) * 2.3283064365386963e-10);
    return Turned(turns * select(3.14159265358979, -3.14159265358979, back), odd);
}
fn f_sin(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (is_inf(x)) { return nan(); }
    let a = magnitude(x);
    if (a < 0.5) { return select(sin_half_turn(x), x, a < 1e-4); }
    let t = turn(x, false);
    return flip(from_bits(bitcast<u32>(sin_half_turn(t.r)) ^ t.odd), x);
}
fn f_cos(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (is_inf(x)) { return nan(); }
    let a = magnitude(x);
    if (a < 0.5) { return sin_half_turn(1.57079632679 - a); }
    let t = turn(x, true);
    return from_bits(bitcast<u32>(sin_half_turn(t.r)) ^ t.odd);
}
fn f_tan(x: f32) -> f32 {
    if (magnitude(x) < 1e-4) { return x; }
    return f_sin(x) / f_cos(x);
}
