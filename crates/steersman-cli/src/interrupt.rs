//! Ctrl-C as a flag: long commands look at it, stop at a good place and keep what they have.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C only raises the flag; a second one ends the process at once.
pub fn listen() {
    // Failing to install it leaves the system's default, which ends the process: still what was asked.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
}

/// Whether Ctrl-C was pressed.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
