//! Values apart from their keys: long values stay in the log segment that they came in, which stays as a *value file*.
//! Lists have the way to them ([`ValuePointer`]). So a long value is written once, and merges move its pointer.
//!
//! 1. A write buffer is flushed: its segment gets a second name ([`ValueFiles::link`]), under which it stays.
//! 2. Lists are written: long values become pointers ([`Apart`]), and each list notes how much it has in which value
//!    file ([`Pointers`], [`ValueShare`]), for the manifest. So does each version of a tree.
//! 3. Values are read by their pointers ([`ValueFiles::read`]).
//! 4. What nobody needs any more is collected: merges move what lives of a file to another.
//!
//! **Invariant:** a value file is not changed once it has its name, and it is removed only once no list that is there
//! or that somebody reads has pointers to it, and the edit is durable by which the last of them went.

mod apart;
mod pointers;
mod tally;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use forebay_base::{Error, Result, ValuePointer};
use forebay_env::fs::ReadRequest;
use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use forebay_env::{Access, File, FileSystem};

use crate::list::{DiskUse, Leaving, Trash};
use crate::log::frame::{HEADER_BYTES, Header};
use crate::metrics::Metrics;
use crate::names;

pub use apart::Apart;
pub use pointers::Pointers;
pub use tally::Tallied;
use tally::Tally;
use writer::ValueWriter;

/// How much a list has in a value file, as the manifest keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueShare {
    /// The value file's id.
    pub file: u64,
    /// How long it is, in bytes.
    pub file_bytes: u64,
    /// Bytes of the values in it that the list has.
    pub bytes: u64,
}

/// The value files of a database.
pub struct ValueFiles {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    trash: Arc<Trash>,
    metrics: Arc<Metrics>,
    /// Those that are about to be removed.
    leaving: Arc<DiskUse>,
    known: Mutex<BTreeMap<u64, Weak<ValueFile>>>,
    /// Whether some may be emptied.
    is_collecting: AtomicBool,
}

/// A value file. It may not be open yet.
pub struct ValueFile {
    id: u64,
    bytes: u64,
    files: Arc<ValueFiles>,
    open: OnceLock<Arc<dyn File>>,
    /// How many lists have pointers to it that are there: in versions or savepoints, or just written.
    lists: AtomicU64,
    /// Whether it goes once nobody has it and no list is left: not where it was only named, while a manifest was
    /// replayed.
    may_go: AtomicBool,
    /// Whether merges move what lives of it elsewhere.
    is_collected: AtomicBool,
    /// How much lived in it when they began to. That takes its room twice until the file goes.
    moving_bytes: AtomicU64,
    /// Whether it is a segment of the log, once somebody has looked.
    is_segment: OnceLock<bool>,
    /// Whether it stays: a value of it could not be moved, or its lists could not be merged.
    is_stuck: AtomicBool,
}

