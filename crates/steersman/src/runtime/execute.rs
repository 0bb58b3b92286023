//! Runs what was decided, wherever that is; whoever fails is put away and the next best runs.

use super::{Inner, Runtime, Trouble};
use crate::error::Error;
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};
use steersman_core::guard::Offence;
use steersman_core::log::Entry;
use steersman_core::track::Use;
use steersman_core::{Address, Decision, Io, Kernel, Operand, Place, Ran, Seconds, Variant, Workload};

/// How long a look at the clock stands: each that finds another clock has every decision made anew.
const CLOCK: Duration = Duration::from_millis(50);
/// The same of where cores lie, which takes 10 µs to see and stays for seconds.
const CORES: Duration = Duration::from_millis(100);

/// What one call does without.
#[derive(Default)]
struct Avoided {
    /// With no room now.
    places: SmallVec<[Place; 2]>,
    /// By name, that cannot run it now.
    kernels: Vec<String>,
}

impl Avoided {
    fn is_empty(&self) -> bool {
        self.places.is_empty() && self.kernels.is_empty()
    }

    fn has(&self, kernel: &dyn Kernel, place: Place) -> bool {
        self.places.contains(&place) || self.kernels.iter().any(|name| name == kernel.name())
    }
}

/// Whether operands and one result are all that a run of this workload is handed.
fn plain(w: &Workload) -> Result<(), Error> {
    let (scalars, results) = (w.expr().map_or(0, |e| e.scalars().len()), w.outputs().len());
    match (scalars, results) {
        (0, 1) => Ok(()),
        _ => Err(Error::NotPlain { workload: w.to_string(), scalars, results }),
    }
}

impl Runtime {
    /// Runs a workload at these addresses where it is quickest; on failure on the next best.
    ///
    /// # Safety
    /// The addresses must be valid for the workload's operands at their places (host pointers, where nothing else is
    /// said), the output not overlapping any input (except exactly, for element-wise ops in place).
    pub unsafe fn run_at(
        &self,
        w: &Workload,
        inputs: &[Address],
        output: Address,
    ) -> Result<Decision, Error> {
        plain(w)?;
        // SAFETY: passed on.
        unsafe { self.inner.run_io(w, Io::new(inputs, output)) }
    }

    /// Runs a workload on bytes in host memory, of each operand those from its lowest element to its highest; `forced` names
    /// the variant, else the engine decides. Operands that the workload has elsewhere are put there first, and so is the
    /// result. Bytes between the elements of a result stay as they are.
    pub fn run_raw(
        &self,
        w: &Workload,
        inputs: &[&[u8]],
        output: &mut [u8],
        forced: Option<Variant>,
    ) -> Result<Decision, Error> {
        plain(w)?;
        let check = |what: String, need: usize, got: usize| match need == got {
            true => Ok(()),
            false => Err(Error::Bytes { workload: w.to_string(), what, need, got }),
        };
        if inputs.len() != w.inputs().len() {
            check("all operands together".into(), w.inputs().len(), inputs.len())?;
        }
        for (i, (o, bytes)) in w.inputs().iter().zip(inputs).enumerate() {
            // One that broadcasting made empty comes as it was, and none of it is read.
            if o.elements() > 0 {
                check(format!("operand {i}"), o.span().0, bytes.len())?;
            }
        }
        check("the result".into(), w.output().span().0, output.len())?;
        let inner = &*self.inner;
        let memory = |t: Trouble| Error::Memory { workload: w.to_string(), why: t.why().to_string() };
        // Copied into aligned memory: what people hand over may start anywhere.
        let carrier = &inner.carrier;
        let (mut pieces, mut addresses) = (Vec::new(), Vec::new());
        for (o, bytes) in w.inputs().iter().zip(inputs) {
            let room = carrier.stand_in(o.place, o).map_err(memory)?;
            let from = (Place::Host, Address::host(bytes.as_ptr()));
            // SAFETY: there is room for all bytes that the operand spans, and they are there: checked above.
            unsafe { carrier.carry(from, (o.place, room.lowest()), o.span().0, false) }.map_err(memory)?;
            addresses.push(room.first());
            pieces.push(room);
        }
        let place = w.output().place;
        let result = carrier.stand_in(place, w.output()).map_err(memory)?;
        if !w.output().is_contiguous() {
            let from = (Place::Host, Address::host(output.as_ptr()));
            // SAFETY: as for operands.
            unsafe { carrier.carry(from, (place, result.lowest()), output.len(), false) }.map_err(memory)?;
        }
        let io = Io::new(&addresses, result.first());
        let decision = match forced {
            Some(v) => inner.engine.judge_as(w, v)?,
            None => inner.engine.decide(w)?,
        };
        // SAFETY: there is room for what each operand spans, checked above, at the place it says.
        let mut decision = unsafe { inner.run_decided(w, decision, io) }?;
        let to = (Place::Host, Address::host(output.as_mut_ptr()));
        loop {
            // SAFETY: the result spans as many bytes as `output` has, all of them written.
            let carried = unsafe { carrier.carry((place, result.lowest()), to, output.len(), false) };
            let Err(trouble) = carried else { return Ok(decision) };
            let Some(why) = carrier.unwritten((place, result.first())) else { return Err(memory(trouble)) };
            // SAFETY: as before. Each time another kernel is put away, so this ends.
            decision = unsafe { inner.run_instead(w, &decision, io, why) }?;
        }
    }
}

