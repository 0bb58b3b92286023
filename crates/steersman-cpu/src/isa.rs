//! Instruction sets, found at run time; one source compiled for each.
//!
//! A kernel's inner loop is written once as a [`Body`], generic over [`Isa`]. [`Level::dispatch`]
//! runs it compiled for one instruction set:
//!
//! ```
//! use steersman_cpu::isa::{Body, Isa, Level};
//!
//! struct Sum<'a>(&'a [f32]);
//! impl Body for Sum<'_> {
//!     type Out = f32;
//!     #[inline(always)]
//!     fn run<I: Isa>(self) -> f32 {
//!         self.0.iter().sum()
//!     }
//! }
//! assert_eq!(Level::best().dispatch(Sum(&[1.0, 2.0])), 3.0);
//! ```
//!
//! Everything a body calls must be `#[inline(always)]` (closures too, by being inlined into it):
//! code that stays a function of its own is compiled for the baseline instruction set.

/// One instruction set, as a type, so that a body is compiled once for each.
pub trait Isa: Copy + Send + Sync + 'static {
    /// The level this type stands for.
    const LEVEL: Level;
    /// Whether `a * b + c` is one instruction here; without it `f32::mul_add` is a slow library call.
    const FMA: bool;
    /// Bytes in one vector register.
    const VECTOR_BYTES: usize;
    /// Whether `floor`, `ceil`, `trunc` and `round_ties_even` are single instructions here.
    const ROUND: bool;
}

/// Work that is compiled once per instruction set.
pub trait Body {
    /// What the work returns.
    type Out;
    /// The work; mark every implementation `#[inline(always)]`.
    fn run<I: Isa>(self) -> Self::Out;
}

macro_rules! isa_type {
    ($(#[$doc:meta])* $name:ident, fma: $fma:expr, bytes: $bytes:expr, round: $round:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Isa for $name {
            const LEVEL: Level = Level::$name;
            const FMA: bool = $fma;
            const VECTOR_BYTES: usize = $bytes;
            const ROUND: bool = $round;
        }
    };
}

isa_type!(
    /// What every CPU of the architecture has: SSE2 on x86-64.
    Baseline, fma: cfg!(target_arch = "aarch64"), bytes: 16, round: cfg!(target_arch = "aarch64")
);
isa_type!(
    /// AVX2 with FMA, F16C and BMI2.
    Avx2, fma: true, bytes: 32, round: true
);
isa_type!(
    /// AVX-512 F, BW, DQ and VL.
    Avx512, fma: true, bytes: 64, round: true
);

/// An instruction set as a value. Ordered: a later one is wider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// SSE2 on x86-64, NEON on AArch64: always there.
    Baseline,
    /// AVX2 + FMA.
    Avx2,
    /// AVX-512 F/BW/DQ/VL.
    Avx512,
}

impl Level {
    /// Every level, narrowest first.
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// The name people know it by.
    pub fn name(self) -> &'static str {
        match self {
            Level::Baseline if cfg!(target_arch = "aarch64") => "neon",
            Level::Baseline if cfg!(target_arch = "x86_64") => "sse2",
            Level::Baseline => "baseline",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Bytes of one of its vectors.
    pub fn vector_bytes(self) -> usize {
        match self {
            Level::Baseline => 16,
            Level::Avx2 => 32,
            Level::Avx512 => 64,
        }
    }

    /// Operations per second in f32 of an ordinary core of 2020, to rank levels by before anything was probed.
    pub fn assumed_peak(self) -> f64 {
        2.5e9 * self.vector_bytes() as f64 / if self == Level::Baseline { 2.0 } else { 1.0 }
    }

    /// Whether this CPU can run code of this level. Cached by `std`: a load and a mask.
    pub fn available(self) -> bool {
        match self {
            Level::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
                    && is_x86_feature_detected!("bmi2")
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                Level::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The widest level this CPU has.
    pub fn best() -> Level {
        Level::ALL.into_iter().rev().find(|l| l.available()).unwrap_or(Level::Baseline)
    }

    /// The name of the same kernel one level narrower, of one whose name ends with this one.
    pub fn narrower(self, name: &str) -> Option<String> {
        let level = match self {
            Level::Baseline => return None,
            Level::Avx2 => Level::Baseline,
            Level::Avx512 => Level::Avx2,
        };
        Some(format!("{}{}", name.strip_suffix(self.name())?, level.name()))
    }

    /// Why kernels of this level are not weighed, if two wider ones run the same loops: of 690 shapes of all classes the
    /// third was the quickest in 23 by more than 2%, in 8 by more than 5%, and by 11% at most, while it was chosen wrongly at up
    /// to 86% more (Xeon with AVX-512).
    pub fn outdone(self) -> Option<&'static str> {
        (self as u8 + 2 <= Level::best() as u8)
            .then_some("two wider instruction sets run the same loops here")
    }

    /// The levels this CPU has, narrowest first.
    pub fn present() -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|l| l.available())
    }

    /// Runs `body` compiled for this level.
    ///
    /// # Panics
    /// If the CPU lacks the level: kernels for it must refuse before they get here.
    #[inline]
    pub fn dispatch<B: Body>(self, body: B) -> B::Out {
        assert!(self.available(), "this CPU has no {}: a kernel for it must not be offered", self.name());
        // SAFETY: availability was asserted above.
        unsafe { self.dispatch_unchecked(body) }
    }

    /// Like [`dispatch`](Level::dispatch) for loops so short that asking again would show: the question
    /// takes a few nanoseconds.
    ///
    /// # Safety
    /// [`available`](Level::available) must have said yes.
    #[inline]
    pub unsafe fn dispatch_unchecked<B: Body>(self, body: B) -> B::Out {
        match self {
            Level::Baseline => body.run::<Baseline>(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: by the caller's contract.
            Level::Avx2 => unsafe { on_avx2(body) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: by the caller's contract.
            Level::Avx512 => unsafe { on_avx512(body) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => body.run::<Baseline>(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn on_avx2<B: Body>(body: B) -> B::Out {
    body.run::<Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn on_avx512<B: Body>(body: B) -> B::Out {
    body.run::<Avx512>()
}

/// `a * b + c`, fused where the instruction set fuses it.
#[inline(always)]
pub fn fma32<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    if I::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `a * b + c`, fused where the instruction set fuses it.
#[inline(always)]
pub fn fma64<I: Isa>(a: f64, b: f64, c: f64) -> f64 {
    if I::FMA { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Which;
    impl Body for Which {
        type Out = Level;
        #[inline(always)]
        fn run<I: Isa>(self) -> Level {
            I::LEVEL
        }
    }

    #[test]
    fn dispatch_runs_the_body_of_the_level_asked_for() {
        for level in Level::present() {
            assert_eq!(level.dispatch(Which), level);
        }
    }

    #[test]
    fn the_baseline_is_always_present() {
        assert!(Level::present().any(|l| l == Level::Baseline));
    }
}
