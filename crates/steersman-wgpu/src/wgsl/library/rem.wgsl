// The exact remainder with the dividend's sign: mantissas as integers, one bit of the quotient at a time.
fn mantissa(b: u32) -> vec2<u32> {
    if (b >= 0x00800000u) { return vec2<u32>((b & 0x7fffffu) | 0x800000u, b >> 23u); }
    return vec2<u32>(b, 1u);
}
fn f_rem(x: f32, y: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let b = bitcast<u32>(y) & 0x7fffffffu;
    if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) { return nan(); }
    if (a < b) { return x; }
    var m = mantissa(a); let d = mantissa(b);
    var left = m.x % d.x;
    for (var e = m.y; e > d.y && left != 0u; e -= 1u) { left = (left << 1u) % d.x; }
    // Back to a float with d's exponent.
    var e = d.y;
    if (left != 0u) {
        let up = min(countLeadingZeros(left) - 8u, e - 1u);
        left = left << up;
        e = e - up;
    }
    let bits = select(left, (left & 0x7fffffu) | (e << 23u), left >= 0x800000u);
    return from_bits(bits | (bitcast<u32>(x) & 0x80000000u));
}
