//! Collection: a merge moves what lives of value files, of which little does, to a value file of its own.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::{Result, ValuePointer};
use forebay_env::{Access, AlignedBuf, File};

use super::{ValueFile, ValueFiles};
use crate::memory::{MemoryClaim, Owner};

/// A value file on its way. One that is dropped unfinished removes its file.
pub(super) struct ValueWriter {
    files: Arc<ValueFiles>,
    id: u64,
    path: PathBuf,
    file: Arc<dyn File>,
    chunk: AlignedBuf,
    _claim: MemoryClaim,
    chunk_bytes: usize,
    written_bytes: u64,
    finished: bool,
}

impl ValueWriter {
    /// Begins the file of this id.
    pub(super) fn new(files: &Arc<ValueFiles>, id: u64) -> Result<Self> {
        let path = files.path(id);
        let file = files.fs.create(&path, Access::Direct)?;
        let chunk_bytes = files.metrics.memory.write_bytes();
        Ok(Self {
            files: Arc::clone(files),
            id,
            path,
            file,
            chunk: AlignedBuf::zeroed(chunk_bytes),
            _claim: files.metrics.memory.claim(Owner::Writing, chunk_bytes as u64),
            chunk_bytes: 0,
            written_bytes: 0,
            finished: false,
        })
    }

    /// Appends a value, to which the old pointer leads, and returns the way to it.
    pub(super) fn push(&mut self, pointer: ValuePointer, value: &[u8]) -> Result<ValuePointer> {
        let offset = self.bytes();
        let mut left = value;
        while !left.is_empty() {
            let room = self.chunk.len() - self.chunk_bytes;
            let (now, later) = left.split_at(room.min(left.len()));
            self.chunk[self.chunk_bytes..self.chunk_bytes + now.len()].copy_from_slice(now);
            self.chunk_bytes += now.len();
            left = later;
            if self.chunk_bytes == self.chunk.len() {
                self.flush()?;
            }
        }
        Ok(pointer.moved(self.id, offset))
    }

    /// How much it has so far.
    pub(super) fn bytes(&self) -> u64 {
        self.written_bytes + self.chunk_bytes as u64
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(self.written_bytes, &self.chunk[..self.chunk_bytes])?;
        self.files.metrics.value_bytes_moved.add(self.chunk_bytes as u64);
        self.written_bytes += self.chunk_bytes as u64;
        self.chunk_bytes = 0;
        Ok(())
    }

    /// Completes the file, up to a whole block, and makes its bytes durable; its name is so after a sync of the
    /// directory. Lists have to hold it before this is dropped, or it goes.
    pub(super) fn finish(mut self) -> Result<Arc<ValueFile>> {
        // What fills up the last block counts as nothing.
        let bytes = self.bytes();
        let end = self.chunk_bytes.next_multiple_of(BLOCK_BYTES);
        self.chunk[self.chunk_bytes..end].fill(0);
        self.chunk_bytes = end;
        self.flush()?;
        self.file.sync()?;
        self.finished = true;
        Ok(self.files.made(self.id, bytes))
    }
}

impl Drop for ValueWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing refers to it yet.
            self.files.trash.discard(&*self.files.fs, std::mem::take(&mut self.path));
        }
    }
}
