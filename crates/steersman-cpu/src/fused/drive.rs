//! Takes a part of a group through its tiles, and what is reduced through its parts.

use super::bind::{Bound, Exit};
use super::shape::{Over, reduced};
use super::tile::Tiles;
use crate::matmul::Scratch;
use crate::reduce::{CELL, CELLS, Part, Reducer};
use smallvec::SmallVec;
use std::ops::Range;

/// What one thread knows of each output that is reduced over all elements, or over the row at hand.
pub type Parts = SmallVec<[Part; 2]>;

/// Rows of a block of columns that are reduced together.
const RING: usize = 8;

/// The outputs that are reduced over this.
fn reductions<'a>(bound: &'a Bound<'_>, over: Over) -> impl Iterator<Item = (usize, Reducer)> + 'a {
    let of = move |(o, outlet): (usize, &'a super::bind::OutletAt)| {
        (outlet.exit == Exit::Reduce(over)).then_some((o, outlet.reducer?))
    };
    bound.outlets.iter().enumerate().filter_map(of)
}

/// Parts of no elements, one for each output.
pub fn start(bound: &Bound<'_>) -> Parts {
    let mut parts: Parts = SmallVec::from_elem(Part::empty(), bound.outlets.len());
    for (outlet, part) in bound.outlets.iter().zip(&mut parts) {
        if let Some(r) = outlet.reducer {
            r.start(part);
        }
    }
    parts
}

/// Where result `i` of output `o` belongs.
fn result(bound: &Bound<'_>, o: usize, i: usize) -> *mut u8 {
    bound.outlets[o].base.wrapping_add(i * bound.outlets[o].size)
}

/// Computes elements `range` in order: arrays are written, rows that lie within it reduced, and what is
/// reduced over everything taken into `parts`. A row that is only partly in `range` is taken into `parts` too.
///
/// # Safety
/// Operands must be valid and nobody else write to these elements.
pub unsafe fn flat(bound: &Bound<'_>, range: Range<usize>, parts: &mut Parts) {
    let columns = bound.shape.columns;
    let trailing = bound.shape.has(Over::Trailing);
    Scratch::with_local(|scratch| {
        let mut tiles = Tiles::new(bound, scratch, range.len());
        let mut i = range.start;
        while i < range.end {
            let mut n = tiles.seek(i).min(range.end - i);
            let column = if trailing { i % columns } else { 0 };
            let whole = trailing && column == 0 && n >= columns;
            if whole {
                n = n / columns * columns;
            } else if trailing {
                n = n.min(columns - column);
            }
            // SAFETY: by the caller's word; reduced values are `n` elements at their places.
            unsafe {
                tiles.compute(n);
                for (o, r) in reductions(bound, Over::All) {
                    r.more(&mut parts[o], tiles.result(o), n, i);
                }
                for (o, r) in reductions(bound, Over::Trailing) {
                    if whole {
                        r.rows(tiles.result(o), columns, n / columns, result(bound, o, i / columns));
                        continue;
                    }
                    if column == 0 {
                        r.start(&mut parts[o]);
                    }
                    r.more(&mut parts[o], tiles.result(o), n, column);
                    if column + n == columns {
                        r.finish(&parts[o], columns, result(bound, o, i / columns));
                    }
                }
            }
            i += n;
        }
    });
}

/// Computes elements `range` of a group that reduces nothing.
///
/// # Safety
/// As for [`flat`].
pub unsafe fn arrays(tiles: &mut Tiles<'_>, range: Range<usize>) {
    let mut i = range.start;
    while i < range.end {
        let n = tiles.seek(i).min(range.end - i);
        // SAFETY: by the caller's word.
        unsafe { tiles.compute(n) };
        i += n;
    }
}

/// Writes what was reduced over all elements.
///
/// # Safety
/// Outputs must be valid.
pub unsafe fn finish(bound: &Bound<'_>, parts: &Parts) {
    for (o, r) in reductions(bound, Over::All) {
        // SAFETY: by the caller's word.
        unsafe { r.finish(&parts[o], bound.shape.elements, result(bound, o, 0)) };
    }
}

/// Writes the results of one row whose parts have been joined.
///
/// # Safety
/// Outputs must be valid.
pub unsafe fn finish_row(bound: &Bound<'_>, parts: &Parts, row: usize) {
    for (o, r) in reductions(bound, Over::Trailing) {
        // SAFETY: by the caller's word.
        unsafe { r.finish(&parts[o], bound.shape.columns, result(bound, o, row)) };
    }
}

/// Takes one thread's parts into another's.
///
/// # Safety
/// Both must be of `bound`.
pub unsafe fn join(bound: &Bound<'_>, parts: &mut Parts, other: &Parts, over: Over) {
    for (o, r) in reductions(bound, over) {
        // SAFETY: parts are started when made.
        unsafe { r.join(&mut parts[o], &other[o]) };
    }
}

/// Cells of all outputs reduced over leading axes, [`CELLS`] each at most.
pub struct Cells {
    memory: Vec<Part>,
    columns: usize,
}

