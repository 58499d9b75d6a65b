//! The way of a get: the active buffer, sealed buffers from new to old, then down one path of the tree, in
//! each node from the newest list to the oldest. The first record of the key decides, or the table's rule merges what
//! there is of it.

mod approximate;
mod cursor;
mod states;

use std::time::Duration;

use forebay_base::combine::Fold;
use forebay_base::{Record, Result, expiry, planted};
use forebay_env::guest;
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{answered, milliseconds_of};
use forebay_store::list::Lookup;

use crate::context::Context;
use crate::versions::{TableState, View};

pub use approximate::Approximation;
pub(crate) use approximate::approximate;
pub(crate) use cursor::Entry;
pub use cursor::{Cursor, Nearest};
pub(crate) use states::States;

/// Every how many lookups one is timed: reading the clock twice would be a share of a cached get.
const TIMED_EVERY: u64 = 16;

/// Looks a key up.
pub(crate) fn get(context: &Context, view: &View, table: u32, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let timed = context.metrics.gets.get().is_multiple_of(TIMED_EVERY);
    context.metrics.gets.add(1);
    let started = timed.then(|| context.env.clock.now());
    let found = find(context, view, view.table(table)?, key);
    if let Some(started) = started {
        context.metrics.get_latency.record(context.env.clock.now().saturating_sub(started));
    }
    found
}

fn find(context: &Context, view: &View, table: &TableState, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let lookup = Lookup::new(table.order, key);
    note(view, table, &lookup)?;
    let (rule, rows) = (table.rule()?, table.rows());
    guest::take_failure();
    let mut fold = Fold::default();
    let mut open = true;
    for (buffer, limit) in view.buffers() {
        if open {
            buffer.find(&rows, lookup.prefix, key, limit, |record| {
                open = fold.add(rule, record);
                open
            });
        }
    }
    if open {
        let wasted_nanoseconds = table.version.find(&[lookup], &mut |_, record| fold.add(rule, record))?;
        table.wasted_nanoseconds.fetch_add(wasted_nanoseconds, Ordering::Relaxed);
    } else {
        context.metrics.gets_from_buffer.add(1);
    }
    if let Some(pointer) = fold.pointer() {
        let value = table.version.values().read(key, pointer)?;
        fold.fetched(value);
    }
    answered(Ok(Ttl::of(context, view, table).unless_expired(fold.into_value())))
}

/// Notes what a transaction looks up.
#[inline]
fn note(view: &View, table: &TableState, lookup: &Lookup<'_>) -> Result<()> {
    match &view.own {
        Some(own) => own.reads.note_key(table, lookup.prefix, lookup.key),
        None => Ok(()),
    }
}

/// Looks several keys up in one view, all at a time. Answers are in the order of the keys.
pub(crate) fn multi_get<K: AsRef<[u8]>>(
    context: &Context,
    view: &View,
    table: u32,
    keys: &[K],
) -> Result<Vec<Option<Vec<u8>>>> {
    let table = view.table(table)?;
    let (rule, rows) = (table.rule()?, table.rows());
    guest::take_failure();
    context.metrics.gets.add(keys.len() as u64);
    let mut folds: Vec<Fold> = keys.iter().map(|_| Fold::default()).collect();
    let lookups = keys.iter().map(|key| Lookup::new(table.order, key.as_ref()));
    let mut waiting: Vec<(usize, Lookup<'_>)> = lookups.enumerate().collect();
    waiting.iter().try_for_each(|(_, lookup)| note(view, table, lookup))?;
    for (buffer, limit) in view.buffers() {
        waiting.retain(|(number, lookup)| {
            let mut more = true;
            buffer.find(&rows, lookup.prefix, lookup.key, limit, |record| {
                more = folds[*number].add(rule, record);
                more
            });
            more
        });
    }
    context.metrics.gets_from_buffer.add((keys.len() - waiting.len()) as u64);
    let (numbers, lookups): (Vec<usize>, Vec<Lookup<'_>>) = waiting.into_iter().unzip();
    let mut each = |at: usize, record: &Record<'_>| folds[numbers[at]].add(rule, record);
    let wasted_nanoseconds = table.version.find(&lookups, &mut each)?;
    table.wasted_nanoseconds.fetch_add(wasted_nanoseconds, Ordering::Relaxed);
    fetch(table, keys, &mut folds)?;
    let ttl = Ttl::of(context, view, table);
    answered(Ok(folds.into_iter().map(|fold| ttl.unless_expired(fold.into_value())).collect()))
}

/// Gets the values that stand in value files, all at a time.
fn fetch<K: AsRef<[u8]>>(table: &TableState, keys: &[K], folds: &mut [Fold]) -> Result<()> {
    let pointers = keys.iter().zip(&*folds).filter_map(|(key, fold)| Some((key.as_ref(), fold.pointer()?)));
    let pointers: Vec<_> = pointers.collect();
    if pointers.is_empty() {
        return Ok(());
    }
    let mut values = table.version.values().read_many(&pointers)?.into_iter();
    let pointed = folds.iter_mut().filter(|fold| fold.pointer().is_some());
    pointed.for_each(|fold| values.next().into_iter().for_each(|value| fold.fetched(value)));
    debug_assert!(values.next().is_none(), "each value has its key");
    Ok(())
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
    pub(crate) fn unless_expired(self, stored: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut value = stored.filter(|stored| !self.is_expired(stored))?;
        value.truncate(self.user_value(&value).len());
        Some(value)
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

/// When what is put now expires.
pub(crate) fn expiry_of(context: &Context, ttl: Duration) -> u64 {
    expiry::after(context.env.clock.unix_milliseconds(), milliseconds_of(ttl))
}
