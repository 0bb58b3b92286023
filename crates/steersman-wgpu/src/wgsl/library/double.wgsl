// Comparisons with NaN are false in every order.
fn d_is_nan(x: f64) -> bool { return !(x < 0.0lf || x >= 0.0lf); }
fn d_min(a: f64, b: f64) -> f64 { return select(b, a, d_is_nan(a) || a < b); }
fn d_max(a: f64, b: f64) -> f64 { return select(b, a, d_is_nan(a) || a > b); }
fn d_clamp(a: f64, b: f64, c: f64) -> f64 { return d_min(d_max(a, b), c); }
fn d_relu(x: f64) -> f64 { return select(x, 0.0lf, x <= 0.0lf); }
fn d_sign(x: f64) -> f64 {
    if (x > 0.0lf) { return 1.0lf; }
    if (x < 0.0lf) { return -1.0lf; }
    if (d_is_nan(x)) { return x; }
    return 0.0lf;
}
fn d_to_i32(x: f64) -> i32 {
    if (d_is_nan(x)) { return 0; }
    if (x >= 2147483648.0lf) { return 2147483647; }
    if (x <= -2147483648.0lf) { return -2147483647 - 1; }
    return i32(x);
}
fn d_to_u32(x: f64) -> u32 {
    if (!(x > 0.0lf)) { return 0u; }
    if (x >= 4294967295.0lf) { return 0xffffffffu; }
    return u32(x);
}
