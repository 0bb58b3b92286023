//! Aligned tables.
//!
//! ```text
//! let mut t = Table::new(&[Left("kernel"), Right("time")]);
//! t.row(["cpu/scalar", "1.00 µs"]);
//! t.show(&paint)
//! ```

use crate::paint::{Ink, Paint};

/// A column: its heading, and the side its cells keep to.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// Text.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

/// Rows under headings.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<(Ink, Vec<String>)>,
}

impl Table {
    /// An empty table.
    pub fn new(columns: &[Column]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.inked(Ink::Plain, cells);
    }

    /// Adds a row in a colour.
    pub fn inked<S: Into<String>>(&mut self, ink: Ink, cells: impl IntoIterator<Item = S>) {
        self.rows.push((ink, cells.into_iter().map(Into::into).collect()));
    }

    /// Every line with its end, headings first.
    pub fn show(&self, paint: &Paint) -> String {
        let heads: Vec<String> = self.columns.iter().map(|c| c.name().to_string()).collect();
        let all = || std::iter::once(&heads).chain(self.rows.iter().map(|(_, cells)| cells));
        let width = |i: usize| all().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        let line = |cells: &[String]| {
            let padded: Vec<String> = self.columns.iter().zip(cells).zip(&widths).map(pad).collect();
            padded.join("  ").trim_end().to_string()
        };
        let mut out = String::new();
        if heads.iter().any(|h| !h.is_empty()) {
            out += &format!("{}\n", paint.ink(&line(&heads), Ink::Dim));
        }
        for (ink, cells) in &self.rows {
            out += &format!("{}\n", paint.ink(&line(cells), *ink));
        }
        out
    }
}

impl Column {
    fn name(&self) -> &'static str {
        match self {
            Column::Left(name) | Column::Right(name) => name,
        }
    }
}

fn pad(((column, cell), &width): ((&Column, &String), &usize)) -> String {
    match column {
        Column::Left(_) => format!("{cell:<width$}"),
        Column::Right(_) => format!("{cell:>width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_letters() {
        let mut t = Table::new(&[Column::Left("a"), Column::Right("time")]);
        t.row(["x", "1 µs"]);
        t.row(["longer", "100 µs"]);
        let paint = Paint::for_stream(&std::fs::File::open("/dev/null").expect("/dev/null is there"));
        assert_eq!(t.show(&paint), "a         time\nx         1 µs\nlonger  100 µs\n");
    }
}
