//! What a copy of the database is made of. Files that are there already are left to the caller, since none of their
//! bytes below the length that the copy has of them ever changes. The rest is made: the log's tail, of which buffers in
//! memory are the image, and a manifest of the moment. The superblock comes last, so that an unfinished copy is not a
//! database.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_base::limits::STEP_BYTES;
use forebay_base::{Error, Result, planted};
use forebay_env::{Access, File, FileSystem};
use forebay_layouts::DataFile;
use forebay_store::log::frame;
use forebay_store::manifest::{AppendError, Edit, KeyFile, Manifest, Snapshot};
use forebay_store::{WriteBuffer, names};

use crate::history::History;
use crate::versions::{Pin, State, View};

/// What a file of a copy is that was there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PartKind {
    List,
    /// The front of one, to which the database appends.
    Tree,
    Values,
    /// A segment of the log that is flushed, and needed yet.
    Segment,
}

/// A file of a copy that was there already, or the front of one.
pub(crate) struct Part {
    pub(crate) kind: PartKind,
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// With name and length it tells this from what any other copy of the database has, of lists and trees.
    pub(crate) digest: Option<u32>,
}

/// What was copied.
pub(crate) struct Copied {
    pub(crate) last_sequence: u64,
    /// The files that were made for it: names and lengths.
    pub(crate) made: Vec<(String, u64)>,
}

impl History {
    /// Makes a copy of this moment in a directory that is there, and empty but for its lock. `place` is shown each file of
    /// the database that is there already; until this returns none of them goes.
    pub(crate) fn copy_to(
        &self,
        target: &Path,
        place: &mut dyn FnMut(&Part) -> Result<()>,
    ) -> Result<Copied> {
        let (fs, log) = (&*self.context.env.fs, self.context.log()?);
        // The manifest's low-water mark and the view must be of one moment.
        let (view, snapshot, segments) = {
            let version_set = self.versions.lock();
            let view = self.versions.view();
            // A copy begins without savepoints, whose files it would have to hold, too.
            let mut snapshot = Snapshot { savepoints: Vec::new(), ..version_set.snapshot_of(&view.state) };
            if view.state.expires() {
                // What has expired here has in the copy.
                snapshot.clock_milliseconds = self.context.env.clock.unix_milliseconds();
            }
            // What is kept for its changes alone stays behind.
            snapshot.log.kept = snapshot.log.low;
            // Opened as a database it goes its own way; as a follower, that of this one.
            let lineage = &mut snapshot.feed.lineage;
            lineage.is_copy |= !lineage.lines.is_empty();
            // They may be more than the manifest knows of as flushed, and so not durable yet.
            self.versions.sync_retained(&version_set.log)?;
            let needed = version_set.retained.range(snapshot.log.low.0..);
            let segments: Vec<_> = needed.map(|(_, held)| (Arc::clone(&held.file), held.bytes)).collect();
            (view, snapshot, segments)
        };
        let mut made = Vec::new();
        let last_sequence = self.write_buffers_to(target, &view, snapshot.log.flushed.1, &mut made)?;
        debug_assert!(last_sequence <= log.last_sequence(), "what is copied was accepted");
        // To copy files may take long: it holds them as a snapshot does, and no buffer.
        let active = WriteBuffer::never_filled();
        let state = Arc::new(State { active, sealed: Vec::new(), ..State::clone(&view.state) });
        drop(view);
        let _pin = Pin::new(&self.versions, &state);
        for (segment, bytes) in &segments {
            place(&part(fs, PartKind::Segment, &segment.path, *bytes, None)?)?;
        }
        self.values_of(&state)?.iter().try_for_each(&mut *place)?;
        files_of(fs, &state)?.iter().try_for_each(place)?;
        // A follower that begins with it is not ahead of this database after a crash.
        let is_followed = !snapshot.feed.lineage.lines.is_empty();
        log.sync_to(if is_followed { last_sequence } else { snapshot.log.flushed.1 })?;
        let id = snapshot.next_id;
        let snapshot = Snapshot { next_id: id + 1, ..snapshot };
        let manifest = Manifest::create(fs, target, id, &Edit::Snapshot(snapshot), Arc::default());
        let manifest = manifest.map_err(AppendError::into_cause)?;
        let current = manifest.current(Some(manifest.closed(last_sequence)));
        current.write(fs, target).map_err(AppendError::into_cause)?;
        let mut roots = vec![names::CURRENT, names::SUPERBLOCK, names::SUPERBLOCK_SPARE];
        if self.context.superblock.is_encrypted {
            // By now nothing else is encrypted for the copy, so it has all keys that were used.
            let keys = KeyFile::read(fs, &self.context.dir)?;
            keys.write(fs, target).map_err(AppendError::into_cause)?;
            roots.extend([names::KEYS, names::KEYS_SPARE]);
        }
        self.context.superblock.write(fs, target)?;
        let roots: Vec<PathBuf> = roots.into_iter().map(|root| target.join(root)).collect();
        for path in roots.iter().map(|root| &**root).chain([manifest.path()]) {
            made.push((name_of(path), fs.open_read(path, Access::Buffered)?.len()?));
        }
        Ok(Copied { last_sequence, made })
    }

