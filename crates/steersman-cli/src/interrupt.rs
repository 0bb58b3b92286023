//! Ctrl-C as a flag: long commands look at it, stop at a good place and keep what they have. Being told to end by others,
//! or by a terminal that closes, is the same.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

static ASKED: OnceLock<Instant> = OnceLock::new();

/// Signals that come so soon after the first are the same wish: `timeout -s INT` sends two, one to the process and one to
/// its group.
const ONE_WISH: Duration = Duration::from_secs(1);

/// From now on the first signal only raises the flag; one that comes a while later ends the process at once.
pub fn listen() {
    // `nohup` has it ignored, and that is to stay so.
    #[cfg(unix)]
    let hangup = Ignored::is(libc::SIGHUP);
    // Failing to install it leaves the system's default, which ends the process: still what was asked.
    let _ = ctrlc::set_handler(|| {
        if ASKED.get_or_init(Instant::now).elapsed() >= ONE_WISH {
            std::process::exit(130);
        }
    });
    #[cfg(unix)]
    if let Some(hangup) = hangup {
        hangup.again();
    }
}

/// Whether Ctrl-C was pressed.
pub fn asked() -> bool {
    ASKED.get().is_some()
}

/// A signal that this process was started to ignore.
#[cfg(unix)]
struct Ignored(libc::c_int);

#[cfg(unix)]
impl Ignored {
    fn is(signal: libc::c_int) -> Option<Ignored> {
        // SAFETY: asks only; all zeros are a valid `sigaction` to be written over.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            let asked = libc::sigaction(signal, std::ptr::null(), &mut now);
            (asked == 0 && now.sa_sigaction == libc::SIG_IGN).then_some(Ignored(signal))
        }
    }

    fn again(&self) {
        // SAFETY: ignoring needs no handler.
        unsafe {
            libc::signal(self.0, libc::SIG_IGN);
        }
    }
}
