//! Colours, on terminals only.

use std::io::IsTerminal;

/// A colour or weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    /// As it is.
    #[default]
    Plain,
    /// For headings and what was chosen.
    Bold,
    /// For what matters less.
    Dim,
    /// Good.
    Green,
    /// Worth a look.
    Yellow,
    /// Bad.
    Red,
}

/// Whether to use colours at all.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// For a stream: only if it is a terminal that can, and `NO_COLOR` is not set (<https://no-color.org>).
    pub fn for_stream(stream: &impl IsTerminal) -> Paint {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        Paint { on: stream.is_terminal() && !set("NO_COLOR") && !dumb }
    }

    /// The text in this ink.
    pub fn ink(&self, text: &str, ink: Ink) -> String {
        let code = match ink {
            _ if !self.on => return text.to_string(),
            Ink::Plain => return text.to_string(),
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Green => "32",
            Ink::Yellow => "33",
            Ink::Red => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_is_left_out_when_painting_is_off() {
        assert_eq!(Paint { on: false }.ink("x", Ink::Red), "x");
        assert_eq!(Paint { on: true }.ink("x", Ink::Red), "\x1b[31mx\x1b[0m");
        assert_eq!(Paint { on: true }.ink("x", Ink::Plain), "x");
    }
}
