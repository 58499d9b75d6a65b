//! Order over a write buffer: of each table, sorted [runs](super::run), extended when somebody looks. Where records
//! of one key merge, runs have each key once: see [`folding`](super::folding).

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::{Combine, Order, Result};
use forebay_env::Attic;

use super::folding::Folding;
use super::notes::{Contents, TableNotes};
use super::range_deletes::RangeDelete;
use super::run::{FOLDED_PLACE, Run, place_in};
use super::states::Latest;
use super::stretches::Stretches;
use super::{TableRows, WriteBuffer};
use crate::log::frame::HEADER_BYTES;

/// What a buffer knows of one table's records: how much there is; words in order of arrival; and, where
/// somebody looked, sorted runs of older words, the oldest stretch first.
#[derive(Debug, Default)]
pub(super) struct Memtable {
    /// What the records were sorted by as they were noted, or looked at for the first time.
    order: Option<Order>,
    contents: Contents,
    /// Where the records lie, of batches that were noted.
    pub(super) stretches: Stretches,
    /// Words that are in no run. `None` where there are none to be had, because they were not noted or the
    /// sorter has them: then the buffer is walked.
    pub(super) tail: Option<Vec<u64>>,
    runs: Vec<Arc<Run>>,
    /// How much of the buffer the runs cover.
    covers: usize,
    /// Runs as they would be if the buffer ended earlier, where somebody looked at it so and runs are folded beyond.
    past: VecDeque<(usize, Vec<Arc<Run>>)>,
    /// What single lookups of a table of states ask instead of runs.
    latest: Latest,
    /// How often runs were changed, or words taken away.
    turn: u64,
}

/// Runs in the making, up to a length.
pub(super) struct Aside {
    made: Memtable,
    to: usize,
}

impl Aside {
    /// Sees to it that there are runs that tell what the buffer held at this length.
    pub(super) fn look_at(
        &mut self,
        buffer: &WriteBuffer,
        rows: &TableRows<'_>,
        range_deletes: &[RangeDelete],
        limit: usize,
    ) {
        self.made.look_at(buffer, rows, range_deletes, (limit, self.to));
    }

    pub(super) fn runs_at(&self, limit: usize) -> Option<&[Arc<Run>]> {
        self.made.runs_at(limit)
    }
}

/// This many moments of the past are remembered.
const PAST_MAX: usize = 2;

/// Notes grow by one part in this many of what is there.
const GROWTH: usize = 16;

const _: () = assert!(GROWTH > 1 && PAST_MAX > 0);

impl Memtable {
    /// Goes on with one run over all of it.
    pub(super) fn replace(&mut self, run: Arc<Run>, covers: usize) {
        let (turn, stretches) = (self.turn + 1, std::mem::take(&mut self.stretches));
        *self = Self { order: Some(run.order), runs: vec![run], covers, turn, stretches, ..Self::default() };
    }

    /// A copy in which runs can be made that tell this length, while others go on with this one. Where nothing merges
    /// it has the words that wait, or they would be there twice.
    pub(super) fn aside(&mut self, rows: &TableRows<'_>, limit: usize, length: usize) -> Aside {
        self.order = Some(rows.order);
        let (to, tail) = match (rows.rule, &mut self.tail) {
            (None, tail) => (length, tail.take()),
            // What is taken into states may have left the tail.
            (Some(_), Some(tail)) if !self.latest.is_begun() => {
                (limit, Some(tail[..tail.partition_point(|&word| place_in(word) < limit)].to_vec()))
            }
            (Some(_), _) => (limit, None),
        };
        let (runs, covers, order, turn) = (self.runs.clone(), self.covers, self.order, self.turn);
        Aside { made: Self { order, tail, runs, covers, turn, ..Self::default() }, to }
    }

    /// Goes on with what was made, unless something else was done meanwhile.
    pub(super) fn take_over(&mut self, Aside { made, .. }: Aside) {
        if self.turn != made.turn {
            return;
        }
        self.turn += 1;
        if made.covers > self.covers {
            (self.runs, self.covers) = (made.runs, made.covers);
            if let Some(tail) = &mut self.tail
                && !self.latest.is_begun()
            {
                // Where nothing merges these are all newer: none goes.
                tail.drain(..tail.partition_point(|&word| place_in(word) < made.covers));
            }
        }
        self.past.extend(made.past);
        self.past.drain(..self.past.len().saturating_sub(PAST_MAX));
        debug_assert!(self.past.len() <= PAST_MAX);
    }

