//! Element-wise operations by vector instructions.

use super::chunk::Task;
use super::cost::{self, Rate};
use super::narrow::Half;
use super::plan::{OUT, Plan};
use super::repeated;
use super::row::{RowFn, Rows};
use super::scalar::Scalar;
use super::stream;
use super::table::{self, Find};
use super::{class, supported};
use crate::context::Context;
use crate::isa::Level;
use crate::probe::halves_pay;
use std::mem::MaybeUninit;
use std::ops::Range;
use steersman_core::cost::{Machine, Terms, Traffic};
use steersman_core::{
    BinaryOp, DType, DeviceId, Io, Kernel, KernelError, Layout, NumericClass, Op, Operand, ParamList, Params,
    Ran, Refusal, TernaryOp, UnaryOp, Workload,
};

/// Up to this many bytes of a function that takes a while, single elements are quicker than a vector by way of the
/// stack: `cos` of two f32 takes 30 ns instead of 60, `exp` of five f64 50 instead of 70, `ln` of 13 f32 as long.
const SINGLE: usize = 48;
/// Elements of which that is so where parts of vectors are read and written by masks, and of functions of f32 that take longest one
/// by one: `exp` of four f32 takes 22 ns on a Zen 5 one by one, 17 in a vector, `tanh` of eight 81, and 26 by way of the stack.
const SINGLE_FEW: usize = 3;
/// The same of powers, f32 and f64: five f32 take 37 ns one by one and 47 in a vector, eight 48 and 47; four f64 55 and 68, six 73 and 68.
const SINGLE_POWERS: [usize; 2] = [6, 4];
/// The same of `erf` of f64, whose vectors are long.
const SINGLE_ERRORS: usize = 8;
/// The same of remainders: 19 of f32 take 126 ns one by one and 181 in vectors, 38 209 and 244, 32 of f64 about
/// as long.
const SINGLE_REMAINDERS: usize = 256;

/// Bytes of an operand up to which cheap ops take the narrowest vectors, which are there on every machine.
const TINY: usize = 64;

/// Element-wise operations compiled for one instruction set.
pub struct Simd {
    ctx: Context,
    level: Level,
    find: Find,
    /// The same for what takes no longer than reading it does. (Where a whole vector takes as long as its halves, loads and
    /// stores across cache lines are all that it adds: on a Zen 4 `add`, `sub`, `mul` and `div` of 163 shapes took 3% longer with
    /// AVX-512 than with AVX2 in the middle, on two threads 7%, a quarter of them 6 and 13% or more; on two threads none took less
    /// than 0.94.)
    find_cheap: Find,
    /// The same for what fits a few of the narrowest vectors: 2 ns sooner of 25, since no wide registers have to be cleared.
    find_tiny: Find,
    name: String,
    /// The name without streaming: both have the same rate in cache.
    rates: String,
    stream: bool,
    scalar: Scalar,
}

impl Simd {
    /// With results written through the cache.
    pub fn new(ctx: &Context, level: Level) -> Simd {
        let name = format!("cpu/map-{}", level.name());
        let cheap = if level == Level::Avx512 && halves_pay() { Level::Avx2 } else { level };
        Simd {
            ctx: ctx.clone(),
            level,
            find: table::of(level),
            find_cheap: table::of(cheap),
            find_tiny: table::of(Level::Baseline),
            rates: name.clone(),
            name,
            stream: false,
            scalar: Scalar::new(ctx),
        }
    }

    /// With results written past the cache.
    pub fn streaming(ctx: &Context, level: Level) -> Simd {
        let name = format!("cpu/map-stream-{}", level.name());
        Simd { name, stream: true, ..Simd::new(ctx, level) }
    }

    fn rows(&self, w: &Workload) -> Option<Rows> {
        let find = match w.op() {
            op if takes_long(op) => self.find,
            Op::Unary(_) | Op::Binary(_) if w.output().elements() * w.dtype().size() <= TINY => {
                self.find_tiny
            }
            _ => self.find_cheap,
        };
        find(w.op(), w.dtype())
    }

    /// Runs `part` over the elements, split among `threads`.
    fn split(&self, n: usize, threads: usize, part: &(dyn Fn(Range<usize>) + Sync)) -> Ran {
        if threads <= 1 {
            part(0..n);
            return Ran::Clean;
        }
        // 64 elements are a whole number of cache lines of every element type.
        let share = n.div_ceil(threads).next_multiple_of(64);
        let outcome = self.ctx.team.run(threads, &|i| {
            let start = (i * share).min(n);
            let end = (start + share).min(n);
            if start < end {
                part(start..end);
            }
        });
        if outcome.is_parallel() { Ran::Clean } else { Ran::Disturbed }
    }
}

