//! The write buffer: the root of every tree, in memory, and byte for byte a log segment.
//!
//! Ingest only appends (the log does that). Lookups and scans need order: each table's records are sorted lazily into
//! a few runs of packed words ([`memtable`], [`run`]), extended when somebody looks and merged as they grow, so that
//! pure ingest never pays for them; where lookups and writes take turns, the newest places are hashed ([`newest`]). A sealed buffer is sorted once, from what was noted of it as it was filled
//! ([`notes`]), and then has one run a table. Ranges that were deleted stand beside all that ([`range_deletes`]).

mod cursor;
mod draft;
mod filed;
mod folding;
mod many;
mod memtable;
mod nearby;
mod newer;
mod newest;
mod notes;
mod noting;
mod pool;
mod range_deletes;
mod run;
mod slots;
mod sorting;
mod states;
mod stretches;
#[cfg(test)]
mod tests;
mod value_file;
mod walk;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use forebay_base::sort::Pieces;
use forebay_base::{Combine, Order, Range, Record};
use forebay_env::Arena;
use forebay_env::sync::atomic::AtomicBool;
use forebay_env::sync::{Mutex, RwLock};

pub use cursor::BufferCursor;
pub use draft::Draft;
pub use newer::{HasRead, ReadSet};
pub use notes::{Contents, Notes, TableNotes};
pub use noting::Noting;
pub use pool::ArenaPool;
pub use range_deletes::RangeDelete;
pub use run::Run;
pub use sorting::Sorting;

use crate::log::frame;
use crate::values::ValueFile;
use memtable::Memtable;
use newest::Newest;
use run::{is_seen, record_in};
use states::Latest;

const CACHE_LINE_BYTES: usize = 64;

/// What a buffer knows of its records, by table.
#[derive(Debug, Default)]
struct Index {
    /// Whether every batch was noted: then a table without an entry has no records.
    noted: bool,
    tables: BTreeMap<u32, Memtable>,
    /// Ranges that were deleted, oldest first.
    range_deletes: Vec<RangeDelete>,
}

/// Which table's records are looked for, and how they are arranged.
#[derive(Clone, Copy)]
pub struct TableRows<'a> {
    /// The table's id.
    pub table: u32,
    /// What its records are sorted by.
    pub order: Order,
    /// What merges its records of one key; `None` where the newest hides the others.
    pub rule: Option<&'a dyn Combine>,
}

impl<'a> TableRows<'a> {
    /// What merges its records, if all are states of one length under evenly spread prefixes.
    fn states(&self) -> Option<&'a dyn Combine> {
        self.rule.filter(|rule| self.order.is_uniform() && rule.merges_puts() && rule.keeps_length())
    }
}

/// One write buffer.
pub struct WriteBuffer {
    segment: u64,
    arena: Option<Arc<Arena>>,
    pool: Option<Arc<ArenaPool>>,
    index: RwLock<Index>,
    /// By table, where lookups ask. Locked before the index.
    newest: RwLock<BTreeMap<u32, Newest>>,
    /// Held by who sorts what lookups want, beside the index.
    sorting: Mutex<()>,
    /// Until it is flushed.
    sorted: RwLock<Option<Arc<[SortedTable]>>>,
    /// Whether it is in a file by now.
    filed: AtomicBool,
    /// Its segment under the name that it keeps, where lists leave long values there.
    value_file: OnceLock<Arc<ValueFile>>,
}

/// All that a sealed buffer holds of one table, in order.
#[derive(Clone, Debug)]
pub struct SortedTable {
    /// The table's id.
    pub table: u32,
    /// How much it is.
    pub contents: Contents,
    /// The order.
    pub run: Arc<Run>,
}

impl WriteBuffer {
    /// The buffer that mirrors a log segment.
    pub fn new(segment: u64, arena: Arc<Arena>, pool: Option<Arc<ArenaPool>>) -> Self {
        Self {
            segment,
            arena: Some(arena),
            pool,
            index: RwLock::default(),
            newest: RwLock::default(),
            sorting: Mutex::default(),
            sorted: RwLock::default(),
            filed: AtomicBool::new(false),
            value_file: OnceLock::new(),
        }
    }

    /// An empty one that mirrors no segment, where nothing is ever appended.
    pub fn never_filled() -> Arc<Self> {
        Arc::new(Self::new(u64::MAX, Arena::new(0).0, None))
    }