impl Cells {
    /// Cells of no elements.
    pub fn new(bound: &Bound<'_>, columns: usize) -> Cells {
        let mut cells = Cells { memory: vec![Part::empty(); bound.outlets.len() * columns], columns };
        cells.clear(bound, columns);
        cells
    }

    fn clear(&mut self, bound: &Bound<'_>, columns: usize) {
        for (o, r) in reductions(bound, Over::Leading) {
            // SAFETY: `columns` cells of at most `CELL` bytes each.
            unsafe { r.start_cells(self.of(o), columns) };
        }
    }

    fn of(&mut self, o: usize) -> *mut u8 {
        self.memory.as_mut_ptr().cast::<u8>().wrapping_add(o * self.columns * CELL)
    }

    /// Takes in what other cells know.
    pub fn join(&mut self, bound: &Bound<'_>, other: &mut Cells) {
        for (o, r) in reductions(bound, Over::Leading) {
            // SAFETY: both have as many cells.
            unsafe { r.join_cells(self.of(o), other.of(o), self.columns) };
        }
    }

    /// Writes the results of `columns` columns, from `first` on.
    ///
    /// # Safety
    /// Outputs must be valid.
    pub unsafe fn finish(&mut self, bound: &Bound<'_>, first: usize, columns: usize) {
        for (o, r) in reductions(bound, Over::Leading) {
            let n = reduced(bound.shape, Over::Leading);
            // SAFETY: by the caller's word.
            unsafe { r.finish_cells(self.of(o), columns, n, result(bound, o, first)) };
        }
    }
}

/// Computes whole rows of few columns, at most [`CELLS`]: all of them in one set of cells.
///
/// # Safety
/// As for [`flat`].
pub unsafe fn narrow(bound: &Bound<'_>, rows: Range<usize>, parts: &mut Parts, cells: &mut Cells) {
    let columns = bound.shape.columns;
    Scratch::with_local(|scratch| {
        let mut tiles = Tiles::new(bound, scratch, rows.len() * columns);
        let (mut i, end) = (rows.start * columns, rows.end * columns);
        while i < end {
            let mut n = tiles.seek(i).min(end - i);
            let column = i % columns;
            let whole = column == 0 && n >= columns;
            n = if whole { n / columns * columns } else { n.min(columns - column) };
            // SAFETY: by the caller's word; cells are as many as columns.
            unsafe {
                tiles.compute(n);
                for (o, r) in reductions(bound, Over::All) {
                    r.more(&mut parts[o], tiles.result(o), n, i);
                }
                for (o, r) in reductions(bound, Over::Leading) {
                    let (x, row) = (tiles.result(o), i / columns);
                    if whole {
                        r.more_cells(cells.of(o), columns, x, n / columns, columns, row);
                    } else {
                        let at = cells.of(o).wrapping_add(column * r.cell_size());
                        r.more_cells(at, n, x, 1, n, row);
                    }
                }
            }
            i += n;
        }
    });
}

/// Computes all rows of the columns `range`, a block of columns after another.
///
/// # Safety
/// As for [`flat`].
pub unsafe fn wide(bound: &Bound<'_>, range: Range<usize>, parts: &mut Parts) {
    let (columns, rows) = (bound.shape.columns, bound.shape.rows());
    let widest = bound.outlets.iter().zip(&bound.program.outlets).map(|(_, o)| o.size).max().unwrap_or(8);
    let block = CELLS.min(range.len());
    let mut cells = Cells::new(bound, block);
    let mut ring = vec![0u64; bound.outlets.len() * RING * block * widest / 8 + 8];
    let mut ring_of = |o: usize| ring.as_mut_ptr().cast::<u8>().wrapping_add(o * RING * block * widest);
    Scratch::with_local(|scratch| {
        let mut tiles = Tiles::new(bound, scratch, block);
        for first in range.clone().step_by(block) {
            let width = block.min(range.end - first);
            cells.clear(bound, width);
            for row in 0..rows {
                let mut done = 0;
                while done < width {
                    let i = row * columns + first + done;
                    let n = tiles.seek(i).min(width - done);
                    // SAFETY: by the caller's word; the ring has room for `RING` rows of `block`.
                    unsafe {
                        tiles.compute(n);
                        for (o, r) in reductions(bound, Over::All) {
                            // Blocks of columns come out of order, which only joining allows for.
                            let mut part = Part::empty();
                            r.start(&mut part);
                            r.more(&mut part, tiles.result(o), n, i);
                            r.join(&mut parts[o], &part);
                        }
                        for (o, _) in reductions(bound, Over::Leading) {
                            let size = bound.program.outlets[o].size;
                            let to = ring_of(o).add((row % RING * width + done) * size);
                            to.copy_from_nonoverlapping(tiles.result(o), n * size);
                        }
                    }
                    done += n;
                }
                let held = row % RING + 1;
                if held == RING || row + 1 == rows {
                    for (o, r) in reductions(bound, Over::Leading) {
                        // SAFETY: `held` rows of `width` elements lie in the ring.
                        unsafe { r.more_cells(cells.of(o), width, ring_of(o), held, width, row + 1 - held) };
                    }
                }
            }
            // SAFETY: by the caller's word.
            unsafe { cells.finish(bound, first, width) };
        }
    });
}
