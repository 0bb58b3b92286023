//! What the example programs share: flags, timing, and one line of JSON.

use std::process::ExitCode;
use std::time::Instant;
use steersman::{Error, Knobs, Runtime};

/// A runtime as people have it, less the background calibration: it would run beside what is timed.
pub fn runtime() -> Result<Runtime, Error> {
    let mut knobs = Knobs::load()?;
    knobs.set("calibrate.background", "false")?;
    Runtime::with_knobs(knobs)
}

/// Runs the program; what goes wrong is said in one line, and the process then ends with 1.
pub fn start(name: &str, run: impl FnOnce() -> Result<(), Error>) -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{name}: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Numbers by flag, each with its default; `--json` apart.
pub struct Flags {
    numbers: Vec<(&'static str, usize)>,
    pub json: bool,
}

impl Flags {
    /// Reads the command line; on anything it does not know says what it does know and exits with 2.
    pub fn parse(defaults: &[(&'static str, usize)]) -> Flags {
        let mut flags = Flags { numbers: defaults.to_vec(), json: false };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            if word == "--help" || word == "-h" {
                print!("{}", known(defaults));
                std::process::exit(0);
            }
            if word == "--json" {
                flags.json = true;
                continue;
            }
            let (name, given) = match word.split_once('=') {
                Some((name, value)) => (name.to_string(), Some(value.to_string())),
                None => (word.clone(), words.next()),
            };
            let Some(slot) = flags.numbers.iter_mut().find(|(n, _)| Some(*n) == name.strip_prefix("--"))
            else {
                usage(defaults, &format!("there is no {word}"));
            };
            slot.1 = match given.as_deref().map(|g| g.replace('_', "").parse::<usize>()) {
                Some(Ok(n)) if n > 0 => n,
                _ => usage(defaults, &format!("{name} takes a whole number of at least 1")),
            };
        }
        flags
    }

    /// The number of a flag that was declared.
    pub fn get(&self, name: &str) -> usize {
        self.numbers.iter().find(|(n, _)| *n == name).map_or(0, |(_, value)| *value)
    }
}

fn usage(defaults: &[(&'static str, usize)], why: &str) -> ! {
    eprint!("{why}; known are:\n{}", known(defaults));
    std::process::exit(2);
}

/// The flags, one a line.
fn known(defaults: &[(&'static str, usize)]) -> String {
    let flags =
        defaults.iter().map(|(name, value)| format!("  {:<12} default {value}\n", format!("--{name} N")));
    flags.chain(["  --json       one JSON object\n".into()]).collect()
}

/// The first time a program runs, and its steady state.
pub struct Times {
    pub cold_s: f64,
    pub steady_s: f64,
}

/// Runs a program once, then again for at least two seconds and sixteen times, in which kernels are still being tried;
/// steady is the median of the second half.
pub fn time(mut program: impl FnMut() -> Result<f64, Error>) -> Result<(f64, Times), Error> {
    let mut once = || {
        let started = Instant::now();
        let result = program()?;
        Ok::<_, Error>((result, started.elapsed().as_secs_f64()))
    };
    let (result, cold_s) = once()?;
    let mut all = Vec::new();
    while all.len() < 16 || (all.iter().sum::<f64>() < 2.0 && all.len() < 2000) {
        all.push(once()?.1);
    }
    let half = all.len() / 2;
    let later = &mut all[half..];
    later.sort_by(f64::total_cmp);
    Ok((result, Times { cold_s, steady_s: later[later.len() / 2] }))
}

/// Says how it went, and fails if the result is further from the reference than `within`.
pub fn report(
    flags: &Flags,
    name: &str,
    result: f64,
    reference: f64,
    within: f64,
    times: &Times,
    more: &[(&str, f64)],
) {
    if flags.json {
        let mut object = serde_json::json!({
            "result": result, "reference": reference, "cold_s": times.cold_s, "steady_s": times.steady_s,
        });
        for (key, value) in more {
            object[*key] = (*value).into();
        }
        println!("{object}");
    } else {
        println!("{name}: {result:.6}, reference {reference:.6}");
        println!("  first time {:.3} ms, then {:.3} ms", times.cold_s * 1e3, times.steady_s * 1e3);
        for (key, value) in more {
            println!("  {key} {value}");
        }
    }
    let off = (result - reference).abs();
    if off.is_nan() || off > within {
        eprintln!("{name}: {result:e} is {off:e} away from {reference:e}, which is more than {within:e}");
        std::process::exit(1);
    }
}
