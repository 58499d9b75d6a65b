//! Planning to get space back: a compaction that goes round the tree, so that also where lists keep coming from above
//! every node has its turn, and fragments that all nodes share are given up once round.

use std::collections::BTreeSet;

use forebay_base::{Bound, Range};

use crate::plan::job;
use crate::{Fragment, JobKind, JobPlan, Node, NodeId, Tree};

/// How far a round has come.
#[derive(Clone, Debug)]
pub struct Place {
    bound: Bound,
    /// This many levels of nodes that begin there were entered. What comes into them meanwhile is not of this round,
    /// which would not get past them otherwise.
    entered: u32,
}

impl Place {
    /// Where all before this bound is done.
    pub fn at(bound: Bound) -> Self {
        Self { bound, entered: 0 }
    }

    /// Where nothing is done yet.
    pub fn beginning() -> Self {
        Self::at(Bound::least())
    }

    /// Whether a round from here goes round all.
    pub fn is_beginning(&self) -> bool {
        self.entered == 0 && self.bound == Bound::least()
    }

    /// All before this is done.
    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    fn is_before(&self, bound: &Bound, level: u32) -> bool {
        self.bound < *bound || (self.bound == *bound && self.entered <= level)
    }
}

impl<F: Fragment> Tree<F> {
    /// The next job of a round of the nodes that meet a range, from a place on, and the place to go on from: `None` for
    /// the beginning. What an inner node has is spilled when its range is entered, and its leaves come right after, so
    /// that it is not there twice for long. `None` when nothing is left up to the end.
    pub fn next_reclaim(
        &self,
        busy: &BTreeSet<NodeId>,
        from: Option<&Place>,
        within: &Range,
    ) -> Option<(JobPlan, Option<Place>)> {
        let found = visit(&self.root, 0, busy, from, within);
        debug_assert!(found.as_ref().is_none_or(|(plan, _)| !busy.contains(&plan.node.id)));
        found
    }
}

fn visit<F: Fragment>(
    node: &Node<F>,
    level: u32,
    busy: &BTreeSet<NodeId>,
    from: Option<&Place>,
    within: &Range,
) -> Option<(JobPlan, Option<Place>)> {
    let range = node.range.intersect(within);
    if range.is_empty() {
        return None;
    }
    if from.is_some_and(|from| node.range.high.as_ref().is_some_and(|high| *high <= from.bound)) {
        return None;
    }
    let is_free = !busy.contains(&node.id);
    if node.is_leaf() {
        let ends = |high: &Bound| within.high.as_ref().is_some_and(|end| end <= high);
        let then = || node.range.high.clone().filter(|high| !ends(high)).map(Place::at);
        return (is_free && !node.is_fully_merged()).then(|| (job(JobKind::Merge, node), then()));
    }
    let is_entered = from.is_none_or(|from| from.is_before(&range.low, level));
    if is_entered && is_free && !node.lists.is_empty() {
        let then = Place { bound: range.low, entered: level + 1 };
        return Some((job(JobKind::Spill, node), Some(then)));
    }
    node.children.iter().find_map(|child| visit(child, level + 1, busy, from, within))
}
