//! What to calibrate: workloads spread over the sizes people use, none of them special.

use crate::matmul::amx::Amx;
use std::sync::Arc;
use steersman_core::expr::{Dist, Expr, ExprError};
use steersman_core::tune::Wanted;
use steersman_core::{
    Axes, BinaryOp, DType, NumericClass, Op, Operand, ReduceOp, TernaryOp, UnaryOp, Workload,
};

/// Workloads worth knowing. `quick` leaves out rare ops, rare types and everything slow.
pub fn workloads(quick: bool) -> Vec<Wanted> {
    let mut all = Vec::new();
    elementwise(&mut all, quick);
    reductions(&mut all, quick);
    products(&mut all, quick);
    narrow_products(&mut all, quick);
    transposes(&mut all, quick);
    convolutions(&mut all, quick);
    groups(&mut all, quick);
    all
}

/// Sizes of an element-wise sweep. Odd ones, so that tails are part of what is learned.
const SIZES: [usize; 16] = [
    1, 7, 37, 163, 701, 2_503, 6_101, 17_011, 45_007, 120_011, 330_017, 900_001, 2_100_011, 4_900_003,
    9_800_009, 16_000_057,
];

/// Sizes at which an op's own way to the first result is most of what it takes: they cost nothing, and are looked at for
/// every op.
const TINY: [usize; 2] = [3, 13];

/// Bytes of an operand beyond which all is as large as anything: more teaches little, and takes long.
const FAR: usize = 45 << 20;

/// Sizes around which three or two operands outgrow the last cache, of f32 or f64, and of those it never holds: times triple
/// between two of [`SIZES`] there, and writing past the cache begins to pay.
const OUTGROWN: [usize; 5] = [1_100_009, 1_400_017, 1_750_019, 3_100_003, 6_600_011];

/// Sizes around which three operands of f32 or f64 outgrow second caches of one or two megabytes, of one core or two: times double
/// between two of [`SIZES`] there. (On a Xeon `add` of 330,017 f32 on two threads takes 17 µs, of 395,283 it takes 57.)
const OUTGROWN_SECOND: [usize; 4] = [75_011, 210_011, 420_017, 600_011];

fn push(all: &mut Vec<Wanted>, importance: f64, op: Op, dtype: DType, shapes: &[&[usize]]) {
    let operands = shapes.iter().enumerate().map(|(i, s)| {
        let condition = op == Op::Ternary(TernaryOp::Where) && i == 0;
        Operand::new(if condition { DType::Bool } else { dtype }, s)
    });
    if let Ok(operands) = operands.collect::<Result<Vec<_>, _>>()
        && let Ok(w) = Workload::new(op, operands)
    {
        all.push(Wanted { workload: w, importance });
    }
}

/// What few people run is measured with what time is left.
const RARE: f64 = 0.02;

