//! Loops over consecutive elements: the only code compiled once per op, element type and instruction set.
//!
//! Each is a plain loop for the compiler to vectorise, over blocks of 64 bytes. What does not fill a block at
//! the end is done by one more block that overlaps the last: seven elements of an `exp` cost one vector, not
//! seven scalar calls. Fewer elements than a block are two overlapping smaller ones where the function is
//! cheap, else a padded block on the stack.

use super::pad::{Pad, fetch, put};
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
    /// The same for `H` elements, without a loop.
    ///
    /// # Safety
    /// As for [`run`](Loop::run).
    unsafe fn block<I: Isa, const H: usize>(
        a: *const Self::A,
        b: *const Self::T,
        c: *const Self::T,
        out: *mut Self::Out,
    );
}

/// A loop with its arguments, for blocks of `L` elements; `CHEAP` if smaller ones are worth their code.
struct Call<B, const L: usize, const CHEAP: bool> {
    at: [*const u8; 3],
    out: *mut u8,
    n: usize,
    kind: PhantomData<B>,
}

impl<B: Loop, const L: usize, const CHEAP: bool> Call<B, L, CHEAP> {
    /// Where the arguments are, from element `i` on.
    #[inline(always)]
    fn at(&self, i: usize) -> (*const B::A, *const B::T, *const B::T, *mut B::Out) {
        let skip = |k: usize| if B::READS[k] { i } else { 0 };
        (
            self.at[0].cast::<B::A>().wrapping_add(skip(0)),
            self.at[1].cast::<B::T>().wrapping_add(skip(1)),
            self.at[2].cast::<B::T>().wrapping_add(skip(2)),
            self.out.cast::<B::Out>().wrapping_add(i),
        )
    }

    /// At least a block: all whole ones, then the last `L` elements, some of them again.
    #[inline(always)]
    unsafe fn many<I: Isa>(&self) {
        let rest = self.n % L;
        let mut part = (0, self.n - rest);
        loop {
            let (a, b, c, out) = self.at(part.0);
            // SAFETY: the caller of the row vouches for `n` elements behind each pointer.
            unsafe { B::run::<I>(a, b, c, out, part.1) };
            if part.0 + part.1 == self.n {
                break;
            }
            part = (self.n - L, L);
        }
    }

    /// Between `H` and `2 H` elements.
    #[inline(always)]
    unsafe fn few<I: Isa, const H: usize>(&self) {
        let (a, b, c, out) = self.at(0);
        // SAFETY: the caller of the row vouches for `n` elements, and `n` is at least `H`.
        unsafe { B::block::<I, H>(a, b, c, out) };
        if self.n != H {
            let (a, b, c, out) = self.at(self.n - H);
            // SAFETY: as above.
            unsafe { B::block::<I, H>(a, b, c, out) };
        }
    }

    /// Less than a block, by way of whole ones on the stack.
    #[inline(always)]
    unsafe fn padded<I: Isa>(&self) {
        let (mut a, mut b, mut c, out) = self.at(0);
        let (mut pad_a, mut pad_b, mut pad_c) =
            (Pad([B::A::default(); L]), Pad([B::T::default(); L]), Pad([B::T::default(); L]));
        let mut pad_out = Pad([B::Out::default(); L]);
        // SAFETY: `n` elements behind each pointer, fewer than the pads hold.
        unsafe {
            if B::READS[0] {
                fetch::<I, _, L>(a, &mut pad_a.0, self.n);
                a = pad_a.0.as_ptr();
            }
            if B::READS[1] {
                fetch::<I, _, L>(b, &mut pad_b.0, self.n);
                b = pad_b.0.as_ptr();
            }
            if B::READS[2] {
                fetch::<I, _, L>(c, &mut pad_c.0, self.n);
                c = pad_c.0.as_ptr();
            }
            // Of a number that it knows the compiler makes single steps of some f64. (`tanh` of 2 to 6 took 64 ns with AVX-512, and
            // takes 30; of f32 none, 17 and 25.)
            let all = if size_of::<B::T>() == 8 { std::hint::black_box(L) } else { L };
            B::run::<I>(a, b, c, pad_out.0.as_mut_ptr(), all);
            put::<I, _, L>(&pad_out.0, out, self.n);
        }
    }
}

