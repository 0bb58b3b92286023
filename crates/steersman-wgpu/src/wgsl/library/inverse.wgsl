// atan(a / b) as two terms, for 0 ≤ a ≤ b: above tan(π/8) it turns by π/4 first.
fn atan_ratio(a: f32, b: f32) -> vec2<f32> {
    let turned = a > b * 0.41421357;
    let q = select(a, a - b, turned) / select(b, a + b, turned);
    let z = q * q;
    let p = fma(z, fma(z, fma(z, fma(z, -0.06090859, 0.10599478), -0.1424443), 0.1999853), -0.33333316);
    let y = fma(z * q, p, q);
    return select(vec2<f32>(0.0, y), vec2<f32>(0.7853981633974483, -2.1855695e-8 + y), turned);
}
fn f_atan(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let a = magnitude(x);
    if (a < 1e-4) { return x; }
    if (a > 1e9) { return flip(1.5707963267948966, x); }
    let steep = a > 1.0;
    let t = atan_ratio(select(a, 1.0, steep), select(1.0, a, steep));
    let complement = (1.5707963267948966 - t.x) + (-4.371139e-8 - t.y);
    return flip(select(t.x + t.y, complement, steep), x);
}
fn f_atan2(y: f32, x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (is_nan(y)) { return y; }
    let ax = magnitude(x); let ay = magnitude(y);
    let steep = order(ay) > order(ax);
    var a = select(ay, ax, steep); var b = select(ax, ay, steep);
    if (is_inf(a)) { a = 1.0; b = 1.0; }
    if (is_inf(b)) { a = 0.0; b = 1.0; }
    if (!f_nonzero(b)) { b = 1.0; }
    // Keeps a + b finite, and quotients of tiny numbers normal.
    if (b > 1e37) { a = a * 0.0625; b = b * 0.0625; }
    if (order(b) < order(1e-30)) {
        a = lifted(a); b = lifted(b);
    }
    let t = atan_ratio(a, b);
    var high = t.x; var low = t.y;
    if (steep) { high = 1.5707963267948966 - high; low = -4.371139e-8 - low; }
    let angle = select(high + low, (3.141592653589793 - high) + (-8.742278e-8 - low), below_zero(x));
    return flip(angle, y);
}
// x 2^64, for a small x that arithmetic may flush.
fn lifted(x: f32) -> f32 {
    let b = bitcast<u32>(x);
    if (b >= 0x00800000u) { return x * 18446744073709551616.0; }
    return f32(b) * 2.5849394142282115e-26;
}
fn asin_folded(a: f32) -> f32 {
    let folded = a > 0.5;
    let z = select(a * a, (1.0 - a) * 0.5, folded);
    let s = select(a, sqrt(z), folded);
    let p = fma(z, fma(z, fma(z, fma(z, fma(z, 0.037575323, 0.014390752), 0.0318224), 0.044514872), 0.07500517), 0.1666666);
    return fma(s * z, p, s);
}
fn f_asin(x: f32) -> f32 {
    if (is_nan(x) || magnitude(x) < 1e-4) { return x; }
    if (magnitude(x) > 1.0) { return nan(); }
    let y = asin_folded(magnitude(x));
    let folded = 1.5707963267948966 - (2.0 * y - -4.371139e-8);
    return flip(select(y, folded, magnitude(x) > 0.5), x);
}
fn f_acos(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (magnitude(x) > 1.0) { return nan(); }
    let y = asin_folded(magnitude(x));
    let middle = 1.5707963267948966 - (flip(y, x) - -4.371139e-8);
    let outer = select(2.0 * y, 3.141592653589793 - (2.0 * y - -8.742278e-8), x < 0.0);
    return select(middle, outer, magnitude(x) > 0.5);
}
