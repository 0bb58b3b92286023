//! Workloads laid out in this CPU's memory, to be run again and again by any variant.

use crate::device::Cpu;
use crate::memory::Block;
use crate::threads::{Calm, Team};
use std::sync::Arc;
use std::time::Duration;
use steersman_core::measure::Rig;
use steersman_core::{
    Address, Bytes, DType, Engine, Io, KernelError, NumericClass, Op, Operand, Place, Ran, ReduceOp, Variant,
    Workload, rounded_to_odd,
};

/// One workload with operands full of numbers.
pub struct CpuRig {
    engine: Arc<Engine>,
    team: Arc<Team>,
    calm: Arc<Calm>,
    workload: Workload,
    blocks: Vec<Block>,
    inputs: Vec<Address>,
    outputs: Vec<Block>,
    /// Where the first element of each output is. (Collected at each run they took 8 ns of it.)
    to: Vec<Address>,
    scalars: Vec<u64>,
    /// The kernel that was last found to be of the host: asking takes as long as a small run.
    here: Option<u16>,
}

/// Memory for an operand. Large ones in whatever was touched before and has room: workloads of all sizes then share a
/// few blocks, where fresh pages took 2 of a calibration's 13 seconds.
fn take(cpu: &Cpu, bytes: usize) -> Result<Block, String> {
    let pool = &cpu.memory;
    let block = match bytes >= 1 << 20 {
        true => pool.take_touched(bytes).or_else(|_| pool.take(bytes)),
        false => pool.take(bytes),
    };
    block.map_err(|e| e.to_string())
}

/// Bytes to lay an operand out in, one element at least, and how far its first element lies behind the lowest address.
fn span(o: &Operand) -> (usize, usize) {
    let (bytes, first) = o.span();
    (bytes.max(o.dtype.size()), first)
}

impl CpuRig {
    /// Lays `w` out. Operands take memory from the CPU's pool, so that laying out the next is cheap.
    pub fn new(cpu: &Cpu, engine: &Arc<Engine>, w: &Workload) -> Result<CpuRig, String> {
        // Asked before any page is touched, which takes a minute for what there is no room for in the end.
        let needs: usize = w.inputs().iter().chain(w.outputs()).map(|o| span(o).0).sum();
        if let Some(room) = cpu.room().filter(|room| needs > *room) {
            let [needs, room] = [needs, room].map(|n| Bytes(n as u64));
            return Err(format!("its operands take {needs} together, and there are {room}"));
        }
        let (mut blocks, mut inputs) = (Vec::new(), Vec::new());
        let numbers = Numbers::of(w.op());
        for (i, o) in w.inputs().iter().enumerate() {
            let (bytes, first) = span(o);
            let mut block = take(cpu, bytes)?;
            fill(&mut block, bytes - o.dtype.size(), o.dtype, i as u64 + 1, numbers);
            inputs.push(Address::host(block.as_ptr().wrapping_add(first)));
            blocks.push(block);
        }
        let (mut outputs, mut to) = (Vec::new(), Vec::new());
        for o in w.outputs() {
            let (bytes, at) = span(o);
            let mut output = take(cpu, bytes)?;
            // Touched here, so that no candidate pays for fresh pages.
            for page in output.as_uninit_mut().chunks_mut(4096) {
                page[0].write(0);
            }
            to.push(Address::host(output.as_mut_ptr().wrapping_add(at)));
            outputs.push(output);
        }
        let scalars = w.expr().map_or(Vec::new(), |e| e.scalars().iter().map(|d| scalar(*d)).collect());
        Ok(CpuRig {
            engine: engine.clone(),
            team: cpu.team.clone(),
            calm: cpu.calm.clone(),
            workload: w.clone(),
            blocks,
            inputs,
            outputs,
            to,
            scalars,
            here: None,
        })
    }

    /// Where everything is, for who runs it elsewhere: inputs, outputs and scalars.
    pub fn addresses(&self) -> (Vec<Address>, Vec<Address>, Vec<u64>) {
        (self.inputs.clone(), self.to.clone(), self.scalars.clone())
    }

