//! Order over a write buffer: runs of packed words, each word a piece of prefix and a record's place.

use std::cmp::Ordering;
use std::sync::Arc;

use forebay_base::Order;
use forebay_base::sort::{Pieces, pack, piece_of, place_of, sort_words};

use super::{Contents, WriteBuffer};

/// Records of one table in one stretch of a buffer, sorted by `(prefix, key)`, newest first among equals.
#[derive(Debug)]
pub struct Run {
    words: Vec<u64>,
    pieces: Pieces,
    order: Order,
}

/// A table's runs, oldest stretch first, and how far they reach.
#[derive(Debug, Default)]
pub(super) struct TableIndex {
    covers: usize,
    runs: Vec<Arc<Run>>,
}

/// Places are kept complemented, so that of equal prefixes the newest sorts first.
#[inline]
fn word_of(piece: u32, place: usize) -> u64 {
    pack(piece, !(place as u32))
}

#[inline]
fn place_in(word: u64) -> usize {
    !place_of(word) as usize
}

impl Run {
    /// All records of a sealed buffer.
    pub(super) fn of(buffer: &WriteBuffer, table: u32, order: Order, contents: &Contents) -> Self {
        let pieces = Pieces::new(contents.low, contents.high);
        Self::collect(buffer, table, order, pieces, 0..buffer.len(), contents.records as usize)
    }

    fn collect(
        buffer: &WriteBuffer,
        table: u32,
        order: Order,
        pieces: Pieces,
        stretch: std::ops::Range<usize>,
        expected: usize,
    ) -> Self {
        let mut words = Vec::with_capacity(expected);
        buffer.for_each(stretch.start, stretch.end, |owner, place, record| {
            if owner == table {
                words.push(word_of(pieces.of(order.prefix(record.key)), place));
            }
        });
        let mut run = Self { words, pieces, order };
        run.sort(buffer);
        run
    }

    fn sort(&mut self, buffer: &WriteBuffer) {
        let order = self.order;
        sort_words(&mut self.words, &mut |left, right| {
            let (left_key, right_key) = (buffer.record(!left as usize).key, buffer.record(!right as usize).key);
            order
                .prefix(left_key)
                .cmp(&order.prefix(right_key))
                .then_with(|| left_key.cmp(right_key))
                .then(left.cmp(&right))
        });
    }

    /// How many records, every version counted.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The place of the record at `index`.
    #[inline]
    pub(super) fn place(&self, index: usize) -> usize {
        place_in(self.words[index])
    }

    pub(super) fn places_from(&self, start: usize) -> impl Iterator<Item = usize> + '_ {
        self.words[start..].iter().map(|&word| place_in(word))
    }

    /// The index of the first record that does not come before `(prefix, key)`.
    pub(super) fn lower_bound(&self, buffer: &WriteBuffer, prefix: u64, key: &[u8]) -> usize {
        let piece = self.pieces.of(prefix);
        self.words.partition_point(|&word| match piece_of(word).cmp(&piece) {
            Ordering::Equal => {
                let found = buffer.record(place_in(word)).key;
                (self.order.prefix(found), found) < (prefix, key)
            }
            unequal => unequal.is_lt(),
        })
    }
}

impl TableIndex {
    pub(super) fn whole(run: Arc<Run>, covers: usize) -> Self {
        Self { covers, runs: vec![run] }
    }

    pub(super) fn covers(&self) -> usize {
        self.covers
    }

    pub(super) fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.runs.iter().map(|run| 8 * run.words.capacity()).sum()
    }

    /// Takes in what was appended since, as a new run, and merges runs until each is at least twice as long
    /// as the next: so there are few, and a record is moved a logarithmic number of times.
    pub(super) fn extend(&mut self, buffer: &WriteBuffer, table: u32, order: Order, to: usize) {
        if to <= self.covers {
            return;
        }
        let pieces = Pieces::new(0, u64::MAX);
        let run = Run::collect(buffer, table, order, pieces, self.covers..to, 0);
        self.covers = to;
        if run.is_empty() {
            return;
        }
        let mut newest = run;
        while let Some(older) = self.runs.pop_if(|older| older.len() < 2 * newest.len()) {
            newest.words.extend_from_slice(&older.words);
            newest.sort(buffer);
        }
        self.runs.push(Arc::new(newest));
    }
}
