//! Walking one run of a write buffer, in either direction, as the buffer was at some length.

use std::sync::Arc;

use forebay_base::merge::{Cursor, Direction, fill_by_record};
use forebay_base::{Block, Error, Kind, Order, POINTER_BYTES, Range, Record, Result};

use super::run::{is_seen, record_in};
use super::{Run, WriteBuffer};
use crate::values::Apart;

/// Records lie anywhere in the buffer: the walk asks memory for this many at a time, which come in side by
/// side, rather than waiting for each. It may be a short one: it begins with few.
const TOUCH_AHEAD: usize = 64;
const TOUCH_FIRST: usize = 8;

const _: () = assert!(TOUCH_FIRST > 0 && TOUCH_FIRST <= TOUCH_AHEAD);

/// This many records are looked at to tell how long all are.
const SAMPLES: usize = 32;
/// The hardware fetches what follows by itself.
const TOUCH_BYTES_MAX: usize = 320;

#[inline]
fn shows(seen: &std::ops::Range<usize>, place: usize) -> bool {
    seen.start <= place && is_seen(place, seen.end)
}

/// A walk over a run. Either way it yields every version of a key, newest first.
pub struct BufferCursor {
    buffer: Arc<WriteBuffer>,
    run: Arc<Run>,
    order: Order,
    direction: Direction,
    /// Where records are seen.
    seen: std::ops::Range<usize>,
    /// Indexes of the range.
    inside: std::ops::Range<usize>,
    /// Those still to be walked.
    left: std::ops::Range<usize>,
    /// Forward: records below this index were asked of memory ahead of time, and how many will be next.
    touched: usize,
    touch_ahead: usize,
    /// Backward: indexes of the versions of this key that are still to come.
    versions: std::ops::Range<usize>,
    /// The record here: its place, its kind, and where its key and value lie in what the run keeps records in.
    kind: Kind,
    place: usize,
    key: std::ops::Range<usize>,
    value: std::ops::Range<usize>,
    prefix: Option<u64>,
    /// What leaves long values where they are, and the way to that of the record here, where it does.
    apart: Option<Apart>,
    pointer: Vec<u8>,
}

impl BufferCursor {
    /// A walk over the records of the range. It stands nowhere until it is [sought](Self::seek).
    pub(super) fn new(
        buffer: &Arc<WriteBuffer>,
        run: Arc<Run>,
        order: Order,
        range: &Range,
        seen: std::ops::Range<usize>,
    ) -> Self {
        let start = run.lower_bound(buffer, range.low.prefix, &range.low.key);
        let end = match &range.high {
            Some(high) => run.lower_bound(buffer, high.prefix, &high.key).max(start),
            None => run.len(),
        };
        debug_assert!(start <= end && end <= run.len());
        Self {
            buffer: Arc::clone(buffer),
            run,
            order,
            direction: Direction::Forward,
            seen,
            inside: start..end,
            left: start..end,
            touched: start,
            touch_ahead: TOUCH_FIRST,
            versions: 0..0,
            kind: Kind::Put,
            place: 0,
            key: 0..0,
            value: 0..0,
            prefix: None,
            apart: None,
            pointer: Vec::new(),
        }
    }

    /// All of a sealed buffer's run: what a flush reads, perhaps with pointers in the place of long values.
    pub fn whole(buffer: &Arc<WriteBuffer>, run: Arc<Run>, order: Order, apart: Option<Apart>) -> Self {
        debug_assert!(apart.is_none() || !run.is_folded(), "what is folded does not lie in the buffer");
        // Where it was folded all the same, its values stay with their keys.
        let apart = apart.filter(|_| !run.is_folded());
        let cursor = Self::new(buffer, run, order, &Range::all(), 0..usize::MAX);
        let mut cursor = Self { apart, ..cursor };
        cursor.seek(None, Direction::Forward);
        cursor
    }

    /// Goes to the first record at or behind a place, given by prefix and key (forward), or to the last one before it
    /// (backward); without a place, to the first or last of the range.
    pub fn seek(&mut self, place: Option<(u64, &[u8])>, direction: Direction) {
        self.direction = direction;
        self.left = self.inside.clone();
        if let Some((prefix, key)) = place {
            let at = self.run.lower_bound(&self.buffer, prefix, key).clamp(self.left.start, self.left.end);
            match direction {
                Direction::Forward => self.left.start = at,
                Direction::Backward => self.left.end = at,
            }
        }
        self.versions = 0..0;
        (self.touched, self.touch_ahead) = (self.left.start, TOUCH_FIRST);
        self.step();
    }

    /// How many records the range has, every version counted, and about how many bytes their keys and values have:
    /// as some of them do, taken evenly from all.
    pub fn extent(&self) -> (u64, u64) {
        let some = self.inside.clone().step_by((self.inside.len() / SAMPLES).max(1));
        let lengths = some.map(|index| {
            let record = self.run.record(&self.buffer, self.run.place(index));
            (record.key.len() + record.value.len()) as u64
        });
        let (count, sum) = lengths.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
        let records = self.inside.len() as u64;
        (records, records * sum / count.max(1))
    }

