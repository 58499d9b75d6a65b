//! Appending to the log. [`Log::commit`] has two halves, under one lock as far as it can:
//!
//! 1. The batch is framed into the arena: from here on it is visible.
//! 2. It is made as durable as was asked. The first writer to arrive writes for all that wait (group commit), and lets
//!    go of the lock meanwhile; an error while writing can be retried, because the arena still has the bytes; an error
//!    while syncing poisons the log, because the kernel may have dropped what it could not write.
//!
//! **Invariant:** what is in files is a beginning of what was appended, but for what was flushed.

mod basis;
mod epoch;
mod segments;
mod sync;
mod write;

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::{Error, Result, planted, sometimes};
use forebay_env::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use forebay_env::sync::{Condvar, Mutex, MutexGuard, Rank};
use forebay_env::{Appender, File};

use super::batch::Payload;
use super::durability::Durability;
use super::frame::{self, HEADER_BYTES, Header, Secret, frame_bytes};
use super::prepared_segment::PreparedSegment;
use crate::buffer::WriteBuffer;
use crate::metrics::Metrics;

pub use basis::Basis;
pub use segments::batches_of;
use write::Unwritten;
pub use write::Writes;

/// A buffer takes at most one record for this many of its bytes, however short they are: to put a record in
/// order takes eight bytes more, and that memory is bounded by this.
pub const RECORD_BYTES_MIN: usize = 18;
/// A buffer takes this many range deletes at most, but for those of one batch: lookups go through all of them.
pub(super) const RANGE_DELETES_MAX: usize = 128;

const _: () =
    assert!(RECORD_BYTES_MIN >= 2 + size_of::<u64>(), "the order over a buffer is shorter than the buffer");
const _: () = assert!(RANGE_DELETES_MAX > 0 && frame_bytes(RECORD_BYTES_MIN) > HEADER_BYTES);

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is in the log; its last record has this number.
    Done(u64),
    /// It does not fit this segment, which is the active one.
    Full(u64),
    /// Something was changed after the writer looked at it, or more was appended than is looked through here.
    Stale,
    /// What it was made from has changed since, in this table.
    Conflict(u32),
}

struct Inner {
    buffer: Arc<WriteBuffer>,
    appender: Appender,
    file: Arc<dyn File>,
    /// Sealed segments that are to be written before the active one, the oldest first.
    unwritten: VecDeque<Unwritten>,
    /// How much of the active segment is in its file.
    written: usize,
    /// All records up to this one are in files, or were flushed.
    written_sequence: u64,
    /// Records in the active segment.
    records: usize,
    /// Range deletes in it.
    range_deletes: usize,
    last_sequence: u64,
    durable_sequence: u64,
    /// Earlier segments that are written and not synced, and still needed.
    unsynced: Vec<(u64, Arc<dyn File>)>,
    /// Somebody writes to this segment without holding the lock.
    writing: Option<u64>,
    /// Somebody syncs without holding the lock. Others write meanwhile.
    syncing: bool,
    /// How many wait for either.
    waiting: usize,
    /// Nothing more is appended.
    closed: bool,
    poison: Option<String>,
}

/// The log of an open database.
pub struct Log {
    inner: Mutex<Inner>,
    idle: Condvar,
    /// How often something has changed that writers look at before they append.
    epoch: AtomicU64,
    /// A buffer that has this much is full, however much it could hold.
    fill_bytes_max: AtomicUsize,
    writes: Writes,
    secret: Secret,
    metrics: Arc<Metrics>,
}

impl Log {
    /// Goes on behind `last_sequence`, all of which is durable, in an empty segment.
    pub fn new(
        first: PreparedSegment,
        last_sequence: u64,
        writes: Writes,
        secret: Secret,
        metrics: Arc<Metrics>,
    ) -> Self {
        let inner = Inner {
            buffer: first.buffer,
            appender: first.appender,
            file: first.file,
            unwritten: VecDeque::new(),
            written: 0,
            written_sequence: last_sequence,
            records: 0,
            range_deletes: 0,
            last_sequence,
            durable_sequence: last_sequence,
            unsynced: Vec::new(),
            writing: None,
            syncing: false,
            waiting: 0,
            closed: false,
            poison: None,
        };
        Self {
            inner: Mutex::ranked(Rank::Log, inner),
            idle: Condvar::new(),
            epoch: AtomicU64::new(0),
            fill_bytes_max: AtomicUsize::new(usize::MAX),
            writes,
            secret,
            metrics,
        }
    }

