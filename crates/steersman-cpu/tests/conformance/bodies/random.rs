//! Random numbers are what they claim to be: the published generator, the right distributions, the same bits
//! whoever draws them.

use crate::UNDER_TEST;
use steersman_core::expr::Dist;
use steersman_cpu::random::block;

/// Draws numbers from the one of this index on.
pub type Draw = Box<dyn Fn(Dist, u64, u64, usize) -> Vec<f32>>;

/// What a test file says of its device.
pub struct UnderTest {
    /// Everybody who draws f32, by name; none: no such device here.
    pub drawers: fn() -> Vec<(String, Draw)>,
    /// Where numbers may start.
    pub starts: &'static [u64],
    /// How many units of max(1, |z|) a normal number may be off.
    pub normal_units: f64,
}

/// The words of the block and the place of element `i`.
fn words(key: u64, i: u64) -> ([u32; 4], usize) {
    let counter = i / 64 * 16 + i % 16;
    let words = block([key as u32, (key >> 32) as u32], [counter as u32, (counter >> 32) as u32, 0, 0]);
    (words, (i / 16 % 4) as usize)
}

#[test]
fn uniform_numbers_are_the_generators_words() {
    let key = 0xfeed_beef_0123_4567;
    for (who, draw) in (UNDER_TEST.drawers)() {
        for start in UNDER_TEST.starts {
            for (i, x) in draw(Dist::Uniform, key, *start, 333).into_iter().enumerate() {
                let (words, place) = words(key, start + i as u64);
                assert_eq!(x, (words[place] >> 8) as f32 / 16_777_216.0, "{who} {start}+{i}");
            }
        }
    }
}

#[test]
fn normal_numbers_are_box_and_mullers_within_the_stated_error() {
    let key = 42;
    for (who, draw) in (UNDER_TEST.drawers)() {
        for (i, z) in draw(Dist::Normal, key, 0, 1 << 16).into_iter().enumerate() {
            let (words, place) = words(key, i as u64);
            let (radius, angle) = (words[place / 2 * 2], words[place / 2 * 2 + 1]);
            // In f32 up to here, as the generator has it: near 1 a last bit of u is many of the radius.
            let u = (radius >> 1) as f32 / 2_147_483_648.0 + 1.0 / 4_294_967_296.0;
            let theta = f64::from(angle) / 4_294_967_296.0 * std::f64::consts::TAU;
            let r = (-2.0 * f64::from(u).ln()).sqrt();
            let want = r * if place % 2 == 0 { theta.cos() } else { theta.sin() };
            let unit = f64::from(f32::EPSILON) * want.abs().max(1.0);
            assert!((f64::from(z) - want).abs() <= UNDER_TEST.normal_units * unit, "{who} {i}: {z} {want}");
        }
    }
}

/// How many standard errors the mean of `f` over numbers is from `want`, given its variance.
pub fn sigmas(xs: &[f64], want: f64, variance: f64, f: impl Fn(f64) -> f64) -> f64 {
    let mean = xs.iter().map(|&x| f(x)).sum::<f64>() / xs.len() as f64;
    (mean - want).abs() / (variance / xs.len() as f64).sqrt()
}

/// Uniform numbers have the moments of their distribution; neighbours, and those a vector or a word apart, know
/// nothing of each other.
pub fn assert_uniform(x: &[f64]) {
    assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
    assert!(sigmas(x, 0.5, 1.0 / 12.0, |x| x) < 4.5);
    assert!(sigmas(x, 1.0 / 3.0, 4.0 / 45.0, |x| x * x) < 4.5);
    for lag in [1, 16, 32, 64] {
        let pairs: Vec<f64> = x.windows(lag + 1).map(|w| (w[0] - 0.5) * (w[lag] - 0.5)).collect();
        assert!(sigmas(&pairs, 0.0, 1.0 / 144.0, |p| p) < 4.5, "lag {lag}");
    }
}

/// The same of normal numbers.
pub fn assert_normal(z: &[f64]) {
    assert!(sigmas(z, 0.0, 1.0, |z| z) < 4.5);
    assert!(sigmas(z, 1.0, 2.0, |z| z * z) < 4.5);
    assert!(sigmas(z, 0.0, 15.0, |z| z.powi(3)) < 4.5);
    assert!(sigmas(z, 3.0, 96.0, |z| z.powi(4)) < 4.5);
    for lag in [1, 16, 32, 64] {
        let pairs: Vec<f64> = z.windows(lag + 1).map(|w| w[0] * w[lag]).collect();
        assert!(sigmas(&pairs, 0.0, 1.0, |p| p) < 4.5, "lag {lag}");
    }
}

#[test]
fn moments_are_those_of_the_distributions() {
    let Some((_, draw)) = (UNDER_TEST.drawers)().pop() else { return };
    let of = |dist: Dist, key: u64| -> Vec<f64> {
        draw(dist, key, 0, 1 << 20).into_iter().map(f64::from).collect()
    };
    for key in [0, 1, u64::MAX] {
        assert_uniform(&of(Dist::Uniform, key));
        assert_normal(&of(Dist::Normal, key));
    }
}

#[test]
fn tails_have_as_many_numbers_as_they_should() {
    let Some((_, draw)) = (UNDER_TEST.drawers)().pop() else { return };
    let z = draw(Dist::Normal, 2024, 0, 1 << 23);
    // Beyond 1, 2, 3, 4, 5 standard deviations, both sides.
    let beyond = [0.31731050786, 0.04550026390, 0.00269979606, 6.334248e-5, 5.733031e-7];
    for (k, share) in beyond.into_iter().enumerate() {
        let limit = (k + 1) as f32;
        let above = z.iter().filter(|z| **z > limit).count() as f64;
        let below = z.iter().filter(|z| **z < -limit).count() as f64;
        let want = share / 2.0 * z.len() as f64;
        for got in [above, below] {
            assert!((got - want).abs() < 4.5 * want.sqrt() + 3.0, "{got} beyond {limit}, not {want:.1}");
        }
    }
    assert!(z.iter().all(|z| z.is_finite() && z.abs() < 6.67));
}

#[test]
fn keys_give_numbers_of_their_own() {
    let Some((_, draw)) = (UNDER_TEST.drawers)().pop() else { return };
    for (one, other) in [(0, 1), (1, 1 << 32), (7, 7 + (1 << 63))] {
        let (a, b) = (draw(Dist::Uniform, one, 0, 4096), draw(Dist::Uniform, other, 0, 4096));
        let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert!(equal < 4, "keys {one} and {other} share {equal} numbers");
    }
}
