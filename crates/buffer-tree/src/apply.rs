//! Applying an edit: one new path from the root, all else shared. A tree that shares nothing is changed where
//! it is.
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
        let mut tree = self.clone();
        let changes = tree.apply_in_place(edit)?;
        if cfg!(invariants) {
            assert_eq!(tree.check(), Ok(()), "an edit that fits leaves a sound tree");
        }
        Ok((tree, changes))
    }

    /// As [`apply`](Self::apply), to this very tree: nodes that no other tree shares are not copied. After an
    /// error the tree can only be dropped.
    pub fn apply_in_place(&mut self, edit: &Edit<F>) -> Result<Vec<(F, i32)>> {
        let mut changes = Vec::new();
        self.next_node_id = self.next_id_after(edit)?;
        match edit {
            Edit::Grow { nodes } => self.root = Arc::new(grow(&self.root, nodes)?),
            Edit::Spill { node, lists, fragment, children } => {
                let spilled = (*lists, fragment.as_ref(), &children[..]);
                self.change(node, |node| spill(node, spilled, &mut changes).map(|()| None))?;
            }
            Edit::FastSplit { node, split } => self.change(node, |node| {
                check_leaf(node)?;
                let lists = node.replace_lists(Vec::new());
                split_leaf(node, lists, split, &mut changes).map(Some)
            })?,
            Edit::Rewrite { node, lists, fragment, portion, split, unsplittable_bytes } => {
                let written = fragment.as_ref().map(|fragment| List::new(fragment.clone(), *portion, true));
                self.change(node, |node| {
                    let mut right = rewrite(node, *lists, written, split.as_ref(), &mut changes)?;
                    for half in std::iter::once(node).chain(&mut right) {
                        (half.fast_splits, half.unsplittable_bytes) = (0, *unsplittable_bytes);
                    }
                    Ok(right)
                })?;
            }
            Edit::SplitInner { node, right, at } => {
                self.change(node, |node| split_inner(node, *right, at).map(Some))?;
            }
        }
        Ok(changes)
    }

    fn next_id_after(&self, edit: &Edit<F>) -> Result<u64> {
        edit.new_nodes().into_iter().try_fold(self.next_node_id, |next, id| match id.0.checked_add(1) {
            Some(after) if id.0 >= next => Ok(after),
            _ => Err(Error::bug(format!("the edit makes node {} again", id.0))),
        })
    }

    /// Changes one node. What `change` returns is put behind it.
    fn change(
        &mut self,
        at: &NodeRef,
        change: impl FnOnce(&mut Node<F>) -> Result<Option<Node<F>>>,
    ) -> Result<()> {
        match change_below(&mut self.root, at, change)? {
            None => Ok(()),
            Some(_) => Err(Error::bug("the edit splits the root, which can only grow")),
        }
    }
}

fn change_below<F: Clone>(
    node: &mut Arc<Node<F>>,
    at: &NodeRef,
    change: impl FnOnce(&mut Node<F>) -> Result<Option<Node<F>>>,
) -> Result<Option<Node<F>>> {
    if node.id == at.id && node.range.low == at.low {
        return change(Arc::make_mut(node));
    }
    let Some(index) = node.child_at(at.low.prefix, &at.low.key) else {
        return Err(Error::bug(format!("there is no node {} at its bound", at.id.0)));
    };
    let node = Arc::make_mut(node);
    if let Some(right) = change_below(&mut node.children_mut()[index], at, change)? {
        node.insert_child(index + 1, right);
    }
    Ok(None)
}

fn check_leaf<F>(node: &Node<F>) -> Result<()> {
    if node.is_leaf() { Ok(()) } else { Err(Error::bug(format!("node {} is no leaf", node.id.0))) }
}

/// Takes the oldest `count` lists; those that stay are returned, for the caller to give back.
fn take_oldest<F>(node: &mut Node<F>, count: usize, changes: &mut Changes<F>) -> Result<Vec<List<F>>> {
    let mut oldest = node.replace_lists(Vec::new());
    if oldest.len() < count {
        return Err(Error::bug(format!("node {} has {} lists, not {count}", node.id.0, oldest.len())));
    }
    let newer = oldest.split_off(count);
    changes.extend(oldest.into_iter().map(|list| (list.fragment, -1)));
    Ok(newer)
}

fn spill<F: Clone>(
    node: &mut Node<F>,
    (lists, fragment, parts): (usize, Option<&F>, &[(NodeId, Portion)]),
    changes: &mut Changes<F>,
) -> Result<()> {
    let id = node.id.0;
    if node.is_leaf() {
        return Err(Error::bug(format!("leaf {id} cannot spill")));
    }
    let newer = take_oldest(node, lists, changes)?;
    node.replace_lists(newer);
    let mut left = parts.iter().peekable();
    for child in node.children_mut() {
        let Some((_, portion)) = left.next_if(|(id, _)| *id == child.id) else { continue };
        let Some(fragment) = fragment else {
            return Err(Error::bug(format!("node {id} spills parts of nothing")));
        };
        Arc::make_mut(child).push_list(List::new(fragment.clone(), *portion, false));
    }
    if let Some((child, _)) = left.next() {
        return Err(Error::bug(format!("node {id} has no child {}, or not there", child.0)));
    }
    changes.extend(fragment.map(|fragment| (fragment.clone(), parts.len() as i32)));
    Ok(())
}

