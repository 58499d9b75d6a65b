//! Walking one run of a write buffer, in either direction, as the buffer was at some length.

use std::sync::Arc;

use forebay_base::merge::{Cursor, Direction, fill_by_record};
use forebay_base::{Block, Kind, Order, Range, Record, Result};

use super::{Run, WriteBuffer};

/// Records lie anywhere in the buffer: the walk asks memory for so many at a time, which come in side by
/// side, rather than waiting for each.
const TOUCH_AHEAD: usize = 64;
/// The hardware fetches what follows by itself.
const TOUCH_BYTES_MAX: usize = 320;

/// A walk over a run. Forward it yields every version of a key, newest first; backward only the newest,
/// because the run has them in that order.
pub struct BufferCursor {
    buffer: Arc<WriteBuffer>,
    run: Arc<Run>,
    order: Order,
    direction: Direction,
    limit: usize,
    /// Indexes still to be walked.
    left: std::ops::Range<usize>,
    /// Forward: records below this index were asked of memory ahead of time.
    touched: usize,
    /// The record here: its kind, and where in the buffer its key and value are.
    kind: Kind,
    place: usize,
    key: std::ops::Range<usize>,
    value: std::ops::Range<usize>,
    prefix: Option<u64>,
}

impl BufferCursor {
    pub(super) fn new(
        buffer: &Arc<WriteBuffer>,
        run: Arc<Run>,
        order: Order,
        range: &Range,
        direction: Direction,
        limit: usize,
    ) -> Self {
        let start = run.lower_bound(buffer, range.low.prefix, &range.low.key);
        let end = match &range.high {
            Some(high) => run.lower_bound(buffer, high.prefix, &high.key).max(start),
            None => run.len(),
        };
        let buffer = Arc::clone(buffer);
        let mut cursor = Self {
            buffer,
            run,
            order,
            direction,
            limit,
            left: start..end,
            touched: start,
            kind: Kind::Put,
            place: 0,
            key: 0..0,
            value: 0..0,
            prefix: None,
        };
        cursor.step();
        cursor
    }

    /// All of a sealed buffer's run: what a spill reads.
    pub fn whole(buffer: &Arc<WriteBuffer>, run: Arc<Run>, order: Order) -> Self {
        Self::new(buffer, run, order, &Range::all(), Direction::Forward, usize::MAX)
    }

    #[inline]
    fn step(&mut self) {
        let found = match self.direction {
            Direction::Forward => self.next_forward(),
            Direction::Backward => self.next_backward(),
        };
        self.prefix = found.map(|place| {
            let (record, bytes) = self.buffer.record_at(place);
            let end = place + bytes;
            self.place = place;
            self.kind = record.kind;
            self.value = end - record.value.len()..end;
            self.key = self.value.start - record.key.len()..self.value.start;
            self.order.prefix(record.key)
        });
    }

    #[inline]
    fn next_forward(&mut self) -> Option<usize> {
        loop {
            let index = self.left.next()?;
            if index >= self.touched {
                self.touched = (index + TOUCH_AHEAD).min(self.left.end);
                self.run.touch(&self.buffer, index..self.touched);
            }
            let place = self.run.place(index);
            if place < self.limit {
                return Some(place);
            }
        }
    }

    /// Goes back over all versions of the next lower key and takes the newest that was there.
    fn next_backward(&mut self) -> Option<usize> {
        loop {
            let mut newest = None;
            let last = self.left.next_back()?;
            let key = self.buffer.record(self.run.place(last)).key;
            let mut index = last;
            loop {
                let place = self.run.place(index);
                if place < self.limit {
                    newest = Some(place);
                }
                if index == self.left.start || self.buffer.record(self.run.place(index - 1)).key != key {
                    break;
                }
                index -= 1;
            }
            self.left.end = index;
            if newest.is_some() {
                return newest;
            }
        }
    }
}

impl Cursor for BufferCursor {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        let bytes = self.buffer.bytes();
        Record { kind: self.kind, key: &bytes[self.key.clone()], value: &bytes[self.value.clone()] }
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.step();
        Ok(())
    }

    fn fill(&mut self, block: &mut Block) -> Result<()> {
        if self.direction == Direction::Backward || self.limit < self.buffer.len() {
            return fill_by_record(self, block);
        }
        // Records of one shape have heads of one length. The record here is in front of what is left.
        let (key_at, head_bytes) = (self.key.start, self.key.start - self.place);
        let touch_bytes = block.record_bytes().unwrap_or(TOUCH_BYTES_MAX).min(TOUCH_BYTES_MAX);
        block.gather(self.order, self.buffer.bytes(), self.prefix.map(|_| key_at).into_iter());
        let some = self.left.start..self.left.end.min(self.left.start + block.room());
        self.left.start = some.end;
        let (buffer, run, last) = (&self.buffer, &self.run, self.left.end);
        let keys = some.map(|index| {
            if index + TOUCH_AHEAD < last {
                buffer.prefetch(run.place(index + TOUCH_AHEAD) + head_bytes, touch_bytes);
            }
            run.place(index) + head_bytes
        });
        block.gather(self.order, buffer.bytes(), keys);
        self.step();
        Ok(())
    }
}
