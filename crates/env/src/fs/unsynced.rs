//! [`UnsyncedFs`]: another file system for files that nobody wants any more after a crash: what is to be made durable is
//! left to the system's memory.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use forebay_base::Result;

use super::{Access, File, FileLock, FileSystem, Helpers, Identity, LockMode, ReadRequest};
use crate::sync::Arc;

/// See the module.
pub struct UnsyncedFs(Arc<dyn FileSystem>);

struct UnsyncedFile(Arc<dyn File>);

impl UnsyncedFs {
    /// `inner`, without its syncs.
    pub fn new(inner: Arc<dyn FileSystem>) -> Arc<Self> {
        Arc::new(Self(inner))
    }
}

fn unsynced(file: Result<Arc<dyn File>>) -> Result<Arc<dyn File>> {
    Ok(Arc::new(UnsyncedFile(file?)))
}

impl File for UnsyncedFile {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.0.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_at(offset, bytes)
    }

    fn store_at(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.0.store_at(offset, bytes)
    }

    fn len(&self) -> Result<u64> {
        self.0.len()
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.0.set_len(bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.0.reserve(bytes)
    }

    fn reserve_tail(&self, bytes: u64) -> bool {
        self.0.reserve_tail(bytes)
    }

    fn will_need(&self, offset: u64, bytes: usize) {
        self.0.will_need(offset, bytes);
    }

    fn wont_need(&self, offset: u64, bytes: usize) {
        self.0.wont_need(offset, bytes);
    }

    fn written_from(&self, offset: u64) -> u64 {
        self.0.written_from(offset)
    }

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.0.handle()
    }

    fn held_open(&self) -> Result<Option<Arc<dyn File>>> {
        self.0.held_open()
    }

    fn identity(&self) -> Result<Option<Identity>> {
        self.0.identity()
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

impl FileSystem for UnsyncedFs {
    fn maps_files(&self) -> bool {
        self.0.maps_files()
    }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        unsynced(self.0.create(path, access))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        unsynced(self.0.open(path, access))
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        self.0.open_read(path, access)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.0.exists(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.0.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.0.remove(path)
    }

    fn shorten(&self, path: &Path, by: u64) -> Result<bool> {
        self.0.shorten(path, by)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.hard_link(from, to)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.0.create_dir_all(dir)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.0.remove_dir(dir)
    }

    fn sync_dir(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock> {
        self.0.lock(path, mode)
    }

    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        self.0.read_many(requests);
    }

    fn link_count(&self, path: &Path) -> Result<u64> {
        self.0.link_count(path)
    }

    fn identity(&self) -> usize {
        self.0.identity()
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        self.0.absolute(path)
    }

    fn helpers(&self) -> &Helpers {
        self.0.helpers()
    }

    fn process_files_max(&self) -> Option<usize> {
        self.0.process_files_max()
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.0.free_bytes(dir)
    }
}
