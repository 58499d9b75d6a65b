//! Folding runs: where records of one key merge, a run has each key once, so that a lookup folds a few records however
//! often its key was written. What several records merged to lies in memory of the run's own; a record that is alone
//! stays where it is.
//!
//! **Invariant:** a folded run tells one length of the buffer, and no earlier one.

use std::cmp::Ordering;

use forebay_base::combine::{Depth, Fold};
use forebay_base::limits::VALUE_BYTES_MAX;
use forebay_base::sort::{pack, piece_of, sort_words};
use forebay_base::{Combine, Kind, Record};
use forebay_env::guest;
use smallvec::SmallVec;

use super::run::{FOLDED_PLACE, Folded, Run, place_in, record_in};
use super::{TableRows, WriteBuffer};

/// The most bytes of merged records that a run's own are made of, and the most that two runs bring which are merged:
/// what does not merge is copied, so that the sum of both must have places.
const FOLDED_BYTES_MAX: usize = FOLDED_PLACE / 2;

/// A folded run in the making.
pub(super) struct Folding<'a> {
    buffer: &'a WriteBuffer,
    rule: &'a dyn Combine,
    words: Vec<u64>,
    records: Vec<u8>,
    /// All there is of one key, newest first.
    group: Vec<(&'a Run, u64)>,
    fold: Fold,
    value: Vec<u8>,
}

impl Run {
    /// The same with each key once, of a table that merges; the words need not be sorted.
    pub(super) fn folded(mut self, buffer: &WriteBuffer, rows: &TableRows<'_>, to: usize) -> Self {
        let Some(rule) = rows.rule else { return self };
        let mut words = std::mem::take(self.words_mut());
        // Where pieces tie, it is mostly one key, and its newest record is first already.
        sort_words(&mut words, &mut |_, _| Ordering::Equal);
        let mut folding = Folding::new(buffer, rule, words.len());
        for tied in words.chunk_by_mut(|&word, &next| piece_of(word) == piece_of(next)) {
            let key_of = |word: u64| self.record(buffer, place_in(word)).key;
            let first = key_of(tied[0]);
            if tied[1..].iter().all(|&word| key_of(word) == first) {
                folding.group.extend(tied.iter().map(|&word| (&self, word)));
                folding.close();
            } else {
                tied.sort_by(|&word, &other| self.compare(buffer, word, (&self, other)));
                tied.iter().for_each(|&word| folding.add(&self, word));
                folding.close();
            }
        }
        folding.finish(rows, to)
    }
}

impl<'a> Folding<'a> {
    fn new(buffer: &'a WriteBuffer, rule: &'a dyn Combine, words: usize) -> Self {
        let (words, records) = (Vec::with_capacity(words), Vec::new());
        Self { buffer, rule, words, records, group: Vec::new(), fold: Fold::default(), value: Vec::new() }
    }

    /// Whether the places of a run are enough for all that two have.
    pub(super) fn can_merge(older: &Run, newer: &Run) -> bool {
        let bytes = |run: &Run| run.folded.as_ref().map_or(0, |folded| folded.records.len());
        bytes(older) + bytes(newer) < FOLDED_BYTES_MAX
    }

    /// Merges two folded runs, the older one given first.
    pub(super) fn merge(
        buffer: &'a WriteBuffer,
        rows: &TableRows<'a>,
        (older, newer): (&'a Run, &'a Run),
        to: usize,
    ) -> Run {
        let Some(rule) = rows.rule else { return Run::of(Vec::new(), rows.order, None) };
        let mut folding = Self::new(buffer, rule, older.len() + newer.len());
        let (mut older_words, mut newer_words) = (older.words().iter(), newer.words().iter());
        let (mut from_older, mut from_newer) = (older_words.next(), newer_words.next());
        loop {
            let takes_newer = match (from_older, from_newer) {
                (None, None) => break,
                (None, _) => true,
                (_, None) => false,
                (Some(&word), Some(&other)) => {
                    newer.compare(buffer, other, (older, word)) != Ordering::Greater
                }
            };
            let (run, at, words) = match takes_newer {
                true => (newer, &mut from_newer, &mut newer_words),
                false => (older, &mut from_older, &mut older_words),
            };
            if let Some(&word) = std::mem::replace(at, words.next()) {
                folding.add(run, word);
            }
        }
        folding.finish(rows, to)
    }

    /// Adds the next record: by key, then newest first.
    fn add(&mut self, run: &'a Run, word: u64) {
        if let Some(&(other, first)) = self.group.first()
            && other.compare(self.buffer, first, (run, word)) != Ordering::Equal
        {
            self.close();
        }
        self.group.push((run, word));
    }

    /// Takes what there is of one key into the run.
    fn close(&mut self) {
        let group = std::mem::take(&mut self.group);
        if group.len() < 2 || !self.merged(&group) {
            group.iter().for_each(|&(run, word)| self.copy(run, word));
        }
        self.group = group;
        self.group.clear();
    }

    fn copy(&mut self, run: &Run, word: u64) {
        let place = place_in(word);
        if place < FOLDED_PLACE {
            return self.words.push(word);
        }
        let (bytes, at) = run.locate(self.buffer, place);
        let length = record_in(bytes, at).1;
        self.words.push(self.own_word(word));
        self.records.extend_from_slice(&bytes[at..at + length]);
    }

    /// The word of the next of the run's own records, whose piece is that of another word.
    fn own_word(&self, like: u64) -> u64 {
        debug_assert!(self.records.len() < FOLDED_PLACE, "what is folded has places of 31 bits");
        pack(piece_of(like), !((FOLDED_PLACE + self.records.len()) as u32))
    }

    /// Merges all there is of one key; says whether that has room.
    fn merged(&mut self, group: &[(&'a Run, u64)]) -> bool {
        let Some(&(run, first)) = group.first() else { return false };
        let record = |&(run, word): &(&'a Run, u64)| run.record(self.buffer, place_in(word));
        let key = run.record(self.buffer, place_in(first)).key;
        let attempt = guest::attempt();
        let is_put = |entry: &(&'a Run, u64)| record(entry).kind == Kind::Put;
        let are_puts = || !self.rule.deletes_states() || group.iter().all(is_put);
        let record = if self.rule.merges_puts() && are_puts() {
            let states: SmallVec<[&[u8]; 16]> = group.iter().map(|entry| record(entry).value).collect();
            self.value.clear();
            self.rule.merge_states(key, &states, &mut self.value);
            Record::put(key, &self.value)
        } else {
            self.fold.clear();
            let mut records = group.iter().map(record);
            while records.next().is_some_and(|record| self.fold.add(self.rule, &record)) {}
            let Some(record) = self.fold.finish(key, Depth::Partial) else { return false };
            record
        };
        let end = self.records.len() + record.encoded_bytes();
        // Where the rule panics for a key, its records stay as they are: who looks that key up is told.
        let fits = attempt.succeeds() && record.value.len() <= VALUE_BYTES_MAX && end < FOLDED_BYTES_MAX;
        if fits {
            self.words.push(self.own_word(first));
            record.encode(&mut self.records);
        }
        fits
    }

    fn finish(mut self, rows: &TableRows<'_>, to: usize) -> Run {
        self.close();
        debug_assert!(self.words.is_sorted_by_key(|&word| piece_of(word)) && self.group.is_empty());
        self.words.shrink_to_fit();
        self.records.shrink_to_fit();
        Run::of(self.words, rows.order, Some(Folded { records: self.records, to }))
    }
}
