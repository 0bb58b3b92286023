//! Whose CPU time it was.

use super::files::Root;

/// Seconds of CPU time since some beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuTimes {
    total: f64,
    busy: f64,
    own: f64,
}

/// The kernel counts in steps of 10 ms a core; over less than this the share is mostly rounding.
const SHORTEST: f64 = 0.08;

impl CpuTimes {
    pub(super) fn read(root: &Root) -> Option<CpuTimes> {
        let stat = root.text("proc/stat")?;
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        // user nice system idle iowait irq softirq steal; guest times are already inside user.
        let ticks: Vec<f64> = line.split_whitespace().take(8).map_while(|t| t.parse().ok()).collect();
        if ticks.len() < 4 {
            return None;
        }
        let total: f64 = ticks.iter().sum();
        let idle = ticks[3] + ticks.get(4).copied().unwrap_or(0.0);
        let second = ticks_a_second();
        Some(CpuTimes { total: total / second, busy: (total - idle) / second, own: own_seconds()? })
    }

    /// `None` if too little time has passed to tell.
    pub(super) fn busy_other_since(&self, before: &CpuTimes) -> Option<f64> {
        let total = self.total - before.total;
        if total < SHORTEST {
            return None;
        }
        let other = (self.busy - before.busy) - (self.own - before.own);
        Some((other / total).clamp(0.0, 1.0))
    }
}

#[cfg(unix)]
fn ticks_a_second() -> f64 {
    // SAFETY: sysconf takes a constant and touches no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

#[cfg(unix)]
fn own_seconds() -> Option<f64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage, which the call fills in.
    let ok = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } == 0;
    // SAFETY: all-zero bytes are a valid rusage, and the call only writes valid ones over them.
    let usage = unsafe { usage.assume_init() };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    ok.then(|| seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

#[cfg(not(unix))]
fn ticks_a_second() -> f64 {
    100.0
}

#[cfg(not(unix))]
fn own_seconds() -> Option<f64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_time_is_not_others_time() {
        let before = CpuTimes { total: 100.0, busy: 50.0, own: 10.0 };
        let now = CpuTimes { total: 102.0, busy: 51.5, own: 11.0 };
        assert_eq!(now.busy_other_since(&before), Some(0.25));
        let only_own = CpuTimes { total: 102.0, busy: 50.9, own: 11.0 };
        assert_eq!(only_own.busy_other_since(&before), Some(0.0), "rounding never makes it negative");
        let too_soon = CpuTimes { total: 100.01, busy: 50.01, own: 10.0 };
        assert_eq!(too_soon.busy_other_since(&before), None);
    }
}
