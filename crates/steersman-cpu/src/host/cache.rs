//! The caches, from the system's list or else from the CPU.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// One cache that holds data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 for the one next to the core.
    pub level: u8,
    /// Bytes it holds.
    pub bytes: usize,
    /// Bytes in a line.
    pub line: Option<usize>,
    /// Logical CPUs that share it.
    pub shared_by: Option<usize>,
}

/// The first CPU's caches, smallest level first; empty where neither system nor CPU tells.
pub(super) fn detect() -> Vec<Cache> {
    let mut caches = listed(Path::new("/sys/devices/system/cpu/cpu0/cache"));
    #[cfg(target_arch = "x86_64")]
    if caches.is_empty() {
        caches = super::cpuid::caches();
    }
    caches.sort_by_key(|cache| cache.level);
    caches
}

fn listed(folder: &Path) -> Vec<Cache> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| one(&entry.path())).collect()
}

fn one(folder: &Path) -> Option<Cache> {
    let read = |name: &str| Some(fs::read_to_string(folder.join(name)).ok()?.trim().to_owned());
    if !matches!(read("type")?.as_str(), "Data" | "Unified") {
        return None;
    }
    Some(Cache {
        level: read("level")?.parse().ok()?,
        bytes: size(&read("size")?)?,
        line: read("coherency_line_size").and_then(|text| text.parse().ok()),
        shared_by: read("shared_cpu_list").and_then(|list| super::count_list(&list)),
    })
}

/// `48K`, `2M`.
fn size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit_and_nonsense_is_not() {
        assert_eq!(size("48K"), Some(48 << 10));
        assert_eq!(size("2M"), Some(2 << 20));
        assert_eq!(size("512"), Some(512));
        for nonsense in ["", "K", "0K", "many", "99999999999999999999K"] {
            assert_eq!(size(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_lists_no_caches() {
        assert!(listed(Path::new("/nowhere/at/all")).is_empty());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_cpu_and_the_system_agree_on_the_caches() {
        let (from_system, from_cpu) =
            (listed(Path::new("/sys/devices/system/cpu/cpu0/cache")), super::super::cpuid::caches());
        for cache in &from_system {
            // A hypervisor may show fewer levels to CPUID; those it shows must agree.
            if let Some(same) = from_cpu.iter().find(|other| other.level == cache.level) {
                assert_eq!((same.bytes, same.line), (cache.bytes, cache.line), "L{}", cache.level);
            }
        }
    }
}
