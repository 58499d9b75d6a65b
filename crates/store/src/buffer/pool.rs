//! Arenas, and the memory of words that put their records in order, are allocated once and recycled: the
//! first touch of a page costs more than sorting what fits it.

use std::sync::Arc;

use forebay_env::sync::Mutex;
use forebay_env::{Appender, Arena};

/// The arenas of one database.
#[derive(Debug)]
pub struct ArenaPool {
    free: Mutex<Vec<Arc<Arena>>>,
    words: Mutex<Vec<Vec<u64>>>,
    arena_bytes: usize,
    spare_max: usize,
}

impl ArenaPool {
    /// A pool that keeps up to `spare_max` unused arenas.
    pub fn new(arena_bytes: usize, spare_max: usize) -> Arc<Self> {
        Arc::new(Self { free: Mutex::default(), words: Mutex::default(), arena_bytes, spare_max })
    }

    /// An empty arena of at least `bytes_min` bytes: recycled, or new.
    pub fn take(&self, bytes_min: usize) -> (Arc<Arena>, Appender) {
        if bytes_min <= self.arena_bytes {
            while let Some(arena) = self.free.lock().pop() {
                if let Ok(recycled) = Arena::recycle(arena) {
                    return recycled;
                }
            }
        }
        Arena::new(bytes_min.max(self.arena_bytes))
    }

    /// The usual size of an arena.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    pub(crate) fn put_back(&self, arena: Arc<Arena>) {
        let mut free = self.free.lock();
        if arena.capacity() == self.arena_bytes && free.len() < self.spare_max {
            free.push(arena);
        }
    }

    /// Gives all that is unused back to the system.
    pub fn release(&self) {
        self.free.lock().clear();
        self.words.lock().clear();
    }

    /// Memory for words, with whatever words are still in it.
    pub(crate) fn take_words(&self) -> Vec<u64> {
        self.words.lock().pop().unwrap_or_default()
    }

    pub(crate) fn put_back_words(&self, words: Vec<u64>) {
        let mut kept = self.words.lock();
        if kept.len() < self.spare_max {
            kept.push(words);
        }
    }
}
