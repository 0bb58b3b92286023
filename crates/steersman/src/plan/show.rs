//! Plans for people: what fuses, what runs where, what it takes.

use super::stage::{Base, Carry, Compiled, Stage};
use crate::array::{Array, Shape};
use crate::error::Error;
use crate::runtime::Runtime;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use steersman_core::{Bytes, Places, Seconds};

/// Stages that the text of a long plan shows, most of them from its start.
const SHOWN: usize = 16;

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

/// One stage of a plan.
#[derive(Clone, Debug, serde::Serialize)]
pub struct PlanStage {
    /// What runs.
    pub workload: String,
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
        let result = format!("{} {}", array.dtype(), Shape(array.shape()));
        match array.node.value.get() {
            Some(value) => Ok(match &value.plan {
                Some(plan) => Plan::new(rt, plan, result),
                None => Plan {
                    input_bytes: array.len() * array.dtype().size(),
                    result,
                    nodes: 1,
                    expressions: 1,
                    stages: Vec::new(),
                    transfers: Vec::new(),
                    notes: Vec::new(),
                    peak_bytes: 0,
                    device_peak_bytes: BTreeMap::new(),
                    predicted_s: 0.0,
                    measured_s: None,
                    runs: 0,
                },
            }),
            None => Ok(Plan::new(rt, &*super::planned(rt, &[array])?, result)),
        }
    }

    fn new(rt: &Runtime, plan: &Compiled, result: String) -> Plan {
        let names = rt.engine().places();
        let stages: Vec<PlanStage> = (0..plan.stages.len()).map(|s| stage(plan, s, &names)).collect();
        let lists = plan.stages.iter().map(|s| &s.carries).chain([&plan.placed.homeward]);
        let each = lists.enumerate().flat_map(|(s, list)| (0..list.len()).map(move |i| (s, i)));
        let transfers: Vec<PlanTransfer> = each.map(|(s, i)| transfer(plan, s, i, &names)).collect();
        let predicted = stages.iter().map(|s| s.predicted_s).chain(transfers.iter().map(|t| t.predicted_s));
        let measured = stages.iter().map(|s| s.measured_s).chain(transfers.iter().map(|t| t.measured_s));
        Plan {
            result,
            nodes: plan.nodes,
            expressions: plan.expressions,
            peak_bytes: plan.peak,
            device_peak_bytes: plan.placed.peaks.iter().map(|&(p, n)| (names.name(p), n)).collect(),
            input_bytes: plan.input_bytes,
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

/// What people call a source of stage `s`.
fn source(plan: &Compiled, s: usize, base: Base) -> String {
    match base {
        Base::Leaf(n) => format!("in{n}"),
        Base::Slot(slot) => {
            let writes = |t: &Stage| t.outputs.iter().any(|o| o.0 == slot);
            let writer = plan.stages[..s].iter().rposition(writes);
            writer.map_or_else(|| "?".into(), |w| format!("s{w}"))
        }
        Base::Scalar(_) => "n".into(),
        Base::Empty => "empty".into(),
    }
}

fn stage(plan: &Compiled, s: usize, names: &Places) -> PlanStage {
    let stage: &Stage = &plan.stages[s];
    PlanStage {
        workload: stage.workload.named(names).to_string(),
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
        reads: stage.inputs.iter().map(|i| source(plan, s, i.base)).collect(),
        in_place: !stage.reuse.is_empty(),
    }
}

fn transfer(plan: &Compiled, before: usize, index: usize, names: &Places) -> PlanTransfer {
    let c: &Carry = plan.carry(before, index);
    PlanTransfer {
        value: source(plan, before, c.base),
        from: names.name(c.from),
        to: names.name(c.to),
        bytes: c.bytes,
        before,
        beside_from: plan.placed.starts(before, index),
        predicted_s: c.predicted,
        measured_s: c.measured(),
    }
}

impl fmt::Display for PlanTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, expected) = (Bytes(self.bytes as u64), Seconds(self.predicted_s));
        write!(f, "{} from {} to {}, {bytes}, {expected} expected", self.value, self.from, self.to)?;
        match self.measured_s {
            Some(measured) => write!(f, ", {} measured", Seconds(measured)),
            None => Ok(()),
        }?;
        match self.beside_from {
            Some(start) if start + 1 == self.before => write!(f, "; beside s{start}"),
            Some(start) => write!(f, "; beside s{start} to s{}", self.before - 1),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |n: usize| Bytes(n as u64);
        writeln!(
            f,
            "{}: {} nodes, {} expressions, {} stages; {} in, {} more at the peak",
            self.result,
            self.nodes,
            self.expressions,
            self.stages.len(),
            bytes(self.input_bytes),
            bytes(self.peak_bytes)
        )?;
        if self.stages.is_empty() && self.transfers.is_empty() {
            return write!(f, "  nothing to compute: it is in memory");
        }
        for (device, &peak) in &self.device_peak_bytes {
            writeln!(f, "  {device}: {} at the peak", bytes(peak))?;
        }
        for note in &self.notes {
            writeln!(f, "  {note}")?;
        }
        let moves = |f: &mut fmt::Formatter<'_>, before: usize| {
            let due = self.transfers.iter().filter(|t| t.before == before);
            due.into_iter().try_for_each(|t| writeln!(f, "  move {t}"))
        };
        let hidden =
            if self.stages.len() > SHOWN + SHOWN / 2 { SHOWN..self.stages.len() - SHOWN / 4 } else { 0..0 };
        for (i, s) in self.stages.iter().enumerate() {
            if hidden.contains(&i) {
                if i == hidden.start {
                    writeln!(f, "  ... {} more", hidden.len())?;
                }
                continue;
            }
            moves(f, i)?;
            write!(f, "  s{i} {}", s.workload)?;
            if !s.reads.is_empty() {
                write!(f, " of {}", s.reads.join(" "))?;
            }
            let how = match (s.fused, s.in_place) {
                (true, true) => format!("{} ops fused, in place", s.ops),
                (true, false) => format!("{} ops fused", s.ops),
                (false, true) => "in place".into(),
                (false, false) => String::new(),
            };
            write!(f, "\n     {} on {}, {} expected", s.kernel, s.place, Seconds(s.predicted_s))?;
            if let (Some(other), Some(instead)) = (s.instead, s.instead_s) {
                write!(f, " ({other} {})", Seconds(instead))?;
            }
            if let Some(measured) = s.measured_s {
                write!(f, ", {} measured", Seconds(measured))?;
            }
            writeln!(f, "{}{how}", if how.is_empty() { "" } else { "; " })?;
        }
        moves(f, self.stages.len())?;
        write!(f, "  in all {} expected", Seconds(self.predicted_s))?;
        if let Some(measured) = self.measured_s {
            write!(f, ", {} measured", Seconds(measured))?;
        }
        Ok(())
    }
}
