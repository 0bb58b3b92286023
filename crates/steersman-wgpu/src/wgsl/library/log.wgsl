// x = m 2^e with m between the roots of a half and of two, and ln(1 + f) for f = m - 1.
struct Split { m: f32, e: f32 }
fn log_split(x: f32) -> Split {
    var b = bitcast<u32>(x);
    var less = 0.0;
    if (b < 0x00800000u) {
        // Subnormal: shifted up by integers, since arithmetic may flush it.
        let up = countLeadingZeros(b) - 8u;
        b = ((b << up) & 0x007fffffu) | 0x00800000u;
        less = f32(up);
    }
    let e = bitcast<i32>(b - 0x3f3504f3u) >> 23u;
    return Split(bitcast<f32>(b - (bitcast<u32>(e) << 23u)), f32(e) - less);
}
fn ln_tail(f: f32) -> f32 {
    let p = fma(f, fma(f, fma(f, fma(f, fma(f, fma(f, fma(f, -0.076058105, 0.12747884), -0.13164096), 0.14203668), -0.16623172), 0.20001167), -0.25000826), 0.3333333);
    return f * f * fma(f, p, -0.5);
}
// y where x has a finite logarithm, else what C says.
fn ln_edges(x: f32, y: f32) -> f32 {
    let b = bitcast<u32>(x);
    if (b - 1u < 0x7f7fffffu) { return y; }
    if ((b & 0x7fffffffu) == 0u) { return -inf(); }
    if (b > 0x80000000u) { return nan(); }
    return x;
}
fn f_ln(x: f32) -> f32 {
    let s = log_split(x);
    let f = s.m - 1.0;
    let low = keep(fma(s.e, 1.4286068e-6, ln_tail(f)));
    return ln_edges(x, fma(s.e, 0.69314575, f + low));
}
fn f_log2(x: f32) -> f32 {
    let s = log_split(x);
    let f = s.m - 1.0;
    let l = f + ln_tail(f);
    return ln_edges(x, s.e + fma(l, 0.44269504088896, l));
}
fn f_log1p(x: f32) -> f32 {
    if (is_nan(x) || magnitude(x) < 1e-8) { return x; }
    // Near zero the polynomial takes x itself; elsewhere the rounding of 1 + x is no more than that of the result.
    if (x > -0.29 && x < 0.41) { return x + ln_tail(x); }
    return f_ln(1.0 + x);
}
