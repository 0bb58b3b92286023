//! A progress bar on standard error: bar, percent, time left. Silent unless a terminal is there that can show it.

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
        // A dumb one prints what others obey.
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        Bar { terminal: io::stderr().is_terminal() && !dumb, drawn: None }
    }

    /// Shows `done` (0 to 1), the time left and what is going on.
    pub fn show(&mut self, done: f64, left: Option<Duration>, what: &str) {
        if !self.terminal || self.drawn.is_some_and(|at| at.elapsed() < REDRAW) {
            return;
        }
        self.drawn = Some(Instant::now());
        // To the line's start, then the bar, then clear what an earlier, longer line left.
        let _ = write!(io::stderr(), "\r{}\x1b[K", line(done, left, what, width()));
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

/// Columns of the terminal; 80 where it does not say.
fn width() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: asks for four numbers, for which there is room.
        let size = unsafe {
            let mut size: libc::winsize = std::mem::zeroed();
            (libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &mut size) == 0).then_some(size)
        };
        if let Some(size) = size.filter(|s| s.ws_col > 0) {
            return size.ws_col.into();
        }
    }
    std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).filter(|c| *c > 0).unwrap_or(80)
}

fn line(done: f64, left: Option<Duration>, what: &str, width: usize) -> String {
    let done = if done.is_finite() { done.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (done * (WIDTH * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if let Some(part) = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(eighths % 8) {
        bar += part;
    }
    let left = left.map_or(String::new(), |l| format!("  {} left", clock(l)));
    // Longer text would wrap, and a wrapped line cannot be overwritten; some terminals wrap where the last column is full.
    let text = format!("{bar:<WIDTH$} {:3.0}%{left}  {what}", done * 100.0);
    text.chars().take(width.saturating_sub(1)).collect()
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
            let text = line(done, None, "", 80);
            assert_eq!(text.chars().take_while(|c| *c != '%').count(), WIDTH + 4, "{done}: {text}");
        }
        for width in [1, 20, 40, 200] {
            let text = line(0.5, None, &"measuring a workload with a long name".repeat(9), width);
            assert_eq!(text.chars().count(), width - 1, "{text}");
        }
        assert!(line(0.5, Some(Duration::from_secs(7)), "probing", 80).ends_with("50%  7 s left  probing"));
    }
}
