//! How a database's memory is divided among what needs some. Each part follows from the number of bytes that the
//! database may take, which in a [pool](crate::Pool) is another one from time to time.

use super::{
    BLOCK_BYTES, Buffers, MANY_WRITE_BUFFERS, MERGE_BYTES_MAX, Options, RESIDENT_BUFFERS,
    RESIDENT_BUFFERS_MAX, RESIDENT_BUFFERS_MIN, RESIDENT_PERCENT, TRANSACTION_READ_BYTES_MIN,
    TRANSACTION_READS_PART, WRITE_BUFFER_BYTES_MAX, WRITE_BUFFER_BYTES_MIN, WRITE_BUFFERS,
};
use crate::pool::Pool;
use forebay_store::list::ResidentRoom;

/// So little memory is a mapping of its own, which takes what is filled of it.
const POOLED_BUFFER_BYTES_MIN: u64 = 64 << 10;

/// The page cache of a database that sleeps yet.
const POOLED_CACHE_BYTES: u64 = 1 << 20;

/// Whose memory compactors work in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// The database's own.
    Own,
    /// The pool's, which says how much each has to read lists.
    OfPool { job_bytes: u64 },
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Division {
    pub(crate) limit_bytes: u64,
    write_buffer_bytes: Option<u64>,
    write_buffers: Option<usize>,
    resident_percent: Option<u32>,
    compactors: usize,
    work: Work,
}

impl Options {
    /// Of all that the database may take, or usually does.
    pub(crate) fn division(&self) -> Division {
        self.divided(self.memory_limit_bytes())
    }

    /// Of this many bytes.
    pub(crate) fn divided(&self, limit_bytes: u64) -> Division {
        let Self { write_buffer_bytes, write_buffers, resident_percent, .. } = *self;
        let of_pool = |pool: &Pool| Work::OfPool { job_bytes: pool.job_bytes() };
        let work = self.pool.as_ref().map_or(Work::Own, of_pool);
        let compactors = self.compactors();
        Division { limit_bytes, write_buffer_bytes, write_buffers, resident_percent, compactors, work }
    }
}

/// A little less, in steps of a quarter of a power of two: for each other length all buffers are made anew.
fn in_steps(bytes: u64) -> u64 {
    let step = (1 << bytes.ilog2()) / 4;
    bytes / step * step
}

