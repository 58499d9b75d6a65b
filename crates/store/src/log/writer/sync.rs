//! Syncing the log: one syncs for all who wait, without the lock, and others write meanwhile.

use std::sync::Arc;

use forebay_base::{Result, planted};
use forebay_env::sync::MutexGuard;
use forebay_env::yield_point;

use super::{Inner, Log, Unlocked};
use crate::log::Durability;

impl Log {
    /// Makes all that was appended as durable as asked. Returns the number of its last record.
    pub fn make_all_durable(&self, durability: Durability) -> Result<u64> {
        let inner = self.inner.lock();
        inner.check()?;
        let sequence = inner.last_sequence;
        self.make_durable(inner, sequence, durability)
    }

    /// Returns once every record up to `sequence` survives a power loss.
    pub fn sync_to(&self, sequence: u64) -> Result<()> {
        self.sync_from(self.inner.lock(), sequence)
    }

    pub(super) fn sync_from<'a>(&'a self, mut inner: MutexGuard<'a, Inner>, sequence: u64) -> Result<()> {
        // What is appended from here on is not waited for, or a steady writer would keep this going.
        let sequence = sequence.min(inner.last_sequence);
        loop {
            inner.check()?;
            if inner.durable_sequence >= sequence {
                return Ok(());
            }
            let written = inner.written_sequence >= sequence;
            inner = if inner.syncing || !written && inner.writing.is_some() {
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
        let (segments, mut files): (Vec<_>, Vec<_>) = inner.unsynced.iter().cloned().unzip();
        // Of one that is sealed some may be written: the first, if any. It stays, for what is not.
        files.extend(inner.unwritten.front().map(|sealed| Arc::clone(&sealed.file)));
        files.push(Arc::clone(&inner.file));
        let sequence = inner.written_sequence;
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
                inner.unsynced.retain(|(segment, _)| !segments.contains(segment));
                inner.durable_sequence = inner.durable_sequence.max(sequence);
                Ok(inner)
            }
            Err(error) => {
                inner.poison = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Makes everything durable and cuts the active segment to its length, so that no byte of it is unused.
    pub fn close(&self) -> Result<u64> {
        {
            let mut inner = self.inner.lock();
            inner.check()?;
            // Before the last sync, so that nothing is acknowledged and then cut off.
            inner.closed = true;
        }
        self.sync_to(u64::MAX)?;
        let mut inner = self.inner.lock();
        while inner.writing.is_some() || inner.syncing {
            inner = self.wait(inner);
        }
        debug_assert!(inner.written == inner.appender.len() && inner.durable_sequence == inner.last_sequence);
        inner.file.set_len(inner.written as u64)?;
        inner.file.sync()?;
        Ok(inner.last_sequence)
    }
}