    /// Whether the table had another order when what is here was written. Whoever asks looks at a moment before that,
    /// and nothing was here then.
    pub(super) fn is_of_other_order(&self, rows: &TableRows<'_>) -> bool {
        self.order.is_some_and(|order| order != rows.order)
    }

    /// Takes over what a batch noted, whose first place is `base` here. `fresh` gives memory for words, with
    /// old ones in it.
    pub(super) fn note(&mut self, batch: &TableNotes, base: usize, fresh: impl FnOnce() -> Vec<u64>) {
        self.order = Some(batch.order);
        self.contents.add(&batch.contents);
        self.stretches.note(base - HEADER_BYTES, base + batch.ends.0, base + batch.ends.1);
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
        debug_assert!(batch.words.iter().all(|&word| place_in(word) + base < FOLDED_PLACE));
        tail.extend(batch.words.iter().map(|word| word - base as u64));
    }

    /// What the sorter needs, which from now on has the words that are in no run.
    pub(super) fn take_notes(&mut self, table: u32) -> TableNotes {
        self.turn += 1;
        let mut notes = TableNotes::new(table, self.order.unwrap_or(Order::Lexical));
        notes.contents = self.contents;
        if self.has_states() {
            // Lookups still take in what is left of the tail: the buffer is walked.
            notes.words = Vec::with_capacity(self.contents.records as usize);
            return notes;
        }
        if let Some(tail) = self.tail.take() {
            let words = &mut notes.words;
            *words = tail;
            if self.is_folded() {
                // Folded runs do not have every record: the buffer is walked again.
                words.clear();
                return notes;
            }
            words.reserve_exact(self.runs.iter().map(|run| run.len()).sum());
            self.runs.iter().for_each(|run| words.extend_from_slice(run.words()));
        }
        notes
    }

    /// Whether runs have each key once.
    pub(super) fn is_folded(&self) -> bool {
        self.runs.iter().any(|run| run.is_folded())
    }

    /// The runs that tell what the buffer held at this length, if they are there.
    pub(super) fn runs_at(&self, limit: usize) -> Option<&[Arc<Run>]> {
        if self.covers < limit {
            return None;
        }
        if self.runs.last().is_none_or(|newest| newest.tells(limit)) {
            return Some(&self.runs);
        }
        self.past.iter().find(|(to, _)| *to == limit).map(|(_, runs)| &runs[..])
    }

