//! Every way to multiply, on every instruction set and with blocks of any size, agrees with a plain f64
//! product: what the kernels are made of.

use proptest::prelude::*;
use steersman_cpu::isa::Level;
use steersman_cpu::matmul::blas::{self, Blas};
use steersman_cpu::matmul::{
    Blocks, Element, Float, Gemm, Scratch, Walk, by_gemm_crate, by_matrixmultiply, gemv, naive, packed,
    small, split,
};

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Rows {
        pad: usize,
    },
    Columns {
        pad: usize,
    },
    /// Neither rows nor columns contiguous.
    Sparse,
    /// Rows stored last to first.
    Reversed,
}

/// A matrix in one buffer, with what lies between its elements poisoned.
struct Matrix<T> {
    data: Vec<T>,
    start: usize,
    rs: isize,
    cs: isize,
}

impl<T: Float> Matrix<T> {
    fn new(rows: usize, columns: usize, layout: Layout, mut value: impl FnMut(usize, usize) -> f64) -> Self {
        let (rs, cs) = match layout {
            Layout::Rows { pad } => (columns + pad, 1),
            Layout::Columns { pad } => (1, rows + pad),
            Layout::Sparse => (2 * columns + 1, 2),
            Layout::Reversed => (columns, 1),
        };
        let length = rows * rs + columns * cs + 1;
        let mut data = vec![T::from_f64(f64::NAN); length];
        let reversed = matches!(layout, Layout::Reversed) && rows > 0;
        let (start, rs) = if reversed { ((rows - 1) * rs, -(rs as isize)) } else { (0, rs as isize) };
        for i in 0..rows {
            for j in 0..columns {
                let at = start as isize + i as isize * rs + (j * cs) as isize;
                data[at as usize] = T::from_f64(value(i, j));
            }
        }
        Matrix { data, start, rs, cs: cs as isize }
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        self.data[(self.start as isize + i as isize * self.rs + j as isize * self.cs) as usize].into()
    }

    fn ptr(&self) -> *const T {
        self.data[self.start..].as_ptr()
    }
}

/// Small numbers that differ everywhere and need rounding.
fn value(seed: u64, i: usize, j: usize) -> f64 {
    let x = (seed ^ (i as u64) << 20 ^ j as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x >> 40) as f64 / (1u64 << 23) as f64 - 1.0
}

struct Case<T> {
    m: usize,
    k: usize,
    n: usize,
    a: Matrix<T>,
    b: Matrix<T>,
    c_pad: usize,
}

impl<T: Float> Case<T> {
    fn new((m, k, n): (usize, usize, usize), la: Layout, lb: Layout, c_pad: usize) -> Self {
        let a = Matrix::new(m, k, la, |i, j| value(1, i, j));
        let b = Matrix::new(k, n, lb, |i, j| value(2, i, j));
        Case { m, k, n, a, b, c_pad }
    }

    /// Runs `product` into a poisoned `c`, compares it with the f64 product, and checks that nothing
    /// between `c`'s rows was written.
    fn check(&self, what: &str, product: impl FnOnce(&Gemm<T>)) {
        let Case { m, k, n, .. } = *self;
        let c_rs = n + self.c_pad;
        let poison = T::from_f64(-77.0);
        let mut c = vec![poison; m * c_rs + 1];
        product(&Gemm {
            m,
            k,
            n,
            a: self.a.ptr(),
            a_rs: self.a.rs,
            a_cs: self.a.cs,
            b: self.b.ptr(),
            b_rs: self.b.rs,
            b_cs: self.b.cs,
            c: c.as_mut_ptr(),
            c_rs: c_rs as isize,
        });
        let eps = if size_of::<T>() == 4 { f32::EPSILON as f64 } else { f64::EPSILON };
        for i in 0..m {
            for j in 0..c_rs {
                let got: f64 = c[i * c_rs + j].into();
                if j >= n {
                    assert_eq!(got, -77.0, "{what}: wrote past row {i} of {m}x{k}x{n}");
                    continue;
                }
                let (mut want, mut scale) = (0.0, 0.0);
                for p in 0..k {
                    let term = self.a.get(i, p) * self.b.get(p, j);
                    want += term;
                    scale += term.abs();
                }
                let close = (got - want).abs() <= eps * (k as f64 + 2.0) * scale
                    || (want.is_nan() && got.is_nan())
                    || got == want;
                assert!(close, "{what}: {m}x{k}x{n} at {i},{j}: {got} instead of {want}");
            }
        }
        assert!(c[m * c_rs] == poison, "{what}: wrote past the end of {m}x{k}x{n}");
    }

