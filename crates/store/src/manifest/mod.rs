//! The manifest: which tables and lists there are, as a snapshot and the edits since. See
//! `docs/format/manifest.md`.
//!
//! **Invariant:** every edit is durable before it is applied in memory, and replaying the file applies the
//! same edits in the same order.

mod current;
mod edit;
mod encrypted;
mod feed;
mod follow;
mod key_file;
mod records;
mod superblock;
mod table;
#[cfg(test)]
mod tests;
mod version;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_base::checksum::{append, checksum};
use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Error, Result, planted};
use forebay_env::{Access, File, FileSystem};

use crate::leases::Place;
use crate::metrics::Metrics;
use crate::names;

pub use current::{Closed, Current};
pub use edit::{Change, Edit, LogMark, Rollback, Savepoint, Snapshot};
use encrypted::{edit_of, mark, why_malformed};
pub use feed::{Feed, Line, Lineage};
pub use follow::Followed;
pub use key_file::KeyFile;
use records::{read_records, record, record_bytes, resumes_behind, salvage_records};
pub use superblock::Superblock;
pub use table::TableEntry;

/// There is room for this many more bytes of edits at least, also on a disk that has got full: some edits free room.
const TAIL_BYTES: u64 = 64 << 10;
/// Bytes before each edit: checksum and length.
const HEADER_BYTES: usize = 8;

const _: () = assert!(TAIL_BYTES > HEADER_BYTES as u64 && TAIL_BYTES.is_multiple_of(BLOCK_BYTES as u64));

/// The open manifest.
pub struct Manifest {
    id: u64,
    /// What a reader must know, and what of that `CURRENT` says: less where a build that had no such number has written
    /// edits, until there is room to say so.
    version: u32,
    told: u32,
    path: PathBuf,
    file: Arc<dyn File>,
    end: u64,
    /// Up to here it has the disk's blocks, where the file system gives them.
    reserved: u64,
    snapshot_bytes: u64,
    sum: u32,
    /// What stands there that was read and found sound, until it is renewed; and whether something torn follows.
    read: Vec<u8>,
    is_torn: bool,
    /// What stands behind the end, where it tells that the last edit was durable.
    seal: Option<Vec<u8>>,
    metrics: Arc<Metrics>,
}

/// Why an edit could not be made durable.
#[derive(Debug)]
pub enum AppendError {
    /// It is surely not in the file; the database goes on without it.
    Refused(Error),
    /// It may or may not be there: nothing more may be written.
    Unknown(Error),
}

impl AppendError {
    /// What failed.
    pub fn into_cause(self) -> Error {
        match self {
            Self::Refused(error) | Self::Unknown(error) => error,
        }
    }
}

impl Manifest {
    /// Starts manifest `id` with a snapshot. It becomes the database's manifest when `CURRENT` names it.
    pub fn create(
        fs: &dyn FileSystem,
        dir: &Path,
        id: u64,
        snapshot: &Edit,
        metrics: Arc<Metrics>,
    ) -> Result<Self, AppendError> {
        let path = names::manifest(dir, id);
        let file = fs.create(&path, Access::Buffered).map_err(AppendError::Refused)?;
        let mut manifest = Self::at(id, snapshot.version(), path, file, metrics);
        let record = manifest.frame(snapshot).map_err(AppendError::Refused)?;
        let written = manifest.file.write_at(0, &record).and_then(|()| manifest.file.sync());
        written.map_err(|error| {
            // A full disk must not be filled further by every new try.
            let _ = fs.remove(&manifest.path);
            AppendError::Refused(error)
        })?;
        fs.sync_dir(dir).map_err(AppendError::Unknown)?;
        manifest.advance(&record);
        manifest.snapshot_bytes = manifest.end;
        manifest.keep_tail();
        Ok(manifest)
    }

    fn at(id: u64, version: u32, path: PathBuf, file: Arc<dyn File>, metrics: Arc<Metrics>) -> Self {
        let (end, reserved, snapshot_bytes, sum) = (0, 0, 0, 0);
        let (read, is_torn, seal) = (Vec::new(), false, None);
        Self {
            id,
            version,
            told: version,
            path,
            file,
            end,
            reserved,
            snapshot_bytes,
            sum,
            read,
            is_torn,
            seal,
            metrics,
        }
    }

