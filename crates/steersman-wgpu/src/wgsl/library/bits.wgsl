// Compilers may assume that there is no NaN: what depends on it looks at bits.
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn is_inf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
// The same value, of which a compiler knows nothing: it may otherwise put sums of products together anew.
fn keep(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ p.zero); }
fn from_bits(b: u32) -> f32 { return bitcast<f32>(b); }
// Through a variable: constants that are not finite are errors.
fn nan() -> f32 { var b = 0x7fc00000u; return bitcast<f32>(b); }
fn inf() -> f32 { var b = 0x7f800000u; return bitcast<f32>(b); }
fn magnitude(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }
fn negated(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }
fn below_zero(x: f32) -> bool { return (bitcast<u32>(x) >> 31u) == 1u; }
// y with its sign turned if x has the sign bit.
fn flip(y: f32, x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(y) ^ (bitcast<u32>(x) & 0x80000000u)); }
// Numbers in order as integers, zeros of both signs equal; subnormals are not flushed here.
fn order(x: f32) -> i32 {
    let b = bitcast<i32>(x);
    return select(b, -(b & 0x7fffffff), b < 0);
}
fn numbers(a: f32, b: f32) -> bool { return !(is_nan(a) || is_nan(b)); }
fn f_eq(a: f32, b: f32) -> bool { return numbers(a, b) && order(a) == order(b); }
fn f_ne(a: f32, b: f32) -> bool { return !f_eq(a, b); }
fn f_lt(a: f32, b: f32) -> bool { return numbers(a, b) && order(a) < order(b); }
fn f_le(a: f32, b: f32) -> bool { return numbers(a, b) && order(a) <= order(b); }
fn f_gt(a: f32, b: f32) -> bool { return f_lt(b, a); }
fn f_ge(a: f32, b: f32) -> bool { return f_le(b, a); }
fn f_min(a: f32, b: f32) -> f32 { return from_bits(select(bitcast<u32>(b), bitcast<u32>(a), is_nan(a) || f_lt(a, b))); }
fn f_max(a: f32, b: f32) -> f32 { return from_bits(select(bitcast<u32>(b), bitcast<u32>(a), is_nan(a) || f_gt(a, b))); }
fn f_clamp(a: f32, b: f32, c: f32) -> f32 { return f_min(f_max(a, b), c); }
fn f_relu(x: f32) -> f32 { return from_bits(select(bitcast<u32>(x), 0u, !is_nan(x) && order(x) <= 0)); }
fn f_sign(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    // By integers: of a choice between 0 and -1 some compilers make -0 and -1.
    return f32(sign(order(x)));
}
fn f_nonzero(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) != 0u; }
// Comparing by order: a subnormal is not zero.
fn f_floor(x: f32) -> f32 { let t = trunc(x); return select(t, t - 1.0, f_lt(x, t)); }
fn f_ceil(x: f32) -> f32 { let t = trunc(x); return select(t, t + 1.0, f_lt(t, x)); }
// Roots and quotients, also where reciprocals of hardware give up: operands below the least normal number, which are
// taken apart by bits (m is the value times 2^149), and divisors whose reciprocal is below it.
fn is_subnormal(x: f32) -> bool { return ((bitcast<u32>(x) & 0x7fffffffu) - 1u) < 0x7fffffu; }
fn subnormal_steps(x: f32) -> f32 { return f32(bitcast<u32>(x) & 0x7fffffu); }
fn f_sqrt(x: f32) -> f32 {
    if (!is_subnormal(x)) { return sqrt(x); }
    if (below_zero(x)) { return nan(); }
    return sqrt(subnormal_steps(x) * 0.5) * 5.293955920339377e-23;
}
fn f_rsqrt(x: f32) -> f32 {
    if (!is_subnormal(x)) { return 1.0 / sqrt(x); }
    if (below_zero(x)) { return nan(); }
    return 1.8889465931478581e22 / sqrt(subnormal_steps(x) * 0.5);
}
fn f_div(a: f32, b: f32) -> f32 {
    if (is_subnormal(b)) {
        let steps = flip(subnormal_steps(b), b);
        if (is_subnormal(a)) { return flip(subnormal_steps(a), a) / steps; }
        // In two factors that must stay two: together they are infinite.
        return keep((a * 37778931862957161709568.0) / steps) * 18889465931478580854784.0;
    }
    let large = magnitude(b);
    if (large > 8.507059173023462e37 && !is_inf(b)) { return (a * 0.25) / (b * 0.25); }
    return a / b;
}
