//! How many multiply-adds one core can do.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::sample;
use crate::isa::{Body, Isa, Level};

/// Arithmetic peak of one core with one instruction set. A multiply-add counts as two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// The instruction set, as [`Level::name`] has it.
    pub isa: String,
    /// Single-precision operations a second.
    pub f32_flops: f64,
    /// Double-precision operations a second.
    pub f64_flops: f64,
}

pub(super) fn peaks(slice: Duration) -> Vec<Peak> {
    let each = slice.div_f64(2.0 * Level::present().count() as f64);
    Level::present()
        .filter_map(|level| {
            let rate = |double| {
                let seconds = sample::best(each, |units| {
                    black_box(level.dispatch(Chains { rounds: units * ROUNDS, double }));
                    true
                })?;
                Some(level.dispatch(FlopsPerRound { double }) * ROUNDS as f64 / seconds)
            };
            Some(Peak { isa: level.name().to_owned(), f32_flops: rate(false)?, f64_flops: rate(true)? })
        })
        .collect()
}

/// Whether half a vector of AVX-512 takes half the time of a whole one: on Zen 4 it does, on a Xeon both take the same.
/// Found out once, in 20 µs.
pub fn halves_pay() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let time = |level: Level| {
            let started = Instant::now();
            black_box(level.dispatch(Chains { rounds: 4 * ROUNDS, double: false }));
            started.elapsed()
        };
        Level::Avx512.available() && takes_half((0..8).map(|_| [time(Level::Avx2), time(Level::Avx512)]))
    })
}

/// Whether the half, the first of each pair, is clearly quicker than the whole where neither was interrupted.
fn takes_half(pairs: impl Iterator<Item = [Duration; 2]>) -> bool {
    let best = pairs.reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1])]);
    best.is_some_and(|[half, whole]| whole.as_secs_f64() > 1.5 * half.as_secs_f64())
}

/// Rounds in a unit of work.
const ROUNDS: usize = 64;
/// Independent chains: latency 4 or 5 times two units a cycle need ten; twelve fit the sixteen
/// registers of AVX2 with the constants.
const CHAINS: usize = 12;

struct FlopsPerRound {
    double: bool,
}

impl Body for FlopsPerRound {
    type Out = f64;
    #[inline(always)]
    fn run<I: Isa>(self) -> f64 {
        (2 * CHAINS * I::VECTOR_BYTES / if self.double { 8 } else { 4 }) as f64
    }
}

/// Rounds of one multiply-add in each chain; returns the sum of all lanes.
struct Chains {
    rounds: usize,
    double: bool,
}

impl Body for Chains {
    type Out = f64;
    #[inline(always)]
    fn run<I: Isa>(self) -> f64 {
        // SAFETY: `run::<I>` is only reached on a CPU that has the level of `I`.
        unsafe {
            match (I::LEVEL, self.double) {
                #[cfg(target_arch = "x86_64")]
                (Level::Avx2, false) => vectors::avx2_f32(self.rounds),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx2, true) => vectors::avx2_f64(self.rounds),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, false) => vectors::avx512_f32(self.rounds),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, true) => vectors::avx512_f64(self.rounds),
                (_, false) => vectors::baseline_f32(self.rounds),
                (_, true) => vectors::baseline_f64(self.rounds),
            }
        }
    }
}

/// The chains in vector instructions by name: arrays of lanes were not made into vectors by the
/// compiler, and gave 2 Gflop/s where there are 100.
mod vectors {
    use super::CHAINS;
    #[cfg(target_arch = "aarch64")]
    use std::arch::aarch64::*;
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::*;
    use std::hint::black_box;

