//! What a transaction has begun from: a view, what was read of it, and up to where that is known to have stayed as it was.
//!
//! 1. Whoever reads the view notes in [`Reads`] what, before it looks.
//! 2. When the transaction is written, everybody else's records since are held against that. The log keeps their order,
//!    and write buffers are its image: so the records between two views are walked, in memory ([`Begun::walk`]).
//! 3. Where these are many, or not all in buffers any more, or something has come in beside the log, all that was read is
//!    read anew and compared instead ([`Begun::read_again`]).
//! 4. What is appended while this goes on is walked by the log, under its lock ([`Basis`]). If it is much, 2. again, up to
//!    [`CHECKS_MAX`] times.
//!
//! **Invariant:** a transaction that is written has read what it would read at that moment.

use std::sync::Arc;

use forebay_base::merge::Direction;
use forebay_base::{Error, Range, Result, planted};
use forebay_env::yield_point;
use forebay_store::buffer::HasRead;
use forebay_store::log::{Basis, Log};

use crate::read::{self, Cursor};
use crate::versions::{Own, Reads, Versions, View};
use crate::write::{Condition, conflict};

/// So many bytes of records are walked rather than that all is read anew,
const WALKED_BYTES: usize = 256 << 10;
/// and so many more for each key that was read: to read it twice takes as long, if it is in memory.
const WALKED_BYTES_PER_STEP: u64 = 16 << 10;
/// What the log walks while nobody can append, at the first try. Each time that it is more, twice as much may be.
const LOCKED_BYTES: usize = 16 << 10;
const LOCKED_DOUBLINGS_MAX: u32 = 6;
/// So often it is checked. A transaction that is outrun as often, as where it reads for long what others flush meanwhile,
/// is given up rather than that its thread reads for ever.
const CHECKS_MAX: u32 = 8;
/// How many keys are looked up together.
const KEYS_AT_A_TIME: usize = 256;

const _: () =
    assert!(LOCKED_BYTES << LOCKED_DOUBLINGS_MAX == 1 << 20, "others wait for a millisecond at most");

/// See the module.
pub(crate) struct Begun {
    versions: Arc<Versions>,
    reads: Arc<Reads>,
    /// What the transaction sees.
    view: View,
    /// Up to this view, all that was read has stayed as it was.
    checked: View,
    /// The log's epoch before that was taken.
    epoch: u64,
    checks: u32,
}

impl Begun {
    /// Begins with the database as it is now.
    pub(crate) fn new(versions: &Arc<Versions>) -> Self {
        let context = &versions.context;
        let reads = Arc::new(Reads::new(context.options.transaction_read_bytes(&context.division())));
        // Before the view: what changes in between is looked for again.
        let epoch = context.log.as_ref().map_or(0, Log::epoch);
        let checked = versions.view();
        let own = Own { reads: Arc::clone(&reads), written: Vec::new() };
        let moment = Some(context.env.clock.unix_milliseconds());
        let view = View { own: Some(Arc::new(own)), moment, ..checked.clone() };
        Self { versions: Arc::clone(versions), reads, view, checked, epoch, checks: 0 }
    }

    /// What the transaction sees.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// The table of a record that came between what was checked and a newer view and changes what was read. `Err` where
    /// not all that came is in buffers, or it is too much to walk.
    fn walk(&self, newer: &View) -> Result<Option<u32>, TooMuch> {
        let first = self.checked.state.active.segment();
        let since = newer.log_buffers().take_while(|(buffer, _)| buffer.segment() >= first);
        let mut since: Vec<_> = since.map(|(buffer, bytes)| (buffer, 0..bytes)).collect();
        match since.last_mut() {
            Some((oldest, places)) if oldest.segment() == first => places.start = self.checked.active_bytes,
            _ => return Err(TooMuch),
        }
        let bytes: usize = since.iter().map(|(_, places)| places.len()).sum();
        let per_step = self.reads.steps().saturating_mul(WALKED_BYTES_PER_STEP);
        if bytes as u64 > per_step.saturating_add(WALKED_BYTES as u64) {
            return Err(TooMuch);
        }
        Ok(since.into_iter().find_map(|(buffer, places)| self.reads.changed(buffer, places)))
    }

