//! Idle time: nobody has written for a second, and until half a buffer was written since. Memory that only writing needs
//! is lent to reading meanwhile.

use std::sync::Arc;
use std::time::Duration;

use forebay_env::Haste;
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::Layout;
use forebay_store::Owner;
use forebay_store::log::RECORD_BYTES_MIN;

use crate::memory::MemoryShares;
use crate::options::Division;
use crate::versions::{State, TableState};

/// A database is idle after this time without a write.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Work takes this much even under the smallest limits; it is part of what may be taken beyond a limit.
const WORK_BYTES_FREE: u64 = 4 << 20;
/// What may be taken beyond a limit, however small that is.
const EXCESS_BYTES: u64 = 16 << 20;

const _: () = assert!(WORK_BYTES_FREE < EXCESS_BYTES, "others may take something beyond a limit, too");

/// What the housekeeper remembers to notice that nobody writes.
#[derive(Default)]
pub(crate) struct IdleWatch {
    last_sequence: u64,
    since: Duration,
}

impl IdleWatch {
    /// Looks whether anybody has written. To be called now and then.
    pub(crate) fn look(&mut self, memory: &MemoryShares, now: Duration) {
        let last_sequence = memory.context.log.as_ref().map_or(0, |log| log.last_sequence());
        debug_assert!(last_sequence >= self.last_sequence, "numbers are given upwards");
        let is_busy = || memory.context.options.is_never_idle || memory.context.limit.is_waited_for();
        let is_flushed = || memory.versions.state().sealed.is_empty();
        if last_sequence != self.last_sequence || is_busy() || !is_flushed() {
            *self = Self { last_sequence, since: now };
        } else if now.saturating_sub(self.since) >= IDLE_AFTER && !memory.is_idle() {
            memory.note_idle();
            memory.context.env.jobs.wake();
        }
        // Each time: somebody may have begun to write as this was told last.
        let haste = if memory.is_idle() { Haste::Leisure } else { Haste::Hasty };
        memory.context.set_haste(haste);
        memory.report();
        match memory.filters_exceed() || memory.filters_may_grow() {
            // Filters that were read meanwhile may come to more than was expected.
            true => memory.tend_filters(),
            false => memory.share_memory(),
        }
    }
}

