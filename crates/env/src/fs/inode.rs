//! What the memory file systems keep for one file, whatever its names: bytes and an advisory lock.
//!
//! **Invariant:** a lock is held by any number of shared guards or by one exclusive one.

use super::{FileLock, LockMode};
use crate::sync::{Arc, Mutex, RwLock};

/// One file's content.
#[derive(Debug)]
pub(super) struct Inode {
    /// Unique within its file system, and never used again.
    pub(super) id: u64,
    pub(super) bytes: RwLock<Vec<u8>>,
    holders: Mutex<Holders>,
}

#[derive(Debug, Default)]
struct Holders {
    shared: usize,
    exclusive: bool,
}

struct Held {
    inode: Arc<Inode>,
    mode: LockMode,
}

impl Inode {
    pub(super) fn new(id: u64, bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self { id, bytes: RwLock::new(bytes), holders: Mutex::default() })
    }

    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let bytes = self.bytes.read();
        let start = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        let count = into.len().min(bytes.len() - start);
        into[..count].copy_from_slice(&bytes[start..start + count]);
        count
    }

    /// Locks without waiting; `None` when held in a way that excludes `mode`.
    pub(super) fn try_lock(self: &Arc<Self>, mode: LockMode) -> Option<FileLock> {
        let mut holders = self.holders.lock();
        match mode {
            LockMode::Shared if !holders.exclusive => holders.shared += 1,
            LockMode::Exclusive if !holders.exclusive && holders.shared == 0 => holders.exclusive = true,
            _ => return None,
        }
        Some(FileLock::new(Held { inode: Arc::clone(self), mode }))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut holders = self.inode.holders.lock();
        match self.mode {
            LockMode::Shared => {
                debug_assert!(holders.shared > 0 && !holders.exclusive);
                holders.shared -= 1;
            }
            LockMode::Exclusive => {
                debug_assert!(holders.shared == 0 && holders.exclusive);
                holders.exclusive = false;
            }
        }
    }
}

/// Puts `new` at `offset`, zeros in a gap before it.
pub(super) fn write_into(bytes: &mut Vec<u8>, offset: usize, new: &[u8]) {
    if new.is_empty() {
        return;
    }
    let end = offset + new.len();
    if bytes.len() < end {
        if bytes.capacity() < end {
            // Twice as much would stay unused, of files that are written once and kept.
            bytes.reserve_exact((end - bytes.len()).max(bytes.len() / 8));
        }
        bytes.resize(end, 0);
    }
    debug_assert!(bytes.len() >= end, "a write makes the file as long as it reaches");
    bytes[offset..end].copy_from_slice(new);
}
