//! Groups that start with a matrix product: bias, activation or scale while the product's block is in cache.
//!
//! The product is written where one of the results will be, block by block; the rest of the group then replaces
//! the block. A result of the product's own size must therefore be there, whole and contiguous.

use super::bind::Bound;
use super::cost;
use super::drive;
use super::kernel::Fused;
use super::shape::Shape;
use super::tile::Tiles;
use crate::context::Context;
use crate::isa::Level;
use crate::matmul::candidates::{in_blocks, product_at};
use crate::matmul::{Cut, Float, Gemm, Scratch, Walk, Way, finished, shared_out};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use steersman_core::cost::{Machine, Terms};
use steersman_core::expr::Output;
use steersman_core::{
    Address, DType, DeviceId, Io, Kernel, KernelError, NumericClass, Op, ParamList, Params, Ran, Refusal,
    Workload,
};

/// A product by one kind of code, and what follows it by the fused kernel of the same instruction set.
pub struct WithProduct {
    ctx: Context,
    level: Level,
    way: Way,
    name: String,
    product: Arc<dyn Kernel>,
    rest: Fused,
}

thread_local! {
    /// Tiles of the rest. The product's packed blocks are in the thread's other scratch at the same time.
    static TILES: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
}

impl WithProduct {
    /// On this instruction set, which the CPU must have.
    pub fn new(ctx: &Context, level: Level, way: Way) -> WithProduct {
        let product = in_blocks(ctx, way, level);
        let name = format!("{}+fused", product.name());
        WithProduct { ctx: ctx.clone(), level, way, name, product, rest: Fused::new(ctx, level) }
    }

    /// The result whose memory the product takes first.
    fn holder(&self, w: &Workload) -> Result<usize, Refusal> {
        let (Some(product), Some(expr)) = (w.product(), w.expr()) else {
            return Err(Refusal::new("it only runs fused groups that start with a matrix product"));
        };
        if expr.outputs().iter().any(|o| matches!(o, Output::Reduce { .. })) {
            return Err(Refusal::new("it does not reduce what follows a product"));
        }
        let size = product.dtype().size();
        let holds = |o: &steersman_core::Operand| o.is_contiguous() && o.dtype.size() == size;
        let found = w.outputs().iter().position(holds);
        found.ok_or_else(|| {
            Refusal::new("no result is contiguous with elements of the product's size to hold it")
        })
    }

    /// The operands of the product and those of the rest, with the product at `held`.
    fn addresses(w: &Workload, io: &Io<'_>, held: Address) -> ([Address; 2], SmallVec<[Address; 4]>) {
        let (a, b) = w.expr().and_then(|e| e.product()).map_or((0, 0), |(a, b, _)| (a as usize, b as usize));
        let others = (0..io.inputs.len()).filter(|&k| k != a && k != b).map(|k| io.inputs[k]);
        ([io.inputs[a], io.inputs[b]], std::iter::once(held).chain(others).collect())
    }

    unsafe fn floats<T: Float>(
        &self,
        product: &Workload,
        bound: &Bound<'_>,
        io: Io<'_>,
        threads: usize,
    ) -> Ran {
        let (batch, m, _, n) = product.matmul_dims().unwrap_or((0, 0, 0, 0));
        let entry = |b: usize| product_at::<T>(product, b, io);
        // Blocks are handed on by their place in a part, so that its rows stay in order.
        let cut = Cut { threads, walk: Walk::Along, upwards: false };
        shared_out(&self.ctx.team, batch, cut, entry, |b, g| {
            let at = (g.c as usize - entry(b).c as usize) / size_of::<T>();
            // SAFETY: parts write disjoint pieces of the results.
            unsafe { self.part(g, bound, b * m * n + at, n) }
        })
    }

