//! What the files of one table take on disk, by what becomes of them. Kept by those who write, retire and remove
//! files, so that it may be asked at any time.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_env::FileSystem;
use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a table's files.
#[derive(Debug, Default)]
pub struct DiskUse {
    writing: AtomicU64,
    finished: AtomicU64,
    held: AtomicU64,
    leaving: AtomicU64,
}

impl DiskUse {
    /// Of files that are not finished yet.
    pub fn writing_bytes(&self) -> u64 {
        self.writing.load(Ordering::Relaxed)
    }

    /// Of files that nothing refers to any more, and that somebody still reads or may read.
    pub fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Of files that are about to be removed.
    pub fn leaving_bytes(&self) -> u64 {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Of all files.
    pub fn bytes(&self) -> u64 {
        self.finished.load(Ordering::Relaxed) + self.writing_bytes()
    }

    /// So much of a file that is not finished was written.
    pub fn wrote(&self, bytes: u64) {
        self.writing.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What was being written is gone.
    pub fn gave_up(&self, bytes: u64) {
        self.writing.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What was being written is a file.
    pub fn finish(&self, bytes: u64) {
        self.found(bytes);
        self.gave_up(bytes);
    }

    /// So much of a finished file is there.
    pub fn found(&self, bytes: u64) {
        self.finished.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Nothing refers to so much any more, though somebody may read it.
    pub fn retire(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Nobody reads that any more, either.
    pub fn let_go(&self, bytes: u64) {
        self.leaving.fetch_add(bytes, Ordering::Relaxed);
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn remove(&self, bytes: u64) {
        self.finished.fetch_sub(bytes, Ordering::Relaxed);
        self.leaving.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A file that is to be removed.
#[derive(Debug)]
pub struct Leaving {
    path: PathBuf,
    /// Its bytes, and where they are counted.
    counted: Option<(Arc<DiskUse>, u64)>,
}

impl Leaving {
    /// A file whose bytes are counted, and [let go](DiskUse::let_go).
    pub fn counted(path: PathBuf, disk: &Arc<DiskUse>, bytes: u64) -> Self {
        Self { path, counted: Some((Arc::clone(disk), bytes)) }
    }
}

impl From<PathBuf> for Leaving {
    fn from(path: PathBuf) -> Self {
        Self { path, counted: None }
    }
}

/// Files that nothing refers to any more, waiting to be removed by background work.
#[derive(Debug, Default)]
pub struct Trash(Mutex<Vec<Leaving>>);

impl Trash {
    /// Adds a file that nobody reads any more.
    pub fn add(&self, file: impl Into<Leaving>) {
        self.0.lock().push(file.into());
    }

    /// Removes a file, now or, where that fails, when the trash is emptied next.
    pub fn remove(&self, fs: &dyn FileSystem, file: impl Into<Leaving>) {
        let file = file.into();
        if fs.remove(&file.path).is_err_and(|error| !error.is_not_found()) {
            return self.add(file);
        }
        if let Some((disk, bytes)) = file.counted {
            disk.remove(bytes);
        }
    }

    /// Removes all that is waiting. Tells whether anything was.
    pub fn empty(&self, fs: &dyn FileSystem) -> bool {
        let waiting = std::mem::take(&mut *self.0.lock());
        let any = !waiting.is_empty();
        waiting.into_iter().for_each(|file| self.remove(fs, file));
        any
    }
}