    fn check_all(&self) {
        // SAFETY (here and below): `check` describes buffers of the right size.
        self.check("naive", |g| unsafe { naive(g) });
        self.check("gemm crate", |g| unsafe { by_gemm_crate(g) });
        self.check("matrixmultiply", |g| unsafe { by_matrixmultiply(g) });
        for level in Level::present() {
            let name = |kernel: &str| format!("{kernel} {}", level.name());
            self.check(&name("small"), |g| unsafe { small(level, g) });
            let mut scratch = Scratch::new();
            for blocks in [
                Blocks::for_caches(32 << 10, 512 << 10, 2 << 20, size_of::<T>(), level),
                Blocks { mc: 13, kc: 7, nc: 33 },
            ] {
                self.check(&name("packed"), |g| unsafe { packed(level, g, blocks, &mut scratch) });
            }
            if self.m == 1 || self.n == 1 {
                self.check(&name("gemv"), |g| unsafe { gemv(level, g) });
            }
            for parts in [2, 3] {
                self.check(&name("split"), |g| {
                    for part in split(g, parts, 8, Walk::Down) {
                        unsafe { small(level, &part) };
                    }
                });
            }
        }
    }
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![
        Just(Layout::Rows { pad: 0 }),
        (1usize..9).prop_map(|pad| Layout::Rows { pad }),
        Just(Layout::Columns { pad: 0 }),
        (1usize..9).prop_map(|pad| Layout::Columns { pad }),
        Just(Layout::Sparse),
        Just(Layout::Reversed),
    ]
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![2 => 0usize..4, 6 => 1usize..70, 1 => 70usize..140]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_f32_kernel_agrees_with_the_reference(
        m in size(), k in size(), n in size(), la in layout(), lb in layout(), pad in 0usize..5,
    ) {
        Case::<f32>::new((m, k, n), la, lb, pad).check_all();
    }

    #[test]
    fn every_f64_kernel_agrees_with_the_reference(
        m in size(), k in size(), n in size(), la in layout(), lb in layout(), pad in 0usize..5,
    ) {
        Case::<f64>::new((m, k, n), la, lb, pad).check_all();
    }

    #[test]
    fn one_row_or_one_column_agrees_with_the_reference(
        long in 1usize..300, k in 0usize..300, row in any::<bool>(), la in layout(), lb in layout(), pad in 0usize..3,
    ) {
        let (m, n) = if row { (1, long) } else { (long, 1) };
        Case::<f32>::new((m, k, n), la, lb, pad).check_all();
        Case::<f64>::new((m, k, n), la, lb, pad).check_all();
    }

    #[test]
    fn the_parts_of_a_split_cover_every_output_once(
        m in 0usize..200, n in 0usize..200, parts in 1usize..9, grain in 1usize..40,
        along in proptest::bool::ANY,
    ) {
        let mut c = vec![0u8; m * n];
        let g = Gemm {
            m, k: 1, n, a: [0u8; 1].as_ptr(), a_rs: 0, a_cs: 0, b: [0u8; 1].as_ptr(), b_rs: 0, b_cs: 0,
            c: c.as_mut_ptr(), c_rs: n as isize,
        };
        let mut count = 0;
        for part in split(&g, parts, grain, if along { Walk::Along } else { Walk::Down }) {
            count += 1;
            for i in 0..part.m {
                for j in 0..part.n {
                    // SAFETY: a part lies inside c.
                    unsafe { *part.c.offset(i as isize * part.c_rs + j as isize) += 1 };
                }
            }
        }
        prop_assert!(count <= parts);
        prop_assert!(c.iter().all(|&times| times == 1));
    }
}

#[test]
fn products_larger_than_a_block_agree_with_the_reference() {
    let (rows, columns) = (Layout::Rows { pad: 0 }, Layout::Columns { pad: 3 });
    for (la, lb) in [(rows, rows), (columns, rows), (rows, columns), (columns, columns)] {
        Case::<f32>::new((65, 700, 130), la, lb, 0).check_all();
        Case::<f64>::new((130, 401, 67), la, lb, 1).check_all();
        Case::<f32>::new((8, 1024, 96), la, lb, 0).check_all();
        Case::<f32>::new((71, 150, 7), la, lb, 2).check_all();
        Case::<f64>::new((13, 150, 71), la, lb, 2).check_all();
    }
}

