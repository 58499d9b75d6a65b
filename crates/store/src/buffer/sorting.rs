//! Sorting a sealed buffer's records of one table, in short steps:
//!
//! 1. have a packed word for each record: noted as it was appended, or collected now, so many bytes of the
//!    buffer at a time;
//! 2. deal the words into 256 buckets of another stretch of memory;
//! 3. sort the buckets, a few at a time.

use std::sync::Arc;

use forebay_base::Order;
use forebay_base::limits::STEP_BYTES;
use forebay_base::sort::Deal;

use super::{Contents, Run, TableNotes, WriteBuffer};

const STEP_WORDS: usize = STEP_BYTES / size_of::<u64>();

/// A sort on its way.
pub struct Sorting {
    buffer: Arc<WriteBuffer>,
    notes: TableNotes,
    run: Run,
    collected_bytes: usize,
    deal: Option<Deal>,
    bucket: usize,
    sorted: usize,
}

impl Sorting {
    /// Starts sorting what the buffer holds of a table.
    pub fn new(buffer: &Arc<WriteBuffer>, notes: TableNotes, order: Order) -> Self {
        let run = Run::unsorted(order, &notes, buffer.pool());
        let buffer = Arc::clone(buffer);
        Self { buffer, notes, run, collected_bytes: 0, deal: None, bucket: 0, sorted: 0 }
    }

    /// The table's id, and how much the buffer holds of it.
    pub fn of(&self) -> (u32, Contents) {
        (self.notes.table, self.notes.contents)
    }

    /// Goes on for about 1 MiB. When all is sorted the run also becomes the buffer's index.
    pub fn step(&mut self) -> Option<Arc<Run>> {
        let words = &mut self.notes.words;
        if words.len() < self.run.len() && self.collected_bytes < self.buffer.len() {
            let (from, to) = (self.collected_bytes, self.collected_bytes + STEP_BYTES);
            self.collected_bytes = self.run.collect(&self.buffer, self.notes.table, from, to, words);
            return None;
        }
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
        (self.bucket == deal.ends().len()).then(|| {
            self.buffer.give_back_words(std::mem::take(&mut self.notes.words));
            let run = Arc::new(self.run.take());
            self.buffer.install(self.notes.table, &run);
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
