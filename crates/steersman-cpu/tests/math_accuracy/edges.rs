//! Infinities, zeros, NaN and the ends of the range give what C gives, at every level; and what lies beyond
//! the fast range of the trigonometric functions is repaired.

use steersman_cpu::isa::{Body, Isa, Level};
use steersman_cpu::math::{self, trig};

const EDGES: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    -0.7,
    5e-324,
    -5e-324,
    2.3e-308,
    f64::MAX,
    f64::MIN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    710.2,
    -745.2,
    4503599627370495.5,
    9007199254740993.0,
];

/// Same class, same sign, same size to 1e-14 or the smallest subnormal.
fn alike(got: f64, expected: f64) -> bool {
    if got.is_nan() || expected.is_nan() {
        return got.is_nan() && expected.is_nan();
    }
    got.is_sign_negative() == expected.is_sign_negative()
        && (got == expected || (got - expected).abs() <= 1e-14 * expected.abs() + 5e-324)
}

macro_rules! edges_f64 {
    ($($f:ident like $reference:expr;)+) => {$({
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
        let reference: fn(f64) -> f64 = $reference;
        for level in Level::present() {
            let mut ys = [0.0; EDGES.len()];
            level.dispatch(Map(&EDGES, &mut ys));
            for (x, y) in EDGES.into_iter().zip(ys) {
                let expected = reference(x);
                assert!(alike(y, expected), "{}({x:e}) at {}: {y:e}, not {expected:e}", stringify!($f), level.name());
            }
        }
    })+};
}

/// `x sigmoid(x)`, scaled so that the tail does not underflow early.
fn silu(x: f64) -> f64 {
    match x {
        _ if x < -800.0 => -0.0,
        _ if x < -40.0 => x * (x + 100.0).exp() * (-100f64).exp(),
        _ => x / (1.0 + (-x).exp()),
    }
}

/// `f` in the fast range, NaN beyond.
fn fast(x: f64, f: fn(f64) -> f64) -> f64 {
    if x.abs() <= trig::FAST_LIMIT_F64 { f(x) } else { f64::NAN }
}

#[test]
fn edges_of_f64_are_those_of_c() {
    edges_f64! {
        exp_f64 like f64::exp;
        expm1_f64 like f64::exp_m1;
        sigmoid_f64 like |x| 1.0 / (1.0 + (-x).exp());
        silu_f64 like silu;
        ln_f64 like f64::ln;
        log1p_f64 like f64::ln_1p;
        log2_f64 like f64::log2;
        sin_f64 like |x| fast(x, f64::sin);
        cos_f64 like |x| fast(x, f64::cos);
        tan_f64 like |x| fast(x, f64::tan);
        asin_f64 like f64::asin;
        acos_f64 like f64::acos;
        atan_f64 like f64::atan;
        sinh_f64 like f64::sinh;
        cosh_f64 like f64::cosh;
        tanh_f64 like f64::tanh;
        rsqrt_f64 like |x| 1.0 / x.sqrt();
        recip_f64 like |x| 1.0 / x;
        sign_f64 like |x| if x == 0.0 { 0.0 } else if x.is_nan() { x } else { x.signum() };
        relu_f64 like |x| if x <= 0.0 { 0.0 } else { x };
        floor_f64 like f64::floor;
        ceil_f64 like f64::ceil;
        round_f64 like f64::round_ties_even;
        trunc_f64 like f64::trunc;
        erf_f64 like |x| if x.abs() < 1e-300 { x + x * 0.1283791670955126 } else { crate::f32::erf_of_c(x) };
        gelu_f64 like crate::f32::gelu;
    }
}

#[test]
fn repair_fills_in_what_lies_beyond_the_fast_range() {
    let xs = [0.5, 1e8, -3e37, f32::MAX, f32::INFINITY, f32::NAN, -2.0];
    let mut ys = [7.0; 7];
    trig::repair_f32(&xs, &mut ys, trig::cos_anywhere_f32);
    for (x, y) in xs.into_iter().zip(ys) {
        let expected = if trig::needs_slow_path_f32(x) { f64::from(x).cos() as f32 } else { 7.0 };
        assert_eq!(y, expected, "at {x:e}");
    }
    let (xs, mut ys) = ([1e300, 1.0], [7.0; 2]);
    trig::repair_f64(&xs, &mut ys, trig::sin_anywhere_f64);
    assert_eq!(ys, [1e300f64.sin(), 7.0]);
}
