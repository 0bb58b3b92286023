//! Functions stay within their stated error over all magnitudes: random bits, and the ranges people use.

#[path = "../../steersman-cpu/tests/conformance/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the CPU's tests")]
mod conformance;
mod hosted;

use conformance::{Memory, Random, run};
use hosted::{flushes_anywhere, put};
use steersman_core::{BinaryOp, DType, Op, Operand, Params, UnaryOp, Workload};
use steersman_cpu::map;

const N: usize = 100_000;

/// Units in the last place, against the C library's function, and the number that Mesa's software driver shows.
fn stated(op: Op) -> i64 {
    match op {
        Op::Unary(u) => match u {
            // 4 and 5 there.
            UnaryOp::Tan | UnaryOp::Gelu => 9,
            // Quotients alone may be off by two and a half, roots are made of them; 0 there.
            UnaryOp::Sqrt | UnaryOp::Recip => 3,
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Relu => 0,
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => 0,
            // At most 3 there.
            _ => 5,
        },
        // 2 there.
        Op::Binary(BinaryOp::Pow) => 12,
        Op::Binary(BinaryOp::Rem) => 0,
        _ => 5,
    }
}

/// A number's place among all floats.
fn place(x: f32) -> i64 {
    let magnitude = i64::from(x.to_bits() & 0x7fff_ffff);
    if x.is_sign_negative() { -magnitude } else { magnitude }
}

fn numbers(o: &Operand, random: &mut Random) -> Memory {
    let mut memory = Memory::marked(o);
    put(o, memory.address_mut(), |i| {
        let bits = random.next();
        let unit = (bits >> 40) as f32 / 8_388_608.0 - 1.0;
        let x = match i % 4 {
            0 => f32::from_bits(bits as u32),
            1 => unit * 2.0,
            2 => unit * 10.0,
            _ => unit * 100.0,
        };
        x.to_bits().into()
    });
    memory
}

#[test]
fn functions_stay_within_their_stated_error() {
    let Some(kernels) = hosted::with_reference(map::kernels(&hosted::cpu()), 64) else { return };
    let device = kernels.iter().find(|k| k.name().ends_with("/map")).expect("such a kernel");
    let mut random = Random::new(77);
    let unary = UnaryOp::ALL.iter().filter(|u| u.takes(DType::F32)).map(|u| Op::Unary(*u));
    let binary = [BinaryOp::Pow, BinaryOp::Atan2, BinaryOp::Rem, BinaryOp::Div].map(Op::Binary);
    for op in unary.chain(binary) {
        let operand = || Operand::new(DType::F32, &[N]).expect("a small operand");
        let w = Workload::new(op, (0..op.arity()).map(|_| operand())).expect("a workload");
        let data: Vec<Memory> = w.inputs().iter().map(|o| numbers(o, &mut random)).collect();
        let want = run(&*kernels[0], &w, Params::SERIAL, &data).expect("a run");
        let got = run(&**device, &w, Params::SERIAL, &data).expect("a run");
        for (i, (e, g)) in want.elements(w.output()).zip(got.elements(w.output())).enumerate() {
            let (e, g) = (f32::from_bits(e as u32), f32::from_bits(g as u32));
            // What is below the normal numbers may be flushed.
            let tiny = e.abs() < f32::MIN_POSITIVE && g.abs() <= f32::MIN_POSITIVE && stated(op) > 0;
            if tiny || e.is_nan() && g.is_nan() {
                continue;
            }
            let off = (place(e) - place(g)).abs();
            if e.is_nan() != g.is_nan() || off > stated(op) {
                let of: Vec<f32> =
                    data.iter().map(|m| f32::from_bits(m.element(&operand(), i) as u32)).collect();
                let flushed = (e - g).abs() <= f32::MIN_POSITIVE || of.iter().any(|x| x.is_subnormal());
                if flushed && stated(op) > 0 && flushes_anywhere() {
                    continue;
                }
                panic!("{} of {of:?}: {g:e}, not {e:e} ({off} ulp)", op.name());
            }
        }
    }
}
