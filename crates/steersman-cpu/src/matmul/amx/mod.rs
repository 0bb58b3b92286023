//! f32 products through bf16 on Intel's matrix unit (AMX): a relaxed numeric class.
//!
//! Operands are rounded to bf16 (8 significant bits), products and sums are f32. Ask first, then call:
//!
//! ```
//! use steersman_cpu::matmul::amx::Amx;
//! if Amx::available() {
//!     println!("bf16 tiles run here");
//! }
//! ```
//!
//! Only x86-64 Linux has it: there the kernel must be asked for the tile registers' state, once per
//! process. Tile sizes are those of palette 1 (16 rows of 64 bytes); CPUID's leaf on them is not read,
//! because some virtual machines hide it while the unit works.

mod panels;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod unit;

use super::{Gemm, Scratch};
use panels::{Bf16, K, SIDE, pack_left, pack_right};

/// One product of bf16 operands (raw bits) into f32: `c[m×n] = a[m×k] · b[k×n]`; strides in elements.
#[derive(Clone, Copy, Debug)]
pub struct Bf16Gemm {
    /// Rows of `a` and `c`.
    pub m: usize,
    /// Columns of `a`, rows of `b`.
    pub k: usize,
    /// Columns of `b` and `c`.
    pub n: usize,
    /// First element of `a`.
    pub a: *const u16,
    /// Elements from one row of `a` to the next.
    pub a_rs: isize,
    /// Elements from one column of `a` to the next.
    pub a_cs: isize,
    /// First element of `b`.
    pub b: *const u16,
    /// Elements from one row of `b` to the next.
    pub b_rs: isize,
    /// Elements from one column of `b` to the next.
    pub b_cs: isize,
    /// First element of `c`; its columns are contiguous.
    pub c: *mut f32,
    /// Elements from one row of `c` to the next.
    pub c_rs: isize,
}

// SAFETY: a description of memory, not an owner; the unsafe kernel states who may touch what.
unsafe impl Send for Bf16Gemm {}
// SAFETY: as above; a shared reference gives only a copy of the description.
unsafe impl Sync for Bf16Gemm {}

/// The matrix unit.
#[derive(Clone, Copy, Debug)]
pub struct Amx;

impl Amx {
    /// Whether this CPU has AMX with bf16 and the system lets this process use it. Asked once.
    pub fn available() -> bool {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        return unit::available();
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        false
    }
}

/// Computes `c = a · b` with operands rounded to bf16.
///
/// # Safety
/// `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`.
///
/// # Panics
/// If AMX is not [`Amx::available`].
pub unsafe fn matmul_f32(g: &Gemm<f32>, scratch: &mut Scratch) {
    assert!(Amx::available(), "AMX is not available: a kernel for it must not be offered");
    let a = View { from: g.a.cast::<f32>(), rs: g.a_rs, cs: g.a_cs };
    let b = View { from: g.b.cast::<f32>(), rs: g.b_rs, cs: g.b_cs };
    // SAFETY: the caller's promise is the same.
    unsafe { multiply((g.m, g.k, g.n), a, b, (g.c, g.c_rs), scratch, on_unit) }
}

/// Computes `c = a · b` from bf16 operands.
///
/// # Safety
/// `a`, `b` and `c` are valid at their shapes and strides; `c` overlaps neither `a` nor `b`.
///
/// # Panics
/// If AMX is not [`Amx::available`].
pub unsafe fn matmul_bf16(g: &Bf16Gemm, scratch: &mut Scratch) {
    assert!(Amx::available(), "AMX is not available: a kernel for it must not be offered");
    let a = View { from: g.a, rs: g.a_rs, cs: g.a_cs };
    let b = View { from: g.b, rs: g.b_rs, cs: g.b_cs };
    // SAFETY: the caller's promise is the same.
    unsafe { multiply((g.m, g.k, g.n), a, b, (g.c, g.c_rs), scratch, on_unit) }
}

