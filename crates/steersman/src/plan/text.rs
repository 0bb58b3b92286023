//! Plans as text.

use super::show::{Plan, PlanTransfer};
use std::fmt;
use steersman_core::{Bytes, Seconds};

/// Stages that the text of a long plan shows, most of them from its start.
const SHOWN: usize = 16;

impl fmt::Display for PlanTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, expected) = (Bytes(self.bytes as u64), Seconds(self.predicted_s));
        write!(f, "from {} to {}, {bytes}, {expected} expected", self.from, self.to)?;
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
            due.into_iter().try_for_each(|t| writeln!(f, "  move {} {t}", self.called(&t.value)))
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
                let reads: Vec<String> = s.reads.iter().map(|r| self.called(r)).collect();
                write!(f, " of {}", reads.join(" "))?;
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
