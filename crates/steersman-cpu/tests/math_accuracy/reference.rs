//! The functions to 320 bits and more, and the distance of an `f64` from such a value.

use astro_float_num::{BigFloat, Consts, RoundingMode};

/// Bits carried; the functions of moderate arguments lose less than half of them to cancellation.
const BITS: usize = 320;
const RM: RoundingMode = RoundingMode::ToEven;

/// Arbitrary-precision arithmetic with its cache of constants.
pub struct Exact(Consts);

/// `x` itself. Subnormals, which the conversion misreads, are scaled up for it and down again.
fn big(x: f64) -> BigFloat {
    if x.is_normal() || x == 0.0 || !x.is_finite() {
        return BigFloat::from_f64(x, BITS);
    }
    BigFloat::from_f64(x * 2f64.powi(60), BITS).mul(&BigFloat::from_f64(2f64.powi(-60), BITS), BITS, RM)
}

impl Exact {
    pub fn new() -> Self {
        Exact(Consts::new().expect("constants fit in memory"))
    }

    pub fn exp(&mut self, x: f64) -> BigFloat {
        big(x).exp(BITS, RM, &mut self.0)
    }
    pub fn expm1(&mut self, x: f64) -> BigFloat {
        self.exp(x).sub(&big(1.0), BITS, RM)
    }
    pub fn sigmoid(&mut self, x: f64) -> BigFloat {
        big(1.0).div(&self.exp(-x).add(&big(1.0), BITS, RM), BITS, RM)
    }
    pub fn silu(&mut self, x: f64) -> BigFloat {
        self.sigmoid(x).mul(&big(x), BITS, RM)
    }
    pub fn ln(&mut self, x: f64) -> BigFloat {
        big(x).ln(BITS, RM, &mut self.0)
    }
    pub fn log1p(&mut self, x: f64) -> BigFloat {
        big(x).add(&big(1.0), BITS, RM).ln(BITS, RM, &mut self.0)
    }
    pub fn log2(&mut self, x: f64) -> BigFloat {
        self.ln(x).div(&self.ln(2.0), BITS, RM)
    }
    pub fn sin(&mut self, x: f64) -> BigFloat {
        big(x).sin(BITS, RM, &mut self.0)
    }
    pub fn cos(&mut self, x: f64) -> BigFloat {
        big(x).cos(BITS, RM, &mut self.0)
    }
    pub fn tan(&mut self, x: f64) -> BigFloat {
        big(x).tan(BITS, RM, &mut self.0)
    }
    pub fn asin(&mut self, x: f64) -> BigFloat {
        big(x).asin(BITS, RM, &mut self.0)
    }
    pub fn acos(&mut self, x: f64) -> BigFloat {
        big(x).acos(BITS, RM, &mut self.0)
    }
    pub fn atan(&mut self, x: f64) -> BigFloat {
        big(x).atan(BITS, RM, &mut self.0)
    }
    pub fn sinh(&mut self, x: f64) -> BigFloat {
        big(x).sinh(BITS, RM, &mut self.0)
    }
    pub fn cosh(&mut self, x: f64) -> BigFloat {
        big(x).cosh(BITS, RM, &mut self.0)
    }
    pub fn tanh(&mut self, x: f64) -> BigFloat {
        big(x).tanh(BITS, RM, &mut self.0)
    }
    pub fn rsqrt(&mut self, x: f64) -> BigFloat {
        big(1.0).div(&big(x).sqrt(BITS, RM), BITS, RM)
    }
    pub fn recip(&mut self, x: f64) -> BigFloat {
        big(1.0).div(&big(x), BITS, RM)
    }
    pub fn pow(&mut self, x: f64, y: f64) -> BigFloat {
        big(x).pow(&big(y), BITS, RM, &mut self.0)
    }
    pub fn atan2(&mut self, y: f64, x: f64) -> BigFloat {
        let right = big(y).div(&big(x), BITS, RM).atan(BITS, RM, &mut self.0);
        let pi = self.0.pi(BITS, RM);
        match (x < 0.0, y < 0.0) {
            (false, _) => right,
            (true, false) => right.add(&pi, BITS, RM),
            (true, true) => right.sub(&pi, BITS, RM),
        }
    }

    pub fn erf(&mut self, x: f64) -> BigFloat {
        self.erf_of(&big(x), x * x)
    }

    pub fn gelu(&mut self, x: f64) -> BigFloat {
        // 1 + erf cancels about 1.44 x²/2 bits in the lower tail.
        let bits = BITS + (x * x) as usize;
        let half = big(0.5);
        let root = big(x).mul(&BigFloat::from_f64(0.5, bits).sqrt(bits, RM), bits, RM);
        let erf = self.erf_of(&root, 0.5 * x * x);
        erf.add(&big(1.0), bits, RM).mul(&half, bits, RM).mul(&big(x), bits, RM)
    }

    /// `erf(a)` for an `a²` of about `size`, by `2/√π e^(-a²) Σ 2^k a^(2k+1) / (2k+1)!!`, which does not
    /// cancel.
    fn erf_of(&mut self, a: &BigFloat, size: f64) -> BigFloat {
        let bits = BITS + (2.0 * size) as usize;
        let square = a.mul(a, bits, RM);
        let twice = square.add(&square, bits, RM);
        let (mut term, mut sum) = (a.clone(), a.clone());
        for k in 1.. {
            term = term.mul(&twice, bits, RM).div(&big(f64::from(2 * k + 1)), bits, RM);
            sum = sum.add(&term, bits, RM);
            let small = |t: i32, s: i32| t < s - bits as i32;
            if term.is_zero() || small(term.exponent().unwrap_or(0), sum.exponent().unwrap_or(0)) {
                break;
            }
        }
        let decay = square.neg().exp(bits, RM, &mut self.0);
        let scale = big(4.0).div(&self.0.pi(bits, RM), bits, RM).sqrt(bits, RM);
        sum.mul(&decay, bits, RM).mul(&scale, bits, RM)
    }
}

/// Distance of `got` from `exact` in units of the spacing of `f64` at `exact`.
pub fn ulps(got: f64, exact: &BigFloat) -> f64 {
    let Some(exponent) = exact.exponent() else { return if got.is_nan() { 0.0 } else { f64::INFINITY } };
    if got.is_nan() {
        return f64::INFINITY;
    }
    if got.is_infinite() {
        return if exponent > 1024 { 0.0 } else { f64::INFINITY };
    }
    let difference = big(got).sub(exact, BITS, RM);
    if difference.is_zero() {
        return 0.0;
    }
    let (words, _, _, difference_exponent, _) = difference.as_raw_parts().expect("finite minus finite");
    let mantissa = words[words.len() - 1] as f64 / 2f64.powi(64);
    // A value is 0.m × 2^exponent; subnormals share the spacing of the smallest normal.
    let spacing_exponent = exponent.max(-1021) - 53;
    mantissa * 2f64.powi((difference_exponent - spacing_exponent).clamp(-1000, 1000))
}
