//! How elements combine, one step at a time: the part that differs between sum, product, minimum, ...
//!
//! A fold runs in lanes: a block of `W` accumulators (64 bytes) takes a step with `W` elements at once.
//! Lanes are narrow and quick; after [`Fold::ROUNDS`] steps they are added to totals, which are wide and
//! exact enough that the error stays that of one lane, whatever the number of elements.

use super::element::{Brain, Float, Half};
use super::wide::{Tail, Wide, extreme32, extreme64};
use crate::isa::{Isa, fma32, fma64};
use std::marker::PhantomData;

pub(super) trait Fold<const W: usize>: Copy + Send + Sync {
    type In: Copy;
    /// What a lane holds: `W` of them make 64 bytes.
    type Lane: Copy;
    type Total: Copy + Send;
    type Out: Copy;
    /// Steps a lane may take before it goes into its total.
    const ROUNDS: usize;
    /// Whether rows of up to eight elements have code of their own.
    const SHORT: bool = false;
    /// Whether steps may be regrouped at will: then elements go into one lane, this many at a time, and the
    /// compiler makes vectors of the plain loop. It does so for every instruction set, where it finds the
    /// vectors in blocks of lanes only for some (maximum of 4096 i32 with AVX-512: 1.8 µs in blocks).
    const PLAIN: Option<usize> = None;
    /// Whether taking an element twice does no harm.
    const TWICE: bool = false;

    /// A lane that has taken no step.
    fn lane(self) -> Self::Lane;
    /// A lane after its first step.
    fn lift(self, x: Self::In) -> Self::Lane;
    fn step<I: Isa>(self, a: Self::Lane, x: Self::In) -> Self::Lane;
    fn merge(self, a: Self::Lane, b: Self::Lane) -> Self::Lane;
    /// A total of nothing.
    fn total(self) -> Self::Total;
    fn widen(self, t: Self::Total, a: Self::Lane) -> Self::Total;
    fn join(self, a: Self::Total, b: Self::Total) -> Self::Total;
    /// The result, of `n` elements.
    fn finish(self, t: Self::Total, n: usize) -> Self::Out;
    /// Whether no further element can change the result.
    #[inline(always)]
    fn settled(self, _t: Self::Total) -> bool {
        false
    }
    /// One step of every lane of a block.
    #[inline(always)]
    fn block<I: Isa>(self, lanes: &mut [Self::Lane; W], x: [Self::In; W]) {
        for j in 0..W {
            lanes[j] = self.step::<I>(lanes[j], x[j]);
        }
    }
    /// Whether [`Fold::merge_blocks`] is in registers of its own with AVX-512, and taking an element twice does no harm.
    const IN_REGISTERS: bool = false;
    /// What the lanes of two blocks have seen.
    #[inline(always)]
    fn merge_blocks<I: Isa>(self, lanes: &mut [Self::Lane; W], others: [Self::Lane; W]) {
        for j in 0..W {
            lanes[j] = self.merge(lanes[j], others[j]);
        }
    }
    /// Adds eight rows of a block, `stride` elements apart, to its lanes, if there is code for it; whether there is.
    ///
    /// # Safety
    /// Each row must be readable for `W` elements, and the CPU have the instruction set.
    #[inline(always)]
    unsafe fn eight<I: Isa>(self, _lanes: &mut [Self::Lane; W], _x: *const Self::In, _stride: isize) -> bool {
        false
    }
    /// A few elements in one lane, if there is code for it.
    ///
    /// # Safety
    /// `x` must be readable for `n` elements, and the CPU have the instruction set.
    #[inline(always)]
    unsafe fn tail<I: Isa>(self, _x: *const Self::In, _n: usize) -> Option<Self::Lane> {
        None
    }
}

/// A sum in twice the precision: what rounding took away is kept beside it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Twofold {
    sum: f64,
    lost: f64,
}

impl Twofold {
    #[inline(always)]
    pub fn plus(self, x: f64) -> Twofold {
        let sum = self.sum + x;
        let part = sum - self.sum;
        Twofold { sum, lost: self.lost + ((self.sum - (sum - part)) + (x - part)) }
    }

    #[inline(always)]
    pub fn join(self, o: Twofold) -> Twofold {
        let t = self.plus(o.sum);
        Twofold { lost: t.lost + o.lost, ..t }
    }

