//! Where a buffer's memory comes from and goes; and buffers that are in files, for those who still see them: see
//! [`Attic`].

use std::path::Path;
use std::sync::Arc;

use forebay_base::Result;
use forebay_env::sync::atomic::Ordering;
use forebay_env::{Attic, FileSystem};

use super::{ArenaPool, WriteBuffer};

impl WriteBuffer {
    pub(super) fn pool(&self) -> Option<Arc<ArenaPool>> {
        self.pool.clone()
    }

    pub(super) fn give_back_words(&self, words: Vec<u64>) {
        if let Some(pool) = &self.pool {
            pool.put_back_words(words);
        }
    }

    /// Whether it has [moved to a file](Self::move_to).
    pub fn is_filed(&self) -> bool {
        self.filed.load(Ordering::Acquire)
    }

    /// Moves a flushed buffer out of memory, for those who still see it: its bytes, and the order over them. Lookups
    /// go on meanwhile and after. Says whether that can be.
    pub fn move_to(&self, fs: &dyn FileSystem, path: &Path) -> Result<bool> {
        let Some(arena) = self.arena.as_ref().filter(|_| !self.is_filed()) else { return Ok(false) };
        // And the order over it.
        let bytes = 2 * arena.capacity() as u64;
        let Some(mut attic) = Attic::make(fs, path, bytes)? else { return Ok(false) };
        if !attic.take_arena(arena)? {
            return Ok(false);
        }
        if let Some(pool) = &self.pool {
            pool.let_go(arena);
        }
        self.filed.store(true, Ordering::Release);
        *self.sorted.write() = None;
        self.newest.write().clear();
        self.index.write().tables.values_mut().try_for_each(|table| table.move_to(&mut attic))?;
        Ok(true)
    }
}

impl Drop for WriteBuffer {
    fn drop(&mut self) {
        if let (Some(pool), Some(arena)) = (&self.pool, self.arena.take()) {
            // A lookup may be the last that has it: giving much memory back to the system would take it long.
            let mut index = self.index.write();
            index
                .tables
                .values_mut()
                .filter_map(|table| table.tail.take())
                .for_each(|words| pool.put_back_words(words));
            if !self.filed.load(Ordering::Acquire) {
                pool.put_back(arena);
            }
        }
    }
}