    /// The memory of input `i`, to put other numbers in.
    pub fn input_mut(&mut self, i: usize) -> *mut u8 {
        self.blocks[i].as_mut_ptr()
    }

    /// What is laid out.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Where the first result starts.
    pub fn output(&self) -> *const u8 {
        self.nth_output(0)
    }

    fn nth_output(&self, n: usize) -> *const u8 {
        self.to[n].as_ptr()
    }

    fn reference(&self, not: Variant) -> Option<Variant> {
        let kernels = self.engine.registry();
        let exact = |c: &steersman_core::Candidate| {
            c.variant.kernel != not.kernel
                && c.variant.params.threads == 1
                && !c.is_moved()
                && kernels
                    .get(c.variant.kernel)
                    .is_some_and(|k| k.numerics(&self.workload) == NumericClass::Exact)
        };
        self.engine.runnable(&self.workload).iter().find(|c| exact(c)).map(|c| c.variant)
    }
}

impl Rig for CpuRig {
    fn run(&mut self, v: Variant) -> Result<Ran, KernelError> {
        let Some(kernel) = self.engine.registry().get(v.kernel) else {
            return Err(KernelError::Failed(format!("there is no kernel #{}", v.kernel)));
        };
        if self.here != Some(v.kernel) {
            if self.engine.place_of(v.kernel) != Some(Place::Host) {
                return Err(KernelError::NotRunnable);
            }
            self.here = Some(v.kernel);
        }
        let io = Io { inputs: &self.inputs, output: self.to[0], more: &self.to[1..], scalars: &self.scalars };
        // SAFETY: the blocks cover what the workload's strides reach, and the engine only names legal variants.
        unsafe { kernel.run(&self.workload, v.params, io) }
    }

    fn quiet(&mut self) -> bool {
        self.calm.now(&self.team)
    }

    fn whole(&mut self, threads: usize, longest: Duration) -> bool {
        // Two at most: of many cores some are always shared, and their work goes to the others.
        self.calm.whole.wait(&self.team, threads.min(2), longest)
    }

    fn accept(&mut self) {
        self.calm.accept();
    }

    fn check(&mut self, v: Variant) -> Result<(), String> {
        let Some(kernel) = self.engine.registry().get(v.kernel).cloned() else {
            return Err(format!("there is no kernel #{}", v.kernel));
        };
        let workload = self.workload.clone();
        // SAFETY: as for `run`.
        self.check_by(v, &mut |io| unsafe { kernel.run(&workload, v.params, io) })
    }
}

