//! `.npy` files in and out, checked against numbers worked out by hand.

use crate::home::{Home, text};
use std::path::Path;

/// An f32 array as numpy would save it.
fn npy(shape: &str, fortran: bool, values: &[f32]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': {shape}, }}");
    header += &" ".repeat(127 - 10 - header.len());
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

fn numbers(path: &Path, shape: &str) -> Vec<f32> {
    let bytes = std::fs::read(path).expect("the result was written");
    let length = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let header = String::from_utf8_lossy(&bytes[10..10 + length]).into_owned();
    assert!(header.contains(&format!("'shape': {shape},")), "{header}");
    let data = bytes[10 + length..].chunks_exact(4);
    data.map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

#[test]
fn operands_are_read_broadcast_and_the_result_is_written() {
    let home = Home::new();
    let a = home.write("a.npy", npy("(2, 3)", false, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let b = home.write("b.npy", npy("(3,)", false, &[10.0, 20.0, 30.0]));
    let c = home.path("c.npy");
    let ended = home.steer(&["run", "add f32 2x3 3", "--input", text(&a), text(&b), "--output", text(&c)]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(numbers(&c, "(2, 3)"), [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
}

#[test]
fn every_kernel_gives_the_same_product_of_a_fortran_ordered_matrix() {
    let home = Home::new();
    // [[1, 2, 3], [4, 5, 6]] column by column, times [[1, 0], [0, 1], [1, 1]].
    let a = home.write("a.npy", npy("(2, 3)", true, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    let b = home.write("b.npy", npy("(3, 2)", false, &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]));
    let c = home.path("c.npy");
    let work = "matmul f32 2x3 3x2";
    let e = home.json(&["explain", "matmul f32 2x3:1,2 3x2"]);
    for candidate in e["candidates"].as_array().expect("a list") {
        let id = candidate["id"].as_str().expect("text");
        let ended = home.steer(&[
            "run",
            work,
            "--kernel",
            id,
            "--repeat",
            "1",
            "--input",
            text(&a),
            "--input",
            text(&b),
            "--output",
            text(&c),
        ]);
        assert_eq!(ended.code, Some(0), "{id}: {}", ended.err);
        assert_eq!(numbers(&c, "(2, 2)"), [4.0, 5.0, 10.0, 11.0], "{id}");
    }
}

#[test]
fn nan_and_infinity_come_through() {
    let home = Home::new();
    let a = home.write("a.npy", npy("(3,)", false, &[f32::NAN, f32::INFINITY, 1.0]));
    let c = home.path("c.npy");
    let ended = home.steer(&["run", "neg f32 3", "--input", text(&a), "--output", text(&c)]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let got = numbers(&c, "(3,)");
    assert!(got[0].is_nan());
    assert_eq!(got[1..], [f32::NEG_INFINITY, -1.0]);
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let home = Home::new();
    let a = home.write("a.npy", npy("(2, 3)", false, &[0.0; 6]));
    let short = home.write("short.npy", npy("(2, 3)", false, &[0.0; 5]));
    let text_file = home.write("text.npy", "not an array");
    let (a, short, text_file) = (text(&a), text(&short), text(&text_file));
    for (args, word) in [
        (vec!["neg f32 3x2", "--input", a], "2x3"),
        (vec!["neg f64 2x3", "--input", a], "f64"),
        (vec!["add f32 2x3 2x3", "--input", a], "2 operand"),
        (vec!["neg f32 2x3", "--input", short], "cut short"),
        (vec!["neg f32 2x3", "--input", text_file], "not a .npy"),
        (vec!["neg f32 2x3", "--input", "missing.npy"], "missing.npy"),
        (vec!["neg bf16 2x3", "--input", a, "--output", "c.npy"], "bfloat16"),
    ] {
        let all: Vec<&str> = ["run"].into_iter().chain(args).collect();
        let ended = home.steer(&all);
        assert_eq!(ended.code, Some(2), "{all:?}: {}", ended.err);
        assert!(ended.err.contains(word), "{all:?}: {} should say {word}", ended.err);
    }
}

#[test]
fn an_operand_that_broadcasting_makes_empty_comes_as_it_is() {
    let home = Home::new();
    let one = home.write("one.npy", npy("(1,)", false, &[1.0]));
    let column = home.write("column.npy", npy("(5, 1)", false, &[1.0; 5]));
    let (e, flat, wide) = ("(0,)", "(0, 5)", "(5, 0)");
    for (w, empty, other, shape) in [
        ("sub f32 0 1", e, &one, e),
        ("sub f32 0x5 1", flat, &one, flat),
        ("sub f32 5x0 5x1", wide, &column, wide),
    ] {
        let a = home.write("e.npy", npy(empty, false, &[]));
        let c = home.path("c.npy");
        let ended = home.steer(&["run", w, "--input", text(&a), text(other), "--output", text(&c)]);
        assert_eq!(ended.code, Some(0), "{w}: {}", ended.err);
        assert_eq!(numbers(&c, shape), [0.0f32; 0], "{w}");
    }
}

#[test]
fn shapes_are_those_that_numpy_has() {
    let home = Home::new();
    let scalar = home.write("s.npy", npy("()", false, &[3.0]));
    let v = home.write("v.npy", npy("(2,)", false, &[1.0, 2.0]));
    let m = home.write("m.npy", npy("(2, 2)", false, &[1.0, 2.0, 3.0, 4.0]));
    let (s, v, m) = (text(&scalar), text(&v), text(&m));
    for (w, inputs, shape, values) in [
        ("add f32 2 1", vec![v, s], "(2,)", vec![4.0, 5.0]),
        ("matmul f32 2 2", vec![v, v], "()", vec![5.0]),
        ("matmul f32 2x2 2", vec![m, v], "(2,)", vec![5.0, 11.0]),
        ("matmul f32 2 2x2", vec![v, m], "(2,)", vec![7.0, 10.0]),
        ("matmul f32 2x2 2x2", vec![m, m], "(2, 2)", vec![7.0, 10.0, 15.0, 22.0]),
        ("sum f32 2", vec![v], "()", vec![3.0]),
    ] {
        let c = home.path("c.npy");
        let all = [vec!["run", w, "--input"], inputs, vec!["--output", text(&c)]].concat();
        let ended = home.steer(&all);
        assert_eq!(ended.code, Some(0), "{w}: {}", ended.err);
        assert_eq!(numbers(&c, shape), values, "{w}");
    }
}

#[test]
fn strides_are_those_of_the_files() {
    let home = Home::new();
    let m = home.write("m.npy", npy("(2, 2)", false, &[1.0, 2.0, 3.0, 4.0]));
    let strided = home.steer(&["run", "neg f32 2x2:1,2", "--input", text(&m)]);
    assert_eq!(strided.code, Some(2), "{}", strided.err);
    assert!(strided.err.contains("'2x2:1,2' names strides"), "{}", strided.err);
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let home = Home::new();
    let a = home.write("a.npy", npy("(1,)", false, &[1.0]));
    let ended = home.steer(&["run", "neg f32 1", "--input", text(&a), "--output", "no/such/folder/c.npy"]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("no/such/folder"), "{}", ended.err);
}
