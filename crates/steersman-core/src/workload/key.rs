//! A workload as 128 bits, so that looking up a decision is a walk over its operands and one compare.

use super::operand::row_major;
use super::{Operand, Workload};
use crate::device::Place;
use crate::op::Op;

/// Stands for a workload: everything legality may depend on goes into it. Workloads that differ and have equal
/// keys are one pair in 2^128 by chance, and even those get no kernel that cannot run them: a decision is asked
/// for legality again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    one: u64,
    other: u64,
}

impl Key {
    const EMPTY: Key = Key { one: 0x243F_6A88_85A3_08D3, other: 0x1319_8A2E_0370_7344 };

    /// A 64-bit hash.
    #[inline]
    pub fn hash64(&self) -> u64 {
        self.one
    }

    /// All of it.
    #[inline]
    pub(crate) fn halves(&self) -> [u64; 2] {
        [self.one, self.other]
    }

    /// Two hashes side by side, neither waiting for the other. They are of different kinds: what cancels out in the
    /// first (two words that differ in their highest bits) does not in the second, whose product is folded.
    #[inline(always)]
    fn push(&mut self, word: u64) {
        self.one = (self.one.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let product = (self.other ^ word) as u128 * 0xD6E8_FEB8_6659_FD93;
        self.other = product as u64 ^ (product >> 64) as u64;
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
    /// The workload's key.
    #[inline]
    pub fn key(&self) -> Key {
        let mut key = Key::EMPTY;
        key.push(op_word(self.op));
        match self.op {
            Op::Custom(name) => key.push(name.len() as u64),
            Op::Fused(_) => return self.fused_key(key),
            _ => {}
        }
        let out = &self.output.dims[..];
        for o in &self.inputs {
            self.push_operand(&mut key, o, Some(out));
        }
        self.push_operand(&mut key, &self.output, None);
        key
    }

    /// An operand; its extents too unless they are those of the result. Vectors, which most operands are, go
    /// without loops.
    #[inline(always)]
    fn push_operand(&self, key: &mut Key, o: &Operand, out: Option<&[usize]>) {
        let (dims, strides) = (&o.dims[..], &o.strides[..]);
        let facts = o.dtype as u64
            | (o.align_log2 as u64) << 8
            | (dims.len() as u64) << 16
            | (self.numerics as u64) << 28
            | place_bits(o.place) << 32;
        if let ([d], [s]) = (dims, strides) {
            let plain = *s == 1 || *d <= 1;
            let same = matches!(out, Some([e]) if e == d);
            key.push(facts | (plain as u64) << 24 | (same as u64) << 25);
            if !same {
                key.push(*d as u64);
            }
            if !plain {
                key.push(*s as u64);
            }
            return;
        }
        let plain = row_major(dims, strides);
        let same = out.is_some_and(|out| same_dims(dims, out));
        key.push(facts | (plain as u64) << 24 | (same as u64) << 25);
        if !same {
            dims.iter().for_each(|&d| key.push(d as u64));
        }
        if !plain {
            strides.iter().for_each(|&s| key.push(s as u64));
        }
    }

    #[inline(never)]
    fn fused_key(&self, mut key: Key) -> Key {
        let Op::Fused(expr) = self.op else { return key };
        let dims = self.dims();
        key.push(expr.0);
        key.push(dims.len() as u64 | (self.numerics as u64) << 8);
        dims.iter().for_each(|&d| key.push(d as u64));
        // What a product sums over shows in no other dimension.
        key.push(self.product().map_or(0, |p| p.matmul_k() as u64 + 1));
        for o in self.inputs.iter().chain(self.outputs()) {
            let plain = o.is_contiguous();
            key.push(o.align_log2 as u64 | (plain as u64) << 8 | place_bits(o.place) << 32);
            if !plain {
                o.strides.iter().for_each(|&s| key.push(s as u64));
            }
        }
        key
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
    fn fused_groups_differ_by_expression_shape_and_layout() {
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
    }

    #[test]
    fn many_shapes_have_as_many_keys_in_either_half() {
        let mut halves = [std::collections::HashSet::new(), std::collections::HashSet::new()];
        let mut count = 0;
        let sizes: Vec<usize> = (0..20).chain((5..40).map(|e| 1 << e)).collect();
        for op in ["add", "sub", "matmul"] {
            for (m, k, n) in sizes.iter().flat_map(|m| sizes.iter().map(move |k| (m, k, 3))) {
                let text = match op {
                    "matmul" => format!("matmul f32 {m}x{k} {k}x{n}"),
                    _ => format!("{op} f32 {m}x{k} {k}"),
                };
                let Ok(w) = text.parse::<Workload>() else { continue };
                count += 1;
                halves
                    .iter_mut()
                    .zip(w.key().halves())
                    .for_each(|(seen, half)| assert!(seen.insert(half), "{w}"));
            }
        }
        assert!(count > 5000, "{count}");
    }

    fn key(text: &str) -> Key {
        text.parse::<Workload>().unwrap().key()
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