/// A matrix somewhere.
#[derive(Clone, Copy)]
struct View<S> {
    from: *const S,
    rs: isize,
    cs: isize,
}

impl<S> View<S> {
    /// The element at a row and a column.
    fn at(self, row: usize, column: usize) -> *const S {
        self.from.wrapping_offset(row as isize * self.rs + column as isize * self.cs)
    }
}

/// One square of `c`: [`SIDE`] rows and columns of f32, `steps` times [`K`] products added up.
struct Square {
    steps: usize,
    a: *const u16,
    b: *const u16,
    c: *mut f32,
    c_rs: isize,
    accumulate: bool,
}

/// What multiplies one square; the tests put plain loops in the unit's place.
type Multiplier = unsafe fn(&Square);

/// Runs one square on the matrix unit.
unsafe fn on_unit(square: &Square) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    // SAFETY: the caller's promise is the same.
    unsafe {
        unit::multiply(square)
    };
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    let _never_reached = (square.steps, square.a, square.b, square.c, square.c_rs, square.accumulate);
}

/// Steps of `k` in a block: a panel of `b` then takes 32 KiB of the 48 KiB first-level cache.
const KC: usize = 512;
/// Rows of `a` in a block: half a megabyte of the second-level cache.
const MC: usize = 512;
/// Columns of `b` in a block: four megabytes packed.
const NC: usize = 4096;

unsafe fn multiply<S: Bf16>(
    (m, k, n): (usize, usize, usize),
    a: View<S>,
    b: View<S>,
    (c, c_rs): (*mut f32, isize),
    scratch: &mut Scratch,
    multiplier: Multiplier,
) {
    if m == 0 || n == 0 {
        return;
    }
    // An empty k still runs one step of zeros, which writes them.
    let depth = k.clamp(1, KC).next_multiple_of(K);
    let (rows, columns) = (m.min(MC).next_multiple_of(SIDE), n.min(NC).next_multiple_of(SIDE));
    let (pa, pb) = scratch.pair::<u16>(rows * depth, columns * depth);
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    let _tiles = Amx::available().then(unit::Configured::new);
    // SAFETY: blocks stay inside the operands, packed panels inside the scratch.
    unsafe {
        for j in (0..n).step_by(NC) {
            let width = NC.min(n - j);
            for p in (0..k.max(1)).step_by(KC) {
                let deep = KC.min(k - p);
                let steps = deep.max(1).div_ceil(K);
                let panel = SIDE * K * steps;
                for (at, jr) in (0..width).step_by(SIDE).enumerate() {
                    pack_right(b, (p, deep), (j + jr, SIDE.min(width - jr)), pb.add(at * panel));
                }
                for i in (0..m).step_by(MC) {
                    let height = MC.min(m - i);
                    for (at, ir) in (0..height).step_by(SIDE).enumerate() {
                        pack_left(a, (i + ir, SIDE.min(height - ir)), (p, deep), pa.add(at * panel));
                    }
                    for (bt, jr) in (0..width).step_by(SIDE).enumerate() {
                        for (at, ir) in (0..height).step_by(SIDE).enumerate() {
                            let square = Square {
                                steps,
                                a: pa.add(at * panel),
                                b: pb.add(bt * panel),
                                c: c.offset((i + ir) as isize * c_rs).add(j + jr),
                                c_rs,
                                accumulate: p > 0,
                            };
                            clipped(&square, SIDE.min(height - ir), SIDE.min(width - jr), multiplier);
                        }
                    }
                }
            }
        }
    }
}

