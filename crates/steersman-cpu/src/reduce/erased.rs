//! Reductions of elements that come a tile at a time, for those who learn kind and type when they run.
//!
//! A [`Part`] holds what is known of some elements of one result; cells the same for a row of results.

use super::choose::{Visit, choose};
use super::columns::{self, Columns, Index};
use super::rows::Rows;
use crate::isa::{Body, Isa, Level};
use std::mem::MaybeUninit;
use steersman_core::{DType, ReduceOp};

/// What is known of some of the elements of one result.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(crate) struct Part {
    _room: MaybeUninit<[u64; 4]>,
}

impl Part {
    /// Nothing yet: [`Reducer::start`] comes first.
    pub const fn empty() -> Part {
        Part { _room: MaybeUninit::uninit() }
    }
}

/// Bytes that one cell takes at most.
pub(crate) const CELL: usize = size_of::<Part>();
/// The most cells that are updated at once.
pub(crate) const CELLS: usize = columns::TILE;

/// One reduction on one instruction set, which the CPU must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reducer {
    pub kind: ReduceOp,
    pub dtype: DType,
    pub level: Level,
}

/// What runs over many elements, compiled for each instruction set.
#[derive(Clone, Copy)]
enum Fold {
    More { part: *mut Part, x: *const u8, n: usize, at: usize },
    Rows { x: *const u8, n: usize, rows: usize, out: *mut u8 },
    Cells { cells: *mut u8, columns: usize, x: *const u8, rows: usize, stride: usize, at: usize },
}

/// What happens once in a while, for which one compilation does.
#[derive(Clone, Copy)]
enum Act {
    Fold(Fold, Level),
    Start { part: *mut Part },
    Join { part: *mut Part, other: *const Part },
    Finish { part: *const Part, n: usize, out: *mut u8 },
    StartCells { cells: *mut u8, columns: usize },
    JoinCells { cells: *mut u8, other: *const u8, columns: usize },
    FinishCells { cells: *const u8, columns: usize, n: usize, out: *mut u8 },
    CellSize { bytes: *mut usize },
}

impl Reducer {
    /// Makes `part` that of no elements.
    pub fn start(&self, part: &mut Part) {
        // SAFETY: a reference is good to write.
        unsafe { self.act(Act::Start { part }) }
    }

    /// Takes `n` elements at `x` in, the first of which has index `at` among the reduced ones.
    ///
    /// # Safety
    /// `x` must be readable for `n` elements and `part` have been started.
    pub unsafe fn more(&self, part: &mut Part, x: *const u8, n: usize, at: usize) {
        // SAFETY: passed on.
        unsafe { self.fold(Fold::More { part, x, n, at }) }
    }

    /// Takes in what another part knows.
    ///
    /// # Safety
    /// Both must have been started.
    pub unsafe fn join(&self, part: &mut Part, other: &Part) {
        // SAFETY: passed on.
        unsafe { self.act(Act::Join { part, other }) }
    }

    /// Writes the result of `n` elements.
    ///
    /// # Safety
    /// `part` must have been started, `out` be good for one result.
    pub unsafe fn finish(&self, part: &Part, n: usize, out: *mut u8) {
        // SAFETY: passed on.
        unsafe { self.act(Act::Finish { part, n, out }) }
    }

    /// Writes the results of `rows` rows of `n` elements that lie one after another.
    ///
    /// # Safety
    /// `x` must be readable for all elements, `out` writable for `rows` results.
    pub unsafe fn rows(&self, x: *const u8, n: usize, rows: usize, out: *mut u8) {
        // SAFETY: passed on.
        unsafe { self.fold(Fold::Rows { x, n, rows, out }) }
    }

    /// Makes `columns` cells those of no elements.
    ///
    /// # Safety
    /// `cells` must be good for that many times [`CELL`] bytes, aligned as [`Part`].
    pub unsafe fn start_cells(&self, cells: *mut u8, columns: usize) {
        // SAFETY: passed on.
        unsafe { self.act(Act::StartCells { cells, columns }) }
    }

    /// Takes `rows` rows in, `stride` elements apart, the first of which has index `at`.
    ///
    /// # Safety
    /// Cells (at most [`CELLS`]) must have been started, each row be readable for as many elements.
    pub unsafe fn more_cells(
        &self,
        cells: *mut u8,
        columns: usize,
        x: *const u8,
        rows: usize,
        stride: usize,
        at: usize,
    ) {
        // SAFETY: passed on.
        unsafe { self.fold(Fold::Cells { cells, columns, x, rows, stride, at }) }
    }

