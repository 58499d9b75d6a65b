//! Leaves of which much has expired. Their oldest lists, which nothing older lies beneath, go by an edit and unread
//! once they are over; other leaves are merged. What inner nodes hold waits until it is spilled.

use std::collections::BTreeSet;

use forebay_buffer_tree::{Edit, Node, NodeId, Portion};

use super::{WbTree, encode};
use crate::files::Fragment;
use crate::seam::Planned;

impl WbTree {
    /// What to do about a leaf of which about this much has expired.
    pub(super) fn next_expired(&self, busy: &BTreeSet<NodeId>, share: f64) -> Option<Planned> {
        let now = self.context.now()?;
        let mut found = None;
        self.tree.for_each_node(&mut |_, node| {
            if found.is_none() && node.is_leaf() && !busy.contains(&node.id()) {
                found = self.drop_oldest(node, now).or_else(|| self.merge_expired(node, busy, share));
            }
        });
        found
    }

    fn drop_oldest(&self, node: &Node<Fragment>, now: u64) -> Option<Planned> {
        let is_over = |file: &Fragment| file.0.over_at(1.0).is_some_and(|at| at <= now);
        let lists = node.lists().iter().take_while(|list| is_over(&list.fragment)).count();
        debug_assert!(node.is_leaf(), "nothing older lies beneath, which would come back");
        (lists > 0).then(|| {
            let edit: Edit<Fragment> = Edit::Rewrite {
                node: self.tree.rewrite(node).node,
                lists,
                fragment: None,
                portion: Portion::default(),
                split: None,
                unsplittable_bytes: 0,
            };
            Planned::Edit(encode(&edit))
        })
    }

    fn merge_expired(&self, node: &Node<Fragment>, busy: &BTreeSet<NodeId>, share: f64) -> Option<Planned> {
        let expired = |list: &forebay_buffer_tree::List<Fragment>| {
            list.portion().bytes as f64 * list.fragment.0.expired_share()
        };
        let bytes: f64 = node.lists().iter().map(expired).sum();
        let is_worth_it = bytes > 0.0 && bytes >= share * node.bytes() as f64;
        is_worth_it.then(|| Planned::Job(self.plan(self.tree.rewrite(node), busy)))
    }
}
