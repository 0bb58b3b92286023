//! Element-wise operations.

use crate::dtype::DType;

macro_rules! ops {
    ($(#[$doc:meta])* $enum:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal, $flops:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $enum { $($(#[$vdoc])* $variant,)* }

        impl $enum {
            /// Every one of them.
            pub const ALL: &'static [$enum] = &[$($enum::$variant,)*];

            /// Its name in the text form.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }

            /// Nominal floating-point operations per element: what a vectorised version executes,
            /// to rank work before anything was measured.
            pub const fn flops(self) -> f64 {
                match self { $($enum::$variant => $flops,)* }
            }
        }
    };
}

ops! {
    /// One element in, one out.
    UnaryOp {
        /// −x
        Neg = "neg", 1.0;
        /// |x|
        Abs = "abs", 1.0;
        /// −1, 0 or 1; NaN stays NaN
        Sign = "sign", 2.0;
        /// √x
        Sqrt = "sqrt", 4.0;
        /// 1/√x
        Rsqrt = "rsqrt", 6.0;
        /// 1/x
        Recip = "recip", 4.0;
        /// eˣ
        Exp = "exp", 14.0;
        /// eˣ − 1
        Expm1 = "expm1", 20.0;
        /// natural logarithm
        Ln = "ln", 20.0;
        /// ln(1 + x)
        Log1p = "log1p", 24.0;
        /// logarithm to base 2
        Log2 = "log2", 20.0;
        /// sine
        Sin = "sin", 20.0;
        /// cosine
        Cos = "cos", 20.0;
        /// tangent
        Tan = "tan", 30.0;
        /// arc sine
        Asin = "asin", 24.0;
        /// arc cosine
        Acos = "acos", 24.0;
        /// arc tangent
        Atan = "atan", 24.0;
        /// hyperbolic sine
        Sinh = "sinh", 30.0;
        /// hyperbolic cosine
        Cosh = "cosh", 24.0;
        /// hyperbolic tangent
        Tanh = "tanh", 24.0;
        /// 1/(1 + e⁻ˣ)
        Sigmoid = "sigmoid", 20.0;
        /// max(x, 0); NaN stays NaN
        Relu = "relu", 1.0;
        /// x·Φ(x), by erf
        Gelu = "gelu", 34.0;
        /// x·sigmoid(x)
        Silu = "silu", 21.0;
        /// error function
        Erf = "erf", 30.0;
        /// towards −∞
        Floor = "floor", 1.0;
        /// towards +∞
        Ceil = "ceil", 1.0;
        /// to nearest, halves to even
        Round = "round", 1.0;
        /// towards zero
        Trunc = "trunc", 1.0;
        /// logical not (bool)
        Not = "not", 1.0;
    }
}

ops! {
    /// Two elements in, one out.
    BinaryOp {
        /// a + b
        Add = "add", 1.0;
        /// a − b
        Sub = "sub", 1.0;
        /// a·b
        Mul = "mul", 1.0;
        /// a/b (floats; integers divide towards zero, by zero gives 0)
        Div = "div", 4.0;
        /// remainder with the sign of the dividend (integers: by zero gives 0)
        Rem = "rem", 20.0;
        /// aᵇ
        Pow = "pow", 50.0;
        /// smaller; NaN wins
        Min = "min", 1.0;
        /// larger; NaN wins
        Max = "max", 1.0;
        /// angle of (b, a)
        Atan2 = "atan2", 34.0;
        /// a = b
        Eq = "eq", 1.0;
        /// a ≠ b
        Ne = "ne", 1.0;
        /// a < b
        Lt = "lt", 1.0;
        /// a ≤ b
        Le = "le", 1.0;
        /// a > b
        Gt = "gt", 1.0;
        /// a ≥ b
        Ge = "ge", 1.0;
        /// both (bool)
        And = "and", 1.0;
        /// either (bool)
        Or = "or", 1.0;
        /// exactly one (bool)
        Xor = "xor", 1.0;
    }
}

ops! {
    /// Three elements in, one out.
    TernaryOp {
        /// a·b + c, rounded once where the hardware fuses it
        Fma = "fma", 2.0;
        /// b where a, else c; a is bool
        Where = "where", 1.0;
        /// a held between b and c
        Clamp = "clamp", 2.0;
    }
}

const FLOATS: fn(DType) -> bool = DType::is_float;

impl UnaryOp {
    /// Whether the operation means something for this element type.
    pub fn takes(self, d: DType) -> bool {
        match self {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Relu => {
                d != DType::Bool && (!matches!(d, DType::U8 | DType::U32) || self != UnaryOp::Neg)
            }
            UnaryOp::Not => d == DType::Bool,
            _ => FLOATS(d),
        }
    }
}

impl BinaryOp {
    /// Whether it compares, so that the result is bool.
    pub const fn compares(self) -> bool {
        matches!(
            self,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        )
    }

    /// Whether it is logical: bool in, bool out.
    pub const fn is_logical(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor)
    }

    /// Whether the operation means something for this element type.
    pub fn takes(self, d: DType) -> bool {
        match self {
            BinaryOp::Pow | BinaryOp::Atan2 => FLOATS(d),
            _ if self.is_logical() => d == DType::Bool,
            _ if self.compares() => true,
            _ => d != DType::Bool,
        }
    }
}

impl TernaryOp {
    /// Whether the operation means something for this element type (of `b` and `c` for `where`).
    pub fn takes(self, d: DType) -> bool {
        match self {
            TernaryOp::Where => true,
            TernaryOp::Fma | TernaryOp::Clamp => d != DType::Bool,
        }
    }
}