    /// Takes in what other cells know.
    ///
    /// # Safety
    /// Both must have been started.
    pub unsafe fn join_cells(&self, cells: *mut u8, other: *const u8, columns: usize) {
        // SAFETY: passed on.
        unsafe { self.act(Act::JoinCells { cells, other, columns }) }
    }

    /// Writes the results of columns of `n` elements.
    ///
    /// # Safety
    /// Cells must have been started, `out` be good for as many results.
    pub unsafe fn finish_cells(&self, cells: *const u8, columns: usize, n: usize, out: *mut u8) {
        // SAFETY: passed on.
        unsafe { self.act(Act::FinishCells { cells, columns, n, out }) }
    }

    /// Bytes from one cell to the next.
    pub fn cell_size(&self) -> usize {
        let mut bytes = 0;
        // SAFETY: a reference is good to write.
        unsafe { self.act(Act::CellSize { bytes: &mut bytes }) };
        bytes
    }

    unsafe fn fold(&self, fold: Fold) {
        // SAFETY: passed on.
        unsafe { self.act(Act::Fold(fold, self.level)) }
    }

    unsafe fn act(&self, act: Act) {
        let known = choose(self.kind, self.dtype, act);
        debug_assert!(known.is_ok(), "{self:?}: expressions check what reductions take");
    }
}

impl Visit for Act {
    fn visit<J: Rows + Columns>(self, job: J) -> bool {
        const {
            assert!(size_of::<<J as Rows>::Part>() <= CELL && size_of::<J::Cell>() <= CELL);
            assert!(align_of::<<J as Rows>::Part>() <= align_of::<Part>());
            assert!(align_of::<J::Cell>() <= align_of::<Part>());
        }
        type P<J> = <J as Rows>::Part;
        // SAFETY: whoever acts vouches for the pointers and for the level; sizes were checked above.
        unsafe {
            match self {
                Act::Fold(fold, level) => level.dispatch_unchecked(On { fold, job }),
                Act::Start { part } => part.cast::<P<J>>().write(Rows::start(job)),
                Act::Join { part, other } => {
                    let part = part.cast::<P<J>>();
                    part.write(Rows::join(job, part.read(), other.cast::<P<J>>().read()));
                }
                Act::Finish { part, n, out } => {
                    let result = Rows::finish(job, part.cast::<P<J>>().read(), n);
                    out.cast::<<J as Rows>::Out>().write_unaligned(result);
                }
                Act::StartCells { cells, columns } => {
                    (0..columns).for_each(|i| cells.cast::<J::Cell>().add(i).write(Columns::start(job)));
                }
                Act::JoinCells { cells, other, columns } => {
                    let (cells, other) = (cells.cast::<J::Cell>(), other.cast::<J::Cell>());
                    for i in 0..columns {
                        let both = Columns::join(job, cells.add(i).read(), other.add(i).read());
                        cells.add(i).write(both);
                    }
                }
                Act::FinishCells { cells, columns, n, out } => {
                    for i in 0..columns {
                        let result = Columns::finish(job, cells.cast::<J::Cell>().add(i).read(), n);
                        out.cast::<<J as Columns>::Out>().add(i).write_unaligned(result);
                    }
                }
                Act::CellSize { bytes } => bytes.write(size_of::<J::Cell>()),
            }
        }
        true
    }
}

struct On<J> {
    fold: Fold,
    job: J,
}

impl<J: Rows + Columns> Body for On<J> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let job = self.job;
        type P<J> = <J as Rows>::Part;
        // SAFETY: whoever folds vouches for the pointers.
        unsafe {
            let (x, n, at, rows, part, out) = match self.fold {
                Fold::Cells { cells, columns, x, rows, stride, at } => {
                    let cells = std::slice::from_raw_parts_mut(cells.cast::<J::Cell>(), columns);
                    return Columns::more::<I>(
                        job,
                        cells,
                        x.cast(),
                        rows,
                        stride as isize,
                        Index { first: at, step: 1 },
                    );
                }
                Fold::More { part, x, n, at } => (x, n, at, 1, Some(part.cast::<P<J>>()), x.cast_mut()),
                Fold::Rows { x, n, rows, out } => (x, n, 0, rows, None, out),
            };
            let (x, out) = (x.cast::<<J as Rows>::In>(), out.cast::<<J as Rows>::Out>());
            if part.is_none() && job.short::<I>(x, n, rows, out) {
                return;
            }
            // One call for both: the code behind it is large, and there is much of it.
            for row in 0..rows {
                let known = part.map_or(Rows::start(job), |p| p.read());
                let known = Rows::more::<I>(job, known, x.add(row * n), n, at);
                match part {
                    Some(part) => part.write(known),
                    None => out.add(row).write_unaligned(Rows::finish(job, known, n)),
                }
            }
        }
    }
}
