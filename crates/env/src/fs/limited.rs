//! [`LimitedFs`]: another file system, as a process sees it that may have only this many files open.

use std::path::Path;

use forebay_base::{Error, Result};
use rustix::io::Errno;

use super::held_dirs::HeldDirs;
use super::{Access, File, FileLock, FileSystem, LockMode};
use crate::fs::forward::{forward_file, forward_fs};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// A file system that opens no more than this many files at a time. As that of the machine it keeps a directory open
/// while a file of it is locked.
pub struct LimitedFs {
    inner: Arc<dyn FileSystem>,
    open: Arc<Open>,
    dirs: HeldDirs<Place>,
}

struct Open {
    max: usize,
    now: AtomicUsize,
    most: AtomicUsize,
}

struct LimitedFile {
    inner: Arc<dyn File>,
    _place: Place,
}

/// One of the files that may be open.
struct Place(Arc<Open>);

impl Drop for Place {
    fn drop(&mut self) {
        let now = self.0.now.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(now > 0, "what is closed was counted as open");
    }
}

impl LimitedFs {
    /// `inner`, of which `files_max` files may be open.
    pub fn new(inner: Arc<dyn FileSystem>, files_max: usize) -> Arc<Self> {
        let open = Open { max: files_max, now: AtomicUsize::new(0), most: AtomicUsize::new(0) };
        Arc::new(Self { inner, open: Arc::new(open), dirs: HeldDirs::default() })
    }

    /// How many files are open.
    pub fn open_files(&self) -> usize {
        self.open.now.load(Ordering::Relaxed)
    }

    /// How many files were open at the same time at most.
    pub fn open_files_most(&self) -> usize {
        self.open.most.load(Ordering::Relaxed)
    }

    fn place(&self, operation: &'static str, path: &Path) -> Result<Place> {
        let place = Place(Arc::clone(&self.open));
        let now = self.open.now.fetch_add(1, Ordering::Relaxed) + 1;
        if now > self.open.max {
            return Err(Error::io(operation, path, &Errno::MFILE.into()));
        }
        debug_assert!((1..=self.open.max).contains(&now));
        self.open.most.fetch_max(now, Ordering::Relaxed);
        Ok(place)
    }

    fn file(&self, path: &Path, open: impl FnOnce() -> Result<Arc<dyn File>>) -> Result<Arc<dyn File>> {
        let place = self.place("open", path)?;
        Ok(Arc::new(LimitedFile { inner: open()?, _place: place }))
    }
}

impl File for LimitedFile {
    forward_file! { path read_at write_at len set_len reserve reserve_tail identity sync }
}

impl FileSystem for LimitedFs {
    forward_fs! { exists rename remove hard_link create_dir_all remove_dir link_count identity absolute helpers free_bytes }

    fn maps_files(&self) -> bool {
        false
    }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.file(path, || self.inner.create(path, access))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.file(path, || self.inner.open(path, access))
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.file(path, || self.inner.open_read(path, access))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let _place = self.place("list", dir)?;
        self.inner.list(dir)
    }

    fn shorten(&self, path: &Path, by: u64) -> Result<bool> {
        let _place = self.place("shorten", path)?;
        self.inner.shorten(path, by)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let held = self.dirs.find(dir);
        let _place = held.is_none().then(|| self.place("sync directory", dir)).transpose()?;
        self.inner.sync_dir(dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock> {
        let place = self.place("lock", path)?;
        let lock = self.inner.lock(path, mode)?;
        if mode == LockMode::Shared {
            return Ok(FileLock::new((lock, place)));
        }
        let dir = path.parent().unwrap_or(path);
        let held = self.dirs.hold(dir, self.place("open directory", dir)?);
        Ok(FileLock::new((lock, place, held)))
    }
}
