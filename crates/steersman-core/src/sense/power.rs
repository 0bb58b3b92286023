//! Heat and power.

use super::files::Root;
use super::{Battery, Temperature};

/// Thermal zones, and hardware monitors beside them: on many machines only one of the two is there.
pub(super) fn temperatures(root: &Root) -> Vec<Temperature> {
    let mut found = Vec::new();
    let mut add = |sensor: String, milli: Option<f64>| {
        // Unconnected sensors report absurd values such as -128 or 255 degrees, or nothing.
        if let Some(celsius) = milli.map(|m| m / 1000.0).filter(|c| (-60.0..=150.0).contains(c)) {
            found.push(Temperature { sensor, celsius });
        }
    };
    for zone in root.names("sys/class/thermal", "thermal_zone") {
        let at = |file: &str| format!("sys/class/thermal/{zone}/{file}");
        add(root.text(&at("type")).unwrap_or_else(|| zone.clone()), root.number(&at("temp")));
    }
    for monitor in root.names("sys/class/hwmon", "hwmon") {
        let folder = format!("sys/class/hwmon/{monitor}");
        let chip = root.text(&format!("{folder}/name")).unwrap_or_else(|| monitor.clone());
        for input in root.names(&folder, "temp").iter().filter_map(|n| n.strip_suffix("_input")) {
            let label = root.text(&format!("{folder}/{input}_label")).unwrap_or_else(|| input.to_string());
            add(format!("{chip} {label}"), root.number(&format!("{folder}/{input}_input")));
        }
    }
    found
}

/// How often any core slowed down for heat since the machine started.
pub(super) fn throttle_events(root: &Root) -> Option<u64> {
    let cpus = root.names("sys/devices/system/cpu", "cpu");
    let count = |cpu: &String| {
        let folder = format!("sys/devices/system/cpu/{cpu}/thermal_throttle");
        let core: Option<u64> = root.number(&format!("{folder}/core_throttle_count"));
        let package: Option<u64> = root.number(&format!("{folder}/package_throttle_count"));
        core.or(package).map(|_| core.unwrap_or(0) + package.unwrap_or(0))
    };
    cpus.iter().filter_map(count).reduce(|a, b| a.saturating_add(b))
}

/// The first battery that feeds the machine itself.
pub(super) fn battery(root: &Root) -> Option<Battery> {
    root.names("sys/class/power_supply", "").iter().find_map(|supply| {
        let text = |file: &str| root.text(&format!("sys/class/power_supply/{supply}/{file}"));
        // A mouse's battery is a power supply of scope "Device".
        if text("type")? != "Battery" || text("scope").as_deref() == Some("Device") {
            return None;
        }
        let percent: f64 = text("capacity")?.parse().ok()?;
        let discharging = text("status").as_deref() == Some("Discharging");
        Some(Battery { charge: (percent / 100.0).clamp(0.0, 1.0), discharging })
    })
}
