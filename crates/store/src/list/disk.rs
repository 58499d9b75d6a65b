//! What the files of one table take on disk, by what becomes of them. Kept by those who write, retire and remove
//! files, so that it may be asked at any time.

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

    /// This much of a file that is not finished was written.
    pub fn wrote(&self, bytes: u64) {
        self.writing.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What was being written is gone.
    pub fn gave_up(&self, bytes: u64) {
        let writing = self.writing.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(writing >= bytes, "what is given up was written: {bytes} of {writing}");
    }

    /// What was being written is a file.
    pub fn finish(&self, bytes: u64) {
        self.found(bytes);
        self.gave_up(bytes);
    }

    /// This much of a finished file is there.
    pub fn found(&self, bytes: u64) {
        self.finished.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Nothing refers to this much any more, though somebody may read it.
    pub fn retire(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Nobody reads that any more, either.
    pub fn let_go(&self, bytes: u64) {
        self.leaving.fetch_add(bytes, Ordering::Relaxed);
        let held = self.held.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(held >= bytes, "what is let go was held: {bytes} of {held}");
    }

    pub(super) fn remove(&self, bytes: u64) {
        let finished = self.finished.fetch_sub(bytes, Ordering::Relaxed);
        let leaving = self.leaving.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(
            finished >= bytes && leaving >= bytes,
            "{bytes} of {finished}, of which {leaving} leave"
        );
    }
}
