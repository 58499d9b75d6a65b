//! Files: what the engine asks of a file system, the machine's own, and five twins of it.
//!
//! [`RealFs`] is the machine's; [`MemoryFs`] keeps files in memory; [`CrashFs`] also knows what a power cut would
//! leave of them; [`FaultyFs`] fails chosen operations; [`LimitedFs`] opens no more than this many; [`TracedFs`]
//! counts and logs them. [`BoundedFs`] stands before any of them, and keeps few files open; [`GatedFs`] lets nothing
//! be changed any more once it is closed; [`UnsyncedFs`] leaves what is written to the system's memory.
//!
//! **Invariant:** they differ only in what their names say. The same calls get the same answers.

mod behind;
mod bounded;
mod cached;
mod crash;
mod crash_file;
mod faulty;
mod foreign;
pub(crate) mod forward;
mod gate;
mod handles;
mod held_dirs;
mod identity;
mod inode;
#[cfg(target_os = "linux")]
mod kernel;
mod limited;
mod lock_file;
mod memory;
mod openers;
mod pending;
mod real;
mod rules;
mod stores;
mod survival;
mod traced;
mod unsynced;

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;

use std::fmt;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use forebay_base::Result;

use crate::encryption::DataKeys;
use crate::sync::Arc;

pub use behind::{Behind, Helpers};
pub use bounded::BoundedFs;
pub use cached::CachedFs;
pub use crash::CrashFs;
pub use faulty::FaultyFs;
pub use gate::GatedFs;
pub use identity::Identity;
pub use limited::LimitedFs;
pub use memory::MemoryFs;
pub use openers::Opener;
pub use real::RealFs;
pub use traced::{Counts, TracedFs};
pub use unsynced::UnsyncedFs;

/// How a file will be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Through the kernel's page cache: the log, the manifest, small files.
    Buffered,
    /// Around the page cache where the file system allows: long sequential reads and writes. Takes
    /// effect when offset, length and address are multiples of 4096; else it is `Buffered`.
    Direct,
    /// Through the page cache without read-ahead: point reads.
    Random,
    /// As `Buffered`, in a folder where others may put what they like: what is no file itself, such as a link or a pipe,
    /// is refused; and a file that is created must not be there yet.
    Foreign,
}

/// How a lock file is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Along with other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

/// A held lock; dropping it releases.
pub struct FileLock {
    _guard: Box<dyn Send + Sync>,
}

impl FileLock {
    /// A lock that is released when `guard` drops.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self { _guard: Box::new(guard) }
    }
}

impl fmt::Debug for FileLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileLock")
    }
}

/// An open file. It outlives its name: removing or renaming does not disturb it.
pub trait File: Send + Sync {
    /// The path it was opened by.
    fn path(&self) -> &Path;
    /// Reads until `into` is full or the file ends; returns the count.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize>;
    /// Writes all of `bytes`, or fails having written any part of them.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// As [`write_at`](Self::write_at), without a call: into pages of the file that are mapped. Says whether that was
    /// done; else nothing was. It is for few bytes, and for below what was [reserved](Self::reserve) by this handle;
    /// nobody else may cut the file meanwhile.
    fn store_at(&self, _offset: u64, _bytes: &[u8]) -> Result<bool> {
        Ok(false)
    }
    /// The file's length, in bytes.
    fn len(&self) -> Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts the file to `bytes`, or grows it with zeros.
    fn set_len(&self, bytes: u64) -> Result<()>;
    /// Allocates disk blocks so that later writes below `bytes` cannot run out of space. The length
    /// becomes at least `bytes`.
    fn reserve(&self, bytes: u64) -> Result<()>;
    /// Takes disk blocks for this many bytes behind the end, which stays where it is: what is appended there needs
    /// none then. Says whether that could be done.
    fn reserve_tail(&self, bytes: u64) -> bool;
    /// Says that these bytes will soon be read, so that the system may fetch them meanwhile.
    fn will_need(&self, _offset: u64, _bytes: usize) {}
    /// Says that these bytes will not soon be read, so that the system's cache may give them up where they
    /// are synced.
    fn wont_need(&self, _offset: u64, _bytes: usize) {}
    /// From where on, at `offset` or behind it, something was ever written, as far as the system knows; before that are
    /// zeros. `u64::MAX` where nothing was.
    fn written_from(&self, offset: u64) -> u64 {
        offset
    }
    /// The system's handle to read by, where it has one.
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// The file to read by for as long as one has it, where this one may be closed and opened between reads.
    fn held_open(&self) -> Result<Option<Arc<dyn File>>> {
        Ok(None)
    }
    /// Lets everybody read it, whatever the process would have its files be.
    fn share(&self) -> Result<()> {
        Ok(())
    }
    /// Which file it is, where that is known: whoever opens its name again may get another.
    fn identity(&self) -> Result<Option<Identity>> {
        Ok(None)
    }
    /// What of the file as it is stored is read to [show](Self::show) these bytes: the file, where, and how much. `None`
    /// where they are read as they are.
    fn stored_part(&self, _offset: u64, _bytes: usize) -> Option<(&dyn File, u64, usize)> {
        None
    }
    /// What was read of that, as what it shows from `offset` on. Returns how much that is.
    fn show(&self, _offset: u64, _stored: &mut [u8], _into: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
    /// By which keys whoever writes frames to it encrypts them, where they are to be.
    fn data_keys(&self) -> Option<&Arc<DataKeys>> {
        None
    }
    /// Makes data and length durable. Not the file's name: that is [`FileSystem::sync_dir`].
    fn sync(&self) -> Result<()>;
}

/// One of several reads that are done together.
pub struct ReadRequest<'a> {
    /// What to read from.
    pub file: &'a dyn File,
    /// Where.
    pub offset: u64,
    /// Where to.
    pub into: &'a mut [u8],
    /// What [`File::read_at`] would have said.
    pub outcome: Result<usize>,
}