/// A run in which each operand is contiguous, or one element throughout: one loop and its arguments.
struct Flat {
    row: RowFn,
    at: [*mut u8; 4],
    /// Bytes from one element to the next; 0 where there is only one.
    step: [usize; 4],
}

/// Bytes of results computed before they are written, where they go past the cache: the shorter the bursts of reading and
/// writing, the less they wait for one another. Of 96 million `f32` on two Zen 4 cores `add` moved 72 GB/s with bursts of
/// 256 bytes, 43 with 1 KiB, 62 with 2 KiB, 69 with 4 KiB.
const BURST: usize = 256;

// SAFETY: the pointers are only followed within the part of the output that a thread was given.
unsafe impl Sync for Flat {}

impl Flat {
    fn new(rows: &Rows) -> Flat {
        Flat { row: rows.each, at: [std::ptr::null_mut(); 4], step: [0; 4] }
    }

    /// Sets up the run of a workload, if it is one. In place: moved in larger pieces than it was written in, a `Flat` took
    /// 6 ns longer, as long as a dozen elements.
    #[inline]
    fn set(&mut self, w: &Workload, rows: &Rows, io: Io<'_>) -> bool {
        if !w.output().is_contiguous() {
            return false;
        }
        self.at[OUT] = io.output.as_mut_ptr();
        self.step[OUT] = w.output().dtype.size();
        let mut same = 0;
        for (k, o) in w.inputs().iter().enumerate() {
            self.at[k] = io.inputs[k].as_mut_ptr();
            if o.is_contiguous() {
                self.step[k] = o.dtype.size();
            } else if w.output().dims.iter().zip(&o.strides).all(|(&n, &s)| n == 1 || s == 0) {
                same |= 1 << k;
            } else {
                return false;
            }
        }
        let row = match same {
            0 => Some(rows.each),
            0b01 => rows.first_same,
            0b10 => rows.second_same,
            _ => None,
        };
        self.row = row.unwrap_or(rows.each);
        row.is_some()
    }

    /// # Safety
    /// The pointers must be good for the range, which no one else writes to.
    #[inline]
    unsafe fn run(&self, range: Range<usize>) {
        if self.at[..OUT].contains(&self.at[OUT]) {
            // SAFETY: passed on.
            return unsafe { self.run_in_place(range) };
        }
        let at = |k: usize| self.at[k].wrapping_add(range.start * self.step[k]);
        // SAFETY: by contract.
        unsafe { (self.row)(at(0), at(1), at(2), at(OUT), range.len()) }
    }

    /// The same with results written past the cache, by way of a few lines that stay in it.
    ///
    /// # Safety
    /// As for [`run`](Flat::run), and no input is the output.
    #[inline(never)]
    unsafe fn run_past_the_cache(&self, range: Range<usize>) {
        #[repr(align(64))]
        struct Lines {
            _room: [u8; BURST],
        }
        let mut lines = MaybeUninit::<Lines>::uninit();
        let lines = lines.as_mut_ptr().cast::<u8>();
        let piece = BURST / self.step[OUT];
        let at = |k: usize, i: usize| self.at[k].wrapping_add(i * self.step[k]);
        // SAFETY: by contract; the lines have room for a burst.
        unsafe {
            let head = at(OUT, range.start).align_offset(64) / self.step[OUT];
            let first = range.end.min(range.start + head);
            self.run(range.start..first);
            let mut i = first;
            while range.end - i >= piece {
                (self.row)(at(0, i), at(1, i), at(2, i), lines, piece);
                stream::copy(lines, at(OUT, i), BURST);
                i += piece;
            }
            self.run(i..range.end);
        }
        stream::fence();
    }

    /// Rows must not write where they read, so the elements to be replaced are read from a copy. That
    /// adds an eighth to an `add` of 4096 elements; letting the loop's own overlap check fail would cost it
    /// its vectors.
    ///
    /// # Safety
    /// As for [`run`](Flat::run).
    #[inline(never)]
    unsafe fn run_in_place(&self, range: Range<usize>) {
        const PIECE: usize = 512;
        let mut copy = MaybeUninit::<[u64; PIECE]>::uninit();
        let copy = copy.as_mut_ptr().cast::<u8>();
        for start in range.clone().step_by(PIECE) {
            let n = PIECE.min(range.end - start);
            let at = |k: usize| self.at[k].wrapping_add(start * self.step[k]);
            let input = |k: usize| if self.at[k] == self.at[OUT] { copy } else { at(k) };
            // SAFETY: by contract; elements have at most 8 bytes.
            unsafe {
                copy.copy_from_nonoverlapping(at(OUT), n * self.step[OUT]);
                (self.row)(input(0), input(1), input(2), at(OUT), n);
            }
        }
    }
}

