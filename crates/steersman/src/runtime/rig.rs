//! Workloads laid out where their operands live, to be run again and again by any variant on any device.

use super::carry::{Carrier, Piece, Trouble};
use std::sync::Arc;
use std::time::Duration;
use steersman_core::measure::Rig;
use steersman_core::{Address, Engine, Io, KernelError, Place, Ran, Variant, Workload};
use steersman_cpu::rig::CpuRig;

/// A workload whose variants may run away from the host. What has to be moved for one is part of its run.
pub(crate) struct PlacedRig {
    carrier: Carrier,
    workload: Workload,
    /// The same on the host: what the operands are, and the reference that variants are checked with.
    host: CpuRig,
    pieces: Vec<Piece>,
    inputs: Vec<Address>,
    outputs: Vec<Address>,
    scalars: Vec<u64>,
    /// A kernel that runs on the host on what is there: asking takes as long as a small run.
    local: Option<u16>,
}

/// The workload with everything at one place.
pub(crate) fn at(w: &Workload, place: Place) -> Workload {
    let inputs = w.inputs().len();
    (0..inputs).fold(w.clone().with_output_at(place), |w, i| w.with_input_at(i, place))
}

/// Lays a workload out: in host memory alone if no device has part in it.
pub(crate) fn rig(carrier: &Carrier, engine: &Arc<Engine>, w: &Workload) -> Result<Box<dyn Rig>, String> {
    if carrier.accelerators.count() == 0 {
        return Ok(Box::new(CpuRig::new(&carrier.cpu, engine, w)?));
    }
    Ok(Box::new(PlacedRig::new(carrier, engine, w)?))
}

impl PlacedRig {
    fn new(carrier: &Carrier, engine: &Arc<Engine>, w: &Workload) -> Result<PlacedRig, String> {
        let host = CpuRig::new(&carrier.cpu, engine, &at(w, Place::Host))?;
        let (mut inputs, mut outputs, scalars) = host.addresses();
        let mut pieces = Vec::new();
        let why = |t: Trouble| t.why().to_string();
        for (o, address) in w.inputs().iter().zip(&mut inputs) {
            if o.place == Place::Host {
                continue;
            }
            let (bytes, first) = o.span();
            let piece = carrier.room(o.place, bytes).map_err(why)?;
            let from = (Place::Host, Address(address.0 - first as u64));
            // SAFETY: the rig's operand spans these bytes, and the piece has room for them.
            unsafe { carrier.carry(from, (o.place, piece.start()), bytes, false) }.map_err(why)?;
            *address = Address(piece.start().0 + first as u64);
            pieces.push(piece);
        }
        for (o, address) in w.outputs().iter().zip(&mut outputs) {
            if o.place != Place::Host {
                let (bytes, first) = o.span();
                let piece = carrier.room(o.place, bytes).map_err(why)?;
                *address = Address(piece.start().0 + first as u64);
                pieces.push(piece);
            }
        }
        Ok(PlacedRig {
            carrier: carrier.clone(),
            workload: w.clone(),
            host,
            pieces,
            inputs,
            outputs,
            scalars,
            local: None,
        })
    }
}

impl Rig for PlacedRig {
    fn run(&mut self, v: Variant) -> Result<Ran, KernelError> {
        if self.local == Some(v.kernel) {
            return self.host.run(v);
        }
        let engine = &self.carrier.engine;
        let place = engine.place_of(v.kernel).unwrap_or(Place::Host);
        if self.pieces.is_empty() && place == Place::Host {
            self.local = Some(v.kernel);
            return self.host.run(v);
        }
        let Some(kernel) = engine.registry().get(v.kernel) else {
            return Err(KernelError::Failed(format!("there is no kernel #{}", v.kernel)));
        };
        let io = Io {
            inputs: &self.inputs,
            output: self.outputs[0],
            more: &self.outputs[1..],
            scalars: &self.scalars,
        };
        // SAFETY: operands were laid out where the workload has them; the engine only names legal variants.
        let ran = unsafe { self.carrier.run(&self.workload, (v.kernel, &**kernel), v.params, io, false) };
        let (ran, _) = ran.map_err(Trouble::into_error)?;
        // It is done when its results are where they are wanted.
        for at in self.workload.outputs().iter().map(|o| o.place).chain([place]) {
            if let Some(memory) = self.carrier.accelerators.memory(at) {
                memory.wait()?;
            }
        }
        Ok(ran)
    }

    fn rouse(&mut self, v: Variant) {
        if self.local != Some(v.kernel)
            && let Some(place) = self.carrier.engine.place_of(v.kernel)
            && let Some(memory) = self.carrier.accelerators.memory(place)
        {
            memory.clone().rouse();
        }
    }

    fn quiet(&mut self) -> bool {
        self.host.quiet()
    }

    fn whole(&mut self, threads: usize, longest: Duration) -> bool {
        self.host.whole(threads, longest)
    }

    fn accept(&mut self) {
        self.host.accept();
    }

    /// On a device as on the host: its result is brought to where the host's own would be.
    fn check(&mut self, v: Variant) -> Result<(), String> {
        let engine = self.carrier.engine.clone();
        let place = engine.place_of(v.kernel).unwrap_or(Place::Host);
        if place == Place::Host {
            return self.host.check(v);
        }
        let kernel = engine.registry().get(v.kernel).ok_or("there is no such kernel")?;
        let local = at(&self.workload, Place::Host);
        let carrier = self.carrier.clone();
        self.host.check_by(v, &mut |io: Io<'_>| {
            // SAFETY: the rig's operands are on the host, and the engine only names legal variants.
            let ran = unsafe { carrier.run(&local, (v.kernel, &**kernel), v.params, io, false) };
            ran.map(|(ran, _)| ran).map_err(Trouble::into_error)
        })
    }
}
