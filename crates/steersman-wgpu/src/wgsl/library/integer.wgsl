// By zero gives 0; the one quotient that does not fit wraps.
fn i_div(a: i32, b: i32) -> i32 {
    if (b == 0) { return 0; }
    if (b == -1) { return -a; }
    return a / b;
}
fn i_rem(a: i32, b: i32) -> i32 {
    if (b == 0 || b == -1) { return 0; }
    return a % b;
}
fn u_div(a: u32, b: u32) -> u32 { return select(a / max(b, 1u), 0u, b == 0u); }
fn u_rem(a: u32, b: u32) -> u32 { return select(a % max(b, 1u), 0u, b == 0u); }
fn to_i32(x: f32) -> i32 {
    if (is_nan(x)) { return 0; }
    if (x >= 2147483648.0) { return 2147483647; }
    if (x < -2147483648.0) { return -2147483647 - 1; }
    return i32(x);
}
fn to_u32(x: f32) -> u32 {
    if (is_nan(x) || x <= 0.0) { return 0u; }
    if (x >= 4294967296.0) { return 0xffffffffu; }
    return u32(x);
}
fn to_u8(x: f32) -> u32 {
    if (is_nan(x)) { return 0u; }
    return u32(clamp(x, 0.0, 255.0));
}
