//! One way to do one op on one device, and what it says about itself.
//!
//! A kernel is one struct: what it supports, which parameters it has, what it costs in counted work,
//! and how to run it.

use crate::cost::{Machine, Terms};
use crate::device::DeviceId;
use crate::memory::MemoryError;
use crate::op::Op;
use crate::tune::Winners;
use crate::workload::Workload;
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;

/// How far a result may differ from the reference. Ordered: later is looser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum NumericClass {
    /// Bit for bit.
    Exact,
    /// The same real-number formula in another order, or a function within its stated ULP bound.
    Reassociated,
    /// Less precision inside (bf16, TF32). Never chosen unless the caller allows it.
    Relaxed,
}

impl fmt::Display for NumericClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            NumericClass::Exact => "exact",
            NumericClass::Reassociated => "reassociated",
            NumericClass::Relaxed => "relaxed",
        })
    }
}

impl FromStr for NumericClass {
    type Err = ();
    fn from_str(s: &str) -> Result<NumericClass, ()> {
        [NumericClass::Exact, NumericClass::Reassociated, NumericClass::Relaxed]
            .into_iter()
            .find(|c| c.to_string() == s)
            .ok_or(())
    }
}

/// One point in a kernel's parameter space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Params {
    /// Threads it runs on.
    pub threads: u16,
    /// The kernel's own choice among its variants (tile, unroll, workgroup); 0 if it has none.
    pub variant: u16,
}

impl Params {
    /// One thread, no variant.
    pub const SERIAL: Params = Params { threads: 1, variant: 0 };

    /// This many threads, no variant.
    pub fn threads(threads: usize) -> Params {
        Params { threads: threads.min(u16::MAX as usize) as u16, variant: 0 }
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.threads)?;
        if self.variant != 0 { write!(f, "v{}", self.variant) } else { Ok(()) }
    }
}

/// The parameter points a kernel offers for a workload.
pub type ParamList = SmallVec<[Params; 4]>;

/// Why a kernel does not take a workload, for a person to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub std::borrow::Cow<'static, str>);

impl Refusal {
    /// A refusal with this reason.
    pub fn new(reason: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
        Refusal(reason.into())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where an operand's first element is, in its device's own terms: a pointer on the host, whatever the
/// device makes of it elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub u64);

impl Address {
    /// A host pointer.
    pub fn host<T>(p: *const T) -> Address {
        Address(p as u64)
    }

    /// As a host pointer to read.
    pub fn as_ptr<T>(self) -> *const T {
        self.0 as *const T
    }

    /// As a host pointer to write.
    pub fn as_mut_ptr<T>(self) -> *mut T {
        self.0 as *mut T
    }
}

/// Operand addresses of one run, in the workload's order.
#[derive(Clone, Copy, Debug)]
pub struct Io<'a> {
    /// First element of each input.
    pub inputs: &'a [Address],
    /// First element of the output. Never overlaps an input, except exactly for element-wise ops in place
    /// (also of fused groups, if what is replaced has the output's shape, strides and element size).
    pub output: Address,
    /// First elements of the outputs after the first; none but for fused groups.
    pub more: &'a [Address],
    /// Scalars of a fused group: the bits of each in its type, low ones first, or a key of random numbers.
    pub scalars: &'a [u64],
}

impl<'a> Io<'a> {
    /// One output, no scalars.
    pub fn new(inputs: &'a [Address], output: Address) -> Io<'a> {
        Io { inputs, output, more: &[], scalars: &[] }
    }

    /// Every output's first element.
    pub fn outputs(&self) -> impl Iterator<Item = Address> + use<'a> {
        std::iter::once(self.output).chain(self.more.iter().copied())
    }

    /// Whether an output replaces an input.
    pub fn in_place(&self) -> bool {
        self.inputs.contains(&self.output) || self.more.iter().any(|o| self.inputs.contains(o))
    }
}

/// How a run ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// As asked.
    Clean,
    /// Right, but not under the conditions the parameters name (its threads were busy elsewhere): not a
    /// measurement to learn from.
    Disturbed,
    /// Right, but something had to be made ready first (compiled): the next run is quicker.
    Cold,
}

