//! Loops that only fused groups have: casts, half precision in and out of tiles, positions.

use super::lower::half;
use crate::isa::{Body, Isa, Level};
use crate::map::{Half, Rows, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::random::Generate;
use std::marker::PhantomData;
use steersman_core::{DType, rounded_to_odd};

/// One element to another.
trait Convert: 'static {
    type From: Copy;
    type To: Copy;
    fn apply(x: Self::From) -> Self::To;
}

struct Each<C> {
    from: *const u8,
    to: *mut u8,
    n: usize,
    how: PhantomData<C>,
}

impl<C: Convert> Body for Each<C> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let (from, to) = (self.from.cast::<C::From>(), self.to.cast::<C::To>());
        for i in 0..self.n {
            // SAFETY: by the contract of rows.
            unsafe { to.add(i).write_unaligned(C::apply(from.add(i).read_unaligned())) }
        }
    }
}

unsafe fn row<I: Isa, C: Convert>(a: *const u8, _: *const u8, _: *const u8, out: *mut u8, n: usize) {
    // SAFETY: by the contract of rows.
    unsafe { I::LEVEL.dispatch_unchecked(Each::<C> { from: a, to: out, n, how: PhantomData }) }
}

macro_rules! on_level {
    ($level:expr, $f:ident::<$($c:ty),+>) => {
        match $level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => $f::<crate::isa::Avx2, $($c),+>,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => $f::<crate::isa::Avx512, $($c),+>,
            _ => $f::<crate::isa::Baseline, $($c),+>,
        }
    };
}

fn rows<C: Convert>(level: Level) -> Rows {
    Rows { each: on_level!(level, row::<C>), second_same: None, first_same: None, cheap: true }
}

macro_rules! converts {
    ($($name:ident: $from:ty => $to:ty, |$x:ident| $e:expr;)+) => {$(
        struct $name;
        impl Convert for $name {
            type From = $from;
            type To = $to;
            #[inline(always)]
            fn apply($x: $from) -> $to { $e }
        }
    )+};
}

converts! {
    WidenF16: u16 => f32, |x| f16_to_f32(x);
    WidenBF16: u16 => f32, |x| bf16_to_f32(x);
    NarrowF16: f32 => u16, |x| f32_to_f16(x);
    NarrowBF16: f32 => u16, |x| f32_to_bf16(x);
    RoundF16: f32 => f32, |x| f16_to_f32(f32_to_f16(x));
    RoundBF16: f32 => f32, |x| bf16_to_f32(f32_to_bf16(x));
}

/// Half precision to `f32`.
pub fn widen(level: Level, half: Half) -> Rows {
    match half {
        Half::F16 => rows::<WidenF16>(level),
        Half::BF16 => rows::<WidenBF16>(level),
    }
}

/// `f32` to half precision.
pub fn narrow(level: Level, half: Half) -> Rows {
    match half {
        Half::F16 => rows::<NarrowF16>(level),
        Half::BF16 => rows::<NarrowBF16>(level),
    }
}

/// `f32` to the nearest number of half precision, as `f32`.
pub fn round(level: Level, half: Half) -> Rows {
    match half {
        Half::F16 => rows::<RoundF16>(level),
        Half::BF16 => rows::<RoundBF16>(level),
    }
}

/// Elements that become others by the language's own conversion.
struct As<A, B>(PhantomData<(A, B)>);
/// Elements by way of `f64`, rounded once to half precision.
struct ToF16<A>(PhantomData<A>);
struct ToBF16<A>(PhantomData<A>);
/// Whether elements are not zero.
struct ToBool<A>(PhantomData<A>);

macro_rules! cast_pairs {
    ($($a:ident: $($b:ident)+;)+) => {$($(
        impl Convert for As<$a, $b> {
            type From = $a;
            type To = $b;
            #[inline(always)]
            fn apply(x: $a) -> $b { x as $b }
        }
    )+)+};
}
cast_pairs! {
    f32: f64 i32 u32 i64 u8;
    f64: f32 i32 u32 i64 u8;
    i32: f32 f64 u32 i64 u8;
    u32: f32 f64 i32 i64 u8;
    i64: f32 f64 i32 u32 u8;
    u8: f32 f64 i32 u32 i64;
}

macro_rules! cast_from {
    ($($a:ident)+) => {$(
        impl Convert for ToBool<$a> {
            type From = $a;
            type To = u8;
            #[inline(always)]
            fn apply(x: $a) -> u8 { (x != (0 as $a)) as u8 }
        }
        impl Convert for ToF16<$a> {
            type From = $a;
            type To = f32;
            #[inline(always)]
            fn apply(x: $a) -> f32 { f16_to_f32(f32_to_f16(rounded_to_odd(x as f64))) }
        }
        impl Convert for ToBF16<$a> {
            type From = $a;
            type To = f32;
            #[inline(always)]
            fn apply(x: $a) -> f32 { bf16_to_f32(f32_to_bf16(rounded_to_odd(x as f64))) }
        }
    )+};
}
cast_from!(f32 f64 i32 u32 i64 u8);

