//! The table of knobs: one row declares a knob completely.

use super::settings::Settings;
use super::value::Value;

/// What a knob's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobKind {
    /// `true` or `false`.
    Bool,
    /// A number from 0 to 1.
    Share,
    /// A whole number of at least 1.
    Count,
    /// A whole number of at least 1, or `none`.
    OptionalCount,
    /// A size in bytes.
    Size,
    /// A size in bytes, or `none`.
    OptionalSize,
    /// A file's path, or `none`.
    Path,
    /// A kernel's name, or `none`.
    Kernel,
    /// Patterns of kernel names.
    Kernels,
    /// A numeric class.
    Numerics,
    /// A policy's name.
    Policy,
    /// A log level.
    Level,
}

impl KnobKind {
    /// What the knob takes, in words that end "it takes ...".
    pub fn accepts(self) -> &'static str {
        match self {
            KnobKind::Bool => "true or false",
            KnobKind::Share => "a number from 0 to 1",
            KnobKind::Count => "a whole number of at least 1",
            KnobKind::OptionalCount => "a whole number of at least 1, or none",
            KnobKind::Size => "a size in bytes such as 512MiB, 1GB or 1048576",
            KnobKind::OptionalSize => "a size in bytes such as 512MiB, 1GB or 1048576, or none",
            KnobKind::Path => "a path, or none",
            KnobKind::Kernel => "a kernel's name such as cpu/scalar, or none",
            KnobKind::Kernels => "names separated by commas, * standing for anything, or none",
            KnobKind::Numerics => "exact, reassociated or relaxed",
            KnobKind::Policy => "adaptive or threshold",
            KnobKind::Level => "off or warn",
        }
    }
}

/// One knob, declared.
#[derive(Debug)]
pub struct KnobInfo {
    /// `explore.budget`: also its key in the configuration file.
    pub name: &'static str,
    /// `STEERSMAN_EXPLORE_BUDGET`.
    pub env: &'static str,
    /// What its value looks like.
    pub kind: KnobKind,
    /// Its default, as text.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
    pub(super) apply: fn(&mut Settings, &str) -> Result<(), ()>,
    pub(super) show: fn(&Settings) -> String,
}

macro_rules! knob {
    ($field:ident, $name:literal, $env:literal, $kind:ident, $default:literal, $help:literal) => {
        KnobInfo {
            name: $name,
            env: $env,
            kind: KnobKind::$kind,
            default: $default,
            help: $help,
            apply: |s, text| {
                s.$field = Value::parse(text)?;
                Ok(())
            },
            show: |s| Value::show(&s.$field),
        }
    };
}

/// Every knob there is.
#[rustfmt::skip]
pub static TABLE: &[KnobInfo] = &[
    knob!(wisdom_path, "wisdom.path", "STEERSMAN_WISDOM_PATH", Path, "none",
        "file that keeps what was learned; none: wisdom.db in the platform's data folder"),
    knob!(wisdom_enabled, "wisdom.enabled", "STEERSMAN_WISDOM_ENABLED", Bool, "true",
        "keep what was learned on disk; false: forget it at exit"),
    knob!(explore_budget, "explore.budget", "STEERSMAN_EXPLORE_BUDGET", Share, "0.01",
        "most time that may be lost to trying other kernels, as a share of the time spent"),
    knob!(calibrate_background, "calibrate.background", "STEERSMAN_CALIBRATE_BACKGROUND", Bool, "true",
        "calibrate on a low-priority thread on first use"),
    knob!(frozen, "frozen", "STEERSMAN_FROZEN", Bool, "false",
        "decide from stored wisdom alone: no learning, no exploring, the same choice every time"),
    knob!(threads_max, "threads.max", "STEERSMAN_THREADS_MAX", OptionalCount, "none",
        "most threads a kernel may run on; none: every core this process may use"),
    knob!(memory_idle_limit, "memory.idle_limit", "STEERSMAN_MEMORY_IDLE_LIMIT", Size, "1GiB",
        "most memory kept for reuse while nobody uses it"),
    knob!(memory_limit, "memory.limit", "STEERSMAN_MEMORY_LIMIT", OptionalSize, "none",
        "most memory of the host to take; none: what the machine has"),
    knob!(numerics, "numerics", "STEERSMAN_NUMERICS", Numerics, "reassociated",
        "how far results may differ from the reference"),
    knob!(policy, "policy", "STEERSMAN_POLICY", Policy, "adaptive",
        "how a kernel is chosen"),
    knob!(threshold_elements, "threshold.elements", "STEERSMAN_THRESHOLD_ELEMENTS", OptionalCount, "none",
        "size from which the threshold policy uses threads; none: the measured crossover"),
    knob!(small_batch, "small_batch", "STEERSMAN_SMALL_BATCH", OptionalCount, "none",
        "below this many elements never more than one thread; none: as estimated"),
    knob!(observe_every, "observe.every", "STEERSMAN_OBSERVE_EVERY", Count, "500",
        "microseconds of run time on a thread between two measurements"),
    knob!(tie_band, "tie_band", "STEERSMAN_TIE_BAND", Share, "0.02",
        "kernels closer than this count as equal, and the one in use stays"),
    knob!(drift_enabled, "drift.enabled", "STEERSMAN_DRIFT_ENABLED", Bool, "true",
        "watch for the machine becoming faster or slower than learned"),
    knob!(log_capacity, "log.capacity", "STEERSMAN_LOG_CAPACITY", Count, "4096",
        "decisions kept in the log"),
    knob!(log_level, "log.level", "STEERSMAN_LOG_LEVEL", Level, "warn",
        "warn: what goes wrong with the wisdom file is said; off: nothing"),
    knob!(blas_path, "blas.path", "STEERSMAN_BLAS_PATH", Path, "none",
        "BLAS library to load; none: looked for in the usual places"),
    knob!(webgpu_enabled, "webgpu.enabled", "STEERSMAN_WEBGPU_ENABLED", Bool, "true",
        "use WebGPU adapters (Vulkan, Metal, DX12); they are looked for in the background"),
    knob!(webgpu_software, "webgpu.software", "STEERSMAN_WEBGPU_SOFTWARE", Bool, "true",
        "also use adapters that are software on this CPU"),
    knob!(webgpu_adapters, "webgpu.adapters", "STEERSMAN_WEBGPU_ADAPTERS", Kernels, "none",
        "adapters to use, as `nvidia*`; none: all there are"),
    knob!(webgpu_memory_limit, "webgpu.memory_limit", "STEERSMAN_WEBGPU_MEMORY_LIMIT", OptionalSize, "none",
        "most memory to take of each WebGPU adapter; none: what it allows"),
    knob!(disable, "disable", "STEERSMAN_DISABLE", Kernels, "none",
        "kernels that are never used"),
    knob!(force, "force", "STEERSMAN_FORCE", Kernel, "none",
        "kernel that is always used where it is legal"),
    knob!(weigh_all, "weigh_all", "STEERSMAN_WEIGH_ALL", Bool, "false",
        "weigh also kernels that others always outdo, as in narrower vectors"),
];