    macro_rules! chains {
        ($name:ident, $scalar:ty, $vector:ty, $splat:expr, $fma:expr $(, $feature:literal)?) => {
            $(#[target_feature(enable = $feature)])?
            pub(in crate::probe) unsafe fn $name(rounds: usize) -> f64 {
                const LANES: usize = size_of::<$vector>() / size_of::<$scalar>();
                // Hidden from the compiler, which would otherwise work the result out itself.
                // The values settle at 2, far from overflow and from denormals.
                let (scale, offset) = (black_box(($splat)(0.5)), black_box(($splat)(1.0)));
                let mut sums: [$vector; CHAINS] = [($splat)(1.0); CHAINS];
                for _ in 0..rounds {
                    for sum in &mut sums {
                        *sum = ($fma)(*sum, scale, offset);
                    }
                }
                // SAFETY: a vector is its lanes.
                let lanes: [[$scalar; LANES]; CHAINS] = unsafe { std::mem::transmute(sums) };
                lanes.iter().flatten().map(|&lane| f64::from(lane)).sum()
            }
        };
    }

    #[cfg(target_arch = "x86_64")]
    mod x86 {
        use super::*;
        chains!(baseline_f32, f32, __m128, _mm_set1_ps, |a, b, c| _mm_add_ps(_mm_mul_ps(a, b), c), "sse2");
        chains!(baseline_f64, f64, __m128d, _mm_set1_pd, |a, b, c| _mm_add_pd(_mm_mul_pd(a, b), c), "sse2");
        chains!(avx2_f32, f32, __m256, _mm256_set1_ps, _mm256_fmadd_ps, "avx2,fma");
        chains!(avx2_f64, f64, __m256d, _mm256_set1_pd, _mm256_fmadd_pd, "avx2,fma");
        chains!(avx512_f32, f32, __m512, _mm512_set1_ps, _mm512_fmadd_ps, "avx512f");
        chains!(avx512_f64, f64, __m512d, _mm512_set1_pd, _mm512_fmadd_pd, "avx512f");
    }
    #[cfg(target_arch = "x86_64")]
    pub(in crate::probe) use x86::*;

    #[cfg(target_arch = "aarch64")]
    chains!(baseline_f32, f32, float32x4_t, vdupq_n_f32, |a, b, c| vfmaq_f32(c, a, b), "neon");
    #[cfg(target_arch = "aarch64")]
    chains!(baseline_f64, f64, float64x2_t, vdupq_n_f64, |a, b, c| vfmaq_f64(c, a, b), "neon");

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    mod plain {
        use super::*;
        use std::array::from_fn;
        chains!(baseline_f32, f32, [f32; 4], |x| [x; 4], |a: [f32; 4], b: [f32; 4], c: [f32; 4]| from_fn(
            |i| a[i] * b[i] + c[i]
        ));
        chains!(baseline_f64, f64, [f64; 2], |x| [x; 2], |a: [f64; 2], b: [f64; 2], c: [f64; 2]| from_fn(
            |i| a[i] * b[i] + c[i]
        ));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(in crate::probe) use plain::*;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_pays_where_it_is_clearly_quicker_and_no_pair_misleads() {
        let pairs = |times: &[[u64; 2]]| takes_half(times.iter().map(|pair| pair.map(Duration::from_nanos)));
        assert!(pairs(&[[640, 1280], [650, 1290]]), "Zen 4");
        assert!(!pairs(&[[640, 645], [640, 660]]), "Xeon");
        assert!(!pairs(&[[640, 9000], [8000, 645]]), "interrupted, each in another pair");
        assert!(pairs(&[[9000, 1280], [640, 9000]]));
        assert!(!pairs(&[]));
    }

    #[test]
    fn all_chains_and_lanes_are_really_computed() {
        for level in Level::present() {
            for double in [false, true] {
                let lanes = level.dispatch(FlopsPerRound { double }) / 2.0;
                assert_eq!(level.dispatch(Chains { rounds: 1, double }), 1.5 * lanes);
                assert_eq!(level.dispatch(Chains { rounds: 2, double }), 1.75 * lanes);
            }
        }
    }
}
