//! What a transaction has read: keys, there or not, and ranges between them.
//!
//! **Invariant:** ranges of a table neither meet nor touch one another. All places of a table are in the order that it
//! has in the transaction's view.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range as Places;

use forebay_base::{Bound, Error, Order, Range, Record, Result};
use forebay_env::sync::{Mutex, Rank};
use forebay_store::WriteBuffer;
use forebay_store::buffer::{HasRead, RangeDelete, ReadSet};

use crate::versions::TableState;

/// About what a key, or either end of a range, takes beside its bytes.
const PLACE_BYTES: u64 = 64;

/// What one transaction has read.
pub(crate) struct Reads {
    tables: Mutex<Tables>,
    bytes_max: u64,
}

/// It by tables.
#[derive(Default)]
struct Tables {
    reads: BTreeMap<u32, TableReads>,
    /// The transaction is over: whoever still reads what it saw reads for nobody.
    is_closed: bool,
}

/// What it has read of one table.
#[derive(Clone)]
pub(crate) struct TableReads {
    pub(crate) order: Order,
    pub(crate) keys: BTreeSet<Bound>,
    ranges: BTreeMap<Bound, Option<Bound>>,
    /// Memory that it takes.
    bytes: u64,
    /// How many keys were looked up or stepped on.
    steps: u64,
}

impl Reads {
    /// Nothing yet, and no more than this many bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { tables: Mutex::ranked(Rank::Leaf, Tables::default()), bytes_max }
    }

    /// Notes that a key was looked up.
    pub(crate) fn note_key(&self, table: &TableState, prefix: u64, key: &[u8]) -> Result<()> {
        self.note(table, |reads| reads.add_key(Bound { prefix, key: key.into() }))
    }

    /// Notes that all of a range was walked.
    pub(crate) fn note_range(&self, table: &TableState, range: Range) -> Result<()> {
        self.note(table, |reads| reads.add_range(range))
    }

    fn note(&self, table: &TableState, add: impl FnOnce(&mut TableReads)) -> Result<()> {
        let mut tables = self.tables.lock();
        if tables.is_closed {
            return Ok(());
        }
        let reads = tables.reads.entry(table.id).or_insert_with(|| TableReads::new(table.order));
        debug_assert_eq!(reads.order, table.order, "a view does not change");
        reads.steps += 1;
        add(reads);
        let bytes: u64 = tables.reads.values().map(|reads| reads.bytes).sum();
        if bytes <= self.bytes_max {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the transaction has read more keys, each by itself, than {} bytes can hold; read neighbours by one scan, read \
             what need not be current from Database::snapshot, or raise Options::transaction_reads",
            self.bytes_max
        )))
    }

    /// A copy of all of it, by table.
    pub(crate) fn tables(&self) -> BTreeMap<u32, TableReads> {
        self.tables.lock().reads.clone()
    }

    /// Forgets all of it, and notes no more.
    pub(crate) fn close(&self) {
        let gone =
            std::mem::replace(&mut *self.tables.lock(), Tables { reads: BTreeMap::new(), is_closed: true });
        drop(gone);
    }

    /// How many keys were looked up or stepped on.
    pub(crate) fn steps(&self) -> u64 {
        self.tables.lock().reads.values().map(|reads| reads.steps).sum()
    }
}

impl ReadSet for Tables {
    fn has(&self, table: u32, record: &Record<'_>) -> bool {
        self.reads.get(&table).is_some_and(|reads| reads.has(&reads.order.bound(record.key)))
    }

    fn meets(&self, delete: &RangeDelete) -> bool {
        // A range that is deleted is of a table in key order, whatever its order was when it was read.
        let meets = |reads: &TableReads| !reads.order.is_lexical() || reads.meets(&delete.range);
        self.reads.get(&delete.table).is_some_and(meets)
    }
}

impl HasRead for Reads {
    fn changed(&self, buffer: &WriteBuffer, places: Places<usize>) -> Option<u32> {
        buffer.changed(places, &*self.tables.lock())
    }
}

impl TableReads {
    fn new(order: Order) -> Self {
        Self { order, keys: BTreeSet::new(), ranges: BTreeMap::new(), bytes: 0, steps: 0 }
    }

