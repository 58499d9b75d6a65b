//! Settling: fitting what a job made to the tree as it has become meanwhile. Children may have split, the
//! root may have grown, newer lists may have arrived; the job's node itself was busy and is as it was, apart
//! from those lists.

use std::sync::Arc;

use forebay_base::{Error, Range, Result};

use crate::divide::{Candidate, divide};
use crate::job::Written;
use crate::{Division, Edit, Fragment, Node, NodeId, Outcome, Portion, Split, Tree};

impl<F: Fragment> Tree<F> {
    /// The edit by which the outcome enters this tree. Apply it to this very tree.
    pub fn rebase(&self, outcome: Outcome<F>) -> Result<Edit<F>> {
        let Outcome { node: at, lists, fragment, result } = outcome;
        let Some(node) = self.find(&at).filter(|node| node.lists.len() >= lists) else {
            return Err(Error::bug(format!("node {} is gone", at.id.0)));
        };
        let edit = match result {
            Written::Children(pieces) => {
                let children = fragment.as_ref().map(|fragment| deal(fragment, pieces, &node.children));
                Edit::Spill { children: children.unwrap_or_default(), node: at, lists, fragment }
            }
            Written::Leaf { portion, split, unsplittable_bytes } => {
                let split = split.map(|half| self.split_leaf(node, lists, portion, half));
                Edit::Rewrite { node: at, lists, fragment, portion, split, unsplittable_bytes }
            }
        };
        debug_assert!(self.apply(&edit).is_ok(), "it fits the tree");
        Ok(edit)
    }

    /// How a leaf falls apart: the new list as it was counted, newer ones by their shares.
    fn split_leaf(&self, leaf: &Node<F>, merged: usize, whole: Portion, half: Candidate) -> Split {
        let Candidate { at, below } = half;
        debug_assert!(leaf.range.can_split_at(&at) && merged <= leaf.lists.len());
        let above = Portion { bytes: whole.bytes - below.bytes, records: whole.records - below.records };
        let first = Division { below: Some(below), above: Some(above) };
        let newer =
            leaf.lists[merged..].iter().map(|list| divide(&list.fragment, &leaf.range, list.portion(), &at));
        Split { right: NodeId(self.next_node_id), lists: std::iter::once(first).chain(newer).collect(), at }
    }
}

/// Deals the pieces, counted by the children that were, to the children that are. Where a child still has its
/// range the count stays exact; a piece that a new bound cuts is divided by the fragment's share.
fn deal<F: Fragment>(
    fragment: &F,
    pieces: Vec<(Range, Portion)>,
    children: &[Arc<Node<F>>],
) -> Vec<(NodeId, Portion)> {
    let records: u64 = pieces.iter().map(|(_, portion)| portion.records).sum();
    let mut dealt: Vec<(NodeId, Portion)> = Vec::new();
    let mut give = |child: &Node<F>, portion: Portion| match dealt.last_mut() {
        Some((id, sum)) if *id == child.id => {
            sum.bytes += portion.bytes;
            sum.records += portion.records;
        }
        _ => dealt.push((child.id, portion)),
    };
    let mut at = 0;
    for (mut range, portion) in pieces {
        let mut rest = Some(portion).filter(|portion| portion.records > 0);
        while let (Some(portion), Some(child)) = (rest, children.get(at)) {
            match &child.range.high {
                Some(high) if *high <= range.low => at += 1,
                Some(high) if range.can_split_at(high) => {
                    let Division { below, above } = divide(fragment, &range, portion, high);
                    below.into_iter().for_each(|portion| give(child, portion));
                    rest = above;
                    range.low = high.clone();
                }
                _ => {
                    give(child, portion);
                    rest = None;
                }
            }
        }
    }
    debug_assert_eq!(
        records,
        dealt.iter().map(|(_, portion)| portion.records).sum(),
        "each record has a child"
    );
    dealt
}
