//! An open file: reading from it, and who may write its tail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use forebay_base::{Error, Result};
use forebay_env::sync::Mutex;
use forebay_env::{Access, File, FileSystem};
use forebay_store::list::{Allowance, DiskUse, Leaving, Trash};
use forebay_store::metrics::{Cause, Metrics};

use crate::extent::Extent;
use crate::filter::FileFilter;
use crate::store::TreeStore;
use crate::values::NeededValues;

/// The files of a store that some version is named of, so that all versions of one share what is known of its tail.
#[derive(Default)]
pub struct OpenFiles(Mutex<Named>);

#[derive(Default)]
struct Named {
    files: BTreeMap<u64, Weak<TreeFile>>,
    /// Once there are more than this many, those that are gone are sought out.
    files_max: usize,
}

/// A file that some version is named of. It is opened at the first read.
pub(crate) struct TreeFile {
    id: u64,
    path: PathBuf,
    /// For point reads.
    handle: OnceLock<Arc<dyn File>>,
    fs: Arc<dyn FileSystem>,
    trash: Arc<Trash>,
    disk: Arc<DiskUse>,
    tail: Mutex<TailState>,
    filter: FileFilter,
    values: NeededValues,
}

/// What is known of a file's end, and how the file is counted.
#[derive(Default)]
struct TailState {
    /// Up to here the file belongs to versions.
    at: u64,
    /// This much of that is counted as finished.
    counted_bytes: u64,
    /// What a writer left behind that could not be cut off, still counted as being written.
    left_bytes: u64,
    is_claimed: bool,
    /// Something may stand behind that, or come back there after a crash.
    is_frayed: bool,
    is_retired: bool,
}

/// Who reads: which counters that moves.
#[derive(Clone, Copy)]
pub(crate) enum Reader {
    Lookup,
    Job(Cause),
    Check,
}

impl Reader {
    pub(crate) fn count(self, metrics: &Metrics, bytes: usize) {
        match self {
            Self::Lookup => {
                metrics.page_reads.add(1);
                metrics.page_read_bytes.add(bytes as u64);
            }
            Self::Job(cause) => metrics.list_bytes_read[cause as usize].add(bytes as u64),
            Self::Check => {}
        }
    }
}

impl OpenFiles {
    /// The file of this id, which need not be there yet.
    pub(crate) fn named(&self, store: &TreeStore, id: u64) -> Arc<TreeFile> {
        let mut named = self.0.lock();
        if let Some(file) = named.files.get(&id).and_then(Weak::upgrade) {
            return file;
        }
        let file = Arc::new(TreeFile {
            id,
            path: store.path(id),
            handle: OnceLock::new(),
            fs: Arc::clone(&store.fs),
            trash: Arc::clone(&store.trash),
            disk: Arc::clone(&store.disk),
            tail: Mutex::default(),
            filter: FileFilter::default(),
            values: NeededValues::default(),
        });
        named.files.insert(id, Arc::downgrade(&file));
        if named.files.len() > named.files_max {
            named.files.retain(|_, file| file.strong_count() > 0);
            named.files_max = 2 * named.files.len() + 16;
        }
        file
    }
}

impl TreeFile {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn filter(&self) -> &FileFilter {
        &self.filter
    }

    pub(crate) fn values(&self) -> &NeededValues {
        &self.values
    }

    /// See [`Tree::thin_filter`](crate::Tree::thin_filter).
    pub(crate) fn thin_filter(&self, allowed: Allowance) {
        if let Some(filter) = self.filter.get() {
            filter.thin(allowed);
        }
    }

    /// The open file; opened at the first call. What fails may pass, and the next call tries again.
    pub(crate) fn handle(&self) -> Result<&Arc<dyn File>> {
        if let Some(file) = self.handle.get() {
            return Ok(file);
        }
        let file = self.fs.open_read(&self.path, Access::Random).map_err(Error::or_missing)?;
        Ok(self.handle.get_or_init(|| file))
    }

    /// Reads what should be there whole.
    pub(crate) fn read_at(&self, file: &dyn File, at: u64, into: &mut [u8]) -> Result<()> {
        let got = file.read_at(at, into)?;
        if got < into.len() {
            return Err(Error::corruption(&self.path, at + got as u64, "the file ends too early"));
        }
        Ok(())
    }

    /// Reads bytes by themselves, and checks them.
    pub(crate) fn read(&self, extent: Extent, bytes: &mut Vec<u8>) -> Result<()> {
        if extent == Extent::NOWHERE {
            return Err(Error::corruption(&self.path, 0, "a reference leads nowhere"));
        }
        bytes.clear();
        bytes.resize(extent.bytes as usize, 0);
        self.read_at(&**self.handle()?, extent.at, bytes)?;
        self.check(extent, bytes)
    }

    /// Whether bytes that were read are those that were referred to.
    pub(crate) fn check(&self, extent: Extent, bytes: &[u8]) -> Result<()> {
        if extent.vouches_for(self.id, bytes) {
            return Ok(());
        }
        Err(Error::corruption(&self.path, extent.at, "the checksum does not match its reference"))
    }

    /// Notes that a version reaches as far as this: the tail begins behind it.
    pub(crate) fn cover(&self, bytes: u64) {
        let mut tail = self.tail.lock();
        if tail.is_retired {
            self.disk.retire(bytes.saturating_sub(tail.at));
        }
        tail.at = tail.at.max(bytes);
    }

