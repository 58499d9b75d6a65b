//! The way of a get: the active buffer, sealed buffers from new to old, then down one path of the tree, in
//! each node from the newest list to the oldest. The first record of the key decides, or the table's rule merges what
//! there is of it.

mod approximate;
mod count;
mod cursor;
mod parts;
mod states;
mod together;

use std::time::Duration;

use forebay_base::combine::Fold;
use forebay_base::{Record, Result, expiry, planted};
use forebay_env::guest;
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{RuleName, answered, milliseconds_of};
use forebay_store::list::Lookup;

use crate::context::Context;
use crate::versions::{TableState, View};

pub use approximate::Approximation;
pub(crate) use approximate::approximate;
pub(crate) use count::count;
pub(crate) use cursor::Entry;
pub use cursor::{Cursor, Nearest};
pub(crate) use parts::parts;
pub(crate) use states::States;
pub(crate) use together::{find_all, multi_get, multi_get_stored, multi_get_with_expiry, multi_get_within};

/// Every how many lookups one is timed: reading the clock twice would be a share of a cached get.
const TIMED_EVERY: u64 = 16;

/// Looks a key up.
pub(crate) fn get(context: &Context, view: &View, table: u32, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut value = Vec::new();
    Ok(get_into(context, view, table, key, &mut value)?.map(|_| value))
}

/// The same into memory that is there, in place of what it has. Returns when the entry expires, if there is one.
pub(crate) fn get_into(
    context: &Context,
    view: &View,
    table: u32,
    key: &[u8],
    value: &mut Vec<u8>,
) -> Result<Option<u64>> {
    let table = view.table(table)?;
    let mut fold = Fold::within(std::mem::take(value));
    let timed = context.metrics.gets.get().is_multiple_of(TIMED_EVERY);
    context.metrics.gets.add(1);
    let started = timed.then(|| context.env.clock.now());
    let found = find(context, view, table, key, &mut fold);
    if let Some(started) = started {
        context.metrics.get_latency.record(context.env.clock.now().saturating_sub(started));
    }
    let ttl = found.map_err(|error| table.blamed(error))?;
    let is_there = fold.has_value() && !ttl.is_expired(fold.value());
    *value = fold.into_memory();
    Ok(is_there.then(|| ttl.cut(value)))
}

/// What write buffers alone decide of a key; `None` where lists have to be asked.
#[cfg(feature = "async")]
pub(crate) fn get_buffered(
    context: &Context,
    view: &View,
    table: u32,
    key: &[u8],
) -> Result<Option<Option<Vec<u8>>>> {
    let table = view.table(table)?;
    let mut fold = Fold::default();
    if find_buffered(view, table, &Lookup::new(table.order, key), &mut fold)? {
        return answered(Ok(None));
    }
    context.metrics.gets.add(1);
    context.metrics.gets_from_buffer.add(1);
    let ttl = Ttl::of(context, view, table);
    answered(Ok(Some(ttl.unless_expired(fold.into_value()))))
}

/// Folds what write buffers have of a key. Says whether what is older matters.
fn find_buffered(view: &View, table: &TableState, lookup: &Lookup<'_>, fold: &mut Fold) -> Result<bool> {
    note(view, table, lookup)?;
    let (rule, rows) = (table.rule()?, table.rows());
    guest::take_failure();
    let mut open = true;
    for (buffer, limit) in view.buffers() {
        if open {
            buffer.find(&rows, lookup.prefix, lookup.key, limit, |record| {
                open = fold.add(rule, record);
                open
            });
        }
    }
    Ok(open)
}