impl ValueFiles {
    /// Those of a directory.
    pub fn new(
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        trash: &Arc<Trash>,
        metrics: &Arc<Metrics>,
    ) -> Arc<Self> {
        let (fs, dir) = (Arc::clone(fs), dir.to_path_buf());
        let (trash, metrics) = (Arc::clone(trash), Arc::clone(metrics));
        let (known, is_collecting) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { fs, dir, trash, metrics, leaving: Arc::default(), known, is_collecting })
    }

    /// A file that something names.
    pub fn named(self: &Arc<Self>, id: u64, bytes: u64) -> Arc<ValueFile> {
        let mut known = self.known.lock();
        let found = known.get(&id).and_then(Weak::upgrade);
        // One of another length is damage of the manifest: each reads as far as it was told.
        if let Some(file) = found.as_ref().filter(|file| file.bytes == bytes) {
            return Arc::clone(file);
        }
        let file = Arc::new(ValueFile {
            id,
            bytes,
            files: Arc::clone(self),
            open: OnceLock::new(),
            lists: AtomicU64::new(0),
            may_go: AtomicBool::new(false),
            is_collected: AtomicBool::new(false),
            moving_bytes: AtomicU64::new(0),
            is_segment: OnceLock::new(),
            is_stuck: AtomicBool::new(false),
        });
        known.insert(id, Arc::downgrade(&file));
        // If nobody else has that other one any more it goes as it is dropped here, which takes the lock.
        drop(known);
        file
    }

    /// Gives a log segment a second name, under which it is a value file. The name is durable after a sync of the
    /// directory; the segment must be so already, and nobody may write to it any more.
    pub fn link(self: &Arc<Self>, id: u64, segment: u64, bytes: u64) -> Result<Arc<ValueFile>> {
        self.fs.hard_link(&names::log(&self.dir, segment), &self.path(id))?;
        Ok(self.made(id, bytes))
    }

    /// A file that was just made.
    fn made(self: &Arc<Self>, id: u64, bytes: u64) -> Arc<ValueFile> {
        let file = self.named(id, bytes);
        file.may_go.store(true, Ordering::Release);
        file
    }

    /// Bytes of files that are about to be removed.
    pub fn leaving_bytes(&self) -> u64 {
        self.leaving.leaving_bytes()
    }

    fn path(&self, id: u64) -> PathBuf {
        names::values(&self.dir, id)
    }

    /// A file that some list has pointers to.
    pub fn get(&self, id: u64) -> Result<Arc<ValueFile>> {
        let known = self.known.lock().get(&id).and_then(Weak::upgrade);
        known.ok_or_else(|| {
            Error::corruption(&self.path(id), 0, "no list is known to have values in this file")
        })
    }

    /// All files that lists have pointers to, or somebody reads.
    pub fn all(&self) -> Vec<Arc<ValueFile>> {
        self.known.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Whether some files may be emptied: then lists that have values in them are worth writing anew.
    pub fn is_collecting(&self) -> bool {
        self.is_collecting.load(Ordering::Relaxed)
    }

    /// Says whether some are.
    pub fn set_collecting(&self, is_collecting: bool) {
        self.is_collecting.store(is_collecting, Ordering::Relaxed);
    }

    /// The value of a key that a pointer leads to, for a reader. Device reads: one, unless the system has its pages in
    /// memory.
    pub fn read(&self, key: &[u8], pointer: &[u8]) -> Result<Vec<u8>> {
        let value = self.load(key, pointer)?;
        self.count(&value);
        Ok(value)
    }

    /// The same, for background work.
    pub fn load(&self, key: &[u8], pointer: &[u8]) -> Result<Vec<u8>> {
        let (file, pointer) = self.find(pointer)?;
        let mut value = vec![0; pointer.bytes as usize];
        let got = file.open()?.read_at(pointer.offset, &mut value)?;
        self.check(&file, &pointer, key, got, value)
    }

    /// The values of several keys, each with its pointer, read side by side.
    pub fn read_many(&self, wanted: &[(&[u8], &[u8])]) -> Result<Vec<Vec<u8>>> {
        let found = wanted.iter().map(|(_, pointer)| self.find(pointer)).collect::<Result<Vec<_>>>()?;
        let opened = found.iter().map(|(file, _)| file.open()).collect::<Result<Vec<_>>>()?;
        let mut values: Vec<Vec<u8>> =
            found.iter().map(|(_, pointer)| vec![0; pointer.bytes as usize]).collect();
        let read = opened.iter().zip(&found).zip(&mut values);
        let mut requests: Vec<_> = read
            .map(|((file, (_, pointer)), value)| ReadRequest::new(&**file, pointer.offset, value))
            .collect();
        self.fs.read_many(&mut requests);
        let outcomes: Vec<Result<usize>> = requests.into_iter().map(|request| request.outcome).collect();
        let read = found.iter().zip(wanted).zip(outcomes).zip(values);
        read.map(|(((found, (key, _)), outcome), value)| {
            self.check(&found.0, &found.1, key, outcome?, value).inspect(|value| self.count(value))
        })
        .collect()
    }

    /// The file and the place that a pointer leads to.
    fn find(&self, pointer: &[u8]) -> Result<(Arc<ValueFile>, ValuePointer)> {
        let pointer = ValuePointer::decode(pointer).ok_or_else(|| self.malformed())?;
        let file = self.get(pointer.file)?;
        if pointer.offset + pointer.bytes > file.bytes {
            let reason = "a pointer to a value leads behind the end of the file";
            return Err(Error::corruption(&file.path(), pointer.offset, reason));
        }
        Ok((file, pointer))
    }

    fn count(&self, value: &[u8]) {
        self.metrics.page_reads.add(1);
        self.metrics.page_read_bytes.add(value.len() as u64);
    }

    pub(crate) fn malformed(&self) -> Error {
        Error::corruption(&self.dir, 0, "a list has a malformed pointer to a value")
    }

    fn check(
        &self,
        file: &ValueFile,
        pointer: &ValuePointer,
        key: &[u8],
        got: usize,
        value: Vec<u8>,
    ) -> Result<Vec<u8>> {
        if got as u64 != pointer.bytes {
            return Err(Error::corruption(
                &file.path(),
                pointer.offset + got as u64,
                "the file ends too early",
            ));
        }
        if !pointer.fits(key, &value) {
            return Err(Error::corruption(
                &file.path(),
                pointer.offset,
                "the value's checksum does not match",
            ));
        }
        Ok(value)
    }
}