fn elementwise(all: &mut Vec<Wanted>, quick: bool) {
    let common = [DType::F32, DType::F64];
    let rare = [DType::I32, DType::I64, DType::F16, DType::BF16, DType::U8, DType::Bool, DType::U32];
    let ops = UnaryOp::ALL.iter().map(|&u| Op::Unary(u));
    let ops = ops
        .chain(BinaryOp::ALL.iter().map(|&b| Op::Binary(b)))
        .chain(TernaryOp::ALL.iter().map(|&t| Op::Ternary(t)));
    for op in ops {
        let everyday = matches!(
            op,
            Op::Unary(
                UnaryOp::Exp
                    | UnaryOp::Tanh
                    | UnaryOp::Relu
                    | UnaryOp::Sqrt
                    | UnaryOp::Ln
                    | UnaryOp::Sin
                    | UnaryOp::Sigmoid
            ) | Op::Binary(BinaryOp::Add | BinaryOp::Mul | BinaryOp::Sub | BinaryOp::Div | BinaryOp::Max)
                | Op::Ternary(TernaryOp::Fma)
        );
        for dtype in common.iter().chain(if quick { &[][..] } else { &rare[..] }) {
            let often = everyday && common.contains(dtype);
            if quick && !often {
                continue;
            }
            for n in TINY.into_iter().filter(|_| !quick && common.contains(dtype)) {
                push(all, 3.0, op, *dtype, &vec![&[n][..]; op.arity()]);
            }
            for n in OUTGROWN_SECOND.into_iter().filter(|_| !quick && often) {
                push(all, 6.0, op, *dtype, &vec![&[n][..]; op.arity()]);
            }
            for (i, &n) in SIZES.iter().enumerate() {
                // Rare ones lean on the pool of their kernel: a few sizes settle their own rate.
                let wanted =
                    if often { !quick || (i % 2 == 0 && i < 14) } else { matches!(i, 2 | 4 | 6 | 9) };
                // Beyond the caches every op of a class is alike: a few stand for all, and are worth their time.
                let stands_for_all = matches!(
                    op,
                    Op::Unary(UnaryOp::Relu | UnaryOp::Exp | UnaryOp::Tanh)
                        | Op::Binary(BinaryOp::Add | BinaryOp::Div)
                );
                let importance = match () {
                    _ if !often && !common.contains(dtype) => RARE,
                    _ if !often => 1.0,
                    // 4.9 million elements of three operands are where the last cache ends. Far beyond it fresh memory
                    // takes longer than what is learned by it is worth.
                    _ if n * dtype.size() > FAR => 0.5,
                    _ if n > 1_000_000 && stands_for_all && (i % 2 == 0 || i == 13) => 40.0,
                    _ if n > 1_000_000 => 0.5,
                    _ => 3.0,
                };
                if wanted {
                    push(all, importance, op, *dtype, &vec![&[n][..]; op.arity()]);
                }
            }
        }
    }
    if !quick {
        for dtype in common {
            for n in OUTGROWN {
                push(all, 40.0, Op::Unary(UnaryOp::Relu), dtype, &[&[n]]);
                push(all, 40.0, Op::Binary(BinaryOp::Add), dtype, &[&[n], &[n]]);
            }
            // Short rows take what their length makes of a vector, so that many lengths are looked at; they cost little.
            for rows in [1, 3, 11, 41, 170, 400, 1000, 2601] {
                for cols in [1, 2, 3, 5, 9, 14, 19, 26, 45, 77, 150, 300, 1300] {
                    push(all, 12.0, Op::Binary(BinaryOp::Add), dtype, &[&[rows, cols], &[cols]]);
                    push(all, 6.0, Op::Binary(BinaryOp::Mul), dtype, &[&[rows, cols], &[rows, 1]]);
                }
            }
            // What computes for longer than it moves is not as much longer than thought as these are. (Of `div` 804×5 and 5 f32 were
            // thought to take 4.9 µs, by `add`, and take 1.0.)
            for rows in [3, 41, 400, 2601] {
                for cols in [2, 5, 14, 45, 150, 1300] {
                    push(all, 6.0, Op::Binary(BinaryOp::Div), dtype, &[&[rows, cols], &[cols]]);
                    push(all, 6.0, Op::Binary(BinaryOp::Div), dtype, &[&[rows, cols], &[rows, 1]]);
                }
            }
            // One value for all.
            for n in SIZES.into_iter().step_by(2) {
                push(all, 3.0, Op::Binary(BinaryOp::Mul), dtype, &[&[n], &[1]]);
            }
        }
    }
}

fn reductions(all: &mut Vec<Wanted>, quick: bool) {
    let edges: &[usize] =
        if quick { &[3, 29, 211, 1499] } else { &[1, 3, 7, 13, 29, 83, 211, 600, 1499, 3989] };
    for &kind in ReduceOp::ALL {
        let everyday = matches!(kind, ReduceOp::Sum | ReduceOp::Max | ReduceOp::Min | ReduceOp::Mean);
        let dtypes: &[DType] = if everyday || !quick { &[DType::F32, DType::F64] } else { &[] };
        for &dtype in dtypes {
            for (i, &rows) in edges.iter().enumerate() {
                for (j, &cols) in edges.iter().enumerate() {
                    if !everyday && (i + j) % 4 != 0 {
                        continue;
                    }
                    for axes in [&[][..], &[0][..], &[1][..]] {
                        let axes = Axes::from_list(axes).unwrap_or_default();
                        push(
                            all,
                            if everyday { 2.5 } else { 1.0 },
                            Op::Reduce { kind, axes },
                            dtype,
                            &[&[rows, cols]],
                        );
                    }
                }
            }
            if everyday && !quick {
                // Short rows, where kernels differ most.
                for cols in [19, 45, 130] {
                    for &rows in edges {
                        let axes = Axes::from_list(&[1]).unwrap_or_default();
                        push(all, 2.5, Op::Reduce { kind, axes }, dtype, &[&[rows, cols]]);
                    }
                }
                // Columns that begin at cache lines, which none of the edges make.
                for cols in [32, 64, 256, 1024] {
                    for &rows in edges.iter().skip(2).step_by(2) {
                        let axes = Axes::from_list(&[0]).unwrap_or_default();
                        push(all, 1.0, Op::Reduce { kind, axes }, dtype, &[&[rows, cols]]);
                    }
                }
                for n in [9_000_011, 17_000_023] {
                    push(all, 1.0, Op::Reduce { kind, axes: Default::default() }, dtype, &[&[n]]);
                }
            }
        }
    }
}

