//! The newest record of each key, where lookups and writes of a table take turns: a hash table of places. A lookup first
//! takes in what was appended since the one before, so that runs need not be sorted and merged for a few records at a
//! time. Where much was appended since, it is sorted into [runs](super::run) as ever, and the hash table begins anew behind
//! them. Tables that merge have [states](super::states) or folded runs instead.
//!
//! **Invariant:** what is found is the newest record of a key between `from` and `covers`, if there is one.

use std::convert::Infallible;

use forebay_base::sort::Pieces;
use forebay_base::{Order, Record};

use super::memtable::Memtable;
use super::nearby::AHEAD;
use super::notes::word_of;
use super::range_deletes;
use super::run::place_in;
use super::slots::Slots;
use super::{TableRows, WriteBuffer};

/// A lookup takes in as much as this, a millisecond of work, and this share of the buffer: to sort more takes less.
const BEHIND_BYTES_MAX: usize = 1 << 20;
const BEHIND_BYTES_MIN: usize = if cfg!(test) { 256 } else { 4 << 10 };
const BEHIND_SHARE: usize = 64;
/// It holds about as many bytes a key, and no more than this share of the buffer: beyond, it begins anew, and runs tell the
/// rest, for which there is room.
const KEY_BYTES: usize = 16;
const MEMORY_SHARE: usize = if cfg!(test) { 1 << 10 } else { 16 };

/// See the module.
#[derive(Debug)]
pub(super) struct Newest {
    /// Where keys go: that of a table in key order has nothing to do with the order.
    hashed: Order,
    from: usize,
    covers: usize,
    slots: Slots,
}

impl Newest {
    fn new(rows: &TableRows<'_>, segment: u64, from: usize) -> Self {
        let hashed = if rows.order.is_uniform() { rows.order } else { Order::Hashed { seed: segment } };
        Self { hashed, from, covers: from, slots: Slots::default() }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
    }

    /// Whether it tells what there was at this length.
    fn tells(&self, rows: &TableRows<'_>, limit: usize) -> bool {
        self.covers >= limit && (self.hashed == rows.order || !rows.order.is_uniform())
    }

    /// Takes all in that was appended before `to`, at which a frame begins.
    fn take_in(&mut self, buffer: &WriteBuffer, table: u32, to: usize) {
        let Self { hashed, slots, .. } = self;
        let end = buffer.for_each_near(table, self.covers, to, |owner, place, record| {
            if owner == table {
                let word = word_of(Pieces::WHOLE.of(hashed.prefix(record.key)), place);
                let meets = |other| -> Result<Option<u64>, Infallible> {
                    Ok((buffer.record(place_in(other)).key == record.key).then_some(word))
                };
                match slots.put(word, meets) {
                    Ok(()) => {}
                }
            }
        });
        self.covers = end.max(to);
    }

    fn place(&self, buffer: &WriteBuffer, piece: u32, key: &[u8]) -> Option<usize> {
        let mut places = self.slots.of(piece).map(place_in);
        places.find(|&place| buffer.record(place).key == key)
    }

    /// The places of some keys' newest records.
    fn places(
        &self,
        buffer: &WriteBuffer,
        rows: &TableRows<'_>,
        keys: &[(u64, &[u8])],
    ) -> [Option<usize>; AHEAD] {
        debug_assert!(keys.len() <= AHEAD);
        let (mut pieces, mut places) = ([0; AHEAD], [None; AHEAD]);
        for ((prefix, key), piece) in keys.iter().zip(&mut pieces) {
            *piece =
                Pieces::WHOLE.of(if rows.order.is_uniform() { *prefix } else { self.hashed.prefix(key) });
            self.slots.prefetch(*piece);
        }
        if keys.len() > 1 {
            for &piece in &pieces[..keys.len()] {
                self.slots.of(piece).take(1).for_each(|word| buffer.prefetch(place_in(word), 1));
            }
        }
        for (at, (_, key)) in keys.iter().enumerate() {
            places[at] = self.place(buffer, pieces[at], key);
        }
        places
    }
}

impl WriteBuffer {
    /// As [`find`](Self::find) of each of some keys of a table that does not merge.
    pub(super) fn find_newest(
        &self,
        rows: &TableRows<'_>,
        keys: &[(u64, &[u8])],
        limit: usize,
        each: &mut impl FnMut(usize, &Record<'_>) -> bool,
    ) {
        let (limit, has_range_deletes) = {
            let index = self.index.read();
            match index.tables.get(&rows.table) {
                Some(table) if table.is_of_other_order(rows) => return,
                None if index.range_deletes.is_empty() && (index.noted || self.is_empty()) => return,
                _ => (limit.min(self.len()), !index.range_deletes.is_empty()),
            }
        };
        let is_near = self.catch_up(rows, limit);
        for (part, keys) in keys.chunks(AHEAD).enumerate() {
            let told = {
                let newest = self.newest.read();
                let newest = newest.get(&rows.table).filter(|newest| newest.tells(rows, limit));
                newest.map(|newest| (newest.from, newest.places(self, rows, keys)))
            };
            if keys.len() > 1 {
                let index = self.index.read();
                let runs = index.tables.get(&rows.table).into_iter().flat_map(Memtable::runs);
                runs.for_each(|run| run.warm(self, keys.iter().map(|(prefix, _)| *prefix)));
            }
            for (at, (prefix, key)) in keys.iter().enumerate() {
                let mut each = |record: &Record<'_>| each(part * AHEAD + at, record);
                let hides = |place| has_range_deletes && self.floor(rows, *prefix, key, limit) > place;
                // What is looked for in runs: all that comes before.
                let before = match told.map(|(from, places)| (from, places[at])) {
                    Some((from, None)) => from.min(limit),
                    Some((_, Some(place))) if place < limit && !hides(place) => {
                        if !each(&self.record(place)) {
                            continue;
                        }
                        place
                    }
                    _ => limit,
                };
                if before > 0 || has_range_deletes {
                    self.find_in_runs(rows, (*prefix, key), (before, limit), &mut each);
                }
            }
        }
        if !is_near {
            // Runs tell all of it by now.
            let mut newest = self.newest.write();
            if newest.get(&rows.table).is_none_or(|newest| !newest.tells(rows, limit)) {
                newest.insert(rows.table, Newest::new(rows, self.segment, limit));
            }
        }
    }

    /// Takes in what was appended before this length. Says whether that was little enough.
    fn catch_up(&self, rows: &TableRows<'_>, limit: usize) -> bool {
        if self.newest.read().get(&rows.table).is_some_and(|newest| newest.tells(rows, limit)) {
            return true;
        }
        let mut newest = self.newest.write();
        let newest = newest.entry(rows.table).or_insert_with(|| Newest::new(rows, self.segment, 0));
        let behind_max = (self.capacity() / BEHIND_SHARE).clamp(BEHIND_BYTES_MIN, BEHIND_BYTES_MAX);
        let is_full = newest.slots.len() * KEY_BYTES > self.capacity() / MEMORY_SHARE;
        let is_near = limit.saturating_sub(newest.covers) <= behind_max && !is_full;
        if is_near && !newest.tells(rows, limit) {
            newest.take_in(self, rows.table, limit);
        }
        is_near
    }

    /// What is older of a key is hidden by a range delete.
    fn floor(&self, rows: &TableRows<'_>, prefix: u64, key: &[u8], limit: usize) -> usize {
        let index = self.index.read();
        range_deletes::floor(&index.range_deletes, rows.table, limit, |range| range.contains(prefix, key))
    }
}
