//! Planning: what should be done next. Pure over metadata, so that the same rules, driven by a model that
//! counts bytes, simulate a tree of any size.
//!
//! Three edits cost nothing and come first: growing the root, splitting an empty inner node, and a leaf's
//! fast split. Then the node that is furthest over its limits gets a job.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::divide::divide;
use crate::{Division, Edit, Fragment, List, Node, NodeId, NodeRef, Split, Tree};

/// What a job does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobKind {
    /// An inner node's lists become one list in each child (the paper's section 3.2.1).
    Spill,
    /// A full leaf's lists become one and fall in two (section 3.2.2), unless collapsing leaves little.
    SlowSplit,
    /// A leaf's lists become one, which falls in two only if it still fills the leaf.
    Merge,
}

impl JobKind {
    /// The size from which what a leaf's job writes falls in two, by the leaf's threshold; `None` for a spill,
    /// which is not a leaf's.
    pub(crate) fn split_bytes(self, threshold_bytes: u64) -> Option<u64> {
        match self {
            Self::Spill => None,
            Self::SlowSplit => Some(threshold_bytes / 2),
            Self::Merge => Some(threshold_bytes),
        }
    }
}

/// A job to run. The engine keeps its node among the busy ones until the edit is applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobPlan {
    /// What to do.
    pub kind: JobKind,
    /// The node to do it to.
    pub node: NodeRef,
    /// How many of the node's oldest lists are taken; newer ones may arrive meanwhile.
    pub lists: usize,
}

/// The next thing to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Work<F> {
    /// Apply this now: it moves no record.
    Now(Edit<F>),
    /// Run this beside other work.
    Job(JobPlan),
}

/// What a node asks for, and how badly: 1.0 is just at the limit.
#[derive(Clone, Copy)]
enum Want {
    SplitInner,
    Spill(f64),
    SplitLeaf { urgency: f64, fast: bool },
    Merge(f64),
}

/// The most that tombstones make of a leaf's urgency: they take space, and no writer waits for that.
const DEAD_URGENCY_MAX: f64 = 1.25;

impl<F: Fragment> Tree<F> {
    /// What to do next, leaving the busy nodes alone; `None` when there is nothing.
    pub fn next_work(&self, busy: &BTreeSet<NodeId>) -> Option<Work<F>> {
        if self.root.children.len() > self.options.children_max() && !busy.contains(&self.root.id) {
            return Some(Work::Now(self.grow()));
        }
        let mut wanted = Vec::new();
        self.collect(&self.root, busy, &mut wanted);
        let mut best: Option<(f64, JobPlan)> = None;
        for (node, want) in wanted {
            let (urgency, kind) = match want {
                Want::SplitInner => return Some(Work::Now(self.split_inner(node))),
                Want::Spill(urgency) => (urgency, JobKind::Spill),
                Want::Merge(urgency) => (urgency, JobKind::Merge),
                // How a leaf would fall in two is worked out from every list: not for one that only waits its turn.
                Want::SplitLeaf { urgency, fast } => match fast.then(|| self.fast_split(node)).flatten() {
                    Some(edit) => return Some(Work::Now(edit)),
                    None => (urgency, JobKind::SlowSplit),
                },
            };
            if best.as_ref().is_none_or(|(highest, _)| urgency > *highest) {
                best = Some((urgency, job(kind, node)));
            }
        }
        debug_assert!(best.as_ref().is_none_or(|(_, plan)| !busy.contains(&plan.node.id)));
        best.map(|(_, plan)| Work::Job(plan))
    }

    /// The next job of a full compaction, after which every record is in a leaf's one bottom list. What lies
    /// under a node that has yet to spill waits for it; so `None` means done only when nothing is busy.
    pub fn next_full_compaction(&self, busy: &BTreeSet<NodeId>) -> Option<JobPlan> {
        fn visit<F: Fragment>(node: &Node<F>, busy: &BTreeSet<NodeId>) -> Option<JobPlan> {
            let kind = match node.is_leaf() {
                true if node.is_fully_merged() => return None,
                true => JobKind::Merge,
                false if node.lists.is_empty() => {
                    return node.children.iter().find_map(|child| visit(child, busy));
                }
                false => JobKind::Spill,
            };
            (!busy.contains(&node.id)).then(|| job(kind, node))
        }
        visit(&self.root, busy)
    }

    fn collect<'a>(&self, node: &'a Node<F>, busy: &BTreeSet<NodeId>, wanted: &mut Vec<(&'a Node<F>, Want)>) {
        for child in node.children.iter().filter(|child| self.wants_work(child)) {
            if !busy.contains(&child.id) {
                wanted.extend(self.want(child).map(|want| (&**child, want)));
            }
            self.collect(child, busy, wanted);
        }
    }