/// Rows or columns of a product that are few.
const FEW: usize = 22;

fn products(all: &mut Vec<Wanted>, quick: bool) {
    let edges: &[usize] = if quick {
        &[1, 5, 23, 110, 470]
    } else {
        &[1, 2, 4, 7, 13, 22, 37, 61, 99, 170, 300, 520, 990, 1900]
    };
    let most = if quick { 3e7 } else { 6e8 };
    for dtype in [DType::F32, DType::F64] {
        for (i, &m) in edges.iter().enumerate() {
            for (j, &k) in edges.iter().enumerate() {
                for (l, &n) in edges.iter().enumerate() {
                    // A Latin square through the cube: every pair of edges, a third of the points.
                    let flops = 2.0 * m as f64 * k as f64 * n as f64;
                    let vector = m == 1 || n == 1;
                    if (i + j + l) % 3 == usize::from(dtype == DType::F64) && flops < most
                        || vector && (j + i + l) % 2 == 0
                    {
                        // Large ones take so long that none would be measured for what it teaches alone, and
                        // every large product is then a guess: some of them stand for their neighbours.
                        let importance = match flops {
                            f if f > 1e8 && (i + j + 2 * l) % 4 == 0 => 60.0,
                            f if f > 1e8 => 0.5,
                            f if f > 1e7 && (i + l) % 2 == 0 => 10.0,
                            // Few rows or columns are where kernels differ most.
                            f if f > 1e6 && m.min(n) <= FEW => 8.0,
                            f if f > 1e6 => 2.0,
                            // Where a second thread begins to pay. (Of those with rows and columns both none was measured
                            // on two, and 3 of 92 products ran on the wrong number, at 32 to 48% more.)
                            f if f > 1e5 => 3.0,
                            // A few samples stand for vectors, of which there are as many as of all the rest.
                            _ if vector => 2.0,
                            _ => 0.7,
                        };
                        push(all, importance, Op::MatMul, dtype, &[&[m, k], &[k, n]]);
                    }
                }
            }
        }
    }
}

/// Products of other types, and what a matrix unit makes of f32 where the caller allows it: kernels of their own, each of which a few
/// sizes settle.
fn narrow_products(all: &mut Vec<Wanted>, quick: bool) {
    let edges: &[(usize, usize, usize)] = &[
        (1, 300, 170),
        (7, 13, 22),
        (22, 61, 37),
        (37, 300, 22),
        (61, 170, 99),
        (170, 37, 520),
        (300, 300, 170),
        (300, 990, 520),
        (990, 170, 990),
    ];
    let unit = Amx::available();
    for &(m, k, n) in edges.iter().filter(|_| !quick) {
        let mut add = |dtype, importance, numerics| {
            let at = all.len();
            push(all, importance, Op::MatMul, dtype, &[&[m, k], &[k, n]]);
            let relaxed = |w: &mut Wanted| w.workload = w.workload.clone().with_numerics(numerics);
            all[at..].iter_mut().for_each(relaxed);
        };
        for dtype in [DType::BF16, DType::F16, DType::I32] {
            add(dtype, 1.0, NumericClass::Reassociated);
        }
        if unit {
            add(DType::F32, 3.0, NumericClass::Relaxed);
        }
    }
}

fn transposes(all: &mut Vec<Wanted>, quick: bool) {
    // None whose rows, of f32 or f64, lie about a multiple of half a page apart: those take up to twice as long as others near them
    // (see `crowding` in `moves/tiled.rs`), and would stand for all of these.
    let edges: &[usize] =
        if quick { &[4, 60, 700] } else { &[1, 2, 5, 9, 13, 21, 37, 101, 290, 740, 1700, 3700] };
    for dtype in [DType::F32, DType::F64] {
        for &rows in edges {
            for &cols in edges {
                // Large ones take long for what each of them teaches; a few stand for all. (Without them two threads
                // had been seen three times, and 44 MB went to one.)
                if rows * cols * dtype.size() > FAR {
                    continue;
                }
                let stands_for_all = matches!((rows, cols), (740, 1700) | (1700, 1700) | (3700, 1700));
                let importance = if stands_for_all { 300.0 } else { 3.0 };
                push(all, importance, Op::Transpose { perm: Default::default() }, dtype, &[&[rows, cols]]);
            }
        }
        // A few columns, or rows, which squares reach beyond or are too wide for.
        for (long, narrow) in
            [150, 1000, 5000].iter().flat_map(|&n| [3, 4, 7].map(|k| (n, k))).filter(|_| !quick)
        {
            for shape in [[long, narrow], [narrow, long]] {
                push(all, 3.0, Op::Transpose { perm: Default::default() }, dtype, &[&shape]);
            }
        }
        // Where two threads begin to pay, which depends on both sides and on where the cores lie.
        let between = [28, 60, 170, 480, 1100, 2500];
        for (rows, cols) in between.iter().flat_map(|&r| between.map(|c| (r, c))).filter(|_| !quick) {
            if (20_000..700_000).contains(&(rows * cols)) {
                push(all, 12.0, Op::Transpose { perm: Default::default() }, dtype, &[&[rows, cols]]);
            }
        }
        // Rows of whole cache lines, which can be written past the caches: none of the edges above is such.
        // (With two of f64, neither beyond the caches, 1632×2655 was left to one thread, at five times what two take.)
        for (rows, cols) in [(416, 2416), (2416, 416), (816, 1616), (1616, 1616), (2416, 2016), (3216, 2416)]
        {
            if rows * cols * dtype.size() > FAR {
                continue;
            }
            push(all, 40.0, Op::Transpose { perm: Default::default() }, dtype, &[&[rows, cols]]);
        }
        for &n in SIZES.iter().step_by(if quick { 4 } else { 2 }) {
            push(all, 0.5, Op::Copy, dtype, &[&[n]]);
        }
    }
}

