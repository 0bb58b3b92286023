//! What can be typed.

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use steersman_core::{DType, NumericClass, Op};

const AFTER: &str = "\
Without a command: the tour. It finds devices, loads what is known or calibrates, runs a range of workloads
and shows for each what was chosen, what it took, and how close to the best that came.

Examples:
  steer                                             the tour
  steer calibrate --quick                           learn this machine in about two seconds
  steer explain \"matmul f32 1000x64 64x4096\"        every candidate, and why one was chosen
  steer run \"add f32 1000000 1000000\" --repeat 9    run and time it
  steer plan program.plan --svg plan.svg            how an array program is computed
  steer regret workloads.txt --json                 how close to the best the choices come

Exit codes: 0 well, 1 failure, 2 bad input, 130 interrupted (what was learned is kept).
Settings: `steer knobs` lists them; each has a variable STEERSMAN_* and a line in the config file.";

const EXPLAIN: &str = "\
A workload is an operation, an element type and shapes; `steer explain --help` says what else may follow.

Examples:
  steer explain \"matmul f32 777x64 64x4096\"
  steer explain \"sum f64 4096x4096 axis=1\"
  steer explain \"matmul f32 512x512 512x512\" --numerics relaxed";

const RUN: &str = "\
Without --input the operands are ordinary numbers. A forced kernel is timed alone.

Examples:
  steer run \"exp f32 1000000\"
  steer run \"matmul f32 512x512 512x512\" --kernel cpu/gemm --threads 1 --repeat 20
  steer run \"add f32 3x4 4\" --input a.npy b.npy --output c.npy";

const FORM: &str = "\
A workload is written OP TYPE OPERAND ... [NAME=VALUE ...] [-> PLACE]; # starts a comment. An operand is a shape:

  1000x64            1000 rows of 64; 1 for a scalar
  1000x64:1,1000     the same with strides in elements, here column by column; 0 repeats
  1000x64@host       the same at a place; `steer devices` lists them

  axis=0,1           axes that a reduction takes away; all of them if nothing is said
  perm=1,0           which axis comes where in a transpose; the other way round if nothing is said
  stride=1 pad=0     of conv2d
  numerics=relaxed   how far the result may differ: exact, reassociated or relaxed
  -> host            where the result is wanted

`max` and `min` reduce one operand and compare two. The condition of `where` is bool, whatever the type.";

/// What a command's help ends with, after the text form of workloads with all its words.
fn long(examples: &str) -> String {
    let types = DType::ALL.map(|d| d.name()).join(" ");
    let mut lines = vec![String::from("Ops:")];
    let mut names = Op::names();
    // Two are there twice, as what they are of one operand and of two.
    names.sort_unstable();
    names.dedup();
    for name in names {
        let last = lines.len() - 1;
        match lines[last].len() + name.len() < 100 {
            true => lines[last] += &format!(" {name}"),
            false => lines.push(format!("     {name}")),
        }
    }
    format!("{FORM}\n\nTypes: {types}\n{}\n\n{examples}", lines.join("\n"))
}

/// Runs every operation where it is quickest on this machine, and shows why.
#[derive(Debug, Parser)]
#[command(name = "steer", version, after_help = AFTER, max_term_width = 110, disable_help_subcommand = true)]
pub struct Cli {
    /// Print JSON on standard output, and nothing else there
    #[arg(long, global = true)]
    pub json: bool,

    /// How far results may differ from the reference: exact, reassociated or relaxed
    #[arg(long, global = true, value_name = "CLASS", value_parser = numerics)]
    pub numerics: Option<NumericClass>,

    /// What to do; the tour if nothing is said
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What this machine has: devices, their memory levels and measured rates
    #[command(after_help = "Examples:\n  steer devices\n  steer devices --json | jq '.devices[0].isa'")]
    Devices,

    /// Measure this machine and remember it
    #[command(after_help = "\
Ctrl-C stops it and keeps what was learned (exit 130); the next calibration goes on from there.

Examples:
  steer calibrate                  about ten seconds
  steer calibrate --quick          about two
  steer calibrate --budget 300ms   as much as fits
  steer calibrate --refresh        forget this machine's measurements first")]
    Calibrate {
        /// Only the everyday operations
        #[arg(long)]
        quick: bool,
        /// Forget what was measured on this machine and start anew
        #[arg(long)]
        refresh: bool,
        /// Most time to take, such as 5s, 300ms or 1m
        #[arg(long, value_name = "TIME", value_parser = duration)]
        budget: Option<Duration>,
    },

    /// Every candidate for a workload, what each would cost, and why one is chosen
    #[command(after_help = EXPLAIN, after_long_help = long(EXPLAIN))]
    Explain {
        /// The workload, such as "add f32 1000x1000 1000"
        #[arg(required = true, value_name = "WORKLOAD")]
        workload: Vec<String>,
    },

    /// Run a workload and time it
    #[command(after_help = RUN, after_long_help = long(RUN))]
    Run(RunArgs),

    /// How an array program is computed: what fuses, what runs where, expected and measured times
    #[command(after_help = "\
The file has one statement a line, NAME = OP OPERANDS; # starts a comment; - reads standard input:

  x = input f32 1000x1000    # ordinary numbers, in memory
  w = normal f32 1000x100    # or uniform; made anew in each run
  y = matmul x w
  z = relu y
  s = add z 0.5              # numbers stand beside arrays
  m = mean z axis=0          # axis=0,1 for several, none for all; keep=true leaves axes of one
  t = transpose z perm=1,0
  n = arange 100             # whole numbers from 0
  c = cast f32 n
  read m s t c               # if left out: what no other line uses

Ops are those of `steer explain`, without conv2d. `max` and `min` reduce one operand and compare two.

Examples:
  steer plan program.plan
  steer plan program.plan --runs 20 --json | jq '.stages[].workload'
  steer plan program.plan --svg plan.svg --dot plan.dot")]
    Plan(PlanArgs),

