//! The platform's folders.

use std::ffi::OsString;
use std::path::PathBuf;

type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// `wisdom.db` in the user's data folder, or `None` if the environment names no such folder.
pub fn wisdom_file(env: Lookup<'_>) -> Option<PathBuf> {
    let base = if cfg!(windows) {
        folder(env, "LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder(env, "XDG_DATA_HOME")
            .or_else(|| Some(folder(env, "HOME")?.join("Library/Application Support")))
    } else {
        folder(env, "XDG_DATA_HOME").or_else(|| Some(folder(env, "HOME")?.join(".local/share")))
    };
    base.map(|b| b.join("steersman").join("wisdom.db"))
}

/// `config.toml` in the user's configuration folder, or `None` if the environment names no such folder.
pub fn config_file(env: Lookup<'_>) -> Option<PathBuf> {
    let base = if cfg!(windows) {
        folder(env, "APPDATA")
    } else {
        folder(env, "XDG_CONFIG_HOME").or_else(|| Some(folder(env, "HOME")?.join(".config")))
    };
    base.map(|b| b.join("steersman").join("config.toml"))
}

/// The XDG rules say that a relative path in these variables is to be ignored.
fn folder(env: Lookup<'_>, name: &str) -> Option<PathBuf> {
    env(name).map(PathBuf::from).filter(|p| p.is_absolute())
}
