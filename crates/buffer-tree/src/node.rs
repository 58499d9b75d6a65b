//! A node: a range of records, the lists that hold them, oldest first, and the children below.
//!
//! **Invariant:** a node that trees share is immutable: an edit makes new ones along one path and shares all
//! others. What a node caches depends on its own contents, and on those below it, only; but for the tombstones of a leaf,
//! which are known of lists that are open, and decide how soon it is merged.

use std::sync::{Arc, OnceLock};

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

    /// Both together.
    pub fn saturating_add(self, other: Self) -> Self {
        let bytes = self.bytes.saturating_add(other.bytes);
        Self { bytes, records: self.records.saturating_add(other.records) }
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
    pub is_bottom: bool,
}

impl<F> List<F> {
    /// A list of this much.
    pub fn new(fragment: F, portion: Portion, is_bottom: bool) -> Self {
        Self { fragment, bytes: portion.bytes, records: portion.records, is_bottom }
    }

    /// How much it holds.
    pub fn portion(&self) -> Portion {
        Portion { bytes: self.bytes, records: self.records }
    }
}

/// One node of the tree.
#[derive(Clone, Debug)]
pub struct Node<F> {
    pub(crate) id: NodeId,
    pub(crate) range: Range,
    pub(crate) lists: Vec<List<F>>,
    /// How much all of them hold.
    held: Portion,
    /// Shared with what this node was, so that a node gets lists without its children being touched.
    pub(crate) children: Arc<[Arc<Node<F>>]>,
    /// The children's low prefixes, side by side: a search touches a child only where prefixes tie.
    child_prefixes: Arc<[u64]>,
    pub(crate) fast_splits: u32,
    pub(crate) unsplittable_bytes: u64,
    repeats: OnceLock<Repeats>,
    /// Whether planning finds anything to do here.
    pub(crate) wants_work: OnceLock<bool>,
    pub(crate) below: Below,
}

/// What a node remembers of all that lies below it. New lists of its own change nothing of that, so a spill
/// from above makes nobody look below again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Below {
    /// Whether planning finds anything to do.
    pub(crate) wants_work: OnceLock<bool>,
    debt_bytes: OnceLock<u64>,
}

/// Of fewer records no estimate of repeats is made: they are not worth a job.
const REPEATS_RECORDS_MIN: u64 = 1024;
/// A leaf without a living key counts as one that has one of so many.
const DEAD_TIMES_MAX: f64 = 64.0;

/// How many records a node has for each key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeats {
    /// The inverse of the paper's alpha (section 6).
    pub(crate) by_key: f64,
    /// Of a leaf, for each key that lives: a merge would leave no tombstone.
    pub(crate) by_living: f64,
}

impl<F> Node<F> {
    pub(crate) fn new(id: NodeId, range: Range, lists: Vec<List<F>>, children: Vec<Arc<Self>>) -> Self {
        Self {
            id,
            range,
            held: sum(&lists),
            lists,
            child_prefixes: children.iter().map(|child| child.range.low.prefix).collect(),
            children: children.into(),
            fast_splits: 0,
            unsplittable_bytes: 0,
            repeats: OnceLock::new(),
            wants_work: OnceLock::new(),
            below: Below::default(),
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

    /// Whether merging it would change nothing: it is empty or one bottom list.
    pub fn is_fully_merged(&self) -> bool {
        matches!(&self.lists[..], [] | [List { is_bottom: true, .. }])
    }

    /// Bytes in its lists.
    pub fn bytes(&self) -> u64 {
        self.held.bytes
    }

    /// Records in its lists.
    pub fn records(&self) -> u64 {
        self.held.records
    }

    /// The size at which it is full. What cannot be split is not full until it has grown by half.
    pub fn limit_bytes(&self, options: &TreeOptions) -> u64 {
        let unsplittable = match &self.lists[..] {
            [list] if self.is_leaf() && list.records <= 1 => list.bytes,
            _ => self.unsplittable_bytes,
        };
        let limit = options.threshold_bytes(self.id).max(unsplittable.saturating_add(unsplittable / 2));
        debug_assert!(limit > 0, "how full a node is, is told by its limit");
        limit
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
        let below = self.below.debt_bytes.get_or_init(|| {
            self.children.iter().fold(0, |sum, child| sum.saturating_add(child.debt_bytes(options)))
        });
        below.saturating_add(self.bytes().saturating_sub(self.limit_bytes(options)))
    }
}

/// Changes of a node that no tree shares.
impl<F> Node<F> {
    /// Gives it other lists, and returns those that it had.
    pub(crate) fn replace_lists(&mut self, lists: Vec<List<F>>) -> Vec<List<F>> {
        self.held = sum(&lists);
        (self.repeats, self.wants_work) = Default::default();
        std::mem::replace(&mut self.lists, lists)
    }

    /// Gives it one more list, its newest.
    pub(crate) fn push_list(&mut self, list: List<F>) {
        debug_assert!(
            !self.is_leaf() || !list.is_bottom || self.lists.is_empty(),
            "a bottom list is the oldest"
        );
        self.held = self.held.saturating_add(list.portion());
        (self.repeats, self.wants_work) = Default::default();
        self.lists.push(list);
    }

    /// Its children, to be changed but for their low bounds.
    pub(crate) fn children_mut(&mut self) -> &mut [Arc<Self>] {
        self.below = Below::default();
        Arc::make_mut(&mut self.children)
    }

    /// Adds a child.
    pub(crate) fn insert_child(&mut self, index: usize, child: Self) {
        debug_assert!(index > 0 && self.children[index - 1].range.high.as_ref() == Some(&child.range.low));
        let (mut children, mut prefixes) = (self.children.to_vec(), self.child_prefixes.to_vec());
        prefixes.insert(index, child.range.low.prefix);
        children.insert(index, Arc::new(child));
        debug_assert!(prefixes.is_sorted() && prefixes.len() == children.len(), "children lie in order");
        (self.children, self.child_prefixes) = (children.into(), prefixes.into());
        // How many there are decides whether it splits.
        (self.wants_work, self.below) = Default::default();
    }
}

fn sum<F>(lists: &[List<F>]) -> Portion {
    lists.iter().fold(Portion::default(), |sum, list| sum.saturating_add(list.portion()))
}

impl<F: Fragment> Node<F> {
    /// About how many records it has for each key.
    pub(crate) fn repeats(&self) -> Repeats {
        *self.repeats.get_or_init(|| {
            if self.records() < REPEATS_RECORDS_MIN || self.is_fully_merged() {
                return Repeats { by_key: 1.0, by_living: 1.0 };
            }
            // First, as it opens lists, of which tombstones are known then. A list that is alone stays closed.
            let by_key = self.repeats_of_keys();
            let keys = self.records() as f64 / by_key;
            let tombstones = if self.is_leaf() { self.tombstones() } else { 0.0 };
            // How many there are here of a list that others share is a guess.
            let living = (keys - tombstones).max(keys / DEAD_TIMES_MAX);
            Repeats { by_key, by_living: self.records() as f64 / living }
        })
    }

    fn repeats_of_keys(&self) -> f64 {
        if self.lists.len() < 2 {
            return 1.0;
        }
        let high = self.range.high.as_ref().map_or(u64::MAX, |high| high.prefix);
        // The newest is the likeliest to be at hand.
        F::repeats(self.lists.iter().rev(), self.range.low.prefix, high)
    }

    fn tombstones(&self) -> f64 {
        let unmerged = self.lists.iter().filter(|list| !list.is_bottom);
        unmerged.map(|list| list.records as f64 * list.fragment.tombstone_share()).sum()
    }
}
