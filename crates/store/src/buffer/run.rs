//! A run: packed words, each a piece of prefix and a record's place, in the order of the records.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use forebay_base::sort::{Deal, Pieces, piece_of, place_of, sort_words};
use forebay_base::{Order, Record, Result};
use forebay_env::{Attic, FiledWords, prefetch};
use smallvec::SmallVec;

use super::nearby;
use super::notes::{TableNotes, word_of};
use super::range_deletes::RangeDelete;
use super::{ArenaPool, WriteBuffer};

/// Records of one table in one stretch of a buffer, sorted by `(prefix, key)`, newest first among equals.
#[derive(Debug)]
pub struct Run {
    pub(super) words: Vec<u64>,
    /// Or where they have moved.
    filed: Option<FiledWords>,
    pieces: Pieces,
    pub(super) order: Order,
    pool: Option<Arc<ArenaPool>>,
    pub(super) folded: Option<Folded>,
}

/// What a run has in which each key comes once.
#[derive(Debug)]
pub(super) struct Folded {
    /// Merges of several records, one behind the other.
    pub(super) records: Vec<u8>,
    /// How much of the buffer they are of: all of the table's records from the run before up to here.
    pub(super) to: usize,
}

/// Places from here on are in [`Folded::records`]: buffers end before.
pub(super) const FOLDED_PLACE: usize = 1 << 31;

const _: () = assert!(FOLDED_PLACE <= u32::MAX as usize / 2 + 1, "folded places fit a word, too");

/// Whether a record at this place was there at length `limit`.
#[inline]
pub(super) fn is_seen(place: usize, limit: usize) -> bool {
    place < limit || place >= FOLDED_PLACE
}

#[inline]
pub(super) fn place_in(word: u64) -> usize {
    !place_of(word) as usize
}

impl Run {
    /// Room for a run over all of a table's records, whose words are still to be dealt.
    pub(super) fn unsorted(order: Order, notes: &TableNotes, pool: Option<Arc<ArenaPool>>) -> Self {
        let mut words = pool.as_ref().map_or_else(Vec::new, |pool| pool.take_words());
        let records = notes.contents.records as usize;
        pool.iter().for_each(|pool| pool.note_records(records as u64));
        words.reserve_exact(records.saturating_sub(words.len()));
        words.resize(records, 0);
        Self { words, filed: None, pieces: notes.contents.pieces(order), order, pool, folded: None }
    }

    /// A run of these words, which are pieces of all prefixes.
    pub(super) fn of(words: Vec<u64>, order: Order, folded: Option<Folded>) -> Self {
        Self { words, filed: None, pieces: Pieces::WHOLE, order, pool: None, folded }
    }

    /// Appends a word for each of the table's records in a stretch of the buffer that range deletes do not hide.
    /// Returns where it ends.
    pub(super) fn collect(
        &self,
        buffer: &WriteBuffer,
        (table, range_deletes): (u32, &[RangeDelete]),
        (from, to): (usize, usize),
        words: &mut Vec<u64>,
    ) -> usize {
        let (order, pieces) = (self.order, self.pieces);
        buffer.for_each_near(table, from, to, |owner, place, record| {
            if owner == table {
                let prefix = order.prefix(record.key);
                if !range_deletes.iter().any(|delete| delete.hides(table, place, prefix, record.key)) {
                    words.push(word_of(pieces.of(prefix), place));
                }
            }
        })
    }

    /// Leaves room for this many words.
    pub(super) fn shorten(&mut self, words: usize) {
        self.words.truncate(words);
    }

    /// Goes on dealing words into buckets that can be sorted one by one.
    pub(super) fn deal(&mut self, deal: &mut Deal, words: &[u64], count: usize) {
        deal.step(words, &mut self.words, count);
    }

    /// Sorts part of the words.
    pub(super) fn sort(&mut self, buffer: &WriteBuffer, part: Range<usize>) {
        debug_assert!(part.start <= part.end && part.end <= self.words.len());
        let order = self.order;
        sort_words(&mut self.words[part], &mut |left, right| {
            let (left_key, right_key) =
                (buffer.record(!left as usize).key, buffer.record(!right as usize).key);
            if left_key == right_key {
                return left.cmp(&right);
            }
            order.prefix(left_key).cmp(&order.prefix(right_key)).then_with(|| left_key.cmp(right_key))
        });
    }

    /// The run itself, leaving an empty one.
    pub(super) fn take(&mut self) -> Self {
        let pool = self.pool.take();
        let words = std::mem::take(&mut self.words);
        Self { words, filed: None, pieces: self.pieces, order: self.order, pool, folded: None }
    }

