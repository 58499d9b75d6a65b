//! The end of a turn: one batch, and one commit.

use std::sync::atomic::Ordering;

use forebay::{Durability, Error, Result};

use super::Turn;
use super::elements::Elements;
use super::entries::{Key, Stored};
use crate::pushes::Seat;
use crate::shared::DATABASES;

/// From this length on a value is not held twice: it can be looked up again.
const LONG_BYTES_MIN: usize = 1 << 20;

impl Turn<'_> {
    /// Writes what the turn has written so far where scans see it, and is the last thing that the turn is asked: what
    /// walks a table takes its time. Where it fails, so does the turn.
    pub(crate) fn write_out(&mut self) -> Result<()> {
        if self.transaction == Some(true) {
            return Err(Error::invalid(
                "a transaction cannot look at all keys, or drop them, behind its own writes, which are one batch with what \
                 follows; ask that first in it, or before MULTI",
            ));
        }
        self.ends();
        self.commit()?;
        self.entries.values_mut().for_each(|entry| entry.is_written = false);
        self.read_bytes += std::mem::take(&mut self.written_bytes);
        Ok(())
    }

    /// Commits what was written, once: what failed is not tried again.
    fn commit(&mut self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let committed = self.commit_written();
        self.failed = committed.as_ref().err().cloned();
        committed
    }

    fn commit_written(&mut self) -> Result<()> {
        let (mut writes, mut drops) = ([false; DATABASES], [false; DATABASES]);
        let mut batch = std::mem::take(&mut self.added);
        let written = self.entries.iter_mut().filter(|(_, entry)| entry.is_written);
        for (Key { database, bytes: key }, entry) in written {
            let table = self.shared.table(*database)?;
            writes[*database] = true;
            match &entry.stored {
                Some(Stored { bytes, expiry: None }) => batch.put(&table, key, bytes),
                Some(Stored { bytes, expiry: Some(expiry) }) => {
                    batch.put_until(&table, key, bytes, *expiry);
                }
                None => batch.delete(&table, key),
            }
            // The batch has it now.
            entry
                .stored
                .iter_mut()
                .filter(|_| entry.bytes >= LONG_BYTES_MIN)
                .for_each(|stored| stored.bytes = Vec::new());
        }
        for (database, elements) in self.elements.iter_mut().enumerate() {
            match elements.is_written() {
                true => drops[database] = elements.write_out(&self.shared.elements(database)?, &mut batch),
                false => *elements = Elements::default(),
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        // The disk is waited for without locks.
        let committed = self.shared.database.commit(batch, self.durability.min(Durability::Os));
        if committed.is_ok() && self.shared.events.tell_of_expiry() {
            let written = self.entries.iter().filter(|(_, entry)| entry.is_written);
            for (Key { database, bytes: key }, entry) in written {
                let expiry = entry.stored.as_ref().and_then(|stored| stored.expiry);
                self.shared.expiries.note((*database, key), expiry, self.now);
            }
        }
        self.entries.retain(|_, entry| entry.bytes < LONG_BYTES_MIN);
        for database in 0..DATABASES {
            if writes[database] {
                self.shared.key_counts.written(database);
            }
            if drops[database] {
                self.shared.has_dropped[database].store(true, Ordering::SeqCst);
            }
        }
        committed.map(drop)
    }

    /// Commits what was written, and gives the locks back; what was published goes out behind it.
    pub(crate) fn finish(mut self) -> Result<()> {
        let committed = self.commit();
        let Self { locks, woken, outgoing, .. } = self;
        drop(locks);
        // Also of a commit that failed: who was to take something then is gone, and others wait behind it.
        woken.iter().for_each(Seat::ring);
        committed?;
        outgoing.send();
        Ok(())
    }
}
