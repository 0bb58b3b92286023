//! Plans for people: what fuses, what runs where, what it takes.

use super::stage::{Base, Carry, Compiled, Stage};
use crate::array::{Array, Shape};
use crate::error::Error;
use crate::runtime::Runtime;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use steersman_core::expr::{Output, Step};
use steersman_core::{Operand, Places, Workload};

/// Ops of a stage that are named one by one.
const NAMED: usize = 24;

/// How an array is computed. Print it, or have it as JSON, DOT or SVG.
///
/// ```
/// # use steersman::{Knobs, Runtime};
/// # let mut knobs = Knobs::default();
/// # knobs.set("wisdom.enabled", "false")?;
/// # knobs.set("calibrate.background", "false")?;
/// # let rt = Runtime::with_knobs(knobs)?;
/// let x = rt.from_vec(vec![1.0f32; 1000], [10, 100])?;
/// let y = x.exp().sum(..);
/// println!("{}", rt.explain(&y)?);
/// assert!(rt.explain(&y)?.to_dot().starts_with("digraph"));
/// # Ok::<(), steersman::Error>(())
/// ```
#[derive(Clone, Debug, serde::Serialize)]
pub struct Plan {
    /// The array's shape and element type.
    pub result: String,
    /// Nodes of the graph.
    pub nodes: usize,
    /// Different expressions among them.
    pub expressions: usize,
    /// What it starts from: `in0`, `in1`, ...
    pub inputs: Vec<PlanInput>,
    /// What runs, in order.
    pub stages: Vec<PlanStage>,
    /// What is moved from one place to another, in order.
    pub transfers: Vec<PlanTransfer>,
    /// Devices that were left out, and why.
    pub notes: Vec<String>,
    /// The most host memory it needs at once beyond what it starts from, in bytes.
    pub peak_bytes: usize,
    /// The same on each device that takes part.
    pub device_peak_bytes: BTreeMap<String, usize>,
    /// What it starts from, in bytes.
    pub input_bytes: usize,
    /// Expected time of all stages and transfers, in seconds; what goes on beside something else is counted once.
    pub predicted_s: f64,
    /// Time of all of them when they last ran, in seconds; none if one was not measured.
    pub measured_s: Option<f64>,
    /// How often a plan of this structure ran.
    pub runs: u64,
}

/// An array that a plan starts from.
#[derive(Clone, Debug, serde::Serialize)]
pub struct PlanInput {
    /// What its owner calls it; see [`Array::named`].
    pub name: Option<String>,
    /// Element type and shape.
    pub what: String,
    /// How much memory it takes.
    pub bytes: usize,
}

/// One stage of a plan.
#[derive(Clone, Debug, serde::Serialize)]
pub struct PlanStage {
    /// What runs.
    pub workload: String,
    /// The ops by name, in order; of a long group the first ones.
    pub does: Vec<String>,
    /// Element type and shape of each result.
    pub gives: Vec<String>,
    /// Ops of the graph it does; 0 for a copy that only serves the next stage.
    pub ops: usize,
    /// Whether it is a fused group.
    pub fused: bool,
    /// Where it runs.
    pub place: String,
    /// The kernel expected to run it.
    pub kernel: String,
    /// Expected time, in seconds.
    pub predicted_s: f64,
    /// For a fused group, the expected time of its ops one by one; for the last of ops that were not fused, that
    /// of the fused group. In seconds.
    pub instead_s: Option<f64>,
    /// What that other way is.
    pub instead: Option<&'static str>,
    /// Time it took when it last ran, in seconds.
    pub measured_s: Option<f64>,
    /// Where each operand comes from: `in0` is a given array, `s2` the result of stage 2, `n` a number.
    pub reads: Vec<String>,
    /// Whether a result takes an operand's memory.
    pub in_place: bool,
}

/// A value that goes from one place to another.
#[derive(Clone, Debug, serde::Serialize)]
pub struct PlanTransfer {
    /// Which: `in0` is a given array, `s2` the result of stage 2.
    pub value: String,
    /// From where.
    pub from: String,
    /// To where.
    pub to: String,
    /// How much.
    pub bytes: usize,
    /// The stage before which it happens; the number of stages for a result that comes home at the end.
    pub before: usize,
    /// The stage it starts with, if it goes on beside that one and others rather than before the one it is for.
    pub beside_from: Option<usize>,
    /// Expected time, in seconds.
    pub predicted_s: f64,
    /// Time it took when it last happened, in seconds.
    pub measured_s: Option<f64>,
}

