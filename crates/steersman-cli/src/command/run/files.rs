//! Operands from `.npy` files, the result into one.

use crate::args::RunArgs;
use crate::exit::Failure;
use crate::npy::{self, Array};
use crate::open;
use steersman::Runtime;
use steersman_core::{Decision, ReasonCode, Variant, Workload};

/// The operands that were given, and the workload with their strides; `None` if none were.
pub fn operands(w: Workload, args: &RunArgs) -> Result<(Workload, Option<Vec<Array>>), Failure> {
    if args.input.is_empty() {
        return match &args.output {
            Some(_) => {
                Err(Failure::input("--output would save the result of made-up operands; give --input too"))
            }
            None => Ok((w, None)),
        };
    }
    if args.input.len() != w.inputs().len() {
        let (need, got) = (w.inputs().len(), args.input.len());
        return Err(Failure::input(format!("'{w}' takes {need} operand(s), --input names {got} file(s)")));
    }
    if args.output.is_some() {
        npy::writable(w.output().dtype).map_err(|why| Failure::input(format!("--output: {why}")))?;
    }
    let arrays: Vec<Array> =
        args.input.iter().map(|path| Array::read(path).map_err(Failure::input)).collect::<Result<_, _>>()?;
    for ((array, path), operand) in arrays.iter().zip(&args.input).zip(w.inputs()) {
        if array.dtype != operand.dtype {
            return Err(Failure::input(format!(
                "{} holds {}, but the workload says {}; nothing is converted silently",
                path.display(),
                array.dtype,
                operand.dtype
            )));
        }
    }
    let given: Result<Vec<_>, _> = arrays.iter().map(Array::operand).collect();
    let given = given.and_then(|operands| Workload::new(w.op(), operands));
    let fits = given.as_ref().is_ok_and(|g| {
        let same = |(a, b): (&steersman_core::Operand, &steersman_core::Operand)| a.dims == b.dims;
        g.inputs().iter().zip(w.inputs()).all(same)
    });
    match given {
        Ok(given) if fits => Ok((given.with_numerics(w.numerics()), Some(arrays))),
        _ => {
            let shapes: Vec<String> = arrays.iter().map(|a| npy::show(&a.dims)).collect();
            Err(Failure::input(format!("the files' shapes ({}) are not those of '{w}'", shapes.join(", "))))
        }
    }
}

/// Runs the workload once on the arrays, and writes the result if a file was named.
pub fn compute(
    runtime: &Runtime,
    w: &Workload,
    arrays: &[Array],
    forced: Option<Variant>,
    args: &RunArgs,
) -> Result<Decision, Failure> {
    let inputs: Vec<&[u8]> = arrays.iter().map(|a| a.bytes.as_slice()).collect();
    let mut bytes = vec![0u8; w.output().bytes()];
    let decision = runtime.run_raw(w, &inputs, &mut bytes, forced)?;
    if let Some(v) = forced.filter(|_| decision.reason() == ReasonCode::FallbackAfterFailure) {
        let why = runtime.log().entries().iter().rev().find_map(|e| e.note.clone()).unwrap_or_default();
        return Err(Failure::failed(format!("{} failed: {why}", open::name(runtime, v))));
    }
    if let Some(path) = &args.output {
        let result = Array { dtype: w.output().dtype, dims: w.output().dims.to_vec(), fortran: false, bytes };
        result.write(path).map_err(Failure::failed)?;
    }
    Ok(decision)
}
