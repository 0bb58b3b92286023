//! From samples to regressions that stay, and corrections around them.

use super::{Cell, Local, Model};
use crate::cost::key::CellKey;
use crate::cost::local::Corners;
use crate::cost::terms::Terms;
use std::sync::OnceLock;

/// A sample of the calibration under way, kept until its regressions are settled.
pub(super) struct Sample {
    pub(super) key: CellKey,
    pub(super) at: Corners,
    pub(super) terms: Terms,
    pub(super) seconds: f64,
    pub(super) weight: f64,
}

/// Samples a regression needs before it can be settled.
const SETTLED_FROM: u64 = 3;

impl Cell {
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
        self.correct(|_| true);
    }

    /// Settles every regression with samples enough, and turns what they leave unexplained into local
    /// corrections: at the end of a calibration.
    pub fn refit(&mut self) {
        self.refit_of(|_| true);
    }

    /// The same for the cells of which `whose` says yes, at the end of a calibration that was about those alone: another one
    /// may be under way.
    pub fn refit_of(&mut self, whose: impl Fn(&CellKey) -> bool) {
        for cell in self.cells.those_mut(&whose).filter(|c| !c.settled) {
            cell.fit = OnceLock::new();
            cell.settled = cell.can_settle();
            cell.drafted = false;
            cell.local = Local::default();
        }
        self.correct(&whose);
        let cells = &self.cells;
        self.samples.retain(|s| !whose(&s.key) || cells.get(&s.key).is_none_or(|c| !c.settled));
    }

    /// Adds what the kept samples leave unexplained to the corrections of cells that have them. Kept are those of cells
    /// that were not settled when they came, so that none is added to what was settled before.
    fn correct(&mut self, whose: impl Fn(&CellKey) -> bool) {
        let samples = std::mem::take(&mut self.samples);
        for s in samples.iter().filter(|s| whose(&s.key)) {
            let Some((fitted, _)) = self.fit(&s.key).filter(|(_, c)| c.corrects()) else { continue };
            let residual = (s.seconds / fitted.fit.predict(&s.terms).seconds).ln();
            if let Some(cell) = self.cells.get_mut(&s.key) {
                cell.local.add(&s.at, residual, s.weight);
            }
        }
        self.samples = samples;
        self.cells.those_mut(whose).filter(|c| c.corrects()).for_each(|c| c.local.settle());
    }
}
