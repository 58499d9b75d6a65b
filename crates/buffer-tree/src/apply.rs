//! Applying an edit: one new path from the root, all else shared.
//!
//! **Contract:** an edit that does not fit the tree is an error and never a panic, because recovery feeds
//! this whatever a log with good checksums holds.

use std::sync::Arc;

use forebay_base::{Bound, Error, Range, Result};

use crate::{Edit, List, Node, NodeId, NodeRef, Portion, Split, Tree};

/// By how many lists more or fewer a fragment is pointed at.
type Changes<F> = Vec<(F, i32)>;

impl<F: Clone> Tree<F> {
    /// The tree after the edit, and the changes of its fragments' reference counts, one for each fragment
    /// that the edit touched.
    pub fn apply(&self, edit: &Edit<F>) -> Result<(Self, Vec<(F, i32)>)> {
        let mut changes = Vec::new();
        let next_node_id = self.next_id_after(edit)?;
        let root = match edit {
            Edit::Grow { nodes } => Arc::new(grow(&self.root, nodes)?),
            Edit::Spill { node, lists, fragment, children } => {
                let spilled = (*lists, fragment.as_ref(), &children[..]);
                self.change(node, |node| Ok(vec![spill(node, spilled, &mut changes)?]))?
            }
            Edit::FastSplit { node, split } => self.change(node, |node| {
                check_leaf(node)?;
                Ok(split_leaf(node, node.lists.clone(), split, &mut changes)?.into())
            })?,
            Edit::Rewrite { node, lists, fragment, portion, split, unsplittable_bytes } => {
                let written = fragment.as_ref().map(|fragment| List::new(fragment.clone(), *portion, true));
                self.change(node, |node| {
                    let mut nodes = rewrite(node, *lists, written, split.as_ref(), &mut changes)?;
                    nodes.iter_mut().for_each(|node| node.unsplittable_bytes = *unsplittable_bytes);
                    Ok(nodes)
                })?
            }
            Edit::SplitInner { node, right, at } => {
                self.change(node, |node| split_inner(node, *right, at))?
            }
        };
        Ok((Self { options: self.options, root, next_node_id }, changes))
    }

    fn next_id_after(&self, edit: &Edit<F>) -> Result<u64> {
        edit.new_nodes().into_iter().try_fold(self.next_node_id, |next, id| match id.0.checked_add(1) {
            Some(after) if id.0 >= next => Ok(after),
            _ => Err(Error::invalid(format!("the edit makes node {} again", id.0))),
        })
    }

    /// Puts what `change` makes of one node in its place.
    fn change(
        &self,
        at: &NodeRef,
        change: impl FnOnce(&Node<F>) -> Result<Vec<Node<F>>>,
    ) -> Result<Arc<Node<F>>> {
        let mut nodes = replace(&self.root, at, change)?;
        match (nodes.pop(), nodes.is_empty()) {
            (Some(root), true) => Ok(Arc::new(root)),
            _ => Err(Error::invalid("the edit splits the root, which can only grow")),
        }
    }
}

fn replace<F: Clone>(
    node: &Node<F>,
    at: &NodeRef,
    change: impl FnOnce(&Node<F>) -> Result<Vec<Node<F>>>,
) -> Result<Vec<Node<F>>> {
    if node.id == at.id && node.range.low == at.low {
        return change(node);
    }
    let Some(index) = node.child_at(at.low.prefix, &at.low.key) else {
        return Err(Error::invalid(format!("there is no node {} at its bound", at.id.0)));
    };
    let changed = replace(&node.children[index], at, change)?;
    let mut children = node.children.clone();
    children.splice(index..=index, changed.into_iter().map(Arc::new));
    Ok(vec![node.with_children(children)])
}

fn check_leaf<F>(node: &Node<F>) -> Result<()> {
    if node.is_leaf() { Ok(()) } else { Err(Error::invalid(format!("node {} is no leaf", node.id.0))) }
}

/// The lists that stay when the oldest `count` go.
fn take_oldest<F: Clone>(node: &Node<F>, count: usize, changes: &mut Changes<F>) -> Result<Vec<List<F>>> {
    let Some((oldest, newer)) = node.lists.split_at_checked(count) else {
        return Err(Error::invalid(format!(
            "node {} has {} lists, not {count}",
            node.id.0,
            node.lists.len()
        )));
    };
    changes.extend(oldest.iter().map(|list| (list.fragment.clone(), -1)));
    Ok(newer.to_vec())
}

fn spill<F: Clone>(
    node: &Node<F>,
    (lists, fragment, parts): (usize, Option<&F>, &[(NodeId, Portion)]),
    changes: &mut Changes<F>,
) -> Result<Node<F>> {
    if node.is_leaf() {
        return Err(Error::invalid(format!("leaf {} cannot spill", node.id.0)));
    }
    let mut spilled = node.with_lists(take_oldest(node, lists, changes)?);
    let mut left = parts.iter().peekable();
    for child in &mut spilled.children {
        let Some((_, portion)) = left.next_if(|(id, _)| *id == child.id) else { continue };
        let Some(fragment) = fragment else {
            return Err(Error::invalid(format!("node {} spills parts of nothing", node.id.0)));
        };
        let mut lists = child.lists.clone();
        lists.push(List::new(fragment.clone(), *portion, false));
        *child = Arc::new(child.with_lists(lists));
    }
    if let Some((id, _)) = left.next() {
        return Err(Error::invalid(format!("node {} has no child {}, or not there", node.id.0, id.0)));
    }
    changes.extend(fragment.map(|fragment| (fragment.clone(), parts.len() as i32)));
    Ok(spilled)
}