impl<'a> ReadRequest<'a> {
    /// A read that is still to be done.
    pub fn new(file: &'a dyn File, offset: u64, into: &'a mut [u8]) -> Self {
        Self { file, offset, into, outcome: Ok(0) }
    }

    /// Does it.
    fn read(&mut self) {
        self.outcome = self.file.read_at(self.offset, self.into);
        debug_assert!(
            self.outcome.as_ref().is_ok_and(|&count| count <= self.into.len()) || self.outcome.is_err()
        );
    }
}

/// Files as they are stored.
pub fn stored(fs: &dyn FileSystem) -> &dyn FileSystem {
    fs.stored().unwrap_or(fs)
}

/// A tree of files.
pub trait FileSystem: Send + Sync {
    /// Whether its files can be mapped into memory, by their handles. Whoever wraps another file system has to say.
    fn maps_files(&self) -> bool;
    /// A new file, or an old one cut to nothing; to read and write.
    fn create(&self, path: &Path, access: Access) -> Result<Arc<dyn File>>;
    /// An existing file, to read and write.
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn File>>;
    /// An existing file, to read.
    fn open_read(&self, path: &Path, access: Access) -> Result<Arc<dyn File>>;
    /// The file system behind it, which has files as they are stored, where this one shows them otherwise.
    fn stored(&self) -> Option<&dyn FileSystem> {
        None
    }
    /// How long a file is there that shows so many bytes here.
    fn stored_bytes(&self, _path: &Path, bytes: u64) -> u64 {
        bytes
    }
    /// By which data key a file of records is encrypted, as a number; and one that tells it from whatever else was
    /// encrypted. `None` where it is not.
    fn encrypted_as(&self, _path: &Path) -> Result<Option<(u32, u32)>> {
        Ok(None)
    }
    /// Whether a file or directory of this name exists.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// The names of the files (not directories) in `dir`, sorted.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;
    /// Renames a file; one already at `to` is replaced, at once.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file's name; its data go with its last name and handle.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Takes this many bytes off the end of a file that is to be removed, so that not all of it is given back at one
    /// go. `false`, and nothing is done, where it has another name, is no longer than that, or nothing would be
    /// gained.
    fn shorten(&self, _path: &Path, _by: u64) -> Result<bool> {
        Ok(false)
    }
    /// How many names a file has: with more than one it is somebody else's too.
    fn link_count(&self, path: &Path) -> Result<u64>;
    /// The same path, whatever becomes the working directory; without links, where it is there.
    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// The same for all file systems whose files are the same.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>().addr()
    }
    /// Gives a file one more name; `to` must be free.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Makes `dir` and its missing ancestors.
    fn create_dir_all(&self, dir: &Path) -> Result<()>;
    /// Makes `dir`, if it is not there, in a directory that is; with the rights of that, and its owner as far as may be.
    fn create_dir(&self, dir: &Path) -> Result<()> {
        self.create_dir_all(dir)
    }
    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Path) -> Result<()>;
    /// Makes the names in `dir` durable: created, renamed, linked and removed files.
    fn sync_dir(&self, dir: &Path) -> Result<()>;
    /// Locks a file, or fails at once with [`Error::Locked`](forebay_base::Error::Locked). Makes the
    /// file when the mode is exclusive.
    fn lock(&self, path: &Path, mode: LockMode) -> Result<FileLock>;
    /// Does all of these reads; in which order is not said.
    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        requests.iter_mut().for_each(ReadRequest::read);
    }
    /// How many bytes may still be written to the disk that holds `dir`.
    fn free_bytes(&self, dir: &Path) -> Result<u64>;
    /// Who writes to its files while others go on, where these are the machine's; elsewhere each write is done at once.
    fn helpers(&self) -> &Helpers {
        static AT_ONCE: Helpers = Helpers::at_once();
        &AT_ONCE
    }
    /// How many files the process may have open, where these are the machine's.
    fn process_files_max(&self) -> Option<usize> {
        None
    }
}
