//! The file of a lock, on the machine's file system.
//!
//! **Invariant:** a lock that is given is on the file that has the name, so that it excludes whoever asks by that name.

use std::fs::{self, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use forebay_base::{Error, Result};

use super::held_dirs::HeldDirs;
use super::{FileLock, LockMode};
use crate::process;

/// Locks the file that was opened at `path`; none where another has its name by now, or nothing: it was removed by
/// whoever held it, and a lock on it would exclude nobody.
pub(super) fn lock(
    path: &Path,
    mode: LockMode,
    file: fs::File,
    dirs: &HeldDirs<fs::File>,
) -> Result<Option<FileLock>> {
    let failed = |e: io::Error| Error::io("lock", path, &e);
    let exclusive = mode == LockMode::Exclusive;
    match if exclusive { file.try_lock() } else { file.try_lock_shared() } {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::Locked { path: path.to_path_buf(), process: owner(&file) });
        }
        Err(TryLockError::Error(e)) => return Err(failed(e)),
    }
    let inode = |found: fs::Metadata| (found.dev(), found.ino());
    let named = match fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        found => Some(inode(found.map_err(failed)?)),
    };
    if named != Some(inode(file.metadata().map_err(failed)?)) {
        return Ok(None);
    }
    if !exclusive {
        return Ok(Some(FileLock::new(Locked::new(file, mode))));
    }
    // Before what may fail: it is given up then, whatever children have the same open file.
    let locked = Locked::new(file, mode);
    let hold = |dir: &Path| {
        let opened = fs::File::open(dir).map_err(|e| Error::io("open directory", dir, &e))?;
        Ok(dirs.hold(dir, opened))
    };
    let held = path.parent().map(hold).transpose()?;
    Ok(Some(FileLock::new((locked, held))))
}

/// A lock that is held. Of one that is held alone the file tells which process that is; nothing depends on it.
///
/// A child of a fork has the same open file, and so the same lock: closing the parent's gives up nothing while the child
/// lives, and the child has nothing to give up.
struct Locked {
    file: fs::File,
    mode: LockMode,
    process: u32,
}

impl Locked {
    fn new(file: fs::File, mode: LockMode) -> Self {
        let process = process::id();
        if mode == LockMode::Exclusive {
            let _ = file.set_len(0).and_then(|()| (&file).write_all(format!("{process}\n").as_bytes()));
        }
        Self { file, mode, process }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if self.process != process::id() {
            return;
        }
        if self.mode == LockMode::Exclusive {
            let _ = self.file.set_len(0);
        }
        let _ = self.file.unlock();
    }
}

/// The process that a lock's file tells. One that was killed is not the one that holds it.
fn owner(mut file: &fs::File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let process: u32 = text.trim_end().parse().ok()?;
    let known = Path::new("/proc");
    (!known.join("self").exists() || known.join(process.to_string()).exists()).then_some(process)
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::fs::tests::TempDir;
    use crate::fs::{FileSystem as _, RealFs};

    /// Whoever had opened a lock's file before it was destroyed along with the database got the lock on what had no
    /// name any more, while the next one made a file of that name and locked that.
    #[test]
    fn a_lock_without_its_name_excludes_nobody_and_is_not_given() {
        let dir = TempDir::new();
        let path = dir.0.join("LOCK");
        let (fs, dirs) = (RealFs::new(), HeldDirs::default());
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            let held = fs.lock(&path, LockMode::Exclusive).unwrap();
            let opened = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
            let (waiting, late) = (opened(), opened());
            fs.remove(&path).unwrap();
            drop(held);
            assert!(lock(&path, mode, waiting, &dirs).unwrap().is_none(), "gone: {mode:?}");
            let owner = fs.lock(&path, LockMode::Exclusive).unwrap();
            assert!(lock(&path, mode, late, &dirs).unwrap().is_none(), "another's: {mode:?}");
            assert!(matches!(fs.lock(&path, mode), Err(Error::Locked { .. })));
            drop(owner);
        }
    }
}
