//! Random numbers as a pure function of a key and a position: results do not depend on who computes them,
//! in what order, or on how many threads.
//!
//! ```
//! use steersman_cpu::isa::Level;
//! use steersman_cpu::random::{normal_f32, uniform_f32};
//!
//! let mut all = [0f32; 100];
//! uniform_f32(Level::best(), 7, 0, &mut all);
//! let mut some = [0f32; 10];
//! uniform_f32(Level::best(), 7, 40, &mut some); // the numbers at 40 to 49
//! assert_eq!(some, all[40..50]);
//! normal_f32(Level::best(), 7, 0, &mut all);
//! assert!(all.iter().all(|z| z.abs() < 6.7));
//! ```
//!
//! The generator is Philox 4x32 with ten rounds: a block of four words for each 64-bit counter. Sixteen
//! blocks make a group whose words lie so that vectors are stored as they come: element `i` of f32 is word
//! `i / 16 % 4` of block `i / 64 * 16 + i % 16`; f64 takes two words, so that 32 elements make a group.
//!
//! - Uniform numbers are multiples of 2⁻²⁴ (f32) or 2⁻⁵³ (f64) in [0, 1), the same bits everywhere.
//! - Normal numbers come in pairs by Box and Muller's transform, from words 2k and 2k + 1 of a block (f32), or
//!   all four (f64): r cos θ and r sin θ, within 6.67 (f32) or 8.49 (f64) of zero. The uniform number behind r
//!   is of the type itself; from there on the error is below 4 (f32) or 8 (f64) times ε max(1, |z|), ε the
//!   type's unit. Instruction sets with and without FMA may differ by as much.

mod normal;
mod philox;

pub use philox::block;

use crate::isa::{Body, Isa, Level};
use normal::{pair_f32, pair_f64};
use philox::Lanes;

/// Blocks that are computed together.
const LANES: usize = 16;
/// Groups done at a time: words and results of one round stay in the nearest cache.
const GROUPS: usize = 8;
const BLOCKS: usize = LANES * GROUPS;

/// What is made of words.
trait Kind: 'static {
    type T: Copy;
    /// Elements of a group.
    const GROUP: usize;
    /// Turns the words of `blocks` blocks into elements, those of a group's first run in the first row.
    fn make<I: Isa>(words: &Lanes<BLOCKS>, blocks: usize, rows: &mut [[Self::T; BLOCKS]; 4]);
}

struct Uniform32;
struct Uniform64;
struct Normal32;
struct Normal64;

impl Kind for Uniform32 {
    type T = f32;
    const GROUP: usize = 64;
    #[inline(always)]
    fn make<I: Isa>(words: &Lanes<BLOCKS>, blocks: usize, rows: &mut [[f32; BLOCKS]; 4]) {
        for (row, words) in rows.iter_mut().zip(&words.0) {
            for (x, &w) in row[..blocks].iter_mut().zip(words) {
                *x = (w >> 8) as i32 as f32 * (1.0 / 16_777_216.0);
            }
        }
    }
}

/// A number in [0, 1) of 53 bits.
#[inline(always)]
fn unit_f64(high: u32, low: u32) -> f64 {
    // Both parts convert exactly, and so does their sum: 26 and 27 bits.
    ((high >> 6) as i32 as f64 * 134_217_728.0 + (low >> 5) as i32 as f64) * (1.0 / 9_007_199_254_740_992.0)
}

impl Kind for Uniform64 {
    type T = f64;
    const GROUP: usize = 32;
    #[inline(always)]
    fn make<I: Isa>(words: &Lanes<BLOCKS>, blocks: usize, rows: &mut [[f64; BLOCKS]; 4]) {
        let [w0, w1, w2, w3] = &words.0;
        for i in 0..blocks {
            rows[0][i] = unit_f64(w0[i], w1[i]);
            rows[1][i] = unit_f64(w2[i], w3[i]);
        }
    }
}

impl Kind for Normal32 {
    type T = f32;
    const GROUP: usize = 64;
    #[inline(always)]
    fn make<I: Isa>(words: &Lanes<BLOCKS>, blocks: usize, rows: &mut [[f32; BLOCKS]; 4]) {
        let [w0, w1, w2, w3] = &words.0;
        let [r0, r1, r2, r3] = rows;
        for i in 0..blocks {
            (r0[i], r1[i]) = pair_f32::<I>(w0[i], w1[i]);
        }
        for i in 0..blocks {
            (r2[i], r3[i]) = pair_f32::<I>(w2[i], w3[i]);
        }
    }
}

impl Kind for Normal64 {
    type T = f64;
    const GROUP: usize = 32;
    #[inline(always)]
    fn make<I: Isa>(words: &Lanes<BLOCKS>, blocks: usize, rows: &mut [[f64; BLOCKS]; 4]) {
        let [w0, w1, w2, w3] = &words.0;
        let [r0, r1, ..] = rows;
        for i in 0..blocks {
            let whole = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
            (r0[i], r1[i]) = pair_f64::<I>(whole(w0[i], w1[i]), whole(w2[i], w3[i]));
        }
    }
}

