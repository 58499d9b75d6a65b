//! The way of a write:
//!
//! 1. The batch is noted for its tables as they are (`admit`).
//! 2. The log appends it to the active buffer and makes it as durable as asked (`store::log`).
//!    A batch that was made from what was read is appended only if that still is what there is ([`Condition`]).
//! 3. If it does not fit, the buffer is sealed and the next one taken ([`rotation`]); writers wait here when all
//!    buffers are full.
//! 4. A writer that adds to a debt waits for a share of it to be worked off ([`Writer::pay`], [`Pace`]): none up to a
//!    soft limit, then in proportion; and once the last free buffer is being filled, no faster than the oldest is
//!    emptied. So there is no cliff.

mod followed;
mod pace;
mod rotation;

use std::borrow::Cow;
use std::sync::Arc;

use forebay_base::{Error, Result, planted};
use forebay_env::sync::{Mutex, Rank};
use forebay_env::yield_point;
use forebay_store::buffer::{Notes, TableNotes};
use forebay_store::log::batch::Payload;
use forebay_store::log::{Appended, Basis, Durability, SegmentFile, frame};

use crate::context::Context;
use crate::memory::MemoryShares;
use crate::space::Space;
use crate::versions::{State, TableState, Versions};
use pace::Pace;

/// How far, in shares of a buffer, a writer may be ahead of the flush before it waits: of what is left of the buffer this
/// much, so that a flush that begins late delays nobody, and at its end little, so that nobody waits there in one piece.
const PACE_SLACK: f64 = 0.5;
const PACE_SLACK_MIN: f64 = 1.0 / 64.0;

/// What must hold of what was read when a batch gets into the log.
pub(crate) trait Condition {
    /// Whether it holds by now, after this epoch was read: then the log sees to what comes meanwhile, if that can matter.
    /// Else [a conflict](conflict).
    fn check(&mut self, epoch: u64) -> Result<Option<Basis<'_>>>;
}

