//! Loops over consecutive elements: the only code compiled once per op, element type and instruction set.
//!
//! Elements are taken in blocks of 64 bytes: a whole block is read before its results are written, so
//! that working in place needs neither a check nor a slower loop. What is left at the end goes through
//! the same code by way of a padded block on the stack: the last seven elements of an `exp` cost one
//! vector, not seven scalar calls.

use crate::isa::{Body, Isa};
use std::marker::PhantomData;

/// Computes `n` results at `out` from consecutive elements at `a`, `b`, `c` (those the op has).
///
/// # Safety
/// The CPU must have the instruction set it was compiled for; the pointers must be good for `n` elements,
/// and `out` may overlap an input only by being equal to it.
pub type RowFn = unsafe fn(a: *const u8, b: *const u8, c: *const u8, out: *mut u8, n: usize);

/// A function of one element.
pub trait Fun1<T: Copy>: 'static {
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

/// One loop: how a block of `L` results comes from blocks of arguments.
trait Blocks<const L: usize> {
    type A: Copy + Default;
    type T: Copy + Default;
    type Out: Copy + Default;
    /// How many of `a`, `b`, `c` are read element by element (the others are not, or only their first).
    const READS: [bool; 3];
    /// # Safety
    /// Each pointer that is read must be good for `L` elements, or one where only the first counts.
    unsafe fn block<I: Isa>(a: *const Self::A, b: *const Self::T, c: *const Self::T) -> [Self::Out; L];
}

struct Call<B> {
    at: [*const u8; 3],
    out: *mut u8,
    n: usize,
    blocks: PhantomData<B>,
}

/// [`Call`] with the block length, which a type parameter cannot carry.
struct Sized<B, const L: usize>(Call<B>);

impl<B: Blocks<L>, const L: usize> Body for Sized<B, L> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let n = self.0.n;
        let (mut a, mut b, mut c) = (self.0.at[0].cast::<B::A>(), self.0.at[1].cast::<B::T>(), self.0.at[2].cast::<B::T>());
        let mut out = self.0.out.cast::<[B::Out; L]>();
        let (whole, rest) = (n / L, n % L);
        let (mut pad_a, mut pad_b, mut pad_c) = ([B::A::default(); L], [B::T::default(); L], [B::T::default(); L]);
        let mut pad_out = [B::Out::default(); L];
        let mut blocks = whole;
        let mut at_end = rest == 0;
        // Twice through one copy of the code: the whole blocks, then the padded rest.
        // SAFETY: the caller of the row vouches for `n` elements behind each pointer; pads hold `L`.
        unsafe {
            loop {
                for k in 0..blocks {
                    let step = |read: bool| if read { k * L } else { 0 };
                    let y = B::block::<I>(a.add(step(B::READS[0])), b.add(step(B::READS[1])), c.add(step(B::READS[2])));
                    out.add(k).write_unaligned(y);
                }
                if at_end {
                    break;
                }
                at_end = true;
                blocks = 1;
                if B::READS[0] {
                    pad_a.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(a.add(whole * L).cast(), rest * size_of::<B::A>());
                    a = pad_a.as_ptr();
                }
                if B::READS[1] {
                    pad_b.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(b.add(whole * L).cast(), rest * size_of::<B::T>());
                    b = pad_b.as_ptr();
                }
                if B::READS[2] {
                    pad_c.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(c.add(whole * L).cast(), rest * size_of::<B::T>());
                    c = pad_c.as_ptr();
                }
                out = &raw mut pad_out;
            }
            if rest != 0 {
                let end = self.0.out.cast::<B::Out>().add(whole * L).cast::<u8>();
                end.copy_from_nonoverlapping(pad_out.as_ptr().cast(), rest * size_of::<B::Out>());
            }
        }
    }
}

/// The row function of `B`.
unsafe fn row<I: Isa, B: Blocks<L>, const L: usize>(a: *const u8, b: *const u8, c: *const u8, out: *mut u8, n: usize) {
    I::LEVEL.dispatch(Sized::<B, L>(Call { at: [a, b, c], out, n, blocks: PhantomData }));
}

struct Each1<T, F>(PhantomData<(T, F)>);

impl<T: Copy + Default, F: Fun1<T>, const L: usize> Blocks<L> for Each1<T, F> {
    type A = T;
    type T = T;
    type Out = T;
    const READS: [bool; 3] = [true, false, false];
    #[inline(always)]
    unsafe fn block<I: Isa>(a: *const T, _: *const T, _: *const T) -> [T; L] {
        // SAFETY: good for `L` elements by contract.
        let x = unsafe { a.cast::<[T; L]>().read_unaligned() };
        let mut y = [T::default(); L];
        for i in 0..L {
            y[i] = F::apply::<I>(x[i]);
        }
        let mut missed = false;
        for x in x {
            missed |= F::misses(x);
        }
        if missed { repaired::<T, F, L>(x, y) } else { y }
    }
}

#[cold]
#[inline(never)]
fn repaired<T: Copy, F: Fun1<T>, const L: usize>(x: [T; L], mut y: [T; L]) -> [T; L] {
    for (y, x) in y.iter_mut().zip(x) {
        if F::misses(x) {
            *y = F::anywhere(x);
        }
    }
    y
}

/// Two arguments; `A` and `B` tell which of them are read element by element rather than once.
struct Each2<T, F, const A: bool, const B: bool>(PhantomData<(T, F)>);

/// `L` elements, or the first repeated.
#[inline(always)]
unsafe fn read<T: Copy, const L: usize>(p: *const T, each: bool) -> [T; L] {
    // SAFETY: good for `L` elements, or one, by the caller's contract.
    unsafe { if each { p.cast::<[T; L]>().read_unaligned() } else { [p.read_unaligned(); L] } }
}

impl<T: Copy + Default, F: Fun2<T>, const A: bool, const B: bool, const L: usize> Blocks<L> for Each2<T, F, A, B> {
    type A = T;
    type T = T;
    type Out = F::Out;
    const READS: [bool; 3] = [A, B, false];
    #[inline(always)]
    unsafe fn block<I: Isa>(a: *const T, b: *const T, _: *const T) -> [F::Out; L] {
        // SAFETY: by contract.
        let (a, b): ([T; L], [T; L]) = unsafe { (read(a, A), read(b, B)) };
        let mut y = [F::Out::default(); L];
        for i in 0..L {
            y[i] = F::apply::<I>(a[i], b[i]);
        }
        y
    }
}

struct Each3<T, F>(PhantomData<(T, F)>);

impl<T: Copy + Default, F: Fun3<T>, const L: usize> Blocks<L> for Each3<T, F> {
    type A = F::First;
    type T = T;
    type Out = T;
    const READS: [bool; 3] = [true; 3];
    #[inline(always)]
    unsafe fn block<I: Isa>(a: *const F::First, b: *const T, c: *const T) -> [T; L] {
        // SAFETY: by contract.
        let (a, b, c): ([F::First; L], [T; L], [T; L]) = unsafe { (read(a, true), read(b, true), read(c, true)) };
        let mut y = [T::default(); L];
        for i in 0..L {
            y[i] = F::apply::<I>(a[i], b[i], c[i]);
        }
        y
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
