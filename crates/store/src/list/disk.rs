//! What the files of one table take on disk, by what becomes of them. Kept by those who write, retire and remove
//! files, so that it may be asked at any time.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::{Error, planted};
use forebay_env::FileSystem;
use forebay_env::fs::Opener;
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

    fn remove(&self, bytes: u64) {
        let finished = self.finished.fetch_sub(bytes, Ordering::Relaxed);
        let leaving = self.leaving.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(
            finished >= bytes && leaving >= bytes,
            "{bytes} of {finished}, of which {leaving} leave"
        );
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

/// What is given back of a file at one go.
const PIECE_BYTES: u64 = 4 << 20;

/// Files that nothing refers to any more, waiting to be removed by background work.
#[derive(Debug, Default)]
pub struct Trash {
    waiting: Mutex<VecDeque<Leaving>>,
    /// Why the last removal failed, if it did.
    trouble: Mutex<Option<Error>>,
    opener: Option<Arc<Opener>>,
}

impl Trash {
    /// For the files of the directory that was opened so. All that reads them keeps this.
    pub fn of(opener: Arc<Opener>) -> Self {
        Self { opener: Some(opener), ..Self::default() }
    }

    /// Whether somebody may read the directory's files who opened it earlier: they may lose their names, but no byte.
    pub fn has_strangers(&self) -> bool {
        let is_planted = planted::is("files-cut-under-readers");
        !is_planted && self.opener.as_ref().is_some_and(|opener| opener.is_second())
    }

    /// Adds a file that nobody reads any more.
    pub fn add(&self, file: impl Into<Leaving>) {
        self.waiting.lock().push_back(file.into());
    }

    /// Removes a file, now or, where that fails, when the trash is emptied next.
    pub fn remove(&self, fs: &dyn FileSystem, file: impl Into<Leaving>) {
        self.try_to_remove(fs, file.into());
    }

    fn try_to_remove(&self, fs: &dyn FileSystem, file: Leaving) -> bool {
        let trouble = fs.remove(&file.path).err().filter(|error| !error.is_not_found());
        let failed = trouble.is_some();
        *self.trouble.lock() = trouble;
        if failed {
            self.add(file);
            return false;
        }
        if let Some((disk, bytes)) = file.counted {
            disk.remove(bytes);
        }
        true
    }

    /// Why files stay that should go, if so.
    pub fn trouble(&self) -> Option<Error> {
        self.trouble.lock().clone()
    }

    /// Removes a piece of what has waited longest. `false` where nothing waits, or where that fails.
    pub fn remove_some(&self, fs: &dyn FileSystem) -> bool {
        let Some(oldest) = self.waiting.lock().pop_front() else { return false };
        if !self.has_strangers() && fs.shorten(&oldest.path, PIECE_BYTES).unwrap_or(false) {
            self.waiting.lock().push_front(oldest);
            return true;
        }
        self.try_to_remove(fs, oldest)
    }

    /// Removes all that is waiting. Tells whether anything was.
    pub fn empty(&self, fs: &dyn FileSystem) -> bool {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        let any = !waiting.is_empty();
        waiting.into_iter().for_each(|file| self.remove(fs, file));
        any
    }
}

#[cfg(test)]
mod tests {
    use forebay_base::Result;
    use forebay_env::Access;
    use forebay_env::fs::{MemoryFs, RealFs};

    use super::*;

    fn make(fs: &dyn FileSystem, path: &std::path::Path, bytes: u64) -> Result<()> {
        fs.create(path, Access::Buffered)?.set_len(bytes)
    }

    #[test]
    fn what_others_of_this_process_may_read_goes_whole() {
        let dir = std::env::temp_dir().join(format!("forebay-strangers-{}", std::process::id()));
        let fs = &*RealFs::new();
        fs.create_dir_all(&dir).unwrap();
        make(fs, &dir.join("long"), 2 * PIECE_BYTES).unwrap();
        let first = Opener::new(fs, &dir);
        let read = fs.open_read(&dir.join("long"), Access::Buffered).unwrap();
        // Another of the same files.
        let trash = Trash::of(Opener::new(&*RealFs::new(), &dir));
        assert!(trash.has_strangers());
        let link = dir.with_extension("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(Trash::of(Opener::new(fs, &link)).has_strangers(), "by another name");
        fs.remove(&link).unwrap();
        trash.add(dir.join("long"));
        assert!(trash.remove_some(fs) && !fs.exists(&dir.join("long")).unwrap());
        assert_eq!(read.len().unwrap(), 2 * PIECE_BYTES);
        drop(first);
        assert!(!trash.has_strangers());
        fs.remove_dir(&dir).unwrap();
    }

    #[test]
    fn files_go_one_by_one_and_large_ones_piece_by_piece() {
        let dir = std::env::temp_dir().join(format!("forebay-trash-{}", std::process::id()));
        let real: Arc<dyn FileSystem> = RealFs::new();
        for (fs, pieces) in [(real, [3, 1, 1]), (MemoryFs::new(), [1, 1, 1])] {
            let fs = &*fs;
            fs.create_dir_all(&dir).unwrap();
            let (trash, disk) = (Trash::default(), Arc::new(DiskUse::default()));
            let names = ["long", "linked", "short"];
            for (name, bytes) in names.into_iter().zip([2 * PIECE_BYTES + 1, 2 * PIECE_BYTES, PIECE_BYTES]) {
                make(fs, &dir.join(name), bytes).unwrap();
                disk.found(bytes);
                disk.retire(bytes);
                disk.let_go(bytes);
                trash.add(Leaving::counted(dir.join(name), &disk, bytes));
            }
            fs.hard_link(&dir.join("linked"), &dir.join("other")).unwrap();
            for (name, pieces) in names.into_iter().zip(pieces) {
                for _ in 0..pieces {
                    assert!(fs.exists(&dir.join(name)).unwrap(), "{name}");
                    assert!(trash.remove_some(fs));
                }
                assert!(!fs.exists(&dir.join(name)).unwrap(), "{name}");
            }
            assert!(!trash.remove_some(fs) && disk.bytes() == 0 && disk.leaving_bytes() == 0);
            let other = fs.open_read(&dir.join("other"), Access::Buffered).unwrap();
            assert_eq!(other.len().unwrap(), 2 * PIECE_BYTES, "who has another name keeps all of it");
            fs.remove(&dir.join("other")).unwrap();
            fs.remove_dir(&dir).unwrap();
        }
    }
}