impl CpuRig {
    /// Compares what `run` makes of the operands with what a reference makes of them; `v` is the variant it stands for.
    pub fn check_by(
        &mut self,
        v: Variant,
        run: &mut dyn FnMut(Io<'_>) -> Result<Ran, KernelError>,
    ) -> Result<(), String> {
        // Comparing reads everything back one element at a time: larger workloads say no more.
        let group = self.workload.dims().iter().product::<usize>();
        if self.workload.output().elements().max(group) > 1 << 21 {
            return Ok(());
        }
        let Some(reference) = self.reference(v) else { return Ok(()) };
        // A reference that fails says nothing of who was to be compared with it.
        if self.run(reference).is_err() {
            return Ok(());
        }
        let want = self.values();
        // What the reference left behind must not pass for an answer.
        for output in &mut self.outputs {
            output.as_uninit_mut().fill(std::mem::MaybeUninit::new(0x5a));
        }
        let (inputs, outputs, scalars) = self.addresses();
        let io = Io { inputs: &inputs, output: outputs[0], more: &outputs[1..], scalars: &scalars };
        match run(io) {
            Err(why) if why.is_offence() => return Err(why.to_string()),
            // It could not be run now, so there is nothing to compare.
            Err(_) => return Ok(()),
            Ok(_) => {}
        }
        let got = self.values();
        let class =
            self.engine.registry().get(v.kernel).map_or(NumericClass::Exact, |k| k.numerics(&self.workload));
        let tolerance = tolerance(&self.workload, class);
        for (i, (w, g)) in want.iter().zip(&got).enumerate() {
            if !agree(*w, *g, tolerance) {
                return Err(format!(
                    "element {i} of {} is {g:e} where the reference has {w:e}",
                    self.workload
                ));
            }
        }
        Ok(())
    }

    fn values(&self) -> Vec<f64> {
        // Results are laid out contiguously.
        let of = |(n, o): (usize, &Operand)| {
            let (at, dtype) = (self.nth_output(n), o.dtype);
            (0..o.elements()).map(move |i| read(at, dtype, i))
        };
        self.workload.outputs().iter().enumerate().flat_map(of).collect()
    }
}

/// The bits of a half in this type, or a key.
fn scalar(dtype: Option<DType>) -> u64 {
    match dtype {
        Some(DType::F32) => 0.5f32.to_bits().into(),
        Some(DType::F64) => 0.5f64.to_bits(),
        Some(DType::F16) => half::f16::from_f32(0.5).to_bits().into(),
        Some(DType::BF16) => half::bf16::from_f32(0.5).to_bits().into(),
        Some(_) => 1,
        None => 0x5851_F42D_4C95_7F2D,
    }
}

/// How far two right answers may lie apart, relative to max(1, |x|).
fn tolerance(w: &Workload, class: NumericClass) -> f64 {
    let unit = match w.output().dtype {
        DType::F32 => f32::EPSILON as f64,
        DType::F64 => f64::EPSILON,
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => 0.0,
    };
    // Terms summed into one element: rounding grows with them.
    let terms = (w.flops() / w.output().elements().max(1) as f64).max(1.0);
    match class {
        NumericClass::Exact => 4.0 * unit,
        NumericClass::Reassociated => unit * (16.0 + terms),
        NumericClass::Relaxed => 1e-2 * terms.sqrt().max(1.0),
    }
}

/// Whether these are the same answer.
fn agree(want: f64, got: f64, tolerance: f64) -> bool {
    match want.is_finite() && got.is_finite() {
        true => (want - got).abs() <= tolerance * want.abs().max(1.0),
        false => want == got || want.is_nan() && got.is_nan(),
    }
}

/// Element `i` of contiguous memory, as f64.
fn read(p: *const u8, dtype: DType, i: usize) -> f64 {
    // SAFETY: the rig's output holds `elements` values of this type, and i is below that.
    unsafe {
        match dtype {
            DType::F32 => *p.cast::<f32>().add(i) as f64,
            DType::F64 => *p.cast::<f64>().add(i),
            DType::F16 => (*p.cast::<half::f16>().add(i)).to_f64(),
            DType::BF16 => (*p.cast::<half::bf16>().add(i)).to_f64(),
            DType::I32 => *p.cast::<i32>().add(i) as f64,
            DType::U32 => *p.cast::<u32>().add(i) as f64,
            DType::I64 => *p.cast::<i64>().add(i) as f64,
            DType::U8 | DType::Bool => *p.add(i) as f64,
        }
    }
}

/// What operands are full of.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    /// Between 0.1 and 0.9, where every function is defined; small integers; truth values.
    Ordinary,
    /// Close to 1 or -1: the product of a hundred others is none that a core multiplies at its usual speed, and that of a
    /// thousand 0. Signs show whether one is missing.
    Multiplied,
    /// No truths but the last, or truths but for the last: `any` and `all` read to the end. (Of ordinary numbers they read
    /// one: 2.4 million then took 45 ns, and all other reductions of their kernel were thought to be as quick per byte.)
    Zeros,
    Ones,
}

impl Numbers {
    fn of(op: Op) -> Numbers {
        match op {
            Op::Reduce { kind: ReduceOp::Prod, .. } => Numbers::Multiplied,
            Op::Reduce { kind: ReduceOp::Any, .. } => Numbers::Zeros,
            Op::Reduce { kind: ReduceOp::All, .. } => Numbers::Ones,
            _ => Numbers::Ordinary,
        }
    }
}

