//! The way of a write:
//!
//! 1. The batch is noted for its tables as they are (`admit`).
//! 2. The log appends it to the active buffer and makes it as durable as asked (`store::log`).
//! 3. If it does not fit, the buffer is sealed and the next one taken; writers wait here, in
//!    [`Engine::make_room`], when all buffers are full.
//! 4. A writer that adds to a debt waits for a share of it to be worked off ([`Engine::pay`]): none up to a soft
//!    limit, then in proportion; and once the last free buffer is being filled, no faster than the oldest is emptied.
//!    So there is no cliff.

mod pace;

use std::borrow::Cow;
use std::sync::Arc;

use forebay_base::{Error, Result, planted};
use forebay_env::yield_point;
use forebay_store::log::batch::Payload;
use forebay_store::log::{Appended, Durability, PrepareError, PreparedSegment, frame};

use crate::engine::{Engine, FLUSH, closed};

pub(crate) use pace::Pace;

impl Engine {
    /// Writes a batch. Returns the number of its last record.
    pub(crate) fn write(&self, payload: &Payload, durability: Durability) -> Result<u64> {
        let log = self.log()?;
        if self.is_closing() {
            return Err(closed());
        }
        if payload.records() == 0 {
            // There is nothing to write. What was written before is made as durable as asked.
            let is_planted = planted::is("empty-batch-not-durable");
            return log.make_all_durable(if is_planted { Durability::Memory } else { durability });
        }
        let state = self.state();
        let is_bounded = |id: &u32| state.tables.get(id).is_some_and(|table| table.is_bounded());
        let bounded: Vec<u32> =
            payload.notes().tables().map(|notes| notes.table).filter(is_bounded).collect();
        // A writer that waits for files to be removed must not pin them.
        drop(state);
        bounded.iter().try_for_each(|id| self.wait_for_space(*id))?;
        let started = self.env.clock.now();
        let sum = payload.sum(self.superblock.log_secret);
        self.end_idle();
        let sequence = loop {
            let epoch = log.epoch();
            let noted = self.admit(payload)?;
            yield_point("write is admitted");
            match log.commit(&noted, sum, epoch, durability)? {
                Appended::Done(sequence) => break sequence,
                Appended::Stale => {}
                Appended::Full(segment) => {
                    self.rotate(segment, frame::frame_bytes(payload.bytes().len()))?;
                }
            }
        };
        yield_point("write is committed");
        self.metrics.user_records.add(payload.records() as u64);
        self.metrics.user_bytes.add(payload.user_bytes());
        let bytes = payload.bytes().len() as u64;
        self.pay(bytes, bounded.iter().map(|id| self.owed_for_space(*id, bytes)).sum());
        self.metrics.commit_latency.record(self.env.clock.now().saturating_sub(started));
        Ok(sequence)
    }

    /// Whether all of a batch can be written by now: the batch, noted for its tables as they are.
    fn admit<'a>(&self, payload: &'a Payload) -> Result<Cow<'a, Payload>> {
        let notes = payload.notes();
        let of_tables = || {
            notes
                .tables()
                .map(|notes| notes.table)
                .chain(notes.range_deletes().iter().map(|delete| delete.table))
        };
        let mut state = self.state();
        if of_tables().any(|table| state.is_frozen(table)) {
            let is_frozen = || of_tables().any(|table| self.state().is_frozen(table));
            self.wait_for(|| None, || !is_frozen())?;
            state = self.state();
        }
        if let Some(gone) = of_tables().find(|table| !state.tables.contains_key(table)) {
            return Err(Error::NotFound(format!(
                "a table of the batch, number {gone}, was dropped; nothing of the batch is written"
            )));
        }
        for delete in notes.range_deletes() {
            if !state.order_of(delete.table).is_some_and(|order| order.is_lexical())
                || self.is_reordering(delete.table)
            {
                return Err(Error::invalid(format!(
                    "table {} keeps no order, or is being given another; ranges of it cannot be deleted, and nothing of \
                     the batch is written",
                    delete.table
                )));
            }
        }
        let is_as_noted = notes.tables().all(|notes| state.order_of(notes.table) == Some(notes.order));
        Ok(match is_as_noted {
            true => Cow::Borrowed(payload),
            false => Cow::Owned(payload.in_orders(|table| state.order_of(table))),
        })
    }

    /// Seals the active buffer, if it still is `segment`, and takes the next.
    pub(crate) fn rotate(&self, segment: u64, bytes_min: usize) -> Result<()> {
        let log = self.log()?;
        let _one_at_a_time = self.rotating.lock();
        if log.active_segment() != segment {
            return Ok(());
        }
        if self.is_closing() {
            return Err(closed());
        }
        self.make_room()?;
        let next = match self.next_segment.lock().take() {
            Some(ready) if ready.buffer().capacity() >= bytes_min => ready,
            Some(short) => {
                self.retire_segment(short.buffer().segment());
                self.new_segment(bytes_min)?
            }
            None => self.new_segment(bytes_min)?,
        };
        let id = next.buffer().segment();
        yield_point("segment is ready");
        log.rotate(segment, next, |fresh| {
            self.update_state(|state| {
                let sealed = std::mem::replace(&mut state.active, Arc::clone(fresh));
                state.sealed.insert(0, sealed);
            });
        })
        .inspect_err(|_| self.retire_segment(id))?;
        self.env.jobs.wake();
        Ok(())
    }

    fn new_segment(&self, bytes_min: usize) -> Result<PreparedSegment> {
        let (id, spare) = (self.lists.new_id(), self.spare_segment.lock().take());
        let prepared = PreparedSegment::prepare(&*self.env.fs, &self.dir, id, &self.pool, bytes_min, spare);
        prepared.map_err(|error| match error {
            PrepareError::Refused(error, spare) => {
                if let Some(spare) = spare {
                    self.retire_segment(spare);
                }
                error
            }
            PrepareError::Unknown(error) => {
                self.poison(&error);
                error
            }
        })
    }

    pub(crate) fn has_room(&self) -> bool {
        self.state().sealed.len() + 1 < self.options.write_buffers
    }

    /// Gets the next segment ready while the active one is being filled: a writer who finds it need not wait
    /// for a file and for its name to be durable.
    pub(crate) fn prepare_segment(&self) -> Result<()> {
        // The holder of the lock may wait for background work, so background work must not wait for the lock.
        let Some(_one_at_a_time) = self.rotating.try_lock() else { return Ok(()) };
        // Whoever has just flushed a buffer is about to give it back.
        if self.has_room() && !self.pool.is_exhausted() && self.next_segment.lock().is_none() {
            let ready = self.new_segment(0)?;
            *self.next_segment.lock() = Some(ready);
        }
        Ok(())
    }

    /// Waits until a buffer is free, or until it is known why none will be.
    fn make_room(&self) -> Result<()> {
        if self.has_room() {
            return Ok(());
        }
        let started = self.env.clock.now();
        let waited = self.wait_for(|| self.trouble_of(FLUSH), || self.has_room());
        self.stalled_since(started);
        waited
    }

    /// Notes that a writer has waited since then.
    pub(crate) fn stalled_since(&self, started: std::time::Duration) {
        let stalled = self.env.clock.now().saturating_sub(started);
        self.metrics.stall_nanoseconds.add(stalled.as_nanos() as u64);
    }
}
