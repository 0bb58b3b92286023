//! Which cuts an adapter has room for: what is legal there, apart from what is worth it.

use super::{CUTS, Form};
use crate::device::Gpu;
use steersman_core::Refusal;

/// What of an adapter's limits decides that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// Bytes of a workgroup's memory.
    pub memory: u32,
    /// Lanes of the widest subgroup; zero where there are none.
    pub lanes: u32,
}

impl Room {
    pub fn of(gpu: &Gpu) -> Room {
        let limits = gpu.limits();
        Room {
            invocations: limits
                .max_compute_invocations_per_workgroup
                .min(limits.max_compute_workgroup_size_x),
            memory: limits.max_compute_workgroup_storage_size,
            lanes: gpu.lanes(),
        }
    }

    /// Whether a form takes workgroups of this size with a state of so many bytes for each invocation.
    pub fn takes(&self, form: Form, workgroup: u32, state: usize) -> bool {
        let shared = match form {
            Form::Each => 0,
            _ => workgroup as usize * state,
        };
        // Lanes that belong to no invocation have nothing to exchange: every subgroup has to be full, however wide
        // the driver makes it.
        let full = form != Form::Subgroup || self.lanes > 0 && workgroup.is_multiple_of(self.lanes);
        workgroup <= self.invocations && shared <= self.memory as usize && full
    }

    /// The cut with the fewest invocations that is legal, or why none is.
    pub fn smallest(&self, form: Form, state: usize) -> Result<usize, Refusal> {
        let legal = (0..CUTS.len()).filter(|v| self.takes(form, CUTS[*v].workgroup, state));
        // Where several have as many, the first one.
        legal.min_by_key(|v| (*v != 0, CUTS[*v].workgroup)).ok_or_else(|| {
            let why = match form {
                Form::Subgroup if self.takes(Form::Tree, CUTS[0].workgroup, state) => {
                    "no workgroup here is a whole number of this adapter's subgroups"
                }
                _ => "what it keeps for each invocation is more than a workgroup's memory",
            };
            Refusal::new(why)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { invocations: 1024, memory: 32 << 10, lanes: 32 };

    #[test]
    fn subgroups_wider_than_the_workgroup_or_left_half_empty_are_not_offered() {
        for (lanes, workgroup, legal) in [
            (64, 32, false),
            (128, 64, false),
            (64, 64, true),
            (32, 64, true),
            (128, 256, true),
            (0, 64, false),
        ] {
            let room = Room { lanes, ..ROOM };
            assert_eq!(
                room.takes(Form::Subgroup, workgroup, 4),
                legal,
                "{lanes} lanes, workgroups of {workgroup}"
            );
            assert!(room.takes(Form::Tree, workgroup, 4));
        }
        let wide = Room { lanes: 128, ..ROOM };
        assert_eq!(wide.smallest(Form::Subgroup, 4).map(|v| CUTS[v].workgroup), Ok(128));
        let wider = Room { lanes: 2048, ..ROOM };
        let why = wider.smallest(Form::Subgroup, 4).expect_err("there is none").to_string();
        assert!(why.contains("subgroups"), "{why}");
    }

    #[test]
    fn a_variance_of_f64_by_1024_invocations_needs_more_than_16_kib() {
        let small = Room { memory: 16 << 10, ..ROOM };
        assert!(!small.takes(Form::Tree, 1024, 24) && small.takes(Form::Tree, 512, 24));
        assert!(small.takes(Form::Each, 1024, 24), "nothing is shared");
        assert!(ROOM.takes(Form::Tree, 1024, 24));
        let none = Room { memory: 256, ..ROOM };
        assert!(none.smallest(Form::Tree, 24).is_err());
    }
}
