//! From a reduction and an element type, known when it runs, to the code for both.

use super::arg::Arg;
use super::columns::Columns;
use super::element::{Brain, Half};
use super::fold::{Byte, Extreme, Float16, Float32, Float64, Int32, Int64, Norm, Prod, Sum, Truth};
use super::rows::{Folded, Rows};
use super::variance::Variance;
use std::marker::PhantomData;
use steersman_core::{DType, KernelError, ReduceOp};

/// What to do with the code.
pub(super) trait Visit {
    fn visit<J: Rows + Columns>(self, job: J) -> bool;
}

/// Finds the code for `kind` over elements of `dtype`.
#[inline]
pub(super) fn choose<V: Visit>(kind: ReduceOp, dtype: DType, v: V) -> Result<bool, KernelError> {
    macro_rules! of {
        ($w:literal, $fold:expr) => {
            v.visit(Folded::<_, $w>($fold))
        };
    }
    macro_rules! extreme {
        ($max:literal) => {
            match dtype {
                DType::F32 => of!(16, Extreme::<f32, $max>(PhantomData)),
                DType::F64 => of!(8, Extreme::<f64, $max>(PhantomData)),
                DType::F16 => of!(16, Extreme::<Half, $max>(PhantomData)),
                DType::BF16 => of!(16, Extreme::<Brain, $max>(PhantomData)),
                DType::I32 => of!(16, Extreme::<i32, $max>(PhantomData)),
                DType::U32 => of!(16, Extreme::<u32, $max>(PhantomData)),
                DType::I64 => of!(8, Extreme::<i64, $max>(PhantomData)),
                DType::U8 => of!(64, Extreme::<u8, $max>(PhantomData)),
                DType::Bool => return Err(refused(kind, dtype)),
            }
        };
    }
    macro_rules! arg {
        ($max:literal) => {
            match dtype {
                DType::F32 => v.visit(Arg::<f32, 16, $max>(PhantomData)),
                DType::F64 => v.visit(Arg::<f64, 8, $max>(PhantomData)),
                DType::F16 => v.visit(Arg::<Half, 16, $max>(PhantomData)),
                DType::BF16 => v.visit(Arg::<Brain, 16, $max>(PhantomData)),
                DType::I32 => v.visit(Arg::<i32, 16, $max>(PhantomData)),
                DType::U32 => v.visit(Arg::<u32, 16, $max>(PhantomData)),
                DType::I64 => v.visit(Arg::<i64, 8, $max>(PhantomData)),
                DType::U8 => v.visit(Arg::<u8, 64, $max>(PhantomData)),
                DType::Bool => return Err(refused(kind, dtype)),
            }
        };
    }
    macro_rules! truth {
        ($all:literal) => {
            match dtype {
                DType::F32 => of!(16, Truth::<Float32, $all>(PhantomData)),
                DType::F64 => of!(8, Truth::<Float64, $all>(PhantomData)),
                DType::F16 | DType::BF16 => of!(32, Truth::<Float16, $all>(PhantomData)),
                DType::I32 | DType::U32 => of!(16, Truth::<Int32, $all>(PhantomData)),
                DType::I64 => of!(8, Truth::<Int64, $all>(PhantomData)),
                DType::U8 | DType::Bool => of!(64, Truth::<Byte, $all>(PhantomData)),
            }
        };
    }
    Ok(match kind {
        ReduceOp::Sum | ReduceOp::Mean => {
            let mean = kind == ReduceOp::Mean;
            match dtype {
                DType::F32 => of!(16, Sum::<f32> { mean, of: PhantomData }),
                DType::F64 => of!(8, Sum::<f64> { mean, of: PhantomData }),
                DType::F16 => of!(16, Sum::<Half> { mean, of: PhantomData }),
                DType::BF16 => of!(16, Sum::<Brain> { mean, of: PhantomData }),
                DType::I32 => of!(8, Sum::<i32> { mean, of: PhantomData }),
                DType::U32 => of!(8, Sum::<u32> { mean, of: PhantomData }),
                DType::I64 => of!(8, Sum::<i64> { mean, of: PhantomData }),
                DType::U8 => of!(16, Sum::<u8> { mean, of: PhantomData }),
                DType::Bool => return Err(refused(kind, dtype)),
            }
        }
        ReduceOp::Prod => match dtype {
            DType::F32 => of!(8, Prod::<f32>(PhantomData)),
            DType::F64 => of!(8, Prod::<f64>(PhantomData)),
            DType::F16 => of!(8, Prod::<Half>(PhantomData)),
            DType::BF16 => of!(8, Prod::<Brain>(PhantomData)),
            DType::I32 => of!(8, Prod::<i32>(PhantomData)),
            DType::U32 => of!(8, Prod::<u32>(PhantomData)),
            DType::I64 => of!(8, Prod::<i64>(PhantomData)),
            DType::U8 => of!(8, Prod::<u8>(PhantomData)),
            DType::Bool => return Err(refused(kind, dtype)),
        },
        ReduceOp::Min => extreme!(false),
        ReduceOp::Max => extreme!(true),
        ReduceOp::ArgMin => arg!(false),
        ReduceOp::ArgMax => arg!(true),
        ReduceOp::Any => truth!(false),
        ReduceOp::All => truth!(true),
        ReduceOp::Norm => match dtype {
            DType::F32 => of!(16, Norm::<f32>(PhantomData)),
            DType::F64 => of!(8, Norm::<f64>(PhantomData)),
            DType::F16 => of!(16, Norm::<Half>(PhantomData)),
            DType::BF16 => of!(16, Norm::<Brain>(PhantomData)),
            _ => return Err(refused(kind, dtype)),
        },
        ReduceOp::Var | ReduceOp::Std => {
            let root = kind == ReduceOp::Std;
            match dtype {
                DType::F32 => v.visit(Variance::<f32> { root, of: PhantomData }),
                DType::F64 => v.visit(Variance::<f64> { root, of: PhantomData }),
                DType::F16 => v.visit(Variance::<Half> { root, of: PhantomData }),
                DType::BF16 => v.visit(Variance::<Brain> { root, of: PhantomData }),
                _ => return Err(refused(kind, dtype)),
            }
        }
    })
}

#[cold]
fn refused(kind: ReduceOp, dtype: DType) -> KernelError {
    KernelError::Failed(format!("{} of {dtype} has no meaning: cast the elements first", kind.name()))
}
