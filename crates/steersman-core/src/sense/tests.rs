use super::*;
use std::fs;

struct Fake(tempfile::TempDir);

impl Fake {
    fn new(files: &[(&str, &str)]) -> Fake {
        let fake = Fake(tempfile::tempdir().unwrap());
        files.iter().for_each(|(path, text)| fake.put(path, text));
        fake
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn senses(&self) -> Senses {
        Senses::under(self.0.path().to_path_buf())
    }
}

#[test]
fn a_machine_without_sensors_reports_nothing_rather_than_something() {
    assert_eq!(Fake::new(&[]).senses().read(), State::default());
}

#[test]
fn garbage_in_every_file_reports_nothing() {
    let names = [
        "proc/loadavg",
        "proc/stat",
        "proc/meminfo",
        "sys/class/thermal/thermal_zone0/temp",
        "sys/class/power_supply/BAT0/type",
        "sys/devices/system/node/online",
        "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
    ];
    let fake = Fake::new(&names.map(|n| (n, "¿qué?\n")));
    assert_eq!(fake.senses().read(), State::default());
}

#[test]
fn everything_that_is_there_is_read() {
    let fake = Fake::new(&[
        ("proc/loadavg", "0.52 0.58 0.59 1/389 12345\n"),
        ("proc/meminfo", "MemTotal:  8000 kB\nMemAvailable:    4000 kB\n"),
        ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
        ("sys/class/thermal/thermal_zone0/temp", "45500\n"),
        ("sys/class/thermal/thermal_zone1/temp", "-274000\n"),
        ("sys/class/hwmon/hwmon0/name", "k10temp\n"),
        ("sys/class/hwmon/hwmon0/temp1_label", "Tctl\n"),
        ("sys/class/hwmon/hwmon0/temp1_input", "61000\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
        ("sys/devices/system/node/online", "0-1,4\n"),
        ("sys/class/power_supply/AC/type", "Mains\n"),
        ("sys/class/power_supply/BAT0/type", "Battery\n"),
        ("sys/class/power_supply/BAT0/capacity", "80\n"),
        ("sys/class/power_supply/BAT0/status", "Discharging\n"),
    ]);
    let state = fake.senses().read();
    assert_eq!(state.load1, Some(0.52));
    assert_eq!(state.mem_available, Some(Bytes(4_096_000)));
    let sensors: Vec<(&str, f64)> =
        state.temperatures.iter().map(|t| (t.sensor.as_str(), t.celsius)).collect();
    assert_eq!(sensors, [("x86_pkg_temp", 45.5), ("k10temp Tctl", 61.0)]);
    assert_eq!(state.governor.as_deref(), Some("powersave"));
    assert_eq!(state.numa_nodes, Some(3));
    assert_eq!(state.battery, Some(Battery { charge: 0.8, discharging: true }));
}

#[test]
fn a_control_group_bounds_the_memory() {
    let fake = Fake::new(&[
        ("proc/meminfo", "MemAvailable: 4000 kB\n"),
        ("sys/fs/cgroup/memory.max", "max\n"),
        ("sys/fs/cgroup/memory.current", "1000\n"),
    ]);
    assert_eq!(fake.senses().read().mem_available, Some(Bytes(4_096_000)));
    fake.put("sys/fs/cgroup/memory.max", "5000\n");
    assert_eq!(fake.senses().read().mem_available, Some(Bytes(4000)));
}

#[test]
fn throttling_is_a_count_that_rose_since_the_last_reading() {
    let count = "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count";
    let fake = Fake::new(&[(count, "7\n")]);
    let senses = fake.senses();
    assert_eq!(senses.read().throttled, None);
    assert_eq!(senses.read().throttled, Some(false));
    fake.put(count, "8\n");
    assert_eq!(senses.read().throttled, Some(true));
}

#[cfg(unix)]
#[test]
fn others_share_of_the_cpu_is_what_passed_between_two_readings() {
    let stat = |user: u64, idle: u64| format!("cpu  {user} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 2 3 4\n");
    let fake = Fake::new(&[("proc/stat", &stat(1000, 1000))]);
    let senses = fake.senses();
    assert_eq!(senses.busy_other(), None, "nothing to compare with yet");
    // So long an interval that this process's own time in it does not count.
    fake.put("proc/stat", &stat(1000 + 25_000_000, 1000 + 75_000_000));
    let busy = senses.busy_other().unwrap();
    assert!((busy - 0.25).abs() < 1e-3, "{busy}");
    assert_eq!(senses.busy_other(), Some(busy), "too soon to tell anew");
}
