//! Sorting a sealed buffer's records of one table, in short steps:
//!
//! 1. collect a packed word for each record, so many bytes of the buffer at a time;
//! 2. deal the words into buckets, in one pass;
//! 3. sort the buckets, a few at a time.

use std::sync::Arc;

use forebay_base::Order;
use forebay_base::limits::STEP_BYTES;
use forebay_base::sort::Pieces;

use super::{Contents, Run, WriteBuffer};

/// A sort on its way.
pub struct Sorting {
    buffer: Arc<WriteBuffer>,
    table: u32,
    run: Run,
    collected_bytes: usize,
    /// Where the buckets end, once dealt.
    buckets: Option<Vec<usize>>,
    next_bucket: usize,
    sorted: usize,
}

impl Sorting {
    /// Starts sorting what the buffer holds of a table.
    pub fn new(buffer: &Arc<WriteBuffer>, table: u32, order: Order, contents: &Contents) -> Self {
        let pieces = Pieces::new(contents.low, contents.high);
        Self {
            buffer: Arc::clone(buffer),
            table,
            run: Run::new(order, pieces, contents.records as usize),
            collected_bytes: 0,
            buckets: None,
            next_bucket: 0,
            sorted: 0,
        }
    }

    /// Goes on for about 1 MiB. When all is sorted the run also becomes the buffer's index.
    pub fn step(&mut self) -> Option<Arc<Run>> {
        if self.collected_bytes < self.buffer.len() {
            let to = self.collected_bytes + STEP_BYTES;
            self.collected_bytes = self.run.collect(&self.buffer, self.table, self.collected_bytes, to);
            return None;
        }
        let Some(ends) = &self.buckets else {
            self.buckets = Some(self.run.deal());
            return None;
        };
        let stop = self.sorted + STEP_BYTES / size_of::<u64>();
        while self.sorted < stop
            && let Some(&end) = ends.get(self.next_bucket)
        {
            self.run.sort(&self.buffer, self.sorted..end);
            self.sorted = end;
            self.next_bucket += 1;
        }
        (self.next_bucket == ends.len()).then(|| {
            let empty = Run::new(self.run.order(), Pieces::new(0, u64::MAX), 0);
            let run = Arc::new(std::mem::replace(&mut self.run, empty));
            self.buffer.install(self.table, &run);
            run
        })
    }

    /// How far it is, from 0 to 1.
    pub fn progress(&self) -> f64 {
        let share = |part: usize, whole: usize| if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
        let dealt = if self.buckets.is_some() { 1.0 } else { 0.0 };
        0.4 * share(self.collected_bytes, self.buffer.len())
            + 0.2 * dealt
            + 0.4 * dealt * share(self.sorted, self.run.len())
    }
}
