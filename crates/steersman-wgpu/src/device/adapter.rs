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

/// Every adapter of every backend, quickest kind first: discrete, integrated, virtual, software. A part that several backends show is listed once,
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
    found.sort_by_key(|f| rank(f.adapter.get_info().device_type));
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

/// The lower the quicker parts of a kind mostly are.
fn rank(kind: wgpu::DeviceType) -> u32 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

/// Driver and version. Metal names none: it is a part of the system, and changes with that.
fn driver(info: &wgpu::AdapterInfo) -> String {
    let driver = format!("{} {}", info.driver, info.driver_info);
    match driver.trim() {
        "" => system().unwrap_or_else(|| "unknown".into()),
        known => known.to_string(),
    }
}

/// The system's version, where drivers are part of it.
fn system() -> Option<String> {
    let file = "/System/Library/CoreServices/SystemVersion.plist";
    cfg!(target_os = "macos").then(|| std::fs::read_to_string(file).ok()).flatten().and_then(|t| version(&t))
}

/// `macOS 15.1` of the file that says so.
fn version(plist: &str) -> Option<String> {
    let value = |key: &str| {
        let (_, rest) = plist.split_once(&format!("<key>{key}</key>"))?;
        let (value, _) = rest.split_once("<string>")?.1.split_once("</string>")?;
        Some(value.to_string())
    };
    Some(format!("{} {}", value("ProductName")?, value("ProductBuildVersion")?))
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
        isa.push(format!("vendor-{:04x}", info.vendor));
        isa.push(format!("device-{:04x}", info.device));
        // What kernels go by.
        isa.push(format!("binding-{}", limits.max_storage_buffer_binding_size));
        isa.push(format!("buffer-{}", limits.max_buffer_size));
        isa.push(format!("buffers-{}", limits.max_storage_buffers_per_shader_stage));
        isa.push(format!("uniform-{}", limits.max_uniform_buffer_binding_size));
        isa.push(format!("groups-{}", limits.max_compute_workgroups_per_dimension));
        isa.push(format!("workgroup-{}", limits.max_compute_invocations_per_workgroup));
        isa.push(format!("workgroup-x-{}", limits.max_compute_workgroup_size_x));
        isa.push(format!("workgroup-memory-{}", limits.max_compute_workgroup_storage_size));
        isa.push(format!("subgroup-{}-{}", info.subgroup_min_size, info.subgroup_max_size));
        isa.sort();
        let identity = Identity {
            family: info.backend.to_str().to_string(),
            part: info.name.clone(),
            driver: driver(&info),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quicker_kinds_come_first() {
        use wgpu::DeviceType::*;
        let mut kinds = [Cpu, Other, VirtualGpu, DiscreteGpu, IntegratedGpu];
        kinds.sort_by_key(|k| rank(*k));
        assert_eq!(kinds, [DiscreteGpu, IntegratedGpu, VirtualGpu, Other, Cpu]);
    }

    #[test]
    fn where_no_driver_is_named_the_system_is() {
        let plist = "<dict>\n<key>ProductBuildVersion</key>\n<string>24B83</string>\n\
                     <key>ProductName</key>\n<string>macOS</string>\n</dict>";
        assert_eq!(version(plist).as_deref(), Some("macOS 24B83"));
        assert_eq!(version("<dict/>"), None);
        let info = wgpu::AdapterInfo::new(wgpu::DeviceType::Cpu, wgpu::Backend::Noop);
        assert!(!driver(&info).is_empty());
        let named = wgpu::AdapterInfo { driver: "maker".into(), driver_info: "1.2".into(), ..info };
        assert_eq!(driver(&named), "maker 1.2");
    }
}
