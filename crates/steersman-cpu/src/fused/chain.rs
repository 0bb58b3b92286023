//! Runs of cheap steps, each on what the one before it gave, with that kept in registers.
//!
//! A step of its own reads and writes a tile; adding a number to one in the nearest cache takes 2.6 cycles for
//! 16 elements on a Zen 4, of which two are the store. In a chain it takes one. Results are the bits that the
//! steps give one by one.

use super::program::Place;
use crate::isa::Level;
use steersman_core::{BinaryOp, Op, TernaryOp, UnaryOp};

/// What a step does with the value at hand, `x`, and with others, `y` and `z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// y
    Load,
    /// x + y
    Add,
    /// x − y
    Sub,
    /// y − x
    SubFrom,
    /// x·y
    Mul,
    /// x/y
    Div,
    /// y/x
    DivInto,
    /// min(x, y)
    Min,
    /// min(y, x)
    MinOf,
    /// max(x, y)
    Max,
    /// max(y, x)
    MaxOf,
    /// x·y + z
    Fma,
    /// y·z + x
    FmaTo,
    /// x + x
    Double,
    /// x·x
    Square,
    /// −x
    Neg,
    /// |x|
    Abs,
    /// √x
    Sqrt,
    /// 1/x
    Recip,
    /// max(x, 0)
    Relu,
}

/// Where a step finds another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    pub place: Place,
    /// Whether it is one element for the whole tile.
    pub same: bool,
}

/// No value, or no place to store one.
pub const NOWHERE: Other = Other { place: Place::MAX, same: false };

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Micro {
    pub code: Code,
    pub y: Other,
    pub z: Other,
    /// Where the result goes; the last step's does, others' only if they are needed elsewhere too.
    pub store: Place,
    /// Whether the result goes past the cache: nobody reads it soon.
    pub past: bool,
}

/// Runs a chain on `n` elements.
///
/// # Safety
/// The table must have pointers good for `n` elements at all places named, the CPU the instruction set, and
/// elements be of the type the function is for.
pub type ChainFn = unsafe fn(at: *const *mut u8, micros: &[Micro], n: usize);

/// The step that an op is when its arguments are the value at hand (true) or others; for binary ops also the
/// number of the other one.
pub fn code(op: Op, hand: &[bool]) -> Option<Code> {
    Some(match (op, hand) {
        (Op::Unary(UnaryOp::Neg), _) => Code::Neg,
        (Op::Unary(UnaryOp::Abs), _) => Code::Abs,
        (Op::Unary(UnaryOp::Sqrt), _) => Code::Sqrt,
        (Op::Unary(UnaryOp::Recip), _) => Code::Recip,
        (Op::Unary(UnaryOp::Relu), _) => Code::Relu,
        (Op::Binary(BinaryOp::Add), [true, true]) => Code::Double,
        (Op::Binary(BinaryOp::Mul), [true, true]) => Code::Square,
        (_, [true, true]) => return None,
        (Op::Binary(BinaryOp::Add), _) => Code::Add,
        (Op::Binary(BinaryOp::Mul), _) => Code::Mul,
        (Op::Binary(BinaryOp::Sub), [first, _]) => {
            if *first {
                Code::Sub
            } else {
                Code::SubFrom
            }
        }
        (Op::Binary(BinaryOp::Div), [first, _]) => {
            if *first {
                Code::Div
            } else {
                Code::DivInto
            }
        }
        (Op::Binary(BinaryOp::Min), [first, _]) => {
            if *first {
                Code::Min
            } else {
                Code::MinOf
            }
        }
        (Op::Binary(BinaryOp::Max), [first, _]) => {
            if *first {
                Code::Max
            } else {
                Code::MaxOf
            }
        }
        (Op::Ternary(TernaryOp::Fma), [true, false, false] | [false, true, false]) => Code::Fma,
        (Op::Ternary(TernaryOp::Fma), [false, false, true]) => Code::FmaTo,
        _ => return None,
    })
}

/// The function for chains of `f32` or, if `wide`, `f64`, if the instruction set has one. It has where registers
/// are named: left to the compiler, blocks stay in memory and a chain takes four times as long as its steps.
pub fn function(level: Level, wide: bool) -> Option<ChainFn> {
    match (level, wide) {
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, false) => Some(x86::avx2_f32),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, true) => Some(x86::avx2_f64),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, false) => Some(x86::avx512_f32),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, true) => Some(x86::avx512_f64),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86;
