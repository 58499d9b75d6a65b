//! Order over a write buffer: runs of packed words, each word a piece of prefix and a record's place.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use forebay_base::Order;
use forebay_base::sort::{Deal, Pieces, piece_of, place_of, sort_words};

use super::notes::{Contents, TableNotes, word_of};
use super::{ArenaPool, WriteBuffer};

/// Records of one table in one stretch of a buffer, sorted by `(prefix, key)`, newest first among equals.
#[derive(Debug)]
pub struct Run {
    words: Vec<u64>,
    pieces: Pieces,
    order: Order,
    pool: Option<Arc<ArenaPool>>,
}

/// What a buffer knows of one table's records: how much there is; words in order of arrival; and, where
/// somebody looked, sorted runs of older words, the oldest stretch first.
#[derive(Debug, Default)]
pub(super) struct TableIndex {
    contents: Contents,
    /// Words that are in no run. `None` where there are none to be had, because they were not noted or the
    /// sorter has them: then the buffer is walked.
    tail: Option<Vec<u64>>,
    runs: Vec<Arc<Run>>,
    /// How much of the buffer the runs cover.
    covers: usize,
}

/// Notes grow by one part in so many of what is there.
const GROWTH: usize = 16;

#[inline]
fn place_in(word: u64) -> usize {
    !place_of(word) as usize
}

impl Run {
    /// Room for a run over all of a table's records, whose words are still to be dealt.
    pub(super) fn unsorted(order: Order, notes: &TableNotes, pool: Option<Arc<ArenaPool>>) -> Self {
        let mut words = pool.as_ref().map_or_else(Vec::new, |pool| pool.take_words());
        let records = notes.contents.records as usize;
        words.reserve_exact(records.saturating_sub(words.len()));
        words.resize(records, 0);
        Self { words, pieces: notes.contents.pieces(order), order, pool }
    }

    /// Appends a word for each of the table's records in a stretch of the buffer. Returns where it ends.
    pub(super) fn collect(
        &self,
        buffer: &WriteBuffer,
        table: u32,
        from: usize,
        to: usize,
        words: &mut Vec<u64>,
    ) -> usize {
        let (order, pieces) = (self.order, self.pieces);
        buffer.for_each(from, to, |owner, place, record| {
            if owner == table {
                words.push(word_of(pieces.of(order.prefix(record.key)), place));
            }
        })
    }

    /// Goes on dealing words into buckets that can be sorted one by one.
    pub(super) fn deal(&mut self, deal: &mut Deal, words: &[u64], count: usize) {
        deal.step(words, &mut self.words, count);
    }

    /// Sorts part of the words.
    pub(super) fn sort(&mut self, buffer: &WriteBuffer, part: Range<usize>) {
        let order = self.order;
        sort_words(&mut self.words[part], &mut |left, right| {
            let (left_key, right_key) =
                (buffer.record(!left as usize).key, buffer.record(!right as usize).key);
            order
                .prefix(left_key)
                .cmp(&order.prefix(right_key))
                .then_with(|| left_key.cmp(right_key))
                .then(left.cmp(&right))
        });
    }

    /// The run itself, leaving an empty one.
    pub(super) fn take(&mut self) -> Self {
        let pool = self.pool.take();
        Self { words: std::mem::take(&mut self.words), pieces: self.pieces, order: self.order, pool }
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

    /// Loads the first byte of some records, none waiting for another.
    pub(super) fn touch(&self, buffer: &WriteBuffer, indexes: Range<usize>) {
        let bytes = buffer.bytes();
        let places = self.words[indexes].iter().map(|&word| place_in(word));
        std::hint::black_box(places.fold(0, |sum: u8, place| sum ^ bytes[place]));
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

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.put_back_words(std::mem::take(&mut self.words));
        }
    }
}

impl TableIndex {
    pub(super) fn whole(run: Arc<Run>, covers: usize) -> Self {
        Self { runs: vec![run], covers, ..Self::default() }
    }

    /// Takes over what a batch noted, whose first place is `base` here. `fresh` gives memory for words, with
    /// old ones in it.
    pub(super) fn note(&mut self, batch: &TableNotes, base: usize, fresh: impl FnOnce() -> Vec<u64>) {
        self.contents.add(&batch.contents);
        if batch.words.is_empty() {
            return;
        }
        let tail = self.tail.get_or_insert_with(|| {
            let mut words = fresh();
            words.clear();
            words
        });
        if tail.capacity() - tail.len() < batch.words.len() {
            tail.reserve_exact(batch.words.len().max(tail.len() / GROWTH));
        }
        // Places are complemented, and all places fit 32 bits: nothing is borrowed from the pieces.
        tail.extend(batch.words.iter().map(|word| word - base as u64));
    }

    /// What the sorter needs, which from now on has the words that are in no run.
    pub(super) fn take_notes(&mut self, table: u32) -> TableNotes {
        let mut words = Vec::new();
        if let Some(tail) = self.tail.take() {
            words = tail;
            words.reserve_exact(self.runs.iter().map(|run| run.len()).sum());
            self.runs.iter().for_each(|run| words.extend_from_slice(&run.words));
        }
        TableNotes { table, contents: self.contents, words }
    }

    pub(super) fn covers(&self) -> usize {
        self.covers
    }

    pub(super) fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let runs = self.runs.iter().map(|run| run.words.capacity());
        8 * (runs.sum::<usize>() + self.tail.as_ref().map_or(0, Vec::capacity))
    }

    /// Takes in what was appended since, as a new run, and merges runs until each is at least twice as long
    /// as the next: so there are few, and a record is moved a logarithmic number of times.
    pub(super) fn extend(&mut self, buffer: &WriteBuffer, table: u32, order: Order, to: usize) {
        if to <= self.covers {
            return;
        }
        let mut newest = Run { words: Vec::new(), pieces: Pieces::WHOLE, order, pool: None };
        match &mut self.tail {
            Some(tail) => newest.words = std::mem::take(tail),
            None => {
                let mut words = Vec::new();
                newest.collect(buffer, table, self.covers, to, &mut words);
                newest.words = words;
            }
        }
        self.covers = to;
        if newest.is_empty() {
            return;
        }
        newest.words.shrink_to_fit();
        newest.sort(buffer, 0..newest.len());
        while let Some(older) = self.runs.pop_if(|older| older.len() < 2 * newest.len()) {
            newest.words.reserve_exact(older.words.len());
            newest.words.extend_from_slice(&older.words);
            newest.sort(buffer, 0..newest.len());
        }
        self.runs.push(Arc::new(newest));
    }
}
