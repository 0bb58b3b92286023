//! Small files of one value.

use std::path::PathBuf;
use std::str::FromStr;

/// Where `proc` and `sys` are.
#[derive(Debug)]
pub(super) struct Root(pub(super) PathBuf);

impl Root {
    /// A file's text without the line end; `None` if it cannot be read or is empty.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.0.join(path)).ok()?;
        let text = text.trim_end();
        (!text.is_empty()).then(|| text.to_string())
    }

    pub(super) fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.trim().parse().ok()
    }

    /// The names in a folder that start with `prefix`, sorted.
    pub(super) fn names(&self, folder: &str, prefix: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join(folder)) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .filter(|n| n.starts_with(prefix))
            .collect();
        names.sort();
        names
    }
}

/// How many numbers a list such as `0-3,8` names.
pub(super) fn count_list(text: &str) -> Option<usize> {
    text.split(',').try_fold(0usize, |n, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        n.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}
