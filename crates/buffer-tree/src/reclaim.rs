//! Planning to get space back: a compaction that goes round the tree, so that also where lists keep coming from above
//! every node has its turn, and fragments that all nodes share are given up once round.

use std::collections::BTreeSet;

use forebay_base::Bound;

use crate::plan::job;
use crate::{Fragment, JobKind, JobPlan, Node, NodeId, Tree};

impl<F: Fragment> Tree<F> {
    /// The next job from a place on, and the place to go on from: `None` for the beginning. What an inner node has is
    /// spilled when its range is entered, and its leaves come right after, so that it is not there twice for long.
    /// `None` when nothing is left up to the end.
    pub fn next_reclaim(
        &self,
        busy: &BTreeSet<NodeId>,
        from: Option<&Bound>,
    ) -> Option<(JobPlan, Option<Bound>)> {
        visit(&self.root, busy, from)
    }
}

fn visit<F: Fragment>(
    node: &Node<F>,
    busy: &BTreeSet<NodeId>,
    from: Option<&Bound>,
) -> Option<(JobPlan, Option<Bound>)> {
    if from.is_some_and(|from| node.range.high.as_ref().is_some_and(|high| high <= from)) {
        return None;
    }
    let is_free = !busy.contains(&node.id);
    if node.is_leaf() {
        return (is_free && !node.is_settled()).then(|| (job(JobKind::Merge, node), node.range.high.clone()));
    }
    let is_entered = from.is_none_or(|from| *from <= node.range.low);
    if is_entered && is_free && !node.lists.is_empty() {
        return Some((job(JobKind::Spill, node), Some(node.range.low.clone())));
    }
    node.children.iter().find_map(|child| visit(child, busy, from))
}
