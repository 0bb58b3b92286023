//! What functions take where nobody measured them: operations at an instruction set's assumed peak.
//!
//! Counted by their formulas, functions were supposed to be three to seven times as quick as they are: polynomials are
//! chains of dependent steps and do not reach the peak. These counts are nanoseconds an element in f32 with AVX-512 on
//! a Zen 4 (`--example math_speed`) times that peak; AVX2 and f64 come to within a third of them.

use steersman_core::{BinaryOp, Op, UnaryOp};

/// Operations at peak that one element takes.
pub fn at_peak(op: Op) -> f64 {
    match op {
        Op::Unary(u) => unary(u),
        Op::Binary(BinaryOp::Pow) => 277.0,
        Op::Binary(BinaryOp::Atan2) => 89.0,
        op => nominal(op),
    }
}

/// Operations of one element by the op's formula.
pub fn nominal(op: Op) -> f64 {
    match op {
        Op::Unary(u) => u.flops(),
        Op::Binary(b) => b.flops(),
        Op::Ternary(t) => t.flops(),
        _ => 1.0,
    }
}

fn unary(u: UnaryOp) -> f64 {
    match u {
        UnaryOp::Exp => 40.0,
        UnaryOp::Expm1 => 36.0,
        UnaryOp::Sigmoid => 55.0,
        UnaryOp::Silu => 68.0,
        UnaryOp::Ln => 59.0,
        UnaryOp::Log1p => 84.0,
        UnaryOp::Log2 => 57.0,
        UnaryOp::Sin => 69.0,
        UnaryOp::Cos => 73.0,
        UnaryOp::Tan => 129.0,
        UnaryOp::Asin => 46.0,
        UnaryOp::Acos => 52.0,
        UnaryOp::Atan => 84.0,
        UnaryOp::Sinh => 66.0,
        UnaryOp::Cosh => 48.0,
        UnaryOp::Tanh => 61.0,
        UnaryOp::Erf => 117.0,
        UnaryOp::Gelu => 114.0,
        UnaryOp::Rsqrt => 46.0,
        u => u.flops(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_is_supposed_to_be_quicker_than_its_formula() {
        for &u in UnaryOp::ALL {
            assert!(at_peak(Op::Unary(u)) >= u.flops(), "{}", u.name());
        }
        assert!(at_peak(Op::Binary(BinaryOp::Pow)) >= BinaryOp::Pow.flops());
    }
}
