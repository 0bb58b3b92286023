//! Computed elements: memory shared by all arrays that see it, and how one of them looks at it.

use std::any::Any;
use std::sync::Arc;
use steersman_core::Strides;
use steersman_cpu::memory::Block;

use crate::plan::Compiled;

/// Memory that holds elements and is never written again.
pub(crate) enum Buffer {
    /// From the runtime's pool.
    Pool(Block),
    /// A caller's vector, and where its elements start.
    Owned { start: usize, _owner: Box<dyn Any + Send + Sync> },
    /// No elements.
    Empty,
}

impl Buffer {
    /// Where the elements start. An empty buffer has an address that is aligned and never followed.
    pub fn start(&self) -> usize {
        match self {
            Buffer::Pool(block) => block.as_ptr() as usize,
            Buffer::Owned { start, .. } => *start,
            Buffer::Empty => 64,
        }
    }
}

/// How one array looks at a buffer.
pub(crate) struct Value {
    pub buffer: Arc<Buffer>,
    /// Bytes from the buffer's start to the first element.
    pub offset: usize,
    pub strides: Strides,
    /// What computed it; none for elements that were given.
    pub plan: Option<Arc<Compiled>>,
}

impl Value {
    /// Where the first element is.
    pub fn address(&self) -> usize {
        self.buffer.start() + self.offset
    }
}

/// log2 of an address's alignment, at most a cache line.
pub(crate) fn alignment(address: usize) -> u8 {
    address.trailing_zeros().min(6) as u8
}

/// Row-major strides. Dimensions are known to be addressable.
pub(crate) fn contiguous(dims: &[usize]) -> Strides {
    let mut strides: Strides = smallvec::SmallVec::from_elem(0, dims.len());
    let mut step = 1isize;
    for (s, &d) in strides.iter_mut().zip(dims).rev() {
        *s = step;
        step = step.saturating_mul(d.max(1) as isize);
    }
    strides
}

/// Whether elements lie one after another in row-major order.
pub(crate) fn is_contiguous(dims: &[usize], strides: &[isize]) -> bool {
    if dims.contains(&0) {
        return true;
    }
    let mut step = 1isize;
    for (&d, &s) in dims.iter().zip(strides).rev() {
        if d > 1 && s != step {
            return false;
        }
        step = step.saturating_mul(d as isize);
    }
    true
}
