//! The products as candidates: who can do what, on how many threads, at what counted cost.

use super::blas::{self, Blas};
use super::short::is_short;
use super::work::Effort;
use super::{
    Blocks, Cut, Element, Float, Gemm, Scratch, Walk, Way, amx, by_gemm_crate, by_matrixmultiply, gemv,
    naive, on_matrix_unit, packed, padded_flops, plain_halves, shared_out, small, whole, widened,
};
use crate::context::Context;
use crate::isa::Level;
use crate::map::narrow::Half;
use std::path::Path;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms, Traffic};
use steersman_core::{
    DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal, Workload,
};

/// Every way to multiply matrices here, plainest first.
pub fn kernels(ctx: &Context, blas_path: Option<&Path>) -> Vec<Arc<dyn Kernel>> {
    let mut list = vec![product(ctx, "cpu/matmul-naive".into(), How::Naive)];
    for level in Level::present() {
        list.push(product(ctx, format!("cpu/gemv-{}", level.name()), How::Gemv(level)));
        list.push(product(ctx, format!("cpu/matmul-small-{}", level.name()), How::Small(level)));
        list.push(product(ctx, format!("cpu/matmul-packed-{}", level.name()), How::Packed(level)));
    }
    let best = Level::best();
    list.push(product(ctx, format!("cpu/matmul-widened-{}", best.name()), How::Widened(best)));
    list.push(product(ctx, format!("cpu/matmul-whole-{}", best.name()), How::Whole(best)));
    list.push(product(ctx, "cpu/matrixmultiply".into(), How::MatrixMultiply));
    list.push(product(ctx, "cpu/gemm".into(), How::GemmCrate));
    if let Some(found) = Blas::find(blas_path) {
        let name = format!("cpu/{}", found.name().to_lowercase().replace(' ', "-"));
        list.push(product(ctx, name, How::Blas(Arc::new(found))));
    }
    if amx::Amx::available() {
        list.push(product(ctx, "cpu/amx-bf16".into(), How::Amx));
    }
    list
}

fn product(ctx: &Context, name: String, how: How) -> Arc<dyn Kernel> {
    Arc::new(Product { ctx: ctx.clone(), name, how })
}

/// The kernel that multiplies one block after another `way`: what it takes and what that costs.
pub(crate) fn in_blocks(ctx: &Context, way: Way, level: Level) -> Arc<dyn Kernel> {
    match way {
        Way::Small => product(ctx, format!("cpu/matmul-small-{}", level.name()), How::Small(level)),
        Way::Packed => product(ctx, format!("cpu/matmul-packed-{}", level.name()), How::Packed(level)),
    }
}

/// The plainest way, which takes every type.
pub(crate) fn reference(ctx: &Context) -> Arc<dyn Kernel> {
    product(ctx, "cpu/matmul-naive".into(), How::Naive)
}

#[derive(Clone)]
enum How {
    Naive,
    Gemv(Level),
    Small(Level),
    Packed(Level),
    /// 16-bit floats, multiplied as f32.
    Widened(Level),
    /// Whole numbers.
    Whole(Level),
    GemmCrate,
    MatrixMultiply,
    Blas(Arc<Blas>),
    Amx,
}

impl How {
    fn multiplies(&self, d: DType) -> bool {
        match self {
            How::Naive => !matches!(d, DType::U8 | DType::Bool),
            How::Widened(_) => matches!(d, DType::F16 | DType::BF16),
            How::Whole(_) => matches!(d, DType::I32 | DType::U32 | DType::I64),
            How::Amx => matches!(d, DType::F32 | DType::BF16),
            _ => matches!(d, DType::F32 | DType::F64),
        }
    }
}

struct Product {
    ctx: Context,
    name: String,
    how: How,
}

/// The variant of the packed product with blocks half as deep and half as high.
const SHORT_BLOCKS: u16 = 1;
/// Rows, and bytes of a row of the result, up to which packing is not weighed.
const FEW_ROWS: usize = 27;
const NARROW: usize = 192;
/// Bytes of a page of memory, the least there is.
const PAGE: usize = 4096;
/// Beyond this plain loops are ten times behind and more: not worth an estimate.
const MOST_NAIVE_FLOPS: f64 = 3e5;

