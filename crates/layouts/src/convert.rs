//! From one key-ordered organisation to another, without moving a record: the lists of a tree are the parts of runs,
//! and the other way round.
//!
//! **Invariant:** of the records of a key, the order in age stays as it was. What a merge has taken from a file and
//! written elsewhere is not seen again: a leaf never reaches beyond what a part stands for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_base::{Bound, Range};
use forebay_buffer_tree::{Fragment, List, Tree, TreeOptions};

use crate::files::{self, DataFile};
use crate::run_set::{Part, Policy, Run, RunSet};

type Parts<F> = Vec<Arc<Part<F>>>;

/// The runs of a tree: of each level the newest lists of all nodes, the next ones, and so on.
pub(crate) fn runs_of(tree: &Tree<files::Fragment>, policy: Policy) -> RunSet<DataFile> {
    let mut runs: BTreeMap<(usize, Reverse<usize>), Parts<DataFile>> = BTreeMap::new();
    tree.for_each_node(&mut |depth, node| {
        for (age, list) in node.lists().iter().enumerate() {
            let (range, portion) = (node.range().clone(), list.portion());
            let fragment = DataFile::List(Arc::clone(&list.fragment.0));
            let part = Part { range, fragment, portion, is_bottom: false };
            runs.entry((depth, Reverse(age))).or_default().push(Arc::new(part));
        }
    });
    let mut set = RunSet::new(policy, tree.options().node_bytes);
    for ((depth, _), parts) in runs {
        set.push_run(depth.saturating_sub(1) as u32, parts);
    }
    if cfg!(debug_assertions) {
        let mut records = 0;
        tree.for_each_node(&mut |_, node| records += node.records());
        assert_eq!(records, set.parts().map(|part| part.portion.records).sum::<u64>(), "no list is lost");
        assert_eq!(set.check(), Ok(()), "the lists of a level lie side by side");
    }
    set
}

/// The tree of some runs: a leaf for every part of the largest, and more where a part stands for less than its file.
pub(crate) fn tree_of<F: Fragment>(set: &RunSet<F>, options: TreeOptions) -> Tree<F> {
    let largest = set.runs().iter().max_by_key(|run| run.bytes());
    let mut bounds: BTreeSet<Bound> = BTreeSet::new();
    for part in largest.iter().flat_map(|run| run.parts()) {
        bounds.extend([Some(part.range.low.clone()), part.range.high.clone()].into_iter().flatten());
    }
    for part in set.runs().iter().flat_map(|run| run.parts()) {
        let below = |bound: &Bound| part.fragment.share_below(&Range::all(), bound);
        bounds.extend(Some(&part.range.low).filter(|low| below(low) > 0.0).cloned());
        bounds.extend(part.range.high.iter().filter(|high| below(high) < 1.0).cloned());
    }
    bounds.remove(&Bound::least());
    let lows = [Bound::least()].into_iter().chain(bounds.iter().cloned());
    let highs = bounds.iter().cloned().map(Some).chain([None]);
    let leaves = lows.zip(highs).map(|(low, high)| {
        let range = Range { low, high };
        let lists = lists_of(set.runs(), &range);
        (range, lists)
    });
    Tree::of_leaves(options, leaves.collect())
}

/// What runs have of a leaf's range, oldest first.
fn lists_of<F: Fragment>(runs: &[Arc<Run<F>>], range: &Range) -> Vec<List<F>> {
    let parts = runs.iter().rev().flat_map(|run| &run.parts()[run.overlapping(range)]);
    let mut lists: Vec<List<F>> = Vec::new();
    for part in parts {
        if let Some(portion) = part.portion_in(range) {
            let is_bottom = lists.is_empty() && part.is_bottom;
            lists.push(List::new(part.fragment.clone(), portion, is_bottom));
        }
    }
    lists
}
