//! The way of a write:
//!
//! 1. The batch is noted for its tables as they are (`admit`).
//! 2. The log appends it to the active buffer and makes it as durable as asked (`store::log`).
//! 3. If it does not fit, the buffer is sealed and the next one taken; writers wait here, in
//!    [`Writer::make_room`], when all buffers are full.
//! 4. A writer that adds to a debt waits for a share of it to be worked off ([`Writer::pay`]): none up to a soft
//!    limit, then in proportion; and once the last free buffer is being filled, no faster than the oldest is emptied.
//!    So there is no cliff.

mod pace;

use std::borrow::Cow;
use std::sync::Arc;

use forebay_base::{Error, Result, planted};
use forebay_env::sync::{Mutex, MutexGuard, Rank};
use forebay_env::yield_point;
use forebay_store::log::batch::Payload;
use forebay_store::log::{Appended, Durability, PrepareError, PreparedSegment, frame};

use crate::context::{Context, FLUSH, closed};
use crate::memory::MemoryShares;
use crate::space::Space;
use crate::versions::Versions;
use pace::Pace;

/// Takes batches in, and gives writers their pace.
pub(crate) struct Writer {
    context: Arc<Context>,
    versions: Arc<Versions>,
    space: Arc<Space>,
    memory: Arc<MemoryShares>,
    /// One rotation at a time.
    rotating: Mutex<()>,
    /// The segment that will be active next, if the housekeeper has got it ready.
    next_segment: Mutex<Option<PreparedSegment>>,
    pub(crate) pace: Pace,
}

impl Writer {
    pub(crate) fn new(versions: &Arc<Versions>, space: &Arc<Space>, memory: &Arc<MemoryShares>) -> Self {
        Self {
            context: Arc::clone(&versions.context),
            versions: Arc::clone(versions),
            space: Arc::clone(space),
            memory: Arc::clone(memory),
            rotating: Mutex::ranked(Rank::Rotation, ()),
            next_segment: Mutex::ranked(Rank::Leaf, None),
            pace: Pace::default(),
        }
    }

    /// Writes a batch. Returns the number of its last record.
    pub(crate) fn write(&self, payload: &Payload, durability: Durability) -> Result<u64> {
        let log = self.context.log()?;
        if self.context.is_closing() {
            return Err(closed());
        }
        if payload.records() == 0 {
            // There is nothing to write. What was written before is made as durable as asked.
            let is_planted = planted::is("empty-batch-not-durable");
            return log.make_all_durable(if is_planted { Durability::Memory } else { durability });
        }
        let state = self.versions.state();
        let is_bounded = |id: &u32| state.tables.get(id).is_some_and(|table| table.is_bounded());
        let bounded: Vec<u32> =
            payload.notes().tables().map(|notes| notes.table).filter(is_bounded).collect();
        // A writer that waits for files to be removed must not pin them.
        drop(state);
        bounded.iter().try_for_each(|id| self.space.wait_for_space(*id))?;
        let started = self.context.env.clock.now();
        let sum = payload.sum(self.context.superblock.log_secret);
        self.memory.end_idle();
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
        debug_assert!(sequence >= payload.records() as u64, "each record has a number");
        yield_point("write is committed");
        self.context.metrics.user_records.add(payload.records() as u64);
        self.context.metrics.user_bytes.add(payload.user_bytes());
        let bytes = payload.bytes().len() as u64;
        self.pay(bytes, bounded.iter().map(|id| self.space.owed_for_space(*id, bytes)).sum());
        self.context.metrics.commit_latency.record(self.context.env.clock.now().saturating_sub(started));
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
        let mut state = self.versions.state();
        if of_tables().any(|table| state.is_frozen(table)) {
            let is_frozen = || of_tables().any(|table| self.versions.state().is_frozen(table));
            self.context.wait_for(|| None, || !is_frozen())?;
            state = self.versions.state();
        }
        if let Some(gone) = of_tables().find(|table| !state.tables.contains_key(table)) {
            return Err(Error::NotFound(format!(
                "{} was dropped; nothing of the batch that writes to it is written",
                state.tables.named_dropped(gone)
            )));
        }
        for delete in notes.range_deletes() {
            if !state.order_of(delete.table).is_some_and(|order| order.is_lexical())
                || self.versions.is_reordering(delete.table)
            {
                return Err(Error::invalid(format!(
                    "table {} keeps no order, or is being sorted into another; its ranges cannot be deleted, and \
                     nothing of the batch is written",
                    delete.table
                )));
            }
        }
        let is_as_noted = notes.tables().all(|notes| state.order_of(notes.table) == Some(notes.order));
        let noted = match is_as_noted {
            true => Cow::Borrowed(payload),
            false => Cow::Owned(payload.in_orders(|table| state.order_of(table))),
        };
        debug_assert_eq!(noted.records(), payload.records(), "notes are of the same records");
        debug_assert!(
            noted.notes().tables().all(|notes| state.order_of(notes.table) == Some(notes.order)),
            "a batch is noted in the orders of its tables"
        );
        Ok(noted)
    }

