//! Where output goes: data and tables to standard output, everything else to standard error.

use crate::exit::Outcome;
use crate::paint::Paint;
use serde::Serialize;
use std::io::{self, Write};

/// How output is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// JSON, and nothing else, on standard output.
    pub json: bool,
    /// Colours for standard output.
    pub paint: Paint,
}

impl Screen {
    /// For this process.
    pub fn new(json: bool) -> Screen {
        Screen { json, paint: Paint::for_stream(&io::stdout()) }
    }

    /// Writes text at once, so that a reader sees it while we go on.
    pub fn print(&self, text: &str) -> Outcome {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Writes a line.
    pub fn line(&self, text: &str) -> Outcome {
        self.print(&format!("{text}\n"))
    }

    /// Writes JSON.
    pub fn data(&self, value: &impl Serialize) -> Outcome {
        let text = serde_json::to_string_pretty(value).map_err(crate::exit::Failure::failed)?;
        self.line(&text)
    }
}

/// One line to standard error. If even that is closed there is nobody left to tell.
pub fn note(kind: &str, message: &str) {
    let ink = match kind {
        "error" => crate::paint::Ink::Red,
        "warning" => crate::paint::Ink::Yellow,
        _ => crate::paint::Ink::Dim,
    };
    let kind = Paint::for_stream(&io::stderr()).ink(&format!("{kind}:"), ink);
    let _ = writeln!(io::stderr(), "{kind} {}", tame(message));
}

/// The message with what a terminal would obey made visible: parts of it come out of files.
fn tame(message: &str) -> String {
    let tamed = |c: char| c.is_control() && c != '\n';
    message.chars().map(|c| if tamed(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}
