//! Buffers that the host can read, kept for the next download.

use std::sync::Mutex;

/// Downloads go through pieces of at most this many bytes.
pub(super) const PIECE: u64 = 16 << 20;

/// Bytes kept between downloads at most.
const KEPT: u64 = 2 * PIECE;

/// Buffers to download through.
#[derive(Default)]
pub(super) struct Staging(Mutex<Vec<wgpu::Buffer>>);

impl Staging {
    /// A buffer of at least `bytes`, which must be at most [`PIECE`].
    pub fn take(&self, device: &wgpu::Device, bytes: u64) -> wgpu::Buffer {
        let size = bytes.next_power_of_two().clamp(4096, PIECE);
        let mut kept = self.0.lock().unwrap_or_else(|e| e.into_inner());
        match kept.iter().position(|b| b.size() == size) {
            Some(i) => kept.swap_remove(i),
            None => device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
        }
    }

    /// Keeps a buffer that is not mapped any more.
    pub fn keep(&self, buffer: wgpu::Buffer) {
        let mut kept = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if kept.iter().map(wgpu::Buffer::size).sum::<u64>() + buffer.size() <= KEPT {
            kept.push(buffer);
        }
    }
}
