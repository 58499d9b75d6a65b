//! Deleting ranges from a tree by tombstones. Its lists have no bounds of their own, so that nothing can be cut out of
//! them: each key that they have of the ranges gets a tombstone. A page that is damaged cannot tell its keys, and
//! nobody can read them: they get none.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::merge::{Cursor, Direction, Extent, Merge};
use forebay_base::record::Shape;
use forebay_base::{Kind, Range, Record, Result};
use forebay_buffer_tree::Tree;
use forebay_store::list::Reading;
use forebay_store::salvage::Gaps;
use forebay_store::{ListCursor, ListFile};

use crate::files::Fragment;

/// A tombstone for each key that a tree has of some ranges.
pub(super) struct Tombstones {
    tree: Tree<Fragment>,
    /// What is still to be walked, in order.
    ranges: VecDeque<Range>,
    reading: Reading,
    merge: Option<Merge<ListCursor>>,
    /// Of the last key that was met.
    met: Option<u64>,
    key: Vec<u8>,
    /// What is damaged.
    gaps: Arc<Gaps>,
    /// Of the tombstone here.
    prefix: Option<u64>,
}

impl Tombstones {
    /// The ranges lie side by side, in order.
    pub(super) fn new(
        tree: Tree<Fragment>,
        ranges: &[Range],
        reading: Reading,
        gaps: Arc<Gaps>,
    ) -> Result<Self> {
        debug_assert!(
            ranges.is_sorted_by(|one, next| one.high.as_ref().is_some_and(|high| *high <= next.low)),
            "the ranges lie side by side"
        );
        let ranges = ranges.iter().cloned().collect();
        let mut tombstones =
            Self { tree, ranges, reading, merge: None, met: None, key: Vec::new(), gaps, prefix: None };
        tombstones.advance()?;
        Ok(tombstones)
    }

    /// Goes to the next leaf that has a share of a range. `false` when none is left.
    fn enter(&mut self) -> Result<bool> {
        let Some(range) = self.ranges.front_mut() else { return Ok(false) };
        let (path, leaf) = self.tree.leaf_path(&range.low);
        let current = leaf.intersect(range);
        match leaf.high {
            Some(high) if range.high.as_ref().is_none_or(|end| high < *end) => range.low = high,
            _ => drop(self.ranges.pop_front()),
        }
        let lists = path.iter().flat_map(|node| node.lists().iter().rev());
        let cursor = |list: &Arc<ListFile>| {
            let (direction, gaps) = (Direction::Forward, &self.gaps);
            match ListCursor::passing_over(list, &current, direction, self.reading, gaps) {
                // Not even its footer or page search can be read.
                Err(error) if error.is_corruption() && gaps.pass_over(&list.path(), &error, None) => None,
                opened => Some(opened),
            }
        };
        let sources = lists.filter_map(|list| cursor(&list.fragment.0)).collect::<Result<_>>()?;
        let shape = Shape::Variable;
        self.merge = Some(Merge::new(sources, Extent { shape, ..Extent::default() })?);
        Ok(true)
    }
}

impl Cursor for Tombstones {
    fn prefix(&self) -> Option<u64> {
        self.prefix
    }

    fn record(&self) -> Record<'_> {
        Record::delete(&self.key)
    }

    fn advance(&mut self) -> Result<()> {
        self.prefix = None;
        while self.prefix.is_none() {
            let Some((merge, prefix)) =
                self.merge.as_mut().and_then(|merge| merge.prefix().map(|at| (merge, at)))
            else {
                self.merge = None;
                if !self.enter()? {
                    break;
                }
                continue;
            };
            let record = merge.record();
            debug_assert!(self.met <= Some(prefix), "keys are met in order");
            // The newest record of a key comes first.
            if self.met != Some(prefix) || record.key != self.key {
                self.key.clear();
                self.key.extend_from_slice(record.key);
                self.met = Some(prefix);
                self.prefix = (record.kind != Kind::Delete).then_some(prefix);
            }
            merge.advance()?;
        }
        Ok(())
    }
}
