//! Transcendental functions that vectorise: branch-free scalar bodies, one source for every instruction set.
//!
//! Each function takes one element and is `#[inline(always)]`; called in a loop inside a
//! [`Body`](crate::isa::Body) it becomes vector code of that body's instruction set:
//!
//! ```
//! use steersman_cpu::isa::{Body, Isa, Level};
//! use steersman_cpu::math::exp_f32;
//!
//! struct Exp<'a>(&'a mut [f32]);
//! impl Body for Exp<'_> {
//!     type Out = ();
//!     #[inline(always)]
//!     fn run<I: Isa>(self) {
//!         for x in self.0 {
//!             *x = exp_f32::<I>(*x);
//!         }
//!     }
//! }
//! let mut x = [0.0, f32::NEG_INFINITY, f32::INFINITY];
//! Level::best().dispatch(Exp(&mut x));
//! assert_eq!(x, [1.0, 0.0, f32::INFINITY]);
//! ```
//!
//! Names are `function_dtype`. Errors are stated in [`bounds`], in units in the last place, and hold at every
//! level. NaN gives NaN, infinities and signed zeros follow C99's annex F.
//!
//! Two groups need a word:
//! - `sin`, `cos`, `tan` are fast up to a limit and give NaN beyond it; see [`trig`] for how a caller covers
//!   the rest with one pass per chunk.
//! - `rem` is the scalar `%` of the language: exact for every quotient, not vectorised.
//!
//! How they stay branch-free: rounding to an integer adds and subtracts a magic constant, so the integer can
//! be read from the sum's low bits (no float-to-int conversion, no library `floor` on SSE2, no undefined case
//! for NaN); every range choice is a select between two computed values; integer arithmetic wraps, so
//! overflow checks of a debug build do not break the loop.

pub mod bounds;
mod erf;
mod exp;
mod hyperbolic;
mod inverse;
mod log;
mod pow;
mod product;
mod round;
pub mod trig;

pub use erf::*;
pub use exp::*;
pub use hyperbolic::*;
pub use inverse::*;
pub use log::*;
pub use pow::*;
pub use round::*;
pub use trig::{cos_f32, cos_f64, sin_f32, sin_f64, tan_f32, tan_f64};
pub(crate) use trig::{sin_half_turn_f32, sin_half_turn_f64};

/// `horner!(fma::<I>, x; c0, c1, ..)` is `c0 + x (c1 + x (..))`, written out so that no inner loop is left
/// for the vectoriser to trip over.
macro_rules! horner {
    ($fma:ident::<$isa:ident>, $x:expr; $c:expr $(,)?) => { $c };
    ($fma:ident::<$isa:ident>, $x:expr; $c:expr, $($rest:expr),+ $(,)?) => {
        $fma::<$isa>($x, horner!($fma::<$isa>, $x; $($rest),+), $c)
    };
}
use horner;

/// Adding this to a small `f32` rounds it to an integer (ties to even) kept in the sum's low bits.
const ROUNDER_F32: f32 = 12_582_912.0;
/// Adding this to a small `f64` rounds it to an integer (ties to even) kept in the sum's low bits.
const ROUNDER_F64: f64 = 6_755_399_441_055_744.0;

const SIGN_F32: u32 = 1 << 31;
const SIGN_F64: u64 = 1 << 63;

/// `2^k` for `k` in -126..=127 (any other `k` gives some float, never a trap).
#[inline(always)]
fn exp2_int_f32(k: i32) -> f32 {
    f32::from_bits((k.wrapping_add(127) as u32) << 23)
}

/// `2^k` for `k` in -1022..=1023 (any other `k` gives some float, never a trap).
#[inline(always)]
fn exp2_int_f64(k: i64) -> f64 {
    f64::from_bits((k.wrapping_add(1023) as u64) << 52)
}

/// `magnitude` with its sign flipped where `sign` is negative.
#[inline(always)]
fn flip_sign_f32(magnitude: f32, sign: f32) -> f32 {
    f32::from_bits(magnitude.to_bits() ^ (sign.to_bits() & SIGN_F32))
}

/// `magnitude` with its sign flipped where `sign` is negative.
#[inline(always)]
fn flip_sign_f64(magnitude: f64, sign: f64) -> f64 {
    f64::from_bits(magnitude.to_bits() ^ (sign.to_bits() & SIGN_F64))
}
