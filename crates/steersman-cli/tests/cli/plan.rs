//! Array programs: their plan as text, JSON and pictures, and the line that is wrong.

use crate::home::{Home, text};

const PROGRAM: &str = "\
x = input f32 200x300   # what it starts from
w = input f32 300x40
y = matmul x w
z = relu y
s = add z 0.5
m = mean z axis=0
read m s
";

#[test]
fn a_program_is_run_and_its_plan_shown() {
    let home = Home::new();
    let file = home.write("p.plan", PROGRAM);
    let ended = home.steer(&["plan", text(&file)]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    for part in [
        "m f32 40, s f32 200x40",
        "matmul f32 200x300 300x40",
        "of x w",
        "relu",
        "fused",
        "expected",
        "measured",
    ] {
        assert!(ended.out.contains(part), "{part:?} is missing in {}", ended.out);
    }
}

#[test]
fn the_plan_is_data_too() {
    let home = Home::new();
    let file = home.write("p.plan", PROGRAM);
    let plan = home.json(&["plan", text(&file), "--runs", "2"]);
    assert_eq!(plan["result"], "m f32 40, s f32 200x40");
    assert_eq!(plan["runs"], 2);
    assert_eq!(plan["input_bytes"], (200 * 300 + 300 * 40) * 4);
    assert!(plan["measured_s"].as_f64().is_some_and(|s| s > 0.0), "{plan}");
    let stages = plan["stages"].as_array().expect("a list");
    assert_eq!(stages.iter().filter_map(|s| s["ops"].as_u64()).sum::<u64>(), 4, "{plan}");
    assert_eq!(stages[0]["workload"], "matmul f32 200x300 300x40");
}

#[test]
fn pictures_are_written_and_standard_output_stays_json() {
    let home = Home::new();
    let file = home.write("p.plan", PROGRAM);
    let (dot, svg) = (home.path("p.dot"), home.path("p.svg"));
    home.json(&["plan", text(&file), "--dot", text(&dot), "--svg", text(&svg)]);
    let dot = std::fs::read_to_string(dot).expect("the graph was written");
    let svg = std::fs::read_to_string(svg).expect("the picture was written");
    for part in
        ["digraph", "matmul", "f32 200x40", "x\\nf32 200x300, 240 kB", "in0 -> s0", "measured", "\"host\""]
    {
        assert!(dot.contains(part), "{part:?}: {dot}");
    }
    for part in
        ["<svg", ">matmul<", "f32 200x40", ">x<", ">w<", "marker-end", "expected", "measured", ">host<"]
    {
        assert!(svg.contains(part), "{part:?}: {svg}");
    }
    let ended = home.steer(&["plan", text(&file), "--svg", "no/such/folder/p.svg"]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("no/such/folder"), "{}", ended.err);
}

#[test]
fn what_no_line_uses_is_read_and_inputs_may_be_read_too() {
    let home = Home::new();
    let file = home.write("p.plan", "x = input i64 4x5\na = sum x\nb = transpose x\nc = add x 1\n");
    let unused = home.json(&["plan", text(&file)]);
    assert_eq!(unused["result"], "a i64 scalar, b i64 5x4, c i64 4x5");
    let file = home.write("p.plan", "x = input i64 4x5\na = neg x\nread x a\n");
    let both = home.json(&["plan", text(&file)]);
    assert_eq!(both["result"], "x i64 4x5, a i64 4x5");
    assert_eq!(both["stages"].as_array().map(Vec::len), Some(1), "the plan is the negation's: {both}");
    assert_eq!(both["stages"][0]["workload"], "neg i64 4x5");
}

#[test]
fn every_way_to_make_an_array_runs() {
    let program = "\
u = uniform f64 6x7
n = normal f32 7
a = arange 6
c = cast f64 a
b = input bool 6x7
h = input f16 6x1
k = input u8 7
p = where b u 0.25
q = clamp n -1 1
r = fma u 2 n
s = std r axis=-1 keep=true
t = transpose r perm=1,0
v = matmul c u
o = where b 1 0
i = max k 3
j = max k
l = xor b true
g = copy t
read p q s v o i j l g h
";
    let home = Home::new();
    let file = home.write("p.plan", program);
    let plan = home.json(&["plan", text(&file), "--runs", "1"]);
    assert_eq!(
        plan["result"],
        "p f64 6x7, q f32 7, s f64 6x1, v f64 7, o i64 6x7, i u8 7, j u8 scalar, l bool 6x7, g f64 7x6, h f16 6x1"
    );
}

#[test]
fn a_program_may_come_from_standard_input() {
    let home = Home::new();
    let file = home.write("p.plan", PROGRAM);
    let input = std::fs::File::open(file).expect("it was written");
    let output = home.command(&["plan", "-"]).stdin(input).output().expect("the binary can be run");
    assert_eq!(crate::home::ended(output).code, Some(0));
}

#[test]
fn the_sample_program_is_sound() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/mlp.plan");
    let plan = Home::new().json(&["plan", sample, "--runs", "1"]);
    assert_eq!(plan["result"], "likely f32 512x10, class i64 512");
}