/// How a run failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KernelError {
    /// The kernel gave up, or its device did.
    #[error("{0}")]
    Failed(String),
    /// What an operand should hold was never written: whoever was to write it failed, not this kernel.
    #[error("what an operand should hold was never written: {0}")]
    Operand(String),
    /// The device is gone, and all that was in its memory.
    #[error("the device was lost: {0}")]
    Lost(String),
    /// There is no memory for what it needs beside its operands, or not now. Said before anything was written.
    #[error("there is no room for what it needs beside its operands: {0}")]
    NoRoom(String),
    /// The kernel only takes part in decisions; its owner runs it.
    #[error("this kernel is run by its owner, not by the engine")]
    NotRunnable,
}

impl KernelError {
    /// Whether the kernel is to blame, and not to be chosen again.
    pub fn is_offence(&self) -> bool {
        matches!(self, KernelError::Failed(_))
    }
}

impl From<MemoryError> for KernelError {
    fn from(why: MemoryError) -> KernelError {
        match why {
            MemoryError::Lost(why) => KernelError::Lost(why),
            _ => KernelError::NoRoom(why.to_string()),
        }
    }
}

/// One way to do one op on one device.
pub trait Kernel: Send + Sync {
    /// Its name, unique in a registry: `cpu/simd-avx512`.
    fn name(&self) -> &str;

    /// The device it runs on.
    fn device(&self) -> DeviceId;

    /// Whether it is about this op at all; what it then cannot take, `supports` refuses with a reason.
    fn handles(&self, op: Op) -> bool;

    /// The custom op it is about, if it is one.
    fn function(&self) -> Option<&'static str> {
        None
    }

    /// Raised whenever its code changes enough to change its speed: older measurements then only hint.
    fn revision(&self) -> u32 {
        1
    }

    /// How far its results may differ from the reference for this workload.
    fn numerics(&self, _w: &Workload) -> NumericClass {
        NumericClass::Exact
    }

    /// Legality, exact and independent of speed: asked also when a cached choice is reused, unless it is fixed. Where the
    /// operands live is not its business: what lives elsewhere is brought before it runs, with the same strides.
    fn supports(&self, w: &Workload) -> Result<(), Refusal>;

    /// Whether what it supports follows from the workload alone and never changes: a choice that is reused is then
    /// not asked about again, which was a third of a hit's time.
    fn legality_is_fixed(&self) -> bool {
        false
    }

    /// Why another kernel of its device is always about as quick or quicker, if one is. It is then not weighed, nor
    /// measured in a calibration, but runs where it is asked for by name, or where the others must not.
    fn outdone(&self, _w: &Workload) -> Option<&'static str> {
        None
    }

    /// Name of the kernel that runs the same loops in narrower vectors. Where both are about as quick this one runs.
    fn narrower(&self) -> Option<String> {
        None
    }

    /// The parameter points worth considering.
    fn params(&self, _w: &Workload) -> ParamList {
        smallvec::smallvec![Params::SERIAL]
    }

    /// Every parameter point that a search may try; `params` are the few that a decision weighs.
    fn space(&self, w: &Workload) -> Vec<Params> {
        self.params(w).to_vec()
    }

    /// Where searches keep what they found best, for kernels whose `space` is larger than their `params`.
    fn winners(&self) -> Option<&Winners> {
        None
    }

    /// What it does for this workload, counted, with prior rates from what was probed.
    fn terms(&self, w: &Workload, p: Params, machine: &Machine) -> Terms;

    /// Whether it can run such a workload at once; if not, it has to compile something first, once. What that takes
    /// is known of the device ([`Machine::setup`]).
    fn ready(&self, _w: &Workload, _p: Params) -> bool {
        true
    }

    /// Bytes of memory it needs beyond operands and result.
    fn scratch(&self, _w: &Workload, _p: Params) -> usize {
        0
    }

    /// Does it.
    ///
    /// # Safety
    /// `io` must hold valid addresses for the workload's operands on this kernel's device, readable and
    /// writable over the spans their strides reach, and `supports` must have said yes.
    unsafe fn run(&self, _w: &Workload, _p: Params, _io: Io<'_>) -> Result<Ran, KernelError> {
        Err(KernelError::NotRunnable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_to_be_had_is_no_offence_of_the_kernel() {
        let full = MemoryError::Full { need: 9, in_use: 2, limit: 10 };
        let large = MemoryError::TooLarge { need: 9, most: 5 };
        let lost = MemoryError::Lost("unplugged".into());
        let all = [full, large, lost].map(KernelError::from);
        assert!(all.iter().all(|e| !e.is_offence()), "{all:?}");
        assert_eq!(all[2], KernelError::Lost("unplugged".into()));
        assert!(matches!(&all[0], KernelError::NoRoom(why) if why.contains("9 bytes")));
    }
}