    /// How close to the best the choices for a file of workloads come
    #[command(after_help = "\
The file has one workload a line; # starts a comment; - reads standard input. For each, the decision is taken
with learning off, then every legal candidate is timed in turns. The best is picked on one half of the samples
and timed on the other, so that noise does not count as regret; where the chosen one seems to have lost by over
5%, the two are timed again alone, with more samples, and that counts.

Examples:
  steer regret workloads.txt
  echo 'add f32 1000 1000' | steer regret - --json")]
    Regret {
        /// File of workloads
        file: PathBuf,
    },

    /// Measure Steersman itself
    Bench {
        /// What of it
        #[command(subcommand)]
        what: Bench,
    },

    /// The last decisions: what was chosen, why, what it was thought to cost and what it did cost
    #[command(after_help = "\
Examples:
  steer log --limit 5
  steer log --csv > decisions.csv
  steer log --trace > trace.json     open it in a browser's tracer or ui.perfetto.dev")]
    Log {
        /// Comma-separated values
        #[arg(long, conflicts_with = "trace")]
        csv: bool,
        /// Trace events for chrome://tracing and Perfetto
        #[arg(long)]
        trace: bool,
        /// At most so many, the latest
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },

    /// What has been learned: look at it, move it, forget it
    Wisdom {
        /// What to do with it
        #[command(subcommand)]
        what: WisdomCommand,
    },

    /// Every setting, its value and who set it
    #[command(after_help = "Examples:\n  steer knobs\n  STEERSMAN_THREADS_MAX=1 steer knobs")]
    Knobs,
}

/// `steer run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The workload, such as "matmul f32 64x64 64x64"
    #[arg(required = true, value_name = "WORKLOAD")]
    pub workload: Vec<String>,
    /// Run this kernel, whatever would have been chosen; `steer explain` lists them
    #[arg(long, value_name = "ID")]
    pub kernel: Option<String>,
    /// Run it on so many threads
    #[arg(long, value_name = "N")]
    pub threads: Option<u16>,
    /// Take so many samples
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeat: u32,
    /// Operands from .npy files, in the workload's order
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub input: Vec<PathBuf>,
    /// Write the result to this .npy file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `steer plan`.
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// File of statements
    pub file: PathBuf,
    /// Run it so many times first, so that there are measured times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: u32,
    /// Write the plan as a Graphviz graph to this file
    #[arg(long, value_name = "OUT")]
    pub dot: Option<PathBuf>,
    /// Write the plan as a picture to this file
    #[arg(long, value_name = "OUT")]
    pub svg: Option<PathBuf>,
}

/// `steer bench`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Bench {
    /// Time a decision: of a workload decided before (hit), and of one that is new (miss)
    #[command(after_help = "Examples:\n  steer bench decide\n  steer bench decide --json")]
    Decide,
    /// Time a whole call through the runtime: `add f32 16 16` into memory that is there
    #[command(after_help = "Example:\n  steer bench call --json")]
    Call,
    /// Time the start: open wisdom, be ready to decide
    #[command(after_help = "Example:\n  steer bench start --json")]
    Start,
}

/// `steer wisdom`.
#[derive(Debug, Subcommand)]
pub enum WisdomCommand {
    /// What is known, and where it is kept
    Show,
    /// Write all of it as JSON, to a file, or to standard output if none is named or it is -
    #[command(
        after_help = "Examples:\n  steer wisdom export backup.json\n  steer wisdom export | gzip > w.gz"
    )]
    Export {
        /// File to write
        file: Option<PathBuf>,
    },
    /// Take in an export
    #[command(
        after_help = "Examples:\n  steer wisdom import backup.json --dry-run\n  steer wisdom import backup.json"
    )]
    Import {
        /// File made by `steer wisdom export`; - reads standard input
        file: PathBuf,
        /// Only say what would change
        #[arg(long)]
        dry_run: bool,
    },
    /// Take in another wisdom file
    #[command(after_help = "Example:\n  steer wisdom merge /mnt/other/wisdom.db")]
    Merge {
        /// The other file
        file: PathBuf,
    },
    /// Let kernels that misbehaved be chosen again
    ///
    /// A kernel that failed, panicked, hung or gave wrong answers is in quarantine; `steer wisdom show` lists them. Programs
    /// that run now keep to what they know until they end.
    #[command(after_help = "Examples:\n  steer wisdom lift\n  steer wisdom lift 'vulkan*'")]
    Lift {
        /// Only this kernel; `*` stands for anything
        kernel: Option<String>,
    },
    /// Forget everything, the log too
    #[command(after_help = "Example:\n  steer wisdom export backup.json && steer wisdom reset --yes")]
    Reset {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

fn numerics(text: &str) -> Result<NumericClass, String> {
    text.parse().map_err(|()| "it takes exact, reassociated or relaxed".to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "it takes a time such as 5s, 300ms or 1m".to_string();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let scale = match text[digits..].trim() {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        _ => return Err(wrong()),
    };
    let seconds = number * scale;
    if seconds > 0.0 && seconds <= 86_400.0 { Ok(Duration::from_secs_f64(seconds)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_read_with_units() {
        for (text, ms) in
            [("5s", 5000), ("300ms", 300), ("1m", 60_000), ("2", 2000), ("1.5s", 1500), ("2 min", 120_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in ["", "s", "-1s", "0", "5h", "1e9s", "nan", "1.2.3s", "99999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
