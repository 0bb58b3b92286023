//! Fused groups against the same steps one by one, and against how fast memory can be copied; all of a line take
//! turns in one run.
//!
//! `cargo run --release -p steersman-cpu --example fused_speed [part-of-name]`

use std::sync::Arc;
use std::time::Instant;
use steersman_core::expr::{Dist, Expr, Step, Value};
use steersman_core::{
    Address, Axes, BinaryOp, DType, DeviceId, Io, Kernel, Op, Operand, ReduceOp, UnaryOp, Workload,
};
use steersman_cpu::context::Context;
use steersman_cpu::host::Host;
use steersman_cpu::threads::Team;
use steersman_cpu::{fused, map, moves};

const SIZES: [usize; 4] = [100, 10_000, 1_000_000, 100_000_000];

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let host = Arc::new(Host::detect());
    let ctx = Context { device: DeviceId(0), team: Arc::new(Team::new(host.cores)), host };
    for (name, chain) in [("cheap", cheap as fn() -> Expr), ("mixed", mixed), ("summed", summed)] {
        if name.contains(&wanted) {
            SIZES.iter().for_each(|&n| line(&ctx, name, &Arc::new(chain()), n));
        }
    }
    if "monte-carlo".contains(&wanted) {
        let started = Instant::now();
        let expr = Arc::new(paths(256));
        println!("{} steps described in {:.0} µs", expr.steps().len(), started.elapsed().as_secs_f64() * 1e6);
        line(&ctx, "monte-carlo", &expr, 250_000);
    }
}

/// Ten ops that take less time than reading their operands.
fn cheap() -> Expr {
    use BinaryOp::{Add, Max, Min, Mul, Sub};
    let mut b = Expr::builder([DType::F32]);
    let mut v = b.input(0).expect("declared");
    for (i, op) in [Mul, Add, Sub, Mul, Max, Add, Mul, Min, Sub, Mul].into_iter().enumerate() {
        let s = b.scalar(i as u16, DType::F32).expect("a new scalar");
        v = b.binary(op, v, s).expect("one type");
    }
    b.output(v).expect("a value");
    b.finish().expect("an output")
}

/// Ten ops, some of them functions, on two operands.
fn mixed() -> Expr {
    let mut b = Expr::builder([DType::F32, DType::F32]);
    let (x, y) = (b.input(0).expect("declared"), b.input(1).expect("declared"));
    let s = b.scalar(0, DType::F32).expect("a new scalar");
    let mut v = b.binary(BinaryOp::Mul, x, y).expect("one type");
    for op in [UnaryOp::Abs, UnaryOp::Sqrt, UnaryOp::Neg, UnaryOp::Exp] {
        v = b.unary(op, v).expect("a float");
    }
    for op in [BinaryOp::Mul, BinaryOp::Add, BinaryOp::Sub] {
        v = b.binary(op, v, s).expect("one type");
    }
    let v = b.binary(BinaryOp::Max, v, x).expect("one type");
    let v = b.unary(UnaryOp::Tanh, v).expect("a float");
    b.output(v).expect("a value");
    b.finish().expect("an output")
}

/// Nine cheap ops and a sum.
fn summed() -> Expr {
    let mut b = Expr::builder([DType::F32]);
    let x = b.input(0).expect("declared");
    let s = b.scalar(0, DType::F32).expect("a new scalar");
    let mut v = x;
    for i in 0..9 {
        let op = [BinaryOp::Mul, BinaryOp::Sub, BinaryOp::Add][i % 3];
        v = b.binary(op, v, if i % 2 == 0 { s } else { x }).expect("one type");
    }
    b.reduce(ReduceOp::Sum, Axes::NONE, v).expect("a float");
    b.finish().expect("an output")
}

