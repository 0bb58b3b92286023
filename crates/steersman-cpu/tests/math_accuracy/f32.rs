//! `f32` functions of one argument against the `f64` ones of the standard library.

use steersman_cpu::isa::{Body, Isa, Level};
use steersman_cpu::math;
use steersman_cpu::math::bounds::{Float, ulp_bound};
use steersman_cpu::math::trig::FAST_LIMIT_F32;

/// Distance of `got` from `exact` in units of the spacing of `f32` at `exact`; infinite if one is NaN.
pub fn ulps_f32(got: f32, exact: f64) -> f64 {
    if got.is_nan() || exact.is_nan() {
        return if got.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = exact as f32;
    if got == rounded {
        let spacing = spacing_f32(rounded);
        return if rounded.is_infinite() || exact == 0.0 {
            0.0
        } else {
            (f64::from(got) - exact).abs() / spacing
        };
    }
    // The value after the largest finite one stands for infinity.
    let value = |v: f32| if v.is_infinite() { 2f64.powi(128).copysign(f64::from(v)) } else { f64::from(v) };
    (value(got) - exact.clamp(value(f32::NEG_INFINITY), value(f32::INFINITY))).abs() / spacing_f32(rounded)
}

/// The spacing of `f32` just at `x`.
fn spacing_f32(x: f32) -> f64 {
    let exponent = ((x.to_bits() >> 23) & 0xff).clamp(1, 254) as i32;
    2f64.powi(exponent - 127 - 23)
}

/// Bit patterns from the whole line, evenly strided, and the ones where things go wrong.
fn inputs_f32() -> Vec<f32> {
    let mut xs: Vec<f32> = (0..u32::MAX / 2039).map(|i| f32::from_bits(i * 2039)).collect();
    let edges = [
        0.0,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
        1.0,
        0.5,
        2.0,
        1.5,
        10.0,
        88.72283,
        88.72284,
        88.8,
        103.0,
        103.97,
        104.5,
        87.33655,
        89.415985,
        1e5,
        99999.99,
        std::f32::consts::PI,
        1.5707964,
        0.70710677,
        std::f32::consts::SQRT_2,
        8388607.5,
        8388608.0,
        4194304.5,
        2.5,
        3.5,
        FAST_LIMIT_F32,
    ];
    for e in edges {
        for bits in f32::to_bits(e).saturating_sub(3)..=f32::to_bits(e).saturating_add(3) {
            xs.extend([f32::from_bits(bits), -f32::from_bits(bits)]);
        }
    }
    xs
}

/// The worst error over `xs` at one level, and where.
fn worst_f32(xs: &[f32], ys: &[f32], exact: &[f64]) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for ((&x, &y), &e) in xs.iter().zip(ys).zip(exact) {
        let error = ulps_f32(y, e);
        assert!(e != 0.0 || y != 0.0 || e.is_sign_negative() == y.is_sign_negative(), "zero's sign at {x:e}");
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

macro_rules! f32_tests {
    ($($test:ident: $name:literal, $f:ident, $reference:expr;)+) => {$(
        #[test]
        fn $test() {
            struct Map<'a>(&'a [f32], &'a mut [f32]);
            impl Body for Map<'_> {
                type Out = ();
                #[inline(always)]
                fn run<I: Isa>(self) {
                    for (x, y) in self.0.iter().zip(self.1.iter_mut()) {
                        *y = math::$f::<I>(*x);
                    }
                }
            }
            let reference: fn(f64) -> f64 = $reference;
            let xs = inputs_f32();
            let exact: Vec<f64> = xs.iter().map(|&x| reference(f64::from(x))).collect();
            let mut ys = vec![0.0; xs.len()];
            for level in Level::present() {
                level.dispatch(Map(&xs, &mut ys));
                let (error, at) = worst_f32(&xs, &ys, &exact);
                println!("{:<8} f32 {:<8} {error:6.3} ulp at {at:e}", $name, level.name());
                let bound = ulp_bound($name, Float::F32).expect("in the table");
                assert!(error <= bound, "{} f32 at {}: {error} ulp at {at:e}", $name, level.name());
            }
        }
    )+};
}

/// `f` within the fast range of the trigonometric functions, NaN beyond.
fn in_fast_range(x: f64, f: fn(f64) -> f64) -> f64 {
    if x.abs() <= f64::from(FAST_LIMIT_F32) { f(x) } else { f64::NAN }
}

unsafe extern "C" {
    fn erf(x: f64) -> f64;
    fn erfc(x: f64) -> f64;
}

/// The error function by the C library.
pub fn erf_of_c(x: f64) -> f64 {
    // SAFETY: a pure function of the C library `std` links against.
    unsafe { erf(x) }
}

/// `x sigmoid(x)`, with its limit.
fn silu(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { -0.0 } else { x / (1.0 + (-x).exp()) }
}

/// `x Φ(x)` by the C library.
pub fn gelu(x: f64) -> f64 {
    if x == f64::NEG_INFINITY {
        return -0.0;
    }
    // SAFETY: a pure function of the C library `std` links against.
    x * 0.5 * unsafe { erfc(-x * std::f64::consts::FRAC_1_SQRT_2) }
}

f32_tests! {
    exp_f32_keeps_its_bound: "exp", exp_f32, f64::exp;
    expm1_f32_keeps_its_bound: "expm1", expm1_f32, f64::exp_m1;
    sigmoid_f32_keeps_its_bound: "sigmoid", sigmoid_f32, |x| 1.0 / (1.0 + (-x).exp());
    silu_f32_keeps_its_bound: "silu", silu_f32, silu;
    ln_f32_keeps_its_bound: "ln", ln_f32, f64::ln;
    log1p_f32_keeps_its_bound: "log1p", log1p_f32, f64::ln_1p;
    log2_f32_keeps_its_bound: "log2", log2_f32, f64::log2;
    sin_f32_keeps_its_bound: "sin", sin_f32, |x| in_fast_range(x, f64::sin);
    cos_f32_keeps_its_bound: "cos", cos_f32, |x| in_fast_range(x, f64::cos);
    tan_f32_keeps_its_bound: "tan", tan_f32, |x| in_fast_range(x, f64::tan);
    sinh_f32_keeps_its_bound: "sinh", sinh_f32, f64::sinh;
    cosh_f32_keeps_its_bound: "cosh", cosh_f32, f64::cosh;
    asin_f32_keeps_its_bound: "asin", asin_f32, f64::asin;
    acos_f32_keeps_its_bound: "acos", acos_f32, f64::acos;
    atan_f32_keeps_its_bound: "atan", atan_f32, f64::atan;
    erf_f32_keeps_its_bound: "erf", erf_f32, erf_of_c;
    gelu_f32_keeps_its_bound: "gelu", gelu_f32, gelu;
    rsqrt_f32_keeps_its_bound: "rsqrt", rsqrt_f32, |x| 1.0 / x.sqrt();
    recip_f32_keeps_its_bound: "recip", recip_f32, |x| 1.0 / x;
    sign_f32_is_exact: "sign", sign_f32, |x| if x == 0.0 { 0.0 } else if x.is_nan() { x } else { x.signum() };
    relu_f32_is_exact: "relu", relu_f32, |x| if x <= 0.0 { 0.0 } else { x };
    floor_f32_is_exact: "floor", floor_f32, f64::floor;
    ceil_f32_is_exact: "ceil", ceil_f32, f64::ceil;
    round_f32_is_exact: "round", round_f32, f64::round_ties_even;
    trunc_f32_is_exact: "trunc", trunc_f32, f64::trunc;
    tanh_f32_keeps_its_bound: "tanh", tanh_f32, f64::tanh;
}
