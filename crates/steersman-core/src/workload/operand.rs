//! One operand's facts: type, shape, strides, alignment, place.

use super::WorkloadError;
use crate::device::Place;
use crate::dtype::DType;
use crate::op::MAX_RANK;
use smallvec::SmallVec;

/// Dimensions, outermost first.
pub type Dims = SmallVec<[usize; 4]>;
/// Strides in elements, outermost first; 0 repeats, negative runs backwards.
pub type Strides = SmallVec<[isize; 4]>;

/// What a kernel may know of an operand without seeing its data.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Element type.
    pub dtype: DType,
    /// Where it lives.
    pub place: Place,
    /// log2 of the alignment of its first element in bytes, at most 6 (a cache line).
    pub align_log2: u8,
    /// Its shape.
    pub dims: Dims,
    /// Its strides in elements.
    pub strides: Strides,
}

/// By hand: `SmallVec`'s own clone goes element by element, and operands are cloned on the way of every call.
impl Clone for Operand {
    #[inline]
    fn clone(&self) -> Operand {
        Operand { dims: Dims::from_slice(&self.dims), strides: Strides::from_slice(&self.strides), ..*self }
    }
}

/// Arrays may span at most this many bytes: sizes and offsets then never overflow `isize`.
pub const MAX_BYTES: u128 = 1 << 46;

impl Operand {
    /// A contiguous row-major operand in host memory, cache-line aligned.
    pub fn new(dtype: DType, dims: &[usize]) -> Result<Operand, WorkloadError> {
        let mut strides: Strides = SmallVec::from_elem(0, dims.len());
        let mut step = 1usize;
        for (s, &d) in strides.iter_mut().zip(dims).rev() {
            *s = step as isize;
            step = step.saturating_mul(d.max(1));
        }
        Operand::strided(dtype, dims, strides)
    }

    /// An operand with the given strides.
    pub fn strided(dtype: DType, dims: &[usize], strides: Strides) -> Result<Operand, WorkloadError> {
        if dims.len() > MAX_RANK {
            return Err(WorkloadError::Rank { rank: dims.len() });
        }
        if strides.len() != dims.len() {
            return Err(WorkloadError::StrideCount { dims: dims.len(), strides: strides.len() });
        }
        // Both the logical size and the span that strides reach must stay addressable.
        let logical = dims.iter().try_fold(dtype.size() as u128, |n, &d| n.checked_mul(d as u128));
        let span = dims.iter().zip(&strides).try_fold(dtype.size() as u128, |n, (&d, &s)| {
            let reach = (d.max(1) as u128 - 1).checked_mul(s.unsigned_abs() as u128)?;
            n.checked_add(reach.checked_mul(dtype.size() as u128)?)
        });
        match (logical, span) {
            (Some(l), Some(s)) if l <= MAX_BYTES && s <= MAX_BYTES => {}
            // A dimension of zero makes the logical size zero whatever the others are.
            _ => return Err(WorkloadError::TooLarge { dims: Dims::from_slice(dims), dtype }),
        }
        Ok(Operand { dtype, place: Place::Host, align_log2: 6, dims: Dims::from_slice(dims), strides })
    }

    /// The same operand living elsewhere.
    pub fn at(mut self, place: Place) -> Operand {
        self.place = place;
        self
    }

    /// Number of elements.
    #[inline]
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Bytes of all elements, each counted once.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }

    /// Number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Elements of a row: of the innermost dimension that has more than one.
    pub fn row(&self) -> usize {
        self.dims.iter().copied().rfind(|d| *d > 1).unwrap_or(1)
    }

    /// Whether elements lie one after another in row-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        row_major(&self.dims, &self.strides)
    }

    /// Bytes from the lowest address an element has to the end of the highest, and how far behind the lowest the
    /// first element lies. Nothing for an operand without elements.
    pub fn span(&self) -> (usize, usize) {
        if self.elements() == 0 {
            return (0, 0);
        }
        let (mut low, mut high) = (0isize, 0isize);
        for (&d, &s) in self.dims.iter().zip(&self.strides) {
            let reach = s * (d as isize - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        let size = self.dtype.size();
        ((high - low) as usize * size + size, low.unsigned_abs() * size)
    }

    /// Distinct bytes behind the elements: repeated (stride 0) dimensions count once.
    #[inline]
    pub fn distinct_bytes(&self) -> usize {
        let distinct: usize =
            self.dims.iter().zip(&self.strides).map(|(&d, &s)| if s == 0 { d.min(1) } else { d }).product();
        distinct * self.dtype.size()
    }
}

/// Whether elements of this shape with these strides lie one after another in row-major order.
#[inline]
pub(super) fn row_major(dims: &[usize], strides: &[isize]) -> bool {
    if let ([d], [s]) = (dims, strides) {
        return *s == 1 || *d <= 1;
    }
    let mut step = 1isize;
    for (&d, &s) in dims.iter().zip(strides).rev() {
        if d > 1 && s != step {
            return false;
        }
        step = step.saturating_mul(d.max(1) as isize);
    }
    true
}
