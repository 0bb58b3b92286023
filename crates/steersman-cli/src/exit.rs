//! How a command ends: 0 well, 1 failed, 2 bad input, 130 interrupted.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

/// Why a command did not end well.
#[derive(Debug)]
pub enum Failure {
    /// What was typed, set or handed over cannot be used: exit 2.
    Input(String),
    /// It was right to ask, and still it did not work: exit 1.
    Failed(String),
    /// Ctrl-C; what was learned is kept: exit 130, as shells expect.
    Interrupted,
    /// Whoever read our output has gone (`steer log | head`): nothing to complain about.
    Closed,
}

/// What a command gives.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Bad input, in words.
    pub fn input(message: impl Display) -> Failure {
        Failure::Input(message.to_string())
    }

    /// A failure, in words.
    pub fn failed(message: impl Display) -> Failure {
        Failure::Failed(message.to_string())
    }

    /// Says it on standard error and gives the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::Input(message) => {
                complain(&message);
                ExitCode::from(2)
            }
            Failure::Failed(message) => {
                complain(&message);
                ExitCode::from(1)
            }
            Failure::Interrupted => ExitCode::from(130),
            Failure::Closed => ExitCode::SUCCESS,
        }
    }
}

/// Output that cannot be written is a failure, except that nobody is there to read it.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Failed(format!("cannot write the output: {e}")),
        }
    }
}

fn complain(message: &str) {
    crate::screen::note("error", message);
}
