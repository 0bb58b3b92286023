//! What was learned in earlier processes, put back: at once for kernels that are here, on registration for
//! those that come later (a user's own kernels and functions mostly do).

use super::{Engine, lock};
use crate::cost::{CellKey, History, Knowledge, Model, Variant};
use crate::device::Place;
use crate::dtype::DType;
use crate::kernel::{Kernel, Params};
use crate::op::{FUSED, Op, OpClass, ReduceOp};
use crate::workload::{Layout, Workload};
use std::collections::HashMap;
use std::sync::Arc;

/// Older code or an older driver: its data has a tenth of the say.
const FADE: f64 = 0.1;

/// One remembered cell of the model. Names instead of indices: those change from process to process.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// The kernel's revision when it was measured.
    pub revision: u32,
    /// The parameters it was measured with.
    pub params: Params,
    /// The op's name, or `None` for the pool of its class.
    pub op: Option<String>,
    /// The op's class.
    pub class: OpClass,
    /// Element type.
    pub dtype: DType,
    /// Layout of the operands.
    pub layout: Layout,
    /// What was learned.
    pub knowledge: Knowledge,
}

impl Remembered {
    /// Where it belongs, if the kernel is about that op.
    fn key(&self, index: u16, kernel: &dyn Kernel) -> Option<CellKey> {
        let op = match (&self.op, self.class) {
            (None, _) => None,
            (Some(name), OpClass::Custom) => Some(kernel.function().filter(|f| f == name)?),
            // A name of the op's class: `max` is both a binary op and a reduction.
            (Some(name), OpClass::Reduce) => Some(ReduceOp::ALL.iter().find(|r| r.name() == name)?.name()),
            (Some(name), _) if name == FUSED => Some(FUSED),
            (Some(name), _) => Some(Op::from_name(name)?.name()),
        };
        let variant = Variant { kernel: index, params: self.params };
        Some(CellKey { variant, op, class: self.class, dtype: self.dtype, layout: self.layout })
    }
}

/// Measured runs of one exact workload, with names instead of indices.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The workload's text form.
    pub workload: String,
    /// The kernel's name.
    pub kernel: String,
    /// Its revision.
    pub revision: u32,
    /// Its parameters.
    pub params: Params,
    /// What was measured.
    pub history: History,
}

impl Engine {
    /// Runs of the workloads that programs asked for and that were measured since the model had changed so often, to be
    /// written down: of those that live on the host and have a text form, since other processes know them by it.
    pub fn runs_since(&self, changes: u64) -> Vec<Runs> {
        let asked: HashMap<u64, Workload> = {
            let known = lock(&self.known);
            known.iter().filter(|(_, k)| k.observed > 0).map(|(h, k)| (*h, k.workload.clone())).collect()
        };
        let texts: HashMap<u64, String> =
            asked.into_iter().filter_map(|(hash, w)| Some((hash, text_of(&w)?))).collect();
        self.with_model(|model| {
            let runs = model.histories_since(changes).filter_map(|(hash, variant, history)| {
                let (workload, kernel) = (texts.get(&hash)?, self.registry.get(variant.kernel)?);
                Some(Runs {
                    workload: workload.clone(),
                    kernel: kernel.name().into(),
                    revision: kernel.revision(),
                    params: variant.params,
                    history: *history,
                })
            });
            runs.collect()
        })
    }

    /// Puts runs of earlier processes back: those of kernels that are here and whose code is the same.
    pub fn recall_runs(&self, runs: impl IntoIterator<Item = Runs>) {
        let kernels: HashMap<&str, (u16, u32)> =
            self.registry.iter().map(|(i, k)| (k.name(), (i, k.revision()))).collect();
        self.with_model_mut(|model| {
            for r in runs {
                if let Some(&(kernel, revision)) = kernels.get(r.kernel.as_str())
                    && revision == r.revision
                    && let Some(history) = r.history.remembered()
                    && let Ok(w) = r.workload.parse::<Workload>()
                {
                    model.restore_history(w.key().hash64(), Variant { kernel, params: r.params }, history);
                }
            }
        });
    }

    /// Puts remembered cells back, each with its kernel's name. Those of kernels that are not registered wait.
    pub fn recall(&self, cells: impl IntoIterator<Item = (String, Remembered)>) {
        // First, so that a kernel that comes meanwhile asks for what waits after it was put there.
        let mut absent = lock(&self.absent);
        let kernels: HashMap<&str, u16> = self.registry.iter().map(|(i, k)| (k.name(), i)).collect();
        self.with_model_mut(|model| {
            let mut others = Vec::new();
            for (name, cell) in cells {
                match kernels.get(name.as_str()).and_then(|&i| Some((i, self.registry.get(i)?))) {
                    Some((index, kernel)) => others.extend(restore(model, index, kernel, cell)),
                    None => absent.entry(name).or_default().push(cell),
                }
            }
            hint(model, others);
        });
    }

    /// What waited for this kernel.
    pub(super) fn recall_for(&self, index: u16) {
        let Some(kernel) = self.registry.get(index) else { return };
        let Some(waiting) = lock(&self.absent).remove(kernel.name()) else { return };
        self.with_model_mut(|model| {
            let others = waiting.into_iter().filter_map(|cell| restore(model, index, kernel, cell)).collect();
            hint(model, others);
        });
    }
}

