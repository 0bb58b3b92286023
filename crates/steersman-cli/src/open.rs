//! Opening what every command needs: the runtime, and the workload that was typed.

use crate::exit::Failure;
use crate::screen::note;
use std::io::Read;
use std::path::Path;
use steersman::{Error, Runtime};
use steersman_core::{
    Bytes, EngineError, Explanation, Knobs, NumericClass, Place, ReasonCode, Variant, Workload,
};

/// The knobs, without calibration in the background: commands that want it do it in front of the user.
fn knobs() -> Result<Knobs, Failure> {
    let mut knobs = Knobs::load().map_err(Failure::input)?;
    knobs.set("calibrate.background", "false").map_err(Failure::failed)?;
    Ok(knobs)
}

/// A runtime, and what there is to say about its wisdom said.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = quiet_runtime()?;
    tell_notices(&runtime, 0);
    tell_unmet(&runtime);
    Ok(runtime)
}

/// The same, for arrays that may differ from the reference so far; as the knob says if nothing is said.
pub fn runtime_for(numerics: Option<NumericClass>) -> Result<Runtime, Failure> {
    let mut knobs = knobs()?;
    if let Some(class) = numerics {
        knobs.set("numerics", &class.to_string()).map_err(Failure::failed)?;
    }
    let runtime = open(knobs)?;
    tell_notices(&runtime, 0);
    tell_unmet(&runtime);
    Ok(runtime)
}

/// A runtime as soon as it is ready, which looks for further devices meanwhile.
pub fn starting_runtime() -> Result<Runtime, Failure> {
    Ok(Runtime::with_knobs(knobs()?)?)
}

/// A runtime with all its devices: what a command says must not depend on how quickly they were found.
pub fn quiet_runtime() -> Result<Runtime, Failure> {
    open(knobs()?)
}

fn open(knobs: Knobs) -> Result<Runtime, Failure> {
    let runtime = Runtime::with_knobs(knobs)?;
    runtime.wait_for_devices();
    // What is said is of this moment, not of when the machine was calibrated.
    runtime.look();
    Ok(runtime)
}

/// Says what befell the wisdom file beyond the first `heard` notices.
pub fn tell_notices(runtime: &Runtime, heard: usize) {
    for notice in runtime.notices().iter().skip(heard) {
        note("warning", &notice.to_string());
    }
}

/// Says what was set and cannot be had.
fn tell_unmet(runtime: &Runtime) {
    for what in runtime.unmet() {
        note("warning", &what);
    }
}

/// Says so if estimates rest on nothing measured here.
pub fn mention_calibration(runtime: &Runtime) {
    if !runtime.calibrated() {
        note("note", "this machine is not calibrated yet, so estimates are guesses; run `steer calibrate`");
    }
}

/// Says so if the kernel that a knob names does not run it, and why.
pub fn mention_force(runtime: &Runtime, e: &Explanation) {
    let (Some(name), ReasonCode::NotForced) = (&runtime.knobs().force, e.decision.reason()) else { return };
    let known = runtime.engine().registry().iter().find(|(_, k)| k.name() == name).map(|(i, _)| i);
    let why = match known {
        None => "there is no kernel of that name".to_string(),
        Some(index) => match e.refused.iter().find(|(k, _)| *k == index) {
            Some((_, why)) => why.to_string(),
            None => "it does not do this op".to_string(),
        },
    };
    note("warning", &format!("force={name} is not obeyed: {why}"));
}

/// Says so if operands and results are more than this machine may hold.
pub fn mention_memory(runtime: &Runtime, w: &Workload) {
    let here = w.inputs().iter().chain(w.outputs()).filter(|o| o.place == Place::Host);
    let needs: usize = here.map(|o| o.span().0).sum();
    if let Some(room) = runtime.cpu().room().filter(|room| needs > *room) {
        let [needs, room] = [needs, room].map(|n| Bytes(n as u64));
        note("warning", &format!("operands and results take {needs} together, and there are {room}"));
    }
}

/// The workload that was typed, in one quoted piece or in several.
pub fn workload(
    words: &[String],
    numerics: Option<NumericClass>,
    runtime: &Runtime,
) -> Result<Workload, Failure> {
    let text = words.join(" ");
    let w = Workload::parse(&text, &runtime.engine().places()).map_err(Failure::input)?;
    Ok(with_numerics(w, &text, numerics, runtime.knobs()))
}

/// A workload as people write it, with the names of this runtime's places.
pub fn text_of(runtime: &Runtime, w: &Workload) -> String {
    w.named(&runtime.engine().places()).to_string()
}

/// The loosest class allowed: the option wins over the workload's own word, that over the knob.
pub fn with_numerics(w: Workload, text: &str, option: Option<NumericClass>, knobs: &Knobs) -> Workload {
    match option {
        Some(class) => w.with_numerics(class),
        None if text.contains("numerics=") => w,
        None => w.with_numerics(knobs.numerics),
    }
}

/// Why something was chosen, in words rather than in the form that programs read.
pub fn words(reason: ReasonCode) -> String {
    reason.to_string().replace('_', " ")
}

/// A variant as people write it: `cpu/gemm t2`.
pub fn name(runtime: &Runtime, v: Variant) -> String {
    format!("{} {}", runtime.engine().name(v.kernel), v.params)
}

/// What the user typed or set is bad input; the rest is failure.
impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        match e {
            Error::Knob(_) | Error::Workload(_) => Failure::input(e),
            Error::Engine(e) => e.into(),
            _ => Failure::failed(e),
        }
    }
}

/// A kernel that does not exist was mistyped; a workload that nothing here can run was not.
impl From<EngineError> for Failure {
    fn from(e: EngineError) -> Failure {
        match e {
            EngineError::UnknownKernel(_) => Failure::input(e),
            EngineError::NoCandidate { .. } => Failure::failed(e),
        }
    }
}

/// What editors of another system begin files with; it is no text.
const MARK: char = '\u{feff}';

/// The text of a file a command is given; `-` is standard input.
pub fn text(file: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let result = match file.to_str() {
        Some("-") => std::io::stdin().read_to_end(&mut bytes).map(|_| bytes),
        _ => std::fs::read(file),
    };
    let bytes = result.map_err(|e| Failure::input(format!("cannot read {}: {e}", file.display())))?;
    let mut text = String::from_utf8(bytes).map_err(|e| {
        let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|b| **b == b'\n').count();
        Failure::input(format!("cannot read {}: line {line} is not UTF-8 text", file.display()))
    })?;
    if text.starts_with(MARK) {
        text.remove(0);
    }
    Ok(text)
}
