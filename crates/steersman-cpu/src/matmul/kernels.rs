//! The micro-kernels of each instruction set, as tables the loops pick from.

use super::few::{Few, few_lines};
use super::gemv::{Lines, axpy_lines, dot_lines};
use super::pack::{Panel, pack_panel};
use super::tile::{Tile, tile};
use super::vector::{Lanes, Vector};
use crate::isa::Level;

/// A tile of fixed size.
pub(super) type TileFn<T> = unsafe fn(&Tile<T>);

/// Variants of one tile size, indexed by [`variant`].
type Variants<T> = [TileFn<T>; 4];

/// Which variant of a tile: is `a` contiguous down its columns, is the last vector partial.
#[inline(always)]
pub(super) fn variant(unit: bool, masked: bool) -> usize {
    2 * unit as usize + masked as usize
}

/// What one instruction set offers for one element type.
pub struct Kernels<T: 'static> {
    /// Elements in a vector register.
    pub(super) lanes: usize,
    /// Kernels with vectors of half the size, for the last columns, where half as wide costs half as
    /// much: 24³ f32 on Zen 4 took 355 ns with a masked whole vector. Those of AVX2 itself: compiled for AVX-512 with its
    /// registers and up to 16 rows, 12×201×8 f32 took 544 ns on a Xeon instead of 470, 24×201×8 1070 instead of 925.
    pub(super) half: Option<&'static Kernels<T>>,
    /// `tiles[nv - 1][mr - 1]`: tiles of `nv` vectors and `mr` rows.
    pub(super) tiles: &'static [&'static [Variants<T>]],
    /// `ahead[mr - 1]`: tiles of [`Kernels::ahead_vectors`] that fetch the next columns of `b`.
    pub(super) ahead: &'static [TileFn<T>],
    /// Vectors across in the tiles of [`Kernels::ahead`].
    pub(super) ahead_vectors: usize,
    /// Vectors across in the tile of the packed product.
    pub(super) packed_vectors: usize,
    /// Copies one panel.
    pub(super) pack: unsafe fn(&Panel<T>),
    /// Dot products of contiguous lines with a few others.
    pub(super) few: unsafe fn(&Few<T>),
    /// Dot products of contiguous lines with a vector.
    pub(super) dots: unsafe fn(&Lines<T>),
    /// Sum of contiguous lines, each times an element of a vector.
    pub(super) axpys: unsafe fn(&Lines<T>),
}

impl<T> Kernels<T> {
    /// Most rows in a tile of `nv` vectors.
    #[inline(always)]
    pub(super) fn max_rows(&self, nv: usize) -> usize {
        self.tiles[nv - 1].len()
    }

    /// The tile of `mr` rows and `nv` vectors.
    #[inline(always)]
    pub(super) fn tile(&self, mr: usize, nv: usize, unit: bool, masked: bool) -> TileFn<T> {
        self.tiles[nv - 1][mr - 1][variant(unit, masked)]
    }
}

/// The tables of one element type.
pub(super) trait Tables: Sized + 'static {
    /// The table of `level`, or of the baseline where the architecture has no such level.
    fn table(level: Level) -> &'static Kernels<Self>;
}

