//! Arenas, and the memory of words that put their records in order, are allocated once and recycled: the
//! first touch of a page costs more than sorting what fits it.

use std::sync::Arc;

use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use forebay_env::{Appender, Arena};

/// The arenas of one database.
#[derive(Debug)]
pub struct ArenaPool {
    free: Mutex<Vec<Arc<Arena>>>,
    words: Mutex<Vec<Vec<u64>>>,
    /// Changed under the lock of `free`.
    arena_bytes: AtomicUsize,
    spare_max: AtomicUsize,
    /// Of all arenas that were taken or are kept.
    held_bytes: AtomicU64,
    /// Of the words of one buffer, the most of late.
    words_bytes: AtomicU64,
}

/// How soon it is forgotten that buffers had shorter records.
const WORDS_FORGOTTEN_PART: u64 = 8;

impl ArenaPool {
    /// A pool that keeps up to `spare_max` unused arenas.
    pub fn new(arena_bytes: usize, spare_max: usize) -> Arc<Self> {
        let (free, words) = (Mutex::default(), Mutex::default());
        let (held_bytes, words_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let (arena_bytes, spare_max) = (AtomicUsize::new(arena_bytes), AtomicUsize::new(spare_max));
        Arc::new(Self { free, words, arena_bytes, spare_max, held_bytes, words_bytes })
    }

    /// From now on arenas are made of this many bytes, and up to `spare_max` kept. Those in use stay as they are.
    pub fn resize(&self, arena_bytes: usize, spare_max: usize) {
        if (self.arena_bytes(), self.spare_max()) == (arena_bytes, spare_max) {
            return;
        }
        let mut free = self.free.lock();
        self.arena_bytes.store(arena_bytes, Ordering::Relaxed);
        self.spare_max.store(spare_max, Ordering::Relaxed);
        free.drain(..).for_each(|arena| self.let_go(&arena));
    }

    /// An empty arena of at least `bytes_min` bytes: recycled, or new.
    pub fn take(&self, bytes_min: usize) -> (Arc<Arena>, Appender) {
        if bytes_min <= self.arena_bytes() {
            while let Some(arena) = self.free.lock().pop() {
                match Arena::recycle(arena) {
                    Ok(recycled) => return recycled,
                    Err(shared) => self.let_go(&shared),
                }
            }
        }
        self.make(bytes_min.max(self.arena_bytes()))
    }

    /// A new arena of this many bytes.
    pub(crate) fn make(&self, bytes: usize) -> (Arc<Arena>, Appender) {
        self.held_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Arena::new(bytes)
    }

    pub(super) fn let_go(&self, arena: &Arena) {
        let held_bytes = self.held_bytes.fetch_sub(arena.capacity() as u64, Ordering::Relaxed);
        debug_assert!(held_bytes >= arena.capacity() as u64, "what is let go was counted as held");
    }

    /// Memory of all arenas, those included that only snapshots need.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Memory that the order over one buffer takes, as records are of late.
    pub fn words_bytes(&self) -> u64 {
        self.words_bytes.load(Ordering::Relaxed)
    }

    /// Notes that a buffer has this many records.
    pub(crate) fn note_records(&self, records: u64) {
        let before = self.words_bytes();
        let bytes = (size_of::<u64>() as u64 * records).max(before - before / WORDS_FORGOTTEN_PART);
        self.words_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The usual size of an arena.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes.load(Ordering::Relaxed)
    }

    fn spare_max(&self) -> usize {
        self.spare_max.load(Ordering::Relaxed)
    }

    /// Of as many arenas as are kept.
    fn usual_bytes(&self) -> u64 {
        self.arena_bytes() as u64 * self.spare_max() as u64
    }

    pub(crate) fn put_back(&self, arena: Arc<Arena>) {
        let mut free = self.free.lock();
        // What was taken while others held theirs longer than usual is too much once they give them back.
        let is_surplus = self.held_bytes() > self.usual_bytes();
        if arena.capacity() == self.arena_bytes() && free.len() < self.spare_max() && !is_surplus {
            free.push(arena);
            debug_assert!(free.len() <= self.spare_max(), "sizes change under this lock");
        } else {
            self.let_go(&arena);
        }
    }

    /// Gives all that is unused back to the system.
    pub fn release(&self) {
        self.free.lock().drain(..).for_each(|arena| self.let_go(&arena));
        self.words.lock().clear();
    }

    /// Memory for words, with whatever words are still in it.
    pub(crate) fn take_words(&self) -> Vec<u64> {
        self.words.lock().pop().unwrap_or_default()
    }

    pub(crate) fn put_back_words(&self, words: Vec<u64>) {
        let mut kept = self.words.lock();
        if kept.len() < self.spare_max() {
            kept.push(words);
        }
    }
}