impl Kernel for Product {
    fn name(&self) -> &str {
        &self.name
    }

    fn revision(&self) -> u32 {
        15
    }

    fn device(&self) -> DeviceId {
        self.ctx.device
    }

    fn handles(&self, op: Op) -> bool {
        op == Op::MatMul
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        match self.how {
            How::Naive | How::Whole(_) => NumericClass::Exact,
            How::Amx if w.dtype() != DType::BF16 => NumericClass::Relaxed,
            _ => NumericClass::Reassociated,
        }
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        if w.op() != Op::MatMul {
            return Err(Refusal::new("only multiplies matrices"));
        }
        let out = w.output();
        let r = out.rank();
        if out.dims[r - 1] > 1 && out.strides[r - 1] != 1 {
            return Err(Refusal::new("the result's rows must be contiguous"));
        }
        let d = w.dtype();
        let (_, m, _, n) = w.matmul_dims().unwrap_or((0, 0, 0, 0));
        match &self.how {
            // Who asks for exact results has nothing else.
            How::Naive if w.flops() > MOST_NAIVE_FLOPS && w.numerics() > NumericClass::Exact => {
                Err(Refusal::new("plain loops are only offered up to 0.3 Mflop: far behind beyond"))
            }
            how if !how.multiplies(d) => Err(Refusal::new(format!("does not multiply {d}"))),
            How::Gemv(_) if m != 1 && n != 1 => Err(Refusal::new("only for one row or one column of result")),
            How::Packed(_) if m < 4 || n < 4 => Err(Refusal::new("packing a few rows or columns never pays")),
            How::Blas(_) => {
                // SAFETY: only the strides are looked at.
                let g = product_at::<f32>(
                    w,
                    0,
                    Io::new(&[steersman_core::Address(0); 2], steersman_core::Address(0)),
                );
                blas::accepts(&g).map_err(|why| Refusal::new(why.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn outdone(&self, w: &Workload) -> Option<&'static str> {
        let (_, m, k, n) = w.matmul_dims().unwrap_or((0, 0, 0, 0));
        let few = |x: usize| (2..8).contains(&x);
        let (size, plain) = (w.dtype().size(), w.inputs().iter().all(|o| o.is_contiguous()));
        match self.how {
            // Of 859 products with rows and columns to pack it was quickest in one of those (1104×20×36 f32, by 10%).
            How::Packed(_) if plain && (m <= FEW_ROWS || n.saturating_mul(size) <= NARROW) => {
                Some("packing so few rows or columns takes longer than it saves")
            }
            // Of 14 on a Zen 5 it was ahead in none, and up to 2.7 times behind.
            How::Packed(_) if k == 1 => Some("single products are lines, which need no packing"),
            // 59×2×5 f32 takes 0.28 µs packed and 0.07 otherwise, but 528×2×322 f64 9.2 and 16.7.
            How::Packed(_) if k < 4 && m.saturating_mul(n) < 6_000 => {
                Some("packing for a few steps does not pay yet")
            }
            // Of 88 products with rows and columns to pack none was quickest by a narrower one.
            How::Packed(level) if level < Level::best() => {
                Some("a wider instruction set packs the same here")
            }
            // 7×300×22 f32 takes 11.9 µs, 512×6×4 3.4: up to ten times what our own take.
            How::GemmCrate | How::MatrixMultiply if few(m) || few(n) => {
                Some("it computes a few rows or columns one by one")
            }
            // Of 15 products with a vector on a Zen 5 it was ahead in none; 1×623×65 f32 takes 2.3 µs, 1.0 by our own.
            How::GemmCrate | How::MatrixMultiply if m == 1 || n == 1 => {
                Some("products with a vector have kernels of their own")
            }
            // Of 29 with OpenBLAS on a Xeon it was ahead of our own by 5% at most, and up to five times behind.
            How::Blas(_) if plain && (m == 1 || n == 1) => {
                Some("products with a vector have kernels of their own")
            }
            // Of 18 products of 1 to 7 steps it was quickest in none, and up to 5 times behind.
            How::GemmCrate | How::MatrixMultiply if k < 8 => Some("its steps are made for many at once"),
            // Of 88 products on a Zen 5 and 337 on a Xeon it was quickest in none; 867×8×2468 f32 was left to it at 1.7 times the
            // best, 87×216×2256 at 1.35.
            How::MatrixMultiply if Level::best() == Level::Avx512 => {
                Some("with AVX-512 other kernels are always ahead of it")
            }
            How::MatrixMultiply if k < 128 => Some("other kernels are ahead of it in shallow products"),
            // Of 63 rows times a matrix it was ahead by 5% at most, of 57 matrices of 8 columns and more times a column by 4%.
            How::Small(_) if plain && (m == 1 || n == 1 && k >= 2) => {
                Some("products with a vector have kernels of their own")
            }
            // 2×1077×4 f32 takes 0.8 µs in vectors of four, 1.5 in any wider.
            How::Small(Level::Baseline) if n.saturating_mul(size) <= Level::Baseline.vector_bytes() => None,
            How::Small(level) | How::Gemv(level) => level.outdone(),
            _ => None,
        }
    }

    fn narrower(&self) -> Option<String> {
        match self.how {
            How::Small(level) | How::Gemv(level) | How::Packed(level) => level.narrower(&self.name),
            _ => None,
        }
    }

    fn params(&self, w: &Workload) -> ParamList {
        let threads = match self.how {
            How::Naive => std::iter::once(Params::SERIAL).collect(),
            _ => self.ctx.thread_params(w),
        };
        match self.how {
            // Shorter blocks fit a cache that is shared or smaller than it says; where one block is as deep as the product they
            // would be the same. (Of 275 such pairs on a Zen 5 shorter ones were ahead of all others by 1% at most.)
            How::Packed(level) if level > Level::Baseline && self.is_deep(w, level) => {
                threads.iter().flat_map(|p| [*p, Params { variant: SHORT_BLOCKS, ..*p }]).collect()
            }
            _ => threads,
        }
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let (batch, m, k, n) = w.matmul_dims().unwrap_or((0, 0, 0, 0));
        // A column of single products is computed as a row.
        let (m, n) = if matches!(self.how, How::Gemv(_)) && k == 1 && n == 1 { (1, m) } else { (m, n) };
        let size = w.dtype().size();
        let short = matches!(self.how, How::Gemv(_)) && is_short(k, n) && w.inputs()[0].is_contiguous();
        let share = 1.0 / p.threads as f64;
        let level = self.level();
        let element = if size == 8 { 8 } else { 4 };
        let effort = Effort::of(level, element, m, k, n);
        let (level, flops) = match self.how {
            // One element at a time: about a fifteenth of what vectors reach.
            How::Naive => (level, 30.0 * (m * n) as f64 * k as f64),
            // Bound by what it reads and writes of `c` and `b`.
            How::Whole(_) => (level, 8.0 * (m * n) as f64 * k as f64),
            // Each step takes shuffles from so many registers.
            How::Gemv(_) if short => (level, 2.0 * m as f64 * (k * k) as f64),
            How::Gemv(_) => (level, padded_flops(level, size, m, k, n)),
            _ => (effort.level, effort.multiply_adds * (2 * effort.level.vector_bytes() / element) as f64),
        };
        let (flops, tiles) = (flops * batch as f64, if short { 0.0 } else { effort.tiles } * batch as f64);
        let bytes = w.bytes();
        let at = machine
            .streams(bytes, Traffic::Read, p.threads as usize)
            .map(|(share, rate)| bytes * share / rate);
        let packs = match self.how {
            How::Packed(_) | How::GemmCrate | How::MatrixMultiply | How::Blas(_) | How::Amx => {
                ((m * k + k * n) * batch * size) as f64 * (1e-10 * share)
            }
            // Operands there and results back, and what is then packed.
            How::Widened(_) => ((m * k + k * n + m * n) * batch) as f64 * (0.5e-9 * share),
            _ if short => 0.0,
            _ => (m * batch) as f64 * (2e-9 * share),
        };
        let last = match self.how {
            // Read where it lies, a wide second operand has every piece of a row on another page.
            How::Small(_) if n * size >= PAGE / 2 => tiles * k as f64 * (4e-9 * share),
            // Columns past the last whole vector are written one by one: 512×6×16 f32 takes 1.9 µs, ×17 4.1, ×31 5.7.
            How::GemmCrate | How::MatrixMultiply => {
                let tail = n & (self.level().vector_bytes() / element - 1);
                (m * batch * if tail > 0 { 16 + tail } else { 0 }) as f64 * (0.2e-9 * share)
            }
            _ => 0.0,
        };
        Terms::launch(20e-9 * batch.max(1) as f64 + machine.handoff(p.threads as usize))
            .and(flops * share / machine.peak(level.name(), element, level.assumed_peak()))
            .and(tiles * (4e-9 * share))
            .and(packs)
            .and(at[0] + at[1])
            .and(at[2])
            .and(at[3])
            .and(last)
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        // SAFETY: the caller's promise is passed on; the element type is the workload's.
        unsafe {
            match w.dtype() {
                DType::F32 => self.floats::<f32>(w, p, io, |blas, g| blas.sgemm(g)),
                DType::F64 => self.floats::<f64>(w, p, io, |blas, g| blas.dgemm(g)),
                DType::I32 => Ok(self.whole::<i32>(w, p, io)),
                DType::U32 => Ok(self.whole::<u32>(w, p, io)),
                DType::I64 => Ok(self.whole::<i64>(w, p, io)),
                DType::F16 => Ok(self.halves(w, p, io, Half::F16)),
                DType::BF16 => Ok(self.halves(w, p, io, Half::BF16)),
                d => Err(KernelError::Failed(format!("matmul of {d} was refused and run all the same"))),
            }
        }
    }
}

impl Product {
    /// Whether one of the shorter blocks does not hold all steps of a product.
    fn is_deep(&self, w: &Workload, level: Level) -> bool {
        let depth = w.matmul_dims().map_or(0, |(_, _, k, _)| k);
        depth > Blocks::for_host(&self.ctx.host, w.dtype().size(), level).shorter().kc
    }

    fn level(&self) -> Level {
        match self.how {
            How::Gemv(l) | How::Small(l) | How::Packed(l) | How::Widened(l) | How::Whole(l) => l,
            How::Naive => Level::Baseline,
            _ => Level::best(),
        }
    }

    fn walk(&self) -> Walk {
        match self.how {
            How::Packed(_) | How::GemmCrate => Walk::Along,
            _ => Walk::Down,
        }
    }

    unsafe fn floats<T: Float>(
        &self,
        w: &Workload,
        p: Params,
        io: Io<'_>,
        blas: impl Fn(&Blas, &Gemm<T>) -> Result<(), blas::Refused>,
    ) -> Result<Ran, KernelError> {
        let (batch, ..) = w.matmul_dims().unwrap_or((0, 0, 0, 0));
        let threads = p.threads.max(1) as usize;
        let entry = |b: usize| product_at::<T>(w, b, io);
        if let How::Blas(lib) = &self.how {
            lib.set_threads(threads);
            for b in 0..batch {
                blas(lib, &entry(b)).map_err(|why| KernelError::Failed(why.to_string()))?;
            }
            return Ok(Ran::Clean);
        }
        // SAFETY: the caller's promise; parts write disjoint pieces of the result.
        Ok(self.shared_out(w, p, io, |g: &Gemm<T>| unsafe { self.one(g, p.variant) }))
    }

    unsafe fn whole<T: Element>(&self, w: &Workload, p: Params, io: Io<'_>) -> Ran {
        self.shared_out(w, p, io, |g: &Gemm<T>| match self.how {
            // SAFETY: the caller's promise; a level is only offered where the CPU has it.
            How::Whole(level) => unsafe { whole(level, g) },
            _ => unsafe { naive(g) },
        })
    }

    unsafe fn halves(&self, w: &Workload, p: Params, io: Io<'_>, half: Half) -> Ran {
        self.shared_out(w, p, io, |g: &Gemm<u16>| match self.how {
            // SAFETY: as above; the matrix unit is only offered where there is one.
            How::Widened(level) => unsafe {
                widened(level, g, half, Blocks::for_host(&self.ctx.host, size_of::<f32>(), level));
            },
            How::Amx => unsafe { on_matrix_unit(g) },
            _ => unsafe { plain_halves(g, half) },
        })
    }

    /// Has each of so many threads compute its part with `one`.
    fn shared_out<T: Send + Sync>(
        &self,
        w: &Workload,
        p: Params,
        io: Io<'_>,
        one: impl Fn(&Gemm<T>) + Sync,
    ) -> Ran {
        let (batch, ..) = w.matmul_dims().unwrap_or((0, 0, 0, 0));
        let threads = p.threads.max(1) as usize;
        let cut =
            Cut { threads, walk: self.walk(), upwards: matches!(self.how, How::Packed(_) | How::Small(_)) };
        shared_out(&self.ctx.team, batch, cut, |b| product_at::<T>(w, b, io), |_, g| one(g))
    }

    /// One product on this thread.
    unsafe fn one<T: Float>(&self, g: &Gemm<T>, variant: u16) {
        // SAFETY: the caller's promise; a level is only offered where the CPU has it.
        unsafe {
            match &self.how {
                How::Naive | How::Blas(_) | How::Widened(_) | How::Whole(_) => naive(g),
                How::Gemv(level) if g.m == 1 || g.n == 1 => gemv(*level, g),
                How::Gemv(level) | How::Small(level) => small(*level, g),
                How::Packed(level) => {
                    let mut blocks = Blocks::for_host(&self.ctx.host, size_of::<T>(), *level);
                    if variant == SHORT_BLOCKS {
                        blocks = blocks.shorter();
                    }
                    Scratch::with_local(|s| packed(*level, g, blocks, s));
                }
                How::GemmCrate => by_gemm_crate(g),
                How::MatrixMultiply => by_matrixmultiply(g),
                How::Amx => {
                    // Of floats only f32 is offered, so T is f32.
                    let g = &*(g as *const Gemm<T>).cast::<Gemm<f32>>();
                    Scratch::with_local(|s| amx::matmul_f32(g, s));
                }
            }
        }
    }
}

/// The product of batch entry `b`.
pub(crate) fn product_at<T>(w: &Workload, b: usize, io: Io<'_>) -> Gemm<T> {
    let (_, m, k, n) = w.matmul_dims().unwrap_or((0, 0, 0, 0));
    let offset = |o: &steersman_core::Operand| -> isize {
        let lead = o.rank() - 2;
        let mut rest = b;
        let mut at = 0;
        for i in (0..lead).rev() {
            at += (rest % o.dims[i]) as isize * o.strides[i];
            rest /= o.dims[i];
        }
        at
    };
    let (a, bb, c) = (&w.inputs()[0], &w.inputs()[1], w.output());
    let r = a.rank();
    Gemm {
        m,
        k,
        n,
        a: io.inputs[0].as_ptr::<T>().wrapping_offset(offset(a)),
        a_rs: a.strides[r - 2],
        a_cs: a.strides[r - 1],
        b: io.inputs[1].as_ptr::<T>().wrapping_offset(offset(bb)),
        b_rs: bb.strides[r - 2],
        b_cs: bb.strides[r - 1],
        c: io.output.as_mut_ptr::<T>().wrapping_offset(offset(c)),
        c_rs: c.strides[r - 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::threads::Team;

    #[test]
    fn a_product_whose_steps_no_number_holds_is_counted_all_the_same() {
        let ctx =
            Context { device: DeviceId(0), team: Arc::new(Team::new(2)), host: Arc::new(Host::detect()) };
        let w: Workload = "matmul f32 3000000x3000000 3000000x3000000".parse().unwrap();
        let weighed = kernels(&ctx, None).into_iter().filter(|k| k.supports(&w).is_ok());
        let weighed: Vec<_> = weighed.filter(|k| k.outdone(&w).is_none()).collect();
        assert!(weighed.iter().any(|k| k.name().starts_with("cpu/matmul-packed")));
        for k in &weighed {
            for p in k.params(&w) {
                let seconds = k.terms(&w, p, &Machine::default()).total();
                assert!(seconds > 1e6 && seconds.is_finite(), "{} {p}: {seconds}", k.name());
            }
        }
    }
}
