//! One file a command.

mod bench;
mod calibrate;
mod devices;
mod explain;
mod knobs;
mod log;
mod plan;
mod regret;
mod run;
mod tour;
mod wisdom;

use crate::args::{Cli, Command};
use crate::exit::Outcome;
use crate::screen::Screen;

/// Does what was typed.
pub fn run(cli: Cli) -> Outcome {
    let screen = Screen::new(cli.json);
    match cli.command {
        None => tour::run(&screen),
        Some(Command::Devices) => devices::run(&screen),
        Some(Command::Calibrate { quick, refresh, budget }) => {
            calibrate::run(&screen, quick, refresh, budget)
        }
        Some(Command::Explain { workload }) => explain::run(&screen, &workload, cli.numerics),
        Some(Command::Run(args)) => run::run(&screen, &args, cli.numerics),
        Some(Command::Plan(args)) => plan::run(&screen, &args, cli.numerics),
        Some(Command::Regret { file }) => regret::run(&screen, &file, cli.numerics),
        Some(Command::Bench { what }) => bench::run(&screen, what),
        Some(Command::Log { csv, trace, limit }) => log::run(&screen, csv, trace, limit),
        Some(Command::Wisdom { what }) => wisdom::run(&screen, &what),
        Some(Command::Knobs) => knobs::run(&screen),
    }
}
