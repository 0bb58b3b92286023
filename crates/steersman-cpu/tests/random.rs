//! Random numbers are what they claim to be: the published generator, the right distributions, the same bits
//! whoever draws them.

use steersman_cpu::isa::Level;
use steersman_cpu::random::{block, normal_f32, normal_f64, uniform_f32, uniform_f64};

const N: usize = 1 << 20;

/// The words of the block and the place of element `i` of f32.
fn words(key: u64, i: u64) -> ([u32; 4], usize) {
    let counter = i / 64 * 16 + i % 16;
    let words = block([key as u32, (key >> 32) as u32], [counter as u32, (counter >> 32) as u32, 0, 0]);
    (words, (i / 16 % 4) as usize)
}

#[test]
fn uniform_numbers_are_the_generators_words_on_every_level() {
    let key = 0xfeed_beef_0123_4567;
    for level in Level::present() {
        for start in [0u64, 5, 63, 1000, (1 << 34) - 7] {
            let mut x = [0f32; 333];
            uniform_f32(level, key, start, &mut x);
            for (i, x) in x.iter().enumerate() {
                let (words, place) = words(key, start + i as u64);
                assert_eq!(*x, (words[place] >> 8) as f32 / 16_777_216.0, "{} {start}+{i}", level.name());
            }
            let mut x = [0f64; 333];
            uniform_f64(level, key, start, &mut x);
            for (i, x) in x.iter().enumerate() {
                let at = start + i as u64;
                let counter = at / 32 * 16 + at % 16;
                let w =
                    block([key as u32, (key >> 32) as u32], [counter as u32, (counter >> 32) as u32, 0, 0]);
                let (high, low) = if (at / 16).is_multiple_of(2) { (w[0], w[1]) } else { (w[2], w[3]) };
                let bits = u64::from(high >> 6) << 27 | u64::from(low >> 5);
                assert_eq!(*x, bits as f64 / 9_007_199_254_740_992.0, "{} {start}+{i}", level.name());
            }
        }
    }
}

/// Cosine and sine of so many 2⁻⁶⁴ turns: of what is left of a quarter, which f64 has room for.
fn turned(angle: u64) -> (f64, f64) {
    let quarter = angle.wrapping_add(1 << 61) >> 62;
    let rest = angle.wrapping_sub(quarter << 62) as i64 as f64 * (std::f64::consts::TAU / 2f64.powi(64));
    match quarter {
        0 => (rest.cos(), rest.sin()),
        1 => (-rest.sin(), rest.cos()),
        2 => (-rest.cos(), -rest.sin()),
        _ => (rest.sin(), -rest.cos()),
    }
}