    /// Counts it as far as versions reach: for a file that was there when the database was opened.
    pub(crate) fn found(&self) {
        let mut tail = self.tail.lock();
        debug_assert!(tail.counted_bytes <= tail.at, "what is counted is covered");
        self.disk.found(tail.at - tail.counted_bytes);
        tail.counted_bytes = tail.at;
    }

    /// As far as versions reach that were named.
    pub(crate) fn covered_bytes(&self) -> u64 {
        self.tail.lock().at
    }

    /// Whether somebody may read what stands behind that, who opened the database earlier and had versions there.
    pub(crate) fn may_be_read_behind(&self) -> bool {
        self.trash.strangers().is_any()
            && self.handle().and_then(|file| file.len()).map_or(true, |bytes| bytes > self.covered_bytes())
    }

    /// The file is removed once nobody reads it any more.
    pub(crate) fn retire(&self) {
        let mut tail = self.tail.lock();
        if !std::mem::replace(&mut tail.is_retired, true) {
            self.disk.retire(tail.at);
        }
        drop(tail);
        self.values.end();
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.tail.lock().is_retired
    }
}

impl Drop for TreeFile {
    fn drop(&mut self) {
        let tail = self.tail.lock();
        if tail.is_retired {
            // What is left behind it goes with it.
            self.disk.finish(tail.left_bytes);
            self.disk.retire(tail.left_bytes);
            let bytes = tail.at + tail.left_bytes;
            self.disk.let_go(bytes);
            self.trash.add(Leaving::counted(self.path.clone(), &self.disk, bytes));
        }
    }
}

/// The right to write a file's tail. At most one at a time has it.
pub(crate) struct Claim {
    file: Arc<TreeFile>,
    writer: Arc<dyn File>,
    at: u64,
    written_bytes: u64,
    state: ClaimState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClaimState {
    /// The file is as it was.
    Idle,
    /// Something may be written that no version reaches.
    Writing,
    /// What was written is durable, and a version's.
    Complete,
}

impl Claim {
    /// Claims the tail of a file. What an append that failed or a crash has left there is cut off first, and durably
    /// so: a root among it must never stand behind a later one.
    pub(crate) fn tail_of(file: &Arc<TreeFile>) -> Result<Self> {
        let writer = file.fs.open(&file.path, Access::Direct)?;
        let claim = Self::new(file, writer)?;
        let bytes = claim.writer.len()?;
        if bytes < claim.at {
            return Err(Error::corruption(&file.path, bytes, "the file ends too early"));
        }
        file.tail.lock().is_frayed |= bytes > claim.at;
        if file.tail.lock().is_frayed {
            claim.writer.set_len(claim.at)?;
            claim.writer.sync()?;
            let mut tail = file.tail.lock();
            tail.is_frayed = false;
            file.disk.gave_up(std::mem::take(&mut tail.left_bytes));
        }
        Ok(claim)
    }

    /// Makes a file and claims all of it. It goes again if nothing is completed.
    pub(crate) fn new_file(store: &TreeStore) -> Result<Self> {
        let file = store.files.named(store, store.new_id());
        let writer = store.fs.create(file.path(), Access::Direct)?;
        Self::new(&file, writer)
    }

    fn new(file: &Arc<TreeFile>, writer: Arc<dyn File>) -> Result<Self> {
        let mut tail = file.tail.lock();
        if tail.is_claimed {
            let path = file.path.display();
            return Err(Error::bug(format!("{path} is being appended to: one batch at a time")));
        }
        tail.is_claimed = true;
        let at = tail.at;
        drop(tail);
        Ok(Self { file: Arc::clone(file), writer, at, written_bytes: 0, state: ClaimState::Idle })
    }

    pub(crate) fn file(&self) -> &Arc<TreeFile> {
        &self.file
    }

    /// Where the tail begins.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Writes the tail's next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        debug_assert!(self.state != ClaimState::Complete && self.file.tail.lock().is_claimed);
        self.state = ClaimState::Writing;
        self.writer.write_at(self.at + self.written_bytes, bytes)?;
        self.file.disk.wrote(bytes.len() as u64);
        self.written_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Makes durable what was written; a version reaches as far.
    pub(crate) fn complete(&mut self) -> Result<()> {
        debug_assert_eq!(self.file.covered_bytes(), self.at, "nobody else has appended meanwhile");
        self.writer.sync()?;
        self.file.disk.finish(self.written_bytes);
        self.file.cover(self.at + self.written_bytes);
        self.file.tail.lock().counted_bytes += self.written_bytes;
        self.state = ClaimState::Complete;
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.at == 0 && self.state != ClaimState::Complete {
            self.file.retire();
        }
        let mut tail = self.file.tail.lock();
        debug_assert!(tail.is_claimed, "a claim is given up once");
        tail.is_claimed = false;
        if self.state != ClaimState::Writing {
            return;
        }
        // Of a file that others read, what nobody will find goes at once; durably before the next append.
        tail.is_frayed = true;
        if self.at > 0 && self.writer.set_len(self.at).is_ok() {
            self.file.disk.gave_up(self.written_bytes + std::mem::take(&mut tail.left_bytes));
        } else {
            tail.left_bytes += self.written_bytes;
        }
    }
}
