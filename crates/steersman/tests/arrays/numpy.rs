//! Arrays against NumPy's answers, which `numpy_cases.py` wrote down.

use crate::runtime;
use serde_json::Value;
use steersman::array::{Number, Side};
use steersman::core::DType::{self, Bool, F16, F32, F64, I32, I64, U8};
use steersman::core::Op;
use steersman::{Array, Over, Runtime, Slice};

const CASES: &str = include_str!("numpy_cases.jsonl");

fn float(x: &Value) -> f64 {
    match x {
        Value::String(s) if s == "-0" => -0.0,
        Value::String(s) => s.parse().unwrap(),
        Value::Bool(b) => f64::from(u8::from(*b)),
        x => x.as_f64().unwrap(),
    }
}

fn dtype(name: &str) -> DType {
    [Bool, U8, I32, I64, F32, F64].into_iter().find(|d| d.to_string() == name).unwrap()
}

fn list(x: &Value) -> Vec<isize> {
    x.as_array().unwrap().iter().map(|i| i.as_i64().unwrap() as isize).collect()
}

fn array(rt: &Runtime, a: &Value) -> Array {
    let (data, to) = (a["data"].as_array().unwrap(), list(&a["shape"]));
    let d = dtype(a["dtype"].as_str().unwrap());
    if d == I64 {
        return rt.from_vec(data.iter().map(|x| x.as_i64().unwrap()).collect(), to).unwrap();
    }
    rt.from_vec(data.iter().map(float).collect(), to).unwrap().cast(d)
}

fn number(x: &Value) -> Number {
    x.as_i64().map_or_else(|| float(x).into(), Number::from)
}

fn over(case: &Value) -> Over {
    let over = if case["axis"].is_null() { Over::all() } else { Over::from(list(&case["axis"])) };
    if case["keep"] == true { over.keep() } else { over }
}

/// How a case's arguments come about, and so which kernels answer it.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// In memory.
    Given,
    /// Computed on the way, in one group with the op where that may be.
    Passing,
    /// Over and over, so that vectors and threads have something to do.
    Long,
}

const TIMES: usize = 4099;

fn argument(rt: &Runtime, a: &Value, way: Way) -> Array {
    let a = array(rt, a);
    match way {
        Way::Passing if a.dtype() == Bool => a.not().not(),
        Way::Passing => a.neg().neg(),
        Way::Given => a,
        Way::Long => a.tile(&[TIMES]),
    }
}

/// Whether the answer to the arguments over and over is the answer over and over.
fn repeats(case: &Value) -> bool {
    const MADE: [&str; 9] = [
        "is_nan",
        "is_inf",
        "is_finite",
        "log10",
        "square",
        "floor_divide",
        "remainder",
        "minimum",
        "maximum",
    ];
    let (op, args) = (case["op"].as_str().unwrap(), case["args"].as_array().unwrap());
    let shapes = || args.iter().filter_map(|a| a.get("shape"));
    let elementwise = case.get("axis").is_none()
        && (op == "cast" || MADE.contains(&op) || Op::from_name(op).is_some_and(|o| o.is_elementwise()));
    elementwise && shapes().all(|s| list(s).len() == 1 && list(s)[0] > 0 && s == shapes().next().unwrap())
}

