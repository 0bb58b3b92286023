// x = k ln 2 + r with |r| at most ln 2 / 2, and e^r - 1 = r + r² q(r).
fn exp2_int(k: i32) -> f32 { return bitcast<f32>(u32(k + 127) << 23u); }
struct Reduced { k: i32, r: f32 }
fn exp_reduce(x: f32) -> Reduced {
    let n = floor(fma(x, 1.44269504088896, 0.5));
    return Reduced(i32(n), fma(n, -1.4286068e-6, keep(fma(n, -0.69314575, x))));
}
fn expm1_reduced(r: f32) -> f32 {
    let q = fma(r, fma(r, fma(r, fma(r, 0.001386613, 0.008366585), 0.041667487), 0.16666543), 0.49999997);
    return fma(r * r, q, r);
}
// e^(x + low) 2^shift as three factors of which none over- or underflows.
fn exp_parts(x0: f32, low: f32, shift: i32) -> vec3<f32> {
    let d = exp_reduce(clamp(x0, -110.0, 90.0));
    let k = d.k + shift;
    let half = k >> 1u;
    return vec3<f32>(1.0 + expm1_reduced(d.r + low), exp2_int(half), exp2_int(k - half));
}
fn f_exp(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let e = exp_parts(x, 0.0, 0);
    return e.x * e.y * e.z;
}
fn f_expm1(x: f32) -> f32 {
    if (is_nan(x) || magnitude(x) < 1e-8) { return x; }
    let d = exp_reduce(clamp(x, -20.0, 89.0));
    // Half of 2^k, which would overflow one octave before the result does.
    let s = exp2_int(d.k - 1);
    return 2.0 * fma(s, expm1_reduced(d.r), s - 0.5);
}
fn f_sigmoid(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let e = f_exp(-magnitude(x));
    return select(1.0, e, x < 0.0) / (1.0 + e);
}
fn f_silu(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let e = exp_parts(-magnitude(x), 0.0, 0);
    let low = x < 0.0;
    // The tail is normal long after e^x is not: scale after multiplying by x.
    let c = max(x, -200.0);
    let numerator = select(c, c * e.x * e.y, low);
    return numerator / (1.0 + e.x * e.y * e.z) * select(1.0, e.z, low);
}
fn f_tanh(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let a = min(magnitude(x), 10.0);
    let d = exp_reduce(a + a);
    let s = exp2_int(d.k);
    let far = 1.0 - 2.0 / fma(s, expm1_reduced(d.r), s + 1.0);
    let z = a * a;
    let p = fma(z, fma(z, fma(z, fma(z, -0.006251092, 0.021055458), -0.05384839), 0.13332549), -0.33333316);
    return flip(select(fma(a * z, p, a), far, a > 0.55), x);
}
fn f_cosh(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let e = exp_parts(magnitude(x), 0.0, -1);
    let up = e.x * e.y * e.z;
    return up + 0.25 / up;
}
fn f_sinh(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let a = magnitude(x);
    let e = exp_parts(a, 0.0, -1);
    let up = e.x * e.y * e.z;
    let z = a * a;
    // (sinh a - a) / a³ below 1: Taylor's terms up to a^11.
    let p = fma(z, fma(z, fma(z, fma(z, 2.5052108e-8, 2.7557319e-6), 1.9841270e-4), 8.3333333e-3), 0.16666667);
    return flip(select(fma(a * z, p, a), up - 0.25 / up, a > 1.0), x);
}