fn convolutions(all: &mut Vec<Wanted>, quick: bool) {
    let channels: &[usize] = if quick { &[3, 40] } else { &[1, 3, 11, 40, 150] };
    let edges: &[usize] = if quick { &[13, 60] } else { &[5, 13, 29, 60, 130] };
    for (i, &c) in channels.iter().enumerate() {
        for (j, &edge) in edges.iter().enumerate() {
            for (k, &filters) in channels.iter().enumerate() {
                let taps = [3, 1, 5][(i + j + k) % 3];
                let stride = if (j + k) % 4 == 3 { 2 } else { 1 };
                let op = Op::Conv2d { stride, pad: taps as u16 / 2 };
                // A product's worth of work each: the larger ones cost too much to learn a rare op by.
                if (c * filters * taps * taps * edge * edge) as f64 <= 3e7 {
                    let dtype = if !quick && (i + k) % 3 == 2 { DType::F64 } else { DType::F32 };
                    push(all, 1.0, op, dtype, &[&[1, c, edge, edge], &[filters, c, taps, taps]]);
                }
            }
        }
    }
}

/// Fused groups of a few kinds: what differs between groups is counted, so that few stand for all.
fn groups(all: &mut Vec<Wanted>, quick: bool) {
    let sizes: &[usize] = if quick {
        &[163, 17_011, 900_001]
    } else {
        &[37, 701, 6_101, 45_007, 330_017, 2_100_011, 9_800_009]
    };
    for dtype in [DType::F32, DType::F64] {
        for make in [cheap_chain, functions, drawn] {
            let Ok(expr) = make(dtype) else { continue };
            let expr = Arc::new(expr);
            for &n in sizes {
                let Ok(operand) = Operand::new(dtype, &[n]) else { continue };
                let operands = vec![operand; expr.inputs().len()];
                if let Ok(workload) = Workload::fused(&expr, &[n], operands) {
                    all.push(Wanted { workload, importance: 3.0 });
                }
            }
        }
    }
}

/// Eight cheap ops on two operands.
fn cheap_chain(dtype: DType) -> Result<Expr, ExprError> {
    use BinaryOp::{Add, Max, Mul, Sub};
    let mut b = Expr::builder([dtype, dtype]);
    let (mut v, y, s) = (b.input(0)?, b.input(1)?, b.scalar(0, dtype)?);
    for (i, op) in [Mul, Add, Sub, Mul, Max, Add, Mul, Sub].into_iter().enumerate() {
        v = b.binary(op, v, if i % 3 == 0 { y } else { s })?;
    }
    b.output(v)?;
    b.finish()
}

/// Functions, an array and a sum.
fn functions(dtype: DType) -> Result<Expr, ExprError> {
    let mut b = Expr::builder([dtype]);
    let (x, s) = (b.input(0)?, b.scalar(0, dtype)?);
    let scaled = b.binary(BinaryOp::Mul, x, s)?;
    let e = b.unary(UnaryOp::Exp, scaled)?;
    let t = b.unary(UnaryOp::Tanh, e)?;
    b.output(t)?;
    b.reduce(ReduceOp::Sum, Axes::NONE, e)?;
    b.finish()
}

/// Random numbers, used twice, and their mean.
fn drawn(dtype: DType) -> Result<Expr, ExprError> {
    let mut b = Expr::builder([]);
    let z = b.random(Dist::Normal, dtype, 0)?;
    let square = b.binary(BinaryOp::Mul, z, z)?;
    b.reduce(ReduceOp::Mean, Axes::NONE, square)?;
    b.finish()
}
