//! Reading and writing fragments in memory: what makes the buffer tree the compressed one.

use forebay_base::codec::Codec;
use forebay_base::merge::Cursor;
use forebay_base::record::Shape;
use forebay_base::{Block, Error, Order, Range, Record, Result};
use forebay_buffer_tree::{Expected, Fragment, FragmentStore, FragmentWriter};
use forebay_env::sync::Arc;
use forebay_env::sync::atomic::{AtomicU64, Ordering};

use super::chunk::Packer;
use super::fragment::{Chunk, Handle, Meter, Packed};

/// A chunk has so many records at most.
const CHUNK_RECORDS: usize = 512;
/// And is closed at so many bytes.
const CHUNK_BYTES: usize = 16 << 10;
/// LZ4 is kept where it saves this share.
const WORTHWHILE: f64 = 0.1;

/// How fragments are made, for one job.
#[derive(Clone)]
pub(super) struct Chunks {
    pub(super) order: Order,
    /// Bytes of every state, if that is one number.
    pub(super) state_bytes: Option<usize>,
    pub(super) next_id: Arc<AtomicU64>,
    pub(super) meter: Meter,
    /// Where children begin: no chunk lies on both sides, so that each child's memory goes back by itself.
    pub(super) cuts: Vec<u64>,
}

impl FragmentStore for Chunks {
    type Fragment = Handle;
    type Cursor = ChunkCursor;
    type Writer = ChunkWriter;

    fn cursor(&self, fragment: &Handle, range: &Range, _share: usize) -> Result<ChunkCursor> {
        let mut cursor = ChunkCursor {
            packer: Packer::new(self.order, self.state_bytes),
            chunks: fragment.0.chunks_in(range),
            fragment: fragment.clone(),
            range: range.clone(),
            block: block_of(fragment.shape())?,
            at: 0,
            end: 0,
        };
        cursor.enter_next_chunk()?;
        Ok(cursor)
    }

    fn writer(&self, expected: &Expected) -> Result<ChunkWriter> {
        Ok(ChunkWriter {
            packer: Packer::new(self.order, self.state_bytes),
            pending: block_of(expected.shape)?,
            shape: expected.shape,
            chunks: Vec::new(),
            cuts_passed: 0,
            codec: None,
            raw_bytes: 0,
            store: self.clone(),
        })
    }
}

fn block_of(shape: Shape) -> Result<Block> {
    Block::new(shape).ok_or_else(|| Error::invalid("states are kept as puts"))
}

/// A walk over part of a fragment, chunk by chunk.
pub(super) struct ChunkCursor {
    fragment: Handle,
    packer: Packer,
    range: Range,
    chunks: std::ops::Range<usize>,
    /// The chunk's records, and which of them are still to come.
    block: Block,
    at: usize,
    end: usize,
}

impl ChunkCursor {
    /// Stands on the first record inside the range of the next chunk that has one, or past the end.
    fn enter_next_chunk(&mut self) -> Result<()> {
        while let Some(number) = self.chunks.next() {
            let chunk = self.fragment.0.chunks[number].bytes();
            self.block.clear();
            let damaged = || Error::invalid("a chunk in memory does not unpack");
            self.packer.unpack(&chunk, &mut self.block).ok_or_else(damaged)?;
            let (low, high) = (&self.range.low, &self.range.high);
            self.at = self.first_where(|prefix, key| low.place(prefix, key).is_ge());
            self.end = match high {
                Some(high) => self.first_where(|prefix, key| high.place(prefix, key).is_ge()),
                None => self.block.len(),
            };
            if self.at < self.end {
                return Ok(());
            }
        }
        (self.at, self.end) = (0, 0);
        Ok(())
    }

