//! Functions of two arguments.

use crate::f32::ulps_f32;
use crate::f64::arbitrary;
use crate::reference::{Exact, ulps};
use steersman_cpu::isa::{Body, Isa, Level};
use steersman_cpu::math;
use steersman_cpu::math::bounds::{Float, ulp_bound};

const EDGES: [f32; 20] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    1e-45,
    -1e-45,
    3e38,
    -3e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    16777215.0,
    16777216.0,
    -1.5,
];

/// Every pair of edges, then arbitrary pairs: any bits, and moderate sizes.
fn pairs_f32() -> Vec<(f32, f32)> {
    let mut pairs: Vec<_> = EDGES.iter().flat_map(|&x| EDGES.iter().map(move |&y| (x, y))).collect();
    let mut next = arbitrary();
    for _ in 0..300_000 {
        let mut bits = || f32::from_bits((next() * 2f64.powi(32)) as u32);
        pairs.push((bits(), bits()));
        pairs.push(((next() * 20.0) as f32, (next() * 60.0 - 30.0) as f32));
        pairs.push(((next() * 8.0 - 4.0) as f32, (next() * 20.0 - 10.0).round() as f32));
    }
    pairs
}

macro_rules! map {
    ($t:ty, $f:ident) => {{
        struct Map<'a>(&'a [($t, $t)], &'a mut [$t]);
        impl Body for Map<'_> {
            type Out = ();
            #[inline(always)]
            fn run<I: Isa>(self) {
                for (&(x, y), z) in self.0.iter().zip(self.1.iter_mut()) {
                    *z = math::$f::<I>(x, y);
                }
            }
        }
        |level: Level, pairs: &[($t, $t)], zs: &mut [$t]| level.dispatch(Map(pairs, zs))
    }};
}

macro_rules! pair_tests_f32 {
    ($($test:ident: $name:literal, $f:ident, $reference:expr;)+) => {$(
        #[test]
        fn $test() {
            let reference: fn(f64, f64) -> f64 = $reference;
            let pairs = pairs_f32();
            let mut zs = vec![0.0; pairs.len()];
            let bound = ulp_bound($name, Float::F32).expect("in the table");
            for level in Level::present() {
                map!(f32, $f)(level, &pairs, &mut zs);
                let mut worst = 0.0f64;
                for (&(x, y), &z) in pairs.iter().zip(&zs) {
                    let exact = reference(f64::from(x), f64::from(y));
                    let error = ulps_f32(z, exact);
                    assert!(error <= bound, "{} f32 at {}: {error} ulp at {x:e}, {y:e}: {z:e}", $name, level.name());
                    worst = worst.max(error);
                }
                println!("{:<8} f32 {:<8} {worst:6.3} ulp", $name, level.name());
            }
        }
    )+};
}

pair_tests_f32! {
    pow_f32_keeps_its_bound: "pow", pow_f32, f64::powf;
    atan2_f32_keeps_its_bound: "atan2", atan2_f32, f64::atan2;
    rem_f32_is_exact: "rem", rem_f32, |x, y| x % y;
    min_f32_propagates_nan: "min", min_f32, |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { x.min(y) };
    max_f32_propagates_nan: "max", max_f32, |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) };
}

#[test]
fn edge_pairs_of_f64_are_those_of_c() {
    let edges: Vec<f64> =
        EDGES.iter().map(|&x| f64::from(x)).chain([1e300, -1e300, 9007199254740991.0, 5e-324]).collect();
    let pairs: Vec<_> = edges.iter().flat_map(|&x| edges.iter().map(move |&y| (x, y))).collect();
    let mut zs = vec![0.0; pairs.len()];
    let close = |a: f64, b: f64| {
        a.is_nan() && b.is_nan()
            || a.is_sign_negative() == b.is_sign_negative() && (a == b || (a - b).abs() <= 1e-14 * b.abs())
    };
    for level in Level::present() {
        map!(f64, pow_f64)(level, &pairs, &mut zs);
        for (&(x, y), &z) in pairs.iter().zip(&zs) {
            assert!(close(z, x.powf(y)), "pow({x:e}, {y:e}) at {}: {z:e}, not {:e}", level.name(), x.powf(y));
        }
        map!(f64, atan2_f64)(level, &pairs, &mut zs);
        for (&(x, y), &z) in pairs.iter().zip(&zs) {
            assert!(close(z, x.atan2(y)), "atan2({x:e}, {y:e}) at {}: {z:e}", level.name());
        }
        map!(f64, min_f64)(level, &pairs, &mut zs);
        for (&(x, y), &z) in pairs.iter().zip(&zs) {
            assert!(
                z.is_nan() == (x.is_nan() || y.is_nan()) && (z.is_nan() || z == x.min(y)),
                "min({x:e}, {y:e})"
            );
        }
        map!(f64, max_f64)(level, &pairs, &mut zs);
        for (&(x, y), &z) in pairs.iter().zip(&zs) {
            assert!(
                z.is_nan() == (x.is_nan() || y.is_nan()) && (z.is_nan() || z == x.max(y)),
                "max({x:e}, {y:e})"
            );
        }
    }
}

#[test]
fn pow_and_atan2_f64_keep_their_bounds() {
    let mut next = arbitrary();
    let mut exact = Exact::new();
    let pairs: Vec<(f64, f64)> = (0..1500)
        .map(|i| match i % 3 {
            0 => (next() * 20.0, next() * 60.0 - 30.0),
            1 => (0.6 + next(), next() * 2400.0 - 1200.0),
            _ => ((next() * 600.0 - 300.0).exp(), next() * 4.0 - 2.0),
        })
        .collect();
    let powers: Vec<_> = pairs.iter().map(|&(x, y)| exact.pow(x, y)).collect();
    let angles: Vec<_> = pairs.iter().map(|&(x, y)| exact.atan2(x, y)).collect();
    let mut zs = vec![0.0; pairs.len()];
    for level in Level::present() {
        map!(f64, pow_f64)(level, &pairs, &mut zs);
        check("pow", level, &pairs, &zs, &powers);
        map!(f64, atan2_f64)(level, &pairs, &mut zs);
        check("atan2", level, &pairs, &zs, &angles);
    }
}

/// Holds `zs` to the bound of `name`.
fn check(name: &str, level: Level, pairs: &[(f64, f64)], zs: &[f64], exact: &[astro_float_num::BigFloat]) {
    let bound = ulp_bound(name, Float::F64).expect("in the table");
    let mut worst = 0.0f64;
    for ((&(x, y), &z), e) in pairs.iter().zip(zs).zip(exact) {
        let error = ulps(z, e);
        assert!(error <= bound, "{name} f64 at {}: {error} ulp at {x:e}, {y:e}: {z:e}", level.name());
        worst = worst.max(error);
    }
    println!("{name:<8} f64 {:<8} {worst:6.3} ulp", level.name());
}
