//! Every override, typed, declared once and listed.
//!
//! A caller needs values; it gets them as plain fields, already checked:
//! ```
//! use steersman_core::knobs::Knobs;
//! let mut knobs = Knobs::default();
//! knobs.set("explore.budget", "0.05")?;
//! assert_eq!(knobs.explore_budget, 0.05);
//! let wrong = knobs.set("explore.bugdet", "0").unwrap_err();
//! assert!(wrong.to_string().contains("explore.budget"));
//! # Ok::<(), steersman_core::knobs::KnobError>(())
//! ```
//! Sources, the later winning: the default, the configuration file, the environment (`STEERSMAN_*`),
//! [`Knobs::set`]. The word `default` as a value takes a knob back to its default, so that a later source
//! can undo an earlier one.

mod error;
mod load;
mod paths;
mod settings;
mod table;
mod value;

pub use error::KnobError;
pub use paths::{config_file, wisdom_file};
pub use settings::{LogLevel, PolicyKind, Settings};
pub use table::{KnobInfo, KnobKind, TABLE};
pub use value::parse_bytes;

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;

/// Where a knob's value came from. Ordered: later wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// A configuration file, by its path.
    File(String),
    /// An environment variable, by its name.
    Env(&'static str),
    /// [`Knobs::set`].
    Program,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.pad("default"),
            Source::File(path) => f.pad(path),
            Source::Env(name) => f.pad(name),
            Source::Program => f.pad("program"),
        }
    }
}

/// One row of [`Knobs::list`].
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct KnobRow {
    /// `explore.budget`.
    pub name: &'static str,
    /// Its value now, in the form that `set` takes.
    pub value: String,
    /// The value it has when nobody sets it.
    pub default: &'static str,
    /// Who set it.
    pub source: String,
    /// `STEERSMAN_EXPLORE_BUDGET`.
    pub env: &'static str,
    /// What it accepts.
    pub accepts: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// All knobs with their values and where each came from. Reads as its [`Settings`]; changes only through
/// [`Knobs::set`], so that nothing unchecked or unattributed gets in.
#[derive(Clone, Debug)]
pub struct Knobs {
    settings: Settings,
    /// One per row of [`TABLE`].
    sources: Vec<Source>,
}

impl Default for Knobs {
    fn default() -> Knobs {
        Knobs { settings: Settings::default(), sources: vec![Source::Default; TABLE.len()] }
    }
}

impl Deref for Knobs {
    type Target = Settings;
    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Knobs {
    /// Sets a knob by name, over every other source.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), KnobError> {
        let Some(index) = TABLE.iter().position(|k| k.name == name) else {
            return Err(KnobError::unknown(name, TABLE.iter().map(|k| k.name)));
        };
        self.apply(index, value, Source::Program, "set()".to_string())
    }

    /// A knob's value in the form that [`Knobs::set`] takes.
    pub fn get(&self, name: &str) -> Option<String> {
        TABLE.iter().find(|k| k.name == name).map(|k| (k.show)(&self.settings))
    }

    /// Who set a knob.
    pub fn source(&self, name: &str) -> Option<&Source> {
        TABLE.iter().position(|k| k.name == name).map(|i| &self.sources[i])
    }

    /// Every knob, in the table's order.
    pub fn list(&self) -> Vec<KnobRow> {
        let row = |(k, source): (&KnobInfo, &Source)| KnobRow {
            name: k.name,
            value: (k.show)(&self.settings),
            default: k.default,
            source: source.to_string(),
            env: k.env,
            accepts: k.kind.accepts(),
            help: k.help,
        };
        TABLE.iter().zip(&self.sources).map(row).collect()
    }

    /// Where wisdom is to be kept: the knob, else the platform's data folder. `None` when wisdom is off or
    /// there is no such folder: then it is kept in memory only.
    pub fn wisdom_path(&self) -> Option<PathBuf> {
        if !self.wisdom_enabled {
            return None;
        }
        self.wisdom_path.clone().or_else(|| wisdom_file(&|name| std::env::var_os(name)))
    }

    /// Whether this kernel may be used, going by the `disable` patterns.
    pub fn allows(&self, kernel: &str) -> bool {
        !self.disable.iter().any(|pattern| value::glob(pattern, kernel))
    }

    fn apply(&mut self, index: usize, text: &str, source: Source, place: String) -> Result<(), KnobError> {
        let knob = &TABLE[index];
        let text = text.trim();
        let text = if text == "default" { knob.default } else { text };
        (knob.apply)(&mut self.settings, text).map_err(|()| KnobError::Value {
            knob: knob.name,
            place,
            value: text.to_string(),
            accepts: knob.kind.accepts(),
        })?;
        self.sources[index] = source;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