/// Makes a leaf its own lower half and returns the upper one. Each list falls apart as the split says, and
/// the sum must be what there was.
fn split_leaf<F: Clone>(
    node: &mut Node<F>,
    lists: Vec<List<F>>,
    split: &Split,
    changes: &mut Changes<F>,
) -> Result<Node<F>> {
    if !node.range.can_split_at(&split.at) || lists.len() != split.lists.len() {
        return Err(Error::bug(format!("the split does not fit leaf {}", node.id.0)));
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (list, division) in lists.into_iter().zip(&split.lists) {
        let sum = division.below.unwrap_or_default().checked_add(division.above.unwrap_or_default());
        if sum != Some(list.portion()) {
            return Err(Error::bug(format!("the split of leaf {} loses or adds records", node.id.0)));
        }
        let part = |portion: Option<Portion>| {
            portion.map(|portion| List::new(list.fragment.clone(), portion, list.is_bottom))
        };
        let before = left.len() + right.len();
        left.extend(part(division.below));
        right.extend(part(division.above));
        changes.push((list.fragment, (left.len() + right.len() - before) as i32 - 1));
    }
    let lower = Range { low: node.range.low.clone(), high: Some(split.at.clone()) };
    let upper = Range { low: split.at.clone(), high: node.range.high.clone() };
    let fast_splits = node.fast_splits.saturating_add(1);
    *node = Node::new(node.id, lower, left, Vec::new());
    let mut above = Node::new(split.right, upper, right, Vec::new());
    (node.fast_splits, above.fast_splits) = (fast_splits, fast_splits);
    Ok(above)
}

fn rewrite<F: Clone>(
    node: &mut Node<F>,
    lists: usize,
    written: Option<List<F>>,
    split: Option<&Split>,
    changes: &mut Changes<F>,
) -> Result<Option<Node<F>>> {
    check_leaf(node)?;
    let newer = take_oldest(node, lists, changes)?;
    if newer.iter().any(|list| list.is_bottom) {
        return Err(Error::bug(format!("the bottom list of leaf {} would not be its oldest", node.id.0)));
    }
    changes.extend(written.iter().map(|list| (list.fragment.clone(), 1)));
    let kept: Vec<_> = written.into_iter().chain(newer).collect();
    let Some(split) = split else {
        node.replace_lists(kept);
        return Ok(None);
    };
    let mut divided = Vec::new();
    let right = split_leaf(node, kept, split, &mut divided)?;
    merge_changes(changes, divided, lists);
    Ok(Some(right))
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

/// Makes an inner node its own lower half and returns the upper one. Splitting a node that still buffers
/// records would leave them in one half: only an empty one may split.
fn split_inner<F: Clone>(node: &mut Node<F>, right: NodeId, at: &Bound) -> Result<Node<F>> {
    let index = node.children.partition_point(|child| child.range.low < *at);
    if !node.lists.is_empty()
        || index == 0
        || node.children.get(index).is_none_or(|child| child.range.low != *at)
    {
        return Err(Error::bug(format!("inner node {} cannot be split there", node.id.0)));
    }
    let (left, above) = node.children.split_at(index);
    let lower = Range { low: node.range.low.clone(), high: Some(at.clone()) };
    let upper = Range { low: at.clone(), high: node.range.high.clone() };
    debug_assert!(!left.is_empty() && !above.is_empty(), "no half is without children");
    let above = Node::new(right, upper, Vec::new(), above.to_vec());
    *node = Node::new(node.id, lower, Vec::new(), left.to_vec());
    Ok(above)
}

fn grow<F: Clone>(root: &Node<F>, nodes: &[NodeRef]) -> Result<Node<F>> {
    let wrong = || Error::bug("the root cannot grow in these groups");
    let starts: Option<Vec<usize>> = nodes
        .iter()
        .map(|node| root.children.binary_search_by(|child| child.range.low.cmp(&node.low)).ok())
        .collect();
    let mut starts = starts.ok_or_else(wrong)?;
    let ascending = starts.windows(2).all(|pair| pair[0] < pair[1]);
    if starts.first() != Some(&0) || !ascending || starts.len() >= root.children.len() {
        return Err(wrong());
    }
    debug_assert_eq!(starts.len(), nodes.len());
    starts.push(root.children.len());
    let groups = starts.windows(2).zip(nodes).map(|(group, node)| {
        let children = root.children[group[0]..group[1]].to_vec();
        let high = root.children.get(group[1]).map(|child| child.range.low.clone());
        Arc::new(Node::new(node.id, Range { low: node.low.clone(), high }, Vec::new(), children))
    });
    Ok(Node::new(root.id, root.range.clone(), Vec::new(), groups.collect()))
}
