//! Elements from one place, spacing or format to another.

use super::narrow::{self, Half};
use crate::isa::{Body, Isa};

/// Writes the element at `from` to `to`, `n` times.
///
/// # Safety
/// One element must be readable and `n` writable.
pub unsafe fn fill<T: Copy>(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: one element to read and `n` to write, by the caller.
    unsafe {
        let x = from.cast::<T>().read_unaligned();
        for i in 0..n {
            to.cast::<T>().add(i).write(x);
        }
    }
}

/// Brings `len` elements that lie `step` apart together.
///
/// # Safety
/// Both sides must be good for `len` elements.
#[inline(always)]
pub unsafe fn gather_run<T: Copy>(from: *mut T, step: isize, to: *mut T, len: usize) {
    // SAFETY: `len` elements on both sides, by the caller.
    unsafe {
        for i in 0..len {
            to.add(i).write_unaligned(from.offset(i as isize * step).read_unaligned());
        }
    }
}

/// Puts `len` elements `step` apart.
///
/// # Safety
/// Both sides must be good for `len` elements.
#[inline(always)]
pub unsafe fn scatter_run<T: Copy>(from: *const T, to: *mut T, step: isize, len: usize) {
    // SAFETY: `len` elements on both sides, by the caller.
    unsafe {
        for i in 0..len {
            to.offset(i as isize * step).write_unaligned(from.add(i).read_unaligned());
        }
    }
}

/// Writes the first `some` of `all` bytes again and again behind themselves.
///
/// # Safety
/// `some` bytes must be there, at least one, and `all` writable.
pub unsafe fn start_over(bytes: *mut u8, some: usize, all: usize) {
    let mut done = some;
    while done < all {
        let more = done.min(all - done);
        // SAFETY: what is copied lies before what is written.
        unsafe { std::ptr::copy_nonoverlapping(bytes, bytes.add(done), more) };
        done += more;
    }
}

/// Half precision to `f32`. The pointers must be good for `n` elements.
pub struct Widen {
    /// First element to read.
    pub from: *const u16,
    /// First element to write.
    pub to: *mut f32,
    /// How many.
    pub n: usize,
    /// The narrow format.
    pub half: Half,
}

impl Body for Widen {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // SAFETY: by the type's contract.
        unsafe {
            match self.half {
                Half::F16 => convert(self.from, self.to, self.n, narrow::f16_to_f32),
                Half::BF16 => convert(self.from, self.to, self.n, narrow::bf16_to_f32),
            }
        }
    }
}

/// `f32` to half precision. The pointers must be good for `n` elements.
pub struct Narrow {
    /// First element to read.
    pub from: *const f32,
    /// First element to write.
    pub to: *mut u16,
    /// How many.
    pub n: usize,
    /// The narrow format.
    pub half: Half,
}

impl Body for Narrow {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // SAFETY: by the type's contract.
        unsafe {
            match self.half {
                Half::F16 => convert(self.from, self.to, self.n, narrow::f32_to_f16),
                Half::BF16 => convert(self.from, self.to, self.n, narrow::f32_to_bf16),
            }
        }
    }
}

#[inline(always)]
unsafe fn convert<T: Copy, U>(from: *const T, to: *mut U, n: usize, f: impl Fn(T) -> U) {
    for i in 0..n {
        // SAFETY: `n` elements on both sides, by the caller.
        unsafe { to.add(i).write_unaligned(f(from.add(i).read_unaligned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_over_goes_to_the_end_and_not_beyond() {
        for (some, all) in [(1, 1), (1, 7), (3, 12), (5, 16), (4, 3)] {
            let mut bytes: [u8; 20] = std::array::from_fn(|i| if i < some { 1 + i as u8 } else { 0 });
            // SAFETY: there are so many.
            unsafe { start_over(bytes.as_mut_ptr(), some, all) };
            let of = |i: usize| if i < all.max(some) { 1 + (i % some) as u8 } else { 0 };
            assert_eq!(bytes, std::array::from_fn(of), "{some} {all}");
        }
    }
}
