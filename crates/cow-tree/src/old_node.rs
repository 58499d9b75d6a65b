//! A node of the tree before, while an append goes through it.

use std::sync::Arc;

use crate::node::{Key, Node};

/// An old node that is being copied.
#[derive(Clone)]
pub(crate) struct OldNode {
    pub(crate) node: Arc<Node>,
    /// What is before is copied or replaced.
    pub(crate) next: usize,
    pub(crate) low: Key,
    pub(crate) high: Option<Key>,
}

impl OldNode {
    /// The low bound of a child.
    pub(crate) fn low_of(&self, index: usize) -> Key {
        if index == 0 { self.low.clone() } else { self.node.key(index) }
    }

    pub(crate) fn high_of(&self, index: usize) -> Option<Key> {
        let next = index + 1;
        if next < self.node.len() { Some(self.node.key(next)) } else { self.high.clone() }
    }
}
