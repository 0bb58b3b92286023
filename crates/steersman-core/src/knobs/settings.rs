//! The values themselves.

use crate::kernel::NumericClass;
use crate::units::Bytes;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A word from a closed list, with its text form.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($name::$variant => $text),+ })
            }
        }

        impl FromStr for $name {
            type Err = ();
            fn from_str(s: &str) -> Result<$name, ()> {
                match s { $($text => Ok($name::$variant),)+ _ => Err(()) }
            }
        }
    };
}

words! {
    /// Which policy decides.
    PolicyKind {
        /// Learned estimates, exploration within the budget.
        Adaptive = "adaptive",
        /// A fixed size from which work goes to threads: the baseline to compare with.
        Threshold = "threshold",
    }
}

words! {
    /// How much is said of the wisdom file. Ordered: later says more.
    LogLevel {
        /// Nothing.
        Off = "off",
        /// What went wrong with it.
        Warn = "warn",
    }
}

/// The value of every knob. The table says what each does.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `wisdom.path`; `None`: the platform's data folder.
    pub wisdom_path: Option<PathBuf>,
    /// `wisdom.enabled`.
    pub wisdom_enabled: bool,
    /// `explore.budget`, a share of the time spent.
    pub explore_budget: f64,
    /// `calibrate.background`.
    pub calibrate_background: bool,
    /// `frozen`.
    pub frozen: bool,
    /// `threads.max`; `None`: every core this process may use.
    pub threads_max: Option<usize>,
    /// `memory.idle_limit`.
    pub memory_idle_limit: Bytes,
    /// `memory.limit`; `None`: what the machine has.
    pub memory_limit: Option<Bytes>,
    /// `numerics`.
    pub numerics: NumericClass,
    /// `policy`.
    pub policy: PolicyKind,
    /// `threshold.elements`; `None`: the measured crossover.
    pub threshold_elements: Option<usize>,
    /// `small_batch`; `None`: no such guard.
    pub small_batch: Option<usize>,
    /// `observe.every`, in microseconds.
    pub observe_every: u32,
    /// `tie_band`, a share of the time.
    pub tie_band: f64,
    /// `drift.enabled`.
    pub drift_enabled: bool,
    /// `log.capacity`, in entries.
    pub log_capacity: usize,
    /// `log.level`.
    pub log_level: LogLevel,
    /// `blas.path`; `None`: the usual places.
    pub blas_path: Option<PathBuf>,
    /// `webgpu.enabled`.
    pub webgpu_enabled: bool,
    /// `webgpu.software`.
    pub webgpu_software: bool,
    /// `webgpu.adapters`: patterns of adapter names; none: all.
    pub webgpu_adapters: Vec<String>,
    /// `webgpu.memory_limit`; `None`: what the adapter allows.
    pub webgpu_memory_limit: Option<Bytes>,
    /// `disable`: patterns of kernel names.
    pub disable: Vec<String>,
    /// `force`: a kernel's name.
    pub force: Option<String>,
    /// `weigh_all`.
    pub weigh_all: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            wisdom_path: None,
            wisdom_enabled: true,
            explore_budget: 0.01,
            calibrate_background: true,
            frozen: false,
            threads_max: None,
            memory_idle_limit: Bytes(1 << 30),
            memory_limit: None,
            numerics: NumericClass::Reassociated,
            policy: PolicyKind::Adaptive,
            threshold_elements: None,
            small_batch: None,
            observe_every: 500,
            tie_band: 0.02,
            drift_enabled: true,
            log_capacity: 4096,
            log_level: LogLevel::Warn,
            blas_path: None,
            webgpu_enabled: true,
            webgpu_software: true,
            webgpu_adapters: Vec::new(),
            webgpu_memory_limit: None,
            disable: Vec::new(),
            force: None,
            weigh_all: false,
        }
    }
}