/// What arrays answer.
fn ours(rt: &Runtime, case: &Value, way: Way) -> Array {
    let made: Vec<Option<Array>> = case["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a.get("data").map(|_| argument(rt, a, way)))
        .collect();
    let sides: Vec<Side> = made
        .iter()
        .zip(case["args"].as_array().unwrap())
        .map(|(a, given)| match a {
            Some(a) => a.into(),
            None => Side::Number(number(&given["number"])),
        })
        .collect();
    let whole: Vec<Array> = made.iter().flatten().cloned().collect();
    let axis = || case["axis"].as_i64().unwrap() as isize;
    let numbers = || case["numbers"].as_array().unwrap();
    let size = |i: usize| numbers()[i].as_i64().unwrap();
    let op = case["op"].as_str().unwrap();
    match op {
        "is_nan" => whole[0].is_nan(),
        "is_inf" => whole[0].is_inf(),
        "is_finite" => whole[0].is_finite(),
        "log10" => whole[0].log10(),
        "square" => whole[0].square(),
        "floor_divide" => whole[0].floor_divide(sides[1].clone()),
        "remainder" => whole[0].remainder(sides[1].clone()),
        "minimum" => whole[0].minimum(sides[1].clone()),
        "maximum" => whole[0].maximum(sides[1].clone()),
        "broadcast_to" => whole[0].broadcast_to(list(&case["to"])),
        "reshape" => whole[0].reshape(list(&case["to"])),
        "cast" => whole[0].cast(dtype(case["to"].as_str().unwrap())),
        "squeeze" => whole[0].squeeze(over(case)),
        "flip" => whole[0].flip(over(case)),
        "expand" => whole[0].expand(axis()),
        "permute" => whole[0].permute(list(&case["axes"])),
        "index" => whole[0].index(axis(), case["index"].as_i64().unwrap() as isize),
        "slice" => {
            let end = |x: &Value| x.as_i64().map(|i| i as isize);
            let parts = case["slices"].as_array().unwrap().iter();
            let parts: Vec<Slice> =
                parts.map(|p| Slice::new(end(&p[0]), end(&p[1]), end(&p[2]).unwrap())).collect();
            whole[0].slice(&parts[..])
        }
        "concat" => rt.concat(&whole, axis()),
        "stack" => rt.stack(&whole, axis()),
        "arange" => match dtype(case["dtype"].as_str().unwrap()) {
            F64 => rt.arange(float(&numbers()[0]), float(&numbers()[1]), float(&numbers()[2])),
            F32 => {
                let at = |i: usize| float(&numbers()[i]) as f32;
                rt.arange(at(0), at(1), at(2))
            }
            I32 => rt.arange(size(0) as i32, size(1) as i32, size(2) as i32),
            _ => rt.arange(size(0), size(1), size(2)),
        },
        "linspace" => match dtype(case["dtype"].as_str().unwrap()) {
            F64 => rt.linspace(float(&numbers()[0]), float(&numbers()[1]), size(2) as usize),
            F32 => rt.linspace(float(&numbers()[0]) as f32, float(&numbers()[1]) as f32, size(2) as usize),
            _ => rt.linspace(size(0) as i32, size(1) as i32, size(2) as usize),
        },
        "eye_at" => rt.eye_at::<i32>(size(0) as usize, size(1) as usize, size(2) as isize),
        _ => match Op::from_name(op).unwrap() {
            Op::Binary(_) if case.get("axis").is_some() && op == "max" => whole[0].max(over(case)),
            Op::Binary(_) if case.get("axis").is_some() => whole[0].min(over(case)),
            Op::Reduce { kind, .. } => whole[0].reduce(kind, over(case)),
            other => rt.apply(other, &sides),
        },
    }
}

/// Whether `got` is what NumPy has, to the last digits that functions may differ in; zeros with their sign.
fn agrees(got: f64, want: f64, dtype: DType) -> bool {
    let tolerance = if dtype == F32 { 5e-7 } else { 2e-15 };
    match want {
        _ if want.is_nan() => got.is_nan(),
        w if w == 0.0 => got == 0.0 && got.is_sign_negative() == w.is_sign_negative(),
        w if w.is_infinite() => got == w,
        w => (got - w).abs() <= tolerance * w.abs(),
    }
}

/// What is wrong with the answer to a case.
fn fault(rt: &Runtime, case: &Value, way: Way) -> Option<String> {
    let got = ours(rt, case, way);
    let want = case.get("ours").unwrap_or(&case["want"]);
    match (want.as_str(), got.check()) {
        (Some(_), Err(_)) => return None,
        (Some(_), Ok(())) => return Some(format!("no error but {got}")),
        (None, Err(why)) => return Some(why.to_string()),
        (None, Ok(())) => {}
    }
    let d = match want["dtype"].as_str()? {
        "float16" => F16,
        name => dtype(name),
    };
    let mut shape: Vec<usize> = list(&want["shape"]).iter().map(|&n| n as usize).collect();
    if way == Way::Long {
        shape[0] *= TIMES;
    }
    if got.dtype() != d || got.shape() != shape {
        return Some(format!("{got:?}"));
    }
    let data = want["data"].as_array()?;
    let same = if d == I64 {
        got.to_vec::<i64>().unwrap().iter().zip(data.iter().cycle()).all(|(g, w)| Some(*g) == w.as_i64())
    } else {
        let got = got.cast(F64).to_vec::<f64>().unwrap();
        got.iter().zip(data.iter().cycle()).all(|(&g, w)| agrees(g, float(w), d))
    };
    (!same).then(|| got.to_string())
}

fn all_agree(way: Way, at_least: usize) {
    let rt = runtime();
    let cases = CASES.lines().map(|line| (line, serde_json::from_str::<Value>(line).unwrap()));
    let cases: Vec<_> = cases.filter(|(_, case)| way != Way::Long || repeats(case)).collect();
    assert!(cases.len() >= at_least, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for (line, case) in &cases {
        if let Some(fault) = fault(&rt, case, way) {
            wrong.push(format!("{line}\n  gives {fault}"));
        }
        if let Some(different) = case.get("ours") {
            assert_ne!(different, &case["want"], "a difference that is none: {line}");
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn arrays_answer_as_numpy_but_where_they_say_otherwise() {
    all_agree(Way::Given, 700);
}

#[test]
fn they_do_also_in_one_group_with_what_comes_before() {
    all_agree(Way::Passing, 700);
}

#[test]
fn they_do_also_over_many_elements() {
    all_agree(Way::Long, 100);
}