impl Inner {
    /// Runs a workload where it is quickest; on failure on the next best.
    ///
    /// # Safety
    /// As for [`Runtime::run_at`].
    pub(crate) unsafe fn run_io(&self, w: &Workload, io: Io<'_>) -> Result<Decision, Error> {
        let decision = self.engine.decide(w)?;
        // SAFETY: passed on.
        unsafe { self.run_decided(w, decision, io) }
    }

    /// Runs a workload again whose result a device turned out not to have written.
    #[cold]
    unsafe fn run_instead(
        &self,
        w: &Workload,
        decision: &Decision,
        io: Io<'_>,
        why: String,
    ) -> Result<Decision, Error> {
        let Some(kernel) = self.engine.registry().get(decision.variant().kernel) else {
            return Err(Error::AllFailed { workload: w.to_string(), last: why });
        };
        let trouble = Trouble::Kernel(Offence::Failed, why);
        let next = self.instead(w, decision, &**kernel, io, trouble, &mut Avoided::default(), &mut None)?;
        // SAFETY: passed on.
        unsafe { self.run_decided(w, next, io) }
    }

    /// Runs what was decided.
    unsafe fn run_decided(
        &self,
        w: &Workload,
        mut decision: Decision,
        io: Io<'_>,
    ) -> Result<Decision, Error> {
        let mut last: Option<String> = None;
        let mut avoided = Avoided::default();
        // Each trouble puts a kernel, a device or for this call a place away, so this ends.
        loop {
            let Some(kernel) = self.engine.registry().get(decision.variant().kernel) else {
                return Err(Error::AllFailed { workload: w.to_string(), last: last.unwrap_or_default() });
            };
            let started = decision.explores().then(Instant::now);
            // SAFETY: the caller's promise; the engine only decides for legal candidates.
            let trouble = match unsafe { self.try_one(w, &decision, &**kernel, io) } {
                Ok(()) => return Ok(decision),
                Err(trouble) => trouble,
            };
            if let Some(started) = started {
                self.engine.book(&decision, started.elapsed(), true);
            }
            decision = self.instead(w, &decision, &**kernel, io, trouble, &mut avoided, &mut last)?;
        }
    }

