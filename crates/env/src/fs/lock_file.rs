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
        return Ok(Some(FileLock::new(file)));
    }
    let hold = |dir: &Path| {
        let opened = fs::File::open(dir).map_err(|e| Error::io("open directory", dir, &e))?;
        Ok(dirs.hold(dir, opened))
    };
    let held = path.parent().map(hold).transpose()?;
    Ok(Some(FileLock::new((Owned::tell(file), held))))
}

/// A lock that is held alone. Its file tells which process that is, for as long as it holds it; nothing depends on it.
struct Owned(fs::File);

impl Owned {
    fn tell(file: fs::File) -> Self {
        let _ =
            file.set_len(0).and_then(|()| (&file).write_all(format!("{}\n", std::process::id()).as_bytes()));
        Self(file)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
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
