//! Files of runs of which only counts are known: lists, and trees with what their next batch will write.

use forebay_base::record::Shape as RecordShape;
use forebay_base::{Bound, Range};
use forebay_buffer_tree::{Counted, Fragment, Portion};
use forebay_cow_tree::{Shape, TreeOptions};

use crate::inventory::ListModel;

/// A list's or a tree's counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct CountedFile {
    pub(in super::super) counts: Counted,
    pub(in super::super) tree: Option<CountedTree>,
    /// Of each record, elsewhere.
    pub(in super::super) pointed_bytes: u64,
    /// What it takes, where it is in memory alone; else 0.
    pub(in super::super) memory_bytes: u64,
}

/// A tree's counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in super::super) struct CountedTree {
    pub(super) shape: Shape,
    /// How long its file is.
    pub(super) bytes: u64,
}

impl Fragment for CountedFile {
    fn id(&self) -> u64 {
        self.counts.id()
    }

    fn middle(&self, range: &Range) -> Option<Bound> {
        self.counts.middle(range)
    }

    fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        self.counts.share_below(range, at)
    }

    fn shape(&self) -> RecordShape {
        self.counts.shape()
    }

    fn grown_bytes(&self) -> Option<u64> {
        self.tree.map(|tree| tree.bytes)
    }

    fn held_bytes(&self) -> Option<u64> {
        (self.memory_bytes > 0).then_some(self.memory_bytes)
    }

    fn pointed_bytes(&self, portion: Portion) -> u64 {
        self.pointed_bytes.saturating_mul(portion.records)
    }
}

/// What distinguishes an inner node's entries, beside what each takes anyway.
const CHILD_BYTES: f64 = 17.0;

impl CountedTree {
    /// A new one of this many records.
    pub(super) fn built(model: &ListModel, inline_bytes: u32, records: f64) -> Self {
        let options = TreeOptions::new(model.options.order);
        let value_bytes = model.record_bytes - model.key_bytes;
        let is_apart = value_bytes > inline_bytes.into();
        // Of an entry's own bytes about as many go again as its key has in common with the leaf's other ones.
        let held_bytes = if is_apart { 10 } else { 1 + value_bytes };
        let empty = Shape {
            records: 0.0,
            leaves: 0.0,
            full_leaves: 0.0,
            record_bytes: (model.key_bytes + held_bytes) as f64 + 0.5,
            child_bytes: CHILD_BYTES,
            value_bytes: if is_apart { value_bytes as f64 } else { 0.0 },
            node_bytes: options.node_bytes_max as f64,
        };
        let built = empty.append(records, records);
        Self { shape: built.tree, bytes: built.bytes as u64 }
    }

    /// As if its records were this many: of a tree of which a part stands for less.
    pub(super) fn of_records(self, records: f64) -> Self {
        let share = records / self.shape.records.max(1.0);
        let Shape { leaves, full_leaves, .. } = self.shape;
        let (leaves, full_leaves) = (leaves * share, full_leaves * share);
        Self { shape: Shape { records, leaves, full_leaves, ..self.shape }, ..self }
    }
}
