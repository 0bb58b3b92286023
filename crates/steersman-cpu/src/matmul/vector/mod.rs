//! Vector registers as types, so that a tile is written once for every instruction set.
//!
//! Methods are `#[inline(always)]` without target features of their own: they become single
//! instructions once inlined into a function that has the features.

use super::Element;

#[cfg(target_arch = "x86_64")]
mod x86;

/// One vector register of `T`.
///
/// # Safety
/// Implementations touch exactly the lanes they are asked for; callers run them only where the
/// instruction set is present.
pub(super) unsafe trait Vector: Copy {
    /// One lane.
    type T: Element;
    /// Which lanes take part in a masked load or store.
    type Mask: Copy;
    /// Lanes in the register.
    const LANES: usize;
    /// All lanes zero.
    unsafe fn zero() -> Self;
    /// All lanes `x`.
    unsafe fn splat(x: Self::T) -> Self;
    /// Lanes from `p`, any alignment.
    unsafe fn load(p: *const Self::T) -> Self;
    /// The masked lanes from `p`, zeros elsewhere; memory outside the mask is not touched.
    unsafe fn load_masked(p: *const Self::T, mask: Self::Mask) -> Self;
    /// Lanes to `p`, any alignment.
    unsafe fn store(self, p: *mut Self::T);
    /// The masked lanes to `p`.
    unsafe fn store_masked(self, p: *mut Self::T, mask: Self::Mask);
    /// Lanes to `p`, aligned to the register's size, past the caches.
    unsafe fn stream(self, p: *mut Self::T);
    /// `self · b + acc`.
    unsafe fn fma(self, b: Self, acc: Self) -> Self;
    /// Lane by lane sum.
    unsafe fn add(self, other: Self) -> Self;
    /// Sum of the lanes.
    unsafe fn sum(self) -> Self::T;
    /// The first `lanes` lanes.
    unsafe fn mask(lanes: usize) -> Self::Mask;
    /// Side of the square that [`Vector::transpose`] moves.
    const SQUARE: usize;
    /// Writes `from[i * line + p]` to `to[p * stride + i]` for all `i` and `p` below [`Vector::SQUARE`].
    unsafe fn transpose(from: *const Self::T, line: isize, to: *mut Self::T, stride: usize);
}

/// `N` lanes as an array: what the compiler makes of it is SSE2 or NEON, or plain scalars elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Lanes<T, const N: usize>([T; N]);

macro_rules! portable {
    ($t:ty, $n:expr) => {
        // SAFETY: loads and stores touch N lanes, masked ones the first `mask` lanes.
        unsafe impl Vector for Lanes<$t, $n> {
            type T = $t;
            type Mask = usize;
            const LANES: usize = $n;
            #[inline(always)]
            unsafe fn zero() -> Self {
                Self([0.0; $n])
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                Self([x; $n])
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: the caller has N lanes at p.
                Self(unsafe { p.cast::<[$t; $n]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn load_masked(p: *const $t, mask: usize) -> Self {
                let mut v = [0.0; $n];
                for (i, x) in v.iter_mut().enumerate() {
                    if i < mask {
                        // SAFETY: the caller has `mask` lanes at p.
                        *x = unsafe { *p.add(i) };
                    }
                }
                Self(v)
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: the caller has N lanes at p.
                unsafe { p.cast::<[$t; $n]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn store_masked(self, p: *mut $t, mask: usize) {
                for (i, x) in self.0.into_iter().enumerate() {
                    if i < mask {
                        // SAFETY: the caller has `mask` lanes at p.
                        unsafe { *p.add(i) = x };
                    }
                }
            }
            #[inline(always)]
            unsafe fn stream(self, p: *mut $t) {
                // SAFETY: as for `store`.
                unsafe { self.store(p) }
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, acc: Self) -> Self {
                let mut v = acc.0;
                for i in 0..$n {
                    v[i] = if cfg!(target_arch = "aarch64") {
                        self.0[i].mul_add(b.0[i], v[i])
                    } else {
                        v[i] + self.0[i] * b.0[i]
                    };
                }
                Self(v)
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                let mut v = self.0;
                for i in 0..$n {
                    v[i] += other.0[i];
                }
                Self(v)
            }
            #[inline(always)]
            unsafe fn sum(self) -> $t {
                self.0.into_iter().sum()
            }
            #[inline(always)]
            unsafe fn mask(lanes: usize) -> usize {
                lanes
            }
            const SQUARE: usize = 4;
            #[inline(always)]
            unsafe fn transpose(from: *const $t, line: isize, to: *mut $t, stride: usize) {
                // SAFETY: the caller has the square at both ends.
                unsafe {
                    let lines: [[$t; 4]; 4] = std::array::from_fn(|i| {
                        from.offset(i as isize * line).cast::<[$t; 4]>().read_unaligned()
                    });
                    for p in 0..4 {
                        let step = [lines[0][p], lines[1][p], lines[2][p], lines[3][p]];
                        to.add(p * stride).cast::<[$t; 4]>().write_unaligned(step);
                    }
                }
            }
        }
    };
}
portable!(f32, 4);
portable!(f64, 2);
