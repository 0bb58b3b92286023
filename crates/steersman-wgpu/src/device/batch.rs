//! Work on its way to the queue: dispatches are gathered in one compute pass and submitted together.
//!
//! A dispatch costs the host a few microseconds in a pass and tens of them as a submission of its own.
//! Without anybody waiting a batch goes when it is large enough and the device idle.

use super::pipeline::Pipeline;
use super::pool::Held;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    /// The uniform block.
    pub params: &'a [u32],
    /// Workgroups in each direction.
    pub groups: [u32; 3],
}

/// Device times of passes, while somebody wants them.
pub(super) struct Stamps {
    pub set: wgpu::QuerySet,
    pub passes: u32,
}

/// The work that is not submitted yet.
pub(super) struct Batch {
    /// Before the encoder, so that it ends first when both are dropped.
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: Option<wgpu::CommandEncoder>,
    ring: wgpu::Buffer,
    align: u64,
    params: Vec<u8>,
    count: usize,
    /// Submissions that are not done.
    pending: Arc<AtomicUsize>,
    touched: Vec<u64>,
    groups: HashMap<(u64, SmallVec<[u64; 6]>), wgpu::BindGroup>,
    /// Bytes written to the queue since the last submission.
    pub written: u64,
    pub stamps: Option<Stamps>,
    pub dispatches: u64,
    pub submissions: u64,
}

impl Batch {
    pub fn new(device: &wgpu::Device) -> Batch {
        let ring = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: RING,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let align = u64::from(device.limits().min_uniform_buffer_offset_alignment).max(16);
        Batch {
            pass: None,
            encoder: None,
            ring,
            align,
            params: Vec::new(),
            count: 0,
            pending: Arc::default(),
            touched: Vec::new(),
            groups: HashMap::new(),
            written: 0,
            stamps: None,
            dispatches: 0,
            submissions: 0,
        }
    }

    /// Adds a dispatch; true if the batch should go now.
    pub fn add(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, launch: &Launch<'_>) -> bool {
        let bytes = launch.pipeline.params;
        if self.params.len() as u64 + bytes + self.align > RING {
            self.submit(queue);
        }
        let offset = (self.params.len() as u64).next_multiple_of(self.align);
        self.params.resize(offset as usize, 0);
        self.params.extend(launch.params.iter().flat_map(|w| w.to_ne_bytes()));
        self.params.resize((offset + bytes) as usize, 0);
        let group = self.group(device, launch);
        let pass = match &mut self.pass {
            Some(pass) => pass,
            None => {
                let encoder = self.encoder.get_or_insert_with(|| {
                    device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
                });
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
        pass.set_pipeline(&launch.pipeline.pipeline);
        pass.set_bind_group(0, &group, &[offset as u32]);
        let [x, y, z] = launch.groups;
        pass.dispatch_workgroups(x, y, z);
        self.touched.extend(launch.buffers.iter().map(|h| h.start));
        self.count += 1;
        self.dispatches += 1;
        self.count >= MOST || self.count >= SOME && self.count.is_multiple_of(LOOK) && self.idle(device)
    }

    /// Whether nothing waits to be submitted.
    pub fn is_empty(&self) -> bool {
        self.encoder.is_none() && self.written == 0
    }

    /// Whether all that was submitted is done.
    pub fn idle(&self, device: &wgpu::Device) -> bool {
        if self.pending.load(Ordering::Acquire) > 0 {
            // Callbacks come from here.
            let _ = device.poll(wgpu::PollType::Poll);
        }
        self.pending.load(Ordering::Acquire) == 0
    }

    fn group(&mut self, device: &wgpu::Device, launch: &Launch<'_>) -> wgpu::BindGroup {
        let key = (launch.pipeline.id, launch.buffers.iter().map(|h| h.start).collect());
        if let Some(group) = self.groups.get(&key) {
            return group.clone();
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
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &launch.pipeline.layout,
            entries: &entries,
        });
        self.groups.insert(key, group.clone());
        group
    }

    /// Whether work that waits uses the buffer at `start`.
    pub fn touches(&self, start: u64) -> bool {
        self.touched.contains(&start)
    }

    /// Lets go of everything that keeps buffers alive.
    pub fn forget_groups(&mut self) {
        self.groups.clear();
    }

    /// The encoder with all passes ended, for copies.
    pub fn encoder(&mut self, device: &wgpu::Device) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        self.encoder
            .get_or_insert_with(|| device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default()))
    }

    /// Hands everything to the queue.
    pub fn submit(&mut self, queue: &wgpu::Queue) -> Option<wgpu::SubmissionIndex> {
        self.pass = None;
        let encoder = self.encoder.take();
        if encoder.is_none() && self.written == 0 {
            return None;
        }
        if !self.params.is_empty() {
            queue.write_buffer(&self.ring, 0, &self.params);
        }
        let index = queue.submit(encoder.map(wgpu::CommandEncoder::finish));
        let pending = self.pending.clone();
        pending.fetch_add(1, Ordering::AcqRel);
        queue.on_submitted_work_done(move || {
            pending.fetch_sub(1, Ordering::AcqRel);
        });
        self.params.clear();
        self.touched.clear();
        (self.count, self.written) = (0, 0);
        self.submissions += 1;
        Some(index)
    }
}
