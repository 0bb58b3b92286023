//! Workloads laid out in a device's memory, to be run again and again by any of its variants.

use crate::device::Gpu;
use std::sync::Arc;
use steersman_core::measure::Rig;
use steersman_core::memory::Block;
use steersman_core::{
    Address, DType, DeviceId, Engine, Io, Kernel, KernelError, Memory, NumericClass, Operand, Params, Ran,
    Variant, Workload, rounded_to_odd,
};

/// One workload with operands full of ordinary numbers, resident on the device.
///
/// A run waits for its end: what is timed is what a caller who waits would see, launch included.
pub struct GpuRig {
    gpu: Arc<Gpu>,
    engine: Arc<Engine>,
    device: DeviceId,
    workload: Workload,
    /// Inputs, then outputs; each with how far its first element lies in.
    blocks: Vec<(Block, usize)>,
    scalars: Vec<u64>,
}

/// Bytes an operand spans, and how far its first element lies behind the lowest address.
fn span(o: &Operand) -> (usize, usize) {
    let (mut low, mut high) = (0isize, 0isize);
    for (&d, &s) in o.dims.iter().zip(&o.strides) {
        let reach = s * (d.max(1) as isize - 1);
        low += reach.min(0);
        high += reach.max(0);
    }
    let size = o.dtype.size();
    ((high - low) as usize * size + size, low.unsigned_abs() * size)
}

impl GpuRig {
    /// Lays `w` out on `gpu`, whose kernels are registered with `engine` under `device`.
    pub fn new(
        gpu: &Arc<Gpu>,
        engine: &Arc<Engine>,
        device: DeviceId,
        w: &Workload,
    ) -> Result<GpuRig, String> {
        let mut blocks = Vec::new();
        for (i, o) in w.inputs().iter().chain(w.outputs()).enumerate() {
            let (bytes, first) = span(o);
            let aligned = first.next_multiple_of(64);
            let block = gpu.clone().take(bytes + aligned - first).map_err(|e| e.to_string())?;
            if i < w.inputs().len() {
                let at = Address(block.address().0 + (aligned - first) as u64);
                gpu.upload(&numbers(o.dtype, bytes, i as u64 + 1), at).map_err(|e| e.to_string())?;
            }
            blocks.push((block, aligned));
        }
        let scalars = w.expr().map_or(Vec::new(), |e| e.scalars().iter().map(|d| scalar(*d)).collect());
        gpu.wait().map_err(|e| e.to_string())?;
        let (gpu, engine) = (gpu.clone(), engine.clone());
        Ok(GpuRig { gpu, engine, device, workload: w.clone(), blocks, scalars })
    }

    fn kernel(&self, v: Variant) -> Result<Arc<dyn Kernel>, KernelError> {
        let found = self.engine.registry().get(v.kernel).cloned();
        let found = found.ok_or_else(|| KernelError::Failed(format!("there is no kernel #{}", v.kernel)))?;
        if found.device() != self.device {
            return Err(KernelError::Failed(format!("{} runs on another device", found.name())));
        }
        Ok(found)
    }

    fn addresses(&self) -> Vec<Address> {
        self.blocks.iter().map(|(b, at)| Address(b.address().0 + *at as u64)).collect()
    }

    fn enqueue(&self, v: Variant) -> Result<Ran, KernelError> {
        let kernel = self.kernel(v)?;
        let all = self.addresses();
        let (inputs, outputs) = all.split_at(self.workload.inputs().len());
        let io = Io { inputs, output: outputs[0], more: &outputs[1..], scalars: &self.scalars };
        // SAFETY: the blocks cover what the workload's strides reach, and variants are legal ones.
        unsafe { kernel.run(&self.workload, v.params, io) }
    }

    /// Every result of a run on the host by the first exact kernel of another device.
    fn expected(&self) -> Option<Result<Vec<f64>, String>> {
        let w = &self.workload;
        let kernels = self.engine.registry();
        let is_reference = |k: &&Arc<dyn Kernel>| {
            k.device() != self.device
                && k.handles(w.op())
                && k.supports(w).is_ok()
                && k.numerics(w) == NumericClass::Exact
        };
        let reference = kernels.iter().map(|(_, k)| k).find(is_reference)?;
        let mut memory: Vec<(Vec<[u64; 8]>, usize)> = Vec::new();
        for (i, o) in w.inputs().iter().chain(w.outputs()).enumerate() {
            let (bytes, first) = span(o);
            let mut lines = vec![[0u64; 8]; (bytes + 128).div_ceil(64) + 1];
            let skip = lines.as_ptr().cast::<u8>().align_offset(64) + first.next_multiple_of(64);
            if i < w.inputs().len() {
                let data = numbers(o.dtype, bytes, i as u64 + 1);
                // SAFETY: the lines hold two more than the operand spans, and it starts at most one in.
                unsafe {
                    let to = lines.as_mut_ptr().cast::<u8>().add(skip - first);
                    std::ptr::copy_nonoverlapping(data.as_ptr(), to, bytes);
                }
            }
            memory.push((lines, skip));
        }
        let at: Vec<Address> = memory
            .iter_mut()
            .map(|(m, skip)| Address::host(m.as_mut_ptr().cast::<u8>().wrapping_add(*skip)))
            .collect();
        let (inputs, outputs) = at.split_at(w.inputs().len());
        let io = Io { inputs, output: outputs[0], more: &outputs[1..], scalars: &self.scalars };
        // SAFETY: as above, in host memory.
        if let Err(e) = unsafe { reference.run(w, Params::SERIAL, io) } {
            return Some(Err(e.to_string()));
        }
        let values = w.outputs().iter().zip(outputs).flat_map(|(o, at)| {
            let bytes = o.elements() * o.dtype.size();
            // SAFETY: results are laid out contiguously.
            read(o.dtype, unsafe { std::slice::from_raw_parts(at.as_ptr::<u8>(), bytes) })
        });
        Some(Ok(values.collect()))
    }
}

