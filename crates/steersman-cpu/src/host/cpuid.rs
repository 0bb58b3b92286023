//! What an x86 CPU says about itself.

use std::arch::x86_64::{__cpuid_count, CpuidResult};

use super::Cache;
use super::part::Part;

fn cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 CPU has the instruction. (Later compilers know, and need no `unsafe`.)
    #[allow(unused_unsafe)]
    unsafe {
        __cpuid_count(leaf, subleaf)
    }
}

/// Registers as text, in the order given.
fn text(registers: impl IntoIterator<Item = u32>) -> String {
    let bytes: Vec<u8> = registers.into_iter().flat_map(u32::to_le_bytes).take_while(|&b| b != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

fn vendor() -> String {
    let r = cpuid(0, 0);
    text([r.ebx, r.edx, r.ecx])
}

fn brand() -> Option<String> {
    if cpuid(0x8000_0000, 0).eax < 0x8000_0004 {
        return None;
    }
    let leaves = (0x8000_0002..=0x8000_0004u32).map(|leaf| cpuid(leaf, 0));
    Some(text(leaves.flat_map(|r| [r.eax, r.ebx, r.ecx, r.edx]))).filter(|brand| !brand.is_empty())
}

/// Vendor, family, model and stepping.
pub(super) fn part() -> Part {
    let bits = cpuid(1, 0).eax;
    let field = |from: u32, width: u32| (bits >> from) & ((1 << width) - 1);
    let (family, model) = (field(8, 4), field(4, 4));
    // The extended fields count only where the short ones have run out.
    let extended_model = if family == 6 || family == 15 { field(16, 4) << 4 } else { 0 };
    let extended_family = if family == 15 { field(20, 8) } else { 0 };
    Part {
        brand: brand(),
        vendor: Some(vendor()),
        family: Some(family + extended_family),
        model: Some(model + extended_model),
        stepping: Some(field(0, 4)),
    }
}

/// The data and unified caches, for systems that do not list them.
pub(super) fn caches() -> Vec<Cache> {
    let extended = cpuid(0x8000_0000, 0).eax;
    let leaf = match vendor().as_str() {
        "AuthenticAMD" | "HygonGenuine" if extended >= 0x8000_001d => 0x8000_001d,
        "GenuineIntel" if cpuid(0, 0).eax >= 4 => 4,
        _ => return Vec::new(),
    };
    // Six: no CPU lists more, and a faulty hypervisor must not keep us here.
    (0..6)
        .map(|index| cpuid(leaf, index))
        .take_while(|r| r.eax & 31 != 0)
        .filter(|r| r.eax & 31 != 2)
        .map(|r| {
            let line = (r.ebx & 0xfff) + 1;
            let (partitions, ways) = (((r.ebx >> 12) & 0x3ff) + 1, (r.ebx >> 22) + 1);
            Cache {
                level: ((r.eax >> 5) & 7) as u8,
                bytes: line as usize * partitions as usize * ways as usize * (r.ecx as usize + 1),
                line: Some(line as usize),
                shared_by: Some(((r.eax >> 14) & 0xfff) as usize + 1),
            }
        })
        .collect()
}
