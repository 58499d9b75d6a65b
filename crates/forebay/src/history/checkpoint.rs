//! Checkpoints: copies of the whole, in directories of their own.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use forebay_base::limits::STEP_BYTES;
use forebay_base::{Error, Result, planted};
use forebay_env::{Access, FileSystem, LockMode};
use forebay_layouts::DataFile;
use forebay_store::log::{Log, frame};
use forebay_store::manifest::{AppendError, Edit, Manifest, Snapshot};
use forebay_store::names;

use crate::context::create_dir_durably;
use crate::history::History;
use crate::versions::View;

impl History {
    /// Makes a copy in a new directory: lists linked, trees copied, buffers written as log segments, a manifest of the
    /// moment. The superblock comes last, so that an unfinished copy is not a database.
    pub(crate) fn checkpoint(&self, target: &Path) -> Result<()> {
        let (fs, log) = (&*self.context.env.fs, self.context.log()?);
        // The directories above it that are there.
        for ancestor in
            target.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty()).chain([Path::new(".")])
        {
            if fs.exists(ancestor)? {
                if fs.absolute(ancestor)?.starts_with(&self.context.dir) {
                    let target = target.display();
                    return Err(Error::invalid(format!(
                        "{target} is inside the database; name a directory elsewhere"
                    )));
                }
                break;
            }
        }
        let was_there = fs.exists(target)?;
        if was_there && !fs.list(target)?.is_empty() {
            return Err(Error::invalid(format!("{} is not empty; name a new directory", target.display())));
        }
        let copied = create_dir_durably(fs, target).and_then(|()| self.copy_to(target, log));
        copied.map_err(within_one).map_err(|error| match clear(fs, target, was_there) {
            true => error,
            // As where the database was closed meanwhile.
            false => Error::invalid(format!(
                "{error}; the unfinished copy is in {}: remove it before you try again",
                target.display()
            )),
        })
    }

    fn copy_to(&self, target: &Path, log: &Log) -> Result<()> {
        let fs = &*self.context.env.fs;
        // The manifest's low-water mark and the view must be of one moment.
        let (view, snapshot) = {
            let version_set = self.versions.lock();
            let view = self.versions.view();
            // A copy begins without savepoints, whose files it would have to hold, too.
            let mut snapshot = Snapshot { savepoints: Vec::new(), ..version_set.snapshot_of(&view.state) };
            // What is kept for its changes alone stays behind.
            snapshot.log.kept = snapshot.log.low;
            // They may be more than the manifest knows of as flushed, and so not durable yet.
            self.versions.sync_retained(&version_set.log)?;
            for &segment in version_set.retained.range(snapshot.log.low.0..).map(|(segment, _)| segment) {
                fs.hard_link(&names::log(&self.context.dir, segment), &names::log(target, segment))?;
            }
            (view, snapshot)
        };
        self.link_values(target, &view)?;
        for table in view.state.tables.values() {
            // Parts of a tree's file may be of several versions: the longest has all that the others have.
            let each_tree = planted::is("checkpoint-copies-each-version")
                .then(|| table.version.files().into_iter().filter(|file| matches!(file, DataFile::Tree(_))));
            let files = table.versions().into_values().chain(each_tree.into_iter().flatten());
            for file in files.filter(|file| !file.is_resident()) {
                match &file {
                    DataFile::List(list) => fs.hard_link(&list.path(), &names::list(target, file.id()))?,
                    // It grows here, and in the copy: each has a file of its own.
                    DataFile::Tree(tree) => {
                        let copy = names::tree(target, file.id());
                        copy_front(fs, tree.path(), &copy, tree.total_bytes())?;
                    }
                }
            }
        }
        let mut last_sequence = snapshot.log.flushed.1;
        for (buffer, bytes) in view.buffers().rev() {
            debug_assert_eq!(
                buffer.first_sequence(),
                last_sequence + 1,
                "buffers number on from what is flushed"
            );
            let image = &buffer.bytes()[..bytes];
            let file = fs.create(&names::log(target, buffer.segment()), Access::Buffered)?;
            file.write_at(0, image)?;
            if !planted::is("checkpoint-not-synced") {
                file.sync()?;
            }
            last_sequence += frame::records_of(image);
        }
        debug_assert!(last_sequence <= log.last_sequence(), "what is copied was accepted");
        log.sync_to(snapshot.log.flushed.1)?;
        let id = snapshot.next_id;
        let snapshot = Snapshot { next_id: id + 1, ..snapshot };
        let manifest = Manifest::create(fs, target, id, &Edit::Snapshot(snapshot), Arc::default());
        let manifest = manifest.map_err(AppendError::into_cause)?;
        let current = manifest.current(Some(manifest.closed(last_sequence)));
        current.write(fs, target).map_err(AppendError::into_cause)?;
        drop(fs.lock(&target.join(names::LOCK), LockMode::Exclusive)?);
        self.context.superblock.write(fs, target)
    }

    /// Links the value files that lists of the view have pointers to.
    fn link_values(&self, target: &Path, view: &View) -> Result<()> {
        let files: Vec<DataFile> = view.state.files().collect();
        let shares = files.iter().flat_map(|file| file.value_shares());
        let needed: BTreeSet<u64> = shares.map(|share| share.file).collect();
        needed.into_iter().try_for_each(|id| {
            self.context.env.fs.hard_link(&names::values(&self.context.dir, id), &names::values(target, id))
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

/// Removes what an unfinished copy has made, as far as that goes, so that it can be tried again. `false` where some is
/// left.
fn clear(fs: &dyn FileSystem, target: &Path, was_there: bool) -> bool {
    for name in fs.list(target).unwrap_or_default() {
        let _ = fs.remove(&target.join(name));
    }
    if !was_there {
        let _ = fs.remove_dir(target);
    }
    fs.list(target).is_ok_and(|names| names.is_empty()) || fs.exists(target).is_ok_and(|is_there| !is_there)
}

/// Copies the first bytes of a file, durably.
fn copy_front(fs: &dyn FileSystem, from: &Path, to: &Path, bytes: u64) -> Result<()> {
    let (from_file, to_file) = (fs.open_read(from, Access::Buffered)?, fs.create(to, Access::Buffered)?);
    let mut chunk = vec![0; STEP_BYTES];
    let mut at = 0;
    while at < bytes {
        let wanted = chunk.len().min((bytes - at) as usize);
        let got = from_file.read_at(at, &mut chunk[..wanted])?;
        if got == 0 {
            return Err(Error::corruption(from, at, "the file ends too early"));
        }
        to_file.write_at(at, &chunk[..got])?;
        at += got as u64;
    }
    to_file.sync()
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