#[test]
fn operands_beyond_the_caches_agree_with_the_reference() {
    // Large b with few and with many rows of c; then a c that is written past the caches.
    let rows = Layout::Rows { pad: 0 };
    Case::<f32>::new((5, 530, 515), rows, rows, 0).check_all();
    Case::<f64>::new((41, 400, 350), rows, rows, 1).check_all();
    // A b that comes from afar, and a c that is kept in one piece and in two meanwhile.
    Case::<f64>::new((5, 700, 1201), rows, rows, 1).check_all();
    Case::<f32>::new((31, 660, 2410), rows, rows, 3).check_all();
    let case = Case::<f32>::new((1026, 2, 8208), rows, rows, 0);
    for level in Level::present() {
        let blocks = Blocks::for_caches(32 << 10, 512 << 10, 2 << 20, 4, level);
        // SAFETY: `check` describes buffers of the right size.
        case.check(level.name(), |g| unsafe { packed(level, g, blocks, &mut Scratch::new()) });
    }
}

#[test]
fn nan_and_infinity_reach_the_output_even_times_zero() {
    let mut case = Case::<f32>::new((9, 20, 35), Layout::Rows { pad: 0 }, Layout::Rows { pad: 0 }, 0);
    case.a.data[3 * 20 + 7] = f32::NAN;
    case.a.data[5 * 20 + 2] = f32::INFINITY;
    case.a.data[6 * 20 + 2] = 0.0;
    case.b.data[2 * 35 + 4] = f32::INFINITY;
    case.b.data[7 * 35 + 30] = 0.0;
    case.check_all();
}

#[test]
fn integers_wrap_in_the_reference() {
    fn wraps<T: Element>(a: T, b: T, want: T) {
        let mut c = b;
        let g =
            Gemm { m: 1, k: 1, n: 1, a: &a, a_rs: 1, a_cs: 1, b: &b, b_rs: 1, b_cs: 1, c: &mut c, c_rs: 1 };
        // SAFETY: one element each.
        unsafe { naive(&g) };
        assert_eq!(c, want);
    }
    wraps(i32::MAX, 2, -2);
    wraps(i64::MAX, 2, -2);
}

/// Lines shorter than a register, one after the other, go several at a time.
#[test]
fn a_few_columns_times_a_vector_agree_with_the_reference() {
    for (k, m) in (1..=10).flat_map(|k| [1, 2, 15, 16, 33, 622].map(|m| (k, m))) {
        for la in [Layout::Rows { pad: 0 }, Layout::Rows { pad: 1 }, Layout::Columns { pad: 0 }] {
            for lb in [Layout::Rows { pad: 0 }, Layout::Sparse] {
                Case::<f32>::new((m, k, 1), la, lb, 0).check_all();
                Case::<f64>::new((m, k, 1), la, lb, 1).check_all();
            }
        }
    }
}

#[test]
fn an_installed_blas_agrees_with_the_reference_or_refuses() {
    let path = std::env::var_os("STEERSMAN_TEST_BLAS");
    let Some(blas) = Blas::find(path.as_deref().map(std::path::Path::new)) else {
        println!("skipped: no BLAS library");
        return;
    };
    blas.set_threads(1);
    let layouts = [
        Layout::Rows { pad: 0 },
        Layout::Rows { pad: 3 },
        Layout::Columns { pad: 0 },
        Layout::Sparse,
        Layout::Reversed,
    ];
    for (la, lb) in layouts.into_iter().flat_map(|la| layouts.map(|lb| (la, lb))) {
        for shape in [(7, 5, 9), (1, 8, 3), (4, 0, 4), (33, 1, 2)] {
            let case = Case::<f32>::new(shape, la, lb, 2);
            case.check("blas", |g| match blas::accepts(g) {
                // SAFETY: `check` describes buffers of the right size.
                Ok(()) => unsafe { blas.sgemm(g) }.expect("accepted just now"),
                Err(_) => unsafe { naive(g) },
            });
            let case = Case::<f64>::new(shape, la, lb, 2);
            case.check("blas", |g| match blas::accepts(g) {
                // SAFETY: `check` describes buffers of the right size.
                Ok(()) => unsafe { blas.dgemm(g) }.expect("accepted just now"),
                Err(_) => unsafe { naive(g) },
            });
        }
    }
}
