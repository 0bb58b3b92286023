//! Size classes: powers of two with four steps between, so that at most a fifth of a block is
//! slack and a block fits requests up to 25% apart.

/// Bytes in the smallest class: below it the bookkeeping weighs more than the memory.
const SMALLEST: usize = 1 << SMALLEST_LOG2;
const SMALLEST_LOG2: u32 = 8;
/// Four steps.
const STEP_LOG2: u32 = 2;
/// 64 TiB: half the user address space of today's 64-bit machines.
const LARGEST_LOG2: u32 = 46;

/// The largest request.
pub(super) const LARGEST: usize = 1 << LARGEST_LOG2;
/// How many classes there are.
pub(super) const COUNT: usize = (((LARGEST_LOG2 - SMALLEST_LOG2) << STEP_LOG2) + 1) as usize;

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(u8);

impl Class {
    /// The smallest class that holds `bytes`, which must be at most [`LARGEST`].
    pub(super) fn holding(bytes: usize) -> Class {
        debug_assert!(bytes <= LARGEST);
        if bytes <= SMALLEST {
            return Class(0);
        }
        let last = bytes - 1;
        let log2 = last.ilog2();
        let step = (last >> (log2 - STEP_LOG2)) as u32 & ((1 << STEP_LOG2) - 1);
        Class((((log2 - SMALLEST_LOG2) << STEP_LOG2) + step + 1) as u8)
    }

    /// Bytes in a block of this class.
    pub(super) fn size(self) -> usize {
        match u32::from(self.0) {
            0 => SMALLEST,
            n => {
                let (log2, step) = ((n - 1) >> STEP_LOG2, (n - 1) & ((1 << STEP_LOG2) - 1));
                (((1 << STEP_LOG2) + step + 1) as usize) << (log2 + SMALLEST_LOG2 - STEP_LOG2)
            }
        }
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(super) fn all() -> impl Iterator<Item = Class> {
        (0..COUNT as u8).map(Class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_grow_and_each_holds_its_own_size() {
        let sizes: Vec<usize> = Class::all().map(Class::size).collect();
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= pair[0] + pair[0] / 4));
        assert_eq!(sizes[..6], [256, 320, 384, 448, 512, 640]);
        assert_eq!(sizes.last(), Some(&LARGEST));
        for class in Class::all() {
            assert_eq!(Class::holding(class.size()), class);
        }
    }

    proptest! {
        #[test]
        fn a_class_holds_what_was_asked_with_little_slack(bytes in 1usize..=LARGEST, shift in 0u32..40) {
            let bytes = (bytes >> shift).max(1);
            let size = Class::holding(bytes).size();
            prop_assert!(size >= bytes);
            prop_assert!(bytes <= SMALLEST || size < bytes + bytes.div_ceil(4));
        }
    }
}
