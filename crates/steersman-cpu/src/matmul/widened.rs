//! Products of 16-bit floats: operands widened to f32 a strip at a time, multiplied there, results rounded once at the end.

use super::amx::{self, Bf16Gemm};
use super::{Blocks, Gemm, Scratch, gemv, packed, small};
use crate::isa::{Body, Isa, Level};
use crate::map::narrow::{Half, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use std::cell::RefCell;

/// Elements of an operand's strip, about: 8 MB widened.
const STRIP: usize = 2 << 20;
/// Rows or columns of a strip at least, however deep the product, and columns at most, however shallow.
const LEAST: usize = 64;
const WIDEST: usize = 1 << 16;
/// Elements of a vector, and of a cache line, of f32: pieces begin at one.
const LINE: usize = 16;
/// Rows, and columns, beyond which packing pays.
const PACKED_FROM: (usize, usize) = (28, 49);

thread_local! {
    /// Beside [`Scratch::with_local`], which packing uses meanwhile.
    static STRIPS: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
}

/// A matrix of halves somewhere, and f32s in contiguous rows beside each other.
#[derive(Clone, Copy)]
struct Rows {
    half: Half,
    rows: usize,
    columns: usize,
    halves: *mut u16,
    rs: isize,
    cs: isize,
    wide: *mut f32,
}

/// Halves into f32s.
struct Widen(Rows);
/// And back.
struct Narrow(Rows);

impl Rows {
    /// Does `one` to every half and its f32.
    #[inline(always)]
    unsafe fn each(self, one: impl Fn(*mut u16, *mut f32)) {
        for i in 0..self.rows {
            let halves = self.halves.wrapping_offset(i as isize * self.rs);
            let wide = self.wide.wrapping_add(i * self.columns);
            if self.cs == 1 {
                (0..self.columns).for_each(|j| one(halves.wrapping_add(j), wide.wrapping_add(j)));
            } else {
                let at = |j: usize| halves.wrapping_offset(j as isize * self.cs);
                (0..self.columns).for_each(|j| one(at(j), wide.wrapping_add(j)));
            }
        }
    }
}

impl Body for Widen {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // SAFETY: whoever made the rows vouches for both sides of them.
        unsafe {
            match self.0.half {
                Half::F16 => self.0.each(|h, x| *x = f16_to_f32(*h)),
                Half::BF16 => self.0.each(|h, x| *x = bf16_to_f32(*h)),
            }
        }
    }
}

impl Body for Narrow {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // SAFETY: as above.
        unsafe {
            match self.0.half {
                Half::F16 => self.0.each(|h, x| *h = f32_to_f16(*x)),
                Half::BF16 => self.0.each(|h, x| *h = f32_to_bf16(*x)),
            }
        }
    }
}

/// Computes `c = a · b` on this thread, sums in f32.
///
/// # Safety
/// `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`; the CPU has the level.
pub(crate) unsafe fn widened(level: Level, g: &Gemm<u16>, half: Half, blocks: Blocks) {
    let (m, k, n) = (g.m, g.k, g.n);
    let strip = (STRIP / k.max(1)).max(LEAST);
    let columns = n.min(strip).min(WIDEST);
    let rows = m.min(strip).min(high(columns));
    let of_a = (rows * k).next_multiple_of(LINE);
    Scratch::with(&STRIPS, |scratch| {
        let (a, c) = scratch.pair::<f32>(of_a + k * columns, rows * columns);
        let b = a.wrapping_add(of_a);
        // SAFETY: strips stay inside the operands, and their widened elements inside the scratch.
        unsafe {
            for j in (0..n).step_by(columns.max(1)) {
                let n = columns.min(n - j);
                let from = g.b.wrapping_offset(j as isize * g.b_cs).cast_mut();
                let (rs, cs) = (g.b_rs, g.b_cs);
                level.dispatch_unchecked(Widen(Rows {
                    half,
                    rows: k,
                    columns: n,
                    halves: from,
                    rs,
                    cs,
                    wide: b,
                }));
                for i in (0..m).step_by(rows.max(1)) {
                    let m = rows.min(m - i);
                    let from = g.a.wrapping_offset(i as isize * g.a_rs).cast_mut();
                    let (rs, cs) = (g.a_rs, g.a_cs);
                    level.dispatch_unchecked(Widen(Rows {
                        half,
                        rows: m,
                        columns: k,
                        halves: from,
                        rs,
                        cs,
                        wide: a,
                    }));
                    let wide = Gemm::contiguous([m, k, n], a, b, c);
                    match () {
                        _ if m == 1 || n == 1 => gemv(level, &wide),
                        _ if m >= PACKED_FROM.0 && n >= PACKED_FROM.1 => {
                            Scratch::with_local(|s| packed(level, &wide, blocks, s));
                        }
                        _ => small(level, &wide),
                    }
                    narrow_into(level, g, half, (i, j), (m, n), c);
                }
            }
        }
    });
}