impl MemoryShares {
    /// Whether nobody has written for a while, or little since.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed)
    }

    /// Takes it for so that nobody has written for a while, until much is written.
    pub(crate) fn begin_idle(&self) {
        self.note_idle();
        self.share_memory();
    }

    fn note_idle(&self) {
        self.idle_from_bytes.store(self.written_bytes(), Ordering::Relaxed);
        // In this order: who ends it takes back what may have been lent by then.
        self.has_lent.store(true, Ordering::Relaxed);
        self.is_idle.store(true, Ordering::Relaxed);
    }

    /// What was written since opening, as far as it fills buffers: short records do by their number.
    pub(super) fn written_bytes(&self) -> u64 {
        let metrics = &self.context.metrics;
        metrics.user_bytes.get() + RECORD_BYTES_MIN as u64 * metrics.user_records.get()
    }

    /// Notes that something was written while nobody had: writing needs its memory again once another buffer is to be
    /// filled soon, and not for a write now and then.
    #[cold]
    pub(crate) fn note_write(&self) {
        if self.end_rest() {
            // The log is to be synced in time.
            self.context.env.jobs.wake();
        }
        let since = self.written_bytes().saturating_sub(self.idle_from_bytes.load(Ordering::Relaxed));
        if since > self.context.pool.arena_bytes() as u64 / 2 {
            self.end_idle();
        }
    }

    /// Notes that a buffer is to be filled.
    pub(crate) fn end_idle(&self) {
        if self.is_idle.swap(false, Ordering::Relaxed) {
            self.end_rest();
            self.context.set_haste(Haste::Hasty);
            self.context.env.jobs.wake();
        }
    }

    /// Takes back what was lent to reading, once that is over: before a second buffer is filled. Filters give theirs back
    /// step by step.
    pub(crate) fn take_back(&self) {
        if self.is_idle() || !self.has_lent.load(Ordering::Relaxed) {
            return;
        }
        // Who fills the second buffer waits for the housekeeper here.
        let _one_at_a_time = self.sharing.lock();
        if self.has_lent.load(Ordering::Relaxed) {
            self.share();
            self.has_lent.store(self.is_idle(), Ordering::Relaxed);
        }
    }

    /// Memory that filters may take, for now: their share, less what tables keep in memory, and no more than all others
    /// leave.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filter_bytes_of(&self.context.division())
    }

    fn filter_bytes_of(&self, division: &Division) -> u64 {
        let resident = self.context.metrics.memory.now(Owner::Resident);
        let share = (division.filter_bytes() + self.lent_bytes()).saturating_sub(resident);
        let left = self.unclaimed_bytes(division).saturating_sub(division.cache_bytes_min());
        share.min(left).max(division.filter_bytes_min())
    }

    /// What of the limit nobody takes but those who read: neither now nor, as far as that is likely to come again, of
    /// late.
    fn unclaimed_bytes(&self, division: &Division) -> u64 {
        let memory = &self.context.metrics.memory;
        let is_idle = self.lent_bytes() > 0;
        let buffers = self.context.buffers();
        // The order over each buffer, and once more over the one that is being sorted.
        let order = self.context.pool.words_bytes() * (buffers.count as u64 + 1);
        let writing = self.context.pool.held_bytes().max(if is_idle { 0 } else { buffers.total_bytes() })
            + if is_idle { 0 } else { order };
        let work = division.work_bytes(memory.high(Owner::Merging), memory.high(Owner::Writing));
        let work = work + memory.high(Owner::Scanning) + memory.high(Owner::Standing);
        let kept = memory.high(Owner::Resident) + self.context.metrics.index_memory_bytes.get();
        let taken = writing + division.beyond_free(work, WORK_BYTES_FREE) + kept;
        division.limit_bytes.saturating_sub(taken)
    }

    /// Gives the page cache what filters leave of the memory for reading, and while nobody writes what spare buffers
    /// take to both.
    pub(crate) fn share_memory(&self) {
        let _one_at_a_time = self.sharing.lock();
        self.share();
    }

    pub(super) fn share(&self) {
        if self.lent_bytes() > 0 {
            self.has_lent.store(true, Ordering::Relaxed);
            self.context.pool.release();
        }
        self.context.metrics.memory.look();
        let state = self.versions.state();
        self.size_buffers(&state);
        let division = self.context.division();
        self.versions.lists.resident.set_room(division.resident_room());
        let (limit, held) = (self.filter_bytes_of(&division), self.context.metrics.filter_memory_bytes.get());
        let cache_bytes = division.cache_bytes_min() + limit.saturating_sub(held);
        debug_assert!(
            cache_bytes + held.min(limit) <= division.limit_bytes,
            "filters and pages together are within the limit"
        );
        // Of a tree, nodes are kept rather than pages.
        // A table that had another layout may still have some.
        let has_trees =
            |table: &Arc<TableState>| table.options.layout.grows_trees() || table.version.has_trees();
        let nodes_bytes = if state.tables.values().any(has_trees) { cache_bytes / 4 * 3 } else { 0 };
        self.versions.trees.cache.resize(nodes_bytes);
        self.versions.lists.cache.resize(cache_bytes - nodes_bytes);
    }

    /// Where this is the first table that keeps records in memory, buffers are shorter at once.
    pub(crate) fn note_layout(&self, layout: Layout) {
        if layout.keeps_in_memory() && !self.context.keeps_records.load(Ordering::Relaxed) {
            self.share_memory();
        }
    }

    /// Buffers are shorter where tables keep records in memory. One that is longer is filled no further.
    fn size_buffers(&self, state: &State) {
        let keeps = |table: &Arc<TableState>| table.options.layout.keeps_in_memory();
        // A table that had another layout may still have some.
        let keeps_records =
            state.tables.values().any(keeps) || self.context.metrics.memory.now(Owner::Resident) > 0;
        self.context.keeps_records.store(keeps_records, Ordering::Relaxed);
        let buffers = self.context.buffers();
        self.context.pool.resize(buffers.bytes as usize, buffers.count);
        self.context.log.iter().for_each(|log| log.limit_fill(buffers.bytes as usize));
    }

    /// Lends what spare buffers and their order would take. What is taken back while filters hold it they give back
    /// step by step.
    pub(super) fn lent_bytes(&self) -> u64 {
        if self.is_idle.load(Ordering::Relaxed) {
            self.context.division().idle_bytes(self.context.buffers())
        } else {
            0
        }
    }
}