/// Whether it is so few elements that all kernels would do them one by one, or as well might: who does nothing else is ahead of
/// those that hand it on. (`sin` of two f32 takes 18 ns there on a Zen 5, and 21; `add` of two f64 17 and 20; of four elements `sin` of
/// f32 18 and 23, `ln` of f64 22 and 30, `erf` of f64 21 and 43, of eight 28 and 40; where operands are laid out first, `add` and `div` of
/// 2×2 26 and 37, of 2×5 36 and 37 to 48, of 3×4 43 and 38 to 42.)
pub(super) fn is_single(w: &Workload) -> bool {
    use UnaryOp::{Cos, Erf, Exp, Expm1, Ln, Log1p, Sigmoid, Silu, Sin};
    let (n, double) = (w.output().elements(), w.dtype() == DType::F64);
    let most = match (w.op(), w.layout()) {
        (Op::Unary(Erf), Layout::Contiguous) if double => SINGLE_ERRORS,
        (Op::Unary(Sin | Cos), Layout::Contiguous) if !double => 4,
        (Op::Unary(Exp | Expm1 | Ln | Log1p | Sigmoid | Silu), Layout::Contiguous) if double => 4,
        (Op::Binary(BinaryOp::Pow), Layout::Contiguous) => SINGLE_POWERS[usize::from(double)],
        (op, Layout::Contiguous) if takes_long(op) => SINGLE_FEW,
        (Op::Unary(_) | Op::Binary(_), Layout::Contiguous) => 2,
        (Op::Binary(_), Layout::Strided) => 0,
        (op @ Op::Binary(_), _) if w.output().row() > 1 => match w.inputs().iter().all(is_flat) {
            true => 2,
            false if takes_long(op) => 4,
            false => 10,
        },
        _ => 0,
    };
    n <= most
}

/// Whether it is one run of elements, or one element throughout.
fn is_flat(o: &Operand) -> bool {
    o.is_contiguous() || o.dims.iter().zip(&o.strides).all(|(&n, &s)| n == 1 || s == 0)
}

/// Bytes up to which an op is done one element of this size at a time.
fn singles(op: Op, size: usize, level: Level) -> usize {
    use UnaryOp::{Erf, Gelu, Sigmoid, Silu, Tanh};
    match op {
        Op::Binary(BinaryOp::Rem) => SINGLE_REMAINDERS,
        _ if !takes_long(op) => 0,
        Op::Unary(Erf) if size == 8 => SINGLE_ERRORS * size,
        Op::Binary(BinaryOp::Pow) if level == Level::Avx512 && size >= 4 => {
            SINGLE_POWERS[usize::from(size == 8)] * size
        }
        _ if level == Level::Avx512 && size >= 4 => SINGLE_FEW * size,
        Op::Unary(Erf | Gelu | Sigmoid | Silu | Tanh) if size == 4 => SINGLE_FEW * size,
        _ => SINGLE,
    }
}

/// Whether its rows are not cheap, without looking for them: that would take as long as two elements.
fn takes_long(op: Op) -> bool {
    use UnaryOp::{Abs, Ceil, Floor, Neg, Not, Recip, Relu, Round, Rsqrt, Sign, Sqrt, Trunc};
    match op {
        Op::Unary(u) => {
            !matches!(u, Neg | Abs | Sqrt | Sign | Rsqrt | Recip | Relu | Floor | Ceil | Round | Trunc | Not)
        }
        Op::Binary(b) => matches!(b, BinaryOp::Rem | BinaryOp::Pow | BinaryOp::Atan2),
        _ => false,
    }
}

fn half(o: &Operand) -> Option<Half> {
    match o.dtype {
        DType::F16 => Some(Half::F16),
        DType::BF16 => Some(Half::BF16),
        _ => None,
    }
}

impl Kernel for Simd {
    fn name(&self) -> &str {
        &self.name
    }

    /// Before 2, what was learned of values that serve whole rows was kept with what was learned of rows that repeat, and
    /// writing past the caches was thought to go on beside computing.
    fn revision(&self) -> u32 {
        8
    }

    fn device(&self) -> DeviceId {
        self.ctx.device
    }

    fn handles(&self, op: Op) -> bool {
        op.is_elementwise()
    }

    fn numerics(&self, w: &Workload) -> NumericClass {
        class(w.op(), w.dtype(), self.level)
    }

    fn legality_is_fixed(&self) -> bool {
        true
    }

