//! An open file: reading from it, and who may write its tail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use forebay_base::{Error, Result};
use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::{AtomicBool, Ordering};
use forebay_env::{Access, File, FileSystem};
use forebay_store::list::Trash;
use forebay_store::metrics::{Cause, Metrics};

use crate::extent::Extent;
use crate::store::TreeStore;

/// The files of a store that are open, so that all versions of one share what is known of its tail.
#[derive(Default)]
pub struct OpenFiles(Mutex<BTreeMap<u64, Weak<TreeFile>>>);

/// A file that some version is open of.
pub(crate) struct TreeFile {
    id: u64,
    path: PathBuf,
    /// For point reads.
    file: Arc<dyn File>,
    trash: Arc<Trash>,
    tail: Mutex<TailState>,
    retired: AtomicBool,
}

#[derive(Default)]
struct TailState {
    /// Up to here the file belongs to versions.
    at: u64,
    is_claimed: bool,
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
    /// The file of this id, opened unless it is already.
    pub(crate) fn open(&self, store: &TreeStore, id: u64) -> Result<Arc<TreeFile>> {
        let mut files = self.0.lock();
        if let Some(file) = files.get(&id).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = TreeFile::new(store, id)?;
        files.retain(|_, file| file.strong_count() > 0);
        files.insert(id, Arc::downgrade(&file));
        Ok(file)
    }
}

impl TreeFile {
    fn new(store: &TreeStore, id: u64) -> Result<Arc<Self>> {
        let path = store.path(id);
        let file = store.fs.open_read(&path, Access::Random)?;
        let (trash, retired) = (Arc::clone(&store.trash), AtomicBool::new(false));
        Ok(Arc::new(Self { id, path, file, trash, tail: Mutex::default(), retired }))
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn handle(&self) -> &Arc<dyn File> {
        &self.file
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
        self.read_at(&*self.file, extent.at, bytes)?;
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
        tail.at = tail.at.max(bytes);
    }

    /// The file is removed once nobody reads it any more.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }
}

impl Drop for TreeFile {
    fn drop(&mut self) {
        if self.retired.load(Ordering::Acquire) {
            self.trash.add(self.path.clone());
        }
    }
}

/// The right to write a file's tail. At most one at a time has it.
pub(crate) struct Claim {
    file: Arc<TreeFile>,
    at: u64,
    is_complete: bool,
}

impl Claim {
    /// Claims the tail of a file, of which a version is open. What an append that failed or a crash has left there is
    /// cut off first, and durably so: a root among it must never stand behind a later one.
    pub(crate) fn tail_of(file: &Arc<TreeFile>, fs: &dyn FileSystem) -> Result<(Self, Arc<dyn File>)> {
        let writer = fs.open(&file.path, Access::Direct)?;
        let claim = Self::new(file)?;
        if writer.len()? > claim.at {
            writer.set_len(claim.at)?;
            writer.sync()?;
        }
        Ok((claim, writer))
    }

    /// Makes a file and claims all of it. It goes again if nothing is completed.
    pub(crate) fn new_file(store: &TreeStore) -> Result<(Self, Arc<dyn File>)> {
        let id = store.new_id();
        let writer = store.fs.create(&store.path(id), Access::Direct)?;
        let file = store.files.open(store, id).inspect_err(|_| {
            store.trash.remove(&*store.fs, store.path(id));
        })?;
        Ok((Self::new(&file)?, writer))
    }

    fn new(file: &Arc<TreeFile>) -> Result<Self> {
        let mut tail = file.tail.lock();
        if tail.is_claimed {
            let path = file.path.display();
            return Err(Error::invalid(format!("{path} is being appended to: one batch at a time")));
        }
        tail.is_claimed = true;
        Ok(Self { file: Arc::clone(file), at: tail.at, is_complete: false })
    }

    pub(crate) fn file(&self) -> &Arc<TreeFile> {
        &self.file
    }

    /// Where the tail begins.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// What was written is durable: a version that will [cover](TreeFile::cover) it.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.file.tail.lock().is_claimed = false;
        if self.at == 0 && !self.is_complete {
            self.file.retire();
        }
    }
}
