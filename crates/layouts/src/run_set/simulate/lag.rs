//! Merges that lag behind: write buffers come as fast as the engine lets writers, and runs gather while a merge is under
//! way.
//!
//! **Model:** one merge at a time, and of work only what writers wait for: none up to the debt that costs nothing, and four
//! bytes for each of theirs at twice that, as the engine has it. What a merge comes to is seen as it begins; its debt and
//! the files that it frees stay until it is done, and what it writes comes evenly.

use forebay_base::Result;

use super::super::plan::Next;
use super::super::set::RunSet;
use super::SimulatedRuns;
use super::file::CountedFile;

/// A write buffer comes in this many pieces, each with what its writers wait for.
const PIECES: u32 = 16;

/// What writers wait for, and the merge under way.
#[derive(Clone, Copy, Default)]
pub(super) struct Lag {
    /// This much debt costs writers nothing.
    free_debt_bytes: u64,
    /// Of the merge: what it goes through, how much of that is left, and the debt that it takes away.
    work_bytes: f64,
    left_bytes: f64,
    debt_bytes: u64,
    /// Files that go once it is done, and those that come.
    freed_bytes: u64,
    written_bytes: u64,
}

impl Lag {
    pub(super) fn new(free_debt_bytes: u64) -> Self {
        Self { free_debt_bytes, ..Self::default() }
    }

    /// How much is worked off while writers add so much to a debt.
    fn owed(&self, bytes: f64, debt_bytes: u64) -> f64 {
        let beyond = debt_bytes.saturating_sub(self.free_debt_bytes) as f64;
        4.0 * bytes * beyond / self.free_debt_bytes.max(1) as f64
    }

    /// Works on the merge under way, and returns what is left to do others with.
    fn work(&mut self, bytes: f64) -> f64 {
        debug_assert!(bytes >= 0.0 && self.left_bytes >= 0.0, "nobody undoes work");
        let done = bytes.min(self.left_bytes);
        self.left_bytes -= done;
        bytes - done
    }

    fn is_under_way(&self) -> bool {
        self.left_bytes > 0.0
    }

    /// What lies on disk where tables have so much once the merge is done.
    pub(super) fn disk_bytes(&self, file_bytes: u64) -> u64 {
        let left = if self.is_under_way() { self.left_bytes / self.work_bytes } else { return file_bytes };
        (file_bytes + self.freed_bytes).saturating_sub((left * self.written_bytes as f64) as u64)
    }
}

impl SimulatedRuns {
    /// Does what writers wait for while they fill a buffer of so many bytes.
    pub(super) fn lag_behind(
        &mut self,
        mut lag: Lag,
        buffer_bytes: u64,
        each: &mut dyn FnMut(&RunSet<CountedFile>, &Next<CountedFile>),
    ) -> Result<Lag> {
        for _ in 0..PIECES {
            let held = if lag.is_under_way() { lag.debt_bytes } else { 0 };
            let owed = lag.owed(buffer_bytes as f64 / f64::from(PIECES), self.debt_bytes() + held);
            let mut left = lag.work(owed);
            while left > 0.0 {
                let before = (self.debt_bytes(), self.moved());
                if !self.do_next(each)? {
                    break;
                }
                lag = self.begun(lag, before);
                left = lag.work(left);
            }
            self.disk_bytes_max = self.disk_bytes_max.max(lag.disk_bytes(self.moved().0));
        }
        Ok(lag)
    }

    fn debt_bytes(&self) -> u64 {
        self.set.policy.debt_bytes(&self.set, self.room)
    }

    /// Bytes of files, bytes written, and bytes gone through.
    fn moved(&self) -> (u64, u64, u64) {
        let traffic = self.inventory.traffic();
        let records: u64 = traffic.records_read.iter().sum();
        (
            self.inventory.holdings().file_bytes,
            traffic.bytes_written.iter().sum(),
            records * self.inventory.model().record_bytes,
        )
    }

    /// The lag with what was done since: an edit is no work, and over at once.
    fn begun(&self, lag: Lag, (debt_bytes, (files, written, read)): (u64, (u64, u64, u64))) -> Lag {
        let (files_now, written_now, read_now) = self.moved();
        let (written_bytes, work_bytes) = (written_now - written, (read_now - read) as f64);
        Lag {
            work_bytes,
            left_bytes: work_bytes,
            debt_bytes: debt_bytes.saturating_sub(self.debt_bytes()),
            freed_bytes: (files + written_bytes).saturating_sub(files_now),
            written_bytes,
            ..lag
        }
    }
}
