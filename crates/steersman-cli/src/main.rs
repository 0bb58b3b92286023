//! `steer`: shows, measures and explains what Steersman chooses on this machine.

mod args;
mod command;
mod company;
mod count;
mod exit;
mod interrupt;
mod keep;
mod npy;
mod open;
mod paint;
mod progress;
mod replace;
mod screen;
mod table;

use clap::Parser;
use std::process::ExitCode;

/// Counts, so that `steer bench decide` can tell whether a hit allocates.
#[global_allocator]
static ALLOCATOR: count::Counting = count::Counting;

fn main() -> ExitCode {
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        // Without that folder a layer of Mesa prints an error of its own whenever adapters are looked for.
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
    // A usage error prints itself to standard error and exits with 2; help and version exit with 0.
    match command::run(args::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