    /// Reads the manifest that `current` names: all edits in order. Only the last record of a database that
    /// was not closed may be torn. Nothing is changed before it is [renewed](Self::renew).
    pub fn open(
        fs: &dyn FileSystem,
        dir: &Path,
        current: &Current,
        writable: bool,
        metrics: Arc<Metrics>,
    ) -> Result<(Self, Vec<Edit>)> {
        let id = current.manifest;
        let path = names::manifest(dir, id);
        let (file, mut bytes) = read_whole(fs, &path, writable)?;
        let (end, edits) = read_records(&bytes, id, &path, file.data_keys())?;
        if let Some(closed) = &current.closed
            && (bytes.len() as u64 != closed.manifest_bytes || append(0, &bytes) != closed.manifest_sum)
        {
            let reason = "the manifest differs from what it was when the database was closed";
            return Err(Error::corruption(&path, end as u64, reason));
        }
        if edits.is_empty() {
            return Err(Error::corruption(&path, 0, "the manifest has no sound snapshot"));
        }
        if resumes_behind(&bytes, id, end) {
            let reason = "an edit is damaged and later ones are sound";
            return Err(Error::corruption(&path, end as u64, reason));
        }
        // Builds that had no such number have written edits that older ones misread.
        let version = edits.iter().map(Edit::version).fold(current.version, u32::max);
        let mut manifest = Self::at(id, version, path, file, metrics);
        manifest.told = current.version;
        manifest.is_torn = end < bytes.len();
        bytes.truncate(end);
        manifest.snapshot_bytes = record_bytes(&bytes, 0) as u64;
        manifest.end = end as u64;
        if current.closed.is_none() {
            manifest.find_seal(&bytes);
        }
        manifest.sum = append(0, &bytes[..manifest.end as usize]);
        if current.closed.is_none() {
            manifest.read = bytes;
        }
        Ok((manifest, edits))
    }

    /// Reads what is sound of a manifest from its front, and where that ends if something is left.
    pub fn salvage(fs: &dyn FileSystem, dir: &Path, id: u64) -> Result<(Vec<Edit>, Option<u64>)> {
        let path = names::manifest(dir, id);
        let (file, bytes) = read_whole(fs, &path, false)?;
        let (end, edits) = salvage_records(&bytes, id, file.data_keys())?;
        if edits.is_empty() {
            let reason = match record(&bytes, id, 0) {
                None => "the manifest has no sound snapshot",
                Some(_) => why_malformed(file.data_keys()),
            };
            return Err(Error::corruption(&path, 0, reason));
        }
        Ok((edits, (end < bytes.len()).then_some(end as u64)))
    }

    /// Cuts off what is torn behind its last sound record.
    pub fn truncate_tail(&mut self) -> Result<()> {
        let sealed_end = self.end + self.seal.as_ref().map_or(0, |seal| seal.len() as u64);
        if std::mem::take(&mut self.is_torn) { self.file.set_len(sealed_end) } else { Ok(()) }
    }

    /// Makes durable what was read. Its last record may be in the system's memory alone: who acts on it, and lets go
    /// of what it says is not needed, must not be ahead of it. What was found sound is written, not what the file has
    /// by now: after a sync that failed the system may forget what it had, and fall back to what the disk has.
    pub fn renew(&mut self) -> Result<()> {
        self.file.write_at(0, &std::mem::take(&mut self.read))?;
        self.file.sync()
    }

    /// Where its last sound record ends, and whether something follows that is none.
    pub fn end(&self) -> (u64, bool) {
        (self.end, self.is_torn)
    }

    /// How far it goes: behind its last edit.
    pub fn place(&self) -> Place {
        Place { manifest: self.id, bytes: self.end }
    }

    /// Its id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What `CURRENT` is to say where this one counts.
    pub fn current(&self, closed: Option<Closed>) -> Current {
        Current { manifest: self.id, version: self.version, closed }
    }

    /// Has `CURRENT` name it, and say what a reader must know. The database is open.
    pub fn tell(&mut self, fs: &dyn FileSystem, dir: &Path) -> Result<(), AppendError> {
        self.current(None).write(fs, dir)?;
        self.told = self.version;
        Ok(())
    }

    /// Has `CURRENT` say what a reader of this edit must know, if that is more than it says, before the edit is
    /// appended. The database is open.
    pub fn announce(&mut self, fs: &dyn FileSystem, dir: &Path, edit: &Edit) -> Result<(), AppendError> {
        let version = self.version.max(edit.version());
        if version == self.told {
            return Ok(());
        }
        let told = Current { version, ..self.current(None) }.write(fs, dir);
        match told {
            // Edits that say so are there without that, and this one may make room.
            Err(AppendError::Refused(_)) if version == self.version => return Ok(()),
            told => told?,
        }
        (self.version, self.told) = (version, version);
        Ok(())
    }