/// The mean payoff of an option over paths of `steps` steps.
fn paths(steps: u16) -> Expr {
    let mut b = Expr::builder([]);
    let (drift, vol, strike) = (b.scalar(0, DType::F32), b.scalar(1, DType::F32), b.scalar(2, DType::F32));
    let (drift, vol, strike) = (drift.expect("new"), vol.expect("new"), strike.expect("new"));
    let mut x: Option<Value> = None;
    for t in 0..steps {
        let z = b.random(Dist::Normal, DType::F32, 3 + t).expect("a float");
        let step = b.binary(BinaryOp::Mul, z, vol).expect("one type");
        let step = b.binary(BinaryOp::Add, step, drift).expect("one type");
        x = Some(match x {
            Some(x) => b.binary(BinaryOp::Add, x, step).expect("one type"),
            None => step,
        });
    }
    let price = b.unary(UnaryOp::Exp, x.expect("a step at least")).expect("a float");
    let gain = b.binary(BinaryOp::Sub, price, strike).expect("one type");
    let gain = b.unary(UnaryOp::Relu, gain).expect("a float");
    b.reduce(ReduceOp::Mean, Axes::NONE, gain).expect("a float");
    b.finish().expect("an output")
}

/// Memory for `n` elements of four bytes, aligned.
fn memory(n: usize) -> Vec<[u64; 8]> {
    let mut memory = vec![[0u64; 8]; n / 16 + 2];
    // SAFETY: plain words, of which floats may be made.
    let floats =
        unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<f32>(), memory.len() * 16) };
    floats.iter_mut().enumerate().for_each(|(i, x)| *x = (i % 1000) as f32 / 1000.0 + 0.1);
    memory
}

fn at(memory: &[[u64; 8]]) -> Address {
    Address::host(memory.as_ptr().wrapping_byte_add(memory.as_ptr().cast::<u8>().align_offset(64)))
}

/// A contender: its name, what it runs, its best and all its times.
struct Runner<'a> {
    name: String,
    run: Box<dyn Fn() + 'a>,
    times: Vec<f64>,
}

