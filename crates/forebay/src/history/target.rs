//! The directory that a copy of a database is made in: new, or empty.

use std::io::ErrorKind;
use std::path::Path;

use forebay_base::{Error, Result};
use forebay_env::{FileLock, FileSystem, LockMode};
use forebay_store::names;

use crate::context::create_dir_durably;

/// A directory that nobody else copies to, restores to, or opens, as long as this is there.
pub(crate) struct Target<'a> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    was_there: bool,
    _lock: FileLock,
}

impl<'a> Target<'a> {
    /// Makes it, where it is not there, and sees to it that it is empty.
    pub(crate) fn take(fs: &'a dyn FileSystem, dir: &'a Path) -> Result<Self> {
        let was_there = fs.exists(dir)?;
        refuse_filled(fs, dir)?;
        create_dir_durably(fs, dir)?;
        let lock = fs.lock(&dir.join(names::LOCK), LockMode::Exclusive)?;
        refuse_filled(fs, dir)?;
        Ok(Self { fs, dir, was_there, _lock: lock })
    }

    /// Removes what an unfinished copy has made, as far as that goes, so that it can be tried again. `false` where some is
    /// left.
    pub(crate) fn clear(&self) -> bool {
        let Self { fs, dir, .. } = *self;
        let mut there = fs.list(dir).unwrap_or_default();
        // What makes it a database goes first. The lock goes last: whoever makes another one has the directory.
        there.sort_unstable_by_key(|name| (name == names::LOCK, !name.starts_with(names::SUPERBLOCK)));
        there.iter().for_each(|name| drop(fs.remove(&dir.join(name))));
        if !self.was_there {
            let _ = fs.remove_dir(dir);
        }
        fs.list(dir).is_ok_and(|names| names.is_empty()) || fs.exists(dir).is_ok_and(|is_there| !is_there)
    }
}

/// Refuses a directory that has files. A lock alone is what one left that was killed there.
fn refuse_filled(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let names = match fs.exists(dir)? {
        true => fs.list(dir),
        false => Ok(Vec::new()),
    };
    let names = names.map_err(|error| match error {
        Error::Io { kind: ErrorKind::NotADirectory, .. } => {
            Error::invalid(format!("{} is a file; name a new directory", dir.display()))
        }
        error => error,
    })?;
    match names.iter().any(|name| name != names::LOCK) {
        true => Err(Error::invalid(format!("{} is not empty; name a new directory", dir.display()))),
        false => Ok(()),
    }
}
