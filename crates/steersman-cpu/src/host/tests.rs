use super::*;
use crate::isa::Level;

/// The value of a field of a `/proc` file, where there is one.
fn proc(file: &str, field: &str) -> Option<String> {
    proc_field(&fs::read_to_string(file).ok()?, field).map(str::to_owned)
}

#[test]
fn memory_and_release_are_the_ones_proc_names() {
    let host = Host::detect();
    if let Some(total) = proc("/proc/meminfo", "MemTotal") {
        assert_eq!(host.memory.map(|bytes| format!("{} kB", bytes >> 10)), Some(total));
    }
    if let Ok(release) = fs::read_to_string("/proc/sys/kernel/osrelease") {
        assert_eq!(host.os, Some(format!("Linux {}", release.trim())));
    }
}

#[test]
fn usable_cores_do_not_exceed_those_online() {
    let host = Host::detect();
    assert!(host.cores >= 1);
    if let Some(online) = host.logical_cpus {
        assert!(host.cores <= online);
    }
}

#[test]
fn caches_grow_with_their_level() {
    let host = Host::detect();
    assert!(
        host.caches.windows(2).all(|pair| pair[0].level < pair[1].level && pair[0].bytes < pair[1].bytes)
    );
    assert_eq!(host.cache(1), host.caches.first());
    assert_eq!(host.cache(9), None);
}

#[test]
fn what_a_large_cache_keeps_is_not_streamed_past_it() {
    let of = |bytes: &[usize]| {
        let cache =
            |(i, &bytes): (usize, &usize)| Cache { level: i as u8 + 1, bytes, line: None, shared_by: None };
        Host { caches: bytes.iter().enumerate().map(cache).collect(), ..Host::detect() }.stream_from()
    };
    assert_eq!(of(&[]), 1 << 20, "nothing is known");
    assert_eq!(of(&[32 << 10, 512 << 10, 8 << 20]), 2 << 20);
    assert_eq!(of(&[48 << 10, 2 << 20, 260 << 20]), 8 << 20);
}

#[test]
fn the_instruction_sets_agree_with_the_level_kernels_use() {
    let host = Host::detect();
    assert_eq!(host.has("avx512vl"), Level::Avx512.available());
    assert!(Level::Avx2.available() <= host.has("avx2"));
    assert_eq!(isa("fpu amx_bf16 avx amx_tile").iter().filter(|name| name.starts_with("amx-")).count(), 2);
}

#[test]
fn lists_are_counted_and_malformed_ones_are_unknown() {
    assert_eq!(count_list("0\n"), Some(1));
    assert_eq!(count_list("0-3,8,10-11\n"), Some(7));
    for malformed in ["", "a", "3-1", "0-", "0,,1"] {
        assert_eq!(count_list(malformed), None, "{malformed:?}");
    }
}

#[test]
fn only_cores_that_come_in_groups_are_taken_for_such() {
    let of =
        |vendor: &str, family| Host { vendor: Some(vendor.into()), family, ..Host::detect() }.is_grouped();
    assert!(of("AuthenticAMD", Some(0x1a)) && of("HygonGenuine", Some(0x18)));
    assert!(!of("AuthenticAMD", Some(0x15)) && !of("AuthenticAMD", None) && !of("GenuineIntel", Some(6)));
}
