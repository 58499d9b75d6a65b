//! [`RealFs`]: the machine's files.
//!
//! **Invariant:** interrupted calls are repeated and short ones continued, so a caller sees all or an
//! error. A file opened for direct access keeps a buffered handle beside the direct one and uses it for
//! whatever is not aligned; the kernel keeps the two coherent.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Error, Result};
use rustix::fs::{Advice, FallocateFlags, OFlags, SeekFrom, fadvise, fallocate, seek, statvfs};
use rustix::io::Errno;

use super::held_dirs::HeldDirs;
use super::stores::{Stores, is_known};
use super::{Access, File, FileLock, FileSystem, Helpers, Identity, LockMode, foreign, lock_file};
use crate::sync::{Arc, Mutex};

/// The machine's file system.
#[derive(Debug)]
pub struct RealFs {
    dirs: HeldDirs<fs::File>,
    helpers: Helpers,
}

impl RealFs {
    /// The machine's file system.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { dirs: HeldDirs::default(), helpers: Helpers::threads() })
    }
}

#[derive(Debug)]
struct RealFile {
    path: PathBuf,
    buffered: fs::File,
    /// Absent when not asked for or not to be had.
    direct: Option<fs::File>,
    stores: Mutex<Stores>,
}

/// Opens `path` as `options` say, and once more around the page cache if `access` asks for it.
fn open(path: &Path, access: Access, writable: bool, options: &mut OpenOptions) -> Result<Arc<dyn File>> {
    let operation = if writable { "open" } else { "open for reading" };
    let opened = match access {
        Access::Foreign => foreign::open(options, path),
        _ => options.open(path),
    };
    let buffered = opened.map_err(|e| Error::io(operation, path, &e))?;
    let mut direct = None;
    match access {
        Access::Buffered | Access::Foreign => {}
        // Only advice: where it is refused, reads are right all the same.
        Access::Random => drop(fadvise(&buffered, 0, None, Advice::Random)),
        Access::Direct => {
            let flags = OFlags::DIRECT.bits().cast_signed();
            let opened = OpenOptions::new().read(true).write(writable).custom_flags(flags).open(path);
            match opened {
                Ok(file) => direct = Some(file),
                Err(e) if e.kind() == ErrorKind::InvalidInput => {}
                Err(e) => return Err(Error::io("open for direct access", path, &e)),
            }
        }
    }
    Ok(Arc::new(RealFile { path: path.to_path_buf(), buffered, direct, stores: Mutex::default() }))
}

impl RealFile {
    fn error(&self, operation: &'static str, error: &io::Error) -> Error {
        Error::io(operation, &self.path, error)
    }

    /// The direct handle, if there is one and this transfer qualifies.
    fn direct_for(&self, offset: u64, bytes: &[u8]) -> Option<&fs::File> {
        let aligned = offset.is_multiple_of(BLOCK_BYTES as u64)
            && bytes.len().is_multiple_of(BLOCK_BYTES)
            && bytes.as_ptr().addr().is_multiple_of(BLOCK_BYTES);
        self.direct.as_ref().filter(|_| aligned && !bytes.is_empty())
    }

    fn read_some(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if let Some(direct) = self.direct_for(offset, into) {
            match direct.read_at(into, offset) {
                // Some devices want more alignment than ours.
                Err(e) if e.kind() == ErrorKind::InvalidInput => {}
                outcome => return outcome,
            }
        }
        self.buffered.read_at(into, offset)
    }

    fn write_some(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        if let Some(direct) = self.direct_for(offset, bytes) {
            match direct.write_at(bytes, offset) {
                Err(e) if e.kind() == ErrorKind::InvalidInput => {}
                outcome => return outcome,
            }
        }
        self.buffered.write_at(bytes, offset)
    }

    /// Only advice: what comes of it is not asked. Without a length it would be about the whole file.
    fn advise(&self, offset: u64, bytes: usize, advice: Advice) {
        if let Some(bytes) = NonZeroU64::new(bytes as u64) {
            let _ = fadvise(&self.buffered, offset, Some(bytes), advice);
        }
    }

    /// For file systems that cannot allocate: zeros from the present end on take the space too.
    fn reserve_by_writing(&self, bytes: u64) -> Result<()> {
        let zeros = [0; 64 << 10];
        const { assert!((64 << 10) % BLOCK_BYTES == 0, "it writes whole blocks") };
        let mut end = self.len()?;
        while end < bytes {
            let step = zeros.len().min(usize::try_from(bytes - end).unwrap_or(usize::MAX));
            self.write_at(end, &zeros[..step])?;
            end += step as u64;
        }
        Ok(())
    }
}

