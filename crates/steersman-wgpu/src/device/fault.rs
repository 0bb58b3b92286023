//! What went wrong on a device, kept until those ask whom it concerns.
//!
//! Whoever enqueued what failed hears of it when it next waits; whoever reads what it should have written, whenever that
//! is. Nobody else is told: a kernel that has nothing to do with it would be put into quarantine.

use super::adapter::ready;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use steersman_core::KernelError;

/// Why a buffer does not hold what it should.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Spoilt {
    /// What was to write it failed.
    Unwritten(String),
    /// What was to write it found nothing in an operand.
    Unread(String),
}

impl Spoilt {
    pub fn why(&self) -> &str {
        let (Spoilt::Unwritten(why) | Spoilt::Unread(why)) = self;
        why
    }
}

impl From<Spoilt> for KernelError {
    fn from(spoilt: Spoilt) -> KernelError {
        match spoilt {
            Spoilt::Unwritten(why) => KernelError::Failed(why),
            Spoilt::Unread(why) => KernelError::Operand(why),
        }
    }
}

/// Failures by who enqueued what failed and by what it was to write, and the loss of the device.
#[derive(Default)]
pub(super) struct Faults {
    /// Whether there is any; changed with `kept` locked.
    any: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    lost: Option<String>,
    errors: Vec<(ThreadId, String)>,
    /// By the buffer's first address.
    spoilt: HashMap<u64, Spoilt>,
}

/// Errors kept at most: threads that never ask must not fill memory.
const MOST: usize = 64;

impl Faults {
    /// An error of this thread that nobody was waiting for.
    pub fn add(&self, error: &wgpu::Error) {
        self.fail(std::thread::current().id(), [], said(error));
    }

    /// What a thread enqueued failed; it was to write these buffers.
    pub fn fail(&self, by: ThreadId, writes: impl IntoIterator<Item = u64>, why: String) {
        self.change(|kept| {
            if kept.errors.len() >= MOST {
                kept.errors.remove(0);
            }
            let spoilt = Spoilt::Unwritten(why.clone());
            kept.spoilt.extend(writes.into_iter().map(|start| (start, spoilt.clone())));
            kept.errors.push((by, why));
        });
    }

    /// These buffers were to be written from one that holds nothing.
    pub fn spoil(&self, writes: impl IntoIterator<Item = u64>, why: &str) {
        self.change(|kept| {
            let spoilt = Spoilt::Unread(why.to_string());
            kept.spoilt.extend(writes.into_iter().map(|start| (start, spoilt.clone())));
        });
    }

    /// Why a buffer does not hold what it should, if it does not.
    pub fn spoilt(&self, start: u64) -> Option<Spoilt> {
        if !self.any() {
            return None;
        }
        self.kept().spoilt.get(&start).cloned()
    }

    /// A buffer is somebody else's, or was written anew.
    pub fn heal(&self, start: u64) {
        if self.any() {
            self.change(|kept| {
                kept.spoilt.remove(&start);
            });
        }
    }

    /// What is to be told to the reader of a buffer. Who is told by this need not be told again.
    pub fn readable(&self, start: u64) -> Result<(), KernelError> {
        let Some(spoilt) = self.spoilt(start) else { return Ok(()) };
        let me = std::thread::current().id();
        self.change(|kept| kept.errors.retain(|(by, why)| *by != me || why != spoilt.why()));
        Err(spoilt.into())
    }

    /// The device is gone.
    pub fn lose(&self, why: String) {
        self.change(|kept| {
            kept.lost.get_or_insert(why);
        });
    }

    /// Why the device is gone, if it is.
    pub fn lost(&self) -> Option<String> {
        if !self.any() {
            return None;
        }
        self.kept().lost.clone()
    }

    /// Whether there is a device to work with.
    pub fn alive(&self) -> Result<(), KernelError> {
        match self.lost() {
            Some(why) => Err(KernelError::Lost(why)),
            None => Ok(()),
        }
    }

    /// Takes this thread's errors so far; the loss of the device stays.
    pub fn take(&self) -> Result<(), KernelError> {
        if !self.any() {
            return Ok(());
        }
        self.alive()?;
        let me = std::thread::current().id();
        let mut mine = Vec::new();
        self.change(|kept| {
            kept.errors.retain(|(by, why)| {
                if *by == me {
                    mine.push(why.clone());
                }
                *by != me
            });
        });
        if mine.is_empty() { Ok(()) } else { Err(KernelError::Failed(mine.join("; "))) }
    }

    fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Changes what is kept. Whether there is any is said before anybody else can add to it: a loss said in between would
    /// be forgotten.
    fn change(&self, f: impl FnOnce(&mut Kept)) {
        let mut kept = self.kept();
        f(&mut kept);
        let any = kept.lost.is_some() || !kept.errors.is_empty() || !kept.spoilt.is_empty();
        self.any.store(any, Ordering::Release);
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// An error that a call to the device ended with.
#[derive(Clone, Debug)]
pub(super) struct Mishap {
    pub why: String,
    /// Whether there was no memory: the same may do later.
    pub memory: bool,
}

/// Does `work`, with the first error that the device has with it. Scopes belong to the calling thread.
pub(super) fn caught<T>(device: &wgpu::Device, work: impl FnOnce() -> T) -> (T, Option<Mishap>) {
    let invalid = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
    let memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
    let done = work();
    let errors = [ready(memory.pop()), ready(internal.pop()), ready(invalid.pop())];
    let error = errors.into_iter().flatten().flatten().next();
    let mishap =
        error.map(|e| Mishap { why: said(&e), memory: matches!(e, wgpu::Error::OutOfMemory { .. }) });
    (done, mishap)
}

/// An error as one line with its causes.
pub(super) fn said(error: &wgpu::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(c) = cause {
        let more = c.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = c.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::Faults;
    use crate::{DeviceOptions, Gpu, adapters};
    use std::sync::Barrier;
    use steersman_core::{KernelError, Memory};

    #[test]
    fn what_a_driver_refuses_is_told_once_to_the_thread_that_asked_it_and_the_device_goes_on() {
        let Some(found) = adapters().into_iter().next() else {
            return println!("skipped: no WebGPU adapter");
        };
        let gpu = Gpu::open(&found, DeviceOptions::default()).expect("an adapter that was listed opens");
        let block = gpu.clone().take(256).expect("a small block");
        let (held, _) = gpu.find(block.address()).expect("its buffer");
        // Beyond the buffer's end: no scope is there to catch it.
        gpu.queue.write_buffer(&held.buffer, held.bytes, &[0; 8]);
        std::thread::scope(|s| s.spawn(|| assert_eq!(gpu.wait(), Ok(()), "it was not this thread")).join())
            .expect("it ends well");
        match gpu.wait() {
            Err(KernelError::Failed(why)) => assert!(!why.is_empty()),
            other => panic!("{other:?}"),
        }
        assert_eq!((gpu.wait(), gpu.lost()), (Ok(()), None));
    }

    #[test]
    fn a_loss_said_while_somebody_takes_errors_is_not_forgotten() {
        for round in 0..20_000 {
            let (faults, both) = (Faults::default(), Barrier::new(2));
            faults.fail(std::thread::current().id(), [], "a small thing".into());
            std::thread::scope(|s| {
                s.spawn(|| {
                    both.wait();
                    faults.lose("unplugged".into());
                });
                both.wait();
                let _ = faults.take();
            });
            assert_eq!(faults.lost().as_deref(), Some("unplugged"), "round {round}");
        }
    }

    #[test]
    fn who_enqueued_it_and_who_reads_it_is_told_once_and_nobody_else() {
        let faults = Faults::default();
        let other = std::thread::spawn(|| std::thread::current().id()).join().expect("it ends");
        faults.fail(other, [64], "theirs".into());
        faults.spoil([128], "theirs");
        assert_eq!(faults.take(), Ok(()), "it was another thread's");
        assert_eq!(faults.readable(64), Err(KernelError::Failed("theirs".into())));
        assert_eq!(faults.readable(128), Err(KernelError::Operand("theirs".into())));
        assert_eq!(faults.readable(192), Ok(()));
        faults.fail(std::thread::current().id(), [256], "mine".into());
        assert_eq!(faults.readable(256), Err(KernelError::Failed("mine".into())));
        assert_eq!(faults.take(), Ok(()), "it was told already");
        [64, 128, 256].into_iter().for_each(|start| faults.heal(start));
        assert_eq!(faults.readable(256), Ok(()));
    }
}