/// Folds all there is of a key. Says how its value is seen.
fn find(context: &Context, view: &View, table: &TableState, key: &[u8], fold: &mut Fold) -> Result<Ttl> {
    let lookup = Lookup::new(table.order, key).caching(view.reading.caching);
    if find_buffered(view, table, &lookup, fold)? {
        let rule = table.rule()?;
        let wasted_nanoseconds =
            table.version.find(&[lookup], &mut |_, record: &Record<'_>| fold.add(rule, record))?;
        table.wasted_nanoseconds.fetch_add(wasted_nanoseconds, Ordering::Relaxed);
    } else {
        context.metrics.gets_from_buffer.add(1);
    }
    let ttl = Ttl::of(context, view, table);
    match fold.pointer() {
        // What is over is gone, whatever stands there.
        Some(pointer) if ttl.is_expired(pointer) => fold.clear(),
        Some(pointer) => {
            let value = table.version.values().read(key, pointer)?;
            fold.fetched(value);
        }
        None => {}
    }
    answered(Ok(ttl))
}

/// Notes what a transaction looks up.
#[inline]
fn note(view: &View, table: &TableState, lookup: &Lookup<'_>) -> Result<()> {
    match &view.own {
        Some(own) => own.reads.note_key(table, lookup.prefix, lookup.key),
        None => Ok(()),
    }
}

/// How a view sees the values of a table: at some moment, where they expire. Readers ask it at the one place where each
/// makes an entry of a record.
#[derive(Clone, Copy)]
pub(crate) struct Ttl {
    now: Option<u64>,
}

impl Ttl {
    /// How a view sees a table's values. The time is read after the view was taken: what a merge dropped before that
    /// has expired by now.
    pub(crate) fn of(context: &Context, view: &View, table: &TableState) -> Self {
        let now = || view.moment.unwrap_or_else(|| context.env.clock.unix_milliseconds());
        Self { now: table.options.time_to_live.map(|_| now()) }
    }

    /// A value as the user gave it, unless its time is over.
    fn unless_expired(self, stored: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut value = stored.filter(|stored| !self.is_expired(stored))?;
        self.cut(&mut value);
        Some(value)
    }

    /// What a fold came to as the user gave it, unless that is nothing, or its time is over.
    pub(crate) fn seen(self, fold: &Fold) -> Option<&[u8]> {
        let is_there = fold.has_value() && !self.is_expired(fold.value());
        is_there.then(|| self.user_value(fold.value()))
    }

    /// Leaves of a stored value what the user gave. Returns when it expires.
    fn cut(self, stored: &mut Vec<u8>) -> u64 {
        let Some(_) = self.now else { return expiry::NEVER };
        let (value, expiry) = expiry::split(stored);
        let bytes = value.len();
        stored.truncate(bytes);
        expiry
    }

    /// Whether values expire at all.
    #[inline]
    pub(crate) fn expires(self) -> bool {
        self.now.is_some()
    }

    /// Whether the time of a stored value is over.
    #[inline]
    pub(crate) fn is_expired(self, stored: &[u8]) -> bool {
        self.now.is_some_and(|now| expiry::split(stored).1 <= now) && !planted::is("expired-still-seen")
    }

    /// What the user gave of a stored value.
    #[inline]
    pub(crate) fn user_value(self, stored: &[u8]) -> &[u8] {
        match self.now {
            Some(_) => expiry::split(stored).0,
            None => stored,
        }
    }
}

/// When what is written now expires that lives for so long.
pub(crate) fn expiry_of(context: &Context, ttl: Duration) -> u64 {
    expiry::after(context.env.clock.unix_milliseconds(), milliseconds_of(ttl))
}

/// When what is written now without more expires, in a table whose entries live for so long. Where operands are merged
/// it is at the end of a window of that length: what is written in one window has one expiry, and is merged.
pub(crate) fn usual_expiry(context: &Context, ttl: Duration, merging: Merging) -> u64 {
    match merging {
        Merging::Nothing => expiry_of(context, ttl),
        Merging::Operands => expiry::window_end(context.env.clock.unix_milliseconds(), milliseconds_of(ttl)),
    }
}

/// What becomes of several records of a key that may expire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Merging {
    /// The newest counts.
    Nothing,
    /// Operands are merged.
    Operands,
}

impl Merging {
    /// By the name of a table's rule.
    pub(crate) fn by(rule: &RuleName) -> Self {
        if *rule == RuleName::None { Self::Nothing } else { Self::Operands }
    }
}
