//! Quantities that must not be mixed up, with units people can read.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::time::Duration;

/// A time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Seconds(pub f64);

impl Seconds {
    /// No time at all.
    pub const ZERO: Seconds = Seconds(0.0);

    /// From nanoseconds.
    pub fn nanos(ns: f64) -> Seconds {
        Seconds(ns * 1e-9)
    }

    /// From microseconds.
    pub fn micros(us: f64) -> Seconds {
        Seconds(us * 1e-6)
    }

    /// The larger of two.
    pub fn max(self, other: Seconds) -> Seconds {
        Seconds(self.0.max(other.0))
    }
}

impl From<Duration> for Seconds {
    fn from(d: Duration) -> Seconds {
        Seconds(d.as_secs_f64())
    }
}

impl Add for Seconds {
    type Output = Seconds;
    fn add(self, o: Seconds) -> Seconds {
        Seconds(self.0 + o.0)
    }
}
impl AddAssign for Seconds {
    fn add_assign(&mut self, o: Seconds) {
        self.0 += o.0;
    }
}
impl Sub for Seconds {
    type Output = Seconds;
    fn sub(self, o: Seconds) -> Seconds {
        Seconds(self.0 - o.0)
    }
}
impl Mul<f64> for Seconds {
    type Output = Seconds;
    fn mul(self, k: f64) -> Seconds {
        Seconds(self.0 * k)
    }
}
/// A ratio of two times.
impl Div for Seconds {
    type Output = f64;
    fn div(self, o: Seconds) -> f64 {
        self.0 / o.0
    }
}

fn three_digits(v: f64) -> String {
    match v.abs() {
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        _ => format!("{v:.2}"),
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0;
        let text = match s.abs() {
            _ if !s.is_finite() => format!("{s}"),
            0.0 => "0".to_string(),
            // Thresholds at 999.5 so that rounding never prints "1000 ns".
            a if a < 999.5e-9 => format!("{} ns", three_digits(s * 1e9)),
            a if a < 999.5e-6 => format!("{} µs", three_digits(s * 1e6)),
            a if a < 999.5e-3 => format!("{} ms", three_digits(s * 1e3)),
            _ => format!("{} s", three_digits(s)),
        };
        f.pad(&text)
    }
}

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = self.0 as f64;
        let text = match self.0 {
            0..=999 => format!("{} B", self.0),
            1_000..=999_499 => format!("{} kB", three_digits(b / 1e3)),
            999_500..=999_499_999 => format!("{} MB", three_digits(b / 1e6)),
            999_500_000..=999_499_999_999 => format!("{} GB", three_digits(b / 1e9)),
            999_500_000_000..=999_499_999_999_999 => format!("{} TB", three_digits(b / 1e12)),
            999_500_000_000_000..=999_499_999_999_999_999 => format!("{} PB", three_digits(b / 1e15)),
            _ => format!("{} EB", three_digits(b / 1e18)),
        };
        f.pad(&text)
    }
}

/// A number of things, one or several: `1 thread`, `2 threads`.
pub fn count(n: usize, thing: &str) -> String {
    let end = if n == 1 { "" } else { "s" };
    format!("{n} {thing}{end}")
}

/// A count with an SI prefix and a unit: `407 Mflop`.
pub fn si(value: f64, unit: &str) -> String {
    let (scaled, prefix) = match value.abs() {
        a if a >= 999.5e9 => (value / 1e12, "T"),
        a if a >= 999.5e6 => (value / 1e9, "G"),
        a if a >= 999.5e3 => (value / 1e6, "M"),
        a if a >= 999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{} {prefix}{unit}", three_digits(scaled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_with_three_digits_and_the_right_unit() {
        let cases =
            [(0.0, "0"), (2.31e-3, "2.31 ms"), (9.996e-7, "1.00 µs"), (4.5e-8, "45.0 ns"), (12.0, "12.0 s")];
        for (s, want) in cases {
            assert_eq!(Seconds(s).to_string(), want);
        }
    }

    #[test]
    fn bytes_and_counts_print_with_prefixes() {
        assert_eq!(Bytes(16_300_000).to_string(), "16.3 MB");
        assert_eq!(Bytes(12).to_string(), "12 B");
        assert_eq!(Bytes(999_499_999).to_string(), "999 MB");
        assert_eq!(Bytes(999_500_000).to_string(), "1.00 GB");
        assert_eq!(Bytes(16_000_000_000_000).to_string(), "16.0 TB");
        assert_eq!(Bytes(7_200_000_000_000_000).to_string(), "7.20 PB");
        assert_eq!(Bytes(u64::MAX).to_string(), "18.4 EB");
        assert_eq!([0, 1, 2].map(|n| count(n, "sample")), ["0 samples", "1 sample", "2 samples"]);
        assert_eq!(si(407e6, "flop"), "407 Mflop");
    }
}