impl<B: Loop, const L: usize, const CHEAP: bool> Body for Call<B, L, CHEAP> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // SAFETY: the caller of the row vouches for `n` elements behind each pointer.
        unsafe {
            match self.n {
                0 => {}
                n if n >= L => self.many::<I>(),
                _ if !CHEAP => self.padded::<I>(),
                n if L > 32 && n >= 32 => self.few::<I, 32>(),
                n if L > 16 && n >= 16 => self.few::<I, 16>(),
                n if L > 8 && n >= 8 => self.few::<I, 8>(),
                n if n >= 4 => self.few::<I, 4>(),
                n if n >= 2 => self.few::<I, 2>(),
                _ => self.few::<I, 1>(),
            }
        }
    }
}

/// The row function of a loop.
unsafe fn row<I: Isa, B: Loop, const L: usize, const CHEAP: bool>(
    a: *const u8,
    b: *const u8,
    c: *const u8,
    out: *mut u8,
    n: usize,
) {
    // SAFETY: kernels are only made for levels the CPU has.
    unsafe { I::LEVEL.dispatch_unchecked(Call::<B, L, CHEAP> { at: [a, b, c], out, n, kind: PhantomData }) }
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
    #[inline(always)]
    unsafe fn block<I: Isa, const H: usize>(a: *const T, _: *const T, _: *const T, out: *mut T) {
        // SAFETY: `H` elements behind each, by the caller.
        unsafe {
            let x = a.cast::<[T; H]>().read_unaligned();
            let mut y = [T::default(); H];
            for i in 0..H {
                y[i] = F::apply::<I>(x[i]);
            }
            out.cast::<[T; H]>().write_unaligned(y);
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
    #[inline(always)]
    unsafe fn block<I: Isa, const H: usize>(a: *const T, b: *const T, _: *const T, out: *mut F::Out) {
        // SAFETY: `H` elements behind each, or the one there is, by the caller.
        unsafe {
            let x = if A { a.cast::<[T; H]>().read_unaligned() } else { [a.read_unaligned(); H] };
            let y = if B { b.cast::<[T; H]>().read_unaligned() } else { [b.read_unaligned(); H] };
            let mut z = [F::Out::default(); H];
            for i in 0..H {
                z[i] = F::apply::<I>(x[i], y[i]);
            }
            out.cast::<[F::Out; H]>().write_unaligned(z);
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
    #[inline(always)]
    unsafe fn block<I: Isa, const H: usize>(a: *const F::First, b: *const T, c: *const T, out: *mut T) {
        // SAFETY: `H` elements behind each, by the caller.
        unsafe {
            let x = a.cast::<[F::First; H]>().read_unaligned();
            let y = b.cast::<[T; H]>().read_unaligned();
            let z = c.cast::<[T; H]>().read_unaligned();
            let mut r = [T::default(); H];
            for i in 0..H {
                r[i] = F::apply::<I>(x[i], y[i], z[i]);
            }
            out.cast::<[T; H]>().write_unaligned(r);
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
    /// Whether computing an element takes no longer than reading it.
    pub cheap: bool,
}

impl Rows {
    /// Rows of a cheap function of one element.
    pub fn one<I: Isa, T: Copy + Default, F: Fun1<T>, const L: usize>() -> Rows {
        const { assert!(!F::PARTIAL, "blocks do not look for what a function does not cover") };
        Rows { each: row::<I, Each1<T, F>, L, true>, second_same: None, first_same: None, cheap: true }
    }

    /// Rows of a function of one element that takes far longer than reading it.
    pub fn one_slow<I: Isa, T: Copy + Default, F: Fun1<T>, const L: usize>() -> Rows {
        Rows { each: row::<I, Each1<T, F>, L, false>, second_same: None, first_same: None, cheap: false }
    }

    /// Rows of a cheap function of two elements: with a form of its own for an argument that stays the
    /// same, since reading it again and again from a buffer would show.
    pub fn two<I: Isa, T: Copy + Default, F: Fun2<T>, const L: usize>() -> Rows {
        Rows {
            second_same: Some(row::<I, Each2<T, F, true, false>, L, true>),
            first_same: Some(row::<I, Each2<T, F, false, true>, L, true>),
            each: row::<I, Each2<T, F, true, true>, L, true>,
            cheap: true,
        }
    }

    /// Rows of a function of two elements that takes far longer than reading them.
    pub fn two_slow<I: Isa, T: Copy + Default, F: Fun2<T>, const L: usize>() -> Rows {
        Rows {
            each: row::<I, Each2<T, F, true, true>, L, false>,
            second_same: None,
            first_same: None,
            cheap: false,
        }
    }

    /// Rows of a function of three elements.
    pub fn three<I: Isa, T: Copy + Default, F: Fun3<T>, const L: usize>() -> Rows {
        Rows { each: row::<I, Each3<T, F>, L, true>, second_same: None, first_same: None, cheap: true }
    }
}
