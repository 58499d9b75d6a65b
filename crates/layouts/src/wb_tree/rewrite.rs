//! Nodes that keep files although most of them is of no use any more: while idle, or where the table's space is
//! bounded, those are spilled or merged whose share in what is dead is more than what they have themselves. And nodes
//! that have values in value files which are to be emptied.

use std::collections::BTreeSet;

use forebay_buffer_tree::{JobPlan, NodeId};
use forebay_store::ListFile;

use super::WbTree;
use crate::seam::{by_file, is_wasteful};

impl WbTree {
    pub(super) fn next_rewrite(&self, busy: &BTreeSet<NodeId>) -> Option<JobPlan> {
        let wasteful = self.wasteful.get_or_init(|| self.find_wasteful());
        wasteful.iter().find(|plan| !busy.contains(&plan.node.id)).cloned()
    }

    /// A node that keeps a value file from going.
    pub(super) fn next_collection(&self, busy: &BTreeSet<NodeId>) -> Option<JobPlan> {
        if !self.context.store.lists.values.is_collecting() {
            return None;
        }
        self.next_node(busy, ListFile::is_collected)
    }

    /// A node that has something of such a file.
    pub(super) fn next_node(
        &self,
        busy: &BTreeSet<NodeId>,
        is_such: impl Fn(&ListFile) -> bool,
    ) -> Option<JobPlan> {
        let mut found = None;
        self.tree.for_each_node(&mut |_, node| {
            let mut lists = node.lists().iter();
            if found.is_none() && !busy.contains(&node.id()) && lists.any(|list| is_such(&list.fragment.0)) {
                found = Some(self.tree.rewrite(node));
            }
        });
        found
    }

    fn find_wasteful(&self) -> Vec<JobPlan> {
        let files = by_file(self);
        let node_bytes = self.tree.options().node_bytes;
        let mut found = Vec::new();
        self.tree.for_each_node(&mut |_, node| {
            // A file goes once all who share it have rewritten their part.
            let shares = node.lists().iter().filter_map(|list| files.get(&list.fragment.0.id()));
            let gain: u64 = shares
                .filter(|file| is_wasteful(file, node_bytes))
                .map(|file| file.dead_bytes() / file.lists.max(1))
                .sum();
            if gain > node.bytes() {
                found.push((gain as f64 / node.bytes().max(1) as f64, self.tree.rewrite(node)));
            }
        });
        found.sort_by(|(left, _), (right, _)| right.total_cmp(left));
        found.into_iter().map(|(_, plan)| plan).collect()
    }
}
