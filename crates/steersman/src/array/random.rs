//! Random numbers that are a pure function of a seed and an element's position.

use super::Array;
use super::axis::{IntoShape, shape};
use super::elementwise::fits;
use super::node::{Arg, Node, NodeOp, Spread};
use crate::runtime::Runtime;
use smallvec::smallvec;
use std::sync::Arc;
use steersman_core::DType;

/// Where random numbers come from: equal seeds give equal arrays, on every device and with any number of threads.
/// Uniform numbers are the same bit for bit; normal ones may differ in the last digits between instruction sets, since
/// logarithm and sine do.
///
/// ```
/// use steersman::array::Seed;
/// assert_ne!(Seed(7).nth(0), Seed(7).nth(1)); // as many independent seeds as one likes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// The `i`-th of the seeds that this one stands for.
    pub fn nth(self, i: u64) -> Seed {
        let mut z = self.0.wrapping_add(i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Seed(z ^ (z >> 31))
    }
}

impl Runtime {
    /// `f32` numbers spread evenly in [0, 1).
    pub fn uniform(&self, to: impl IntoShape, seed: Seed) -> Array {
        self.random(Spread::Uniform, DType::F32, to, seed)
    }

    /// `f64` numbers spread evenly in [0, 1).
    pub fn uniform_f64(&self, to: impl IntoShape, seed: Seed) -> Array {
        self.random(Spread::Uniform, DType::F64, to, seed)
    }

    /// Normal `f32` numbers of mean 0 and deviation 1.
    pub fn normal(&self, to: impl IntoShape, seed: Seed) -> Array {
        self.random(Spread::Normal, DType::F32, to, seed)
    }

    /// Normal `f64` numbers of mean 0 and deviation 1.
    pub fn normal_f64(&self, to: impl IntoShape, seed: Seed) -> Array {
        self.random(Spread::Normal, DType::F64, to, seed)
    }

    fn random(&self, spread: Spread, dtype: DType, to: impl IntoShape, seed: Seed) -> Array {
        let made = shape("random", &to.into_shape()).and_then(|dims| {
            fits("random", dtype, &dims)?;
            Ok(Node::make(self, NodeOp::Random(spread), dtype, dims, smallvec![Arg::Scalar(seed.0)]))
        });
        made.unwrap_or_else(|why| Node::bad(self, Arc::new(why)))
    }
}
