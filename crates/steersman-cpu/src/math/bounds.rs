//! The stated error of every function, in units in the last place (ULP) of the exact result.
//!
//! The accuracy test holds every level to this table and docs/accuracy.md prints it.
//!
//! ```
//! use steersman_cpu::math::bounds::{Float, ulp_bound};
//! assert_eq!(ulp_bound("exp", Float::F32), Some(2.0));
//! assert_eq!(ulp_bound("zeta", Float::F32), None);
//! ```

/// A floating-point type of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float {
    /// `f32`
    F32,
    /// `f64`
    F64,
}

/// The stated errors of one function.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The function's name without its type.
    pub function: &'static str,
    /// Largest error of the `f32` version; 0.5 means correctly rounded, 0 exact.
    pub f32: f64,
    /// Largest error of the `f64` version.
    pub f64: f64,
}

const fn bound(function: &'static str, f32: f64, f64: f64) -> Bound {
    Bound { function, f32, f64 }
}

/// Every function.
pub const TABLE: &[Bound] = &[
    bound("exp", 2.0, 2.0),
    bound("expm1", 2.0, 2.0),
    bound("sigmoid", 3.0, 3.0),
    bound("silu", 3.5, 3.5),
    bound("ln", 2.0, 2.0),
    bound("log1p", 2.0, 2.0),
    bound("log2", 2.5, 2.5),
    bound("sin", 2.0, 2.0),
    bound("cos", 2.0, 2.0),
    bound("tan", 4.0, 4.0),
    bound("sinh", 3.0, 3.0),
    bound("cosh", 2.0, 2.0),
    bound("tanh", 2.0, 2.0),
    bound("asin", 3.0, 3.0),
    bound("acos", 3.0, 3.0),
    bound("atan", 3.0, 3.0),
    bound("atan2", 3.0, 3.0),
    bound("erf", 3.0, 3.0),
    bound("gelu", 6.0, 6.0),
    bound("pow", 1.0, 3.0),
    bound("rsqrt", 1.5, 1.5),
    bound("recip", 0.5, 0.5),
    bound("rem", 0.0, 0.0),
    bound("sign", 0.0, 0.0),
    bound("relu", 0.0, 0.0),
    bound("min", 0.0, 0.0),
    bound("max", 0.0, 0.0),
    bound("floor", 0.0, 0.0),
    bound("ceil", 0.0, 0.0),
    bound("round", 0.0, 0.0),
    bound("trunc", 0.0, 0.0),
];

/// The stated error of `function` (its name without the type), or `None` if there is no such function.
pub fn ulp_bound(function: &str, float: Float) -> Option<f64> {
    TABLE.iter().find(|b| b.function == function).map(|b| match float {
        Float::F32 => b.f32,
        Float::F64 => b.f64,
    })
}
