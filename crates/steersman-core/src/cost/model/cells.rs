//! A model's cells by key. Remembered ones stay as they were written down until somebody asks for them.

use super::Cell;
use crate::cost::key::CellKey;
use crate::cost::knowledge::Knowledge;
use crate::cost::mix::Mix;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::OnceLock;

/// A cell, or what will be one.
#[derive(Debug, Default)]
struct Slot {
    written: Option<Knowledge>,
    /// On its own in memory, so that a table of thousands is small: a start makes it and hardly looks into it.
    cell: OnceLock<Box<Cell>>,
}

impl Slot {
    fn read(&self) -> &Cell {
        self.cell.get_or_init(|| Box::new(self.written.as_ref().map_or_else(Cell::default, Cell::of)))
    }

    fn knowledge(&self) -> Knowledge {
        self.written.clone().unwrap_or_else(|| self.read().knowledge())
    }

    fn read_mut(&mut self) -> &mut Cell {
        self.read();
        // From now on they differ.
        self.written = None;
        self.cell.get_mut().expect("it was read in the line before")
    }
}

/// All cells of a model.
#[derive(Debug, Default)]
pub(super) struct Cells(HashMap<CellKey, Slot, BuildHasherDefault<Mix>>);

impl Cells {
    pub fn get(&self, key: &CellKey) -> Option<&Cell> {
        self.0.get(key).map(Slot::read)
    }

    pub fn contains(&self, key: &CellKey) -> bool {
        self.0.contains_key(key)
    }

    pub fn get_mut(&mut self, key: &CellKey) -> Option<&mut Cell> {
        self.0.get_mut(key).map(Slot::read_mut)
    }

    pub fn get_or_new(&mut self, key: CellKey) -> &mut Cell {
        self.0.entry(key).or_default().read_mut()
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Cell> {
        self.0.values_mut().map(Slot::read_mut)
    }

    /// The keys of cells that keep samples.
    pub fn keeping(&self) -> Vec<CellKey> {
        let keeps = |slot: &Slot| slot.cell.get().is_some_and(|c| !c.kept.is_empty());
        self.0.iter().filter(|(_, slot)| keeps(slot)).map(|(key, _)| *key).collect()
    }

    /// Samples kept in all of them.
    pub fn kept(&self) -> usize {
        self.0.values().filter_map(|slot| slot.cell.get()).map(|c| c.kept.len()).sum()
    }

    pub fn put_back(&mut self, key: CellKey, knowledge: Knowledge) {
        self.0.insert(key, Slot { written: Some(knowledge), cell: OnceLock::new() });
    }

    pub fn write_down(&self) -> impl Iterator<Item = (CellKey, Knowledge)> {
        self.0.iter().map(|(key, slot)| (*key, slot.knowledge()))
    }

    pub fn take_out(&mut self, of: impl Fn(&CellKey) -> bool) -> Vec<(CellKey, Knowledge)> {
        let taken = self.0.extract_if(|key, _| of(key));
        taken.map(|(key, slot)| (key, slot.knowledge())).collect()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}