    /// All runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|run| &**run)
    }

    /// Moves the words of runs to a file.
    pub(super) fn move_to(&mut self, attic: &mut Attic) -> Result<()> {
        for run in &mut self.runs {
            if let Some(filed) = run.filed(attic)? {
                *run = Arc::new(filed);
            }
        }
        Ok(())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let past = self.past.iter().flat_map(|(_, runs)| runs.last());
        let runs = self.runs.iter().chain(past).map(|run| {
            8 * run.words.capacity() + run.folded.as_ref().map_or(0, |folded| folded.records.capacity())
        });
        runs.sum::<usize>()
            + self.stretches.memory_bytes()
            + self.latest.memory_bytes()
            + 8 * self.tail.as_ref().map_or(0, Vec::capacity)
    }

    /// Whether lookups have asked for states.
    pub(super) fn has_states(&self) -> bool {
        self.latest.is_begun()
    }

    /// Whether the words that are not in states are at hand.
    pub(super) fn may_take_in(&self) -> bool {
        self.tail.is_some() && (self.has_states() || self.runs.is_empty() && self.covers == 0)
    }

    /// What tells of states at this length, and words beyond it, if nothing need be taken in.
    pub(super) fn states_at(&self, limit: usize) -> Option<(&Latest, &[u64])> {
        let words = self.tail.as_deref().unwrap_or_default();
        self.latest.tells(words, limit).then_some((&self.latest, words))
    }

    /// The same once some of what was appended before this place is taken in, if states can be asked at all.
    pub(super) fn take_in(
        &mut self,
        buffer: &WriteBuffer,
        rule: &dyn Combine,
        limit: usize,
    ) -> Option<(&Latest, &[u64])> {
        let may = self.may_take_in();
        let words = self.tail.as_mut().filter(|_| may)?;
        let takes = self.latest.take_in(words, buffer, rule, limit);
        takes.then_some((&self.latest, &words[..]))
    }

    /// Sees to it that there are runs that tell what the buffer held at length `limit`; those that are not folded tell
    /// earlier lengths too, and go up to `to`.
    fn look_at(
        &mut self,
        buffer: &WriteBuffer,
        rows: &TableRows<'_>,
        range_deletes: &[RangeDelete],
        (limit, to): (usize, usize),
    ) {
        // What is folded is never of both sides of a range delete.
        let range_deletes =
            range_deletes.iter().filter(|delete| rows.rule.is_some() && delete.table == rows.table);
        let range_deletes: Vec<usize> = range_deletes.map(|delete| delete.place).collect();
        self.extend(buffer, rows, &range_deletes, to);
        if self.runs_at(limit).is_some() {
            return;
        }
        let mut runs: Vec<Arc<Run>> = self.runs.iter().filter(|run| run.tells(limit)).cloned().collect();
        let from = runs.last().and_then(|run| run.folded.as_ref()).map_or(0, |folded| folded.to);
        let mut words = Vec::new();
        // A range delete may stand in the middle of a batch, where no walk begins.
        let begin = if range_deletes.is_empty() { from } else { 0 };
        Run::of(Vec::new(), rows.order, None).collect(buffer, (rows.table, &[]), (begin, limit), &mut words);
        words.retain(|&word| place_in(word) >= from);
        for (words, to) in pieces_of(words, &range_deletes, limit) {
            let rest = Run::of(words, rows.order, None);
            runs.push(Arc::new(rest.folded(buffer, rows, to)));
        }
        if self.past.len() == PAST_MAX {
            self.past.pop_front();
        }
        self.past.push_back((limit, runs));
    }

    /// The words of what lies between what is covered and `to`.
    fn take_tail(&mut self, buffer: &WriteBuffer, rows: &TableRows<'_>, to: usize) -> Run {
        let mut newest = Run::of(Vec::new(), rows.order, None);
        match self.tail.take() {
            Some(tail) => newest.words = tail,
            None => {
                let mut words = Vec::new();
                newest.collect(buffer, (rows.table, &[]), (self.covers, to), &mut words);
                newest.words = words;
            }
        }
        newest
    }

    /// Takes in what was appended since, as a new run, and merges runs until each is at least twice as long
    /// as the next: so there are few, and a record is moved a logarithmic number of times.
    fn extend(&mut self, buffer: &WriteBuffer, rows: &TableRows<'_>, range_deletes: &[usize], to: usize) {
        if to <= self.covers {
            return;
        }
        let mut newest = self.take_tail(buffer, rows, to);
        self.covers = to;
        if newest.is_empty() {
            return;
        }
        if rows.rule.is_some() {
            for (words, to) in pieces_of(std::mem::take(&mut newest.words), range_deletes, to) {
                let mut newest = Run::of(words, rows.order, None).folded(buffer, rows, to);
                let is_deleted_between = |older: &Run| {
                    range_deletes.iter().any(|&delete| older.ends_before(delete) && delete < to)
                };
                let joins = |older: &Run, newest: &Run| {
                    older.len() < 2 * newest.len()
                        && !is_deleted_between(older)
                        && Folding::can_merge(older, newest)
                };
                while let Some(older) = self.runs.pop_if(|older| joins(older, &newest)) {
                    newest = Folding::merge(buffer, rows, (&*older, &newest), to);
                }
                self.runs.push(Arc::new(newest));
            }
            return;
        }
        newest.words.shrink_to_fit();
        newest.sort(buffer, 0..newest.len());
        while let Some(older) = self.runs.pop_if(|older| older.len() < 2 * newest.len()) {
            newest.words.reserve_exact(older.len());
            newest.words.extend_from_slice(older.words());
            newest.sort(buffer, 0..newest.len());
        }
        self.runs.push(Arc::new(newest));
        debug_assert!(self.runs.windows(2).all(|pair| pair[0].len() >= 2 * pair[1].len()), "runs are few");
    }
}

/// Words in order of arrival, apart where range deletes stand; each piece with where it ends.
fn pieces_of(mut words: Vec<u64>, range_deletes: &[usize], to: usize) -> Vec<(Vec<u64>, usize)> {
    let mut pieces = Vec::new();
    for &delete in range_deletes.iter().filter(|&&delete| delete < to) {
        let behind = words.split_off(words.partition_point(|&word| place_in(word) < delete));
        pieces.push((std::mem::replace(&mut words, behind), delete));
    }
    pieces.push((words, to));
    debug_assert!(pieces.is_sorted_by_key(|(_, end)| *end), "oldest first");
    pieces.retain(|(words, _)| !words.is_empty());
    pieces
}
