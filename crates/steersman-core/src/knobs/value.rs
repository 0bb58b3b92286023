//! Values as text: what `set` takes is what `list` shows.

use super::settings::{LogLevel, PolicyKind};
use crate::kernel::NumericClass;
use crate::units::Bytes;
use std::path::PathBuf;

/// A type a knob can have.
pub(super) trait Value: Sized {
    fn parse(text: &str) -> Result<Self, ()>;
    fn show(&self) -> String;
}

macro_rules! by_words {
    ($($t:ty),+) => {$(
        impl Value for $t {
            fn parse(text: &str) -> Result<$t, ()> {
                text.parse()
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

by_words!(NumericClass, PolicyKind, LogLevel);

impl Value for bool {
    fn parse(text: &str) -> Result<bool, ()> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(()),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// The `f64` knobs are all shares.
impl Value for f64 {
    fn parse(text: &str) -> Result<f64, ()> {
        text.parse().ok().filter(|v| (0.0..=1.0).contains(v)).ok_or(())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! counts {
    ($($t:ty),+) => {$(
        impl Value for $t {
            fn parse(text: &str) -> Result<$t, ()> {
                text.replace('_', "").parse().ok().filter(|&v| v >= 1).ok_or(())
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

counts!(usize, u32);

impl<T: Value> Value for Option<T> {
    fn parse(text: &str) -> Result<Option<T>, ()> {
        if text == "none" { Ok(None) } else { T::parse(text).map(Some) }
    }
    fn show(&self) -> String {
        self.as_ref().map_or("none".to_string(), T::show)
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<PathBuf, ()> {
        if text.is_empty() {
            return Err(());
        }
        // Shells put the home folder there only where nothing stands before it, and no shell reads a file.
        Ok(match (text.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
            _ => PathBuf::from(text),
        })
    }
    fn show(&self) -> String {
        self.display().to_string()
    }
}

/// The only text knob is a kernel's name.
impl Value for String {
    fn parse(text: &str) -> Result<String, ()> {
        if is_kernel(text) && !text.contains('*') { Ok(text.to_string()) } else { Err(()) }
    }
    fn show(&self) -> String {
        self.clone()
    }
}

impl Value for Vec<String> {
    fn parse(text: &str) -> Result<Vec<String>, ()> {
        if text == "none" {
            return Ok(Vec::new());
        }
        let parts = text.split(',').map(str::trim);
        parts.map(|p| if is_kernel(p) { Ok(p.to_string()) } else { Err(()) }).collect()
    }
    fn show(&self) -> String {
        if self.is_empty() { "none".to_string() } else { self.join(",") }
    }
}

fn is_kernel(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !c.is_control() && c != ',')
}

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// Reads `512MiB`, `1.5 GB`, `1048576`; units in any case. A bare `512M` is refused: it means two things.
pub fn parse_bytes(text: &str) -> Option<Bytes> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = (text[..digits].replace('_', ""), text[digits..].trim());
    let scale = match unit {
        "" => 1,
        _ => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale).map(Bytes);
    }
    if scale == 1 {
        // There is no half byte.
        return None;
    }
    let bytes = number.parse::<f64>().ok()? * scale as f64;
    (bytes < u64::MAX as f64).then_some(Bytes(bytes as u64))
}

impl Value for Bytes {
    fn parse(text: &str) -> Result<Bytes, ()> {
        parse_bytes(text).ok_or(())
    }
    /// In the largest unit that divides it, so that reading it back gives the same number.
    fn show(&self) -> String {
        let exact = UNITS.iter().find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale));
        exact.map_or("0B".to_string(), |(name, scale)| format!("{}{name}", self.0 / scale))
    }
}

/// Whether `text` matches `pattern`, where `*` stands for any run of characters.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