/// Fills a block: a page of numbers again and again, since only their kind matters.
fn fill(block: &mut Block, at_last: usize, dtype: DType, seed: u64, numbers: Numbers) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut unit = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        0.1 + 0.8 * ((state >> 11) as f64 / (1u64 << 53) as f64)
    };
    // No more of a page than there is to fill: most workloads are small.
    let elements = (4096 / dtype.size()).min(block.len().div_ceil(dtype.size())).max(1);
    let mut page: Vec<u8> = Vec::with_capacity(elements * dtype.size());
    for _ in 0..elements {
        let x = unit();
        let x = match numbers {
            Numbers::Ordinary => x,
            Numbers::Multiplied => (1.0 + (x - 0.5) / 8192.0).copysign(x - 0.5),
            Numbers::Zeros => 0.0,
            Numbers::Ones => 1.0,
        };
        push(&mut page, dtype, x);
    }
    for chunk in block.as_uninit_mut().chunks_mut(page.len()) {
        for (to, from) in chunk.iter_mut().zip(&page) {
            to.write(*from);
        }
    }
    let mut last = Vec::with_capacity(dtype.size());
    match numbers {
        Numbers::Ordinary | Numbers::Multiplied => return,
        Numbers::Zeros => push(&mut last, dtype, 1.0),
        Numbers::Ones => push(&mut last, dtype, 0.0),
    }
    let end = &mut block.as_uninit_mut()[at_last..][..last.len()];
    end.iter_mut().zip(last).for_each(|(to, from)| _ = to.write(from));
}

/// A number as the operand's type has it; 0 is the only one that gives the integer 0.
fn push(page: &mut Vec<u8>, dtype: DType, x: f64) {
    let least = u8::from(x != 0.0);
    match dtype {
        DType::F32 => page.extend((x as f32).to_ne_bytes()),
        DType::F64 => page.extend(x.to_ne_bytes()),
        DType::F16 => page.extend(half::f16::from_f32(rounded_to_odd(x)).to_ne_bytes()),
        DType::BF16 => page.extend(half::bf16::from_f32(rounded_to_odd(x)).to_ne_bytes()),
        DType::I32 => page.extend((i32::from(least) + (x * 9.0) as i32).to_ne_bytes()),
        DType::U32 => page.extend((u32::from(least) + (x * 9.0) as u32).to_ne_bytes()),
        DType::I64 => page.extend((i64::from(least) + (x * 9.0) as i64).to_ne_bytes()),
        DType::U8 => page.push(least + (x * 9.0) as u8),
        DType::Bool => page.push(u8::from(x > 0.5)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryPool;

    #[test]
    fn nothing_but_itself_agrees_with_what_is_not_finite() {
        use std::f64::consts::PI;
        let all = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, 0.0, PI];
        for (i, &want) in all.iter().enumerate() {
            for (j, &got) in all.iter().enumerate() {
                assert_eq!(agree(want, got, 1e-6), i == j, "{want} and {got}");
            }
        }
        assert!(agree(PI, PI * (1.0 + 1e-7), 1e-6) && !agree(PI, PI * (1.0 + 1e-5), 1e-6));
    }

    #[test]
    fn only_the_last_element_tells_any_and_all_what_they_ask() {
        let pool = MemoryPool::new(1 << 20);
        for dtype in DType::ALL {
            for elements in [1usize, 3, 5000] {
                let size = dtype.size();
                let truths = |kind: ReduceOp| -> Vec<bool> {
                    let mut block = pool.take(elements * size).expect("a block");
                    let numbers = Numbers::of(Op::Reduce { kind, axes: steersman_core::Axes::NONE });
                    fill(&mut block, (elements - 1) * size, dtype, 1, numbers);
                    // SAFETY: all of it was just written.
                    (0..elements).map(|i| read(block.as_ptr(), dtype, i) != 0.0).collect()
                };
                let but_for_the_last = |rest: bool| -> Vec<bool> {
                    (0..elements).map(|i| rest != (i + 1 == elements)).collect()
                };
                assert_eq!(truths(ReduceOp::Any), but_for_the_last(false), "any {dtype} {elements}");
                assert_eq!(truths(ReduceOp::All), but_for_the_last(true), "all {dtype} {elements}");
                if dtype != DType::Bool {
                    assert!(truths(ReduceOp::Prod).iter().all(|t| *t), "prod {dtype} {elements}");
                }
            }
        }
    }
}
