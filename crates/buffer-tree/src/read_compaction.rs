//! Planning for the sake of lookups: which node's lists should become one although none of its limits asks
//! for that.

use std::collections::BTreeSet;

use crate::plan::job;
use crate::{Fragment, JobKind, JobPlan, Node, NodeId, Portion, Tree};

/// On what terms a merge is done that no limit asks for.
#[derive(Clone, Copy)]
pub struct ReadTerms<'a> {
    /// Nobody else wants the machine: what was mostly never merged is merged for nothing.
    pub is_idle: bool,
    /// What it may cost.
    pub budget: u64,
    /// What it costs to rewrite this much.
    pub cost: &'a dyn Fn(Portion) -> u64,
}

/// The best job found so far.
struct Best<'a, F> {
    spared_by_cost: f64,
    node: &'a Node<F>,
    cost: u64,
}

impl<F: Fragment> Tree<F> {
    /// The job that spares lookups the most lists for what it costs, if the budget suffices for it, and its cost.
    /// `None` also where no node has more than one list. At rest, the merge of a leaf costs nothing if at least half
    /// of what it rewrites was never merged: so each byte is merged for nothing about twice at most, however its like
    /// come in.
    pub fn next_read_compaction(
        &self,
        busy: &BTreeSet<NodeId>,
        terms: &ReadTerms<'_>,
    ) -> Option<(JobPlan, u64)> {
        let cost = |node: &Node<F>| match terms.is_idle && node.is_mostly_unmerged() {
            true => 0,
            false => (terms.cost)(Portion { bytes: node.bytes(), records: node.records() }),
        };
        let mut best = None;
        visit(&self.root, 1.0, busy, &cost, &mut best);
        let best = best.filter(|best| best.cost <= terms.budget)?;
        debug_assert!(
            best.node.lists.len() > 1 && !busy.contains(&best.node.id),
            "lookups are spared something"
        );
        let kind = if best.node.is_leaf() { JobKind::Merge } else { JobKind::Spill };
        Some((job(kind, best.node), best.cost))
    }
}

impl<F> Node<F> {
    fn is_mostly_unmerged(&self) -> bool {
        let merged = self.lists.first().filter(|oldest| oldest.is_bottom).map_or(0, |oldest| oldest.bytes);
        self.is_leaf() && merged <= self.bytes() / 2
    }
}

/// Looks at a node that so great a share of all lookups comes by, and at those below.
fn visit<'a, F>(
    node: &'a Node<F>,
    share: f64,
    busy: &BTreeSet<NodeId>,
    cost: &dyn Fn(&Node<F>) -> u64,
    best: &mut Option<Best<'a, F>>,
) {
    // A spill of many lists leaves one more list in each child, a merge one where many were.
    let spared = node.lists.len().saturating_sub(1) as f64 * share;
    if spared > 0.0 && !busy.contains(&node.id) {
        let cost = cost(node);
        let spared_by_cost = spared / cost.max(1) as f64;
        if best.as_ref().is_none_or(|best| spared_by_cost > best.spared_by_cost) {
            *best = Some(Best { spared_by_cost, node, cost });
        }
    }
    let share = share / node.children.len().max(1) as f64;
    node.children.iter().for_each(|child| visit(child, share, busy, cost, best));
}
