//! Who else uses the machine: memory that is really there, and whether measurements had it to themselves.

use crate::screen::note;
use steersman::Runtime;
use steersman_core::sense::Senses;

/// From this share of CPU time taken by others on, times say more about them than about us.
const CROWDED: f64 = 0.2;

/// Keeps an eye on the machine while something is measured.
pub struct Watch {
    senses: Senses,
}

impl Watch {
    /// From now on. Unless a knob says otherwise, operands get no more memory than is free now: the system
    /// would promise more, and then end the process when it is used.
    pub fn start(runtime: &Runtime) -> Watch {
        let senses = Senses::new();
        let state = senses.read();
        if let (None, Some(free)) = (runtime.knobs().memory_limit, state.mem_available) {
            runtime.cpu().memory.set_hard_limit(Some(free.0 as usize));
        }
        Watch { senses }
    }

    /// Says so if others used the machine meanwhile.
    pub fn end(self) {
        if let Some(busy) = self.senses.busy_other().filter(|busy| *busy >= CROWDED) {
            let share = busy * 100.0;
            note(
                "warning",
                &format!(
                    "other processes used {share:.0}% of the machine meanwhile; times are not to be trusted"
                ),
            );
        }
    }
}
