//! Writing a file's tail: bytes go out behind one another in chunks of 1 MiB at most, then zeros up to the next block
//! and the root, then one sync.

use std::sync::Arc;

use forebay_base::Result;
use forebay_base::checksum::{append, checksum};
use forebay_env::AlignedBuf;
use forebay_store::metrics::{Cause, Metrics};
use forebay_store::{MemoryClaim, Owner};

use crate::extent::Extent;
use crate::file::Claim;
use crate::root::{ROOT_BYTES, Root, Version};

/// An append on its way to the file.
pub(crate) struct Tail {
    claim: Claim,
    metrics: Arc<Metrics>,
    cause: Cause,
    /// Bytes not yet written.
    chunk: AlignedBuf,
    _claim: MemoryClaim,
    chunk_bytes: usize,
    chunk_at: u64,
    sum: u32,
}

impl Tail {
    pub(crate) fn new(claim: Claim, metrics: &Arc<Metrics>, cause: Cause) -> Self {
        let (file_id, at) = (claim.file().id(), claim.at());
        let bytes = metrics.memory.write_bytes();
        Self {
            claim,
            metrics: Arc::clone(metrics),
            cause,
            chunk: AlignedBuf::zeroed(bytes),
            _claim: metrics.memory.claim(Owner::Writing, bytes as u64),
            chunk_bytes: 0,
            chunk_at: at,
            sum: checksum(file_id, at, &[]),
        }
    }

    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// What its bytes are counted as.
    pub(crate) fn cause(&self) -> Cause {
        self.cause
    }

    /// Where the next byte will stand.
    pub(crate) fn end(&self) -> u64 {
        self.chunk_at + self.chunk_bytes as u64
    }

    /// How much is behind where the tail began.
    pub(crate) fn bytes(&self) -> u64 {
        self.end() - self.claim.at()
    }

    /// Puts bytes behind what is there, which the reference to them leads to.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<Extent> {
        let extent = Extent::of(self.claim.file().id(), self.end(), bytes);
        self.sum = append(self.sum, bytes);
        self.emit(bytes)?;
        debug_assert_eq!(self.end(), extent.at + bytes.len() as u64, "what comes next stands behind it");
        Ok(extent)
    }

    fn emit(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = self.chunk.len() - self.chunk_bytes;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.chunk[self.chunk_bytes..self.chunk_bytes + now.len()].copy_from_slice(now);
            self.chunk_bytes += now.len();
            bytes = later;
            if self.chunk_bytes == self.chunk.len() {
                self.write()?;
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        debug_assert!(self.chunk_bytes.is_multiple_of(ROOT_BYTES as usize), "direct I/O wants whole blocks");
        self.claim.write(&self.chunk[..self.chunk_bytes])?;
        self.metrics.list_bytes_written[self.cause as usize].add(self.chunk_bytes as u64);
        self.chunk_at += self.chunk_bytes as u64;
        self.chunk_bytes = 0;
        Ok(())
    }

    /// Ends the append with a root, which is told where the append began and its checksum, and makes it durable.
    pub(crate) fn finish(&mut self, root: Root) -> Result<(Version, Root)> {
        let padding = self.end().next_multiple_of(ROOT_BYTES) - self.end();
        self.append(&[0; ROOT_BYTES as usize][..padding as usize])?;
        let (file_id, root_at) = (self.claim.file().id(), self.end());
        debug_assert!(root_at.is_multiple_of(ROOT_BYTES), "a root begins a block");
        let root = Root { append_at: self.claim.at(), append_sum: self.sum, ..root };
        let block = root.encode(file_id, root_at);
        debug_assert!(root.is_read_from(&block, file_id, root_at), "what is written is read");
        self.emit(&block)?;
        if self.chunk_bytes > 0 {
            self.write()?;
        }
        debug_assert_eq!(self.chunk_at, root_at + ROOT_BYTES, "the root is the last that is written");
        self.claim.complete()?;
        let version = Version { file_id, root_at, digest: forebay_base::wire::u32_at(&block, 0) };
        Ok((version, root))
    }
}
