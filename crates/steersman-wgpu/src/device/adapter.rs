//! Which adapters there are.
//!
//! Listing loads drivers (a quarter of a second for a software one) and opens nothing. Where there is no
//! driver, or one that fails, there is no adapter: nothing here panics or returns an error.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use steersman_core::Identity;

/// An adapter that could be opened.
#[derive(Clone)]
pub struct Found {
    /// What it is.
    pub identity: Identity,
    /// Whether it is the CPU in disguise.
    pub software: bool,
    /// Whether its memory is the host's.
    pub shares_memory: bool,
    pub(crate) adapter: wgpu::Adapter,
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Found")
            .field("identity", &self.identity)
            .field("software", &self.software)
            .field("shares_memory", &self.shares_memory)
            .finish_non_exhaustive()
    }
}

/// Every adapter of every backend, quickest kind first. A part that several backends show is listed once,
/// by the backend that comes first of Vulkan, Metal, DX12.
pub fn adapters() -> Vec<Found> {
    let listed = catch_unwind(|| {
        let mut how = wgpu::InstanceDescriptor::new_without_display_handle();
        how.backends = wgpu::Backends::PRIMARY;
        how.flags = wgpu::InstanceFlags::empty();
        let instance = wgpu::Instance::new(how);
        ready(instance.enumerate_adapters(wgpu::Backends::PRIMARY)).unwrap_or_default()
    });
    let mut found: Vec<Found> = listed.unwrap_or_default().into_iter().filter_map(describe).collect();
    found.sort_by_key(|f| f.software);
    let mut seen = Vec::new();
    found.retain(|f| {
        let info = f.adapter.get_info();
        let part = (info.vendor, info.device, info.device_pci_bus_id, info.name);
        let elsewhere = seen.iter().any(|(p, backend)| *p == part && *backend != info.backend);
        seen.push((part, info.backend));
        !elsewhere
    });
    found
}

fn describe(adapter: wgpu::Adapter) -> Option<Found> {
    catch_unwind(AssertUnwindSafe(|| {
        let (info, features, limits) = (adapter.get_info(), adapter.features(), adapter.limits());
        let mut isa: Vec<String> = [
            (wgpu::Features::SHADER_F16, "f16"),
            (wgpu::Features::SHADER_F64, "f64"),
            (wgpu::Features::SUBGROUP, "subgroup"),
            (wgpu::Features::TIMESTAMP_QUERY, "timestamps"),
            (wgpu::Features::PIPELINE_CACHE, "pipeline-cache"),
        ]
        .into_iter()
        .filter(|(f, _)| features.contains(*f))
        .map(|(_, name)| name.to_string())
        .collect();
        isa.push(format!("binding-{}", limits.max_storage_buffer_binding_size));
        isa.push(format!("workgroup-{}", limits.max_compute_invocations_per_workgroup));
        isa.push(format!("workgroup-memory-{}", limits.max_compute_workgroup_storage_size));
        isa.push(format!("subgroup-{}-{}", info.subgroup_min_size, info.subgroup_max_size));
        isa.sort();
        let driver = format!("{} {}", info.driver, info.driver_info);
        let identity = Identity {
            family: info.backend.to_str().to_string(),
            part: info.name.clone(),
            driver: driver.trim().to_string(),
            memory: None,
            parallelism: limits.max_compute_invocations_per_workgroup,
            isa,
        };
        let software = info.device_type == wgpu::DeviceType::Cpu;
        let shares_memory = software || info.device_type == wgpu::DeviceType::IntegratedGpu;
        Found { identity, software, shares_memory, adapter }
    }))
    .ok()
}

/// The result of a future that never waits: native backends answer at once.
pub(super) fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
