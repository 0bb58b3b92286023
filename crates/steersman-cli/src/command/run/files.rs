//! Operands from `.npy` files, the result into one.

use crate::args::RunArgs;
use crate::exit::Failure;
use crate::npy::{self, Array};
use crate::open;
use steersman::Runtime;
use steersman_core::{Decision, Op, Operand, ReasonCode, Variant, Workload};

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
    if let Some(word) = args.workload.iter().flat_map(|w| w.split_whitespace()).find(|w| has_strides(w)) {
        return Err(Failure::input(format!(
            "'{word}' names strides, but where elements lie is what the files say; name the shape alone"
        )));
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
    let at_place = |(a, o): (&Array, &Operand)| a.operand().map(|given| given.at(o.place));
    let given: Result<Vec<_>, _> = arrays.iter().zip(w.inputs()).map(at_place).collect();
    let given = given.and_then(|operands| Workload::new(w.op(), operands));
    let fits = given.as_ref().is_ok_and(|g| {
        let same = |(a, b): (&Operand, &Operand)| a.dims == b.dims;
        g.inputs().iter().zip(w.inputs()).all(same)
    });
    match given {
        Ok(given) if fits => {
            let given = given.with_numerics(w.numerics()).with_output_at(w.output().place);
            Ok((given, Some(arrays)))
        }
        _ => {
            let shapes: Vec<String> = arrays.iter().map(|a| npy::show(&a.dims)).collect();
            Err(Failure::input(format!("the files' shapes ({}) are not those of '{w}'", shapes.join(", "))))
        }
    }
}

/// Whether a word of a workload is an operand with strides; the names of places have colons too.
fn has_strides(word: &str) -> bool {
    let operand = word.split('@').next().unwrap_or("");
    operand.starts_with(|c: char| c.is_ascii_digit()) && operand.contains(':')
}

/// The result's shape as numpy has it: in a product a vector is a row or a column for the time being, and the result has no
/// such dimension.
fn result_dims(w: &Workload, arrays: &[Array]) -> Vec<usize> {
    let mut dims = w.output().dims.to_vec();
    if let (Op::MatMul, [a, b]) = (w.op(), arrays) {
        if b.dims.len() == 1 {
            dims.pop();
        }
        if a.dims.len() == 1 {
            dims.remove(dims.len().saturating_sub(if b.dims.len() == 1 { 1 } else { 2 }));
        }
    }
    dims
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
        let result = Array { dtype: w.output().dtype, dims: result_dims(w, arrays), fortran: false, bytes };
        result.write(path).map_err(Failure::failed)?;
    }
    Ok(decision)
}