/// Functions compiled with one set of target features; `wide` is true where there are 32 registers.
macro_rules! level_functions {
    ($module:ident, $wide:literal $(, $features:literal)?) => {
        mod $module {
            use super::*;

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn micro<
                V: Vector, const MR: usize, const NV: usize, const UNIT: bool, const MASKED: bool, const AHEAD: bool,
            >(t: &Tile<V::T>) {
                // SAFETY: the caller's promise is the same.
                unsafe { tile::<V, MR, NV, UNIT, MASKED, AHEAD>(t) }
            }

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn pack<V: Vector>(p: &Panel<V::T>) {
                // SAFETY: the caller's promise is the same.
                unsafe { pack_panel::<V>(p) }
            }

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn few<V: Vector>(t: &Few<V::T>) {
                // SAFETY: the caller's promise is the same.
                unsafe { few_lines::<V, $wide>(t) }
            }

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn dots<V: Vector>(l: &Lines<V::T>) {
                // SAFETY: the caller's promise is the same.
                unsafe { dot_lines::<V>(l) }
            }

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn axpys<V: Vector>(l: &Lines<V::T>) {
                // SAFETY: the caller's promise is the same.
                unsafe { axpy_lines::<V>(l) }
            }
        }
    };
}
level_functions!(baseline, false);
#[cfg(target_arch = "x86_64")]
level_functions!(avx2, false, "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt");
#[cfg(target_arch = "x86_64")]
level_functions!(avx512, true, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt");

macro_rules! table {
    ($module:ident, $v:ty, half $half:expr, $packed:expr, ahead $av:literal: [$($ar:literal)*], $($nv:literal: [$($mr:literal)*]),*) => {
        Kernels {
            lanes: <$v as Vector>::LANES,
            half: $half,
            packed_vectors: $packed,
            ahead: &[$($module::micro::<$v, $ar, $av, false, false, true>),*],
            ahead_vectors: $av,
            tiles: &[$(&[$([
                $module::micro::<$v, $mr, $nv, false, false, false>,
                $module::micro::<$v, $mr, $nv, false, true, false>,
                $module::micro::<$v, $mr, $nv, true, false, false>,
                $module::micro::<$v, $mr, $nv, true, true, false>,
            ]),*]),*],
            pack: $module::pack::<$v>,
            few: $module::few::<$v>,
            dots: $module::dots::<$v>,
            axpys: $module::axpys::<$v>,
        }
    };
}

macro_rules! tables {
    ($t:ty, $baseline:ty, $avx2:ident, $avx512:ident) => {
        impl Tables for $t {
            #[inline]
            fn table(level: Level) -> &'static Kernels<$t> {
                // Sixteen registers hold 12 sums, 2 or 3 vectors of b and one of a.
                static BASELINE: Kernels<$t> = table!(
                    baseline, $baseline, half None, 2, ahead 2: [1 2 3 4 5 6],
                    1: [1 2 3 4 5 6 7 8 9 10 11 12], 2: [1 2 3 4 5 6], 3: [1 2 3 4]
                );
                #[cfg(target_arch = "x86_64")]
                {
                    use std::arch::x86_64::{$avx2, $avx512};
                    // Of four rows of three vectors one sum goes through memory: 4×100×24 f32 took 450 ns on a Zen 4 so, 250 to 300 in
                    // two tiles of two rows; 64×64×24 4.1 µs and 1.9.
                    static AVX2: Kernels<$t> = table!(
                        avx2, $avx2, half None, 2, ahead 2: [1 2 3 4 5 6],
                        1: [1 2 3 4 5 6 7 8 9 10 11 12], 2: [1 2 3 4 5 6], 3: [1 2 3]
                    );
                    // Thirty-two registers: up to 28 sums.
                    static AVX512: Kernels<$t> = table!(
                        avx512, $avx512, half Some(&AVX2), 2, ahead 3: [1 2 3 4 5 6 7 8 9],
                        1: [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16],
                        2: [1 2 3 4 5 6 7 8 9 10 11 12 13 14],
                        3: [1 2 3 4 5 6 7 8 9],
                        4: [1 2 3 4 5 6]
                    );
                    match level {
                        Level::Baseline => &BASELINE,
                        Level::Avx2 => &AVX2,
                        Level::Avx512 => &AVX512,
                    }
                }
                #[cfg(not(target_arch = "x86_64"))]
                {
                    let _only_one = level;
                    &BASELINE
                }
            }
        }
    };
}
tables!(f32, Lanes<f32, 4>, __m256, __m512);
tables!(f64, Lanes<f64, 2>, __m256d, __m512d);