    /// The ranges, lowest first.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range> {
        self.ranges.iter().map(|(low, high)| Range { low: low.clone(), high: high.clone() })
    }

    fn has(&self, place: &Bound) -> bool {
        let before = self.ranges.range::<Bound, _>(..=place).next_back();
        self.keys.contains(place) || before.is_some_and(|(_, high)| is_below(place, high.as_ref()))
    }

    fn meets(&self, range: &Range) -> bool {
        let key = self.keys.range::<Bound, _>(&range.low..).next();
        let last = match &range.high {
            Some(high) => self.ranges.range::<Bound, _>(..high).next_back(),
            None => self.ranges.iter().next_back(),
        };
        key.is_some_and(|key| is_below(key, range.high.as_ref()))
            || last.is_some_and(|(_, high)| is_below(&range.low, high.as_ref()))
    }

    fn add_key(&mut self, place: Bound) {
        let bytes = bytes_of(Some(&place));
        if self.keys.insert(place) {
            self.bytes += bytes;
        }
    }

    /// Adds a range, in place of those that it meets or touches.
    fn add_range(&mut self, Range { mut low, mut high }: Range) {
        if !is_below(&low, high.as_ref()) {
            return;
        }
        loop {
            let upto = match &high {
                Some(high) => self.ranges.range::<Bound, _>(..=high).next_back(),
                None => self.ranges.iter().next_back(),
            };
            let Some((start, end)) = upto else { break };
            if end.as_ref().is_some_and(|end| *end < low) {
                break;
            }
            let start = start.clone();
            let end = self.ranges.remove(&start).flatten();
            self.bytes -= bytes_of(Some(&start)) + bytes_of(end.as_ref());
            low = low.min(start);
            high = high.zip(end).map(|(high, end)| high.max(end));
        }
        self.bytes += bytes_of(Some(&low)) + bytes_of(high.as_ref());
        self.ranges.insert(low, high);
    }
}

fn is_below(place: &Bound, high: Option<&Bound>) -> bool {
    high.is_none_or(|high| place < high)
}

fn bytes_of(place: Option<&Bound>) -> u64 {
    PLACE_BYTES + place.map_or(0, |place| place.key.len() as u64)
}

#[cfg(test)]
mod tests {
    use forebay_env::Rng;

    use super::*;

    const PLACES: u64 = 40;

    fn bound(place: u64) -> Bound {
        Order::Lexical.bound(&place.to_be_bytes())
    }

    fn range(low: u64, high: u64) -> Range {
        Range { low: bound(low), high: (high < PLACES).then(|| bound(high)) }
    }

    /// Against a list of places that were read.
    #[test]
    fn what_was_read_is_what_was_noted() {
        for seed in 0..300 {
            println!("seed {seed}");
            let mut rng = Rng::new(seed);
            let mut reads = TableReads::new(Order::Lexical);
            let mut read = [false; PLACES as usize];
            for _ in 0..rng.below(30) {
                let (low, high) = (rng.below(PLACES), rng.below(PLACES + 1));
                match rng.chance(40) {
                    true => {
                        reads.add_key(bound(low));
                        read[low as usize] = true;
                    }
                    false => {
                        reads.add_range(range(low, high));
                        (low..high).for_each(|place| read[place as usize] = true);
                    }
                }
            }
            for (place, &was_read) in read.iter().enumerate() {
                assert_eq!(reads.has(&bound(place as u64)), was_read, "place {place}");
                for high in place..=PLACES as usize {
                    let meets = read[place..high].contains(&true);
                    // Between two places there is room for keys, which ranges hold.
                    let asked = range(place as u64, high as u64);
                    assert_eq!(reads.meets(&asked) && high > place, meets, "{place} to {high}");
                }
            }
            let kept: Vec<_> = reads.ranges().collect();
            let is_apart = |pair: &[Range]| pair[0].high.as_ref().is_some_and(|high| *high < pair[1].low);
            assert!(kept.windows(2).all(is_apart), "{kept:?}");
            let ends = kept.iter().map(|range| bytes_of(Some(&range.low)) + bytes_of(range.high.as_ref()));
            let keys = reads.keys.iter().map(|key| bytes_of(Some(key)));
            assert_eq!(ends.chain(keys).sum::<u64>(), reads.bytes, "what it takes is counted");
        }
    }
}