/// One square of which only `rows × columns` exist in `c`.
unsafe fn clipped(square: &Square, rows: usize, columns: usize, multiplier: Multiplier) {
    // SAFETY: a whole square lies inside c; a clipped one goes through a whole square on the stack.
    unsafe {
        if rows == SIDE && columns == SIDE {
            multiplier(square);
            return;
        }
        let mut whole = [0.0f32; SIDE * SIDE];
        let row = |i: usize| square.c.offset(i as isize * square.c_rs);
        if square.accumulate {
            for i in 0..rows {
                std::ptr::copy_nonoverlapping(row(i), whole.as_mut_ptr().add(i * SIDE), columns);
            }
        }
        multiplier(&Square { c: whole.as_mut_ptr(), c_rs: SIDE as isize, ..*square });
        for i in 0..rows {
            std::ptr::copy_nonoverlapping(whole.as_ptr().add(i * SIDE), row(i), columns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the unit does with a square, in plain loops over the packed panels.
    unsafe fn by_hand(s: &Square) {
        let value = |from: *const u16, at: usize| f32::from_bits((unsafe { *from.add(at) } as u32) << 16);
        for i in 0..SIDE {
            for j in 0..SIDE {
                let c = unsafe { &mut *s.c.offset(i as isize * s.c_rs).add(j) };
                let mut sum = if s.accumulate { *c } else { 0.0 };
                for step in 0..s.steps {
                    let (a, b) =
                        (step * SIDE * K + i / 16 * 512 + i % 16 * 32, step * SIDE * K + j / 16 * 512);
                    for p in 0..K {
                        sum += value(s.a, a + p) * value(s.b, b + p / 2 * 32 + j % 16 * 2 + p % 2);
                    }
                }
                *c = sum;
            }
        }
    }

    /// Multiplies small integers, which bf16 holds exactly, and compares exactly.
    fn check((m, k, n): (usize, usize, usize), a_columns: bool, b_columns: bool, multiplier: Multiplier) {
        let strides = |rows: usize, columns: usize, by_columns: bool| {
            if by_columns { (1, rows as isize + 1) } else { (columns as isize + 1, 1) }
        };
        let fill = |length: usize, times: usize| -> Vec<f32> {
            (0..length).map(|i| (i * times % 13) as f32 - 6.0).collect()
        };
        let (a_rs, a_cs) = strides(m, k, a_columns);
        let (b_rs, b_cs) = strides(k, n, b_columns);
        let (a, b) = (fill((m + 1) * (k + 1), 7), fill((k + 1) * (n + 1), 5));
        let c_rs = n as isize + 3;
        let mut c = vec![-77.0f32; m * c_rs as usize + 1];
        let (va, vb) =
            (View { from: a.as_ptr(), rs: a_rs, cs: a_cs }, View { from: b.as_ptr(), rs: b_rs, cs: b_cs });
        // SAFETY: the vectors above have room for the operands at these strides.
        unsafe { multiply((m, k, n), va, vb, (c.as_mut_ptr(), c_rs), &mut Scratch::new(), multiplier) };
        for i in 0..m {
            for j in 0..c_rs as usize {
                let got = c[i * c_rs as usize + j];
                let want = if j >= n {
                    -77.0
                } else {
                    (0..k).map(|p| unsafe { *va.at(i, p) * *vb.at(p, j) }).sum::<f32>()
                };
                assert_eq!(got, want, "{m}x{k}x{n} at {i},{j}");
            }
        }
    }

    fn check_all(multiplier: Multiplier) {
        let shapes = [
            (1, 1, 1),
            (32, 32, 32),
            (33, 31, 65),
            (5, 0, 7),
            (0, 4, 4),
            (64, 1030, 40),
            (520, 33, 34),
            (16, 600, 16),
        ];
        for shape in shapes {
            for (a_columns, b_columns) in [(false, false), (true, false), (false, true), (true, true)] {
                check(shape, a_columns, b_columns, multiplier);
            }
        }
    }

    #[test]
    fn panels_multiplied_by_hand_give_the_product() {
        check_all(by_hand);
    }

    #[test]
    fn the_unit_agrees_with_plain_loops_where_there_is_one() {
        if !Amx::available() {
            println!("skipped: no AMX");
            return;
        }
        check_all(on_unit);
    }
}
