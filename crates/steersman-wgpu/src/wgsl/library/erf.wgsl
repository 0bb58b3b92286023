// e^(a²) erfc(a) for 0 ≤ a ≤ 10.2.
fn erfc_scaled(a: f32) -> f32 {
    let t = (a - 2.0) / (a + 2.0);
    let p = fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -0.0004035892, -0.0012362521), 0.0013139836), 0.008638839), -0.008058295), -0.05420712), 0.16405469), -0.16603099), -0.09276392), 1.2769784);
    return p / fma(2.0, a, 1.0);
}
// What rounding a² lost, by halves that multiply exactly.
fn square_rest(a: f32, square: f32) -> f32 {
    let high = from_bits(bitcast<u32>(a) & 0xfffff000u);
    let low = keep(a - high);
    return (keep(high * high - square) + 2.0 * high * low) + low * low;
}
fn f_erf(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let a = min(magnitude(x), 5.0);
    let square = a * a;
    let e = exp_parts(-square, -square_rest(a, square), 0);
    let far = 1.0 - e.x * e.y * e.z * erfc_scaled(a);
    let p = fma(square, fma(square, fma(square, fma(square, fma(square, fma(square, 7.835262e-5, -0.00080048153), 0.005187763), -0.02685356), 0.11283581), -0.37612626), 0.12837917);
    return flip(select(fma(a, p, a), far, a > 1.0), x);
}
fn f_gelu(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let a = min(magnitude(x), 15.0);
    let square = a * a;
    let e = exp_parts(-0.5 * square, -0.5 * square_rest(a, square), -1);
    let upper = a * e.x * erfc_scaled(a * 0.70710678118654752) * e.y * e.z;
    return select(x - upper, -upper, below_zero(x));
}
