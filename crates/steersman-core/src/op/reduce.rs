//! Reductions, and the small sets of axes they and transposes carry.

use super::MAX_RANK;
use crate::dtype::DType;
use std::fmt;

/// How elements combine into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ReduceOp {
    /// Σx, pairwise or better
    Sum,
    /// Σx/n
    Mean,
    /// Πx
    Prod,
    /// smallest; NaN wins
    Min,
    /// largest; NaN wins
    Max,
    /// index of the first smallest; the first NaN wins
    ArgMin,
    /// index of the first largest; the first NaN wins
    ArgMax,
    /// whether any element is not zero
    Any,
    /// whether every element is not zero
    All,
    /// √Σx²
    Norm,
    /// Σ(x − mean)²/n
    Var,
    /// √var
    Std,
}

impl ReduceOp {
    /// Every one of them.
    pub const ALL: &'static [ReduceOp] = &[
        ReduceOp::Sum,
        ReduceOp::Mean,
        ReduceOp::Prod,
        ReduceOp::Min,
        ReduceOp::Max,
        ReduceOp::ArgMin,
        ReduceOp::ArgMax,
        ReduceOp::Any,
        ReduceOp::All,
        ReduceOp::Norm,
        ReduceOp::Var,
        ReduceOp::Std,
    ];

    /// Its name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Mean => "mean",
            ReduceOp::Prod => "prod",
            ReduceOp::Min => "min",
            ReduceOp::Max => "max",
            ReduceOp::ArgMin => "argmin",
            ReduceOp::ArgMax => "argmax",
            ReduceOp::Any => "any",
            ReduceOp::All => "all",
            ReduceOp::Norm => "norm",
            ReduceOp::Var => "var",
            ReduceOp::Std => "std",
        }
    }

    /// Nominal operations per element.
    pub const fn flops(self) -> f64 {
        match self {
            ReduceOp::Norm => 2.0,
            ReduceOp::Var | ReduceOp::Std => 4.0,
            _ => 1.0,
        }
    }

    /// Whether it is defined over no elements at all.
    pub const fn has_identity(self) -> bool {
        !matches!(self, ReduceOp::Min | ReduceOp::Max | ReduceOp::ArgMin | ReduceOp::ArgMax)
    }

    /// Whether it means something for this element type.
    pub fn takes(self, d: DType) -> bool {
        match self {
            ReduceOp::Mean | ReduceOp::Norm | ReduceOp::Var | ReduceOp::Std => d.is_float(),
            ReduceOp::Any | ReduceOp::All => true,
            _ => d != DType::Bool,
        }
    }

    /// The element type of the result: sums and products of integers widen to i64.
    pub fn result(self, d: DType) -> DType {
        match self {
            ReduceOp::ArgMin | ReduceOp::ArgMax => DType::I64,
            ReduceOp::Any | ReduceOp::All => DType::Bool,
            ReduceOp::Sum | ReduceOp::Prod if d.is_integer() => DType::I64,
            _ => d,
        }
    }
}

/// A set of axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Axes(u8);

impl Axes {
    /// No axis. A reduction given none reduces all: see [`Axes::or_all`].
    pub const NONE: Axes = Axes(0);

    /// All axes of an array of this rank.
    pub fn all(rank: usize) -> Axes {
        Axes(if rank >= MAX_RANK { u8::MAX } else { (1u8 << rank) - 1 })
    }

    /// A set from a list. `None` if an axis is too large or named twice.
    pub fn from_list(axes: &[usize]) -> Option<Axes> {
        let mut set = Axes::NONE;
        for &a in axes {
            if a >= MAX_RANK || set.contains(a) {
                return None;
            }
            set.0 |= 1 << a;
        }
        Some(set)
    }

    /// This set, or every axis if it is empty.
    pub fn or_all(self, rank: usize) -> Axes {
        if self == Axes::NONE { Axes::all(rank) } else { self }
    }

    /// Whether the axis is in the set.
    pub fn contains(self, axis: usize) -> bool {
        axis < MAX_RANK && self.0 & (1 << axis) != 0
    }

    /// How many axes there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as bits, axis 0 lowest.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// The axes in rising order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_RANK).filter(move |&a| self.contains(a))
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.iter())
    }
}

/// A permutation of axes: output axis `i` is input axis `perm.get(i)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Perm {
    rank: u8,
    packed: u32,
}

impl Perm {
    /// All axes in reverse order: a matrix's transpose.
    pub fn reversed(rank: usize) -> Option<Perm> {
        Perm::from_list(&(0..rank).rev().collect::<Vec<_>>())
    }

    /// A permutation from a list; `None` if it is not one.
    pub fn from_list(axes: &[usize]) -> Option<Perm> {
        let set = Axes::from_list(axes)?;
        if axes.len() > MAX_RANK || set != Axes::all(axes.len()) {
            return None;
        }
        let packed = axes.iter().enumerate().fold(0, |p, (i, &a)| p | (a as u32) << (4 * i));
        Some(Perm { rank: axes.len() as u8, packed })
    }

    /// Number of axes.
    pub fn rank(self) -> usize {
        self.rank as usize
    }

    /// The input axis that output axis `i` is.
    pub fn get(self, i: usize) -> usize {
        (self.packed >> (4 * i) & 0xf) as usize
    }

    /// The input axes in output order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..self.rank()).map(move |i| self.get(i))
    }

    /// The permutation as a word, for keys.
    pub fn bits(self) -> u64 {
        (self.rank as u64) << 32 | self.packed as u64
    }
}

impl fmt::Display for Perm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.iter())
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = usize>) -> fmt::Result {
    for (i, a) in items.enumerate() {
        write!(f, "{}{a}", if i == 0 { "" } else { "," })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_refuse_repeats_and_large_ones() {
        assert_eq!(Axes::from_list(&[0, 2]).map(|a| a.iter().collect()), Some(vec![0, 2]));
        assert_eq!(Axes::from_list(&[1, 1]), None);
        assert_eq!(Axes::from_list(&[MAX_RANK]), None);
        assert_eq!(Axes::all(MAX_RANK).len(), MAX_RANK);
    }

    #[test]
    fn a_permutation_must_name_each_axis_once() {
        let p = Perm::from_list(&[2, 0, 1]).unwrap();
        assert_eq!(p.iter().collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!(p.to_string(), "2,0,1");
        assert_eq!(Perm::from_list(&[0, 2]), None);
        assert_eq!(Perm::from_list(&[0, 0]), None);
    }
}
