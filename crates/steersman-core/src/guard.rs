//! Kernels that must not be chosen: those that failed, panicked, hung or lied.

use crate::device::DeviceId;
use crate::dtype::DType;
use crate::op::FUSED;
use crate::workload::Workload;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What a kernel did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offence {
    /// Returned an error.
    Failed,
    /// Panicked.
    Panicked,
    /// Gave another answer than the reference.
    Wrong,
    /// Did not come back in time.
    Hung,
}

impl Offence {
    const ALL: [Offence; 4] = [Offence::Failed, Offence::Panicked, Offence::Wrong, Offence::Hung];

    /// Whether it says something about all that the kernel would do, not only about what it did: that cannot be redone.
    fn is_general(self) -> bool {
        matches!(self, Offence::Wrong | Offence::Hung)
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Offence::Failed => "failed",
            Offence::Panicked => "panicked",
            Offence::Wrong => "wrong",
            Offence::Hung => "hung",
        })
    }
}

/// Why a kernel is in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// What it did.
    pub offence: Offence,
    /// In words.
    pub detail: String,
}

/// `panicked: index out of bounds`, as it is written down.
impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.offence.to_string();
        match self.detail.strip_prefix(&word) {
            Some(rest) if rest.starts_with(": ") => f.write_str(&self.detail),
            _ => write!(f, "{word}: {}", self.detail),
        }
    }
}

impl Quarantined {
    /// What was written down. Texts that do not start with an offence tell of failures.
    pub fn read(text: &str) -> Quarantined {
        let split = text.split_once(": ").and_then(|(word, detail)| {
            Some((Offence::ALL.into_iter().find(|o| o.to_string() == word)?, detail))
        });
        let (offence, detail) = split.unwrap_or((Offence::Failed, text));
        Quarantined { offence, detail: detail.into() }
    }
}

/// What a kernel must not do: one op on one element type; of fused groups those of one expression, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The kernel's index.
    pub kernel: u16,
    /// The op's name.
    pub op: &'static str,
    /// The element type.
    pub dtype: DType,
    /// The hash of the expression, if it is about one.
    pub expr: Option<u64>,
}

impl Case {
    /// What a kernel must not do any more after this offence. One that lied or hung is not trusted with another
    /// expression either; an error or a panic was noticed, and the work redone.
    pub fn of(kernel: u16, w: &Workload, offence: Offence) -> Case {
        let expr = w.expr().filter(|_| !offence.is_general()).map(|e| e.hash64());
        Case { kernel, op: w.op().name(), dtype: w.dtype(), expr }
    }

    /// Whether the workload is such.
    fn is_about(&self, w: &Workload) -> bool {
        let expr = w.expr().map(|e| e.hash64());
        (self.op, self.dtype) == (w.op().name(), w.dtype()) && self.expr.is_none_or(|e| Some(e) == expr)
    }

    /// The op as it is written down: `exp`, `fused/0123456789abcdef`.
    pub fn op_text(&self) -> String {
        match self.expr {
            Some(hash) => format!("{}/{hash:016x}", self.op),
            None => self.op.into(),
        }
    }

    /// The same read: the name as the engine has it is found by `name`.
    pub(crate) fn op_of(
        text: &str,
        name: impl Fn(&str) -> Option<&'static str>,
    ) -> Option<(&'static str, Option<u64>)> {
        let hash = text.strip_prefix(FUSED).and_then(|rest| rest.strip_prefix('/'));
        match hash.and_then(|h| u64::from_str_radix(h, 16).ok()) {
            Some(hash) => Some((FUSED, Some(hash))),
            None => name(text).map(|name| (name, None)),
        }
    }
}

#[derive(Default)]
struct Kept {
    all: HashMap<Case, Quarantined>,
    /// Put away or let go since it was last written down.
    changed: HashSet<Case>,
}

/// Everything in quarantine.
#[derive(Default)]
pub struct Guard {
    /// So that the usual case, nothing in quarantine, is one relaxed load.
    count: AtomicUsize,
    kept: RwLock<Kept>,
    /// Devices that are gone, with why.
    lost: RwLock<HashMap<DeviceId, String>>,
    any_lost: AtomicBool,
}

impl Guard {
    /// Why this kernel must not run this workload, if it must not.
    #[inline]
    pub fn check(&self, kernel: u16, w: &Workload) -> Option<Quarantined> {
        if self.is_empty() {
            return None;
        }
        let kept = self.read();
        kept.all.iter().find(|(c, _)| c.kernel == kernel && c.is_about(w)).map(|(_, why)| why.clone())
    }

    /// Whether nobody is in quarantine.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Puts a kernel away. Returns whether it was not there before.
    pub fn quarantine(&self, case: Case, why: Quarantined) -> bool {
        let mut kept = self.write();
        kept.changed.insert(case);
        self.insert(&mut kept, case, why)
    }

    /// The same with what was written down before.
    pub fn restore(&self, case: Case, why: Quarantined) {
        self.insert(&mut self.write(), case, why);
    }

    fn insert(&self, kept: &mut Kept, case: Case, why: Quarantined) -> bool {
        let new = kept.all.insert(case, why).is_none();
        self.count.store(kept.all.len(), Ordering::Release);
        new
    }

