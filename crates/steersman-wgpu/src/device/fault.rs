//! What went wrong on a device, kept until somebody asks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use steersman_core::KernelError;

/// Errors that no scope caught, and the loss of the device.
#[derive(Default)]
pub(super) struct Faults {
    any: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    lost: Option<String>,
    errors: Vec<String>,
}

/// The most errors worth keeping: the first ones tell.
const MOST: usize = 8;

impl Faults {
    /// An error nobody was waiting for.
    pub fn add(&self, error: &wgpu::Error) {
        let mut kept = self.kept();
        if kept.errors.len() < MOST {
            kept.errors.push(said(error));
        }
        self.any.store(true, Ordering::Release);
    }

    /// The device is gone.
    pub fn lose(&self, why: String) {
        self.kept().lost.get_or_insert(why);
        self.any.store(true, Ordering::Release);
    }

    /// Why the device is gone, if it is.
    pub fn lost(&self) -> Option<String> {
        if !self.any.load(Ordering::Acquire) {
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

    /// Takes the errors so far; the loss of the device stays.
    pub fn take(&self) -> Result<(), KernelError> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        self.alive()?;
        let errors = std::mem::take(&mut self.kept().errors);
        self.any.store(false, Ordering::Release);
        if errors.is_empty() { Ok(()) } else { Err(KernelError::Failed(errors.join("; "))) }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }
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
    use crate::{DeviceOptions, Gpu, adapters};
    use steersman_core::{KernelError, Memory};

    #[test]
    fn what_a_driver_refuses_is_told_once_to_who_asks_next_and_the_device_goes_on() {
        let Some(found) = adapters().into_iter().next() else {
            return println!("skipped: no WebGPU adapter");
        };
        let gpu = Gpu::open(&found, DeviceOptions::default()).expect("an adapter that was listed opens");
        let block = gpu.clone().take(256).expect("a small block");
        let (held, _) = gpu.find(block.address()).expect("its buffer");
        // Beyond the buffer's end: no scope is there to catch it.
        gpu.queue.write_buffer(&held.buffer, held.bytes, &[0; 8]);
        match gpu.wait() {
            Err(KernelError::Failed(why)) => assert!(!why.is_empty()),
            other => panic!("{other:?}"),
        }
        assert_eq!((gpu.wait(), gpu.lost()), (Ok(()), None));
    }
}