    /// Reads anew all that was read, as the transaction saw it and as a newer view has it. The table of the first
    /// difference.
    fn read_again(&self, newer: &View) -> Result<Option<u32>> {
        let plain = |view: &View| View { moment: self.view.moment, own: None, ..view.clone() };
        let (then, now) = (plain(&self.view), plain(newer));
        for (id, reads) in self.reads.tables() {
            // Places in another order are other places.
            if now.table(id)?.order != reads.order {
                return Ok(Some(id));
            }
            let keys: Vec<&[u8]> = reads.keys.iter().map(|key| &*key.key).collect();
            for keys in keys.chunks(KEYS_AT_A_TIME) {
                // With when they expire: that is read, too, and may have been changed alone.
                let stored = |view| read::multi_get_stored(&self.versions.context, view, id, keys);
                let get = |view| stored(view).map(|(_, stored)| stored);
                if !is_same(&get(&then)?, get(&now))? {
                    return Ok(Some(id));
                }
            }
            for range in reads.ranges() {
                if !self.has_same(id, &range, &then, &now)? {
                    return Ok(Some(id));
                }
            }
        }
        Ok(None)
    }

    /// Whether a range has the same entries in two views.
    fn has_same(&self, id: u32, range: &Range, then: &View, now: &View) -> Result<bool> {
        let cursor =
            |view: &View| Cursor::new(&self.versions, view.clone(), id, range.clone(), Direction::Forward);
        let (mut older, mut newer) = (cursor(then)?, cursor(now)?);
        loop {
            older.next()?;
            let stepped = newer.next();
            if !is_same(&older.stored(), stepped.map(|()| newer.stored()))? {
                return Ok(false);
            }
            if older.stored().is_none() {
                return Ok(true);
            }
        }
    }
}

impl Drop for Begun {
    /// Views and cursors of it may be there for longer.
    fn drop(&mut self) {
        self.reads.close();
    }
}

/// Whether what was read is there again. It is not where it cannot be given any more, as a value that others have made
/// too long.
fn is_same<T: PartialEq>(then: &T, now: Result<T>) -> Result<bool> {
    match now {
        Err(Error::Invalid(_) | Error::NotFound(_) | Error::TooLong(_)) => Ok(false),
        now => now.map(|now| *then == now),
    }
}

/// There is more than is walked.
struct TooMuch;

impl Condition for Begun {
    fn check(&mut self, epoch: u64) -> Result<Option<Basis<'_>>> {
        if self.reads.steps() == 0 {
            return Ok(None);
        }
        if self.checks == CHECKS_MAX {
            return Err(outrun());
        }
        let newer = self.versions.view();
        debug_assert!(epoch >= self.epoch, "epochs do not fall");
        let walked = if epoch == self.epoch { self.walk(&newer) } else { Err(TooMuch) };
        let changed = match walked {
            Ok(changed) => changed,
            Err(TooMuch) => self.read_again(&newer)?,
        };
        yield_point("transaction is checked");
        if let Some(table) = changed.filter(|_| !planted::is("conflict-overlooked")) {
            return Err(conflict(&newer.state, table));
        }
        (self.checked, self.epoch) = (newer, epoch);
        let bytes_max = LOCKED_BYTES << self.checks.min(LOCKED_DOUBLINGS_MAX);
        self.checks += 1;
        let (segment, place) = (self.checked.state.active.segment(), self.checked.active_bytes);
        Ok(Some(Basis { read: &*self.reads, segment, place, bytes_max }))
    }
}

#[cold]
fn outrun() -> Error {
    Error::Conflict(format!(
        "others have written more, {CHECKS_MAX} times, while it was checked whether they have changed what the transaction \
         has read, so nothing was written; begin it anew"
    ))
}

/// Does work that may conflict, again and again, unless its outcome is something else.
pub(crate) fn retried<T>(attempts: u32, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..attempts {
        match work() {
            Err(Error::Conflict(_)) => yield_point("transaction is begun anew"),
            outcome => return outcome,
        }
    }
    work().map_err(|error| match error {
        Error::Conflict(reason) => Error::Conflict(format!(
            "{reason}; it was tried {attempts} times, as Options::transaction_attempts says"
        )),
        other => other,
    })
}