    /// Lets those go for which `whom` says yes, and returns them.
    pub fn lift(&self, mut whom: impl FnMut(&Case, &Quarantined) -> bool) -> Vec<(Case, Quarantined)> {
        let mut kept = self.write();
        let lifted: Vec<_> = kept.all.extract_if(|case, why| whom(case, why)).collect();
        kept.changed.extend(lifted.iter().map(|(case, _)| *case));
        self.count.store(kept.all.len(), Ordering::Release);
        lifted
    }

    /// Puts a whole device away. Returns whether it was not gone before.
    pub fn lose(&self, device: DeviceId, why: String) -> bool {
        let mut lost = self.lost.write().unwrap_or_else(|e| e.into_inner());
        let new = !lost.contains_key(&device);
        lost.entry(device).or_insert(why);
        self.any_lost.store(true, Ordering::Release);
        new
    }

    /// Why this device is gone, if it is.
    #[inline]
    pub fn lost(&self, device: DeviceId) -> Option<String> {
        if !self.any_lost.load(Ordering::Acquire) {
            return None;
        }
        self.lost.read().unwrap_or_else(|e| e.into_inner()).get(&device).cloned()
    }

    /// Lets every kernel out; devices stay lost.
    pub fn clear(&self) {
        self.lift(|_, _| true);
    }

    /// Everything in quarantine.
    pub fn list(&self) -> Vec<(Case, Quarantined)> {
        self.read().all.iter().map(|(case, why)| (*case, why.clone())).collect()
    }

    /// Whether something is to be written down.
    pub fn has_changed(&self) -> bool {
        !self.read().changed.is_empty()
    }

    /// What is to be written down of the kernels for which `of` says yes, each once: why it was put away, or `None` if it
    /// was let go. What was read from what was written down is not among it: somebody may have lifted it there since.
    pub fn take_changes(&self, of: impl Fn(u16) -> bool) -> Vec<(Case, Option<Quarantined>)> {
        let Kept { all, changed } = &mut *self.write();
        changed.extract_if(|case| of(case.kernel)).map(|case| (case, all.get(&case).cloned())).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Kept> {
        self.kept.read().unwrap_or_else(|e| e.into_inner())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Kept> {
        self.kept.write().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;
    use crate::{Operand, UnaryOp};
    use std::sync::Arc;

    fn group(op: UnaryOp) -> Workload {
        let mut b = Expr::builder([DType::F32]);
        let x = b.input(0).unwrap();
        let y = b.unary(op, x).unwrap();
        b.output(y).unwrap();
        let expr = Arc::new(b.finish().unwrap());
        Workload::fused(&expr, &[4], [Operand::new(DType::F32, &[4]).unwrap()]).unwrap()
    }

    fn why(offence: Offence) -> Quarantined {
        Quarantined { offence, detail: "as scripted".into() }
    }

    #[test]
    fn a_failed_group_stands_for_its_expression_and_a_wrong_one_for_all() {
        let (exp, sqrt) = (group(UnaryOp::Exp), group(UnaryOp::Sqrt));
        for offence in Offence::ALL {
            let guard = Guard::default();
            guard.quarantine(Case::of(3, &exp, offence), why(offence));
            assert_eq!(guard.check(3, &exp), Some(why(offence)));
            assert_eq!(guard.check(3, &sqrt).is_some(), offence.is_general(), "{offence}");
            assert_eq!(guard.check(4, &exp), None);
        }
    }

    #[test]
    fn what_is_written_down_is_read_as_it_was() {
        for offence in Offence::ALL {
            for detail in ["as scripted", "element 3: 4 where the reference has 5", ""] {
                let why = Quarantined { offence, detail: detail.into() };
                assert_eq!(Quarantined::read(&why.to_string()), why);
            }
        }
        let twice = Quarantined { offence: Offence::Panicked, detail: "panicked: boom".into() };
        assert_eq!(twice.to_string(), "panicked: boom");
        assert_eq!(Quarantined::read("the device is gone").offence, Offence::Failed);
        let (exp, sum) = (Case::of(0, &group(UnaryOp::Exp), Offence::Failed), "sum f32 8".parse().unwrap());
        let names = |text: &str| (text == "sum").then_some("sum");
        assert_eq!(Case::op_of(&exp.op_text(), names), Some((FUSED, exp.expr)));
        assert_eq!(Case::op_of(&Case::of(0, &sum, Offence::Failed).op_text(), names), Some(("sum", None)));
    }

    #[test]
    fn only_what_is_new_is_to_be_written_down_and_what_was_lifted_too() {
        let guard = Guard::default();
        let cases = ["sum f32 8", "exp f32 8"].map(|w| Case::of(1, &w.parse().unwrap(), Offence::Panicked));
        guard.restore(cases[0], why(Offence::Panicked));
        assert!(!guard.has_changed());
        guard.quarantine(cases[1], why(Offence::Panicked));
        assert!(guard.take_changes(|kernel| kernel == 2).is_empty());
        assert_eq!(guard.take_changes(|_| true), [(cases[1], Some(why(Offence::Panicked)))]);
        assert_eq!(guard.lift(|case, _| case.op == "sum").len(), 1);
        assert_eq!(guard.take_changes(|_| true), [(cases[0], None)]);
        assert!(!guard.has_changed() && guard.list().len() == 1);
    }
}
