//! A progress bar on standard error: bar, percent, time left. Silent unless a terminal is there to show it.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const WIDTH: usize = 28;
/// Redrawing costs a write to the terminal; ten a second look smooth and cost nothing.
const REDRAW: Duration = Duration::from_millis(100);

/// A bar on its line.
#[derive(Debug)]
pub struct Bar {
    terminal: bool,
    drawn: Option<Instant>,
}

impl Bar {
    /// A bar that is not shown yet.
    pub fn new() -> Bar {
        Bar { terminal: io::stderr().is_terminal(), drawn: None }
    }

    /// Shows `done` (0 to 1), the time left and what is going on.
    pub fn show(&mut self, done: f64, left: Option<Duration>, what: &str) {
        if !self.terminal || self.drawn.is_some_and(|at| at.elapsed() < REDRAW) {
            return;
        }
        self.drawn = Some(Instant::now());
        // To the line's start, then the bar, then clear what an earlier, longer line left.
        let _ = write!(io::stderr(), "\r{}\x1b[K", line(done, left, what));
        let _ = io::stderr().flush();
    }

    /// Takes the bar off the screen.
    pub fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
            let _ = io::stderr().flush();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(done: f64, left: Option<Duration>, what: &str) -> String {
    let done = if done.is_finite() { done.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (done * (WIDTH * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if let Some(part) = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(eighths % 8) {
        bar += part;
    }
    let left = left.map_or(String::new(), |l| format!("  {} left", clock(l)));
    // Longer text would wrap, and a wrapped line cannot be overwritten.
    let what: String = what.chars().take(32).collect();
    format!("{bar:<WIDTH$} {:3.0}%{left}  {what}", done * 100.0)
}

fn clock(d: Duration) -> String {
    let s = d.as_secs_f64();
    if s < 90.0 { format!("{s:.0} s") } else { format!("{:.0} min", s / 60.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_keeps_its_width_and_survives_nonsense() {
        for done in [0.0, 0.013, 0.5, 1.0, 7.0, -1.0, f64::NAN] {
            let text = line(done, None, "");
            assert_eq!(text.chars().take_while(|c| *c != '%').count(), WIDTH + 4, "{done}: {text}");
        }
        assert!(line(0.5, Some(Duration::from_secs(7)), "probing").ends_with("50%  7 s left  probing"));
    }
}
