//! Loops over consecutive elements: the only code compiled once per op, element type and instruction set.
//!
//! Each is a plain loop for the compiler to vectorise. What does not fill 64 bytes at the end goes
//! through the same loop by way of padded blocks on the stack: the last seven elements of an `exp` cost
//! one vector, not seven scalar calls.

use crate::isa::{Body, Isa};
use std::marker::PhantomData;

/// Computes `n` results at `out` from consecutive elements at `a`, `b`, `c` (those the op has).
///
/// # Safety
/// The CPU must have the instruction set it was compiled for; the pointers must be good for `n` elements,
/// and `out` must not overlap an input.
pub type RowFn = unsafe fn(a: *const u8, b: *const u8, c: *const u8, out: *mut u8, n: usize);

/// A function of one element.
pub trait Fun1<T: Copy>: 'static {
    /// Whether there are arguments that [`apply`](Fun1::apply) does not cover.
    const PARTIAL: bool = false;
    /// The function.
    fn apply<I: Isa>(x: T) -> T;
    /// Whether [`apply`](Fun1::apply) does not cover `x`.
    #[inline(always)]
    fn misses(_: T) -> bool {
        false
    }
    /// The function for any argument, however slow.
    fn anywhere(x: T) -> T {
        x
    }
}

/// A function of two elements.
pub trait Fun2<T: Copy>: 'static {
    /// What it gives.
    type Out: Copy + Default;
    /// The function.
    fn apply<I: Isa>(a: T, b: T) -> Self::Out;
}

/// A function of three elements, the first perhaps of another type.
pub trait Fun3<T: Copy>: 'static {
    /// The type of the first element.
    type First: Copy + Default;
    /// The function.
    fn apply<I: Isa>(a: Self::First, b: T, c: T) -> T;
}

/// One loop.
trait Loop {
    type A: Copy + Default;
    type T: Copy + Default;
    type Out: Copy + Default;
    /// Which of `a`, `b`, `c` are read element by element (the others not at all, or only their first).
    const READS: [bool; 3];
    /// # Safety
    /// Each pointer must be good for `n` elements, or one where only the first counts.
    unsafe fn run<I: Isa>(
        a: *const Self::A,
        b: *const Self::T,
        c: *const Self::T,
        out: *mut Self::Out,
        n: usize,
    );
}

/// A loop with its arguments, for blocks of `L` elements.
struct Call<B, const L: usize> {
    at: [*const u8; 3],
    out: *mut u8,
    n: usize,
    kind: PhantomData<B>,
}

impl<B: Loop, const L: usize> Body for Call<B, L> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let (mut a, mut b, mut c) =
            (self.at[0].cast::<B::A>(), self.at[1].cast::<B::T>(), self.at[2].cast::<B::T>());
        let mut out = self.out.cast::<B::Out>();
        let rest = self.n % L;
        let mut n = self.n - rest;
        let (mut pad_a, mut pad_b, mut pad_c) =
            ([B::A::default(); L], [B::T::default(); L], [B::T::default(); L]);
        let mut pad_out = [B::Out::default(); L];
        let mut at_end = rest == 0;
        // Twice through one copy of the code: the whole blocks, then the padded rest.
        // SAFETY: the caller of the row vouches for `n` elements behind each pointer; pads hold `L`.
        unsafe {
            loop {
                B::run::<I>(a, b, c, out, n);
                if at_end {
                    break;
                }
                at_end = true;
                if B::READS[0] {
                    a = pad(a.add(n), rest, &mut pad_a);
                }
                if B::READS[1] {
                    b = pad(b.add(n), rest, &mut pad_b);
                }
                if B::READS[2] {
                    c = pad(c.add(n), rest, &mut pad_c);
                }
                out = pad_out.as_mut_ptr();
                n = L;
            }
            if rest != 0 {
                let end = self.out.cast::<B::Out>().add(self.n - rest).cast::<u8>();
                end.copy_from_nonoverlapping(pad_out.as_ptr().cast(), rest * size_of::<B::Out>());
            }
        }
    }
}

/// Moves `n` elements into a block.
#[inline(always)]
unsafe fn pad<T, const L: usize>(from: *const T, n: usize, to: &mut [T; L]) -> *const T {
    // SAFETY: `n` is below `L`; bytes, since elements may lie anywhere.
    unsafe { to.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from.cast(), n * size_of::<T>()) };
    to.as_ptr()
}

/// The row function of a loop.
unsafe fn row<I: Isa, B: Loop, const L: usize>(
    a: *const u8,
    b: *const u8,
    c: *const u8,
    out: *mut u8,
    n: usize,
) {
    // SAFETY: kernels are only made for levels the CPU has.
    unsafe { I::LEVEL.dispatch_unchecked(Call::<B, L> { at: [a, b, c], out, n, kind: PhantomData }) }
}