/// Takes batches in, and gives writers their pace.
pub(crate) struct Writer {
    context: Arc<Context>,
    versions: Arc<Versions>,
    space: Arc<Space>,
    memory: Arc<MemoryShares>,
    /// One rotation at a time.
    rotating: Mutex<()>,
    /// The segment that will be active next, if it was got ready.
    next_segment: Mutex<Option<SegmentFile>>,
    pub(crate) pace: Pace,
    /// This much debt costs nothing.
    free_debt_bytes: u64,
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
            free_debt_bytes: versions.context.options.division().buffers(false).free_debt_bytes(),
        }
    }

    /// Writes a batch. Returns the number of its last record.
    pub(crate) fn write(&self, payload: &Payload, durability: Durability) -> Result<u64> {
        self.write_if(None, payload, durability)
    }

    /// The same, if a condition holds.
    pub(crate) fn write_if(
        &self,
        mut condition: Option<&mut dyn Condition>,
        payload: &Payload,
        durability: Durability,
    ) -> Result<u64> {
        let log = self.context.log()?;
        if self.context.is_closing() {
            return Err(Error::closed());
        }
        self.context.refuse_followers()?;
        self.versions.tell_feed()?;
        if payload.records() == 0 {
            // There is nothing to write. What was written before is made as durable as asked.
            let is_planted = planted::is("empty-batch-not-durable");
            return log.make_all_durable(if is_planted { Durability::Memory } else { durability });
        }
        let bounded = self.bounded_tables(payload.notes());
        bounded.iter().try_for_each(|id| self.space.wait_for_space(*id))?;
        let started = self.context.env.clock.now();
        let sum = payload.sum(self.context.superblock.log_secret);
        let sequence = loop {
            let epoch = log.epoch();
            let noted = self.admit(payload)?;
            let basis = match &mut condition {
                None => None,
                Some(condition) => condition.check(epoch)?,
            };
            yield_point("write is admitted");
            match log.commit(&noted, sum, epoch, basis.as_ref(), durability)? {
                Appended::Done(sequence) => break sequence,
                Appended::Stale => {}
                Appended::Conflict(table) => return Err(conflict(&self.versions.state(), table)),
                Appended::Full(segment) => self.rotate(segment, self.frame_bytes_of(payload))?,
            }
        };
        debug_assert!(sequence >= payload.records() as u64, "each record has a number");
        yield_point("write is committed");
        self.note(payload, &bounded);
        self.context.metrics.commit_latency.record(self.context.env.clock.now().saturating_sub(started));
        Ok(sequence)
    }

    /// What the frame of a batch takes: a buffer that is shorter never has room for it.
    fn frame_bytes_of(&self, payload: &Payload) -> usize {
        match self.context.superblock.is_encrypted {
            true => frame::frame_bytes_max(payload.bytes().len()),
            false => frame::frame_bytes(payload.bytes().len()),
        }
    }

    /// Counts a batch that is in the log, and slows whoever brought it.
    fn note(&self, payload: &Payload, bounded: &[u32]) {
        self.context.metrics.user_records.add(payload.records() as u64);
        self.context.metrics.user_bytes.add(payload.user_bytes());
        if self.memory.is_idle() {
            self.memory.note_write();
        }
        let bytes = payload.bytes().len() as u64;
        self.pay(bytes, bounded.iter().map(|id| self.space.owed_for_space(*id, bytes)).sum());
    }

    /// The tables of a batch whose space is bounded.
    fn bounded_tables(&self, notes: &Notes) -> Vec<u32> {
        // Not for longer than this: a writer that waits for files to be removed must not pin them.
        let is_bounded = |table: &Arc<TableState>| table.options.max_space_amplification.is_some();
        let tables = notes.tables().map(|notes| notes.table);
        self.versions.look(|state| tables.filter(|id| state.tables.get(id).is_some_and(is_bounded)).collect())
    }

    /// The batch, noted for its tables as they are; an error where not all of it can be written.
    fn admit<'a>(&self, payload: &'a Payload) -> Result<Cow<'a, Payload>> {
        let notes = payload.notes();
        if self.versions.look(|state| is_as_ever(state, notes)) {
            return Ok(Cow::Borrowed(payload));
        }
        let state = self.unfrozen_state(notes)?;
        let find = |table: u32| state.tables.get(&table).ok_or_else(|| was_dropped(&state, table));
        let mut is_as_noted = true;
        for notes in notes.tables() {
            is_as_noted &= find(notes.table)?.order == notes.order;
        }
        for delete in notes.range_deletes() {
            if !find(delete.table)?.order.is_lexical() || self.versions.is_reordering(delete.table) {
                return Err(Error::invalid(format!(
                    "table {} keeps no order, or is being sorted into another; its ranges cannot be deleted, and \
                     nothing of the batch is written",
                    delete.table
                )));
            }
        }
        if is_as_noted {
            return Ok(Cow::Borrowed(payload));
        }
        let noted = payload.in_orders(|table| state.order_of(table));
        debug_assert_eq!(noted.records(), payload.records(), "notes are of the same records");
        debug_assert!(
            noted.notes().tables().all(|notes| state.order_of(notes.table) == Some(notes.order)),
            "a batch is noted in the orders of its tables"
        );
        Ok(Cow::Owned(noted))
    }

    /// The newest version, once no writer to one of a batch's tables waits for it.
    fn unfrozen_state(&self, notes: &Notes) -> Result<Arc<State>> {
        let state = self.versions.state();
        if !is_frozen(&state, notes) {
            return Ok(state);
        }
        drop(state);
        self.context.wait_for(|| None, || !is_frozen(&self.versions.state(), notes))?;
        Ok(self.versions.state())
    }

    /// Slows a writer of this many bytes to the pace of background work, where that is behind, or where bounds on space
    /// ask for more of it.
    fn pay(&self, bytes: u64, owed_for_space: u64) {
        let (debt, is_ahead) =
            self.versions.look(|state| (self.versions.debt(state), self.outruns_flush(state)));
        if debt > self.free_debt_bytes || owed_for_space > 0 || is_ahead {
            self.work_off(bytes, debt, owed_for_space);
        }
    }

    /// Whether the last free buffer fills faster than the oldest sealed one is flushed: going on would end
    /// in one long wait, so writers share it out.
    fn outruns_flush(&self, state: &State) -> bool {
        state.sealed.len() + 1 >= self.context.buffers().count && {
            let filled = state.active.len() as f64 / state.active.capacity().max(1) as f64;
            filled > self.pace.flushed_share() + PACE_SLACK_MIN.max(PACE_SLACK * (1.0 - filled))
        }
    }
}

/// Whether a batch can be written as it is, as nearly every one can.
fn is_as_ever(state: &State, notes: &Notes) -> bool {
    let is_as_noted =
        |notes: &TableNotes| state.tables.get(&notes.table).is_some_and(|table| table.order == notes.order);
    notes.range_deletes().is_empty() && notes.tables().all(is_as_noted) && !is_frozen(state, notes)
}

/// Whether writers to one of a batch's tables wait.
fn is_frozen(state: &State, notes: &Notes) -> bool {
    let records = notes.tables().map(|notes| notes.table);
    let mut tables = records.chain(notes.range_deletes().iter().map(|delete| delete.table));
    state.is_frozen || !state.frozen.is_empty() && tables.any(|table| state.frozen.contains(&table))
}

/// The error of a batch whose condition does not hold any more.
#[cold]
pub(crate) fn conflict(state: &State, table: u32) -> Error {
    let name = state.tables.get(&table).map_or("", |table| &table.name);
    Error::Conflict(format!(
        "table `{name}` has changed where the transaction has read it, so nothing was written; begin it anew"
    ))
}

#[cold]
fn was_dropped(state: &State, table: u32) -> Error {
    Error::NotFound(format!(
        "{} was dropped; nothing of the batch that writes to it is written",
        state.tables.named_dropped(table)
    ))
}
