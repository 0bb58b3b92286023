//! bf16 panels in the order the tiles load them.
//!
//! One step of [`K`] takes two tiles of `a` (16 rows of 32 each) and two of `b` (16 pairs of rows by 16
//! columns: rows `2r` and `2r + 1` interleaved). Rows, columns and steps past the end are zeros.

use super::View;

/// Rows and columns of `c` in a square: two tiles each way.
pub(super) const SIDE: usize = 32;
/// Products in one step of a tile.
pub(super) const K: usize = 32;
/// Rows of a tile.
const TILE: usize = 16;

/// What can be read as bf16.
pub(super) trait Bf16: Copy {
    /// The bits of the nearest bf16, ties to even.
    fn bits(self) -> u16;
}

impl Bf16 for u16 {
    #[inline(always)]
    fn bits(self) -> u16 {
        self
    }
}

impl Bf16 for f32 {
    #[inline(always)]
    fn bits(self) -> u16 {
        let bits = self.to_bits();
        // A NaN whose payload sits in the low half must not become an infinity.
        let rounded = (bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16) as u16;
        let quiet = (bits >> 16) as u16 | 0x40;
        if self.is_nan() { quiet } else { rounded }
    }
}

/// Packs `rows` rows (from, count) and `ks` columns of `a` for the left side of a square.
///
/// # Safety
/// `a` is valid there, `to` for `SIDE` times the steps' [`K`] elements.
pub(super) unsafe fn pack_left<S: Bf16>(
    a: View<S>,
    (row, rows): (usize, usize),
    (p, ks): (usize, usize),
    to: *mut u16,
) {
    for step in 0..ks.max(1).div_ceil(K) {
        for i in 0..SIDE {
            let count = if i < rows { K.min(ks - (step * K).min(ks)) } else { 0 };
            // SAFETY: row i of this step has 32 elements in the panel, `count` of them in a.
            unsafe {
                let line = to.add((step * SIDE + i) * K);
                let from = a.at(row + i, p + step * K);
                if count == K && a.cs == 1 {
                    for q in 0..K {
                        *line.add(q) = (*from.add(q)).bits();
                    }
                } else {
                    for q in 0..K {
                        *line.add(q) = if q < count { (*from.offset(q as isize * a.cs)).bits() } else { 0 };
                    }
                }
            }
        }
    }
}

/// Packs `ks` rows and `columns` columns (from, count) of `b` for the right side of a square.
///
/// # Safety
/// `b` is valid there, `to` for `SIDE` times the steps' [`K`] elements.
pub(super) unsafe fn pack_right<S: Bf16>(
    b: View<S>,
    (p, ks): (usize, usize),
    (column, columns): (usize, usize),
    to: *mut u16,
) {
    for step in 0..ks.max(1).div_ceil(K) {
        for half in 0..2 {
            let first = half * TILE;
            let width = columns.clamp(first, first + TILE) - first;
            for pair in 0..TILE {
                let q = step * K + 2 * pair;
                let count = ks.clamp(q, q + 2) - q;
                // SAFETY: the pair of rows has 32 elements in the panel, `count × width` of them in b.
                unsafe {
                    let line = to.add(step * SIDE * K + half * TILE * K + pair * K).cast::<[u16; 2]>();
                    let from = b.at(p + q, column + first);
                    if count == 2 && width == TILE && b.cs == 1 {
                        let below = from.offset(b.rs);
                        for j in 0..TILE {
                            *line.add(j) = [(*from.add(j)).bits(), (*below.add(j)).bits()];
                        }
                    } else {
                        for j in 0..TILE {
                            let at = |r: usize| match r < count && j < width {
                                true => (*from.offset(r as isize * b.rs + j as isize * b.cs)).bits(),
                                false => 0,
                            };
                            *line.add(j) = [at(0), at(1)];
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_to_bf16_agrees_with_the_half_crate() {
        for bits in (0..=u32::MAX).step_by(65_537 / 3) {
            let x = f32::from_bits(bits);
            let want = half::bf16::from_f32(x);
            let got = half::bf16::from_bits(x.bits());
            assert!(got == want || (got.is_nan() && want.is_nan()), "{x:e} ({bits:#x}): {got} and {want}");
        }
    }

    #[test]
    fn a_nan_stays_a_nan() {
        assert!(half::bf16::from_bits(f32::from_bits(0x7F80_0001).bits()).is_nan());
        assert_eq!(f32::INFINITY.bits(), 0x7F80);
    }
}
