//! Which regression a workload belongs to.

use super::coordinates::coordinates;
use super::local::Corners;
use crate::dtype::DType;
use crate::kernel::Params;
use crate::op::OpClass;
use crate::workload::{Layout, Workload};
use std::borrow::Cow;

/// One kernel with one parameter point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    /// Kernel by registry index.
    pub kernel: u16,
    /// Its parameters.
    pub params: Params,
}

/// Which regression a workload's samples go to.
#[derive(Clone, Copy, Debug, Eq)]
pub struct CellKey {
    /// Kernel and parameters.
    pub variant: Variant,
    /// The op by name (attributes aside), or `None` for the pool of a class.
    pub op: Option<&'static str>,
    /// The op's class.
    pub class: OpClass,
    /// Element type.
    pub dtype: DType,
    /// Layout of the operands.
    pub layout: Layout,
}

/// Names mostly are the same piece of memory: comparing letters took as long as finding the cell.
impl PartialEq for CellKey {
    fn eq(&self, other: &CellKey) -> bool {
        let same_name = match (self.op, other.op) {
            (Some(a), Some(b)) => std::ptr::eq(a, b) || a == b,
            (a, b) => a.is_none() && b.is_none(),
        };
        let rest = |k: &CellKey| (k.variant, k.class, k.dtype, k.layout);
        rest(self) == rest(other) && same_name
    }
}

/// In two words: names are told apart by length and a few letters, and by equality where that is not enough.
impl std::hash::Hash for CellKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let p = self.variant.params;
        let name = self.op.unwrap_or("").as_bytes();
        let letter = |i: usize| u64::from(name.get(i).copied().unwrap_or(0));
        state.write_u64(
            u64::from(self.variant.kernel) | u64::from(p.threads) << 16 | u64::from(p.variant) << 32,
        );
        state.write_u64(
            self.class as u64
                | (self.dtype as u64) << 8
                | (self.layout as u64) << 16
                | (name.len() as u64) << 24
                | letter(0) << 32
                | letter(1) << 40
                | letter(2) << 48
                | letter(name.len().saturating_sub(1)) << 56,
        );
    }
}

/// What the model needs of a workload, worked out once for all its candidates.
#[derive(Clone, Debug)]
pub struct Subject {
    op: &'static str,
    class: OpClass,
    dtype: DType,
    layout: Layout,
    at: Corners,
    /// The workload's hash, for its history.
    pub hash: u64,
    /// Whether it has one.
    pub(super) seen: bool,
}

impl Subject {
    /// Of this workload, whose key hashes to this, without a history.
    pub(super) fn of(w: &Workload, hash: u64) -> Subject {
        let at = Corners::around(&coordinates(w));
        Subject {
            op: w.op().name(),
            class: w.class(),
            dtype: w.dtype(),
            layout: w.layout(),
            at,
            hash,
            seen: false,
        }
    }

    /// Where it lies, done in this way.
    #[inline]
    pub(super) fn by(&self, way: u8) -> Cow<'_, Corners> {
        match way {
            0 => Cow::Borrowed(&self.at),
            _ => Cow::Owned(self.at.by(way)),
        }
    }

    pub(super) fn cell(&self, variant: Variant) -> CellKey {
        CellKey { variant, op: Some(self.op), class: self.class, dtype: self.dtype, layout: self.layout }
    }
}

impl CellKey {
    /// The cell of this variant for this workload.
    pub fn of(variant: Variant, w: &Workload) -> CellKey {
        Subject::of(w, 0).cell(variant)
    }

    pub(super) fn pool(self) -> CellKey {
        CellKey { op: None, ..self }
    }
}
