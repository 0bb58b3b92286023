//! A home that holds nothing yet, and `steer` in it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder for data, configuration and cache; removed at the end.
pub struct Home {
    dir: PathBuf,
}

/// How a run of `steer` ended.
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Home {
        let unique = format!("steer-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&dir).expect("a temporary folder can be made");
        Home { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Where wisdom is kept in this home.
    pub fn wisdom(&self) -> PathBuf {
        self.dir.join("steersman").join("wisdom.db")
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder can be made");
        std::fs::write(&path, content).expect("a temporary file can be written");
        path
    }

    /// `steer` with these arguments, not yet started.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steer"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("STEERSMAN_") {
                command.env_remove(name);
            }
        }
        command.args(args).current_dir(&self.dir).stdin(std::process::Stdio::null());
        for name in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HOME"] {
            command.env(name, &self.dir);
        }
        // Drivers take a quarter of a second to start, which hundreds of commands would wait for.
        command.env("STEERSMAN_WEBGPU_ENABLED", "false");
        command
    }

    pub fn steer(&self, args: &[&str]) -> Ended {
        ended(self.command(args).output().expect("the binary can be run"))
    }

    pub fn steer_with(&self, args: &[&str], env: &[(&str, &str)]) -> Ended {
        ended(self.command(args).envs(env.iter().copied()).output().expect("the binary can be run"))
    }

    /// The JSON that a command prints; it must end well and print nothing else.
    pub fn json(&self, args: &[&str]) -> Value {
        let mut all = args.to_vec();
        all.push("--json");
        let ended = self.steer(&all);
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
        serde_json::from_str(&ended.out)
            .unwrap_or_else(|e| panic!("{args:?} printed no JSON ({e}): {}", ended.out))
    }

    /// A home that knows a little of this machine. On a busy machine probing alone may use the budget up; the
    /// next try then goes on from there.
    pub fn calibrated() -> Home {
        let home = Home::new();
        for _ in 0..5 {
            let ended = home.steer(&["calibrate", "--quick", "--budget", "700ms", "--json"]);
            let report: Value = serde_json::from_str(&ended.out).expect("a report");
            if report["samples"].as_u64().is_some_and(|n| n > 0) {
                return home;
            }
        }
        panic!("five calibrations took no sample");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub fn ended(output: Output) -> Ended {
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}