impl Plan {
    pub(super) fn of(rt: &Runtime, array: &Array) -> Result<Plan, Error> {
        let result = described(array);
        match array.node.value.get().map(|value| &value.plan) {
            Some(Some(plan)) => Ok(Plan::new(rt, plan, result, &[])),
            Some(None) => Ok(Plan::nothing(result, array.len() * array.dtype().size())),
            None => {
                let (plan, names) = super::planned(rt, &[array], true)?;
                Ok(Plan::new(rt, &plan, result, &names))
            }
        }
    }

    pub(super) fn of_all(rt: &Runtime, arrays: &[&Array]) -> Result<Plan, Error> {
        let result = arrays.iter().map(|a| described(a)).collect::<Vec<_>>().join(", ");
        let due: Vec<&Array> = arrays.iter().copied().filter(|a| !a.is_ready()).collect();
        if due.is_empty() {
            let bytes = arrays.iter().map(|a| a.len() * a.dtype().size());
            return Ok(Plan::nothing(result, bytes.sum()));
        }
        let (plan, names) = super::planned(rt, &due, false)?;
        Ok(Plan::new(rt, &plan, result, &names))
    }

    /// For what is in memory.
    fn nothing(result: String, input_bytes: usize) -> Plan {
        Plan {
            result,
            nodes: 1,
            expressions: 1,
            inputs: Vec::new(),
            stages: Vec::new(),
            transfers: Vec::new(),
            notes: Vec::new(),
            peak_bytes: 0,
            device_peak_bytes: BTreeMap::new(),
            input_bytes,
            predicted_s: 0.0,
            measured_s: None,
            runs: 0,
        }
    }

    /// What people call `in0`, `s2` and so on: inputs by their names, unless a name would be taken for something else.
    pub(super) fn called(&self, source: &str) -> String {
        let number = source.strip_prefix("in").and_then(|n| n.parse::<usize>().ok());
        let name = number.and_then(|n| self.inputs.get(n)?.name.as_deref());
        let numbered = |name: &str| {
            let rest = name.strip_prefix("in").or(name.strip_prefix('s')).or(name.strip_prefix('m'));
            name == "n" || rest.is_some_and(|r| !r.is_empty() && r.bytes().all(|b| b.is_ascii_digit()))
        };
        match name {
            Some(name) if numbered(name) => format!("{source}={name}"),
            Some(name) => name.into(),
            None => source.into(),
        }
    }

