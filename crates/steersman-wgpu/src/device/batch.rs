//! Work on its way to the queue: dispatches are gathered in one compute pass and submitted together.
//!
//! A dispatch costs the host a few microseconds in a pass and tens of them as a submission of its own.
//! Without anybody waiting a batch goes when it is large enough and the device idle.
//!
//! A batch that the driver refuses has not run at all. Its dispatches then go one by one, so that it is known which of
//! them it was: the others are done, and what it was to write is known to hold nothing.

use super::fault::{Faults, Mishap, caught};
use super::pipeline::Pipeline;
use super::pool::Held;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use steersman_core::KernelError;

/// Dispatches after which a batch goes if the device has nothing to do.
const SOME: usize = 128;
/// Dispatches submitted together at most. A driver may hold a submission back until the one before is done
/// (Mesa's software one does: 12 ms for 256 small dispatches), so it is not asked while the device is busy.
const MOST: usize = 4096;
/// How often it is looked whether the device is busy, in dispatches.
const LOOK: usize = 64;
/// Bytes of uniform blocks in a batch at most.
const RING: u64 = 256 << 10;
/// Bind groups kept at most; each keeps its buffers alive.
const GROUPS: usize = 1024;
/// Passes whose time is taken in one timed stretch at most.
pub(super) const PASSES: u32 = 64;

/// One dispatch.
pub(crate) struct Launch<'a> {
    pub pipeline: &'a Arc<Pipeline>,
    /// Storage buffers from binding 1 on.
    pub buffers: &'a [Arc<Held>],
    /// Which of them it reads, and which it writes.
    pub read: &'a [bool],
    pub written: &'a [bool],
    /// The uniform block.
    pub params: &'a [u32],
    /// Workgroups in each direction.
    pub groups: [u32; 3],
}

impl Launch<'_> {
    /// The first addresses of what it reads.
    pub fn reads(&self) -> impl Iterator<Item = u64> {
        self.buffers.iter().zip(self.read).filter(|(_, r)| **r).map(|(h, _)| h.start)
    }
}

/// A dispatch that is recorded, to be done again on its own if need be.
struct Recorded {
    pipeline: Arc<Pipeline>,
    group: wgpu::BindGroup,
    offset: u32,
    groups: [u32; 3],
    /// The first addresses of its buffers, and whether each is read and written.
    buffers: SmallVec<[(u64, bool, bool); 4]>,
    /// Who enqueued it.
    by: ThreadId,
}

impl Recorded {
    fn writes(&self) -> impl Iterator<Item = u64> {
        self.buffers.iter().filter(|(_, _, written)| *written).map(|b| b.0)
    }
}

/// Device times of passes, while somebody wants them.
pub(super) struct Stamps {
    pub set: wgpu::QuerySet,
    pub passes: u32,
}

/// Who wants the device to be theirs alone, and how much others had it do meanwhile.
pub(super) struct Alone {
    pub by: ThreadId,
    pub others: u64,
}

/// The work that is not submitted yet.
pub(super) struct Batch {
    device: wgpu::Device,
    queue: wgpu::Queue,
    faults: Arc<Faults>,
    /// Before the encoder, so that it ends first when both are dropped.
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: Option<wgpu::CommandEncoder>,
    ring: wgpu::Buffer,
    align: u64,
    params: Vec<u8>,
    recorded: Vec<Recorded>,
    /// Submissions that are not done.
    pending: Arc<AtomicUsize>,
    groups: HashMap<(u64, SmallVec<[u64; 6]>), wgpu::BindGroup>,
    /// Bytes written to the queue since the last submission.
    pub written: u64,
    pub stamps: Option<Stamps>,
    pub alone: Option<Alone>,
    pub dispatches: u64,
    pub submissions: u64,
}

impl Batch {
    pub fn new(device: &wgpu::Device, queue: &wgpu::Queue, faults: &Arc<Faults>) -> Batch {
        let ring = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: RING,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let align = u64::from(device.limits().min_uniform_buffer_offset_alignment).max(16);
        Batch {
            device: device.clone(),
            queue: queue.clone(),
            faults: faults.clone(),
            pass: None,
            encoder: None,
            ring,
            align,
            params: Vec::new(),
            recorded: Vec::new(),
            pending: Arc::default(),
            groups: HashMap::new(),
            written: 0,
            stamps: None,
            alone: None,
            dispatches: 0,
            submissions: 0,
        }
    }

