//! Rounding, signs, extremes and the other cheap ones.
//!
//! Where rounding is no instruction (SSE2) it is done by adding and taking away 2^23 or 2^52; `f32::floor`
//! and its kin would be library calls there.

use super::{SIGN_F32, SIGN_F64};
use crate::isa::Isa;

macro_rules! cheap {
    ($t:ident, $sign:ident, $integers_from:expr; $by_adding:ident
     $floor:ident $ceil:ident $round:ident $trunc:ident $sgn:ident $relu:ident
     $min:ident $max:ident $recip:ident $rsqrt:ident $rem:ident) => {
        /// To the nearest integer, ties to even, without a rounding instruction.
        #[inline(always)]
        fn $by_adding(x: $t) -> $t {
            let a = x.abs();
            let y = if a < $integers_from { (a + $integers_from) - $integers_from } else { a };
            $t::from_bits(y.to_bits() | (x.to_bits() & $sign))
        }

        /// The largest integer not above `x`.
        #[inline(always)]
        pub fn $floor<I: Isa>(x: $t) -> $t {
            if I::ROUND {
                return x.floor();
            }
            let y = $by_adding(x);
            (if y > x { y - 1.0 } else { y }).copysign(x)
        }

        /// The smallest integer not below `x`.
        #[inline(always)]
        pub fn $ceil<I: Isa>(x: $t) -> $t {
            if I::ROUND {
                return x.ceil();
            }
            let y = $by_adding(x);
            (if y < x { y + 1.0 } else { y }).copysign(x)
        }

        /// The nearest integer, ties to even.
        #[inline(always)]
        pub fn $round<I: Isa>(x: $t) -> $t {
            if I::ROUND { x.round_ties_even() } else { $by_adding(x) }
        }

        /// The integer part.
        #[inline(always)]
        pub fn $trunc<I: Isa>(x: $t) -> $t {
            if I::ROUND {
                return x.trunc();
            }
            let a = x.abs();
            let y = $by_adding(a);
            (if y > a { y - 1.0 } else { y }).copysign(x)
        }

        /// -1, 0 or 1; NaN for NaN.
        #[inline(always)]
        pub fn $sgn<I: Isa>(x: $t) -> $t {
            let y = if x > 0.0 { 1.0 } else { 0.0 };
            let y = if x < 0.0 { -1.0 } else { y };
            if x.is_nan() { x } else { y }
        }

        /// `x` where it is positive, else 0; NaN for NaN.
        #[inline(always)]
        pub fn $relu<I: Isa>(x: $t) -> $t {
            if x <= 0.0 { 0.0 } else { x }
        }

        /// The smaller of two; NaN if either is.
        #[inline(always)]
        pub fn $min<I: Isa>(x: $t, y: $t) -> $t {
            let m = if x < y { x } else { y };
            if x.is_nan() { x } else { m }
        }

        /// The larger of two; NaN if either is.
        #[inline(always)]
        pub fn $max<I: Isa>(x: $t, y: $t) -> $t {
            let m = if x > y { x } else { y };
            if x.is_nan() { x } else { m }
        }

        /// `1 / x`, correctly rounded.
        #[inline(always)]
        pub fn $recip<I: Isa>(x: $t) -> $t {
            1.0 / x
        }

        /// `1 / √x`.
        #[inline(always)]
        pub fn $rsqrt<I: Isa>(x: $t) -> $t {
            1.0 / x.sqrt()
        }

        /// The exact remainder of `x / y` with the sign of `x`: the language's `%`, a scalar call per
        /// element, because a quotient of any size takes a loop.
        #[inline(always)]
        pub fn $rem<I: Isa>(x: $t, y: $t) -> $t {
            x % y
        }
    };
}

cheap!(f32, SIGN_F32, 8_388_608.0; round_by_adding_f32 floor_f32 ceil_f32 round_f32 trunc_f32
       sign_f32 relu_f32 min_f32 max_f32 recip_f32 rsqrt_f32 rem_f32);
cheap!(f64, SIGN_F64, 4_503_599_627_370_496.0; round_by_adding_f64 floor_f64 ceil_f64 round_f64 trunc_f64
       sign_f64 relu_f64 min_f64 max_f64 recip_f64 rsqrt_f64 rem_f64);