    /// Whether planning finds anything in this subtree. It is remembered, so a plan looks only at what
    /// changed since the last one, and at what waits.
    fn wants_work(&self, node: &Node<F>) -> bool {
        let own = *node.wants_work.get_or_init(|| self.want(node).is_some());
        // Not `any`: each child should remember its own answer while it is at hand.
        let below = || node.children.iter().fold(false, |below, child| below | self.wants_work(child));
        *node.below.wants_work.get_or_init(below) || own
    }

    fn want(&self, node: &Node<F>) -> Option<Want> {
        let fill = node.bytes() as f64 / node.limit_bytes(&self.options) as f64;
        let repeats = node.repeats();
        let dead = (repeats.by_living / self.options.repeats_max).min(DEAD_URGENCY_MAX);
        let repeats = dead.max(repeats.by_key / self.options.repeats_max);
        if node.is_leaf() {
            self.want_of_leaf(node, fill, repeats)
        } else {
            self.want_of_inner(node, fill, repeats)
        }
    }

    fn want_of_inner(&self, node: &Node<F>, fill: f64, repeats: f64) -> Option<Want> {
        let crowded = node.children.len() as f64 / self.options.children_max() as f64;
        if node.lists.is_empty() {
            return (crowded > 1.0).then_some(Want::SplitInner);
        }
        // Only an empty node splits. One whose parent never leaves it empty must be emptied for it.
        let urgency = fill.max(crowded / 2.0);
        (fill >= 1.0 || repeats > 1.0 || crowded > 2.0).then_some(Want::Spill(urgency.max(repeats)))
    }

    fn want_of_leaf(&self, node: &Node<F>, fill: f64, repeats: f64) -> Option<Want> {
        let lists = node.lists.len() as f64 / self.options.lists_limit(node.id) as f64;
        let merge = !node.is_fully_merged() && (lists > 1.0 || repeats > 1.0);
        let urgency = fill.max(lists).max(repeats);
        if fill >= 1.0 {
            // A merge of one bottom list would collapse nothing, so only the cheap split makes sense there.
            let fast = node.is_fully_merged() || !merge && node.fast_splits < self.options.fast_per_slow;
            return Some(Want::SplitLeaf { urgency, fast });
        }
        merge.then_some(Want::Merge(urgency))
    }

    /// Divides every list of a leaf at the middle of its largest one (the paper's section 3.3 takes the
    /// median of a list at random). `None` where that list cannot be divided.
    fn fast_split(&self, node: &Node<F>) -> Option<Edit<F>> {
        let largest = node.lists.iter().max_by_key(|list| list.bytes)?;
        let at = largest.fragment.middle(&node.range).filter(|at| node.range.can_split_at(at))?;
        let divide = |list: &List<F>| divide(&list.fragment, &node.range, list.portion(), &at);
        let lists: Vec<Division> = node.lists.iter().map(divide).collect();
        let both =
            lists.iter().any(|list| list.below.is_some()) && lists.iter().any(|list| list.above.is_some());
        let split = Split { right: NodeId(self.next_node_id), at, lists };
        both.then(|| Edit::FastSplit { node: node.reference(), split })
    }

    fn split_inner(&self, node: &Node<F>) -> Edit<F> {
        debug_assert!(node.lists.is_empty() && node.children.len() >= 4, "both halves have two children");
        let at = node.children[node.children.len() / 2].range.low.clone();
        Edit::SplitInner { node: node.reference(), right: NodeId(self.next_node_id), at }
    }

    /// A new level under the root, of nodes that are about half full.
    fn grow(&self) -> Edit<F> {
        let children = &self.root.children;
        let groups = children.len() / self.options.children_max().div_ceil(2);
        debug_assert!(groups > 0 && groups < children.len(), "the root gets fewer children");
        let first = |group: usize| &children[group * children.len() / groups];
        let node = |(group, id)| NodeRef { id: NodeId(id), low: first(group).range.low.clone() };
        Edit::Grow { nodes: (0..groups).zip(self.next_node_id..).map(node).collect() }
    }
}

pub(crate) fn job<F>(kind: JobKind, node: &Node<F>) -> JobPlan {
    JobPlan { kind, node: node.reference(), lists: node.lists.len() }
}

impl<F> Tree<F> {
    /// The job that rewrites a node although none of its limits asks for that.
    pub fn rewrite(&self, node: &Node<F>) -> JobPlan {
        job(if node.is_leaf() { JobKind::Merge } else { JobKind::Spill }, node)
    }

    /// The node, wherever it has got to since.
    pub fn find(&self, at: &NodeRef) -> Option<&Arc<Node<F>>> {
        std::iter::once(&self.root)
            .chain(self.path(at.low.prefix, &at.low.key))
            .find(|node| node.id == at.id && node.range.low == at.low)
    }
}