    /// Adds a dispatch.
    pub fn add(&mut self, launch: &Launch<'_>) -> Result<(), KernelError> {
        let bytes = launch.pipeline.params;
        if self.params.len() as u64 + bytes + self.align > RING {
            self.submit();
        }
        let group = self.group(launch)?;
        let offset = (self.params.len() as u64).next_multiple_of(self.align);
        self.params.resize(offset as usize, 0);
        self.params.extend(launch.params.iter().flat_map(|w| w.to_ne_bytes()));
        self.params.resize((offset + bytes) as usize, 0);
        let uses = launch.buffers.iter().zip(launch.read).zip(launch.written);
        let recorded = Recorded {
            pipeline: launch.pipeline.clone(),
            group,
            offset: offset as u32,
            groups: launch.groups,
            buffers: uses.map(|((h, read), written)| (h.start, *read, *written)).collect(),
            by: std::thread::current().id(),
        };
        let pass = match &mut self.pass {
            Some(pass) => pass,
            None => {
                let encoder = self.encoder.get_or_insert_with(|| new_encoder(&self.device));
                let stamp = self.stamps.as_mut().filter(|s| s.passes < PASSES);
                let timestamp_writes = stamp.map(|s| {
                    s.passes += 1;
                    wgpu::ComputePassTimestampWrites {
                        query_set: &s.set,
                        beginning_of_pass_write_index: Some(s.passes * 2 - 2),
                        end_of_pass_write_index: Some(s.passes * 2 - 1),
                    }
                });
                let how = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
                self.pass.insert(encoder.begin_compute_pass(&how).forget_lifetime())
            }
        };
        dispatch(pass, &recorded);
        // Written anew; what is read as well is as good as it was.
        recorded.buffers.iter().filter(|(_, read, _)| !read).for_each(|b| self.faults.heal(b.0));
        if let Some(alone) = self.alone.as_mut().filter(|a| a.by != recorded.by) {
            alone.others += 1;
        }
        self.recorded.push(recorded);
        self.dispatches += 1;
        let count = self.recorded.len();
        if count >= MOST || count >= SOME && count.is_multiple_of(LOOK) && self.idle() {
            self.submit();
        }
        Ok(())
    }

    /// Whether nothing waits to be submitted.
    pub fn is_empty(&self) -> bool {
        self.encoder.is_none() && self.written == 0
    }

    /// Whether all that was submitted is done.
    pub fn idle(&self) -> bool {
        if self.pending.load(Ordering::Acquire) > 0 {
            // Callbacks come from here.
            let _ = self.device.poll(wgpu::PollType::Poll);
        }
        self.pending.load(Ordering::Acquire) == 0
    }

    fn group(&mut self, launch: &Launch<'_>) -> Result<wgpu::BindGroup, KernelError> {
        let key = (launch.pipeline.id, launch.buffers.iter().map(|h| h.start).collect());
        if let Some(group) = self.groups.get(&key) {
            return Ok(group.clone());
        }
        if self.groups.len() >= GROUPS {
            self.groups.clear();
        }
        let ring = wgpu::BufferBinding {
            buffer: &self.ring,
            offset: 0,
            size: wgpu::BufferSize::new(launch.pipeline.params),
        };
        let mut entries: SmallVec<[wgpu::BindGroupEntry<'_>; 8]> = SmallVec::new();
        entries.push(wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(ring) });
        for (i, h) in launch.buffers.iter().enumerate() {
            let resource = h.buffer.as_entire_binding();
            entries.push(wgpu::BindGroupEntry { binding: i as u32 + 1, resource });
        }
        let how =
            wgpu::BindGroupDescriptor { label: None, layout: &launch.pipeline.layout, entries: &entries };
        let (group, mishap) = caught(&self.device, || self.device.create_bind_group(&how));
        if let Some(mishap) = mishap {
            return Err(KernelError::Failed(mishap.why));
        }
        self.groups.insert(key, group.clone());
        Ok(group)
    }

    /// Whether work that waits uses the buffer at `start`.
    pub fn touches(&self, start: u64) -> bool {
        self.recorded.iter().any(|r| r.buffers.iter().any(|b| b.0 == start))
    }

    /// Lets go of everything that keeps buffers alive.
    pub fn forget_groups(&mut self) {
        self.groups.clear();
    }

    /// Hands everything to the queue.
    pub fn submit(&mut self) -> Option<wgpu::SubmissionIndex> {
        if self.is_empty() {
            return None;
        }
        self.send().unwrap_or_else(|_| self.one_by_one())
    }

