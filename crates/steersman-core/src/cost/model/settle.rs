//! From samples to regressions that stay, and corrections around them.

use super::{Cell, Local, Model};
use crate::cost::key::{CellKey, Variant};
use crate::cost::local::Corners;
use crate::cost::terms::Terms;
use crate::workload::Workload;
use std::sync::OnceLock;

/// A sample, kept until its regression is settled.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) at: Corners,
    pub(super) terms: Terms,
    pub(super) seconds: f64,
    pub(super) weight: f64,
}

/// Samples a regression needs before it can be settled at the end of a calibration, which chose them.
const SETTLED_FROM: u64 = 3;

/// Samples that programs have to make of a cell before it is settled without a calibration: sixteen for each of the
/// terms there may be. (Every one kept takes 0.3 kB, and all that a program made went on being kept, 75 MB of them.)
pub(super) const OFTEN: usize = 128;
/// How many times the least work the most of them must be: what was seen of one size says nothing of a rate by size, and
/// what is settled stays.
const WIDE: f64 = 4.0;
/// Samples that stay of those of one size: one says what the others do.
const FEW: usize = 16;

impl Cell {
    fn is_wide(&self) -> bool {
        self.stats.range.is_some_and(|(least, most)| most - least >= WIDE.ln())
    }

    fn can_settle(&self) -> bool {
        !self.settled && self.stats.samples >= SETTLED_FROM
    }
}

impl Model {
    /// Turns what the regressions leave unexplained so far into local corrections, and settles none of them: within a
    /// calibration, so that it knows where nothing was measured yet.
    pub fn draft(&mut self) {
        for cell in self.cells.all_mut().filter(|c| c.can_settle()) {
            cell.local = Local::default();
            cell.drafted = true;
        }
        self.correct();
    }

    /// Settles every regression with samples enough, and turns what they leave unexplained into local
    /// corrections: at the end of a calibration.
    pub fn refit(&mut self) {
        for cell in self.cells.all_mut().filter(|c| !c.settled) {
            cell.fit = OnceLock::new();
            cell.settled = cell.can_settle();
            cell.drafted = false;
            cell.local = Local::default();
        }
        self.correct();
        for cell in self.cells.all_mut().filter(|c| c.settled) {
            cell.kept = Vec::new();
        }
        self.kept = self.cells.kept();
    }

    /// A calibration begins, or ends: it settles what it measured itself, at its end, and all at once.
    pub fn calibrating(&mut self, begins: bool) {
        self.calibrations = if begins { self.calibrations + 1 } else { self.calibrations.saturating_sub(1) };
    }

    /// Settles the cell of this work and its pool, if programs have measured it often and in several sizes; if it was
    /// always about one size, most of its samples are let go.
    pub fn settle_often_seen(&mut self, variant: Variant, w: &Workload) {
        if self.calibrations > 0 {
            return;
        }
        let own = CellKey::of(variant, w);
        // The pool first: the cell's regression leans on it.
        for key in [own.pool(), own] {
            let Some(cell) = self.cells.get_mut(&key).filter(|c| !c.settled && c.kept.len() >= OFTEN) else {
                continue;
            };
            if cell.is_wide() {
                cell.fit = OnceLock::new();
                (cell.settled, cell.drafted) = (true, false);
                cell.local = Local::default();
                self.correct_one(&key);
            }
            if let Some(cell) = self.cells.get_mut(&key) {
                let gone = if cell.settled { cell.kept.len() } else { cell.kept.len() - FEW };
                cell.kept.drain(..gone);
                cell.kept.shrink_to_fit();
                cell.local.settle();
                self.kept = self.kept.saturating_sub(gone);
            }
        }
    }

    /// Samples kept for the next settling.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Adds what the kept samples leave unexplained to the corrections of cells that have them. Kept are those of cells
    /// that were not settled when they came, so that none is added to what was settled before.
    fn correct(&mut self) {
        for key in self.cells.keeping() {
            self.correct_one(&key);
        }
        self.cells.all_mut().filter(|c| c.corrects()).for_each(|c| c.local.settle());
    }

    fn correct_one(&mut self, key: &CellKey) {
        let Some((fitted, cell)) = self.fit(key).filter(|(_, c)| c.corrects()) else { return };
        let unexplained = |s: &Sample| (s.seconds / fitted.fit.predict(&s.terms).seconds).ln();
        let residuals: Vec<f64> = cell.kept.iter().map(unexplained).collect();
        if let Some(Cell { kept, local, .. }) = self.cells.get_mut(key) {
            for (s, residual) in kept.iter().zip(residuals) {
                local.add(&s.at, residual, s.weight);
            }
        }
    }
}
