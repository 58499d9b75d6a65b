//! Checks of a whole tree: of its structure, which every tree must pass, and of what its lists hold.

use std::collections::BTreeSet;

use forebay_base::Kind;
use forebay_base::merge::Cursor;

use crate::{FragmentStore, List, Node, NodeId, Tree};

/// How far a list's count of records is to be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    /// The store's shares are exact, and so must be all counts.
    Exact,
    /// Shares are estimates.
    Estimated,
}

impl<F> Tree<F> {
    /// Says what is wrong with the tree's structure, if anything is.
    pub fn check(&self) -> Result<(), String> {
        let root = &self.root;
        ensure(root.lists.is_empty(), || "the root has lists".into())?;
        ensure(!root.is_leaf(), || "the root has no children".into())?;
        ensure(root.range == Default::default(), || "the root's range is not everything".into())?;
        let mut ids = BTreeSet::new();
        let height = self.height();
        self.check_subtree(root, height, &mut ids)
    }

    fn check_subtree(&self, node: &Node<F>, height: usize, ids: &mut BTreeSet<NodeId>) -> Result<(), String> {
        let id = node.id.0;
        ensure(ids.insert(node.id), || format!("two nodes have the id {id}"))?;
        ensure(id < self.next_node_id, || {
            format!("node {id} is not below the next id {}", self.next_node_id)
        })?;
        ensure(!node.range.is_empty(), || format!("node {id} has the empty range {:?}", node.range))?;
        ensure(node.is_leaf() == (height == 0), || format!("node {id} is at the wrong depth"))?;
        ensure(node.is_leaf() || node.lists.iter().all(|list| !list.is_bottom), || {
            format!("inner node {id} has a bottom list")
        })?;
        ensure(node.lists.iter().skip(1).all(|list| !list.is_bottom), || {
            format!("leaf {id} has a bottom list above another")
        })?;
        let mut low = Some(&node.range.low);
        for child in node.children.iter() {
            ensure(low == Some(&child.range.low), || {
                format!("there is a gap or an overlap before node {}", child.id.0)
            })?;
            low = child.range.high.as_ref();
            self.check_subtree(child, height - 1, ids)?;
        }
        let covered = node.is_leaf() || low == node.range.high.as_ref();
        ensure(covered, || format!("the children of node {id} do not end where it ends"))
    }

    /// Says what is wrong with what the lists hold, if anything is: reads everything.
    pub fn check_content<S>(&self, store: &S, counts: Counts) -> Result<(), String>
    where
        S: FragmentStore<Fragment = F>,
    {
        let mut outcome = Ok(());
        self.for_each_node(&mut |_, node| {
            for list in &node.lists {
                if outcome.is_ok() {
                    outcome = check_list(node, list, store, counts);
                }
            }
        });
        outcome
    }
}

fn check_list<F, S>(node: &Node<F>, list: &List<F>, store: &S, counts: Counts) -> Result<(), String>
where
    S: FragmentStore<Fragment = F>,
{
    let id = node.id.0;
    let failed = |error: forebay_base::Error| format!("a list of node {id} cannot be read: {error}");
    let mut cursor = store.cursor(&list.fragment, &node.range, 1).map_err(failed)?;
    let mut last: Option<(u64, Vec<u8>)> = None;
    let mut records = 0;
    while let Some(prefix) = cursor.prefix() {
        let record = cursor.record();
        let here = (prefix, record.key.to_vec());
        ensure(node.range.contains(prefix, record.key), || {
            format!("a record of node {id} is outside its range")
        })?;
        ensure(last.as_ref().is_none_or(|last| *last < here), || {
            format!("a list of node {id} is not sorted")
        })?;
        ensure(!list.is_bottom || matches!(record.kind, Kind::Put | Kind::Pointer), || {
            format!("a bottom list of leaf {id} holds a {:?}", record.kind)
        })?;
        last = Some(here);
        records += 1;
        cursor.advance().map_err(failed)?;
    }
    let right = counts == Counts::Estimated || records == list.records;
    ensure(right, || format!("a list of node {id} holds {records} records, not {}", list.records))
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