    /// Hands everything to the queue, and copies that come after it. Says why if it was the copies that failed.
    pub fn submit_with(
        &mut self,
        copies: &dyn Fn(&mut wgpu::CommandEncoder),
    ) -> Result<Option<wgpu::SubmissionIndex>, KernelError> {
        let record = |batch: &mut Batch| {
            batch.pass = None;
            let encoder = batch.encoder.get_or_insert_with(|| new_encoder(&batch.device));
            copies(encoder);
        };
        let ((), mishap) = caught(&self.device.clone(), || record(self));
        let failed = |mishap: Mishap| KernelError::Failed(mishap.why);
        if let Some(mishap) = mishap {
            return Err(failed(mishap));
        }
        self.send().or_else(|_| {
            // Without what failed before them.
            self.one_by_one();
            record(self);
            self.send().map_err(failed)
        })
    }

    /// Submits what there is. If the driver takes it not, nothing of it has run.
    fn send(&mut self) -> Result<Option<wgpu::SubmissionIndex>, Mishap> {
        let (pass, encoder) = (self.pass.take(), self.encoder.take());
        self.written = 0;
        if !self.params.is_empty() {
            self.queue.write_buffer(&self.ring, 0, &self.params);
        }
        let (commands, mishap) = caught(&self.device, || {
            drop(pass);
            encoder.map(wgpu::CommandEncoder::finish)
        });
        if let Some(mishap) = mishap {
            return Err(mishap);
        }
        let (index, mishap) = caught(&self.device, || self.queue.submit(commands));
        if let Some(mishap) = mishap {
            return Err(mishap);
        }
        self.sent();
        Ok(Some(index))
    }

    fn sent(&mut self) {
        let pending = self.pending.clone();
        pending.fetch_add(1, Ordering::AcqRel);
        self.queue.on_submitted_work_done(move || {
            pending.fetch_sub(1, Ordering::AcqRel);
        });
        self.params.clear();
        self.recorded.clear();
        self.submissions += 1;
    }

    /// Submits each dispatch of a batch that was refused on its own, but those that read what another failed to write.
    #[cold]
    fn one_by_one(&mut self) -> Option<wgpu::SubmissionIndex> {
        // Passes that never ran have no time.
        self.stamps = None;
        let mut last = None;
        for r in std::mem::take(&mut self.recorded) {
            let read = r.buffers.iter().filter(|(_, read, _)| *read).map(|b| b.0);
            let nothing = read.filter_map(|start| self.faults.spoilt(start)).next();
            if let Some(spoilt) = nothing {
                self.faults.spoil(r.writes(), spoilt.why());
                continue;
            }
            let (commands, mut mishap) = caught(&self.device, || {
                let mut encoder = new_encoder(&self.device);
                let how = wgpu::ComputePassDescriptor::default();
                dispatch(&mut encoder.begin_compute_pass(&how), &r);
                encoder.finish()
            });
            if mishap.is_none() {
                let (index, refused) = caught(&self.device, || self.queue.submit([commands]));
                (last, mishap) = (Some(index), refused);
            }
            match mishap {
                Some(mishap) => {
                    if !mishap.memory {
                        r.pipeline.condemn(&mishap.why);
                    }
                    self.faults.fail(r.by, r.writes(), mishap.why);
                }
                None => r.buffers.iter().filter(|(_, read, _)| !read).for_each(|b| self.faults.heal(b.0)),
            }
        }
        self.sent();
        last
    }
}

fn new_encoder(device: &wgpu::Device) -> wgpu::CommandEncoder {
    device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
}