    /// Seals the active buffer, if it still is `segment`, and takes the next.
    pub(crate) fn rotate(&self, segment: u64, bytes_min: usize) -> Result<()> {
        let log = self.context.log()?;
        let _one_at_a_time = self.rotating.lock();
        if log.active_segment() != segment {
            return Ok(());
        }
        if self.context.is_closing() {
            return Err(closed());
        }
        self.make_room()?;
        debug_assert!(self.has_room(), "nobody else seals a buffer, so there is room once it was seen");
        let ready = self.next_segment.lock().take();
        let next = match ready {
            Some(ready) if ready.buffer().capacity() >= bytes_min => ready,
            Some(short) => {
                self.versions.retire_segment(short.buffer().segment());
                self.new_segment(bytes_min)?
            }
            None => self.new_segment(bytes_min)?,
        };
        let id = next.buffer().segment();
        debug_assert!(id > segment, "segment {id} follows {segment}");
        debug_assert!(next.buffer().is_empty(), "segment {id} begins empty");
        debug_assert!(
            next.buffer().capacity() >= bytes_min,
            "what did not fit before fits into segment {id}"
        );
        yield_point("segment is ready");
        log.rotate(segment, next, |fresh| {
            self.versions.update_state(|state| {
                let sealed = std::mem::replace(&mut state.active, Arc::clone(fresh));
                debug_assert_eq!(sealed.segment(), segment, "what is full is sealed");
                state.sealed.insert(0, sealed);
            });
        })
        .inspect_err(|_| self.versions.retire_segment(id))?;
        self.context.env.jobs.wake();
        Ok(())
    }

    fn new_segment(&self, bytes_min: usize) -> Result<PreparedSegment> {
        let (id, spare) = (self.versions.lists.new_id(), self.versions.take_spare_segment());
        let prepared = PreparedSegment::prepare(
            &*self.context.env.fs,
            &self.context.dir,
            id,
            &self.context.pool,
            bytes_min,
            spare,
        );
        prepared.map_err(|error| match error {
            PrepareError::Refused(error, spare) => {
                if let Some(spare) = spare {
                    self.versions.retire_segment(spare);
                }
                error
            }
            PrepareError::Unknown(error) => {
                self.context.poison(&error);
                error
            }
        })
    }

    pub(crate) fn has_room(&self) -> bool {
        self.versions.state().sealed.len() + 1 < self.context.options.write_buffers
    }

    /// Gets the next segment ready while the active one is being filled: a writer who finds it need not wait
    /// for a file and for its name to be durable.
    pub(crate) fn prepare_segment(&self) -> Result<()> {
        // The holder of the lock may wait for background work, so background work must not wait for the lock.
        let Some(_one_at_a_time) = self.rotating.try_lock() else { return Ok(()) };
        // Whoever has just flushed a buffer is about to give it back.
        if self.has_room() && !self.context.pool.is_exhausted() && self.next_segment.lock().is_none() {
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
        let started = self.context.env.clock.now();
        let waited = self.context.wait_for(|| self.flush_trouble(), || self.has_room());
        self.context.stalled_since(started);
        waited
    }

    /// Waits until every record accepted so far is in lists, on disk or in memory.
    pub(crate) fn flush(&self) -> Result<()> {
        let log = self.context.log()?;
        let (segment, empty) = (log.active_segment(), self.versions.state().active.is_empty());
        yield_point("flush begins");
        if !empty {
            self.rotate(segment, 0)?;
        }
        self.context.wait_for(
            || self.flush_trouble(),
            || self.versions.state().sealed.iter().all(|buffer| buffer.segment() > segment),
        )
    }

    /// Why buffers are not flushed, if so.
    pub(crate) fn flush_trouble(&self) -> Option<Error> {
        self.space.trouble_of(FLUSH)
    }

    /// Lets no buffer be sealed for as long as this is held.
    pub(crate) fn stop_rotating(&self) -> MutexGuard<'_, ()> {
        self.rotating.lock()
    }

    /// Takes the segment that is ready, if there is one.
    pub(crate) fn take_next_segment(&self) -> Option<PreparedSegment> {
        self.next_segment.lock().take()
    }
}