    fn supports(&self, w: &Workload) -> Result<(), Refusal> {
        supported(w)?;
        let Some(rows) = self.rows(w) else {
            return Err(Refusal::new(format!("it has no loop for {} on {}", w.op().name(), w.dtype())));
        };
        if self.stream && !w.output().is_contiguous() {
            return Err(Refusal::new("streaming stores need a contiguous output"));
        }
        if self.stream && w.output().bytes() < self.ctx.host.stream_from() {
            return Err(Refusal::new("the result is small enough to stay in the caches"));
        }
        // The caches take results while the next ones are computed, bursts do not: on two threads of a Xeon `exp` of 4.9
        // million f32 takes 956 µs through them and 1010 to 1130 past them (bursts of 512 bytes to 4 KiB), `tanh` of 2.1
        // million f64 1216 and 1490 to 1570, `atan2` of 1.6 million 1211 and 1390 to 1540.
        if self.stream && !rows.cheap {
            return Err(Refusal::new(
                "it computes for longer than it writes: the caches take results meanwhile",
            ));
        }
        Ok(())
    }

    fn outdone(&self, w: &Workload) -> Option<&'static str> {
        if is_single(w) { Some("so few elements are quicker one by one") } else { self.level.outdone() }
    }

    fn narrower(&self) -> Option<String> {
        self.level.narrower(&self.name)
    }

    fn params(&self, w: &Workload) -> ParamList {
        self.ctx.thread_params(w)
    }

    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms {
        let traffic = if self.stream { Traffic::Stream } else { Traffic::Copy };
        let rate = Rate { kernel: &self.rates, level: self.level, share: 1.0, traffic };
        cost::terms(w, p.threads.into(), machine, rate)
    }

    unsafe fn run(&self, w: &Workload, p: Params, io: Io<'_>) -> Result<Ran, KernelError> {
        let n = w.output().elements();
        if n == 0 {
            return Ok(Ran::Clean);
        }
        let size = w.output().dtype.size();
        if n * size <= singles(w.op(), size, self.level) {
            // SAFETY: passed on; it takes everything that this kernel takes.
            return unsafe { self.scalar.run(w, p, io) };
        }
        let Some(rows) = self.rows(w) else {
            return Err(KernelError::Failed(format!("{} has no loop for {w}", self.name)));
        };
        let chooses = w.op() == Op::Ternary(TernaryOp::Where);
        let widen = if chooses { None } else { w.inputs().first().and_then(half) };
        let stream = self.stream && !io.inputs.contains(&io.output);
        let mut flat = Flat::new(&rows);
        if widen.is_none() && flat.set(w, &rows, io) {
            // SAFETY: `io` is valid for the workload by contract, parts do not overlap.
            let part = |range: Range<usize>| unsafe {
                if stream { flat.run_past_the_cache(range) } else { flat.run(range) }
            };
            return Ok(self.split(n, p.threads.into(), &part));
        }
        // SAFETY: `io` is valid for the workload, and these are the loops for its elements.
        if widen.is_none() && !chooses && !self.stream && unsafe { repeated::run(w, rows, io) } {
            return Ok(Ran::Clean);
        }
        let narrow = if chooses { None } else { half(w.output()) };
        let (mut base, mut size) = ([std::ptr::null_mut(); 4], [1; 4]);
        for (k, o) in w.inputs().iter().enumerate() {
            base[k] = io.inputs[k].as_mut_ptr();
            size[k] = o.dtype.size();
        }
        base[OUT] = io.output.as_mut_ptr();
        size[OUT] = w.output().dtype.size();
        let inputs = w.inputs().len();
        let task =
            Task { plan: Plan::new(w), rows, level: self.level, inputs, base, size, widen, narrow, stream };
        // SAFETY: as above.
        Ok(self.split(n, p.threads.into(), &|range| unsafe { task.run(range) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_what_has_rows_that_are_not_cheap() {
        let ops = UnaryOp::ALL.iter().map(|&u| Op::Unary(u));
        for op in ops.chain(BinaryOp::ALL.iter().map(|&b| Op::Binary(b))) {
            for level in Level::present() {
                for dtype in [DType::F32, DType::F64] {
                    if let Some(rows) = table::of(level)(op, dtype) {
                        assert_eq!(takes_long(op), !rows.cheap, "{} {dtype}", op.name());
                    }
                }
            }
        }
    }

    #[test]
    fn a_few_elements_go_one_by_one() {
        let single = |text: &str| is_single(&text.parse().unwrap());
        for text in [
            "add f32 2 2",
            "add f32 2x5 2x1",
            "div f64 5x2 2",
            "pow f32 6 6",
            "pow f64 4 4",
            "sin f32 4",
            "erf f64 8",
        ] {
            assert!(single(text), "{text}");
        }
        let vectors = [
            ("add f32 3 3", "one run"),
            ("add f32 3x1 1", "one run and one element"),
            ("add f32 3x4 3x1", "too many to be laid out one by one"),
            ("add f32 2x3:1,2 3", "strided"),
            ("pow f32 7 7", "a vector takes as long as seven"),
            ("pow f64 5 5", "or as five"),
        ];
        for (text, why) in vectors {
            assert!(!single(text), "{text}: {why}");
        }
    }
}
