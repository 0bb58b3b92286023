//! A file for bytes that a driver is to find again. Drivers believe what they are given, so that it is checked here:
//! a sum goes before it, and a file that does not match it is put aside.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use steersman_core::device::fnv1a;

/// What such a file begins with.
const MARK: &[u8; 16] = b"steersman-pipes1";
/// Bytes of mark and sum.
const HEAD: usize = MARK.len() + 8;
/// Bytes of the largest file. Drivers only ever add to what they have; beyond this it starts anew.
const MOST: usize = 64 << 20;

/// The bytes that were written, if they are still those.
pub(super) fn read(path: &Path) -> Option<Vec<u8>> {
    let all = std::fs::read(path).ok()?;
    let bytes = all.get(HEAD..).filter(|bytes| all.starts_with(&head(bytes)));
    if bytes.is_none() {
        // Kept for whoever wants to know; if it cannot be moved, the next save replaces it.
        let _ = std::fs::rename(path, beside(path, "damaged"));
    }
    bytes.map(<[u8]>::to_vec)
}

/// Writes bytes beside the old file, then in its place.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() > MOST {
        return match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        };
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // Several runtimes of one process may save at once.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nth = NEXT.fetch_add(1, Ordering::Relaxed);
    let new = beside(path, &format!("{}-{nth}.tmp", std::process::id()));
    let done =
        std::fs::write(&new, [&head(bytes)[..], bytes].concat()).and_then(|()| std::fs::rename(&new, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    done
}

fn head(bytes: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..MARK.len()].copy_from_slice(MARK);
    head[MARK.len()..].copy_from_slice(&fnv1a(bytes).to_le_bytes());
    head
}

/// The path with a dot and something more.
fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(".");
    name.push(more);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("steersman-kept-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn what_was_written_is_read_and_what_was_changed_is_put_aside() {
        let folder = folder("changed");
        let path = folder.join("pipelines.bin");
        assert_eq!(read(&path), None);
        write(&path, b"what a driver compiled").expect("a folder to write to");
        assert_eq!(read(&path).as_deref(), Some(&b"what a driver compiled"[..]));
        let whole = std::fs::read(&path).expect("the file");
        for damaged in [&whole[..whole.len() - 1], &whole[..3], b"", &[&whole[..], b"!"].concat()] {
            std::fs::write(&path, damaged).expect("a folder to write to");
            assert_eq!(read(&path), None);
            assert!(!path.exists() && beside(&path, "damaged").exists());
        }
        std::fs::remove_dir_all(folder).expect("its own folder");
    }

    #[test]
    fn several_may_write_at_once_and_too_much_starts_anew() {
        let folder = folder("several");
        let path = folder.join("pipelines.bin");
        std::thread::scope(|s| {
            for i in 0..8u8 {
                let path = &path;
                s.spawn(move || (0..50).for_each(|_| write(path, &[i; 5000]).expect("a folder to write to")));
            }
        });
        let read_back = read(&path).expect("one of them, whole");
        assert!(read_back.len() == 5000 && read_back.iter().all(|b| *b == read_back[0]));
        assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1, "nothing else is left");
        write(&path, &vec![0; MOST + 1]).expect("it is removed");
        assert!(!path.exists());
        std::fs::remove_dir_all(folder).expect("its own folder");
    }
}
