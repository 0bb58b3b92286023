//! Where each stage runs.
//!
//! Stages are placed after they are formed and before they get memory: a place changes neither what is fused nor
//! what is computed, only where operands live and what must be moved in between.

use super::stage::Stage;
use steersman_core::Place;

/// Gives every stage its place. The only device there is shares the host's memory, so nothing moves.
pub(super) fn assign(stages: &mut [Stage]) {
    for stage in stages {
        stage.place = Place::Host;
    }
}