fn dispatch(pass: &mut wgpu::ComputePass<'_>, r: &Recorded) {
    pass.set_pipeline(&r.pipeline.pipeline);
    pass.set_bind_group(0, &r.group, &[r.offset]);
    let [x, y, z] = r.groups;
    pass.dispatch_workgroups(x, y, z);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Gpu, Source};
    use crate::{DeviceOptions, adapters};
    use steersman_core::memory::Block;
    use steersman_core::{Memory, Ran};

    fn gpu() -> Option<Arc<Gpu>> {
        let Some(found) = adapters().into_iter().min_by_key(|f| !f.software) else {
            println!("skipped: no WebGPU adapter");
            return None;
        };
        Some(Gpu::open(&found, DeviceOptions::default()).expect("an adapter that was listed opens"))
    }

    fn block(gpu: &Arc<Gpu>) -> Block {
        let block = gpu.clone().take(256).expect("a small block");
        gpu.upload(&[1; 256], block.address()).expect("an upload");
        block
    }

    /// Enqueues one that writes 7s, by so many workgroups, of kind `which`; `from` is read, but for nothing.
    fn sevens(
        gpu: &Gpu,
        which: u32,
        from: Option<&Block>,
        to: &Block,
        groups: u32,
    ) -> Result<Ran, KernelError> {
        let mut buffers = vec![gpu.find(to.address())?.0];
        let mut text = "@group(0) @binding(1) var<storage, read_write> to_: array<u32>;\n".to_string();
        let mut value = "0x07070707u".to_string();
        if let Some(from) = from {
            buffers.push(gpu.find(from.address())?.0);
            text += "@group(0) @binding(2) var<storage, read> from_: array<u32>;\n";
            value += " + (from_[0] & 0u)";
        }
        let text = format!(
            "{text}@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ to_[i] = {value}; }}"
        );
        let written: SmallVec<[bool; 8]> = (0..buffers.len()).map(|i| i == 0).collect();
        let read: Vec<bool> = written.iter().map(|w| !w).collect();
        let key = smallvec::smallvec![u32::MAX, which, u32::from(from.is_some())];
        let source = Source { text, written: written.clone(), words: 4 };
        let pipeline = gpu.pipeline(&key, || Ok(source))?;
        gpu.launch(&Launch {
            pipeline: &pipeline,
            buffers: &buffers,
            read: &read,
            written: &written,
            params: &[0; 4],
            groups: [groups, 1, 1],
        })
    }

    fn content(gpu: &Gpu, of: &Block) -> Result<u8, KernelError> {
        let mut bytes = [0; 256];
        gpu.download(of.address(), &mut bytes).map(|()| bytes[200])
    }

    #[test]
    fn one_bad_dispatch_spoils_nothing_but_what_comes_of_it_and_nobody_else_is_blamed() {
        let Some(gpu) = gpu() else { return };
        let too_many = gpu.limits().max_compute_workgroups_per_dimension + 1;
        let [before, bad, after, of_bad] = [0; 4].map(|_| block(&gpu));
        sevens(&gpu, 0, None, &before, 1).expect("enqueued");
        sevens(&gpu, 1, None, &bad, too_many).expect("enqueued: drivers say later what they do not take");
        sevens(&gpu, 0, None, &after, 1).expect("enqueued");
        sevens(&gpu, 2, Some(&bad), &of_bad, 1).expect("enqueued");
        std::thread::scope(|s| {
            let other = s.spawn(|| {
                gpu.wait().expect("nothing of this thread's failed");
                assert_eq!(content(&gpu, &before), Ok(7));
                assert_eq!(content(&gpu, &after), Ok(7));
            });
            other.join().expect("it ends well");
        });
        match content(&gpu, &bad) {
            Err(KernelError::Failed(why)) => assert!(why.contains("group size"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert!(
            matches!(content(&gpu, &of_bad), Err(KernelError::Operand(_))),
            "it is not its kernel's fault"
        );
        gpu.wait().expect("it was told already");
        // The kernel that failed is told by itself; others go on, and what is written anew is as good as new.
        assert!(matches!(sevens(&gpu, 1, None, &bad, 1), Err(KernelError::Failed(_))));
        assert!(matches!(sevens(&gpu, 2, Some(&bad), &of_bad, 1), Err(KernelError::Operand(_))));
        sevens(&gpu, 0, None, &bad, 1).expect("enqueued");
        sevens(&gpu, 2, Some(&bad), &of_bad, 1).expect("enqueued");
        assert_eq!((content(&gpu, &bad), content(&gpu, &of_bad)), (Ok(7), Ok(7)));
    }

    #[test]
    fn a_block_of_somebody_elses_failure_is_as_good_as_new() {
        let Some(gpu) = gpu() else { return };
        let bad = block(&gpu);
        let too_many = gpu.limits().max_compute_workgroups_per_dimension + 1;
        sevens(&gpu, 1, None, &bad, too_many).expect("enqueued");
        gpu.wait().expect_err("this thread's failed");
        let old = bad.address();
        drop(bad);
        let again = block(&gpu);
        assert_eq!((again.address(), content(&gpu, &again)), (old, Ok(1)));
    }
}
