//! [`GatedFs`]: another file system, until its gate is closed. From then on it only reads: whoever still holds it, or
//! a file opened by it, changes nothing any more.
//!
//! **Invariant:** once [`close`](GatedFs::close) has returned, no change is under way and none comes.
//!
//! **Invariant:** a file that is opened after that is one of those there were: others may have made some of the same
//! names.

use std::path::Path;
use std::sync::OnceLock;

use forebay_base::{Error, Result};

use super::{Access, File, FileLock, FileSystem, LockMode};
use crate::fs::forward::{forward_file, forward_fs};
use crate::sync::{Arc, RwLock};

/// Fails once the files are not those any more that there were.
type Check = Box<dyn Fn(&dyn FileSystem) -> Result<()> + Send + Sync>;

/// A file system that can be closed to changes.
pub struct GatedFs {
    inner: Arc<dyn FileSystem>,
    gate: Arc<Gate>,
}

/// Held for reading by every change while it is made.
struct Gate {
    is_closed: RwLock<bool>,
    /// Asked of each file that is opened after that.
    check: OnceLock<Check>,
    /// What whoever comes too late is told.
    reason: &'static str,
}

struct GatedFile {
    inner: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl GatedFs {
    /// `inner`, open. Later changes are refused for this reason.
    pub fn new(inner: Arc<dyn FileSystem>, reason: &'static str) -> Arc<Self> {
        Arc::new(Self {
            inner,
            gate: Arc::new(Gate { is_closed: RwLock::new(false), check: OnceLock::new(), reason }),
        })
    }

    /// Refuses all changes from now on. Waits for those that are under way. A file that is opened later is asked for by
    /// its name, so this must pass then: it fails once files of such names may be others.
    pub fn close(&self, check: impl Fn(&dyn FileSystem) -> Result<()> + Send + Sync + 'static) {
        let _ = self.gate.check.set(Box::new(check));
        *self.gate.is_closed.write() = true;
        debug_assert!(self.gate.check.get().is_some(), "what is opened from here on is checked");
    }

    /// The file system behind it, which is as it was.
    pub fn behind(&self) -> &dyn FileSystem {
        &*self.inner
    }

    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(GatedFile { inner, gate: Arc::clone(&self.gate) })
    }
}

impl Gate {
    fn pass<T>(&self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let is_closed = self.is_closed.read();
        match *is_closed {
            true => Err(Error::invalid(self.reason)),
            false => change(),
        }
    }
}

impl File for GatedFile {
    forward_file! { path read_at written_from len will_need wont_need handle }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.gate.pass(|| self.inner.write_at(offset, bytes))
    }

    fn store_at(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.gate.pass(|| self.inner.store_at(offset, bytes))
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.gate.pass(|| self.inner.set_len(bytes))
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.gate.pass(|| self.inner.reserve(bytes))
    }

    fn reserve_tail(&self, bytes: u64) -> bool {
        self.gate.pass(|| Ok(self.inner.reserve_tail(bytes))).unwrap_or(false)
    }

    fn sync(&self) -> Result<()> {
        self.gate.pass(|| self.inner.sync())
    }
}

impl FileSystem for GatedFs {
    forward_fs! { maps_files exists list read_many link_count identity absolute helpers process_files_max free_bytes }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.gate.pass(|| self.inner.create(path, access)).map(|file| self.file(file))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.gate.pass(|| self.inner.open(path, access)).map(|file| self.file(file))
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let opened = self.inner.open_read(path, access);
        let Some(check) = self.gate.check.get() else { return opened };
        // The file was opened first: if all is as it was now, it was then.
        check(&*self.inner)?;
        opened.map_err(|error| match error.is_not_found() {
            true => Error::NotFound(format!(
                "{}, and {} was removed after another process opened it",
                self.gate.reason,
                path.display()
            )),
            false => error,
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.gate.pass(|| self.inner.rename(from, to))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.gate.pass(|| self.inner.remove(path))
    }

    fn shorten(&self, path: &Path, by: u64) -> Result<bool> {
        self.gate.pass(|| self.inner.shorten(path, by))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.gate.pass(|| self.inner.hard_link(from, to))
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.gate.pass(|| self.inner.create_dir_all(dir))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.gate.pass(|| self.inner.remove_dir(dir))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.gate.pass(|| self.inner.sync_dir(dir))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock> {
        self.gate.pass(|| self.inner.lock(path, mode))
    }
}
