//! Checkpoints: copies of the whole, in directories of their own.

use std::io::ErrorKind;
use std::path::Path;

use forebay_base::{Error, Result};
use forebay_env::fs::stored;
use forebay_env::{Access, FileSystem};
use serde::Serialize;

use crate::history::History;
use crate::history::Target;
use crate::history::copy::{Part, PartKind, pour, refuse_inside};

/// What a checkpoint is made of: see [`Database::checkpoint`](crate::Database::checkpoint).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The number of the last record that is in it.
    pub last_sequence: u64,
    /// Its files.
    pub files: Vec<CheckpointFile>,
}

/// A file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct CheckpointFile {
    /// Its name in the checkpoint's directory.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where files of two checkpoints of a database are equal in this, in name and in length, they have the same bytes:
    /// who copies checkpoints elsewhere copies such a file once. `None` for what is made for each checkpoint, which is
    /// short, and for value files, of which nothing is known but their bytes.
    pub digest: Option<u32>,
}

impl CheckpointFile {
    fn of(part: &Part) -> Self {
        Self { name: part.name.clone(), bytes: part.bytes, digest: part.digest }
    }
}

impl History {
    /// Makes a copy in a new directory: lists, value files and segments that are flushed linked, trees copied, and what
    /// is [made for it](Self::copy_to).
    pub(crate) fn checkpoint(&self, target: &Path) -> Result<Checkpoint> {
        let fs = &*self.context.env.fs;
        refuse_inside(fs, target, &self.context.dir, "the database")?;
        let taken = Target::take(fs, target)?;
        let mut files = Vec::new();
        let mut place = |part: &Part| {
            let to = target.join(&part.name);
            match part.kind {
                // It grows here, and in the copy: each has a file of its own.
                PartKind::Tree => copy_front(fs, &part.path, &to, part.bytes)?,
                PartKind::List | PartKind::Values | PartKind::Segment => fs.hard_link(&part.path, &to)?,
            }
            files.push(CheckpointFile::of(part));
            Ok(())
        };
        let copied = self.copy_to(target, &mut place);
        let copied = copied.map(|copied| {
            let made = copied.made.into_iter();
            files.extend(made.map(|(name, bytes)| CheckpointFile { name, bytes, digest: None }));
            Checkpoint { last_sequence: copied.last_sequence, files }
        });
        copied.map_err(within_one).map_err(|error| match taken.clear() {
            true => error,
            // As where the database was closed meanwhile.
            false => Error::invalid(format!(
                "{error}; the unfinished copy is in {}: remove it before you try again",
                target.display()
            )),
        })
    }
}

/// The error of a link from one file system to another, with what to do about it.
fn within_one(error: Error) -> Error {
    match error {
        Error::Io { kind: ErrorKind::CrossesDevices, .. } => Error::invalid(format!(
            "{error}; make the checkpoint on the database's file system, and copy it from there"
        )),
        error => error,
    }
}

/// Copies the first bytes of a file as it is stored, durably.
fn copy_front(fs: &dyn FileSystem, from: &Path, to: &Path, bytes: u64) -> Result<()> {
    let fs = stored(fs);
    let (from, to) = (fs.open_read(from, Access::Buffered)?, fs.create(to, Access::Buffered)?);
    pour(&*from, 0..bytes, &mut |at, bytes| to.write_at(at, bytes))?;
    to.sync()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_copy_to_another_file_system_is_told_where_to_go() {
        let failed =
            |kind| within_one(Error::io("link", Path::new("/mnt/copy/7.list"), &io::Error::from(kind)));
        let told = failed(ErrorKind::CrossesDevices).to_string();
        assert!(told.contains("/mnt/copy/7.list") && told.contains("copy it from there"), "{told}");
        assert!(!failed(ErrorKind::PermissionDenied).to_string().contains("copy it"));
    }
}
