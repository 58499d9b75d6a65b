//! Memory by owner: what work takes beside write buffers, filters and caches. It is claimed before it is used and
//! given up with what used it; what reading may take is what is left.
//!
//! **Invariant:** of each owner, `now` is the sum of its claims, and `high` is never less.

use std::sync::Arc;

use forebay_base::limits::{BLOCK_BYTES, STEP_BYTES};
use forebay_env::sync::atomic::{AtomicU64, Ordering};

/// Who takes memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Jobs that read lists and trees.
    Merging,
    /// Lists and trees that are being written, with their filters.
    Writing,
    /// What cursors of users read long pieces into.
    Scanning,
    /// Cursors of users, and the pages that they stand on: each has one of every list.
    Standing,
    /// Runs that tables keep in memory.
    Resident,
}

const OWNERS: usize = 5;
/// What was claimed of late counts as claimed: of the difference to now, each look forgets this part.
const FORGOTTEN_PART: u64 = 64;
/// The chunks in which files are written take this part of the limit at most.
const CHUNK_PART: u64 = 32;
const CHUNK_BYTES_MIN: u64 = 64 << 10;

const _: () =
    assert!(CHUNK_BYTES_MIN.is_power_of_two() && CHUNK_BYTES_MIN.is_multiple_of(2 * BLOCK_BYTES as u64));
const _: () = assert!(Owner::Resident as usize + 1 == OWNERS, "each owner has a place");

/// What is claimed of one database's memory.
#[derive(Debug)]
pub struct MemoryUse {
    limit_bytes: AtomicU64,
    now: [AtomicU64; OWNERS],
    high: [AtomicU64; OWNERS],
}

impl Default for MemoryUse {
    /// Without a limit.
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl MemoryUse {
    /// Of a database that may take this much in all.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes: AtomicU64::new(limit_bytes), now: Default::default(), high: Default::default() }
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// From now on the database may take this much. What is claimed stays claimed.
    pub fn set_limit(&self, limit_bytes: u64) {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
    }

    /// What is claimed now.
    pub fn now(&self, owner: Owner) -> u64 {
        self.now[owner as usize].load(Ordering::Relaxed)
    }

    /// The most that was claimed of late: as much will be wanted again.
    pub fn high(&self, owner: Owner) -> u64 {
        self.high[owner as usize].load(Ordering::Relaxed).max(self.now(owner))
    }

    /// Forgets a little of what was claimed before. To be called now and then.
    pub fn look(&self) {
        for (high, now) in self.high.iter().zip(&self.now) {
            let (most, now) = (high.load(Ordering::Relaxed), now.load(Ordering::Relaxed));
            high.store(now.max(most - most.saturating_sub(now).div_ceil(FORGOTTEN_PART)), Ordering::Relaxed);
        }
    }

    /// Takes this much for an owner, until it is dropped.
    pub fn claim(self: &Arc<Self>, owner: Owner, bytes: u64) -> MemoryClaim {
        let mut claim = MemoryClaim { memory: Arc::clone(self), owner, bytes: 0 };
        claim.resize(bytes);
        claim
    }

    /// How long the writes of a file are, or two of them where one goes on while the next one is filled.
    pub fn write_bytes(&self) -> usize {
        let most = STEP_BYTES as u64;
        let bytes = (self.limit_bytes() / CHUNK_PART).clamp(CHUNK_BYTES_MIN, most);
        debug_assert!((CHUNK_BYTES_MIN..=most).contains(&bytes));
        1 << bytes.ilog2()
    }

    /// Whether the owner takes more than this part of the limit.
    pub fn exceeds(&self, owner: Owner, part: u64) -> bool {
        self.now(owner) > self.limit_bytes() / part
    }
}

/// Memory that somebody takes.
#[derive(Debug)]
pub struct MemoryClaim {
    memory: Arc<MemoryUse>,
    owner: Owner,
    bytes: u64,
}

impl MemoryClaim {
    /// Takes more, or gives some of it up.
    pub fn resize(&mut self, bytes: u64) {
        let (now, high) = (&self.memory.now[self.owner as usize], &self.memory.high[self.owner as usize]);
        if bytes >= self.bytes {
            let sum = now.fetch_add(bytes - self.bytes, Ordering::Relaxed) + bytes - self.bytes;
            high.fetch_max(sum, Ordering::Relaxed);
        } else {
            let sum = now.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            debug_assert!(sum >= self.bytes, "an owner has the sum of its claims");
        }
        self.bytes = bytes;
    }
}

impl Drop for MemoryClaim {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_add_up_and_what_was_claimed_is_forgotten_slowly() {
        let memory = Arc::new(MemoryUse::new(64 << 20));
        let one = memory.claim(Owner::Writing, 1000);
        let mut other = memory.claim(Owner::Writing, 10);
        other.resize(500);
        assert_eq!((memory.now(Owner::Writing), memory.now(Owner::Merging)), (1500, 0));
        drop(one);
        other.resize(100);
        assert_eq!((memory.now(Owner::Writing), memory.high(Owner::Writing)), (100, 1500));
        memory.look();
        assert_eq!(memory.high(Owner::Writing), 1500 - 1400_u64.div_ceil(64));
        (0..2000).for_each(|_| memory.look());
        assert_eq!(memory.high(Owner::Writing), 100);
        drop(other);
        assert_eq!(memory.now(Owner::Writing), 0);
    }

    #[test]
    fn files_are_written_in_pieces_that_fit_the_limit() {
        let bytes = [1 << 20, 16 << 20, 32 << 20, 4 << 30].map(|limit| MemoryUse::new(limit).write_bytes());
        assert_eq!(bytes, [64 << 10, 512 << 10, 1 << 20, 1 << 20]);
        assert_eq!(MemoryUse::default().write_bytes(), 1 << 20);
    }
}