    /// Whether a fresh snapshot would be much shorter: it has grown by this much, and is four times its
    /// snapshot.
    pub fn wants_checkpoint(&self, growth_bytes_min: u64) -> bool {
        self.end > 4 * self.snapshot_bytes && self.end - self.snapshot_bytes > growth_bytes_min
    }

    /// Appends an edit and makes it durable.
    pub fn append(&mut self, edit: &Edit) -> Result<(), AppendError> {
        debug_assert!(edit.version() <= self.version, "older builds were told before");
        let record = self.frame(edit).map_err(AppendError::Refused)?;
        self.seal = None;
        if let Err(error) = self.file.write_at(self.end, &record) {
            // Part of it may be in the file. Cut it off, or a later replay could find it.
            let cut = self.file.set_len(self.end).and_then(|()| self.file.sync());
            self.reserved = 0;
            self.keep_tail();
            return Err(cut.map_or_else(AppendError::Unknown, |()| AppendError::Refused(error)));
        }
        self.file.sync().map_err(AppendError::Unknown)?;
        self.advance(&record);
        self.seal();
        self.keep_tail();
        Ok(())
    }

    /// Puts an edit that changes nothing behind the last one, until the next takes its place. Where it stands the last
    /// one was durable, so it is damaged, and not torn, if it is not sound. Nobody waits for it, and nothing is lost
    /// without it.
    pub fn seal(&mut self) {
        if planted::is("manifest-not-sealed") {
            return;
        }
        let written = self.frame(&mark()).and_then(|seal| self.file.write_at(self.end, &seal).map(|()| seal));
        self.is_torn = written.is_err();
        self.seal = written.ok();
    }

    /// What seals the last edit gives way to the next one after an opening, too: else each would leave one more.
    fn find_seal(&mut self, bytes: &[u8]) {
        let keys = self.file.data_keys();
        let end = self.end.saturating_sub(encrypted::mark_bytes(keys)).max(self.snapshot_bytes) as usize;
        debug_assert!(end <= bytes.len(), "a snapshot is read before what follows it");
        let last = record(bytes, self.id, end).filter(|last| end + last.len() == bytes.len());
        let is_mark =
            |last: &&[u8]| edit_of(last, self.id, end as u64, keys).is_ok_and(|edit| edit == Some(mark()));
        self.seal = last.filter(is_mark).map(<[u8]>::to_vec);
        if self.seal.is_some() {
            self.end = end as u64;
        }
    }

    /// Nothing stands behind its end from here on, durably: what sealed the last edit is one itself.
    pub fn finish(&mut self) -> Result<()> {
        if !self.is_torn && self.seal.is_none() {
            return Ok(());
        }
        self.truncate_tail()?;
        if let Some(seal) = self.seal.take() {
            self.advance(&seal);
        }
        self.file.sync()
    }

    /// Sees to it that there is room for the edits to come, where the disk has some.
    pub fn keep_tail(&mut self) {
        if self.reserved < self.end + TAIL_BYTES && self.file.reserve_tail(2 * TAIL_BYTES) {
            self.reserved = self.end + 2 * TAIL_BYTES;
        }
    }

    /// What `CURRENT` says once the database is closed.
    pub fn closed(&self, last_sequence: u64) -> Closed {
        Closed { manifest_bytes: self.end, manifest_sum: self.sum, last_sequence }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn advance(&mut self, record: &[u8]) {
        debug_assert_eq!(record_bytes(record, 0), record.len(), "the next record begins where this one ends");
        self.end += record.len() as u64;
        self.sum = append(self.sum, record);
        self.metrics.manifest_bytes.add(record.len() as u64);
    }

    fn frame(&self, edit: &Edit) -> Result<Vec<u8>> {
        let mut record = vec![0; HEADER_BYTES];
        edit.encode(&mut record);
        debug_assert_eq!(
            Edit::decode(&record[HEADER_BYTES..]).as_ref(),
            Some(edit),
            "what is written is read"
        );
        encrypted::encrypt(self.file.data_keys(), self.id, self.end, &mut record)?;
        let bytes = (record.len() - HEADER_BYTES) as u32;
        record[4..8].copy_from_slice(&bytes.to_le_bytes());
        let sum = checksum(self.id, self.end, &record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        Ok(record)
    }
}

fn read_whole(fs: &dyn FileSystem, path: &Path, writable: bool) -> Result<(Arc<dyn File>, Vec<u8>)> {
    let file = match writable {
        true => fs.open(path, Access::Buffered)?,
        false => fs.open_read(path, Access::Buffered)?,
    };
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    Ok((file, bytes))
}
