//! What can be wrong with an override.

use std::path::PathBuf;

/// An override that cannot be obeyed.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// No knob, variable or key has this name.
    #[error("there is no {what} {name}{}; `steer knobs` lists all", did_you_mean(.nearest))]
    Unknown {
        /// `knob`, `variable` or `key in FILE`.
        what: String,
        /// What was given.
        name: String,
        /// The closest name there is, if any is close.
        nearest: Option<String>,
    },
    /// The value is not one the knob takes.
    #[error("{place} sets {knob} to {value:?}, but it takes {accepts}")]
    Value {
        /// The knob's name.
        knob: &'static str,
        /// The variable, or the file and key.
        place: String,
        /// What was given.
        value: String,
        /// What would have been right.
        accepts: &'static str,
    },
    /// The configuration file is not TOML.
    #[error("{file} is not valid TOML: {why}")]
    Syntax {
        /// Its path.
        file: String,
        /// The parser's words, with line and column.
        why: String,
    },
    /// The configuration file cannot be read.
    #[error("cannot read the configuration file {path}: {why}; mend it or unset STEERSMAN_CONFIG")]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The system's words.
        why: std::io::Error,
    },
    /// A variable's value is not UTF-8.
    #[error("the variable {name} is not valid UTF-8; set it to plain text")]
    NotText {
        /// Its name.
        name: String,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or(String::new(), |n| format!("; did you mean {n}?"))
}

impl KnobError {
    pub(super) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> KnobError {
        KnobError::unknown_in("knob", name, known)
    }

    pub(super) fn unknown_in<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> KnobError {
        let nearest = known
            .map(|k| (distance(name, k), k))
            .filter(|(d, k)| *d <= 2.max(k.len() / 3))
            .min()
            .map(|(_, k)| k.to_string());
        KnobError::Unknown { what: what.to_string(), name: name.to_string(), nearest }
    }
}

/// Levenshtein distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
