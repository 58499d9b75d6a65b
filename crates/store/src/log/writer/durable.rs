//! Making durable what was appended: one writes or syncs for all who wait, without the lock.

use std::sync::Arc;

use forebay_base::{Result, planted};
use forebay_env::sync::MutexGuard;
use forebay_env::yield_point;

use super::{Inner, Log, Position};
use crate::log::Durability;

/// Who writes or syncs without the lock. Nobody waits for them forever, should they be unwound.
struct Unlocked<'a> {
    log: &'a Log,
    done: fn(&mut Inner),
}

impl<'a> Unlocked<'a> {
    /// Takes the lock again.
    fn over(self) -> MutexGuard<'a, Inner> {
        let Self { log, done } = self;
        // A thread that is unwinding may well close a database on its way: here nobody is unwound.
        std::mem::forget(self);
        log.relock(done)
    }
}

impl Drop for Unlocked<'_> {
    fn drop(&mut self) {
        drop(self.log.relock(self.done));
    }
}

impl Log {
    /// Makes all that was appended as durable as asked. Returns the number of its last record.
    pub fn make_all_durable(&self, durability: Durability) -> Result<u64> {
        let inner = self.inner.lock();
        inner.check()?;
        let (segment, end, sequence) = (inner.buffer.segment(), inner.appender.len(), inner.last_sequence);
        self.make_durable(inner, Position { segment, end, sequence }, durability)
    }

    /// Makes a batch as durable as asked. Returns the number of its last record.
    pub(super) fn make_durable<'a>(
        &'a self,
        inner: MutexGuard<'a, Inner>,
        position: Position,
        durability: Durability,
    ) -> Result<u64> {
        match durability {
            Durability::Memory => {}
            Durability::Os if planted::is("os-not-written") => {}
            Durability::Os => self.write_to(inner, position)?,
            Durability::Disk => self.sync_from(inner, position.sequence)?,
        }
        Ok(position.sequence)
    }

    fn write_to<'a>(&'a self, mut inner: MutexGuard<'a, Inner>, position: Position) -> Result<()> {
        loop {
            inner.check()?;
            // A segment is written to its end before the next one becomes active.
            if inner.buffer.segment() != position.segment || inner.written >= position.end {
                return Ok(());
            }
            inner = match inner.writing {
                true => self.wait(inner),
                false => self.write(inner)?,
            };
        }
    }

    /// Waits until somebody has written or synced.
    pub(super) fn wait<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        inner.waiting += 1;
        let mut inner = self.idle.wait_of(&self.inner, inner);
        debug_assert!(inner.waiting > 0, "who waited was counted");
        inner.waiting -= 1;
        inner
    }

    /// Takes the lock again after work without it, of which `done` notes that it is over.
    fn relock(&self, done: impl FnOnce(&mut Inner)) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock();
        done(&mut inner);
        // To wake nobody costs a system call too.
        if inner.waiting > 0 {
            self.idle.notify_all();
        }
        inner
    }

    /// Writes all that is appended, without the lock, for all who wait.
    fn write<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> Result<MutexGuard<'a, Inner>> {
        let (buffer, file) = (Arc::clone(&inner.buffer), Arc::clone(&inner.file));
        let (start, end, sequence) = (inner.written, inner.appender.len(), inner.last_sequence);
        if start == end {
            return Ok(inner);
        }
        debug_assert!(!inner.writing && start < end, "one writes at a time");
        inner.writing = true;
        drop(inner);
        let unlocked = Unlocked { log: self, done: |inner| inner.writing = false };
        yield_point("log is written");
        let outcome = file.write_at(start as u64, &buffer.bytes()[start..end]);
        let mut inner = unlocked.over();
        outcome?;
        debug_assert_eq!(inner.written, start, "nobody else has written meanwhile");
        self.metrics.log_bytes.add((end - start) as u64);
        (inner.written, inner.written_sequence) = (end, sequence);
        Ok(inner)
    }

    /// Returns once every record up to `sequence` survives a power loss.
    pub fn sync_to(&self, sequence: u64) -> Result<()> {
        self.sync_from(self.inner.lock(), sequence)
    }

    fn sync_from<'a>(&'a self, mut inner: MutexGuard<'a, Inner>, sequence: u64) -> Result<()> {
        // What is appended from here on is not waited for, or a steady writer would keep this going.
        let sequence = sequence.min(inner.last_sequence);
        loop {
            inner.check()?;
            if inner.durable_sequence >= sequence {
                return Ok(());
            }
            let written = inner.written_sequence >= sequence;
            inner = if inner.syncing || !written && inner.writing {
                self.wait(inner)
            } else if written {
                self.sync(inner)?
            } else {
                self.write(inner)?
            };
        }
    }

    /// Syncs all that is written. Writers go on: a background sync must not stop them.
    fn sync<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> Result<MutexGuard<'a, Inner>> {
        let mut files: Vec<_> = inner.unsynced.iter().map(|(_, file)| Arc::clone(file)).collect();
        files.push(Arc::clone(&inner.file));
        let (sequence, active) = (inner.written_sequence, inner.buffer.segment());
        debug_assert!(!inner.syncing, "one syncs at a time");
        inner.syncing = true;
        drop(inner);
        if planted::is("sync-forgotten") {
            files.clear();
        }
        let unlocked = Unlocked { log: self, done: |inner| inner.syncing = false };
        yield_point("log is synced");
        let outcome = files.iter().try_for_each(|file| file.sync());
        let mut inner = unlocked.over();
        self.metrics.log_syncs.add(files.len() as u64);
        match outcome {
            Ok(()) => {
                inner.unsynced.retain(|(segment, _)| *segment >= active);
                inner.durable_sequence = inner.durable_sequence.max(sequence);
                Ok(inner)
            }
            Err(error) => {
                inner.poison = Some(error.to_string());
                Err(error)
            }
        }
    }
}