    /// The value files that lists have pointers to.
    fn values_of(&self, state: &State) -> Result<Vec<Part>> {
        let fs = &*self.context.env.fs;
        let files: Vec<DataFile> = state.files().collect();
        let needed: BTreeMap<u64, u64> =
            files.iter().flat_map(|file| file.value_files()).map(|file| (file.id(), file.bytes())).collect();
        let path = |id| names::values(&self.context.dir, id);
        needed.into_iter().map(|(id, bytes)| part(fs, PartKind::Values, &path(id), bytes, None)).collect()
    }

    /// Writes a view's buffers as segments. Returns the number of their last record.
    fn write_buffers_to(
        &self,
        target: &Path,
        view: &View,
        flushed: u64,
        made: &mut Vec<(String, u64)>,
    ) -> Result<u64> {
        let fs = &*self.context.env.fs;
        let mut last_sequence = flushed;
        for (buffer, bytes) in view.buffers().rev() {
            debug_assert_eq!(
                buffer.first_sequence(),
                last_sequence + 1,
                "buffers number on from what is flushed"
            );
            let image = &buffer.bytes()[..bytes];
            let path = names::log(target, buffer.segment());
            // What is there already may be a file of the database itself, by another name.
            let file = fs.create(&path, Access::Foreign)?;
            frame::write(&*file, self.context.superblock.log_secret, buffer.segment(), 0, image)?;
            if !planted::is("checkpoint-not-synced") {
                file.sync()?;
            }
            made.push((name_of(&path), bytes as u64));
            last_sequence += frame::records_of(image);
        }
        Ok(last_sequence)
    }
}

/// A file as it is stored. Of one that is encrypted the digest tells how, too: what is in it does not tell which bytes
/// it has, and nobody is told of what is in it.
fn part(
    fs: &dyn FileSystem,
    kind: PartKind,
    path: &Path,
    shown_bytes: u64,
    digest: Option<u32>,
) -> Result<Part> {
    let (bytes, mut digest) = (fs.stored_bytes(path, shown_bytes), digest);
    if let Some(digest) = &mut digest {
        match fs.encrypted_as(path) {
            Ok(encrypted) => *digest ^= encrypted.map_or(0, |(_, sum)| sum),
            // It is copied as it is, like any other damaged file.
            Err(error) if error.is_corruption() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Part { kind, path: path.to_path_buf(), name: name_of(path), bytes, digest })
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The lists and trees.
fn files_of(fs: &dyn FileSystem, state: &State) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for table in state.tables.values() {
        // Parts of a tree's file may be of several versions: the longest has all that the others have.
        let each_tree = planted::is("checkpoint-copies-each-version")
            .then(|| table.version.files().into_iter().filter(|file| matches!(file, DataFile::Tree(_))));
        let files = table.versions().into_values().chain(each_tree.into_iter().flatten());
        for file in files.filter(|file| !file.is_resident()) {
            let digest = Some(file.meta().digest);
            parts.push(match &file {
                DataFile::List(list) => part(fs, PartKind::List, &list.path(), file.bytes(), digest)?,
                DataFile::Tree(tree) => part(fs, PartKind::Tree, tree.path(), tree.total_bytes(), digest)?,
            });
        }
    }
    Ok(parts)
}

/// Hands a range of a file on, step by step, with places from its beginning.
pub(crate) fn pour(
    from: &dyn File,
    range: Range<u64>,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut chunk = vec![0; STEP_BYTES];
    let mut at = range.start;
    while at < range.end {
        let wanted = chunk.len().min((range.end - at) as usize);
        let got = from.read_at(at, &mut chunk[..wanted])?;
        if got == 0 {
            return Err(Error::corruption(from.path(), at, "the file ends too early"));
        }
        take(at - range.start, &chunk[..got])?;
        at += got as u64;
    }
    Ok(())
}

/// Refuses a directory inside of another, however it is spelt. Of its path as much counts as there is.
pub(crate) fn refuse_inside(fs: &dyn FileSystem, dir: &Path, outer: &Path, what: &str) -> Result<()> {
    let there = dir.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty()).chain([Path::new(".")]);
    for ancestor in there {
        if fs.exists(ancestor)? {
            return match fs.absolute(ancestor)?.starts_with(outer) {
                true => {
                    let dir = dir.display();
                    Err(Error::invalid(format!("{dir} is inside {what}; name a directory elsewhere")))
                }
                false => Ok(()),
            };
        }
    }
    Ok(())
}
