//! What is noted of records while they are appended, so that nobody has to walk the buffer for it later: of
//! each table, how much there is, and a packed word for every record of a table of uniform prefixes. For
//! other tables the words must wait: their pieces depend on the range of prefixes, known only at the end.

use forebay_base::record::Shape;
use forebay_base::sort::{Pieces, pack};
use forebay_base::{Order, Record};

use super::RangeDelete;
use super::run::FOLDED_PLACE;

/// How much there is of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Records, every version counted.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// The sizes they have in common.
    pub shape: Shape,
    /// No prefix is lower.
    pub low: u64,
    /// No prefix is higher.
    pub high: u64,
}

impl Default for Contents {
    fn default() -> Self {
        Self { records: 0, bytes: 0, shape: Shape::Unknown, low: u64::MAX, high: 0 }
    }
}

impl Contents {
    pub(super) fn add(&mut self, more: &Self) {
        self.records += more.records;
        self.bytes += more.bytes;
        self.shape = self.shape.join(more.shape);
        debug_assert!(more.records == 0 || more.low <= more.high);
        self.low = self.low.min(more.low);
        self.high = self.high.max(more.high);
    }

    /// How prefixes are cut to pieces: uniform ones out of all their space, others out of what there is.
    pub(super) fn pieces(&self, order: Order) -> Pieces {
        match order.is_uniform() {
            true => Pieces::WHOLE,
            false => Pieces::new(self.low.min(self.high), self.high),
        }
    }
}

/// Places are kept complemented, so that of equal prefixes the newest sorts first.
#[inline]
pub(super) fn word_of(piece: u32, place: usize) -> u64 {
    debug_assert!(place < FOLDED_PLACE, "buffers end before {place}");
    pack(piece, !(place as u32))
}

/// What is noted of one table's records.
#[derive(Clone, Debug)]
pub struct TableNotes {
    /// The table's id.
    pub table: u32,
    /// What its records were sorted by.
    pub order: Order,
    /// How much it is.
    pub contents: Contents,
    /// In order of arrival; empty unless prefixes are uniform.
    pub(super) words: Vec<u64>,
    /// The places of the first record and of the last.
    pub(super) ends: (usize, usize),
}

impl TableNotes {
    pub(super) fn new(table: u32, order: Order) -> Self {
        Self { table, order, contents: Contents::default(), words: Vec::new(), ends: (usize::MAX, 0) }
    }
}

/// What is noted of a batch's or a buffer's records, by table.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    tables: Vec<TableNotes>,
    range_deletes: Vec<RangeDelete>,
    /// Where the last record was noted.
    current: usize,
}

/// Batches remember this many tables, with their memory, from one use to the next.
const TABLES_KEPT: usize = 16;

impl Notes {
    /// The tables that have records.
    pub fn tables(&self) -> impl Iterator<Item = &TableNotes> {
        self.tables.iter().filter(|notes| notes.contents.records > 0)
    }

    /// The ranges that are deleted, oldest first.
    pub fn range_deletes(&self) -> &[RangeDelete] {
        &self.range_deletes
    }

    pub(crate) fn add_range_delete(&mut self, delete: RangeDelete) {
        self.range_deletes.push(delete);
    }

    /// The same, taken apart.
    pub fn into_tables(self) -> impl Iterator<Item = TableNotes> {
        self.tables.into_iter().filter(|notes| notes.contents.records > 0)
    }

    /// Notes the record of this prefix at a place.
    #[inline]
    pub(crate) fn add(&mut self, table: u32, order: Order, prefix: u64, place: usize, record: &Record<'_>) {
        if self.tables.get(self.current).is_none_or(|notes| notes.table != table || notes.order != order) {
            self.current = self.find(table, order);
        }
        let Some(TableNotes { contents, words, ends, .. }) = self.tables.get_mut(self.current) else {
            return;
        };
        let shape = Shape::of(record);
        contents.records += 1;
        contents.bytes += (record.key.len() + record.value.len()) as u64;
        if contents.shape != shape {
            contents.shape = contents.shape.join(shape);
        }
        contents.low = contents.low.min(prefix);
        contents.high = contents.high.max(prefix);
        *ends = (ends.0.min(place), place);
        if order.is_uniform() {
            words.push(word_of(Pieces::WHOLE.of(prefix), place));
        }
    }

    fn find(&mut self, table: u32, order: Order) -> usize {
        let is_same = |notes: &TableNotes| notes.table == table && notes.order == order;
        self.tables.iter().position(is_same).unwrap_or_else(|| {
            self.tables.push(TableNotes::new(table, order));
            self.tables.len() - 1
        })
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.tables.truncate(TABLES_KEPT);
        for notes in &mut self.tables {
            notes.contents = Contents::default();
            notes.words.clear();
            notes.ends = (usize::MAX, 0);
        }
        self.range_deletes.clear();
        self.current = 0;
    }
}