    /// A part of the product on this thread, and what follows it; `first` is its first element's position in rows of
    /// `stride` elements.
    unsafe fn part<T: Float>(&self, g: &Gemm<T>, bound: &Bound<'_>, first: usize, stride: usize) {
        TILES.with(|tiles| {
            let (mut kept, mut own) = (tiles.try_borrow_mut().ok(), Scratch::new());
            let scratch: &mut Scratch = kept.as_deref_mut().unwrap_or(&mut own);
            let mut tiles = Tiles::new(bound, scratch, g.m * g.n);
            let mut done = |rows: Range<usize>, columns: Range<usize>| {
                let at = |row: usize, column: usize| first + row * stride + column;
                // SAFETY: the block is final, and nobody else's.
                unsafe {
                    if columns.len() == stride {
                        drive::arrays(&mut tiles, at(rows.start, 0)..at(rows.end, 0));
                    } else {
                        rows.for_each(|r| {
                            drive::arrays(&mut tiles, at(r, columns.start)..at(r, columns.end))
                        });
                    }
                }
            };
            // SAFETY: by the caller's word.
            unsafe { finished(self.way, self.level, &self.ctx.host, g, &mut done) }
        });
    }
}

impl Kernel for WithProduct {
    fn name(&self) -> &str {
        &self.name
    }

    fn revision(&self) -> u32 {
        3
    }

    fn device(&self) -> DeviceId {
        self.ctx.device
    }

    fn handles(&self, op: Op) -> bool {
        matches!(op, Op::Fused(_))
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        let of = |k: &dyn Kernel, w: Option<&Workload>| w.map_or(NumericClass::Exact, |w| k.numerics(w));
        of(&*self.product, w.product()).max(of(&self.rest, w.behind_product()))
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        self.holder(w)?;
        let (Some(product), Some(rest)) = (w.product(), w.behind_product()) else { return Ok(()) };
        self.product.supports(product)?;
        self.rest.supports(rest)
    }

    fn params(&self, w: &Workload) -> ParamList {
        self.ctx.thread_params(w)
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let (Some(product), Some(rest)) = (w.product(), w.behind_product()) else {
            return Terms::launch(f64::INFINITY);
        };
        let after = rest.expr().map(|e| self.rest.program(e));
        let Some(Ok(program)) = after else { return Terms::launch(f64::INFINITY) };
        let threads = p.threads.into();
        let after = cost::behind_product(rest, program, threads, machine, self.rest.rates());
        self.product.terms(product, Params::threads(threads), machine).and(after)
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let fail = |why: Refusal| KernelError::Failed(format!("{} does not take {w}: {why}", self.name));
        self.supports(w).map_err(fail)?;
        let holder = self.holder(w).map_err(fail)?;
        let (Some(product), Some(rest)) = (w.product(), w.behind_product()) else {
            return Err(fail(Refusal::new("it has no product")));
        };
        if io.in_place() {
            return Err(fail(Refusal::new(
                "its results replace an operand, which blocks to come still need",
            )));
        }
        let expr = rest.expr().ok_or_else(|| fail(Refusal::new("it has no expression")))?;
        if io.scalars.len() < expr.scalars().len() || io.more.len() + 1 < w.outputs().len() {
            return Err(fail(Refusal::new("scalars or outputs are missing")));
        }
        let shape = Shape::new(rest).map_err(fail)?;
        if shape.elements == 0 {
            return Ok(Ran::Clean);
        }
        let program = self.rest.program(expr).map_err(fail)?;
        let held = if holder == 0 { io.output } else { io.more[holder - 1] };
        let (factors, operands) = WithProduct::addresses(w, &io, held);
        let rest_io = Io { inputs: &operands, ..io };
        let bound = Bound::new(program, &shape, rest, rest_io, self.level, self.rest.nearest(), false);
        let product_io = Io::new(&factors, held);
        let threads = p.threads.max(1) as usize;
        // SAFETY: `io` is valid for the workload by contract; the product's result is as large as the holder.
        unsafe {
            match product.dtype() {
                DType::F32 => Ok(self.floats::<f32>(product, &bound, product_io, threads)),
                DType::F64 => Ok(self.floats::<f64>(product, &bound, product_io, threads)),
                d => Err(fail(Refusal::new(format!("it does not multiply {d}")))),
            }
        }
    }
}