    /// The log segment's id.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// Every byte appended and published so far.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.arena.as_ref().map_or(&[], |arena| arena.bytes())
    }

    #[inline]
    fn prefetch(&self, place: usize, bytes: usize) {
        if let Some(arena) = &self.arena {
            (place..place + bytes).step_by(CACHE_LINE_BYTES).for_each(|line| arena.prefetch(line));
            arena.prefetch((place + bytes).saturating_sub(1));
        }
    }

    /// How many bytes that is: the buffer's state at a moment, to look at it later as it is now.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// The number of its first record; 0 where it has none.
    pub fn first_sequence(&self) -> u64 {
        frame::first_sequence(self.bytes())
    }

    /// Whether nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes fit.
    pub fn capacity(&self) -> usize {
        self.arena.as_ref().map_or(0, |arena| arena.capacity())
    }

    /// Memory held by notes, runs and what else lookups ask, in bytes.
    pub fn index_bytes(&self) -> usize {
        let newest: usize = self.newest.read().values().map(Newest::memory_bytes).sum();
        newest + self.index.read().tables.values().map(Memtable::memory_bytes).sum::<usize>()
    }

    #[inline]
    pub(crate) fn record(&self, place: usize) -> Record<'_> {
        record_in(self.bytes(), place).0
    }

    /// Shows `each` what there was of a key at length `limit`, newest first, until it says that it has seen enough.
    /// Versions of a table that merges may have been merged before they are shown. A range that was deleted shows as a
    /// delete of the key. `usize::MAX` stands for the length by then.
    pub fn find(
        &self,
        rows: &TableRows<'_>,
        prefix: u64,
        key: &[u8],
        limit: usize,
        mut each: impl FnMut(&Record<'_>) -> bool,
    ) {
        if let Some(rule) = rows.states()
            && let Some(found) = self.with_states(rows, rule, limit, |latest, words, limit| {
                latest.find(words, self, (Pieces::WHOLE.of(prefix), key), limit)
            })
        {
            // The rule is asked when nothing is locked.
            return found.into_iter().for_each(|found| found.show(self, key, &mut each));
        }
        if rows.rule.is_none() {
            return self.find_newest(rows, &[(prefix, key)], limit, &mut |_, record| each(record));
        }
        self.find_in_runs(rows, (prefix, key), (limit, limit), &mut each);
    }

    /// The same of records before a place, as they were at length `limit`.
    fn find_in_runs(
        &self,
        rows: &TableRows<'_>,
        (prefix, key): (u64, &[u8]),
        (before, limit): (usize, usize),
        each: &mut impl FnMut(&Record<'_>) -> bool,
    ) {
        self.with_runs(rows, before, |runs, range_deletes| {
            let floor =
                range_deletes::floor(range_deletes, rows.table, limit, |range| range.contains(prefix, key));
            for run in runs.iter().rev().filter(|run| !run.ends_before(floor)) {
                let start = run.lower_bound(self, prefix, key);
                for place in run.places_from(start) {
                    let record = run.record(self, place);
                    if record.key != key {
                        break;
                    }
                    if floor <= place && is_seen(place, before) && !each(&record) {
                        return;
                    }
                }
            }
            if floor > 0 {
                each(&Record::delete(key));
            }
        });
    }

    /// What `look` finds among states by key, given what waits and the length; nothing inside where there is none of the
    /// table's, and nothing at all where they cannot be asked.
    fn with_states<T>(
        &self,
        rows: &TableRows<'_>,
        rule: &dyn Combine,
        limit: usize,
        look: impl Fn(&Latest, &[u64], usize) -> T,
    ) -> Option<Option<T>> {
        {
            let index = self.index.read();
            let Some(table) = index.tables.get(&rows.table) else {
                return (index.noted || self.is_empty()).then_some(None);
            };
            if table.is_of_other_order(rows) {
                return Some(None);
            }
            let limit = limit.min(self.len());
            match table.states_at(limit) {
                Some((latest, words)) => return Some(Some(look(latest, words, limit))),
                None if table.may_take_in() => {}
                None => return None,
            }
        }
        let mut index = self.index.write();
        let limit = limit.min(self.len());
        let (latest, words) = index.tables.get_mut(&rows.table)?.take_in(self, rule, limit)?;
        Some(Some(look(latest, words, limit)))
    }

    /// Cursors over a table's records inside `range` as they were at length `limit`, newest run first. They stand
    /// nowhere until they are sought. They leave out what a range delete](Self::range_deletes) hides that holds all of
    /// the range.
    pub fn cursors(self: &Arc<Self>, rows: &TableRows<'_>, range: &Range, limit: usize) -> Vec<BufferCursor> {
        let (runs, floor) = self.with_runs(rows, limit, |runs, range_deletes| {
            (
                runs.to_vec(),
                range_deletes::floor(range_deletes, rows.table, limit, |delete| {
                    range_deletes::covers(delete, range)
                }),
            )
        });
        let runs = runs.into_iter().rev().filter(|run| !run.ends_before(floor));
        runs.map(|run| BufferCursor::new(self, run, rows.order, range, floor..limit)).collect()
    }

    /// The ranges that were deleted, of any table, as they were at length `limit`, oldest first.
    pub fn range_deletes(&self, limit: usize) -> Vec<RangeDelete> {
        self.index.read().range_deletes.iter().filter(|delete| delete.place < limit).cloned().collect()
    }

    /// Says which there are, of a buffer that was read back from the log.
    pub fn set_range_deletes(&self, range_deletes: Vec<RangeDelete>) {
        self.index.write().range_deletes = range_deletes;
    }

    /// Adds to those, of frames that were read and are published by this: no lookup sees one without the other.
    pub(crate) fn grow(&self, range_deletes: Vec<RangeDelete>, publish: impl FnOnce()) {
        let mut index = self.index.write();
        index.range_deletes.extend(range_deletes);
        publish();
    }

    /// Runs `look` over runs that tell what the buffer held at length `limit`. What puts them in order, and the rule
    /// that merges, run while nothing is locked that writers want.
    fn with_runs<T>(
        &self,
        rows: &TableRows<'_>,
        limit: usize,
        look: impl FnOnce(&[Arc<Run>], &[RangeDelete]) -> T,
    ) -> T {
        {
            // Nothing is published while the index is locked.
            let index = self.index.read();
            let runs = match index.tables.get(&rows.table) {
                Some(table) if table.is_of_other_order(rows) => Some(&[][..]),
                Some(table) => table.runs_at(limit.min(self.len())),
                None if index.noted || self.is_empty() => Some(&[][..]),
                None => None,
            };
            match runs {
                Some(runs) if rows.rule.is_none() => return look(runs, &index.range_deletes),
                Some(runs) => {
                    let (runs, range_deletes) = (runs.to_vec(), index.range_deletes.clone());
                    drop(index);
                    return look(&runs, &range_deletes);
                }
                None => {}
            }
        }
        // Of those who find the same to be sorted one does it. No code of users runs under this.
        let _one_at_a_time = rows.rule.is_none().then(|| self.sorting.lock());
        let (mut aside, range_deletes, limit) = {
            let mut index = self.index.write();
            let Index { tables, range_deletes, .. } = &mut *index;
            let limit = limit.min(self.len());
            (
                tables.entry(rows.table).or_default().aside(rows, limit, self.len()),
                range_deletes.clone(),
                limit,
            )
        };
        aside.look_at(self, rows, &range_deletes, limit);
        let outcome = look(aside.runs_at(limit).unwrap_or_default(), &range_deletes);
        if let Some(table) = self.index.write().tables.get_mut(&rows.table) {
            table.take_over(aside);
        }
        outcome
    }

    /// Notes a batch whose payload begins at `base`, and publishes it: no lookup sees one without the other.
    pub(crate) fn note(&self, batch: &Notes, base: usize, publish: impl FnOnce()) {
        let mut index = self.index.write();
        index.noted = true;
        let range_deletes = batch.range_deletes().iter().cloned();
        index
            .range_deletes
            .extend(range_deletes.map(|delete| RangeDelete { place: delete.place + base, ..delete }));
        for notes in batch.tables() {
            let table = index.tables.entry(notes.table).or_default();
            table.note(notes, base, || self.pool.as_ref().map_or_else(Vec::new, |pool| pool.take_words()));
        }
        publish();
    }

    /// The sealed buffer's tables in order, once that has been found.
    pub fn sorted(&self) -> Option<Arc<[SortedTable]>> {
        self.sorted.read().clone()
    }

    /// Notes that all of the sealed buffer is sorted.
    pub fn set_sorted(&self, tables: Vec<SortedTable>) {
        *self.sorted.write() = Some(tables.into());
        // The runs tell it all.
        self.newest.write().clear();
    }

    /// Replaces what runs there are by one over all of a sealed buffer, unless there is something that has each key
    /// once.
    fn install(&self, table: u32, run: &Arc<Run>) {
        let mut index = self.index.write();
        let index = index.tables.entry(table).or_default();
        if !index.is_folded() && !index.has_states() {
            index.replace(Arc::clone(run), self.len());
        }
    }
}