impl Rig for GpuRig {
    fn run(&mut self, v: Variant) -> Result<Ran, KernelError> {
        let ran = self.enqueue(v)?;
        self.gpu.wait()?;
        Ok(ran)
    }

    fn check(&mut self, v: Variant) -> Result<(), String> {
        // Small workloads say as much as large ones.
        let w = &self.workload;
        let contiguous = w.outputs().iter().all(Operand::is_contiguous);
        if w.output().elements().max(w.dims().iter().product()) > 1 << 16 || !contiguous {
            return Ok(());
        }
        let Some(want) = self.expected() else { return Ok(()) };
        let want = want?;
        // What an earlier run left behind must not pass for an answer.
        for (o, (block, at)) in w.outputs().iter().zip(&self.blocks[w.inputs().len()..]) {
            let marks = vec![0x5a; o.elements() * o.dtype.size()];
            let to = Address(block.address().0 + *at as u64);
            self.gpu.upload(&marks, to).map_err(|e| e.to_string())?;
        }
        self.enqueue(v).map_err(|e| e.to_string())?;
        let mut got = Vec::new();
        for (o, at) in w.outputs().iter().zip(&self.addresses()[w.inputs().len()..]) {
            let mut bytes = vec![0; o.elements() * o.dtype.size()];
            self.gpu.download(*at, &mut bytes).map_err(|e| e.to_string())?;
            got.extend(read(o.dtype, &bytes));
        }
        let tolerance = tolerance(w);
        for (i, (w, g)) in want.iter().zip(&got).enumerate() {
            let same = w == g || w.is_nan() && g.is_nan();
            if !same && ((w - g).abs() > tolerance * w.abs().max(1.0) || g.is_nan() != w.is_nan()) {
                return Err(format!("element {i} of {} is {g:e}, not {w:e}", self.workload));
            }
        }
        Ok(())
    }
}

/// How far two right answers may lie apart, relative to max(1, |x|): rounding grows with terms summed.
fn tolerance(w: &Workload) -> f64 {
    let unit = match w.output().dtype {
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => 0.0,
    };
    unit * (16.0 + (w.flops() / w.output().elements().max(1) as f64).max(1.0))
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

/// Elements as numbers.
fn read(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let word = |c: &[u8]| c.iter().rev().fold(0u64, |w, b| w << 8 | u64::from(*b));
    let of = |c: &[u8]| match dtype {
        DType::F32 => f64::from(f32::from_bits(word(c) as u32)),
        DType::F64 => f64::from_bits(word(c)),
        DType::F16 => half::f16::from_bits(word(c) as u16).to_f64(),
        DType::BF16 => half::bf16::from_bits(word(c) as u16).to_f64(),
        DType::I32 => f64::from(word(c) as u32 as i32),
        DType::I64 => word(c) as i64 as f64,
        DType::U8 | DType::Bool => f64::from(c[0]),
    };
    bytes.chunks_exact(dtype.size()).map(of).collect()
}

/// Bytes of numbers between 0.1 and 0.9, small integers or truth values: a page again and again.
fn numbers(dtype: DType, bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut page = Vec::with_capacity(4096);
    while page.len() < 4096 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let x = 0.1 + 0.8 * ((state >> 11) as f64 / (1u64 << 53) as f64);
        match dtype {
            DType::F32 => page.extend((x as f32).to_le_bytes()),
            DType::F64 => page.extend(x.to_le_bytes()),
            DType::F16 => page.extend(half::f16::from_f32(rounded_to_odd(x)).to_le_bytes()),
            DType::BF16 => page.extend(half::bf16::from_f32(rounded_to_odd(x)).to_le_bytes()),
            DType::I32 => page.extend((1 + (x * 9.0) as i32).to_le_bytes()),
            DType::I64 => page.extend((1 + (x * 9.0) as i64).to_le_bytes()),
            DType::U8 => page.push(1 + (x * 9.0) as u8),
            DType::Bool => page.push(u8::from(x > 0.5)),
        }
    }
    page.into_iter().cycle().take(bytes).collect()
}
