//! The micro-kernel: one tile of `c` kept in registers while `k` runs.
//!
//! Each step of `k` loads `NV` vectors of `b`'s row and multiplies them by `MR` elements of `a`'s
//! column, one broadcast at a time.

use super::vector::Vector;

/// One tile: at most `MR` rows and `NV` vectors of `c`.
#[derive(Clone, Copy)]
pub(super) struct Tile<T> {
    /// Steps of `k`.
    pub k: usize,
    /// First row and first `k` of this tile's part of `a`.
    pub a: *const T,
    /// Elements between rows of `a`; 1 in the packed form.
    pub a_rs: isize,
    /// Elements between steps of `k` in `a`.
    pub a_cs: isize,
    /// First `k` and first column of this tile's part of `b`; columns are contiguous.
    pub b: *const T,
    /// Elements between steps of `k` in `b`.
    pub b_rs: isize,
    /// First element of the tile in `c`.
    pub c: *mut T,
    /// Elements between rows of `c`.
    pub c_rs: isize,
    /// Lanes of the last vector that exist; the others are neither read nor written.
    pub tail: usize,
    /// Add to what `c` holds instead of overwriting it.
    pub accumulate: bool,
    /// Write past the caches; `c` and `c_rs` must be multiples of a vector, `accumulate` false.
    pub stream: bool,
    /// Fetch the tile of `c` while `k` runs: it is not in a near cache.
    pub fetch_c: bool,
}

/// Repeats a block with a constant `$i`, so that register arrays are indexed by constants whatever
/// the optimiser's unrolling limits.
macro_rules! unroll {
    ($i:ident < $n:expr, $max:tt, $body:block) => { unroll!(@ $max, $i, $n, $body) };
    (@ 4, $i:ident, $n:expr, $body:block) => { unroll!(@each $i, $n, $body, 0 1 2 3) };
    (@ 8, $i:ident, $n:expr, $body:block) => { unroll!(@each $i, $n, $body, 0 1 2 3 4 5 6 7) };
    (@ 16, $i:ident, $n:expr, $body:block) => {
        unroll!(@each $i, $n, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@each $i:ident, $n:expr, $body:block, $($x:literal)*) => {
        $(if $x < $n { const $i: usize = $x; $body })*
    };
}
pub(super) use unroll;

/// Asks for the cache line at `p`; any address is allowed.
#[inline(always)]
fn fetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _no_stable_hint = p;
}

/// The same pointer, of which the optimiser knows nothing: it would derive all rows from the first again, one after the
/// other, and wait for each. (67×172×16 f32 took 3.8 µs on a Xeon that way, 2.4 with a pointer for every four rows.)
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block, reason = "nothing is done with what it points to")]
fn apart<T>(p: *const T) -> *const T {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut p = p;
        // SAFETY: no instruction at all.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) p, options(pure, nomem, nostack, preserves_flags)) };
        p
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::hint::black_box(p)
}

/// Sets of sums that steps take turns with, so that none waits for the one before: a multiply-add takes four cycles and two are
/// begun in each, so that so few sums in a tile would leave most of them idle. (2×227 · 227×2 f64 on a Zen 4: 281 ns with one set
/// and 148; with six sums, which load seven numbers in each step, 2.6 µs became 3.1. SSE2 gained nothing.)
pub(super) const fn sets(sums: usize, vector: usize) -> usize {
    match sums {
        _ if vector < 32 => 1,
        0..=2 => 4,
        3..=4 => 2,
        _ => 1,
    }
}

/// Computes one tile of exactly `MR` rows and `NV` vectors. `UNIT`: `a_rs` is 1. `MASKED`: the last
/// vector has only `tail` lanes. `AHEAD`: fetch the columns of `b` that follow this tile's.
///
/// # Safety
/// The CPU has the vector's instruction set; the operands are valid at the tile's size and strides.
#[inline(always)]
pub(super) unsafe fn tile<
    V: Vector,
    const MR: usize,
    const NV: usize,
    const UNIT: bool,
    const MASKED: bool,
    const AHEAD: bool,
>(
    t: &Tile<V::T>,
) {
    // SAFETY: rows stay below MR, columns below (NV - 1) vectors and `tail` lanes, steps below k.
    unsafe {
        let mask = V::mask(if MASKED { t.tail } else { 0 });
        let mut acc = [[V::zero(); NV]; MR];
        let (a_rs, a_cs, b_rs) = (t.a_rs, t.a_cs, t.b_rs);
        if t.fetch_c {
            unroll!(I < MR, 16, {
                unroll!(J < NV, 4, {
                    fetch(t.c.wrapping_offset(I as isize * t.c_rs).wrapping_add(J * V::LANES))
                });
            });
        }
        let mut b = t.b;
        // Rows of `a` four by four.
        let mut a: [*const V::T; 4] =
            std::array::from_fn(
                |i| if UNIT { t.a } else { apart(t.a.wrapping_offset(4 * i as isize * a_rs)) },
            );
        // One step of `k`, added to one of the sets of sums.
        macro_rules! step {
            ($set:expr) => {
                let mut row = [V::zero(); NV];
                unroll!(J < NV, 4, {
                    row[J] = if MASKED && J == NV - 1 {
                        V::load_masked(b.add(J * V::LANES), mask)
                    } else {
                        V::load(b.add(J * V::LANES))
                    };
                });
                unroll!(I < MR, 16, {
                    let x = if UNIT { *a[0].add(I) } else { *a[I / 4].offset((I % 4) as isize * a_rs) };
                    let x = V::splat(x);
                    unroll!(J < NV, 4, { $set[I][J] = x.fma(row[J], $set[I][J]) });
                });
                if AHEAD {
                    unroll!(J < NV, 4, { fetch(b.wrapping_add((NV + J) * V::LANES)) });
                }
                b = b.wrapping_offset(b_rs);
                unroll!(I < if UNIT { 1 } else { MR.div_ceil(4) }, 4, { a[I] = a[I].wrapping_offset(a_cs) });
            };
        }
        if sets(MR * NV, size_of::<V>()) > 1 {
            let mut others = [[[V::zero(); NV]; MR]; 4];
            for _ in 0..t.k / sets(MR * NV, size_of::<V>()) {
                step!(acc);
                unroll!(S < sets(MR * NV, size_of::<V>()) - 1, 4, {
                    step!(others[S]);
                });
            }
            for _ in 0..t.k % sets(MR * NV, size_of::<V>()) {
                step!(acc);
            }
            unroll!(S < sets(MR * NV, size_of::<V>()) - 1, 4, {
                unroll!(I < MR, 16, {
                    unroll!(J < NV, 4, { acc[I][J] = acc[I][J].add(others[S][I][J]) });
                });
            });
        } else {
            for _ in 0..t.k {
                step!(acc);
            }
        }
        let mut c = t.c;
        unroll!(I < MR, 16, {
            unroll!(J < NV, 4, {
                let at = c.add(J * V::LANES);
                let v = acc[I][J];
                if MASKED && J == NV - 1 {
                    let v = if t.accumulate { v.add(V::load_masked(at, mask)) } else { v };
                    v.store_masked(at, mask);
                } else if t.accumulate {
                    v.add(V::load(at)).store(at);
                } else if t.stream {
                    v.stream(at);
                } else {
                    v.store(at);
                }
            });
            c = c.wrapping_offset(t.c_rs);
        });
    }
}