impl Division {
    /// The write buffers beside tables that keep records in memory or without any.
    pub(crate) fn buffers(&self, beside_records: bool) -> Buffers {
        let is_many = beside_records || self.write_buffer_bytes.is_some();
        let (usual_count, part) = if is_many { MANY_WRITE_BUFFERS } else { WRITE_BUFFERS };
        let count = self.write_buffers.unwrap_or(usual_count);
        let usual = if beside_records { self.buffer_bytes_beside_records() } else { self.limit_bytes / part };
        let usual = usual.min(WRITE_BUFFER_BYTES_MAX);
        // More of them share what they would take in all.
        let shorter = usual.saturating_mul(usual_count as u64) / count.max(usual_count) as u64;
        let bytes = match (self.work, self.write_buffer_bytes) {
            (Work::Own, given) => given.unwrap_or(shorter),
            // What is given is the most, since the share is another one from time to time.
            (Work::OfPool { .. }, given) => {
                let least = POOLED_BUFFER_BYTES_MIN * usual_count as u64 / count.max(usual_count) as u64;
                in_steps(shorter.max(least).max(WRITE_BUFFER_BYTES_MIN)).min(given.unwrap_or(u64::MAX))
            }
        };
        debug_assert!(
            self.work == Work::Own || bytes <= shorter.max(POOLED_BUFFER_BYTES_MIN),
            "as its share is"
        );
        Buffers { count, bytes: bytes.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX) }
    }

    /// How long a write buffer is beside tables that keep records in memory: of their share a part, and no more than three
    /// of what that leaves.
    fn buffer_bytes_beside_records(&self) -> u64 {
        let resident = self.resident_part();
        let left = self.limit_bytes.saturating_sub(resident);
        (resident / RESIDENT_BUFFERS).min(left / MANY_WRITE_BUFFERS.1)
    }

    /// Memory for what one transaction has read, unless that is given.
    pub(crate) fn transaction_read_bytes(&self) -> u64 {
        (self.limit_bytes / TRANSACTION_READS_PART).max(TRANSACTION_READ_BYTES_MIN)
    }

    /// Memory for filters and cached pages: a third. Filters come first.
    pub(crate) fn reading_bytes(&self) -> u64 {
        self.limit_bytes / 3
    }

    /// The least of that for cached pages.
    pub(crate) fn cache_bytes_min(&self) -> u64 {
        self.limit_bytes / 48
    }

    /// The most of that for filters.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.reading_bytes() - self.cache_bytes_min()
    }

    /// The most of it where the order over one buffer takes this much.
    pub(crate) fn filter_bytes_beside(&self, order_bytes: u64) -> u64 {
        let buffers = self.buffers(false);
        let writing = buffers.total_bytes() + (buffers.count as u64 + 1) * order_bytes;
        let others = writing + self.merge_bytes() + self.cache_bytes_min();
        let left = self.limit_bytes.saturating_sub(others);
        self.filter_bytes().min(left).max(self.filter_bytes_min())
    }

    /// What filters may take in any case: a sixteenth.
    pub(crate) fn filter_bytes_min(&self) -> u64 {
        self.limit_bytes / 16
    }

    /// Memory that only writing needs: all buffers but the active one, and the order of their records.
    pub(crate) fn idle_bytes(&self, buffers: Buffers) -> u64 {
        let spare = (buffers.count as u64).saturating_sub(1) * buffers.bytes;
        spare + buffers.total_bytes() / 2
    }

    /// The part of the memory for records that tables keep in memory.
    fn resident_part(&self) -> u64 {
        let percent = self.resident_percent.unwrap_or(RESIDENT_PERCENT);
        (u128::from(self.limit_bytes) * u128::from(percent) / 100) as u64
    }

    /// Memory for records that tables keep in memory, of all of them. It is taken from that for reading.
    fn resident_bytes(&self) -> u64 {
        match (self.resident_percent, self.write_buffer_bytes) {
            // One of them comes at any moment, and three may take much of the limit.
            (None, Some(bytes)) => bytes.saturating_mul(2).min(self.limit_bytes / 4),
            _ => self.resident_part(),
        }
    }

    /// The same, with what of it a write buffer takes that comes, and how many of those hold the log. Of key ranges that
    /// fill evenly, and of which the fullest goes first, the oldest record is behind by twice what is there.
    pub(crate) fn resident_room(&self) -> ResidentRoom {
        let (bytes, buffer_bytes) = (self.resident_bytes(), self.buffers(true).bytes);
        let most = bytes.saturating_mul(3) / buffer_bytes.max(1);
        // Each lookup asks them all, and the log goes back as far.
        let buffers_max = most.clamp(RESIDENT_BUFFERS_MIN, RESIDENT_BUFFERS_MAX);
        ResidentRoom { bytes, buffer_bytes, buffers_max }
    }

    /// How much a manifest grows at least before it is rewritten: it is all read when the database is opened.
    pub(crate) fn manifest_growth_bytes_min(&self) -> u64 {
        self.limit_bytes / 256
    }

    /// What compactors and flushes take of this memory besides, for now and at most of late.
    pub(crate) fn work_bytes(&self, merging: u64, writing: u64) -> u64 {
        match self.work {
            Work::Own => merging.max(self.merge_bytes()) + writing,
            // Filters of a long list may come to more than the pool has for each merge.
            Work::OfPool { job_bytes } => writing.saturating_sub(job_bytes),
        }
    }

    /// What of this work counts, of which so much is free under a limit of one's own, however small.
    pub(crate) fn beyond_free(&self, work_bytes: u64, free_bytes: u64) -> u64 {
        match self.work {
            Work::Own => work_bytes.saturating_sub(free_bytes),
            Work::OfPool { .. } => work_bytes,
        }
    }

    /// How long the page cache is at first: what it takes of the allocator follows from that.
    pub(crate) fn first_cache_bytes(&self) -> u64 {
        match self.work {
            Work::Own => self.reading_bytes(),
            Work::OfPool { .. } => self.reading_bytes().min(POOLED_CACHE_BYTES),
        }
    }

    /// Memory for reading lists in merges: a sixteenth, but no more than is of use.
    pub(crate) fn merge_bytes(&self) -> u64 {
        let compactors = self.compactors as u64;
        match self.work {
            Work::Own => (self.limit_bytes / 16).min(MERGE_BYTES_MAX * compactors),
            Work::OfPool { job_bytes } => job_bytes.min(MERGE_BYTES_MAX) * compactors,
        }
    }

    /// What one compactor has of it.
    pub(crate) fn job_bytes(&self) -> usize {
        (self.merge_bytes() / self.compactors as u64) as usize
    }
}
