//! What this CPU and its machine are.
//!
//! ```
//! let host = steersman_cpu::host::Host::detect();
//! println!("{} with {} usable cores", host.brand.as_deref().unwrap_or("unknown CPU"), host.cores);
//! if let Some(l2) = host.cache(2) {
//!     println!("{} KiB of L2", l2.bytes >> 10);
//! }
//! ```
//!
//! Everything is read, nothing assumed: what cannot be read is `None` or left out of its list.

mod cache;
#[cfg(target_arch = "x86_64")]
mod cpuid;
mod part;
#[cfg(test)]
mod tests;

use std::fs;

use serde::{Deserialize, Serialize};

pub use cache::Cache;

use part::Part;

/// This machine, as far as it lets itself be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The part's name: `AMD EPYC 9654`, `Intel(R) Xeon(R) Platinum 8592+`. Virtual machines may
    /// shorten it.
    pub brand: Option<String>,
    /// Who made it: `AuthenticAMD`, `GenuineIntel`, `0x41`.
    pub vendor: Option<String>,
    /// Family, as CPUID counts it; the architecture version on ARM.
    pub family: Option<u32>,
    /// Model within the family; the part number on ARM.
    pub model: Option<u32>,
    /// Revision of the model.
    pub stepping: Option<u32>,
    /// Threads worth starting: what affinity and the container's quota allow.
    pub cores: usize,
    /// Logical CPUs that are online, whether this process may use them or not.
    pub logical_cpus: Option<usize>,
    /// Logical CPUs that share one core.
    pub threads_per_core: Option<usize>,
    /// Data and unified caches as the first CPU sees them, smallest level first.
    pub caches: Vec<Cache>,
    /// Bytes of main memory.
    pub memory: Option<u64>,
    /// NUMA nodes.
    pub numa_nodes: Option<usize>,
    /// Operating system and release, which stands for the driver version of other devices.
    pub os: Option<String>,
    /// Instruction sets that matter to kernels, by their usual names.
    pub isa: Vec<String>,
}

impl Host {
    /// Reads what there is to read; takes about a millisecond.
    pub fn detect() -> Host {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let part = Part::detect(&cpuinfo);
        Host {
            brand: part.brand,
            vendor: part.vendor,
            family: part.family,
            model: part.model,
            stepping: part.stepping,
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
            logical_cpus: read_list("/sys/devices/system/cpu/online"),
            threads_per_core: read_list("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"),
            caches: cache::detect(),
            memory: memory(),
            numa_nodes: read_list("/sys/devices/system/node/online"),
            os: os(),
            isa: isa(proc_field(&cpuinfo, "flags").unwrap_or_default()),
        }
    }

    /// The data or unified cache of a level, if there is one.
    pub fn cache(&self, level: u8) -> Option<&Cache> {
        self.caches.iter().find(|cache| cache.level == level)
    }

    /// Bytes of a result from which writing past the caches can be quicker: below, they keep it. A quarter of the last cache,
    /// but no more than of one of 32 MiB: of a larger one a core seldom has its share alone. (`tanh` of 1.3 million f32 takes
    /// a third longer past a cache of that size.)
    pub fn stream_from(&self) -> usize {
        let last = self.caches.iter().max_by_key(|cache| cache.level).map_or(0, |cache| cache.bytes);
        (last / 4).clamp(1 << 20, 8 << 20)
    }

    /// Whether groups of its cores have a last cache and a way to main memory of their own: all of AMD's since its family 17h.
    pub fn is_grouped(&self) -> bool {
        matches!(self.vendor.as_deref(), Some("AuthenticAMD" | "HygonGenuine")) && self.family >= Some(0x17)
    }

    /// Whether an instruction set is present, by the name it has in [`Host::isa`].
    pub fn has(&self, isa: &str) -> bool {
        self.isa.iter().any(|name| name == isa)
    }
}

/// The value of the first `name : value` line.
fn proc_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

/// How many numbers a file with a list such as `0-3,8` names.
fn read_list(path: &str) -> Option<usize> {
    count_list(&fs::read_to_string(path).ok()?)
}

fn count_list(list: &str) -> Option<usize> {
    let count = |range: &str| match range.split_once('-') {
        Some((low, high)) => {
            let (low, high) = (low.parse::<usize>().ok()?, high.parse::<usize>().ok()?);
            Some(high.checked_sub(low)? + 1)
        }
        None => range.parse::<usize>().ok().map(|_| 1),
    };
    list.trim().split(',').map(count).sum()
}

#[cfg(unix)]
fn memory() -> Option<u64> {
    // SAFETY: plain queries; -1 where the system does not know.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(size).ok()?)
}

#[cfg(not(unix))]
fn memory() -> Option<u64> {
    None
}

#[cfg(unix)]
fn os() -> Option<String> {
    // SAFETY: all-zero is a valid value of a struct of byte arrays.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the struct it is given, with strings that end in zero.
    if unsafe { libc::uname(&mut names) } != 0 {
        return None;
    }
    let text = |field: &[libc::c_char]| -> String {
        field.iter().take_while(|&&c| c != 0).map(|&c| char::from(c as u8)).collect()
    };
    Some(format!("{} {}", text(&names.sysname), text(&names.release)))
}

#[cfg(not(unix))]
fn os() -> Option<String> {
    Some(std::env::consts::OS.to_owned())
}

/// Instruction sets the CPU has and the system lets programs use. `flags` is the system's own
/// list; AMX is taken from it because `std` does not detect it.
fn isa(flags: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    macro_rules! detected {
        ($detect:ident: $($name:tt)*) => {
            $(if std::arch::$detect!($name) {
                names.push($name.to_owned());
            })*
        };
    }
    #[cfg(target_arch = "x86_64")]
    detected!(is_x86_feature_detected:
        "sse2" "sse4.1" "sse4.2" "avx" "f16c" "fma" "avx2" "bmi2" "avxvnni" "avx512f" "avx512bw"
        "avx512dq" "avx512vl" "avx512vnni" "avx512bf16" "avx512fp16");
    #[cfg(target_arch = "aarch64")]
    detected!(is_aarch64_feature_detected: "neon" "fp16" "dotprod" "bf16" "i8mm" "sve" "sve2");
    let amx = flags.split_whitespace().filter(|flag| flag.starts_with("amx"));
    names.extend(amx.map(|flag| flag.replace('_', "-")));
    names
}
