//! Several keys at a time.

use std::collections::BTreeSet;

use forebay_base::ValuePointer;
use forebay_base::combine::Fold;
use forebay_base::{Kind, Record, Result};
use forebay_env::guest;
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{Rule, answered};
use forebay_store::list::{Lookup, Seeker};

use super::{Ttl, note};
use crate::context::Context;
use crate::versions::{TableState, View};

/// Looks several keys up in one view, all at a time. Answers are in the order of the keys.
pub(crate) fn multi_get<K: AsRef<[u8]>>(
    context: &Context,
    view: &View,
    table: u32,
    keys: &[K],
) -> Result<Vec<Option<Vec<u8>>>> {
    let (ttl, stored) = multi_get_stored(context, view, table, keys)?;
    Ok(stored.into_iter().map(|stored| ttl.unless_expired(stored)).collect())
}

/// The same, each as `make` makes it of its value and when it expires.
pub(crate) fn multi_get_with_expiry<K: AsRef<[u8]>, T>(
    context: &Context,
    view: &View,
    table: u32,
    keys: &[K],
    make: impl Fn(Vec<u8>, u64) -> T,
) -> Result<Vec<Option<T>>> {
    let found = multi_get_within(context, view, table, keys, usize::MAX, make)?;
    debug_assert_eq!(found.len(), keys.len(), "without a bound each key is looked up");
    Ok(found.into_iter().map(|(_, found)| found).collect())
}

/// The same, until values have more than so many bytes. Answers stand with the numbers of their keys.
pub(crate) fn multi_get_within<K: AsRef<[u8]>, T>(
    context: &Context,
    view: &View,
    table: u32,
    keys: &[K],
    bytes_max: usize,
    make: impl Fn(Vec<u8>, u64) -> T,
) -> Result<Vec<(usize, Option<T>)>> {
    let mut folds: Vec<Fold> = keys.iter().map(|_| Fold::default()).collect();
    let (ttl, left_out) = find_within(context, view, view.table(table)?, keys, &mut folds, bytes_max)?;
    let cut = |mut value: Vec<u8>| {
        let expiry = ttl.cut(&mut value);
        make(value, expiry)
    };
    let there = |fold: Fold| fold.into_value().filter(|stored| !ttl.is_expired(stored)).map(cut);
    let found = folds.into_iter().enumerate().filter(|(number, _)| !left_out.contains(number));
    Ok(found.map(|(number, fold)| (number, there(fold))).collect())
}

/// The same, as values are stored: where they expire, with when. Says how they are seen.
pub(crate) fn multi_get_stored<K: AsRef<[u8]>>(
    context: &Context,
    view: &View,
    table: u32,
    keys: &[K],
) -> Result<(Ttl, Vec<Option<Vec<u8>>>)> {
    let mut folds: Vec<Fold> = keys.iter().map(|_| Fold::default()).collect();
    let ttl = find_all(context, view, view.table(table)?, keys, &mut folds)?;
    let there = |fold: Fold| fold.into_value().filter(|stored| !ttl.is_expired(stored));
    Ok((ttl, folds.into_iter().map(there).collect()))
}

/// Folds all there is of several keys, in one fold each, all of them empty. Says how their values are seen.
pub(crate) fn find_all<K: AsRef<[u8]>>(
    context: &Context,
    view: &View,
    table: &TableState,
    keys: &[K],
    folds: &mut [Fold],
) -> Result<Ttl> {
    find_within(context, view, table, keys, folds, usize::MAX).map(|(ttl, _)| ttl)
}

