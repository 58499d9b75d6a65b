//! Fragments in memory: what one spill, split or merge wrote, as packed chunks.
//!
//! **Invariant:** a fragment's chunks are in order, none is empty, and each key comes once.
//!
//! **Invariant:** a chunk's memory goes back once the only node that has records in it was merged, or with the
//! fragment. Nobody asks for it after that.

use std::fmt;

use forebay_base::record::Shape;
use forebay_base::{Bound, Range};
use forebay_buffer_tree as tree;
use forebay_env::sync::atomic::{AtomicUsize, Ordering};
use forebay_env::sync::{Arc, Mutex};

/// What a chunk takes besides its bytes: its entry, and what an allocator adds.
const CHUNK_BYTES: usize = size_of::<Chunk>() + 16;

/// Packed records, and where they lie in the order.
pub(super) struct Chunk {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) records: u32,
    bytes: Mutex<Arc<[u8]>>,
}

impl Chunk {
    pub(super) fn new(first: u64, last: u64, records: usize, bytes: &[u8]) -> Self {
        Self { first, last, records: records as u32, bytes: Mutex::new(bytes.into()) }
    }

    pub(super) fn bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes.lock())
    }
}

/// Counts memory, for all who hold it.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter(Arc<AtomicUsize>);

impl Meter {
    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Chunks that were written at one go.
pub(super) struct Packed {
    id: u64,
    pub(super) chunks: Vec<Chunk>,
    shape: Shape,
    meter: Meter,
}

impl Packed {
    pub(super) fn new(id: u64, chunks: Vec<Chunk>, shape: Shape, meter: Meter) -> Self {
        let packed = Self { id, chunks, shape, meter };
        packed.meter.add(packed.memory_bytes());
        packed
    }

    fn memory_bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| chunk.bytes.lock().len());
        chunks.sum::<usize>() + self.chunks.capacity() * CHUNK_BYTES
    }

    /// The chunks that may have records inside the range.
    pub(super) fn chunks_in(&self, range: &Range) -> std::ops::Range<usize> {
        let low = self.chunks.partition_point(|chunk| chunk.last < range.low.prefix);
        let high = range.high.as_ref().map_or(self.chunks.len(), |high| {
            self.chunks.partition_point(|chunk| Bound::at_prefix(chunk.first) < *high)
        });
        low..high.max(low)
    }

    /// About how many records there are between two prefixes, both included.
    fn records_between(&self, low: u64, high: u64) -> u64 {
        let first = self.chunks.partition_point(|chunk| chunk.last < low);
        let end = self.chunks.partition_point(|chunk| chunk.first <= high);
        self.chunks[first..end.max(first)].iter().map(|chunk| chunk.records as u64).sum()
    }

    /// Gives back the memory of chunks that lie inside the range entirely.
    pub(super) fn release(&self, range: &Range) {
        for chunk in &self.chunks[self.chunks_in(range)] {
            let is_above = range.low.prefix < chunk.first || range.low == Bound::at_prefix(chunk.first);
            let is_below = range.high.as_ref().is_none_or(|high| chunk.last < high.prefix);
            if is_above && is_below {
                let gone = std::mem::replace(&mut *chunk.bytes.lock(), Arc::new([]));
                self.meter.subtract(gone.len());
            }
        }
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        self.meter.subtract(self.memory_bytes());
    }
}

/// A fragment that nodes refer to.
#[derive(Clone)]
pub(super) struct Handle(pub(super) Arc<Packed>);

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.0.id)
    }
}

impl tree::Fragment for Handle {
    fn id(&self) -> u64 {
        self.0.id
    }

    fn middle(&self, range: &Range) -> Option<Bound> {
        let chunks = self.0.chunks_in(range);
        let middle = Bound::at_prefix(self.0.chunks.get(chunks.start + chunks.len() / 2)?.first);
        range.can_split_at(&middle).then_some(middle)
    }

    fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        let chunks = &self.0.chunks[self.0.chunks_in(range)];
        let begun = chunks.partition_point(|chunk| chunk.first <= at.prefix);
        let whole = chunks.partition_point(|chunk| chunk.last < at.prefix);
        let count = |chunks: &[Chunk]| chunks.iter().map(|chunk| chunk.records as u64).sum::<u64>() as f64;
        if begun == 0 || whole == chunks.len() {
            return if begun == 0 { 0.0 } else { 1.0 };
        }
        let (below, cut) = (count(&chunks[..whole]), count(&chunks[whole..begun]));
        // Some chunk may lie on both sides, or does not: no side is certain to be empty.
        ((below + cut / 2.0) / count(chunks)).clamp(0.001, 0.999)
    }

    fn repeats<'a>(fragments: impl Iterator<Item = &'a Self>, low: u64, high: u64) -> f64 {
        // As if all keys of shorter lists were in the longest one: then a merge reads no more than so many times what
        // it gets rid of. Where they are new, the leaf grows and splits, which merges it as well.
        let (mut sum, mut most) = (0.0, 1.0f64);
        for fragment in fragments {
            let records = fragment.0.records_between(low, high) as f64;
            (sum, most) = (sum + records, most.max(records));
        }
        sum / most
    }

    fn shape(&self) -> Shape {
        self.0.shape
    }
}
