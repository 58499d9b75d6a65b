//! Fragments in memory, with exact shares, and counters of what is read and written.

use std::cell::Cell;
use std::rc::Rc;

use forebay_base::digest::{self, Digest};
use forebay_base::hash::key_hash;
use forebay_base::merge::Cursor;
use forebay_base::record::{Kind, Shape};
use forebay_base::{Bound, Order, Range, Record, Result};
use forebay_buffer_tree::{Expected, Fragment, FragmentStore, FragmentWriter, List};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) prefix: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) value: Vec<u8>,
}

impl Entry {
    pub(crate) fn record(&self) -> Record<'_> {
        Record { kind: self.kind, key: &self.key, value: &self.value }
    }
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) id: u64,
    pub(crate) entries: Vec<Entry>,
    digest: Digest,
    shape: Shape,
    order: Order,
}

#[derive(Clone, Debug)]
pub(crate) struct Handle(pub Rc<Block>);

impl Handle {
    fn slice(&self, range: &Range) -> std::ops::Range<usize> {
        let entries = &self.0.entries;
        let low = entries.partition_point(|entry| range.low.place(entry.prefix, &entry.key).is_lt());
        let high = entries.partition_point(|entry| range.is_below_high(entry.prefix, &entry.key));
        low..high.max(low)
    }
}

impl Fragment for Handle {
    fn id(&self) -> u64 {
        self.0.id
    }

    fn middle(&self, range: &Range) -> Option<Bound> {
        let slice = self.slice(range);
        let middle = slice.start + slice.len() / 2;
        (slice.len() > 1)
            .then(|| self.0.order.separator(&self.0.entries[middle - 1].key, &self.0.entries[middle].key))
    }

    fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        let below = self.slice(&Range { low: range.low.clone(), high: Some(at.clone()) });
        below.len() as f64 / self.slice(range).len().max(1) as f64
    }

    fn repeats<'a>(lists: impl Iterator<Item = &'a List<Self>>, low: u64, high: u64) -> f64 {
        let lists: Vec<_> = lists.collect();
        let part = |list: &&'a List<Self>| digest::Part {
            digest: &list.fragment.0.digest,
            low,
            high,
            records: list.records,
        };
        digest::repeats(lists.iter().map(part))
    }

    fn tombstone_share(&self) -> f64 {
        let tombstones = self.0.entries.iter().filter(|entry| entry.kind == Kind::Delete).count();
        tombstones as f64 / self.0.entries.len().max(1) as f64
    }

    fn shape(&self) -> Shape {
        self.0.shape
    }
}

/// What the store has done so far.
#[derive(Default)]
pub(crate) struct Traffic {
    next_id: Cell<u64>,
    pub(crate) read_bytes: Cell<u64>,
    pub(crate) written_bytes: Cell<u64>,
}

pub(crate) struct MemoryStore {
    pub(crate) order: Order,
    pub(crate) traffic: Rc<Traffic>,
}

impl MemoryStore {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, traffic: Rc::default() }
    }

    pub(crate) fn walk(&self, fragment: &Handle, range: &Range) -> Walk {
        Walk { slice: fragment.slice(range), fragment: fragment.clone(), traffic: Rc::default() }
    }
}

impl FragmentStore for MemoryStore {
    type Fragment = Handle;
    type Cursor = Walk;
    type Writer = Writer;

    fn cursor(&self, fragment: &Handle, range: &Range, _share: usize) -> Result<Walk> {
        Ok(Walk {
            slice: fragment.slice(range),
            fragment: fragment.clone(),
            traffic: Rc::clone(&self.traffic),
        })
    }

    fn writer(&self, expected: &Expected) -> Result<Writer> {
        Ok(Writer {
            order: self.order,
            traffic: Rc::clone(&self.traffic),
            expected: expected.clone(),
            bytes: 0,
            entries: Vec::new(),
        })
    }
}

pub(crate) struct Walk {
    fragment: Handle,
    slice: std::ops::Range<usize>,
    traffic: Rc<Traffic>,
}

impl Cursor for Walk {
    fn prefix(&self) -> Option<u64> {
        (!self.slice.is_empty()).then(|| self.fragment.0.entries[self.slice.start].prefix)
    }

    fn record(&self) -> Record<'_> {
        self.fragment.0.entries[self.slice.start].record()
    }

    fn advance(&mut self) -> Result<()> {
        let bytes = self.record().encoded_bytes() as u64;
        self.traffic.read_bytes.set(self.traffic.read_bytes.get() + bytes);
        self.slice.start += 1;
        Ok(())
    }
}

pub(crate) struct Writer {
    order: Order,
    traffic: Rc<Traffic>,
    expected: Expected,
    bytes: u64,
    entries: Vec<Entry>,
}

impl FragmentWriter for Writer {
    type Fragment = Handle;

    fn push(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        let last = self.entries.last().map(|last| (last.prefix, &last.key[..]));
        assert!(last < Some((prefix, record.key)), "records come in order, each key once");
        assert_eq!(prefix, self.order.prefix(record.key));
        assert!(self.expected.range.contains(prefix, record.key), "records lie in the expected range");
        self.bytes += record.encoded_bytes() as u64;
        self.entries.push(Entry {
            prefix,
            key: record.key.into(),
            kind: record.kind,
            value: record.value.into(),
        });
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn finish(self) -> Result<Option<Handle>> {
        assert!(self.entries.len() as u64 <= self.expected.records, "collapsing never adds records");
        if self.entries.is_empty() {
            return Ok(None);
        }
        let mut digest = Digest::new(self.expected.records);
        self.entries.iter().for_each(|entry| digest.add(entry.prefix, key_hash(&entry.key, 0)));
        let shape =
            self.entries.iter().map(|entry| Shape::of(&entry.record())).fold(Shape::Unknown, Shape::join);
        self.traffic.written_bytes.set(self.traffic.written_bytes.get() + self.bytes);
        let id = self.traffic.next_id.replace(self.traffic.next_id.get() + 1);
        Ok(Some(Handle(Rc::new(Block { id, entries: self.entries, digest, shape, order: self.order }))))
    }
}

/// A sealed write buffer: sorted, the newest first among records of one key.
#[derive(Clone)]
pub(crate) struct Buffer {
    pub(crate) entries: Rc<Vec<Entry>>,
    pub(crate) at: usize,
    pub(crate) end: usize,
}

impl Buffer {
    /// Sorts what was written, oldest first.
    pub(crate) fn seal(mut written: Vec<Entry>) -> Self {
        written.reverse();
        written.sort_by(|left, right| (left.prefix, &left.key).cmp(&(right.prefix, &right.key)));
        Self { at: 0, end: written.len(), entries: Rc::new(written) }
    }

    pub(crate) fn expected(&self) -> Expected {
        let entries = &self.entries[self.at..self.end];
        let bytes = entries.iter().map(|entry| entry.record().encoded_bytes() as u64).sum();
        Expected { range: Range::all(), bytes, records: entries.len() as u64, shape: Shape::Variable }
    }

    pub(crate) fn inside(&self, range: &Range) -> Self {
        let low = self.entries.partition_point(|entry| range.low.place(entry.prefix, &entry.key).is_lt());
        let end = self.entries.partition_point(|entry| range.is_below_high(entry.prefix, &entry.key));
        Self { entries: Rc::clone(&self.entries), at: low, end }
    }
}

impl Cursor for Buffer {
    fn prefix(&self) -> Option<u64> {
        (self.at < self.end).then(|| self.entries[self.at].prefix)
    }

    fn record(&self) -> Record<'_> {
        self.entries[self.at].record()
    }

    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
}