fn line(ctx: &Context, name: &str, expr: &Arc<Expr>, n: usize) {
    let operand = Operand::new(DType::F32, &[n]).expect("an operand");
    let w = Workload::fused(expr, &[n], vec![operand.clone(); expr.inputs().len()]).expect("a group");
    let data: Vec<_> = (0..expr.inputs().len().max(1)).map(|_| memory(n)).collect();
    let (out, other) = (memory(n), memory(n));
    let inputs: Vec<Address> = data.iter().map(|m| at(m)).collect();
    let scalars: Vec<u64> =
        expr.scalars().iter().map(|d| if d.is_some() { 0.01f32.to_bits().into() } else { 7 }).collect();
    let copy: Workload = format!("copy f32 {n}").parse().expect("a workload");
    let stream: Workload = format!("abs f32 {n}").parse().expect("a workload");
    let mut runners: Vec<Runner<'_>> = Vec::new();
    for k in fused::kernels(ctx).into_iter().filter(|k| !k.name().ends_with("scalar")) {
        for p in k.params(&w) {
            let (k, w, inputs, scalars, out) = (k.clone(), &w, &inputs, &scalars, &out);
            let name = format!("{} {p}", k.name());
            let run = move || {
                let io = Io { scalars, ..Io::new(&inputs[..w.inputs().len()], at(out)) };
                // SAFETY: memory holds `n` elements.
                unsafe { k.run(w, p, io) }.expect("it was offered");
            };
            runners.push(Runner { name, run: Box::new(run), times: Vec::new() });
        }
    }
    if expr.steps().len() < 100 {
        for k in map::kernels(ctx).into_iter().filter(|k| k.name().contains("avx512")) {
            let all = sequence(expr, n);
            for p in k.params(&all[0]) {
                let (name, all, k) = (format!("unfused {} {p}", k.name()), all.clone(), k.clone());
                if all.iter().any(|w| k.supports(w).is_err()) {
                    continue;
                }
                let (a, b, s) = (at(&out), at(&other), inputs[0]);
                let run = move || {
                    for (i, w) in all.iter().enumerate() {
                        // From one array to the other and back; a scalar is any element.
                        let (from, to) = if i % 2 == 0 { (a, b) } else { (b, a) };
                        let args = [if i == 0 { s } else { from }, s];
                        // SAFETY: memory holds `n` elements.
                        unsafe { k.run(w, p, Io::new(&args[..w.inputs().len()], to)) }
                            .expect("it was offered");
                    }
                };
                runners.push(Runner { name, run: Box::new(run), times: Vec::new() });
            }
        }
    }
    let mut copiers: Vec<(Arc<dyn Kernel>, &Workload)> = moves::kernels(ctx)
        .into_iter()
        .filter(|k| !k.name().ends_with("scalar"))
        .map(|k| (k, &copy))
        .collect();
    copiers.extend(map::kernels(ctx).into_iter().filter(|k| k.name().contains("avx")).map(|k| (k, &stream)));
    for (k, w) in copiers.into_iter().filter(|(k, w)| k.supports(w).is_ok()) {
        for p in k.params(w) {
            let (from, to, k) = ([inputs.first().copied().unwrap_or(at(&data[0]))], at(&out), k.clone());
            let name = format!("copy by {} {p}", k.name());
            let run = move || {
                // SAFETY: memory holds `n` elements.
                unsafe { k.run(w, p, Io::new(&from, to)) }.expect("it was offered");
            };
            runners.push(Runner { name, run: Box::new(run), times: Vec::new() });
        }
    }
    let (rounds, repeats) = if n >= 10_000_000 {
        (7, 1)
    } else if name == "monte-carlo" {
        (9, 1)
    } else {
        (25, 200_000 / n + 1)
    };
    for _ in 0..rounds {
        for r in &mut runners {
            let start = Instant::now();
            (0..repeats).for_each(|_| (r.run)());
            r.times.push(start.elapsed().as_secs_f64() / repeats as f64);
        }
    }
    let best = |kind: &str| {
        let of = runners.iter().filter(|r| r.name.starts_with(kind));
        of.map(|r| (r.times.iter().copied().fold(f64::INFINITY, f64::min), r.name.as_str()))
            .min_by(|a, b| a.0.total_cmp(&b.0))
    };
    println!("{name} f32 {n}");
    let Some((fused, who)) = best("cpu/fused") else { return };
    println!("  fused    {:>12.2} µs   {who}", fused * 1e6);
    if let Some((unfused, who)) = best("unfused") {
        println!(
            "  unfused  {:>12.2} µs   {who}   fused is {:.2} times as fast",
            unfused * 1e6,
            unfused / fused
        );
    }
    if let Some((copied, who)) = best("copy") {
        let share = w.bytes() / fused / (copy.bytes() / copied);
        println!(
            "  copy     {:>12.2} µs   {who}   fused moves its bytes at {share:.2} of that",
            copied * 1e6
        );
    }
    if wanted_all() {
        for r in &runners {
            let best = r.times.iter().copied().fold(f64::INFINITY, f64::min);
            println!("    {:<40} {:>12.2} µs", r.name, best * 1e6);
        }
    }
}

/// Whether every contender is to be shown.
fn wanted_all() -> bool {
    std::env::args().any(|a| a == "--all")
}

/// The element-wise steps of an expression as workloads of their own.
fn sequence(expr: &Expr, n: usize) -> Vec<Workload> {
    let full = Operand::new(DType::F32, &[n]).expect("an operand");
    let one = Operand::new(DType::F32, &[1]).expect("an operand");
    let is_scalar = |v: Value| matches!(expr.steps()[v.index()], Step::Scalar(..));
    let step = |s: &Step| {
        let op = match *s {
            Step::Unary(u, _) => Op::Unary(u),
            Step::Binary(b, ..) => Op::Binary(b),
            _ => return None,
        };
        let operands = s.arguments().map(|v| if is_scalar(v) { one.clone() } else { full.clone() });
        Workload::new(op, operands).ok()
    };
    expr.steps().iter().filter_map(step).collect()
}