    #[inline]
    fn step(&mut self) {
        let found = match self.direction {
            Direction::Forward => self.next_forward(),
            Direction::Backward => self.next_backward(),
        };
        self.prefix = found.map(|place| {
            let (bytes, at) = self.run.locate(&self.buffer, place);
            let (record, length) = record_in(bytes, at);
            let end = at + length;
            debug_assert!(shows(&self.seen, place) && end <= bytes.len());
            self.place = place;
            self.kind = record.kind;
            self.value = end - record.value.len()..end;
            self.key = self.value.start - record.key.len()..self.value.start;
            if let Some(apart) = self.apart.as_ref().filter(|apart| apart.takes(&record)) {
                self.kind = Kind::Pointer;
                self.pointer.clear();
                apart.pointer(record.key, record.value, self.value.start).encode(&mut self.pointer);
            }
            self.order.prefix(record.key)
        });
    }

    #[inline]
    fn next_forward(&mut self) -> Option<usize> {
        loop {
            let index = self.left.next()?;
            if index >= self.touched {
                self.touched = (index + self.touch_ahead).min(self.left.end);
                self.touch_ahead = (2 * self.touch_ahead).min(TOUCH_AHEAD);
                self.run.touch(&self.buffer, index..self.touched);
            }
            let place = self.run.place(index);
            if shows(&self.seen, place) {
                return Some(place);
            }
        }
    }

    /// Goes back to the newest version of the next lower key, and forward over the others.
    fn next_backward(&mut self) -> Option<usize> {
        loop {
            for index in self.versions.by_ref() {
                let place = self.run.place(index);
                if shows(&self.seen, place) {
                    return Some(place);
                }
            }
            let last = self.left.next_back()?;
            let key_at = |index: usize| self.run.record(&self.buffer, self.run.place(index)).key;
            let (key, mut first) = (key_at(last), last);
            while first > self.left.start && key_at(first - 1) == key {
                first -= 1;
            }
            self.left.end = first;
            self.versions = first..last + 1;
        }
    }
}

impl BufferCursor {
    /// As [`fill`](Cursor::fill), of keys and the ways to their values. The keys are copied, and values only read, for
    /// their checksums.
    fn fill_with_pointers(&mut self, block: &mut Block) -> Result<()> {
        let Some(prefix) = self.prefix else { return Ok(()) };
        let apart =
            self.apart.as_ref().ok_or_else(|| Error::bug("pointers are wanted of values that stay"))?;
        let (head_bytes, key_bytes) = (self.key.start - self.place, self.key.len());
        let record_bytes = key_bytes + self.value.len();
        debug_assert_eq!(block.record_bytes(), Some(key_bytes + POINTER_BYTES));
        block.push(prefix, &self.record());
        let some = self.left.start..self.left.end.min(self.left.start + block.room());
        let (bytes, last) = (self.buffer.bytes(), self.left.end);
        for index in some.clone() {
            if index + TOUCH_AHEAD < last {
                let place = self.run.place(index + TOUCH_AHEAD) + head_bytes;
                self.buffer.prefetch(place, record_bytes.min(TOUCH_BYTES_MAX));
            }
            let key_at = self.run.place(index) + head_bytes;
            let (key, value) = bytes[key_at..key_at + record_bytes].split_at(key_bytes);
            let pointer = apart.even_pointer(key, value, key_at + key_bytes)?;
            block.push(self.order.prefix(key), &Record { kind: Kind::Pointer, key, value: &pointer });
        }
        self.left.start = some.end;
        self.step();
        Ok(())
    }

    /// What the record here does.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl Cursor for BufferCursor {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        let (bytes, _) = self.run.locate(&self.buffer, self.place);
        let key = &bytes[self.key.clone()];
        match self.kind {
            Kind::Pointer => Record { kind: Kind::Pointer, key, value: &self.pointer },
            kind => Record { kind, key, value: &bytes[self.value.clone()] },
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.step();
        Ok(())
    }

    fn fill(&mut self, block: &mut Block) -> Result<()> {
        let is_forward = self.direction == Direction::Forward;
        let is_all = self.seen.start == 0 && self.seen.end >= self.buffer.len();
        let is_whole = is_forward && is_all && !self.run.is_folded();
        let Some(record_bytes) = block.record_bytes().filter(|_| is_whole) else {
            return fill_by_record(self, block);
        };
        if block.kind() == Kind::Pointer {
            return self.fill_with_pointers(block);
        }
        // Records of one shape have heads of one length. The record here is in front of what is left.
        let (key_at, head_bytes) = (self.key.start, self.key.start - self.place);
        let touch_bytes = record_bytes.min(TOUCH_BYTES_MAX);
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