    fn new(rt: &Runtime, plan: &Compiled, result: String, called: &[Option<String>]) -> Plan {
        let names = rt.engine().places();
        let writers = Writers::of(plan);
        let stages: Vec<PlanStage> =
            (0..plan.stages.len()).map(|s| stage(plan, s, &names, &writers)).collect();
        let lists = plan.stages.iter().map(|s| &s.carries).chain([&plan.placed.homeward]);
        let each = lists.enumerate().flat_map(|(s, list)| (0..list.len()).map(move |i| (s, i)));
        let transfers: Vec<PlanTransfer> =
            each.map(|(s, i)| transfer(plan, s, i, &names, &writers)).collect();
        let predicted = stages.iter().map(|s| s.predicted_s).chain(transfers.iter().map(|t| t.predicted_s));
        let measured = stages.iter().map(|s| s.measured_s).chain(transfers.iter().map(|t| t.measured_s));
        let inputs = plan.inputs.iter().enumerate().map(|(i, (what, bytes))| PlanInput {
            name: called.get(i).cloned().flatten(),
            what: what.clone(),
            bytes: *bytes,
        });
        Plan {
            result,
            nodes: plan.nodes,
            expressions: plan.expressions,
            peak_bytes: plan.peak,
            device_peak_bytes: plan.placed.peaks.iter().map(|&(p, n)| (names.name(p), n)).collect(),
            input_bytes: plan.inputs.iter().map(|i| i.1).sum(),
            inputs: inputs.collect(),
            predicted_s: plan.placed.lasts.unwrap_or_else(|| predicted.sum()),
            measured_s: plan.lasted().or_else(|| measured.sum()),
            runs: plan.runs.load(Relaxed),
            notes: plan.placed.notes.clone(),
            stages,
            transfers,
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        // Plain data: there is no way for it to fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

fn described(array: &Array) -> String {
    format!("{} {}", array.dtype(), Shape(array.shape()))
}

/// Element type and shape, as workloads have them.
fn gives(o: &Operand) -> String {
    let dims: Vec<String> = o.dims.iter().map(usize::to_string).collect();
    format!("{} {}", o.dtype, if dims.is_empty() { "1".into() } else { dims.join("x") })
}

/// The ops of a workload by name, the first ones.
fn does(w: &Workload) -> Vec<String> {
    let Some(expr) = w.expr() else { return vec![w.op().name().into()] };
    let step = |s: &Step| match *s {
        Step::Input(_) | Step::Scalar(..) => None,
        Step::Unary(op, _) => Some(op.name().into()),
        Step::Binary(op, ..) => Some(op.name().into()),
        Step::Ternary(op, ..) => Some(op.name().into()),
        Step::Cast(to, _) => Some(format!("to {to}")),
        Step::Product(..) => Some("matmul".into()),
        Step::Index(_) => Some("position".into()),
        Step::Random { dist, .. } => Some(dist.name().into()),
    };
    let reduced = expr.outputs().iter().filter_map(|o| match o {
        Output::Array(_) => None,
        Output::Reduce { kind, .. } => Some(kind.name().to_string()),
    });
    let mut names: Vec<String> = expr.steps().iter().filter_map(step).collect();
    if names.len() > NAMED {
        let more = names.len() - NAMED;
        names.truncate(NAMED);
        names.push(format!("… {more} more"));
    }
    names.extend(reduced);
    names
}

/// The stages that write to each slot, in order.
struct Writers(HashMap<u32, Vec<usize>>);

impl Writers {
    fn of(plan: &Compiled) -> Writers {
        let mut all: HashMap<u32, Vec<usize>> = HashMap::new();
        for (s, stage) in plan.stages.iter().enumerate() {
            stage.outputs.iter().for_each(|o| all.entry(o.0).or_default().push(s));
        }
        Writers(all)
    }

    /// What people call a source of stage `s`.
    fn source(&self, s: usize, base: Base) -> String {
        match base {
            Base::Leaf(n) => format!("in{n}"),
            Base::Slot(slot) => {
                let writers = self.0.get(&slot).map_or(&[][..], |w| w);
                let last = writers[..writers.partition_point(|&w| w < s)].last();
                last.map_or_else(|| "?".into(), |w| format!("s{w}"))
            }
            Base::Scalar(_) => "n".into(),
            Base::Empty => "empty".into(),
        }
    }
}

fn stage(plan: &Compiled, s: usize, names: &Places, writers: &Writers) -> PlanStage {
    let stage: &Stage = &plan.stages[s];
    PlanStage {
        workload: stage.workload.named(names).to_string(),
        does: does(&stage.workload),
        gives: stage.workload.outputs().iter().map(gives).collect(),
        ops: stage.ops,
        fused: stage.workload.expr().is_some() && stage.ops > 1,
        place: names.name(stage.place),
        kernel: stage.kernel.clone(),
        predicted_s: stage.predicted,
        instead_s: stage.instead,
        instead: stage.instead.map(|_| match (stage.workload.product(), stage.workload.expr()) {
            (Some(_), _) => "product apart",
            (None, Some(_)) if stage.ops > 1 => "op by op",
            _ => "fused",
        }),
        measured_s: stage.measured(),
        reads: stage.inputs.iter().map(|i| writers.source(s, i.base)).collect(),
        in_place: !stage.reuse.is_empty(),
    }
}

fn transfer(plan: &Compiled, before: usize, index: usize, names: &Places, writers: &Writers) -> PlanTransfer {
    let c: &Carry = plan.carry(before, index);
    PlanTransfer {
        value: writers.source(before, c.base),
        from: names.name(c.from),
        to: names.name(c.to),
        bytes: c.bytes,
        before,
        beside_from: plan.placed.starts(before, index),
        predicted_s: c.predicted,
        measured_s: c.measured(),
    }
}
