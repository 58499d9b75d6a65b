//! Caches of checked blocks of files, evicted by the `quick_cache` crate, with their bytes in [`PageFrames`]; the one of list
//! files' pages.

use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use forebay_base::hash::mix;
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::{PageFrame, PageFrames};
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, Weighter};

use crate::list::Page;

/// Which block: its file's id, and a number that tells it from the file's other blocks.
pub type BlockId = (u64, u64);

/// Something that a cache can hold.
pub trait Cached: Send + Sync {
    /// The memory that it takes.
    fn memory_bytes(&self) -> usize;
    /// Moves its bytes to a frame.
    fn move_to_frame(&mut self, frames: &Arc<PageFrames>);
}

/// The bytes of a block: in a vector, or in a frame once it is cached.
#[derive(Debug)]
pub enum Held {
    /// As they were read or unpacked.
    Own(Vec<u8>),
    /// As a cache keeps them.
    Framed(PageFrame),
}

impl Held {
    /// Moves them to a frame, if they fit one.
    pub fn move_to_frame(&mut self, frames: &Arc<PageFrames>) {
        if let Some(frame) = frames.hold(self) {
            *self = Self::Framed(frame);
        }
    }

    /// The vector, or an empty one in place of a frame. Nothing is left.
    pub fn take(&mut self) -> Vec<u8> {
        match std::mem::take(self) {
            Self::Own(bytes) => bytes,
            Self::Framed(_) => Vec::new(),
        }
    }

    /// The memory that they take.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.capacity(),
            Self::Framed(frame) => frame.memory_bytes(),
        }
    }
}

impl Default for Held {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl From<Vec<u8>> for Held {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Own(bytes)
    }
}

impl Deref for Held {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Framed(frame) => frame,
        }
    }
}

/// A hasher with no seed, so that a simulation evicts the same blocks every time.
#[derive(Clone, Default)]
struct PlainHasher(u64);

impl Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte as u64));
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0 ^ word);
    }
}

#[derive(Clone)]
struct ByBytes;

impl<B: Cached> Weighter<BlockId, Arc<B>> for ByBytes {
    fn weight(&self, _id: &BlockId, block: &Arc<B>) -> u64 {
        block.memory_bytes() as u64 + 64
    }
}

#[derive(Clone)]
struct Forget;

impl<B> Lifecycle<BlockId, Arc<B>> for Forget {
    type RequestState = ();
    fn begin_request(&self) {}
    fn on_evict(&self, _state: &mut (), _id: BlockId, _block: Arc<B>) {}
}

/// What becomes of what a read has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caching {
    /// It is kept in the cache.
    #[default]
    Keep,
    /// It is not. What the cache has is used all the same.
    Pass,
}

/// A bounded cache of blocks of one kind.
pub struct BlockCache<B: Cached> {
    blocks: Cache<BlockId, Arc<B>, ByBytes, BuildHasherDefault<PlainHasher>, Forget>,
    frames: Arc<PageFrames>,
    capacity_bytes: AtomicU64,
}

impl<B: Cached> BlockCache<B> {
    /// A cache of this many bytes.
    pub fn new(bytes: u64) -> Self {
        let estimated_blocks = (bytes / 4096).max(16) as usize;
        let blocks = Cache::with(estimated_blocks, bytes, ByBytes, BuildHasherDefault::default(), Forget);
        Self { blocks, frames: Arc::default(), capacity_bytes: AtomicU64::new(bytes) }
    }

    /// Grows or shrinks it to about this many bytes.
    pub fn resize(&self, bytes: u64) {
        // Each time all its shards are locked.
        if self.capacity_bytes().abs_diff(bytes) > bytes / 16 {
            self.capacity_bytes.store(bytes, Ordering::Relaxed);
            self.frames.free_many(|| self.blocks.set_capacity(bytes));
        }
    }

    /// A block, if it is there.
    pub fn get(&self, id: BlockId) -> Option<Arc<B>> {
        self.blocks.get(&id)
    }

    /// Takes a block in.
    pub fn insert(&self, id: BlockId, mut block: B) -> Arc<B> {
        if self.capacity_bytes() == 0 {
            return Arc::new(block);
        }
        block.move_to_frame(&self.frames);
        let block = Arc::new(block);
        self.blocks.insert(id, Arc::clone(&block));
        block
    }

    /// The block for whoever has read it, taken in or not.
    pub fn take(&self, id: BlockId, block: B, caching: Caching) -> Arc<B> {
        match caching {
            Caching::Keep => self.insert(id, block),
            Caching::Pass => Arc::new(block),
        }
    }

    /// How many bytes it may hold.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Empties the cache.
    pub fn clear(&self) {
        self.frames.free_many(|| self.blocks.clear());
    }
}

impl<B: Cached> Drop for BlockCache<B> {
    fn drop(&mut self) {
        // One by one each page would be given back by a call of its own.
        self.clear();
    }
}

/// A bounded cache of decompressed pages of list files, each by its number in the file.
pub struct PageCache(BlockCache<Page>);

impl PageCache {
    /// A cache of this many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(BlockCache::new(bytes))
    }

    /// Grows or shrinks it to about this many bytes.
    pub fn resize(&self, bytes: u64) {
        self.0.resize(bytes);
    }

    pub(crate) fn blocks(&self) -> &BlockCache<Page> {
        &self.0
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    /// Empties the cache.
    pub fn clear(&self) {
        self.0.clear();
    }
}