struct Each1<T, F>(PhantomData<(T, F)>);

/// Elements between two looks for arguments that a function does not cover: few enough to be in cache
/// still.
const LOOK: usize = 1024;

impl<T: Copy + Default, F: Fun1<T>> Loop for Each1<T, F> {
    type A = T;
    type T = T;
    type Out = T;
    const READS: [bool; 3] = [true, false, false];
    #[inline(always)]
    unsafe fn run<I: Isa>(a: *const T, _: *const T, _: *const T, out: *mut T, n: usize) {
        let mut from = 0;
        while from < n {
            let end = if F::PARTIAL { n.min(from + LOOK) } else { n };
            // SAFETY: within `n`.
            unsafe {
                for i in from..end {
                    out.add(i).write_unaligned(F::apply::<I>(a.add(i).read_unaligned()));
                }
                if F::PARTIAL {
                    let mut missed = false;
                    for i in from..end {
                        missed |= F::misses(a.add(i).read_unaligned());
                    }
                    if missed {
                        repair::<T, F>(a.add(from), out.add(from), end - from);
                    }
                }
            }
            from = end;
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn repair<T: Copy, F: Fun1<T>>(a: *const T, out: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: `n` elements on both sides, by the caller.
        unsafe {
            let x = a.add(i).read_unaligned();
            if F::misses(x) {
                out.add(i).write_unaligned(F::anywhere(x));
            }
        }
    }
}

/// Two arguments; `A` and `B` tell which of them are read element by element rather than once.
struct Each2<T, F, const A: bool, const B: bool>(PhantomData<(T, F)>);

impl<T: Copy + Default, F: Fun2<T>, const A: bool, const B: bool> Loop for Each2<T, F, A, B> {
    type A = T;
    type T = T;
    type Out = F::Out;
    const READS: [bool; 3] = [A, B, false];
    #[inline(always)]
    unsafe fn run<I: Isa>(a: *const T, b: *const T, _: *const T, out: *mut F::Out, n: usize) {
        // SAFETY: within `n`, or the one element there is.
        unsafe {
            let (same_a, same_b) = (a.read_unaligned(), b.read_unaligned());
            for i in 0..n {
                let x = if A { a.add(i).read_unaligned() } else { same_a };
                let y = if B { b.add(i).read_unaligned() } else { same_b };
                out.add(i).write_unaligned(F::apply::<I>(x, y));
            }
        }
    }
}

struct Each3<T, F>(PhantomData<(T, F)>);

impl<T: Copy + Default, F: Fun3<T>> Loop for Each3<T, F> {
    type A = F::First;
    type T = T;
    type Out = T;
    const READS: [bool; 3] = [true; 3];
    #[inline(always)]
    unsafe fn run<I: Isa>(a: *const F::First, b: *const T, c: *const T, out: *mut T, n: usize) {
        for i in 0..n {
            // SAFETY: within `n`.
            unsafe {
                let (x, y, z) =
                    (a.add(i).read_unaligned(), b.add(i).read_unaligned(), c.add(i).read_unaligned());
                out.add(i).write_unaligned(F::apply::<I>(x, y, z));
            }
        }
    }
}

/// The row functions of one op.
#[derive(Clone, Copy)]
pub struct Rows {
    /// Every argument element by element.
    pub each: RowFn,
    /// The first element by element, the second the same throughout.
    pub second_same: Option<RowFn>,
    /// The first the same throughout, the second element by element.
    pub first_same: Option<RowFn>,
}

impl Rows {
    /// Rows of a function of one element.
    pub fn one<I: Isa, T: Copy + Default, F: Fun1<T>, const L: usize>() -> Rows {
        Rows { each: row::<I, Each1<T, F>, L>, second_same: None, first_same: None }
    }

    /// Rows of a cheap function of two elements: with a form of its own for an argument that stays the
    /// same, since reading it again and again from a buffer would show.
    pub fn two<I: Isa, T: Copy + Default, F: Fun2<T>, const L: usize>() -> Rows {
        Rows {
            second_same: Some(row::<I, Each2<T, F, true, false>, L>),
            first_same: Some(row::<I, Each2<T, F, false, true>, L>),
            ..Rows::two_slow::<I, T, F, L>()
        }
    }

    /// Rows of a function of two elements that takes far longer than reading them.
    pub fn two_slow<I: Isa, T: Copy + Default, F: Fun2<T>, const L: usize>() -> Rows {
        Rows { each: row::<I, Each2<T, F, true, true>, L>, second_same: None, first_same: None }
    }

    /// Rows of a function of three elements.
    pub fn three<I: Isa, T: Copy + Default, F: Fun3<T>, const L: usize>() -> Rows {
        Rows { each: row::<I, Each3<T, F>, L>, second_same: None, first_same: None }
    }
}
