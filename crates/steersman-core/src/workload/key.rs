//! A workload as a few machine words, so that looking up a decision is a hash and a compare.

use super::Workload;
use crate::device::Place;
use crate::op::Op;

/// Words a key may take. Larger workloads (many strided dimensions) are decided anew each time.
pub const KEY_WORDS: usize = 24;

/// The exact identity of a workload: everything legality may depend on is in it, so two workloads
/// with equal keys have the same candidates.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    words: [u64; KEY_WORDS],
    len: usize,
    hash: u64,
}

impl Default for Key {
    #[inline]
    fn default() -> Key {
        Key { words: [0; KEY_WORDS], len: 0, hash: 0x243F_6A88_85A3_08D3 }
    }
}

impl PartialEq for Key {
    fn eq(&self, o: &Key) -> bool {
        self.hash == o.hash && self.words() == o.words()
    }
}
impl Eq for Key {}
impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Key {
    /// The key's words.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }

    /// A 64-bit hash of the words.
    #[inline]
    pub fn hash64(&self) -> u64 {
        self.hash
    }

    #[inline]
    fn push(&mut self, word: u64) -> Option<()> {
        *self.words.get_mut(self.len)? = word;
        self.len += 1;
        // One multiply a word: 8 words hash in ~5 ns, well inside a 50 ns decision.
        self.hash = (self.hash.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Some(())
    }
}

/// Op tag and attributes in one word; custom names by address, which is stable in one process.
fn op_word(op: Op) -> u64 {
    let (tag, rest) = match op {
        Op::Unary(u) => (0, u as u64),
        Op::Binary(b) => (1, b as u64),
        Op::Ternary(t) => (2, t as u64),
        Op::Reduce { kind, axes } => (3, kind as u64 | (axes.bits() as u64) << 8),
        Op::MatMul => (4, 0),
        Op::Transpose { perm } => (5, perm.bits()),
        Op::Copy => (6, 0),
        Op::Conv2d { stride, pad } => (7, stride as u64 | (pad as u64) << 16),
        Op::Custom(name) => (8, name.as_ptr() as u64),
        Op::Fused(_) => (9, 0),
    };
    tag << 60 | (rest & ((1 << 60) - 1))
}

fn place_bits(p: Place) -> u64 {
    match p {
        Place::Host => 0,
        Place::Device(id) => id.0 as u64 + 1,
    }
}

impl Workload {
    /// The workload's key, or `None` if it is too large for one.
    #[inline]
    pub fn key(&self) -> Option<Key> {
        let mut key = Key::default();
        self.write_key(&mut key).then_some(key)
    }

    /// Writes the key in place; false if the workload is too large for one. Keys are 200 bytes, and on the way
    /// of every decision: returning one by value was a sixth of a hit.
    #[inline]
    pub(crate) fn write_key(&self, key: &mut Key) -> bool {
        self.push_words(key).is_some()
    }

    #[inline]
    fn push_words(&self, key: &mut Key) -> Option<()> {
        key.push(op_word(self.op))?;
        match self.op {
            Op::Custom(name) => key.push(name.len() as u64)?,
            Op::Fused(_) => return self.push_fused(key),
            _ => {}
        }
        let out = &self.output;
        for o in self.inputs.iter().chain([out]) {
            let plain = o.is_contiguous();
            let same = !std::ptr::eq(o, out) && same_dims(&o.dims, &out.dims);
            key.push(
                o.dtype as u64
                    | (o.align_log2 as u64) << 8
                    | (o.dims.len() as u64) << 16
                    | (plain as u64) << 24
                    | (same as u64) << 25
                    | (self.numerics as u64) << 28
                    | place_bits(o.place) << 32,
            )?;
            if !same {
                for &d in &o.dims {
                    key.push(d as u64)?;
                }
            }
            if !plain {
                for &s in &o.strides {
                    key.push(s as u64)?;
                }
            }
        }
        Some(())
    }

    /// A group may have many operands: the key has its expression's hash and shape in full, and what lies
    /// behind each operand as two hashes (a kernel looks at the operands themselves before it runs).
    #[inline(never)]
    fn push_fused(&self, key: &mut Key) -> Option<()> {
        let Op::Fused(expr) = self.op else { return None };
        let dims = self.dims();
        key.push(expr.0)?;
        key.push(dims.len() as u64 | (self.numerics as u64) << 8)?;
        for &d in dims {
            key.push(d as u64)?;
        }
        // What a product sums over shows in no other dimension.
        key.push(self.product().map_or(0, |p| p.matmul_k() as u64 + 1))?;
        let (mut one, mut other) = (0u64, 1u64);
        let mut mix = |word: u64| {
            one = (one.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            other = (other ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(32);
        };
        for o in self.inputs.iter().chain(self.outputs()) {
            let plain = o.is_contiguous();
            mix(o.align_log2 as u64 | (plain as u64) << 8 | place_bits(o.place) << 32);
            if !plain {
                o.strides.iter().for_each(|&s| mix(s as u64));
            }
        }
        key.push(one)?;
        key.push(other)
    }
}

/// Equality of a few words, without the call that comparing slices makes.
#[inline]
fn same_dims(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x == y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;
    use crate::{BinaryOp, DType, Operand};
    use std::sync::Arc;

    #[test]
    fn fused_groups_differ_by_expression_shape_and_layout_and_always_have_a_key() {
        let expr = |op, n: u16| {
            let mut b = Expr::builder(vec![DType::F32; n as usize]);
            let values: Vec<_> = (0..n).map(|i| b.input(i).unwrap()).collect();
            let sum = values.into_iter().reduce(|a, v| b.binary(op, a, v).unwrap()).unwrap();
            b.output(sum).unwrap();
            Arc::new(b.finish().unwrap())
        };
        let full = |dims: &[usize]| Operand::new(DType::F32, dims).unwrap();
        let fused = |e: &Arc<Expr>, inputs: Vec<Operand>| Workload::fused(e, &[4, 4], inputs).unwrap();
        let (add, sub) = (expr(BinaryOp::Add, 2), expr(BinaryOp::Sub, 2));
        let all = [
            fused(&add, vec![full(&[4, 4]), full(&[4, 4])]),
            fused(&sub, vec![full(&[4, 4]), full(&[4, 4])]),
            fused(&add, vec![full(&[4, 4]), full(&[4])]),
            fused(&add, vec![full(&[4]), full(&[4, 4])]),
            fused(&add, vec![full(&[4, 4]), full(&[4, 1])]),
            Workload::fused(&add, &[16], [full(&[16]), full(&[16])]).unwrap(),
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.key() == b.key(), i == j, "{a} and {b}");
                assert_eq!(a == b, i == j, "{a} and {b}");
            }
        }
        let many = expr(BinaryOp::Add, 40);
        assert!(fused(&many, vec![full(&[4, 1]); 40]).key().is_some());
    }

    fn key(text: &str) -> Key {
        text.parse::<Workload>().unwrap().key().unwrap()
    }

    #[test]
    fn different_workloads_have_different_keys() {
        let texts = [
            "add f32 16 16",
            "add f32 16 1",
            "add f64 16 16",
            "sub f32 16 16",
            "add f32 4x4 4x4",
            "add f32 4x4 4",
            "sum f32 4x4 axis=0",
            "sum f32 4x4 axis=1",
            "sum f32 4x4",
            "transpose f32 4x4",
            "matmul f32 4x4 4x4",
            "matmul f32 4x4:1,4 4x4",
            "matmul f32 4x4 4x4 numerics=relaxed",
        ];
        for (i, a) in texts.iter().enumerate() {
            for (j, b) in texts.iter().enumerate() {
                assert_eq!(key(a) == key(b), i == j, "{a} and {b}");
            }
        }
    }
}