    /// The same run, whose words are in a file. `None` where that cannot be.
    pub(super) fn filed(&self, attic: &mut Attic) -> Result<Option<Self>> {
        if self.is_folded() || self.filed.is_some() {
            return Ok(None);
        }
        let filed = attic.take_words(&self.words)?;
        debug_assert!(
            filed.as_ref().is_none_or(|filed| filed.as_slice() == self.words),
            "words stay as they move"
        );
        let (pieces, order) = (self.pieces, self.order);
        Ok(filed.map(|filed| Self {
            words: Vec::new(),
            filed: Some(filed),
            pieces,
            order,
            pool: None,
            folded: None,
        }))
    }

    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        self.filed.as_ref().map_or(&self.words, FiledWords::as_slice)
    }

    pub(super) fn words_mut(&mut self) -> &mut Vec<u64> {
        &mut self.words
    }

    /// Whether each key comes once.
    pub(super) fn is_folded(&self) -> bool {
        self.folded.is_some()
    }

    /// Whether all that it folds was there before this place.
    #[inline]
    pub(super) fn ends_before(&self, place: usize) -> bool {
        self.folded.as_ref().is_some_and(|folded| folded.to <= place)
    }

    /// Whether the run tells what the buffer held at this length.
    pub(super) fn tells(&self, limit: usize) -> bool {
        self.folded.as_ref().is_none_or(|folded| folded.to <= limit)
    }

    /// What the records at some places lie in, and where in it.
    #[inline]
    pub(super) fn locate<'a>(&'a self, buffer: &'a WriteBuffer, place: usize) -> (&'a [u8], usize) {
        match &self.folded {
            Some(folded) if place >= FOLDED_PLACE => (&folded.records, place - FOLDED_PLACE),
            _ => (buffer.bytes(), place),
        }
    }

    /// The record at a place.
    #[inline]
    pub(super) fn record<'a>(&'a self, buffer: &'a WriteBuffer, place: usize) -> Record<'a> {
        let (bytes, at) = self.locate(buffer, place);
        record_in(bytes, at).0
    }

    /// Where a word of this run stands to one of another run of the same pieces.
    #[inline]
    pub(super) fn compare(&self, buffer: &WriteBuffer, word: u64, other: (&Self, u64)) -> Ordering {
        piece_of(word).cmp(&piece_of(other.1)).then_with(|| {
            let key = self.record(buffer, place_in(word)).key;
            let other_key = other.0.record(buffer, place_in(other.1)).key;
            let prefixes = || self.order.prefix(key).cmp(&self.order.prefix(other_key));
            if key == other_key { Ordering::Equal } else { prefixes().then_with(|| key.cmp(other_key)) }
        })
    }

    /// How many records, every version counted.
    pub fn len(&self) -> usize {
        self.words().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words().is_empty()
    }

    /// The place of the record at `index`.
    #[inline]
    pub(super) fn place(&self, index: usize) -> usize {
        place_in(self.words()[index])
    }

    /// Loads the first byte of some records, none waiting for another.
    pub(super) fn touch(&self, buffer: &WriteBuffer, indexes: Range<usize>) {
        if self.is_folded() {
            return;
        }
        let bytes = buffer.bytes();
        let places = self.words()[indexes].iter().map(|&word| place_in(word));
        std::hint::black_box(places.fold(0, |sum: u8, place| sum ^ bytes[place]));
    }

    pub(super) fn places_from(&self, start: usize) -> impl Iterator<Item = usize> + '_ {
        self.words()[start..].iter().map(|&word| place_in(word))
    }

    /// Loads what lookups of these prefixes will read, none waiting for another.
    pub(super) fn warm(&self, buffer: &WriteBuffer, prefixes: impl Iterator<Item = u64>) {
        if !self.order.is_uniform() || self.is_folded() {
            return;
        }
        let words = self.words();
        let mut near: SmallVec<[(u32, usize); nearby::AHEAD]> = prefixes
            .map(|prefix| self.pieces.of(prefix))
            .map(|piece| (piece, nearby::begin(words, piece)))
            .collect();
        for _ in 0..nearby::STEPS {
            near.iter().filter_map(|(_, at)| words.get(*at)).for_each(prefetch);
            near.iter_mut().for_each(|(piece, at)| *at = nearby::step(words, *piece, *at));
        }
        near.iter().filter_map(|(_, at)| words.get(*at)).for_each(prefetch);
        for (piece, at) in near {
            let at = nearby::first(words, at, |word| piece_of(word) < piece);
            words.get(at).into_iter().for_each(|&word| buffer.prefetch(place_in(word), 1));
        }
    }

    /// The index of the first record that does not come before `(prefix, key)`.
    pub(super) fn lower_bound(&self, buffer: &WriteBuffer, prefix: u64, key: &[u8]) -> usize {
        let (words, piece) = (self.words(), self.pieces.of(prefix));
        let comes_before = |word: u64| match piece_of(word).cmp(&piece) {
            Ordering::Equal => {
                let found = self.record(buffer, place_in(word)).key;
                (self.order.prefix(found), found) < (prefix, key)
            }
            unequal => unequal.is_lt(),
        };
        match self.order.is_uniform() {
            true => nearby::first(words, nearby::guess(words, piece), comes_before),
            false => words.partition_point(|&word| comes_before(word)),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.put_back_words(std::mem::take(&mut self.words));
        }
    }
}

/// The record at a place of some bytes, and how many it takes.
#[inline]
pub(super) fn record_in(bytes: &[u8], at: usize) -> (Record<'_>, usize) {
    // Only places of records are ever handed out.
    let found = Record::decode(&bytes[at..]);
    debug_assert!(found.is_some(), "no record at {at}");
    found.unwrap_or((Record::delete(&[]), 0))
}
