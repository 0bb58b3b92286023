//! Random numbers are what they claim to be: f32 by `conformance/bodies/random.rs`, f64 here.

#[path = "conformance/bodies/random.rs"]
mod bodies;

use bodies::{Draw, assert_normal, assert_uniform};
use steersman_core::expr::Dist;
use steersman_cpu::isa::Level;
use steersman_cpu::random::{block, normal_f32, normal_f64, uniform_f32, uniform_f64};

static UNDER_TEST: bodies::UnderTest = bodies::UnderTest {
    drawers: || Level::present().map(|level| (level.name().into(), by(level))).collect(),
    starts: &[0, 5, 63, 1000, (1 << 34) - 7],
    normal_units: 4.0,
};

fn by(level: Level) -> Draw {
    Box::new(move |dist, key, start, n| {
        let mut x = vec![0f32; n];
        match dist {
            Dist::Uniform => uniform_f32(level, key, start, &mut x),
            Dist::Normal => normal_f32(level, key, start, &mut x),
        }
        x
    })
}

#[test]
fn uniform_f64_are_the_generators_words_on_every_level() {
    let key = 0xfeed_beef_0123_4567u64;
    for level in Level::present() {
        for start in UNDER_TEST.starts {
            let mut x = [0f64; 333];
            uniform_f64(level, key, *start, &mut x);
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
fn normal_f64_are_box_and_mullers_within_the_stated_error() {
    let key = 42;
    for level in Level::present() {
        let mut w = vec![0f64; 1 << 14];
        normal_f64(level, key, 0, &mut w);
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

#[test]
fn moments_of_f64_are_those_of_the_distributions() {
    for key in [0, 1, u64::MAX] {
        let mut x = vec![0f64; 1 << 20];
        uniform_f64(Level::best(), key, 0, &mut x);
        assert_uniform(&x);
        normal_f64(Level::best(), key, 0, &mut x);
        assert_normal(&x);
    }
}