impl ValueFile {
    /// The id that names it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its length, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.files.path(self.id)
    }

    /// Whether lists that are there have pointers to it.
    pub fn is_needed(&self) -> bool {
        self.lists.load(Ordering::Acquire) > 0
    }

    /// Has merges move what they meet of it elsewhere, of which about so much lives.
    pub fn collect(&self, live_bytes: u64) {
        debug_assert!(!self.is_stuck(), "what was given up is not tried again");
        debug_assert!(live_bytes <= self.bytes, "what lives in a file is part of it");
        self.moving_bytes.store(live_bytes, Ordering::Relaxed);
        self.is_collected.store(true, Ordering::Relaxed);
    }

    /// How much lived in it when merges began to move that elsewhere.
    pub fn moving_bytes(&self) -> u64 {
        self.moving_bytes.load(Ordering::Relaxed)
    }

    /// Has merges leave it as it is from now on. It may be chosen again.
    pub fn rest(&self) {
        self.is_collected.store(false, Ordering::Relaxed);
    }

    /// Whether it may be a segment of the log, which has other records beside values. What merges have made has values
    /// that were moved, and nothing else. It is looked at once.
    pub fn may_be_segment(&self) -> bool {
        *self.is_segment.get_or_init(|| {
            let mut front = [0; HEADER_BYTES];
            let looked = self.open().and_then(|file| file.read_at(0, &mut front));
            looked.is_err() || Header::may_begin(&front, self.bytes)
        })
    }

    /// Whether it was given up.
    pub fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// Gives up emptying it, until the database is opened again: a value of it cannot be read, and who asks for it is to
    /// be told why; or nobody can merge the lists that have values in it.
    pub fn give_up(&self) {
        self.is_stuck.store(true, Ordering::Relaxed);
        self.rest();
    }

    /// Whether merges move what they meet of it elsewhere.
    pub fn is_collected(&self) -> bool {
        self.is_collected.load(Ordering::Relaxed)
    }

    /// A list that is there has pointers to it.
    pub fn begin(&self) {
        self.may_go.store(true, Ordering::Release);
        self.lists.fetch_add(1, Ordering::AcqRel);
    }

    /// One that had is there no more. Call only after the edit that drops it is durable.
    pub fn end(&self) {
        let lists = self.lists.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(lists > 0, "a list that goes was there");
    }

    /// Opens the file, where it is closed by now.
    pub fn reopen(&self) -> Result<()> {
        self.open()?.len().map(drop)
    }

    fn open(&self) -> Result<Arc<dyn File>> {
        if let Some(file) = self.open.get() {
            return Ok(Arc::clone(file));
        }
        let opened = self.files.fs.open_read(&self.path(), Access::Random).map_err(Error::or_missing)?;
        Ok(Arc::clone(self.open.get_or_init(|| opened)))
    }
}

impl Drop for ValueFile {
    fn drop(&mut self) {
        let mut known = self.files.known.lock();
        // Somebody may have named it anew meanwhile.
        if known.get(&self.id).is_some_and(|other| other.strong_count() == 0) {
            known.remove(&self.id);
        }
        drop(known);
        if !self.is_needed() && self.may_go.load(Ordering::Acquire) {
            let leaving = &self.files.leaving;
            leaving.found(self.bytes);
            leaving.retire(self.bytes);
            leaving.let_go(self.bytes);
            self.files.trash.add(Leaving::counted(self.path(), leaving, self.bytes));
        }
    }
}

impl std::fmt::Debug for ValueFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueFile({})", self.id)
    }
}