/// The same, until what was folded has more than so many bytes. Says which keys are left out then.
fn find_within<K: AsRef<[u8]>>(
    context: &Context,
    view: &View,
    table: &TableState,
    keys: &[K],
    folds: &mut [Fold],
    bytes_max: usize,
) -> Result<(Ttl, BTreeSet<usize>)> {
    debug_assert_eq!(keys.len(), folds.len(), "each key has a fold");
    let (rule, rows) = (table.rule()?, table.rows());
    guest::take_failure();
    context.metrics.gets.add(keys.len() as u64);
    let lookup = |key| Lookup::new(table.order, key).caching(view.reading.caching);
    let mut lookups: Vec<Lookup<'_>> = keys.iter().map(|key| lookup(key.as_ref())).collect();
    lookups.iter().try_for_each(|lookup| note(view, table, lookup))?;
    let numbers = (0..keys.len()).collect();
    let mut folding = Folding { rule, folds, numbers, bytes: 0, bytes_max, left_out: BTreeSet::new() };
    for (buffer, limit) in view.buffers() {
        let sought: Vec<(u64, &[u8])> = lookups.iter().map(|lookup| (lookup.prefix, lookup.key)).collect();
        let mut open = vec![true; sought.len()];
        buffer.find_many(&rows, &sought, limit, |at, record| {
            open[at] = folding.wants(at) && folding.show(at, record);
            open[at]
        });
        let (mut of_lookup, mut of_number) = (open.iter(), open.iter());
        lookups.retain(|_| of_lookup.next() == Some(&true));
        folding.numbers.retain(|_| of_number.next() == Some(&true));
    }
    context.metrics.gets_from_buffer.add((keys.len() - lookups.len()) as u64);
    let blamed = |error| table.blamed(error);
    let wasted_nanoseconds = table.version.find(&lookups, &mut folding).map_err(blamed)?;
    table.wasted_nanoseconds.fetch_add(wasted_nanoseconds, Ordering::Relaxed);
    let Folding { folds, bytes, mut left_out, .. } = folding;
    let ttl = Ttl::of(context, view, table);
    // What is over is gone, whatever stands there.
    let is_over = |fold: &&mut Fold| fold.pointer().is_some_and(|pointer| ttl.is_expired(pointer));
    folds.iter_mut().filter(is_over).for_each(Fold::clear);
    fetch(table, keys, folds, bytes, bytes_max, &mut left_out).map_err(blamed)?;
    answered(Ok((ttl, left_out)))
}

/// Folds what is found of some keys, until that is enough.
struct Folding<'a> {
    rule: &'a Rule,
    folds: &'a mut [Fold],
    /// Of the keys that are looked up: which fold is theirs.
    numbers: Vec<usize>,
    bytes: usize,
    bytes_max: usize,
    left_out: BTreeSet<usize>,
}

impl Seeker for Folding<'_> {
    fn show(&mut self, lookup: usize, record: &Record<'_>) -> bool {
        // Of one that stands apart it is counted when it is fetched.
        self.bytes += if record.kind == Kind::Pointer { 0 } else { record.value.len() };
        self.folds[self.numbers[lookup]].add(self.rule, record)
    }

    /// A key that is left out is wanted no more; one of which something was folded is taken to its end.
    fn wants(&mut self, lookup: usize) -> bool {
        let wants = self.bytes <= self.bytes_max || !self.folds[self.numbers[lookup]].is_empty();
        if !wants {
            self.left_out.insert(self.numbers[lookup]);
        }
        wants
    }
}

/// Gets the values that stand in value files, all at a time, until all values, with those that are there, have more than
/// so many bytes.
fn fetch<K: AsRef<[u8]>>(
    table: &TableState,
    keys: &[K],
    folds: &mut [Fold],
    mut bytes: usize,
    bytes_max: usize,
    left_out: &mut BTreeSet<usize>,
) -> Result<()> {
    let pointed = folds.iter().enumerate().filter_map(|(number, fold)| Some((number, fold.pointer()?)));
    let mut numbers = Vec::new();
    for (number, pointer) in pointed {
        if bytes > bytes_max {
            left_out.insert(number);
            continue;
        }
        numbers.push(number);
        // What is no pointer is told when it is read.
        bytes = bytes.saturating_add(ValuePointer::decode(pointer).map_or(0, |at| at.bytes as usize));
    }
    if numbers.is_empty() {
        return Ok(());
    }
    let pointer = |number: &usize| Some((keys[*number].as_ref(), folds[*number].pointer()?));
    let pointers: Vec<_> = numbers.iter().filter_map(pointer).collect();
    let values = table.version.values().read_many(&pointers)?;
    debug_assert_eq!(values.len(), numbers.len(), "each value has its key");
    numbers.into_iter().zip(values).for_each(|(number, value)| folds[number].fetched(value));
    Ok(())
}