/// Writes `n` elements from position `start` on to `out`.
struct Fill<K> {
    key: u64,
    start: u64,
    out: *mut u8,
    n: usize,
    kind: std::marker::PhantomData<K>,
}

impl<K: Kind> Body for Fill<K> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let group = K::GROUP as u64;
        let mut words = Lanes::<BLOCKS>::new();
        let mut rows = std::mem::MaybeUninit::<[[K::T; BLOCKS]; 4]>::uninit();
        // SAFETY: floats, whose every bit pattern is one; `make` writes what is read below.
        let rows = unsafe {
            rows.as_mut_ptr().write_bytes(0, 1);
            rows.assume_init_mut()
        };
        let out = self.out.cast::<K::T>();
        let mut done = 0;
        while done < self.n {
            let at = self.start.wrapping_add(done as u64);
            let (first, skip) = (at / group, (at % group) as usize);
            let groups = (skip + self.n - done).div_ceil(K::GROUP).min(GROUPS);
            words.fill(self.key, first.wrapping_mul(LANES as u64), groups * LANES);
            K::make::<I>(&words, groups * LANES, rows);
            let end = (groups * K::GROUP).min(skip + self.n - done);
            for run in skip / LANES..end.div_ceil(LANES) {
                let row = &rows[run % (K::GROUP / LANES)];
                let lanes = &row[run / (K::GROUP / LANES) * LANES..][..LANES];
                let (from, to) = ((run * LANES).max(skip), (run * LANES + LANES).min(end));
                // SAFETY: positions from `skip` to `end` are the next `end - skip` of `n` elements.
                unsafe {
                    let to_ptr = out.add(done + from - skip).cast::<u8>();
                    let source = lanes.as_ptr().add(from - run * LANES).cast::<u8>();
                    let bytes = (to - from) * size_of::<K::T>();
                    if to - from == LANES {
                        // Of known length: one register, not a call.
                        to_ptr.copy_from_nonoverlapping(source, LANES * size_of::<K::T>());
                    } else {
                        to_ptr.copy_from_nonoverlapping(source, bytes);
                    }
                }
            }
            done += end - skip;
        }
    }
}

/// Writes the `n` elements from position `start` on, of a key, to `out`.
///
/// # Safety
/// `out` must be good for `n` elements, and the CPU have the instruction set it was compiled for.
pub(crate) type Generate = unsafe fn(key: u64, start: u64, out: *mut u8, n: usize);

unsafe fn generate<I: Isa, K: Kind>(key: u64, start: u64, out: *mut u8, n: usize) {
    let fill = Fill::<K> { key, start, out, n, kind: std::marker::PhantomData };
    // SAFETY: passed on.
    unsafe { I::LEVEL.dispatch_unchecked(fill) }
}

/// The generator of a distribution of `f32` or, if `wide`, `f64` on an instruction set.
pub(crate) fn generator(level: Level, dist: steersman_core::expr::Dist, wide: bool) -> Generate {
    fn of<I: Isa>(dist: steersman_core::expr::Dist, wide: bool) -> Generate {
        use steersman_core::expr::Dist::{Normal, Uniform};
        match (dist, wide) {
            (Uniform, false) => generate::<I, Uniform32>,
            (Uniform, true) => generate::<I, Uniform64>,
            (Normal, false) => generate::<I, Normal32>,
            (Normal, true) => generate::<I, Normal64>,
        }
    }
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => of::<crate::isa::Avx2>(dist, wide),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => of::<crate::isa::Avx512>(dist, wide),
        _ => of::<crate::isa::Baseline>(dist, wide),
    }
}

macro_rules! safe {
    ($($(#[$doc:meta])* $name:ident, $t:ty, $dist:ident, $wide:literal;)+) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        /// If the CPU lacks the level.
        pub fn $name(level: Level, key: u64, start: u64, out: &mut [$t]) {
            assert!(level.available(), "this CPU has no {}", level.name());
            let generate = generator(level, steersman_core::expr::Dist::$dist, $wide);
            // SAFETY: a slice, and the level was asserted.
            unsafe { generate(key, start, out.as_mut_ptr().cast(), out.len()) }
        }
    )+};
}

safe! {
    /// The uniform numbers of `key` from position `start` on.
    uniform_f32, f32, Uniform, false;
    /// The uniform numbers of `key` from position `start` on.
    uniform_f64, f64, Uniform, true;
    /// The normal numbers of `key` from position `start` on.
    normal_f32, f32, Normal, false;
    /// The normal numbers of `key` from position `start` on.
    normal_f64, f64, Normal, true;
}
