//! What every CPU kernel is made with.

use crate::host::Host;
use crate::threads::Team;
use std::sync::Arc;
use steersman_core::{DeviceId, ParamList, Params};

/// What every CPU kernel is made with: which device it belongs to and the threads it may use.
#[derive(Clone)]
pub struct Context {
    /// The device in its registry.
    pub device: DeviceId,
    /// The threads.
    pub team: Arc<Team>,
    /// What the CPU is.
    pub host: Arc<Host>,
}

impl Context {
    /// Thread counts worth trying: 1, powers of two, and all.
    pub fn thread_params(&self) -> ParamList {
        let max = self.team.max();
        let mut list = ParamList::new();
        let mut threads = 1;
        while threads < max {
            list.push(Params::threads(threads));
            threads *= 2;
        }
        list.push(Params::threads(max));
        list
    }
}