/// The workload's text form, if that says all about it and nothing that differs from process to process.
fn text_of(w: &Workload) -> Option<String> {
    let at_home = w.inputs().iter().chain(w.outputs()).all(|o| o.place == Place::Host);
    let text = w.to_string();
    let back = text.parse::<Workload>().ok().filter(|_| at_home)?;
    (back.key() == w.key()).then_some(text)
}

/// Puts a cell back if it was learned of this very code; else returns it, with where it belongs.
fn restore(
    model: &mut Model,
    index: u16,
    kernel: &Arc<dyn Kernel>,
    cell: Remembered,
) -> Option<(CellKey, Remembered)> {
    let key = cell.key(index, &**kernel)?;
    if cell.revision != kernel.revision() {
        return Some((key, cell));
    }
    model.restore(key, cell.knowledge);
    None
}

/// What was learned of other code hints where nothing else is known, that of the newest first.
fn hint(model: &mut Model, mut others: Vec<(CellKey, Remembered)>) {
    others.sort_by_key(|(_, cell)| std::cmp::Reverse(cell.revision));
    for (key, cell) in others {
        if !model.knows(&key) {
            model.restore(key, cell.knowledge.faded(FADE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Machine, Terms};
    use crate::device::DeviceId;
    use crate::kernel::{ParamList, Refusal};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    type Hook = Box<dyn Fn() + Send>;

    /// Runs anything, and may do something when it is asked for its name.
    #[derive(Default)]
    struct Named {
        name: &'static str,
        revision: u32,
        hook: Mutex<Option<Hook>>,
    }

    impl Kernel for Named {
        fn name(&self) -> &str {
            let hook = self.hook.lock().unwrap().take();
            if let Some(hook) = hook {
                hook();
            }
            self.name
        }
        fn device(&self) -> DeviceId {
            DeviceId(0)
        }
        fn handles(&self, _: Op) -> bool {
            true
        }
        fn revision(&self) -> u32 {
            self.revision
        }
        fn supports(&self, _: &Workload) -> Result<(), Refusal> {
            Ok(())
        }
        fn params(&self, _: &Workload) -> ParamList {
            smallvec::smallvec![Params::SERIAL]
        }
        fn terms(&self, _: &Workload, _: Params, _: &Machine) -> Terms {
            Terms::launch(1e-3)
        }
    }

    fn workload() -> Workload {
        "exp f32 1000".parse().unwrap()
    }

    /// Twenty samples of this many seconds, as they are remembered of this revision.
    fn cell(revision: u32, seconds: f64) -> (String, Remembered) {
        let engine = Engine::default();
        let kernel = engine.register(Arc::new(Named { name: "k", ..Named::default() })).unwrap();
        let variant = Variant { kernel, params: Params::SERIAL };
        let w = workload();
        (0..20).for_each(|_| engine.learn(variant, &w, seconds, 1.0));
        let key = CellKey::of(variant, &w);
        let known = engine.with_model(|m| m.cells().find(|(k, _)| *k == key).map(|(_, known)| known));
        let cell = Remembered {
            revision,
            params: Params::SERIAL,
            op: Some("exp".into()),
            class: OpClass::Unary,
            dtype: DType::F32,
            layout: Layout::Contiguous,
            knowledge: known.unwrap(),
        };
        ("k".into(), cell)
    }

    #[test]
    fn a_kernel_that_comes_while_cells_are_recalled_gets_them() {
        let engine = Arc::new(Engine::default());
        let first = Arc::new(Named { name: "first", ..Named::default() });
        engine.register(first.clone()).unwrap();
        let (later, done) = (engine.clone(), Arc::new(AtomicBool::new(false)));
        // It comes just when it is looked up who is here; and has come, if nothing keeps it.
        *first.hook.lock().unwrap() = Some(Box::new(move || {
            let (engine, note) = (later.clone(), done.clone());
            std::thread::spawn(move || {
                engine.register(Arc::new(Named { name: "k", ..Named::default() })).unwrap();
                note.store(true, Ordering::Release);
            });
            let begun = Instant::now();
            while !done.load(Ordering::Acquire) && begun.elapsed() < Duration::from_millis(300) {
                std::thread::yield_now();
            }
        }));
        engine.recall([cell(0, 1e-6)]);
        let begun = Instant::now();
        let samples = || {
            let kernel = engine.registry().find("k")?;
            Some(engine.samples(Variant { kernel, params: Params::SERIAL }, &workload()))
        };
        while samples() != Some(20) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", samples());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_was_learned_of_this_very_code_outweighs_that_of_newer_and_older() {
        let of = |revision: u32| cell(revision, f64::from(revision) * 1e-3);
        let expected = |revision: u32, registered_first: bool, cells: Vec<(String, Remembered)>| {
            let engine = Engine::default();
            let register =
                || engine.register(Arc::new(Named { name: "k", revision, ..Named::default() })).unwrap();
            if registered_first {
                register();
                engine.recall(cells);
            } else {
                engine.recall(cells);
                register();
            }
            engine.estimates(&workload())[0].estimate.mean.0
        };
        for first in [true, false] {
            // As they lie in the file: by revision.
            let said = |revision| expected(revision, first, [1, 2, 3].map(of).into());
            for (revision, best) in [(1, 1), (2, 2), (3, 3), (4, 3)] {
                assert_eq!(said(revision), expected(revision, first, vec![of(best)]), "of {revision}");
            }
            assert!(said(1) < 1.2e-3 && said(3) > 2.5e-3, "{} and {}", said(1), said(3));
        }
    }
}