/// The cast from one type to another; `None` where elements stay as they are in a tile.
pub fn cast(level: Level, from: DType, to: DType) -> Option<Rows> {
    use DType::{BF16, Bool, F16, F32, F64, I32, I64, U8, U32};
    // Numbers of half precision are `f32` in tiles; `bool` is a byte of 0 or 1.
    let tile = |d: DType| match d {
        F16 | BF16 => F32,
        Bool => U8,
        d => d,
    };
    macro_rules! from {
        ($target:ident) => {
            match tile(from) {
                F64 => rows::<$target<f64>>(level),
                I32 => rows::<$target<i32>>(level),
                U32 => rows::<$target<u32>>(level),
                I64 => rows::<$target<i64>>(level),
                U8 => rows::<$target<u8>>(level),
                _ => rows::<$target<f32>>(level),
            }
        };
    }
    if from == to || (tile(from) == tile(to) && half(to).is_none() && to != Bool) {
        return None;
    }
    Some(match (tile(from), to) {
        (_, Bool) => from!(ToBool),
        (F32, F16) => round(level, Half::F16),
        (F32, BF16) => round(level, Half::BF16),
        (_, F16) => from!(ToF16),
        (_, BF16) => from!(ToBF16),
        (F32, F64) => rows::<As<f32, f64>>(level),
        (F32, I32) => rows::<As<f32, i32>>(level),
        (F32, U32) => rows::<As<f32, u32>>(level),
        (F32, I64) => rows::<As<f32, i64>>(level),
        (F32, _) => rows::<As<f32, u8>>(level),
        (F64, F32) => rows::<As<f64, f32>>(level),
        (F64, I32) => rows::<As<f64, i32>>(level),
        (F64, U32) => rows::<As<f64, u32>>(level),
        (F64, I64) => rows::<As<f64, i64>>(level),
        (F64, _) => rows::<As<f64, u8>>(level),
        (I32, F32) => rows::<As<i32, f32>>(level),
        (I32, F64) => rows::<As<i32, f64>>(level),
        (I32, U32) => rows::<As<i32, u32>>(level),
        (I32, I64) => rows::<As<i32, i64>>(level),
        (I32, _) => rows::<As<i32, u8>>(level),
        (U32, F32) => rows::<As<u32, f32>>(level),
        (U32, F64) => rows::<As<u32, f64>>(level),
        (U32, I32) => rows::<As<u32, i32>>(level),
        (U32, I64) => rows::<As<u32, i64>>(level),
        (U32, _) => rows::<As<u32, u8>>(level),
        (I64, F32) => rows::<As<i64, f32>>(level),
        (I64, F64) => rows::<As<i64, f64>>(level),
        (I64, I32) => rows::<As<i64, i32>>(level),
        (I64, U32) => rows::<As<i64, u32>>(level),
        (I64, _) => rows::<As<i64, u8>>(level),
        (_, F32) => rows::<As<u8, f32>>(level),
        (_, F64) => rows::<As<u8, f64>>(level),
        (_, I32) => rows::<As<u8, i32>>(level),
        (_, U32) => rows::<As<u8, u32>>(level),
        (_, _) => rows::<As<u8, i64>>(level),
    })
}

struct Count<T> {
    start: u64,
    out: *mut u8,
    n: usize,
    of: PhantomData<T>,
}

/// A type that positions come in.
trait Position: Copy + 'static {
    fn at(i: u64) -> Self;
}
macro_rules! positions {
    ($($t:ty, |$i:ident| $e:expr;)+) => {$(
        impl Position for $t {
            #[inline(always)]
            fn at($i: u64) -> $t { $e }
        }
    )+};
}

/// Half precision, as `f32`.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct InF16(f32);
#[derive(Clone, Copy)]
#[repr(transparent)]
struct InBF16(f32);

positions! {
    f32, |i| i as i64 as f32;
    f64, |i| i as i64 as f64;
    i32, |i| i as i32;
    u32, |i| i as u32;
    i64, |i| i as i64;
    InF16, |i| InF16(f16_to_f32(f32_to_f16(rounded_to_odd(i as f64))));
    InBF16, |i| InBF16(bf16_to_f32(f32_to_bf16(rounded_to_odd(i as f64))));
}

impl<T: Position> Body for Count<T> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let out = self.out.cast::<T>();
        for i in 0..self.n {
            // SAFETY: `out` is good for `n` elements, by the contract of generators.
            unsafe { out.add(i).write_unaligned(T::at(self.start + i as u64)) }
        }
    }
}

unsafe fn count<I: Isa, T: Position>(_: u64, start: u64, out: *mut u8, n: usize) {
    // SAFETY: by the contract of generators.
    unsafe { I::LEVEL.dispatch_unchecked(Count::<T> { start, out, n, of: PhantomData }) }
}

/// Positions as elements of a type.
pub fn index(level: Level, dtype: DType) -> Generate {
    match dtype {
        DType::F32 => on_level!(level, count::<f32>),
        DType::F64 => on_level!(level, count::<f64>),
        DType::F16 => on_level!(level, count::<InF16>),
        DType::BF16 => on_level!(level, count::<InBF16>),
        DType::I32 => on_level!(level, count::<i32>),
        DType::U32 => on_level!(level, count::<u32>),
        _ => on_level!(level, count::<i64>),
    }
}