    /// The sum; infinities and NaN as plain addition has them.
    #[inline(always)]
    pub fn value(self) -> f64 {
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

/// Σx, or Σx/n.
#[derive(Clone, Copy)]
pub(super) struct Sum<T> {
    pub mean: bool,
    pub of: PhantomData<T>,
}

/// √Σx².
#[derive(Clone, Copy)]
pub(super) struct Norm<T>(pub PhantomData<T>);

/// Πx.
#[derive(Clone, Copy)]
pub(super) struct Prod<T>(pub PhantomData<T>);

/// The smallest or, with `MAX`, the largest; NaN wins. A zero is +0 and a NaN the usual one, so that the
/// result does not depend on the order.
#[derive(Clone, Copy)]
pub(super) struct Extreme<T, const MAX: bool>(pub PhantomData<T>);

/// Whether any element is not zero or, with `ALL`, all are.
#[derive(Clone, Copy)]
pub(super) struct Truth<T, const ALL: bool>(pub PhantomData<T>);

macro_rules! float_sums {
    ($($t:ty, $w:literal, $lane:ty, $fma:ident, $short:literal, |$x:ident| $get:expr, $total:ty, $zero:expr,
       |$tot:ident, $a:ident| $widen:expr, |$l:ident, $r:ident| $join:expr, |$v:ident| $value:expr;)+) => {$(
        impl Fold<$w> for Sum<$t> {
            type In = $t;
            type Lane = $lane;
            type Total = $total;
            type Out = $t;
            const ROUNDS: usize = 16;
            const SHORT: bool = $short;
            #[inline(always)]
            fn lane(self) -> $lane { 0.0 }
            #[inline(always)]
            fn lift(self, $x: $t) -> $lane { $get }
            #[inline(always)]
            fn step<I: Isa>(self, a: $lane, $x: $t) -> $lane { a + $get }
            #[inline(always)]
            fn merge(self, a: $lane, b: $lane) -> $lane { a + b }
            #[inline(always)]
            fn total(self) -> $total { $zero }
            #[inline(always)]
            fn widen(self, $tot: $total, $a: $lane) -> $total { $widen }
            #[inline(always)]
            fn join(self, $l: $total, $r: $total) -> $total { $join }
            #[inline(always)]
            fn finish(self, $v: $total, n: usize) -> $t {
                let sum: f64 = $value;
                <$t>::from_wide(if self.mean { sum / n as f64 } else { sum })
            }
            #[inline(always)]
            unsafe fn tail<I: Isa>(self, x: *const $t, n: usize) -> Option<$lane> {
                // SAFETY: the caller's promise, passed on.
                unsafe { <$t as Wide>::tail::<I>(Tail::Sum, x, n) }
            }
        }
        impl Fold<$w> for Norm<$t> {
            type In = $t;
            type Lane = $lane;
            type Total = $total;
            type Out = $t;
            const ROUNDS: usize = 16;
            const SHORT: bool = $short;
            #[inline(always)]
            fn lane(self) -> $lane { 0.0 }
            #[inline(always)]
            fn lift(self, $x: $t) -> $lane { let v = $get; v * v }
            #[inline(always)]
            fn step<I: Isa>(self, a: $lane, $x: $t) -> $lane { let v = $get; $fma::<I>(v, v, a) }
            #[inline(always)]
            fn merge(self, a: $lane, b: $lane) -> $lane { a + b }
            #[inline(always)]
            fn total(self) -> $total { $zero }
            #[inline(always)]
            fn widen(self, $tot: $total, $a: $lane) -> $total { $widen }
            #[inline(always)]
            fn join(self, $l: $total, $r: $total) -> $total { $join }
            #[inline(always)]
            fn finish(self, $v: $total, _n: usize) -> $t {
                let sum: f64 = $value;
                <$t>::from_wide(sum.sqrt())
            }
            #[inline(always)]
            unsafe fn tail<I: Isa>(self, x: *const $t, n: usize) -> Option<$lane> {
                // SAFETY: the caller's promise, passed on.
                unsafe { <$t as Wide>::tail::<I>(Tail::Squares, x, n) }
            }
            #[inline(always)]
            unsafe fn eight<I: Isa>(self, lanes: &mut [$lane; $w], x: *const $t, stride: isize) -> bool {
                // SAFETY: the caller's promise, passed on.
                unsafe { <$t as Wide>::squares::<I>(lanes.as_mut_ptr(), x, stride) }
            }
        }
    )+};
}

float_sums! {
    f32, 16, f32, fma32, true, |x| x, f64, 0.0, |t, a| t + a as f64, |l, r| l + r, |v| v;
    Half, 16, f32, fma32, false, |x| x.get(), f64, 0.0, |t, a| t + a as f64, |l, r| l + r, |v| v;
    Brain, 16, f32, fma32, false, |x| x.get(), f64, 0.0, |t, a| t + a as f64, |l, r| l + r, |v| v;
    f64, 8, f64, fma64, true, |x| x, Twofold, Twofold::default(), |t, a| t.plus(a), |l, r| l.join(r), |v| v.value();
}

macro_rules! float_products {
    ($($t:ty),+) => {$(
        // Lanes in f64 also for narrow types: a part of the product may leave their range where the
        // whole does not.
        impl Fold<8> for Prod<$t> {
            type In = $t;
            type Lane = f64;
            type Total = f64;
            type Out = $t;
            const ROUNDS: usize = 1 << 20;
            #[inline(always)]
            fn lane(self) -> f64 { 1.0 }
            #[inline(always)]
            fn lift(self, x: $t) -> f64 { x.wide() }
            #[inline(always)]
            fn step<I: Isa>(self, a: f64, x: $t) -> f64 { a * x.wide() }
            #[inline(always)]
            fn merge(self, a: f64, b: f64) -> f64 { a * b }
            #[inline(always)]
            fn total(self) -> f64 { 1.0 }
            #[inline(always)]
            fn widen(self, t: f64, a: f64) -> f64 { t * a }
            #[inline(always)]
            fn join(self, a: f64, b: f64) -> f64 { a * b }
            #[inline(always)]
            fn finish(self, t: f64, _n: usize) -> $t { <$t>::from_wide(t) }
        }
    )+};
}

float_products!(f32, f64, Half, Brain);

macro_rules! integer_folds {
    ($($name:ident, $t:ty, $w:literal, $lane:ty, $rounds:expr, $plain:expr, $one:expr, $op:ident;)+) => {$(
        impl Fold<$w> for $name<$t> {
            type In = $t;
            type Lane = $lane;
            type Total = i64;
            type Out = i64;
            const ROUNDS: usize = $rounds;
            const PLAIN: Option<usize> = $plain;
            #[inline(always)]
            fn lane(self) -> $lane { $one }
            #[inline(always)]
            fn lift(self, x: $t) -> $lane { x as $lane }
            #[inline(always)]
            fn step<I: Isa>(self, a: $lane, x: $t) -> $lane { a.$op(x as $lane) }
            #[inline(always)]
            fn merge(self, a: $lane, b: $lane) -> $lane { a.$op(b) }
            #[inline(always)]
            fn total(self) -> i64 { $one }
            #[inline(always)]
            fn widen(self, t: i64, a: $lane) -> i64 { t.$op(a as i64) }
            #[inline(always)]
            fn join(self, a: i64, b: i64) -> i64 { a.$op(b) }
            #[inline(always)]
            fn finish(self, t: i64, _n: usize) -> i64 { t }
        }
    )+};
}

integer_folds! {
    Sum, i32, 8, i64, 1 << 20, Some(1 << 20), 0, wrapping_add;
    Sum, u32, 8, i64, 1 << 20, Some(1 << 20), 0, wrapping_add;
    Sum, i64, 8, i64, 1 << 20, Some(1 << 20), 0, wrapping_add;
    // Sixteen-bit lanes would be quicker still but hold only 257 bytes' sum.
    Sum, u8, 16, u32, 1 << 16, Some(1 << 20), 0, wrapping_add;
    Prod, i32, 8, i64, 1 << 20, None, 1, wrapping_mul;
    Prod, u32, 8, i64, 1 << 20, None, 1, wrapping_mul;
    Prod, i64, 8, i64, 1 << 20, None, 1, wrapping_mul;
    Prod, u8, 8, i64, 1 << 20, None, 1, wrapping_mul;
}

macro_rules! float_extremes {
    ($($t:ty, $w:literal, $lane:ident, $short:literal, $wide:ident, |$x:ident| $get:expr;)+) => {$(
        impl<const MAX: bool> Fold<$w> for Extreme<$t, MAX> {
            type In = $t;
            type Lane = $lane;
            type Total = $lane;
            type Out = $t;
            const ROUNDS: usize = 1 << 20;
            const SHORT: bool = $short;
            #[inline(always)]
            fn lane(self) -> $lane { if MAX { $lane::NEG_INFINITY } else { $lane::INFINITY } }
            #[inline(always)]
            fn lift(self, $x: $t) -> $lane { $get }
            #[inline(always)]
            fn step<I: Isa>(self, a: $lane, $x: $t) -> $lane { self.merge(a, $get) }
            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn merge(self, a: $lane, b: $lane) -> $lane {
                let better = if MAX { b > a } else { b < a };
                if better | (b != b) { b } else { a }
            }
            #[inline(always)]
            fn total(self) -> $lane { <Self as Fold<$w>>::lane(self) }
            #[inline(always)]
            fn widen(self, t: $lane, a: $lane) -> $lane { self.merge(t, a) }
            #[inline(always)]
            fn join(self, a: $lane, b: $lane) -> $lane { self.merge(a, b) }
            #[inline(always)]
            fn finish(self, t: $lane, _n: usize) -> $t {
                <$t>::from_wide(if t.is_nan() { f64::NAN } else { t as f64 + 0.0 })
            }
            #[inline(always)]
            fn block<I: Isa>(self, lanes: &mut [$lane; $w], x: [$t; $w]) {
                $wide::<I, MAX>(lanes, x.map(|$x| $get));
            }
            const IN_REGISTERS: bool = true;
            #[inline(always)]
            fn merge_blocks<I: Isa>(self, lanes: &mut [$lane; $w], others: [$lane; $w]) {
                $wide::<I, MAX>(lanes, others);
            }
            #[inline(always)]
            unsafe fn tail<I: Isa>(self, x: *const $t, n: usize) -> Option<$lane> {
                // SAFETY: the caller's promise, passed on.
                unsafe { <$t as Wide>::tail::<I>(if MAX { Tail::Max } else { Tail::Min }, x, n) }
            }
        }
    )+};
}

float_extremes! {
    f32, 16, f32, true, extreme32, |x| x;
    f64, 8, f64, true, extreme64, |x| x;
    Half, 16, f32, false, extreme32, |x| x.get();
    Brain, 16, f32, false, extreme32, |x| x.get();
}

macro_rules! integer_extremes {
    ($($t:ident, $w:literal;)+) => {$(
        impl<const MAX: bool> Fold<$w> for Extreme<$t, MAX> {
            type In = $t;
            type Lane = $t;
            type Total = $t;
            type Out = $t;
            const ROUNDS: usize = 1 << 20;
            const PLAIN: Option<usize> = Some(1 << 20);
            const TWICE: bool = true;
            #[inline(always)]
            fn lane(self) -> $t { if MAX { $t::MIN } else { $t::MAX } }
            #[inline(always)]
            fn lift(self, x: $t) -> $t { x }
            #[inline(always)]
            fn step<I: Isa>(self, a: $t, x: $t) -> $t { self.merge(a, x) }
            #[inline(always)]
            fn merge(self, a: $t, b: $t) -> $t { if MAX { a.max(b) } else { a.min(b) } }
            #[inline(always)]
            fn total(self) -> $t { <Self as Fold<$w>>::lane(self) }
            #[inline(always)]
            fn widen(self, t: $t, a: $t) -> $t { self.merge(t, a) }
            #[inline(always)]
            fn join(self, a: $t, b: $t) -> $t { self.merge(a, b) }
            #[inline(always)]
            fn finish(self, t: $t, _n: usize) -> $t { t }
        }
    )+};
}

integer_extremes! {
    i32, 16;
    u32, 16;
    i64, 8;
    u8, 64;
}

macro_rules! truths {
    ($($t:ident($raw:ty), $w:literal, $lane:ident, $shift:literal;)+) => {$(
        /// Elements of one width as bits.
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $t($raw);

        // A lane gathers what settles the matter: set bits for any, zeros for all.
        impl<const ALL: bool> Fold<$w> for Truth<$t, ALL> {
            type In = $t;
            type Lane = $lane;
            type Total = $lane;
            type Out = bool;
            const ROUNDS: usize = 16;
            const PLAIN: Option<usize> = Some(1024);
            const TWICE: bool = true;
            #[inline(always)]
            fn lane(self) -> $lane { 0 }
            #[inline(always)]
            fn lift(self, x: $t) -> $lane {
                let bits = x.0 << $shift;
                if ALL { (bits == 0) as $lane } else { bits }
            }
            #[inline(always)]
            fn step<I: Isa>(self, a: $lane, x: $t) -> $lane { a | self.lift(x) }
            #[inline(always)]
            fn merge(self, a: $lane, b: $lane) -> $lane { a | b }
            #[inline(always)]
            fn total(self) -> $lane { 0 }
            #[inline(always)]
            fn widen(self, t: $lane, a: $lane) -> $lane { t | a }
            #[inline(always)]
            fn join(self, a: $lane, b: $lane) -> $lane { a | b }
            #[inline(always)]
            fn finish(self, t: $lane, _n: usize) -> bool { (t == 0) == ALL }
            #[inline(always)]
            fn settled(self, t: $lane) -> bool { t != 0 }
        }
    )+};
}

truths! {
    Float64(u64), 8, u64, 1;
    Float32(u32), 16, u32, 1;
    Float16(u16), 32, u16, 1;
    Int64(u64), 8, u64, 0;
    Int32(u32), 16, u32, 0;
    Byte(u8), 64, u8, 0;
}
