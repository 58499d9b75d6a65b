//! Sorting a sealed buffer's records of one table, in short steps:
//!
//! 1. have a packed word for each record: noted as it was appended, or collected now, this many bytes of the
//!    buffer at a time;
//! 2. deal the words into 256 buckets of another stretch of memory;
//! 3. sort the buckets, a few at a time.

use std::sync::Arc;

use forebay_base::Order;
use forebay_base::limits::STEP_BYTES;
use forebay_base::sort::Deal;

use super::{Contents, RangeDelete, Run, TableNotes, WriteBuffer};

const STEP_WORDS: usize = STEP_BYTES / size_of::<u64>();

const _: () = assert!(STEP_WORDS > 0);

/// A sort on its way.
pub struct Sorting {
    buffer: Arc<WriteBuffer>,
    notes: TableNotes,
    /// What it leaves out.
    range_deletes: Vec<RangeDelete>,
    run: Run,
    collected_bytes: usize,
    deal: Option<Deal>,
    bucket: usize,
    sorted: usize,
}

impl Sorting {
    /// Starts sorting what the buffer holds of a table, but for what was deleted as a range.
    pub fn new(buffer: &Arc<WriteBuffer>, mut notes: TableNotes, order: Order) -> Self {
        let records = notes.contents.records as usize;
        if notes.words.capacity() < records && notes.words.is_empty() {
            // They will be collected: as many as there are, and not twice as much memory.
            notes.words = buffer.pool().map_or_else(Vec::new, |pool| pool.take_words());
            notes.words.clear();
            notes.words.reserve_exact(records);
        }
        let run = Run::unsorted(order, &notes, buffer.pool());
        let mut range_deletes = buffer.range_deletes(usize::MAX);
        range_deletes.retain(|delete| delete.table == notes.table);
        let buffer = Arc::clone(buffer);
        Self { buffer, notes, range_deletes, run, collected_bytes: 0, deal: None, bucket: 0, sorted: 0 }
    }

    /// The table's id, and how much the buffer holds of it.
    pub fn of(&self) -> (u32, Contents) {
        (self.notes.table, self.notes.contents)
    }

    /// Goes on for about 1 MiB. When all is sorted the run also becomes the buffer's index.
    pub fn step(&mut self) -> Option<Arc<Run>> {
        let words = &mut self.notes.words;
        if words.len() < self.run.len() && self.collected_bytes < self.buffer.len() {
            let part = (self.collected_bytes, self.collected_bytes + STEP_BYTES);
            self.collected_bytes =
                self.run.collect(&self.buffer, (self.notes.table, &self.range_deletes), part, words);
            return None;
        }
        self.run.shorten(words.len());
        debug_assert!(words.len() as u64 <= self.notes.contents.records, "no record is sorted twice");
        let deal = self.deal.get_or_insert_with(|| Deal::new(words));
        if deal.dealt() < words.len() {
            self.run.deal(deal, words, STEP_WORDS);
            return None;
        }
        let stop = self.sorted + STEP_WORDS;
        while self.sorted < stop
            && let Some(&end) = deal.ends().get(self.bucket)
        {
            self.run.sort(&self.buffer, self.sorted..end);
            self.sorted = end;
            self.bucket += 1;
        }
        let is_sorted = self.bucket == deal.ends().len();
        debug_assert!(!is_sorted || self.sorted == words.len(), "each word is in one bucket");
        is_sorted.then(|| {
            self.buffer.give_back_words(std::mem::take(&mut self.notes.words));
            let run = Arc::new(self.run.take());
            // Who looks at the buffer as it was before a range delete still sees what that hides.
            if self.range_deletes.is_empty() {
                self.buffer.install(self.notes.table, &run);
            }
            run
        })
    }

    /// How far it is, from 0 to 1.
    pub fn progress(&self) -> f64 {
        let share = |part: usize| part as f64 / self.run.len().max(1) as f64;
        let dealt = self.deal.as_ref().map_or(0, Deal::dealt);
        0.2 * share(self.notes.words.len()) + 0.2 * share(dealt) + 0.6 * share(self.sorted)
    }
}
