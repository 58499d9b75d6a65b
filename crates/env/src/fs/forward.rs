//! Files and file systems that stand before others: what they leave to the one behind, their field `inner`, as it is.
//!
//! A method that has a default is to be named, too, or the one behind is not asked.

/// Methods of a file that are those of the file behind it.
macro_rules! forward_file {
    ($($method:ident)+) => { $($crate::fs::forward::forward_file!(@$method);)+ };
    (@path) => {
        fn path(&self) -> &std::path::Path {
            self.inner.path()
        }
    };
    (@read_at) => {
        fn read_at(&self, offset: u64, into: &mut [u8]) -> forebay_base::Result<usize> {
            self.inner.read_at(offset, into)
        }
    };
    (@write_at) => {
        fn write_at(&self, offset: u64, bytes: &[u8]) -> forebay_base::Result<()> {
            self.inner.write_at(offset, bytes)
        }
    };
    (@len) => {
        fn len(&self) -> forebay_base::Result<u64> {
            self.inner.len()
        }
    };
    (@set_len) => {
        fn set_len(&self, bytes: u64) -> forebay_base::Result<()> {
            self.inner.set_len(bytes)
        }
    };
    (@reserve) => {
        fn reserve(&self, bytes: u64) -> forebay_base::Result<()> {
            self.inner.reserve(bytes)
        }
    };
    (@reserve_tail) => {
        fn reserve_tail(&self, bytes: u64) -> bool {
            self.inner.reserve_tail(bytes)
        }
    };
    (@identity) => {
        fn identity(&self) -> forebay_base::Result<Option<$crate::fs::Identity>> {
            self.inner.identity()
        }
    };
    (@sync) => {
        fn sync(&self) -> forebay_base::Result<()> {
            self.inner.sync()
        }
    };
    (@written_from) => {
        fn written_from(&self, offset: u64) -> u64 {
            self.inner.written_from(offset)
        }
    };
    (@will_need) => {
        fn will_need(&self, offset: u64, bytes: usize) {
            self.inner.will_need(offset, bytes)
        }
    };
    (@wont_need) => {
        fn wont_need(&self, offset: u64, bytes: usize) {
            self.inner.wont_need(offset, bytes)
        }
    };
    (@handle) => {
        fn handle(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
            self.inner.handle()
        }
    };
    (@store_at) => {
        fn store_at(&self, offset: u64, bytes: &[u8]) -> forebay_base::Result<bool> {
            self.inner.store_at(offset, bytes)
        }
    };
}

/// Methods of a file system that are those of the file system behind it.
macro_rules! forward_fs {
    ($($method:ident)+) => { $($crate::fs::forward::forward_fs!(@$method);)+ };
    (@exists) => {
        fn exists(&self, path: &std::path::Path) -> forebay_base::Result<bool> {
            self.inner.exists(path)
        }
    };
    (@rename) => {
        fn rename(&self, from: &std::path::Path, to: &std::path::Path) -> forebay_base::Result<()> {
            self.inner.rename(from, to)
        }
    };
    (@remove) => {
        fn remove(&self, path: &std::path::Path) -> forebay_base::Result<()> {
            self.inner.remove(path)
        }
    };
    (@hard_link) => {
        fn hard_link(&self, from: &std::path::Path, to: &std::path::Path) -> forebay_base::Result<()> {
            self.inner.hard_link(from, to)
        }
    };
    (@create_dir_all) => {
        fn create_dir_all(&self, dir: &std::path::Path) -> forebay_base::Result<()> {
            self.inner.create_dir_all(dir)
        }
    };
    (@remove_dir) => {
        fn remove_dir(&self, dir: &std::path::Path) -> forebay_base::Result<()> {
            self.inner.remove_dir(dir)
        }
    };
    (@link_count) => {
        fn link_count(&self, path: &std::path::Path) -> forebay_base::Result<u64> {
            self.inner.link_count(path)
        }
    };
    (@identity) => {
        fn identity(&self) -> usize {
            self.inner.identity()
        }
    };
    (@absolute) => {
        fn absolute(&self, path: &std::path::Path) -> forebay_base::Result<std::path::PathBuf> {
            self.inner.absolute(path)
        }
    };
    (@helpers) => {
        fn helpers(&self) -> &$crate::fs::Helpers {
            self.inner.helpers()
        }
    };
    (@free_bytes) => {
        fn free_bytes(&self, dir: &std::path::Path) -> forebay_base::Result<u64> {
            self.inner.free_bytes(dir)
        }
    };
    (@maps_files) => {
        fn maps_files(&self) -> bool {
            self.inner.maps_files()
        }
    };
    (@process_files_max) => {
        fn process_files_max(&self) -> Option<usize> {
            self.inner.process_files_max()
        }
    };
    (@list) => {
        fn list(&self, dir: &std::path::Path) -> forebay_base::Result<Vec<String>> {
            self.inner.list(dir)
        }
    };
    (@shorten) => {
        fn shorten(&self, path: &std::path::Path, by: u64) -> forebay_base::Result<bool> {
            self.inner.shorten(path, by)
        }
    };
    (@lock) => {
        fn lock(&self, path: &std::path::Path, mode: $crate::fs::LockMode) -> forebay_base::Result<$crate::fs::FileLock> {
            self.inner.lock(path, mode)
        }
    };
    (@read_many) => {
        fn read_many(&self, requests: &mut [$crate::fs::ReadRequest<'_>]) {
            self.inner.read_many(requests)
        }
    };
    (@create_dir) => {
        fn create_dir(&self, dir: &std::path::Path) -> forebay_base::Result<()> {
            self.inner.create_dir(dir)
        }
    };
    (@sync_dir) => {
        fn sync_dir(&self, dir: &std::path::Path) -> forebay_base::Result<()> {
            self.inner.sync_dir(dir)
        }
    };
}

pub(crate) use {forward_file, forward_fs};