/// The same of bf16 on the matrix unit, which takes them as they are.
///
/// # Safety
/// As [`widened`]; and the unit is [`amx::Amx::available`].
pub(crate) unsafe fn on_matrix_unit(g: &Gemm<u16>) {
    let columns = g.n.min(WIDEST);
    let rows = g.m.min(high(columns));
    Scratch::with(&STRIPS, |scratch| {
        let (c, _) = scratch.pair::<f32>(rows * columns, 0);
        for j in (0..g.n).step_by(columns.max(1)) {
            for i in (0..g.m).step_by(rows.max(1)) {
                let (m, n) = (rows.min(g.m - i), columns.min(g.n - j));
                let part = Bf16Gemm {
                    m,
                    k: g.k,
                    n,
                    a: g.a.wrapping_offset(i as isize * g.a_rs),
                    a_rs: g.a_rs,
                    a_cs: g.a_cs,
                    b: g.b.wrapping_offset(j as isize * g.b_cs),
                    b_rs: g.b_rs,
                    b_cs: g.b_cs,
                    c,
                    c_rs: n as isize,
                };
                // SAFETY: a piece of the operands, and a scratch with room for as much of the result.
                unsafe {
                    Scratch::with_local(|s| amx::matmul_bf16(&part, s));
                    narrow_into(Level::best(), g, Half::BF16, (i, j), (m, n), c);
                }
            }
        }
    });
}

/// Rows of a piece of the result with so many columns: 16 MB as f32, about.
fn high(columns: usize) -> usize {
    (2 * STRIP / columns.max(1)).max(LEAST)
}

/// Rounds contiguous rows of f32 into a piece of `c`.
unsafe fn narrow_into(
    level: Level,
    g: &Gemm<u16>,
    half: Half,
    (i, j): (usize, usize),
    (rows, columns): (usize, usize),
    wide: *mut f32,
) {
    let halves = g.c.wrapping_offset(i as isize * g.c_rs).wrapping_add(j);
    // SAFETY: the caller's promise.
    unsafe {
        level.dispatch_unchecked(Narrow(Rows { half, rows, columns, halves, rs: g.c_rs, cs: 1, wide }));
    }
}

/// The reference: three loops, each sum in f32 from its first term to its last.
///
/// # Safety
/// As [`widened`].
pub(crate) unsafe fn plain_halves(g: &Gemm<u16>, half: Half) {
    let (wide, round) = match half {
        Half::F16 => (f16_to_f32 as fn(u16) -> f32, f32_to_f16 as fn(f32) -> u16),
        Half::BF16 => (bf16_to_f32 as fn(u16) -> f32, f32_to_bf16 as fn(f32) -> u16),
    };
    let at = |from: *const u16, by: (usize, isize), and: (usize, isize)| {
        let offset = by.0 as isize * by.1 + and.0 as isize * and.1;
        // SAFETY: indices stay inside the operands.
        wide(unsafe { *from.wrapping_offset(offset) })
    };
    for i in 0..g.m {
        for j in 0..g.n {
            let term = |p: usize| at(g.a, (i, g.a_rs), (p, g.a_cs)) * at(g.b, (p, g.b_rs), (j, g.b_cs));
            let sum = (0..g.k).fold(0.0, |sum, p| sum + term(p));
            // SAFETY: i < m, j < n.
            unsafe { *g.c.wrapping_offset(i as isize * g.c_rs).add(j) = round(sum) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small whole numbers, whose products and sums halves hold, so that every way must give the same bits.
    fn check((m, k, n): (usize, usize, usize), by_columns: bool, half: Half) {
        let round = |x: f32| if half == Half::F16 { f32_to_f16(x) } else { f32_to_bf16(x) };
        let fill = |length: usize, times: usize| -> Vec<u16> {
            (0..length).map(|i| round((i * times % 3) as f32 - 1.0)).collect()
        };
        let (a, b) = (fill(m * k, 7), fill(k * n, 5));
        let strides =
            |rows: usize, columns: usize| if by_columns { (1, rows as isize) } else { (columns as isize, 1) };
        let ((a_rs, a_cs), (b_rs, b_cs)) = (strides(m, k), strides(k, n));
        let product = |one: &dyn Fn(&Gemm<u16>)| {
            let mut c = vec![0x1234; m * (n + 3)];
            let g = Gemm {
                m,
                k,
                n,
                a: a.as_ptr(),
                a_rs,
                a_cs,
                b: b.as_ptr(),
                b_rs,
                b_cs,
                c: c.as_mut_ptr(),
                c_rs: n as isize + 3,
            };
            one(&g);
            c
        };
        // SAFETY: the vectors have room for the operands at these strides.
        let want = product(&|g| unsafe { plain_halves(g, half) });
        let blocks = Blocks::for_host(&crate::host::Host::detect(), 4, Level::best());
        let got = product(&|g| unsafe { widened(Level::best(), g, half, blocks) });
        assert_eq!(got, want, "{m}x{k}x{n}");
        if half == Half::BF16 && amx::Amx::available() {
            assert_eq!(product(&|g| unsafe { on_matrix_unit(g) }), want, "{m}x{k}x{n} on the matrix unit");
        }
    }

    #[test]
    fn strips_give_what_plain_loops_give() {
        // The last four go through several strips of columns, of rows, of both, and of a shallow product's.
        let deep = STRIP / LEAST + 1;
        for shape in [
            (1, 1, 1),
            (1, 40, 90),
            (70, 9, 1),
            (33, 20, 31),
            (90, 70, 130),
            (5, 0, 7),
            (0, 4, 4),
            (2, deep, 67),
            (66, deep, 3),
            (65, deep, 66),
            (3, 2, WIDEST + 5),
        ] {
            for by_columns in [false, true] {
                check(shape, by_columns, Half::F16);
                check(shape, by_columns, Half::BF16);
            }
        }
    }
}
