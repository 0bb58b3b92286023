//! Files written whole or not at all: what was there stays until its successor is complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file beside the one of this name and puts it in its place.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // Behind a link it is the file that is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let there = fs::metadata(&target).ok();
    if there.as_ref().is_some_and(|m| !m.is_file()) {
        // A device or a pipe takes what it is given, and has nothing to lose.
        return fs::write(path, content);
    }
    let beside = beside(&target);
    let mut file = match File::create_new(&beside) {
        // A file that may be written in a folder that may not.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied && there.is_some() => {
            return fs::write(path, content);
        }
        other => other?,
    };
    let written = write(&mut file, content, there.map(|m| m.permissions()));
    drop(file);
    let replaced = written.and_then(|()| fs::rename(&beside, &target));
    if replaced.is_err() {
        // What is half done helps nobody; that it cannot be removed is no news after the error itself.
        let _ = fs::remove_file(&beside);
    }
    replaced
}

fn write(file: &mut File, content: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    // Some file systems find out only now that there is no room.
    file.sync_all()
}

fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("steer-replace-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary folder");
        dir
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let dir = folder("whole");
        let path = dir.join("a.json");
        for content in ["old and long", "new"] {
            replace(&path, content.as_bytes()).expect("it can be written");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), content);
        }
        assert_eq!(fs::read_dir(&dir).expect("the folder").count(), 1);
        assert!(replace(&dir.join("none").join("a.json"), b"").is_err());
        assert!(replace(&dir, b"").is_err(), "a folder is no file");
        let _ = fs::remove_dir_all(dir);
    }

    #[cfg(unix)]
    #[test]
    fn behind_a_link_the_file_itself_is_replaced_with_its_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = folder("link");
        let (file, link) = (dir.join("file"), dir.join("link"));
        fs::write(&file, "old").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
        symlink(&file, &link).expect("linked");
        replace(&link, b"new").expect("it can be written");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "new");
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o640);
        let _ = fs::remove_dir_all(dir);
    }
}
