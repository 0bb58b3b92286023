//! `steer plan`: how an array program is computed: what fuses, what runs where, what it takes.

mod build;
mod parse;
mod program;

use crate::args::PlanArgs;
use crate::exit::{Failure, Outcome};
use crate::open;
use crate::replace::replace;
use crate::screen::{Screen, note};
use program::Program;
use steersman::{Array, Plan, Runtime};
use steersman_core::NumericClass;

pub fn run(screen: &Screen, args: &PlanArgs, numerics: Option<NumericClass>) -> Outcome {
    let file = args.file.display();
    let program: Program =
        open::text(&args.file)?.parse().map_err(|e| Failure::input(format!("{file}: {e}")))?;
    let runtime = open::runtime_for(numerics)?;
    open::mention_calibration(&runtime);
    let plan = measured(&program, &runtime, args.runs).map_err(|e| e.prefixed(&args.file))?;
    for (path, picture) in [(&args.dot, Plan::to_dot as fn(&Plan) -> String), (&args.svg, Plan::to_svg)] {
        if let Some(path) = path {
            replace(path, picture(&plan).as_bytes())
                .map_err(|e| Failure::failed(format!("cannot write {}: {e}", path.display())))?;
            note("note", &format!("the picture is in {}", path.display()));
        }
    }
    if screen.json { screen.line(&plan.to_json()) } else { screen.line(&plan.to_string()) }
}

/// Runs the program so many times; the plan of the last run, with what it took.
fn measured(program: &Program, runtime: &Runtime, runs: u32) -> Result<Plan, build::Wrong> {
    // Every shape is checked before the first input is made.
    program.check(runtime)?;
    let inputs = program.inputs(runtime)?;
    for _ in 0..runs {
        let results = program.arrays(runtime, &inputs)?;
        // Inputs may be read too; they are there.
        if results.iter().all(Array::is_ready) {
            return Err(build::Wrong::Nothing);
        }
        evaluate(runtime, &results)?;
    }
    // Once more without running it: the same plan, with what it took and the names of what it starts from.
    let results = program.arrays(runtime, &inputs)?;
    let mut plan = runtime.explain_all(&results.iter().collect::<Vec<_>>())?;
    plan.result = program.describe(&results);
    Ok(plan)
}

fn evaluate(runtime: &Runtime, results: &[Array]) -> Result<(), steersman::Error> {
    runtime.eval_all(&results.iter().collect::<Vec<_>>())
}
