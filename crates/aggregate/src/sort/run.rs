//! Runs: sorted records in a file, block by block. A run does not outlive its aggregator, so what is known
//! of its blocks stays in memory: where each lies, its first record's place, and its checksum.
//!
//! **Invariant:** a run's file has no name any more once it is open, so that nothing of it outlives the process.

use std::path::PathBuf;

use forebay_base::checksum;
use forebay_base::merge::Cursor;
use forebay_base::{Bound, Error, Order, Record, Result};
use forebay_env::sync::Arc;
use forebay_env::{Access, File, FileSystem};

/// A block is written once it has this many bytes.
pub(super) const BLOCK_BYTES: usize = 64 << 10;

struct BlockInfo {
    first: Bound,
    offset: u64,
    bytes: u32,
    checksum: u32,
}

/// Sorted records, one a key.
pub(super) struct Run {
    fs: Arc<dyn FileSystem>,
    file: Arc<dyn File>,
    blocks: Vec<BlockInfo>,
    bytes: u64,
    records: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        // A file that cannot be removed is only space lost; there is nobody to tell.
        let _ = self.fs.remove(self.file.path());
    }
}

impl Run {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn records(&self) -> u64 {
        self.records
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let keys: usize = self.blocks.iter().map(|block| block.first.key.len()).sum();
        keys + self.blocks.capacity() * size_of::<BlockInfo>()
    }

    fn read(&self, block: &BlockInfo, into: &mut Vec<u8>) -> Result<()> {
        into.clear();
        into.resize(block.bytes as usize, 0);
        let read = self.file.read_at(block.offset, into)?;
        if read != into.len() || checksum::plain(into) != block.checksum {
            return Err(self.damaged(block.offset));
        }
        Ok(())
    }

    fn damaged(&self, offset: u64) -> Error {
        Error::corruption(self.file.path(), offset, "a sorted run is not what was written; aggregate again")
    }

    /// The block that a key is in, if it is in any.
    fn block_with(&self, order: Order, key: &[u8]) -> Option<usize> {
        let prefix = order.prefix(key);
        self.blocks.partition_point(|block| block.first.place(prefix, key).is_ge()).checked_sub(1)
    }

    /// The state of a key.
    pub(super) fn get(&self, order: Order, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(info) = self.block_with(order, key).map(|at| &self.blocks[at]) else { return Ok(None) };
        let mut block = Vec::new();
        self.read(info, &mut block)?;
        let mut rest = &block[..];
        while !rest.is_empty() {
            let (record, used) = Record::decode(rest).ok_or_else(|| self.damaged(info.offset))?;
            if record.key == key {
                return Ok(Some(record.value.to_vec()));
            }
            rest = &rest[used..];
        }
        Ok(None)
    }
}

/// Writes a run.
pub(super) struct RunWriter {
    run: Run,
    block: Vec<u8>,
    first: Bound,
}

impl RunWriter {
    pub(super) fn new(fs: Arc<dyn FileSystem>, path: PathBuf) -> Result<Self> {
        let file = fs.create(&path, Access::Buffered)?;
        // Where a file that is open cannot lose its name, it does when the run is dropped.
        let _ = fs.remove(&path);
        let run = Run { fs, file, blocks: Vec::new(), bytes: 0, records: 0 };
        Ok(Self { run, block: Vec::new(), first: Bound::least() })
    }

    /// Adds a record that comes after all before it.
    #[inline]
    pub(super) fn push(&mut self, prefix: u64, key: &[u8], state: &[u8]) -> Result<()> {
        debug_assert!(
            self.run.blocks.last().is_none_or(|last| last.first.place(prefix, key).is_gt()),
            "runs are sorted"
        );
        if self.block.is_empty() {
            self.first = Bound { prefix, key: key.into() };
        }
        Record::put(key, state).encode(&mut self.block);
        self.run.records += 1;
        if self.block.len() >= BLOCK_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        debug_assert!(!self.block.is_empty() && u32::try_from(self.block.len()).is_ok());
        self.run.file.write_at(self.run.bytes, &self.block)?;
        self.run.blocks.push(BlockInfo {
            first: std::mem::take(&mut self.first),
            offset: self.run.bytes,
            bytes: self.block.len() as u32,
            checksum: checksum::plain(&self.block),
        });
        self.run.bytes += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run> {
        if !self.block.is_empty() {
            self.write()?;
        }
        debug_assert_eq!(
            self.run.blocks.iter().map(|block| u64::from(block.bytes)).sum::<u64>(),
            self.run.bytes
        );
        self.run.blocks.shrink_to_fit();
        Ok(self.run)
    }
}

/// Walks a run.
pub(super) struct RunCursor {
    run: Arc<Run>,
    order: Order,
    /// The next block to be read.
    next: usize,
    block: Vec<u8>,
    /// Where the record here starts, and where its key, its value and the record end.
    at: usize,
    key_at: usize,
    value_at: usize,
    end: usize,
    prefix: Option<u64>,
}

impl RunCursor {
    /// Over what is behind a key, or all.
    pub(super) fn new(run: &Arc<Run>, order: Order, behind: Option<&[u8]>) -> Result<Self> {
        let mut cursor = Self {
            run: Arc::clone(run),
            order,
            next: behind.and_then(|key| run.block_with(order, key)).unwrap_or(0),
            block: Vec::new(),
            at: 0,
            key_at: 0,
            value_at: 0,
            end: 0,
            prefix: None,
        };
        cursor.advance()?;
        if let Some(key) = behind {
            let last = (order.prefix(key), key);
            while cursor.prefix.is_some_and(|prefix| (prefix, cursor.record().key) <= last) {
                cursor.advance()?;
            }
        }
        Ok(cursor)
    }
}

impl Cursor for RunCursor {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        Record::put(&self.block[self.key_at..self.value_at], &self.block[self.value_at..self.end])
    }

    fn advance(&mut self) -> Result<()> {
        self.at = self.end;
        if self.at == self.block.len() {
            let Some(info) = self.run.blocks.get(self.next) else {
                self.prefix = None;
                return Ok(());
            };
            self.run.read(info, &mut self.block)?;
            self.next += 1;
            self.at = 0;
        }
        let decoded = Record::decode(&self.block[self.at..]);
        let offset = self.run.blocks.get(self.next - 1).map_or(0, |info| info.offset);
        let (record, used) = decoded.ok_or_else(|| self.run.damaged(offset))?;
        self.prefix = Some(self.order.prefix(record.key));
        let (key_bytes, value_bytes) = (record.key.len(), record.value.len());
        self.end = self.at + used;
        self.value_at = self.end - value_bytes;
        self.key_at = self.value_at - key_bytes;
        Ok(())
    }
}
