//! An open file of a [`CrashFs`](super::CrashFs).
//!
//! **Invariant:** live bytes and the disk's pending changes move together, under the machine's lock.

use std::io;
use std::path::Path;

use forebay_base::{Error, Result};
use rustix::io::Errno;

use super::File;
use super::crash::Machine;
use super::inode::Inode;
use super::pending::DataChange;
use crate::sync::Arc;

pub(super) struct CrashFile {
    machine: Arc<Machine>,
    live: Arc<dyn File>,
    inode: Arc<Inode>,
}

impl CrashFile {
    pub(super) fn opened(machine: Arc<Machine>, live: Arc<dyn File>, inode: Arc<Inode>) -> Arc<dyn File> {
        Arc::new(Self { machine, live, inode })
    }

    /// Does `change` to the live file and notes its new length, if it has one.
    fn resize(&self, operation: &'static str, change: impl FnOnce() -> Result<()>) -> Result<()> {
        self.machine.mutate(operation, self.live.path(), |disk, number| {
            let before = self.live.len()?;
            change()?;
            let after = self.live.len()?;
            if after != before {
                disk.change(number, self.inode.id, DataChange::Len(after as usize));
            }
            Ok(())
        })
    }
}

impl File for CrashFile {
    fn path(&self) -> &Path {
        self.live.path()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.machine.check_power("read", self.live.path())?;
        if let Some(bytes) = self.machine.evicted(self.live.path(), self.inode.id) {
            *self.inode.bytes.write() = bytes;
        }
        self.live.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.machine.mutate("write", self.live.path(), |disk, number| {
            let len_before = self.live.len()? as usize;
            self.live.write_at(offset, bytes)?;
            let written = offset as usize..offset as usize + bytes.len();
            disk.wrote(number, self.inode.id, written, len_before, &self.inode.bytes.read());
            Ok(())
        })
    }

    fn store_at(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.write_at(offset, bytes).map(|()| true)
    }

    fn written_from(&self, offset: u64) -> u64 {
        self.live.written_from(offset)
    }

    fn len(&self) -> Result<u64> {
        self.machine.check_power("measure", self.live.path())?;
        self.live.len()
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.resize("set the length of", || self.live.set_len(bytes))
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.resize("reserve space for", || self.live.reserve(bytes))
    }

    fn reserve_tail(&self, _: u64) -> bool {
        false
    }

    fn sync(&self) -> Result<()> {
        let fails = self.machine.fails_sync(self.live.path());
        self.machine.mutate("sync", self.live.path(), |disk, _| {
            if fails {
                disk.lose_writes(self.inode.id);
                return Err(Error::io("sync", self.live.path(), &io::Error::from(Errno::IO)));
            }
            disk.sync_file(self.inode.id);
            Ok(())
        })
    }
}