    #[inline]
    unsafe fn try_one(
        &self,
        w: &Workload,
        d: &Decision,
        kernel: &dyn Kernel,
        io: Io<'_>,
    ) -> Result<(), Trouble> {
        if d.is_away() {
            let variant = (d.variant().kernel, kernel);
            // SAFETY: the caller's promise.
            let run = || unsafe { self.carrier.run(w, variant, d.params(), io, d.wants_timing()) };
            // Kernels' panics are caught where they run; what is left are those of memories.
            let (ran, took) = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
                let why = format!("panicked: {}", crate::panic_text(&*panic));
                Err(Trouble::Kernel(Offence::Panicked, why))
            })?;
            if let Some(took) = took {
                self.observed(w, d, took, ran);
            }
            return Ok(());
        }
        let started = d.wants_timing().then(Instant::now);
        // SAFETY: the caller's promise.
        let ran = catch_unwind(AssertUnwindSafe(|| unsafe { kernel.run(w, d.params(), io) }));
        match ran {
            Ok(Ok(ran)) => {
                if let Some(started) = started {
                    let took = started.elapsed();
                    self.observed(w, d, took.into(), ran);
                }
                Ok(())
            }
            Ok(Err(why)) => Err(Trouble::running(Place::Host, why)),
            Err(panic) => {
                let why = format!("panicked: {}", crate::panic_text(&*panic));
                Err(Trouble::Kernel(Offence::Panicked, why))
            }
        }
    }

    /// What to run instead of what failed.
    #[cold]
    #[allow(clippy::too_many_arguments, reason = "the state of one loop")]
    fn instead(
        &self,
        w: &Workload,
        d: &Decision,
        kernel: &dyn Kernel,
        io: Io<'_>,
        trouble: Trouble,
        avoided: &mut Avoided,
        last: &mut Option<String>,
    ) -> Result<Decision, Error> {
        let places = self.engine.places();
        let (name, why) = (kernel.name().to_string(), trouble.why().to_string());
        let lives_at = |place: Place| w.inputs().iter().chain(w.outputs()).any(|o| o.place == place);
        match trouble {
            Trouble::Kernel(offence, why) => {
                self.engine.quarantine(d.variant().kernel, w, offence, why.clone());
                self.tracker.failed(self.usage(w, d, &name));
                self.note(w, d, None, Some(format!("{name} was put into quarantine: {why}")));
                if io.in_place() && self.writes_directly(w, d) {
                    return Err(Error::HalfDone { workload: w.to_string(), kernel: name, why });
                }
            }
            Trouble::Unable(why) => {
                self.note(w, d, None, Some(format!("{name} could not run it: {why}")));
                avoided.kernels.push(name);
            }
            Trouble::Away(place, why) => {
                let called = places.name(place);
                self.note(w, d, None, Some(format!("{called} could not be used for it: {why}")));
                avoided.places.push(place);
                let what = w.named(&places).to_string();
                if place == Place::Host {
                    return Err(Error::Memory { workload: what, why });
                }
                // Nothing else helps if that is where an operand lives that was to be fetched.
                if lives_at(place) && self.engine.place_of(d.variant().kernel) != Some(place) {
                    return Err(Error::NoRoom { what, place: called, why });
                }
            }
            Trouble::HalfDone(why) => {
                self.note(w, d, None, Some(format!("its result came home in part: {why}")));
                return Err(Error::HalfDone { workload: w.named(&places).to_string(), kernel: name, why });
            }
            Trouble::Unwritten(place, why) => {
                let (what, place) = (w.named(&places).to_string(), places.name(place));
                return Err(Error::Lost { what, place, why });
            }
            Trouble::Lost(id, why) => {
                let place = Place::Device(id);
                self.lose(id, &why);
                if lives_at(place) {
                    return Err(Error::Lost {
                        what: w.named(&places).to_string(),
                        place: places.name(place),
                        why,
                    });
                }
            }
        }
        *last = Some(why);
        let devices = self.engine.devices();
        let place = |k: &dyn Kernel| devices.get(k.device().0 as usize).map_or(Place::Host, |d| d.place);
        let next = match avoided.is_empty() {
            true => self.engine.decide(w),
            false => self.engine.judge_among(w, |k| !avoided.has(k, place(k))),
        };
        match next {
            Ok(d) => Ok(d.as_fallback()),
            Err(_) => {
                Err(Error::AllFailed { workload: w.to_string(), last: last.take().unwrap_or_default() })
            }
        }
    }

    /// A device is gone: said in the log once, and its plans are forgotten.
    pub(crate) fn lose(&self, id: steersman_core::DeviceId, why: &str) {
        if self.engine.lose_device(id, why) {
            let name = self.engine.places().name(Place::Device(id));
            let note = Some(format!("{name} was lost with all its kernels: {why}"));
            self.log.push(Entry { kernel: name, note, ..Entry::default() });
        }
        self.planner.forget();
    }

    /// Whether the kernel writes to where the results are wanted, and not to memory of its own first.
    fn writes_directly(&self, w: &Workload, d: &Decision) -> bool {
        let place = self.engine.place_of(d.variant().kernel).unwrap_or(Place::Host);
        w.outputs().iter().any(|o: &Operand| o.place == place)
    }

    #[cold]
    fn observed(&self, w: &Workload, decision: &Decision, took: Seconds, ran: Ran) {
        let apart = match ran {
            Ran::Clean => None,
            Ran::Disturbed => Some("its threads were busy elsewhere: not learned from"),
            Ran::Cold => {
                let work = decision.predicted() - decision.moves();
                if let Some(kernel) = self.engine.registry().get(decision.variant().kernel) {
                    self.engine.learn_setup(kernel.device(), took - work);
                }
                Some("it had to be compiled first: only that was learned")
            }
        };
        if let Some(note) = apart {
            self.engine.book(decision, took + decision.moves(), false);
            return self.note(w, decision, Some(took), Some(note.into()));
        }
        let name = self.engine.name(decision.variant().kernel);
        // Only the work was timed: what was moved for it is the links' to learn.
        let moved = decision.moves().0;
        let (low, high) = decision.interval();
        self.tracker.ran(self.usage(w, decision, &name), 1, took.0);
        self.tracker.foretold(&name, decision.predicted().0 - moved, low.0 - moved, high.0 - moved, took.0);
        self.look_at_clock();
        if decision.params().threads > 1 {
            self.learn_of_cores(self.cpu.glance(CORES));
        }
        let news = self.engine.observe(decision, took);
        let shift =
            news.and_then(|n| n.shift).map(|s| format!("the machine runs {s:?} than learned").to_lowercase());
        self.note(w, decision, Some(took + decision.moves()), shift);
    }

    /// Has decisions know how fast the CPU's clock runs.
    pub(crate) fn look_at_clock(&self) {
        self.engine.set_tick(self.cpu_id, self.cpu.tick(CLOCK));
    }

    /// Has decisions know how far apart the CPU's cores lie now. Threads that sleep are waked for it.
    pub(crate) fn look_at_cores(&self) {
        self.learn_of_cores(self.cpu.handoff(Duration::ZERO));
    }

    fn learn_of_cores(&self, handoff: Option<f64>) {
        if let Some(handoff) = handoff {
            self.engine.set_handoff(self.cpu_id, handoff);
        }
    }

    fn usage<'a>(&self, w: &Workload, d: &Decision, kernel: &'a str) -> Use<'a> {
        let device = self.engine.registry().get(d.variant().kernel).map(|k| k.device());
        let device = device.and_then(|id| self.carrier.accelerators.get(id));
        let device = device.map_or(self.fingerprint, |a| a.fingerprint);
        Use { device, kernel, params: d.params(), op: w.op().name() }
    }

    fn note(&self, w: &Workload, d: &Decision, measured: Option<Seconds>, note: Option<String>) {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
        let workload = match self.carrier.accelerators.count() {
            0 => w.to_string(),
            _ => w.named(&self.engine.places()).to_string(),
        };
        self.log.push(Entry {
            seq: 0,
            time,
            workload,
            kernel: self.engine.name(d.variant().kernel),
            params: d.params(),
            reason: d.reason(),
            predicted_s: d.predicted().0,
            low_s: d.interval().0.0,
            high_s: d.interval().1.0,
            measured_s: measured.map(|s| s.0),
            confidence: d.confidence(),
            note,
        });
    }
}