    /// From now on a buffer takes no more bytes than this, but for a batch that is longer by itself.
    pub fn limit_fill(&self, bytes: usize) {
        self.fill_bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// The number of the last accepted record.
    pub fn last_sequence(&self) -> u64 {
        self.inner.lock().last_sequence
    }

    /// The number up to which records survive a power loss.
    pub fn durable_sequence(&self) -> u64 {
        self.inner.lock().durable_sequence
    }

    /// The same, and the number up to which they are to be made so in the background: of what is only written on
    /// request that is what was.
    pub fn durable_and_due(&self) -> (u64, u64) {
        let inner = self.inner.lock();
        let due = match self.writes {
            Writes::Always => inner.last_sequence,
            Writes::OnRequest => inner.written_sequence,
        };
        (inner.durable_sequence, due)
    }

    /// How often [`change_epoch`](Self::change_epoch) was called. Read it before what `change_epoch` changes.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Appends a batch that was noted in this epoch, and makes it as durable as asked. On an error of the second it is
    /// in the log all the same, and may become durable. One that has a basis is appended only where that stands.
    pub fn commit(
        &self,
        payload: &Payload,
        payload_sum: u32,
        epoch: u64,
        basis: Option<&Basis<'_>>,
        durability: Durability,
    ) -> Result<Appended> {
        let mut inner = self.inner.lock_by_turns();
        inner.check()?;
        if inner.closed {
            return Err(Error::invalid("the database is closed"));
        }
        debug_assert_eq!(payload.sum(self.secret), payload_sum, "the sum is that of the payload");
        if self.epoch() != epoch {
            return Ok(Appended::Stale);
        }
        if let Some(refused) = basis.and_then(|basis| basis.refuse(&inner.buffer)) {
            return Ok(refused);
        }
        match self.append(&mut inner, payload, payload_sum)? {
            Some(sequence) => self.make_durable(inner, sequence, durability).map(Appended::Done),
            None => Ok(Appended::Full(inner.buffer.segment())),
        }
    }

    /// Frames a batch into the active buffer. Returns the number of its last record; `None` when it does not fit there.
    fn append(&self, inner: &mut Inner, payload: &Payload, payload_sum: u32) -> Result<Option<u64>> {
        let offset = inner.appender.len();
        let header = Header {
            payload_sum,
            is_encrypted: inner.file.data_keys().is_some(),
            payload_bytes: payload.bytes().len() as u32,
            records: payload.records(),
            sequence: inner.last_sequence + 1,
            watermark: inner.durable_sequence,
        };
        debug_assert!(
            header.records > 0 && header.watermark < header.sequence,
            "no reader takes it for a frame"
        );
        let end = header.end(offset);
        let records = inner.records + payload.records() as usize;
        let too_many = inner.records > 0 && records > inner.buffer.capacity() / RECORD_BYTES_MIN;
        let range_deletes = inner.range_deletes + payload.notes().range_deletes().len();
        let too_many_deletes = inner.range_deletes > 0 && range_deletes > RANGE_DELETES_MAX;
        let is_filled = inner.records > 0 && end > self.fill_bytes_max.load(Ordering::Relaxed);
        let is_early = inner.records > 0 && sometimes!(1 in 200);
        if too_many || too_many_deletes || is_filled || is_early || end > inner.buffer.capacity() {
            return Ok(None);
        }
        let head = header.encode(self.secret, inner.buffer.segment(), offset);
        if frame::append_frame(&mut inner.appender, &head, payload.bytes(), &frame::NO_TRAILER).is_none() {
            let bug = Error::bug("the write buffer is smaller than it says");
            // Half a frame would hide all that comes behind it.
            inner.poison = Some(bug.to_string());
            return Err(bug);
        }
        let Inner { buffer, appender, .. } = inner;
        debug_assert_eq!(appender.len(), end, "a frame ends where it was said to end");
        buffer.note(payload.notes(), offset + HEADER_BYTES, || appender.publish());
        inner.last_sequence += payload.records() as u64;
        (inner.records, inner.range_deletes) = (records, range_deletes);
        Ok(Some(inner.last_sequence))
    }

    /// Makes all up to a record as durable as asked. Returns its number.
    fn make_durable<'a>(
        &'a self,
        inner: MutexGuard<'a, Inner>,
        sequence: u64,
        durability: Durability,
    ) -> Result<u64> {
        match durability {
            Durability::Memory => {}
            Durability::Os if planted::is("os-not-written") => {}
            Durability::Os => self.write_to(inner, sequence)?,
            Durability::Disk => self.sync_from(inner, sequence)?,
        }
        Ok(sequence)
    }

    /// Waits until somebody has written or synced.
    fn wait<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
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

    /// Stops all further writes for this reason.
    pub fn poison(&self, reason: &str) {
        self.inner.lock().poison.get_or_insert_with(|| reason.to_string());
        self.idle.notify_all();
    }

    /// Why writes have stopped, if they have.
    pub fn poisoned(&self) -> Option<String> {
        self.inner.lock().poison.clone()
    }
}

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

impl Inner {
    fn check(&self) -> Result<()> {
        let Self { durable_sequence: durable, written_sequence: written, last_sequence: last, .. } = *self;
        debug_assert!(durable <= written && written <= last, "{durable}, {written}, {last}");
        debug_assert!(self.written <= self.appender.len(), "what is written was appended");
        debug_assert!(self.unwritten.is_empty() || self.written == 0, "segments are written in order");
        match &self.poison {
            Some(cause) => Err(Error::Poisoned(cause.clone())),
            None => Ok(()),
        }
    }
}