impl File for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.read_some(offset + done as u64, &mut into[done..]) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.error("read", &e)),
            }
            debug_assert!(done <= into.len());
        }
        Ok(done)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.write_some(offset + done as u64, &bytes[done..]) {
                Ok(0) => return Err(self.error("write", &ErrorKind::WriteZero.into())),
                Ok(count) => done += count,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.error("write", &e)),
            }
            debug_assert!(done <= bytes.len());
        }
        Ok(())
    }

    fn store_at(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        Ok(self.stores.lock().store(self.buffered.as_fd(), offset, bytes))
    }

    fn will_need(&self, offset: u64, bytes: usize) {
        self.advise(offset, bytes, Advice::WillNeed);
    }

    fn wont_need(&self, offset: u64, bytes: usize) {
        self.advise(offset, bytes, Advice::DontNeed);
    }

    fn written_from(&self, offset: u64) -> u64 {
        // Others have told wrong where they have holes.
        if !is_known(self.buffered.as_fd()) {
            return offset;
        }
        match seek(&self.buffered, SeekFrom::Data(offset)) {
            Ok(found) => found.max(offset),
            Err(Errno::NXIO) => u64::MAX,
            Err(_) => offset,
        }
    }

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        Some(self.buffered.as_fd())
    }

    fn len(&self) -> Result<u64> {
        self.buffered.metadata().map(|found| found.len()).map_err(|e| self.error("measure", &e))
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.stores.lock().cut(bytes);
        self.buffered.set_len(bytes).map_err(|e| self.error("set the length of", &e))
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // A file system in memory begins anew after each signal, and a profiler sends one every few milliseconds.
        for _try in 0..3 {
            match fallocate(&self.buffered, FallocateFlags::empty(), 0, bytes) {
                Ok(()) => {
                    self.stores.lock().reserved(self.buffered.as_fd(), bytes);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP) => return self.reserve_by_writing(bytes),
                Err(e) => return Err(self.error("reserve space for", &e.into())),
            }
        }
        self.reserve_by_writing(bytes)
    }

    fn reserve_tail(&self, bytes: u64) -> bool {
        let Ok(end) = self.len() else { return false };
        let is_reserved = fallocate(&self.buffered, FallocateFlags::KEEP_SIZE, end, bytes).is_ok();
        if !is_reserved {
            // Of what there was it may have got a part, of which nobody else would have anything.
            let _ = self.set_len(end);
        }
        is_reserved
    }

    fn share(&self) -> Result<()> {
        foreign::share(&self.buffered).map_err(|e| self.error("share", &e))
    }

    fn identity(&self) -> Result<Option<Identity>> {
        let found = self.buffered.metadata().map_err(|e| self.error("look at", &e))?;
        let inode = (found.dev(), found.ino());
        Ok(Some(Identity { inode, born: found.created().ok(), modified: found.modified().ok() }))
    }

    fn sync(&self) -> Result<()> {
        let synced = self.buffered.sync_data().map_err(|e| self.error("sync", &e));
        // Its pages are clean by now: the kernel may take them.
        self.stores.lock().leave();
        synced
    }
}

impl FileSystem for RealFs {
    fn maps_files(&self) -> bool {
        true
    }

    #[cfg(target_os = "linux")]
    fn read_many(&self, requests: &mut [super::ReadRequest<'_>]) {
        // One read is quickest by itself.
        let done = if requests.len() > 1 { super::kernel::read(requests) } else { vec![false] };
        let left = requests.iter_mut().zip(done).filter(|(_, done)| !done);
        left.for_each(|(request, _)| request.read());
    }

    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        // Where that is said, what was said before counts for nothing.
        options.create_new(matches!(access, Access::Foreign));
        open(path, access, true, &mut options)
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        open(path, access, true, OpenOptions::new().read(true).write(true))
    }

    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>> {
        open(path, access, false, OpenOptions::new().read(true))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        fs::exists(path).map_err(|e| Error::io("look for", path, &e))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let mut names = foreign::list(dir).map_err(|e| Error::io("list", dir, &e))?;
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| Error::io("rename", from, &e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::io("remove", path, &e))
    }

    fn shorten(&self, path: &Path, by: u64) -> Result<bool> {
        let shorten = || {
            let file = OpenOptions::new().write(true).open(path)?;
            let found = file.metadata()?;
            let is_long = found.nlink() == 1 && found.len() > by;
            if is_long {
                file.set_len(found.len() - by)?;
            }
            Ok(is_long)
        };
        shorten().map_err(|e| Error::io("shorten", path, &e))
    }

    fn link_count(&self, path: &Path) -> Result<u64> {
        let found = fs::metadata(path).map_err(|e| Error::io("look for", path, &e))?;
        Ok(found.nlink())
    }

    fn identity(&self) -> usize {
        0
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        let found = match fs::canonicalize(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => std::path::absolute(path),
            found => found,
        };
        found.map_err(|e| Error::io("find the directory of", path, &e))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to).map_err(|e| Error::io("link", to, &e))
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir).map_err(|e| Error::io("create directory", dir, &e))
    }

    fn create_dir(&self, dir: &Path) -> Result<()> {
        foreign::create_dir(dir).map_err(|e| Error::io("create directory", dir, &e))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        fs::remove_dir(dir).map_err(|e| Error::io("remove directory", dir, &e))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let synced = match self.dirs.find(dir) {
            Some(held) => held.by.sync_all(),
            None => fs::File::open(dir).and_then(|dir| dir.sync_all()),
        };
        synced.map_err(|e| Error::io("sync directory", dir, &e))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock> {
        let exclusive = mode == LockMode::Exclusive;
        let mut how = OpenOptions::new();
        how.read(true).write(exclusive).create(exclusive).truncate(false);
        loop {
            let file = foreign::open(&mut how, path).map_err(|e| Error::io("lock", path, &e))?;
            if let Some(lock) = lock_file::lock(path, mode, file, &self.dirs)? {
                return Ok(lock);
            }
        }
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        let found = statvfs(dir).map_err(|e| Error::io("measure", dir, &e.into()))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn helpers(&self) -> &Helpers {
        &self.helpers
    }

    fn process_files_max(&self) -> Option<usize> {
        Some(crate::process::files_max())
    }
}