#[test]
fn normal_numbers_are_box_and_mullers_within_the_stated_error() {
    let key = 42;
    for level in Level::present() {
        let (mut z, mut w) = (vec![0f32; 1 << 16], vec![0f64; 1 << 14]);
        normal_f32(level, key, 0, &mut z);
        normal_f64(level, key, 0, &mut w);
        for (i, z) in z.iter().enumerate() {
            let (words, place) = words(key, i as u64);
            let (radius, angle) = (words[place / 2 * 2], words[place / 2 * 2 + 1]);
            // In f32 up to here, as the generator has it: near 1 a last bit of u is many of the radius.
            let u = (radius >> 1) as f32 / 2_147_483_648.0 + 1.0 / 4_294_967_296.0;
            let theta = f64::from(angle) / 4_294_967_296.0 * std::f64::consts::TAU;
            let r = (-2.0 * f64::from(u).ln()).sqrt();
            let want = r * if place % 2 == 0 { theta.cos() } else { theta.sin() };
            let ulp = f64::from(f32::EPSILON) * want.abs().max(1.0);
            assert!((f64::from(*z) - want).abs() <= 4.0 * ulp, "{} {i}: {z} {want}", level.name());
        }
        for (i, z) in w.iter().enumerate() {
            let counter = i as u64 / 32 * 16 + i as u64 % 16;
            let w = block([key as u32, 0], [counter as u32, 0, 0, 0]);
            let whole = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
            let u = ((whole(w[0], w[1]) >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
            let (cos, sin) = turned(whole(w[2], w[3]) >> 11 << 11);
            let want = (-2.0 * u.ln()).sqrt() * if i / 16 % 2 == 0 { cos } else { sin };
            let ulp = f64::EPSILON * want.abs().max(1.0);
            assert!((z - want).abs() <= 8.0 * ulp, "{} {i}: {z} {want}", level.name());
        }
    }
}

/// Mean of `f` over numbers, and how many standard errors of it they are from `want`, given its variance.
fn sigmas(xs: &[f64], want: f64, variance: f64, f: impl Fn(f64) -> f64) -> f64 {
    let mean = xs.iter().map(|&x| f(x)).sum::<f64>() / xs.len() as f64;
    (mean - want).abs() / (variance / xs.len() as f64).sqrt()
}

#[test]
fn moments_are_those_of_the_distributions() {
    for key in [0, 1, u64::MAX] {
        let (mut a, mut b) = (vec![0f32; N], vec![0f64; N]);
        uniform_f32(Level::best(), key, 0, &mut a);
        uniform_f64(Level::best(), key, 0, &mut b);
        for x in [a.iter().map(|x| f64::from(*x)).collect(), b.clone()] {
            let x: Vec<f64> = x;
            assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
            assert!(sigmas(&x, 0.5, 1.0 / 12.0, |x| x) < 4.5);
            assert!(sigmas(&x, 1.0 / 3.0, 4.0 / 45.0, |x| x * x) < 4.5);
            // Neighbours, and those a vector or a word apart, know nothing of each other.
            for lag in [1, 16, 32, 64] {
                let pairs: Vec<f64> = x.windows(lag + 1).map(|w| (w[0] - 0.5) * (w[lag] - 0.5)).collect();
                assert!(sigmas(&pairs, 0.0, 1.0 / 144.0, |p| p) < 4.5, "lag {lag}");
            }
        }
        normal_f32(Level::best(), key, 0, &mut a);
        normal_f64(Level::best(), key, 0, &mut b);
        for z in [a.iter().map(|x| f64::from(*x)).collect(), b.clone()] {
            let z: Vec<f64> = z;
            assert!(sigmas(&z, 0.0, 1.0, |z| z) < 4.5);
            assert!(sigmas(&z, 1.0, 2.0, |z| z * z) < 4.5);
            assert!(sigmas(&z, 0.0, 15.0, |z| z.powi(3)) < 4.5);
            assert!(sigmas(&z, 3.0, 96.0, |z| z.powi(4)) < 4.5);
            for lag in [1, 16, 32, 64] {
                let pairs: Vec<f64> = z.windows(lag + 1).map(|w| w[0] * w[lag]).collect();
                assert!(sigmas(&pairs, 0.0, 1.0, |p| p) < 4.5, "lag {lag}");
            }
        }
    }
}

#[test]
fn tails_have_as_many_numbers_as_they_should() {
    let mut z = vec![0f32; 1 << 23];
    normal_f32(Level::best(), 2024, 0, &mut z);
    // Beyond 1, 2, 3, 4, 5 standard deviations, both sides.
    let beyond = [0.31731050786, 0.04550026390, 0.00269979606, 6.334248e-5, 5.733031e-7];
    for (k, share) in beyond.into_iter().enumerate() {
        let limit = (k + 1) as f32;
        let (above, below) = (
            z.iter().filter(|z| **z > limit).count() as f64,
            z.iter().filter(|z| **z < -limit).count() as f64,
        );
        let want = share / 2.0 * z.len() as f64;
        for got in [above, below] {
            assert!((got - want).abs() < 4.5 * want.sqrt() + 3.0, "{got} beyond {limit}, not {want:.1}");
        }
    }
    assert!(z.iter().all(|z| z.is_finite() && z.abs() < 6.67));
}

#[test]
fn keys_give_numbers_of_their_own() {
    let (mut a, mut b) = (vec![0f32; 4096], vec![0f32; 4096]);
    for (one, other) in [(0, 1), (1, 1 << 32), (7, 7 + (1 << 63))] {
        uniform_f32(Level::best(), one, 0, &mut a);
        uniform_f32(Level::best(), other, 0, &mut b);
        let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert!(equal < 4, "keys {one} and {other} share {equal} numbers");
    }
}