/// Two leaves of one. Each list falls apart as the split says, and the sum must be what there was.
fn split_leaf<F: Clone>(
    node: &Node<F>,
    lists: Vec<List<F>>,
    split: &Split,
    changes: &mut Changes<F>,
) -> Result<[Node<F>; 2]> {
    if !node.range.can_split_at(&split.at) || lists.len() != split.lists.len() {
        return Err(Error::invalid(format!("the split does not fit leaf {}", node.id.0)));
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (list, division) in lists.into_iter().zip(&split.lists) {
        let sum = division.below.unwrap_or_default().checked_add(division.above.unwrap_or_default());
        if sum != Some(list.portion()) {
            return Err(Error::invalid(format!("the split of leaf {} loses or adds records", node.id.0)));
        }
        let part = |portion: Option<Portion>| {
            portion.map(|portion| List::new(list.fragment.clone(), portion, list.settled))
        };
        let before = left.len() + right.len();
        left.extend(part(division.below));
        right.extend(part(division.above));
        changes.push((list.fragment, (left.len() + right.len() - before) as i32 - 1));
    }
    let lower = Range { low: node.range.low.clone(), high: Some(split.at.clone()) };
    let upper = Range { low: split.at.clone(), high: node.range.high.clone() };
    let mut halves =
        [Node::new(node.id, lower, left, Vec::new()), Node::new(split.right, upper, right, Vec::new())];
    halves.iter_mut().for_each(|half| half.fast_splits = node.fast_splits.saturating_add(1));
    Ok(halves)
}

fn rewrite<F: Clone>(
    node: &Node<F>,
    lists: usize,
    written: Option<List<F>>,
    split: Option<&Split>,
    changes: &mut Changes<F>,
) -> Result<Vec<Node<F>>> {
    check_leaf(node)?;
    let newer = take_oldest(node, lists, changes)?;
    if newer.iter().any(|list| list.settled) {
        return Err(Error::invalid(format!(
            "the settled list of leaf {} would not be its oldest",
            node.id.0
        )));
    }
    changes.extend(written.iter().map(|list| (list.fragment.clone(), 1)));
    let kept: Vec<_> = written.into_iter().chain(newer).collect();
    let mut nodes = match split {
        None => vec![node.with_lists(kept)],
        Some(split) => {
            let mut divided = Vec::new();
            let halves = split_leaf(node, kept, split, &mut divided)?;
            merge_changes(changes, divided, lists);
            halves.into()
        }
    };
    nodes.iter_mut().for_each(|node| node.fast_splits = 0);
    Ok(nodes)
}

/// Adds what dividing did. The first change behind those of the merged lists is the new fragment's, if there
/// is one, and dividing names it first too.
fn merge_changes<F>(changes: &mut Changes<F>, divided: Changes<F>, merged: usize) {
    let mut divided = divided.into_iter();
    for (change, (_, more)) in changes[merged..].iter_mut().zip(&mut divided) {
        change.1 += more;
    }
    changes.extend(divided);
}

/// Splitting a node that still buffers records would leave them in one half: only an empty one may split.
fn split_inner<F: Clone>(node: &Node<F>, right: NodeId, at: &Bound) -> Result<Vec<Node<F>>> {
    let index = node.children.partition_point(|child| child.range.low < *at);
    if !node.lists.is_empty()
        || index == 0
        || node.children.get(index).is_none_or(|child| child.range.low != *at)
    {
        return Err(Error::invalid(format!("inner node {} cannot be split there", node.id.0)));
    }
    let (left, above) = node.children.split_at(index);
    let lower = Range { low: node.range.low.clone(), high: Some(at.clone()) };
    let upper = Range { low: at.clone(), high: node.range.high.clone() };
    Ok(vec![
        Node::new(node.id, lower, Vec::new(), left.to_vec()),
        Node::new(right, upper, Vec::new(), above.to_vec()),
    ])
}

fn grow<F: Clone>(root: &Node<F>, nodes: &[NodeRef]) -> Result<Node<F>> {
    let wrong = || Error::invalid("the root cannot grow in these groups");
    let starts: Option<Vec<usize>> = nodes
        .iter()
        .map(|node| root.children.binary_search_by(|child| child.range.low.cmp(&node.low)).ok())
        .collect();
    let mut starts = starts.ok_or_else(wrong)?;
    let ascending = starts.windows(2).all(|pair| pair[0] < pair[1]);
    if starts.first() != Some(&0) || !ascending || starts.len() >= root.children.len() {
        return Err(wrong());
    }
    starts.push(root.children.len());
    let groups = starts.windows(2).zip(nodes).map(|(group, node)| {
        let children = root.children[group[0]..group[1]].to_vec();
        let high = root.children.get(group[1]).map(|child| child.range.low.clone());
        Arc::new(Node::new(node.id, Range { low: node.low.clone(), high }, Vec::new(), children))
    });
    Ok(root.with_children(groups.collect()))
}