    fn first_where(&self, is_behind: impl Fn(u64, &[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.block.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match is_behind(self.block.prefixes()[middle], self.block.key(middle)) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    fn go_on(&mut self, count: usize) -> Result<()> {
        self.at += count;
        if self.at == self.end { self.enter_next_chunk() } else { Ok(()) }
    }
}

impl Cursor for ChunkCursor {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        (self.at < self.end).then(|| self.block.prefixes()[self.at])
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.block.record(self.at)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.go_on(1)
    }

    fn fill(&mut self, block: &mut Block) -> Result<()> {
        while self.at < self.end && block.room() > 0 {
            let count = (self.end - self.at).min(block.room());
            block.extend(&self.block, self.at..self.at + count);
            self.go_on(count)?;
        }
        Ok(())
    }

    fn fill_up_to(&mut self, high: u64, block: &mut Block) -> Result<()> {
        while self.at < self.end {
            let left = &self.block.prefixes()[self.at..self.end];
            let count = left.partition_point(|&prefix| prefix <= high);
            if count == 0 {
                break;
            }
            block.extend(&self.block, self.at..self.at + count);
            self.go_on(count)?;
        }
        Ok(())
    }
}

/// A fragment being written.
pub(super) struct ChunkWriter {
    store: Chunks,
    packer: Packer,
    shape: Shape,
    chunks: Vec<Chunk>,
    /// What the next chunk will have.
    pending: Block,
    cuts_passed: usize,
    /// How bytes are packed; chosen at the first chunk.
    codec: Option<Codec>,
    raw_bytes: u64,
}

impl ChunkWriter {
    /// How many records from `start` on may join the chunk that is pending.
    fn fit(&self, block: &Block, start: usize) -> usize {
        let records = block.len().min(start + CHUNK_RECORDS - self.pending.len());
        let behind = &block.prefixes()[start..records];
        let end = match self.store.cuts.get(self.cuts_passed) {
            Some(&cut) => start + behind.partition_point(|&prefix| prefix < cut),
            None => records,
        };
        let room = CHUNK_BYTES.saturating_sub(self.pending.bytes().len());
        let begin = block.offset(start);
        // One at least, however long.
        (start + 1..end)
            .take_while(|&index| block.offset(index + 1) - begin <= room)
            .last()
            .map_or(end.min(start + 1), |last| last + 1)
    }

    fn seal(&mut self) {
        let Some(last) = self.pending.len().checked_sub(1) else { return };
        let codec = *self.codec.get_or_insert_with(|| {
            let [plain, packed] =
                [Codec::None, Codec::Lz4].map(|codec| self.packer.pack(&self.pending, codec).len());
            let saved = 1.0 - packed as f64 / plain as f64;
            if saved >= WORTHWHILE { Codec::Lz4 } else { Codec::None }
        });
        let (first, last) = (self.pending.prefixes()[0], self.pending.prefixes()[last]);
        let bytes = self.packer.pack(&self.pending, codec);
        self.chunks.push(Chunk::new(first, last, self.pending.len(), bytes));
        self.pending.clear();
    }
}

impl FragmentWriter for ChunkWriter {
    type Fragment = Handle;

    fn push(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        let mut block = block_of(self.shape)?;
        block.push(prefix, record);
        self.push_block(&block)
    }

    fn push_block(&mut self, block: &Block) -> Result<()> {
        self.raw_bytes += block.bytes().len() as u64;
        let mut start = 0;
        while start < block.len() {
            let prefix = block.prefixes()[start];
            while self.store.cuts.get(self.cuts_passed).is_some_and(|&cut| cut <= prefix) {
                self.seal();
                self.cuts_passed += 1;
            }
            let end = self.fit(block, start);
            self.pending.extend(block, start..end);
            if self.pending.len() >= CHUNK_RECORDS || self.pending.bytes().len() >= CHUNK_BYTES {
                self.seal();
            }
            start = end;
        }
        Ok(())
    }

    /// Before packing: what counts how much falls to each child needs the same measure as the records.
    fn bytes(&self) -> u64 {
        self.raw_bytes
    }

    fn finish(mut self) -> Result<Option<Handle>> {
        self.seal();
        if self.chunks.is_empty() {
            return Ok(None);
        }
        self.chunks.shrink_to_fit();
        let id = self.store.next_id.fetch_add(1, Ordering::Relaxed);
        let packed = Packed::new(id, self.chunks, self.shape, self.store.meter);
        Ok(Some(Handle(Arc::new(packed))))
    }
}
