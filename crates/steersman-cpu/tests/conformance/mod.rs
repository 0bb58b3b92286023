//! Holds kernels to their reference on random operands: any op, any layout, any device whose memory is
//! the host's.
//!
//! [`check`] runs every kernel with every parameter point it offers and compares with the first kernel
//! whose name ends in `-scalar`: bit for bit where the kernel says it is exact, else within the units in
//! the last place that the caller allows. What lies between the elements of an output must stay untouched.

mod element;
mod layout;
mod memory;

pub use element::{distance, encode, show, value};
pub use layout::{Lie, lie, shape};
pub use memory::{Memory, Random};

use std::sync::{Arc, LazyLock};
use steersman_core::{Address, DType, Io, Kernel, NumericClass, Params, Workload};

/// The kernels under test, the reference first; `None` where there is no such device.
pub type Kernels = LazyLock<Option<Vec<Arc<dyn Kernel>>>>;

/// How far a result that is not exact may be from the reference.
pub struct Allowed<'a> {
    /// Units in the last place of the expected element.
    pub ulps: f64,
    /// The magnitude of the terms that were added up to the `i`th element, 0 where none were: where they
    /// cancel, an error within `ulps` of them is no mistake.
    pub terms: &'a dyn Fn(usize) -> f64,
}

/// Random operands for every input.
pub fn inputs(w: &Workload, random: &mut Random) -> Vec<Memory> {
    w.inputs().iter().map(|o| Memory::random(o, random)).collect()
}

/// Runs a kernel into memory of its own.
pub fn run(kernel: &dyn Kernel, w: &Workload, p: Params, inputs: &[Memory]) -> Result<Memory, String> {
    let mut out = Memory::marked(w.output());
    let addresses: Vec<Address> = inputs.iter().map(Memory::address).collect();
    let io = Io::new(&addresses, out.address_mut());
    // SAFETY: memory was made for these operands and the caller has asked `supports`.
    unsafe { kernel.run(w, p, io) }.map_err(|e| format!("{} {p} failed on {w}: {e}", kernel.name()))?;
    Ok(out)
}

/// Runs a kernel with its first input as the output; their layouts must be the same.
pub fn run_in_place(
    kernel: &dyn Kernel,
    w: &Workload,
    p: Params,
    inputs: &[Memory],
) -> Result<Memory, String> {
    let mut out = inputs[0].clone();
    let mut addresses: Vec<Address> = inputs.iter().map(Memory::address).collect();
    addresses[0] = out.address_mut();
    let io = Io::new(&addresses, addresses[0]);
    // SAFETY: as in `run`.
    unsafe { kernel.run(w, p, io) }
        .map_err(|e| format!("{} {p} failed on {w} in place: {e}", kernel.name()))?;
    Ok(out)
}

/// The kernel that the others are held to.
pub fn reference<'a>(kernels: &'a [Arc<dyn Kernel>], w: &Workload) -> Option<&'a dyn Kernel> {
    let is = |k: &&Arc<dyn Kernel>| {
        k.name().ends_with("-scalar") && k.numerics(w) == NumericClass::Exact && k.supports(w).is_ok()
    };
    kernels.iter().find(is).map(|k| &**k)
}

/// Every kernel that supports `w`, with every parameter point, agrees with the reference.
pub fn check(
    kernels: &[Arc<dyn Kernel>],
    w: &Workload,
    inputs: &[Memory],
    allowed: &Allowed<'_>,
) -> Result<(), String> {
    let reference = reference(kernels, w).ok_or_else(|| format!("no reference for {w}"))?;
    let expected = run(reference, w, Params::SERIAL, inputs)?;
    for kernel in kernels.iter().filter(|k| k.supports(w).is_ok()) {
        for p in kernel.space(w) {
            let got = run(&**kernel, w, p, inputs)?;
            compare(&**kernel, w, p, &expected, &got, inputs, allowed)?;
        }
    }
    Ok(())
}

/// The same with the first input overwritten by the result.
pub fn check_in_place(
    kernels: &[Arc<dyn Kernel>],
    w: &Workload,
    inputs: &[Memory],
    allowed: &Allowed<'_>,
) -> Result<(), String> {
    let reference = reference(kernels, w).ok_or_else(|| format!("no reference for {w}"))?;
    let expected = run(reference, w, Params::SERIAL, inputs)?;
    for kernel in kernels.iter().filter(|k| k.supports(w).is_ok()) {
        for p in kernel.space(w) {
            let got = run_in_place(&**kernel, w, p, inputs)?;
            compare(&**kernel, w, p, &expected, &got, inputs, allowed)
                .map_err(|e| format!("in place: {e}"))?;
        }
    }
    Ok(())
}

fn compare(
    kernel: &dyn Kernel,
    w: &Workload,
    p: Params,
    expected: &Memory,
    got: &Memory,
    inputs: &[Memory],
    allowed: &Allowed<'_>,
) -> Result<(), String> {
    let out = w.output();
    let ulps = match kernel.numerics(w) {
        NumericClass::Exact => 0.0,
        // One rounding to the narrow format, of values that differ by far less than its spacing.
        _ if matches!(out.dtype, DType::F16 | DType::BF16) => 1.0,
        _ => allowed.ulps,
    };
    for (i, (e, g)) in expected.elements(out).zip(got.elements(out)).enumerate() {
        let off = distance(out.dtype, e, g);
        let cancelled = || {
            let epsilon = if out.dtype == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
            let (terms, apart) = ((allowed.terms)(i), (value(out.dtype, e) - value(out.dtype, g)).abs());
            // Terms that overflow may meet as opposite infinities, or not, by their order.
            ulps > 0.0 && (terms.is_infinite() || apart <= ulps * epsilon * terms)
        };
        if off > ulps && !cancelled() {
            let arguments: Vec<String> =
                w.inputs().iter().zip(inputs).map(|(o, m)| show(o.dtype, m.element(o, i))).collect();
            return Err(format!(
                "{} {p} on {w}: element {i} is {}, not {} ({off} ulp, {ulps} allowed), of {}",
                kernel.name(),
                show(out.dtype, g),
                show(out.dtype, e),
                arguments.join(", ")
            ));
        }
    }
    if got.gaps_touched(out) {
        return Err(format!("{} {p} on {w}: wrote outside its output", kernel.name()));
    }
    Ok(())
}