#[test]
fn a_line_that_is_wrong_is_named_with_what_was_expected() {
    let home = Home::new();
    let head = "# a program\nx = input f32 3x4\n\n";
    for (line, words) in [
        ("y", &["no statement", "NAME = OP"][..]),
        ("y =", &["nothing follows", "NAME = OP"]),
        ("y = frob x", &["no op 'frob'", "matmul"]),
        ("y = conv2d x x", &["no op 'conv2d'"]),
        ("y = add x z", &["no value 'z'", "x"]),
        ("y = exp y", &["no value 'y'"]),
        ("y = add x", &["takes 2 operand", "add x y"]),
        ("y = add 1 2", &["at least one operand must be an array"]),
        ("y = matmul x 2", &["'2' is no array", "name of a value"]),
        ("y = where 1 x x", &["'1' is no array"]),
        ("y = matmul x x", &["columns (4)"]),
        ("y = add x 1..2", &["'1..2'", "0.5"]),
        ("y = sum x axis=7", &["axis 7", "(3, 4)"]),
        ("y = sum x axis=one", &["axis=one", "axis=1,0"]),
        ("y = sum x along=1", &["along=1", "axis="]),
        ("y = exp x axis=1", &["axis=1", "reductions"]),
        ("y = transpose x perm=0,0", &["axes 0, 0", "f32 (3, 4)"]),
        ("y = transpose x axis=0", &["axis=0", "perm="]),
        ("y = and x x", &["not defined for f32"]),
        ("y = input f99 3", &["f99", "f32"]),
        ("y = input f32 3x", &["'3x'", "1024x512"]),
        ("y = input f32", &["element type and a shape"]),
        ("y = input f32 99999999999x99999999", &["too large"]),
        ("y = uniform i32 3", &["i32", "f32 or f64"]),
        ("y = arange -3", &["-3"]),
        ("y = cast x", &["element type and a value"]),
        ("x = exp x", &["line 2 already"]),
        ("2y = exp x", &["'2y' is not a name"]),
        ("read", &["read names nothing"]),
        ("read z", &["no value 'z'"]),
    ] {
        let file = home.write("p.plan", format!("{head}{line}\nlast = exp x\n"));
        let ended = home.steer(&["plan", text(&file), "--json"]);
        assert_eq!(ended.code, Some(2), "{line}: {}{}", ended.out, ended.err);
        assert_eq!(ended.out, "", "{line}");
        assert!(!ended.err.contains("panicked"), "{line}: {}", ended.err);
        for word in ["line 4: "].iter().chain(words) {
            assert!(ended.err.contains(word), "{line}: {:?} should say {word:?}", ended.err);
        }
    }
}

#[test]
fn files_that_hold_no_program_are_refused() {
    let home = Home::new();
    for (content, word) in
        [("# nothing\n", "no statements"), ("x = input f32 3\ny = cast f32 x\n", "nothing but inputs")]
    {
        let file = home.write("p.plan", content);
        let ended = home.steer(&["plan", text(&file)]);
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        assert!(ended.err.contains(word), "{}", ended.err);
    }
    let missing = home.steer(&["plan", "missing.plan"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("missing.plan"), "{}", missing.err);
}

#[test]
fn more_memory_than_there_is_is_a_failure_of_its_line() {
    let home = Home::new();
    let file = home.write("p.plan", "x = input f32 3\ny = input f32 999999999999\nz = add x 1\n");
    let ended = home.steer(&["plan", text(&file)]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("line 2: ") && ended.err.contains("over the limit"), "{}", ended.err);
}
