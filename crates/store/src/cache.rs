//! The page cache: decompressed, checked pages of list files, evicted by the `quick_cache` crate.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use forebay_base::hash::mix;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, Weighter};

use crate::list::Page;

/// Which page of which file.
pub(crate) type PageId = (u64, u32);

/// A hasher with no seed, so that a simulation evicts the same pages every time.
#[derive(Clone, Default)]
struct PlainHasher(u64);

impl Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte as u64));
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word as u64);
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0 ^ word);
    }
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<PageId, Arc<Page>> for ByBytes {
    fn weight(&self, _id: &PageId, page: &Arc<Page>) -> u64 {
        page.memory_bytes() as u64 + 64
    }
}

#[derive(Clone)]
struct Forget;

impl Lifecycle<PageId, Arc<Page>> for Forget {
    type RequestState = ();
    fn begin_request(&self) {}
    fn on_evict(&self, _state: &mut (), _id: PageId, _page: Arc<Page>) {}
}

/// A bounded cache of pages.
pub struct PageCache {
    pages: Cache<PageId, Arc<Page>, ByBytes, BuildHasherDefault<PlainHasher>, Forget>,
}

impl PageCache {
    /// A cache of so many bytes.
    pub fn new(bytes: u64) -> Self {
        let estimated_pages = (bytes / 4096).max(16) as usize;
        let pages = Cache::with(estimated_pages, bytes, ByBytes, BuildHasherDefault::default(), Forget);
        Self { pages }
    }

    /// Grows or shrinks it to about so many bytes.
    pub fn resize(&self, bytes: u64) {
        // Each time all its shards are locked.
        if self.pages.capacity().abs_diff(bytes) > bytes / 16 {
            self.pages.set_capacity(bytes);
        }
    }

    pub(crate) fn get(&self, id: PageId) -> Option<Arc<Page>> {
        self.pages.get(&id)
    }

    pub(crate) fn insert(&self, id: PageId, page: Arc<Page>) {
        self.pages.insert(id, page);
    }

    /// How many bytes it may hold.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.pages.capacity()
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.pages.weight()
    }

    /// Empties the cache.
    pub fn clear(&self) {
        self.pages.clear();
    }
}
