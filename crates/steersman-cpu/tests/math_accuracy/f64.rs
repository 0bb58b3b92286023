//! `f64` functions of one argument against arbitrary precision.

use crate::reference::{Exact, ulps};
use steersman_cpu::isa::{Body, Isa, Level};
use steersman_cpu::math;
use steersman_cpu::math::bounds::{Float, ulp_bound};

const POINTS: usize = 1500;

/// The same arbitrary numbers in 0..1 every time.
pub fn arbitrary() -> impl FnMut() -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / 2f64.powi(53)
    }
}

/// Points between `from` and `to`: a third spread evenly, a third by magnitude down to 1e-18, a third about
/// 1.
fn points(from: f64, to: f64) -> Vec<f64> {
    let mut next = arbitrary();
    let mut xs = vec![from, to];
    while xs.len() < POINTS {
        let x = match xs.len() % 3 {
            0 => from + (to - from) * next(),
            1 => {
                let size = from.abs().max(to).ln();
                (size + (1e-18f64.ln() - size) * next()).exp().copysign(next() - 0.5)
            }
            _ => (2.0 * next()).copysign(next() - 0.5),
        };
        if x >= from && x <= to {
            xs.push(x);
        }
    }
    xs
}

macro_rules! f64_tests {
    ($($test:ident: $name:ident, $f:ident, $from:expr, $to:expr;)+) => {$(
        #[test]
        fn $test() {
            struct Map<'a>(&'a [f64], &'a mut [f64]);
            impl Body for Map<'_> {
                type Out = ();
                #[inline(always)]
                fn run<I: Isa>(self) {
                    for (x, y) in self.0.iter().zip(self.1.iter_mut()) {
                        *y = math::$f::<I>(*x);
                    }
                }
            }
            let xs = points($from, $to);
            let mut reference = Exact::new();
            let exact: Vec<_> = xs.iter().map(|&x| reference.$name(x)).collect();
            let mut ys = vec![0.0; xs.len()];
            let name = stringify!($name);
            for level in Level::present() {
                level.dispatch(Map(&xs, &mut ys));
                let errors = xs.iter().zip(&ys).zip(&exact).map(|((&x, &y), e)| (ulps(y, e), x));
                let (error, at) = errors.fold((0.0, 0.0), |worst, e| if e.0 > worst.0 { e } else { worst });
                println!("{name:<8} f64 {:<8} {error:6.3} ulp at {at:e}", level.name());
                let bound = ulp_bound(name, Float::F64).expect("in the table");
                assert!(error <= bound, "{name} f64 at {}: {error} ulp at {at:e}", level.name());
            }
        }
    )+};
}

f64_tests! {
    exp_f64_keeps_its_bound: exp, exp_f64, -745.0, 709.7;
    expm1_f64_keeps_its_bound: expm1, expm1_f64, -50.0, 709.7;
    sigmoid_f64_keeps_its_bound: sigmoid, sigmoid_f64, -740.0, 50.0;
    silu_f64_keeps_its_bound: silu, silu_f64, -740.0, 50.0;
    ln_f64_keeps_its_bound: ln, ln_f64, f64::from_bits(1), f64::MAX;
    log1p_f64_keeps_its_bound: log1p, log1p_f64, -0.9999999, 1e200;
    log2_f64_keeps_its_bound: log2, log2_f64, f64::from_bits(1), 1e300;
    sin_f64_keeps_its_bound: sin, sin_f64, -2.0e6, 2.0e6;
    cos_f64_keeps_its_bound: cos, cos_f64, -2.0e6, 2.0e6;
    tan_f64_keeps_its_bound: tan, tan_f64, -2.0e6, 2.0e6;
    asin_f64_keeps_its_bound: asin, asin_f64, -1.0, 1.0;
    acos_f64_keeps_its_bound: acos, acos_f64, -1.0, 1.0;
    atan_f64_keeps_its_bound: atan, atan_f64, -1e10, 1e10;
    sinh_f64_keeps_its_bound: sinh, sinh_f64, -710.0, 710.0;
    cosh_f64_keeps_its_bound: cosh, cosh_f64, -710.0, 710.0;
    tanh_f64_keeps_its_bound: tanh, tanh_f64, -22.0, 22.0;
    erf_f64_keeps_its_bound: erf, erf_f64, -6.0, 6.0;
    gelu_f64_keeps_its_bound: gelu, gelu_f64, -12.0, 12.0;
    rsqrt_f64_keeps_its_bound: rsqrt, rsqrt_f64, 1e-300, 1e300;
    recip_f64_keeps_its_bound: recip, recip_f64, 1e-300, 1e300;
}
