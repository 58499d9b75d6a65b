//! A node: a range of records, the lists that hold them, oldest first, and the children below.
//!
//! **Invariant:** a node is immutable. Edits make new nodes along one path and share all others; what a node
//! caches depends on its own contents, and on those below it, only.

use std::sync::{Arc, OnceLock};

use forebay_base::digest;
use forebay_base::{Bound, Range};

use crate::{Fragment, TreeOptions};

/// Names a node; never used again. A node that splits leaves its id to its lower half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u64);

/// Where a node is found: its id, and its low bound, which no edit changes, to descend by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeRef {
    /// Its id.
    pub id: NodeId,
    /// Its range begins here.
    pub low: Bound,
}

/// How much of something there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Portion {
    /// In the store's bytes.
    pub bytes: u64,
    /// In records.
    pub records: u64,
}

impl Portion {
    /// Both together, or `None` where that is more than there can be.
    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        let bytes = self.bytes.checked_add(other.bytes)?;
        Some(Self { bytes, records: self.records.checked_add(other.records)? })
    }
}

/// A node's part of a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List<F> {
    /// What it is a part of.
    pub fragment: F,
    /// The bytes of that part; an estimate after a fast split.
    pub bytes: u64,
    /// The records of that part; an estimate after a fast split.
    pub records: u64,
    /// Written by a merge at the bottom of the tree: it holds no tombstones and no operands.
    pub settled: bool,
}

impl<F> List<F> {
    pub(crate) fn new(fragment: F, portion: Portion, settled: bool) -> Self {
        Self { fragment, bytes: portion.bytes, records: portion.records, settled }
    }

    /// How much it holds.
    pub fn portion(&self) -> Portion {
        Portion { bytes: self.bytes, records: self.records }
    }
}

/// One node of the tree.
#[derive(Debug)]
pub struct Node<F> {
    pub(crate) id: NodeId,
    pub(crate) range: Range,
    pub(crate) lists: Vec<List<F>>,
    pub(crate) children: Vec<Arc<Node<F>>>,
    /// The children's low prefixes, side by side: a search touches a child only where prefixes tie.
    child_prefixes: Box<[u64]>,
    pub(crate) fast_splits: u32,
    pub(crate) unsplittable_bytes: u64,
    repeats: OnceLock<f64>,
    debt_bytes: OnceLock<u64>,
    /// Whether planning finds anything here or below.
    pub(crate) wants_work: OnceLock<bool>,
}

/// Of fewer records no estimate of repeats is made: they are not worth a job.
const REPEATS_RECORDS_MIN: u64 = 1024;

impl<F> Node<F> {
    pub(crate) fn new(id: NodeId, range: Range, lists: Vec<List<F>>, children: Vec<Arc<Self>>) -> Self {
        Self {
            id,
            range,
            lists,
            child_prefixes: children.iter().map(|child| child.range.low.prefix).collect(),
            children,
            fast_splits: 0,
            unsplittable_bytes: 0,
            repeats: OnceLock::new(),
            debt_bytes: OnceLock::new(),
            wants_work: OnceLock::new(),
        }
    }

    /// Its name.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Where it is found.
    pub fn reference(&self) -> NodeRef {
        NodeRef { id: self.id, low: self.range.low.clone() }
    }

    /// The records it is responsible for.
    pub fn range(&self) -> &Range {
        &self.range
    }

    /// Its lists, oldest first.
    pub fn lists(&self) -> &[List<F>] {
        &self.lists
    }

    /// Its children in order; none in a leaf.
    pub fn children(&self) -> &[Arc<Self>] {
        &self.children
    }

    /// How often its lineage has split fast since it last split slowly.
    pub fn fast_splits(&self) -> u32 {
        self.fast_splits
    }

    /// How large it was when a split last failed because all was one key; 0 if none did. A split is tried
    /// again at half as much more.
    pub fn unsplittable_bytes(&self) -> u64 {
        self.unsplittable_bytes
    }

    /// Whether it has no children.
    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// Whether merging it would change nothing: it is empty or one settled list.
    pub fn is_settled(&self) -> bool {
        matches!(&self.lists[..], [] | [List { settled: true, .. }])
    }

    /// Bytes in its lists.
    pub fn bytes(&self) -> u64 {
        self.lists.iter().fold(0, |sum, list| sum.saturating_add(list.bytes))
    }

    /// Records in its lists.
    pub fn records(&self) -> u64 {
        self.lists.iter().fold(0, |sum, list| sum.saturating_add(list.records))
    }

    /// The size at which it is full. What cannot be split is not full until it has grown by half.
    pub fn limit_bytes(&self, options: &TreeOptions) -> u64 {
        let unsplittable = match &self.lists[..] {
            [list] if self.is_leaf() && list.records <= 1 => list.bytes,
            _ => self.unsplittable_bytes,
        };
        options.threshold_bytes(self.id).max(unsplittable.saturating_add(unsplittable / 2))
    }

    /// The child that is responsible for the place; the place must lie inside this node.
    #[inline]
    pub(crate) fn child_at(&self, prefix: u64, key: &[u8]) -> Option<usize> {
        let tied = self.child_prefixes.partition_point(|&low| low < prefix);
        let above = tied + self.child_prefixes[tied..].partition_point(|&low| low == prefix);
        let below = self.children[tied..above].partition_point(|child| *child.range.low.key <= *key);
        (tied + below).checked_sub(1)
    }

    /// Bytes above the limits, here and below.
    pub(crate) fn debt_bytes(&self, options: &TreeOptions) -> u64 {
        *self.debt_bytes.get_or_init(|| {
            let own = self.bytes().saturating_sub(self.limit_bytes(options));
            self.children.iter().fold(own, |sum, child| sum.saturating_add(child.debt_bytes(options)))
        })
    }
}

impl<F: Clone> Node<F> {
    /// This node over other children. What is known of its lists stays known.
    pub(crate) fn with_children(&self, children: Vec<Arc<Self>>) -> Self {
        let mut node = Self::new(self.id, self.range.clone(), self.lists.clone(), children);
        node.fast_splits = self.fast_splits;
        node.unsplittable_bytes = self.unsplittable_bytes;
        node.repeats = self.repeats.clone();
        node
    }

    /// This node with other lists.
    pub(crate) fn with_lists(&self, lists: Vec<List<F>>) -> Self {
        let mut node = Self::new(self.id, self.range.clone(), lists, self.children.clone());
        node.fast_splits = self.fast_splits;
        node.unsplittable_bytes = self.unsplittable_bytes;
        node
    }
}

impl<F: Fragment> Node<F> {
    /// About how often its lists hold each of their keys: the inverse of the paper's alpha (section 6).
    pub fn repeats(&self) -> f64 {
        *self.repeats.get_or_init(|| {
            if self.lists.len() < 2 || self.records() < REPEATS_RECORDS_MIN {
                return 1.0;
            }
            let digests: Vec<_> = self.lists.iter().map(|list| list.fragment.digest()).collect();
            let high = self.range.high.as_ref().map_or(u64::MAX, |high| high.prefix);
            digest::repeats(&digests, self.range.low.prefix, high)
        })
    }
}
