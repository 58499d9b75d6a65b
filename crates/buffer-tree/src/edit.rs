//! Edits: everything that can happen to a tree, said so explicitly that applying one needs nothing but the
//! tree before it. The manifest holds them with fragments named by id.

use forebay_base::Bound;

use crate::{NodeId, NodeRef, Portion};

/// How a list falls apart at a bound. A side that is certainly empty is `None` and gets no list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Division {
    /// What lies below the bound.
    pub below: Option<Portion>,
    /// What lies at or above it.
    pub above: Option<Portion>,
}

/// How a leaf falls apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Split {
    /// The new leaf, which takes what is at or above `at`; the old one keeps the rest.
    pub right: NodeId,
    /// Where.
    pub at: Bound,
    /// Of each list that stays, oldest first.
    pub lists: Vec<Division>,
}

/// One change of a tree.
#[derive(Clone, PartialEq, Debug)]
pub enum Edit<F> {
    /// The oldest lists of an inner node, or the root's buffer, became one list in each of these children.
    Spill {
        /// The node that spilled.
        node: NodeRef,
        /// How many of its oldest lists went down.
        lists: usize,
        /// What they became, unless all of it collapsed away.
        fragment: Option<F>,
        /// The children that hold a part of it, in order.
        children: Vec<(NodeId, Portion)>,
    },
    /// A leaf became two without a record being moved (the paper's section 3.3).
    FastSplit {
        /// The leaf.
        node: NodeRef,
        /// How.
        split: Split,
    },
    /// The oldest lists of a leaf became one: a merge, or with `split` a slow split (section 3.2.2).
    Rewrite {
        /// The leaf.
        node: NodeRef,
        /// How many of its oldest lists were merged.
        lists: usize,
        /// What they became, unless all of it collapsed away.
        fragment: Option<F>,
        /// How much that is.
        portion: Portion,
        /// How the leaf falls apart, if it does: first the new list, then those that came meanwhile.
        split: Option<Split>,
        /// What the leaf should remember: see [`Node::unsplittable_bytes`](crate::Node::unsplittable_bytes).
        unsplittable_bytes: u64,
    },
    /// An empty inner node became two.
    SplitInner {
        /// The node.
        node: NodeRef,
        /// The new node, which takes the children at or above `at`.
        right: NodeId,
        /// The low bound of its first child.
        at: Bound,
    },
    /// The root got a new level of empty inner nodes under it.
    Grow {
        /// The new nodes in order: each takes the root's children from its low bound to the next one's.
        nodes: Vec<NodeRef>,
    },
}

impl<F> Edit<F> {
    /// The node that it changes; `None` for the root's growth.
    pub fn node(&self) -> Option<&NodeRef> {
        match self {
            Self::Spill { node, .. }
            | Self::FastSplit { node, .. }
            | Self::Rewrite { node, .. }
            | Self::SplitInner { node, .. } => Some(node),
            Self::Grow { .. } => None,
        }
    }

    /// The fragment that it brings into the tree.
    pub fn fragment(&self) -> Option<&F> {
        match self {
            Self::Spill { fragment, .. } | Self::Rewrite { fragment, .. } => fragment.as_ref(),
            _ => None,
        }
    }

    /// The nodes that it makes.
    pub(crate) fn new_nodes(&self) -> Vec<NodeId> {
        match self {
            Self::Spill { .. } | Self::Rewrite { split: None, .. } => Vec::new(),
            Self::FastSplit { split, .. } | Self::Rewrite { split: Some(split), .. } => vec![split.right],
            Self::SplitInner { right, .. } => vec![*right],
            Self::Grow { nodes } => nodes.iter().map(|node| node.id).collect(),
        }
    }

    /// The same edit with another handle to its fragment, such as its id.
    pub fn map<G>(&self, mut change: impl FnMut(&F) -> G) -> Edit<G> {
        match self {
            Self::Spill { node, lists, fragment, children } => Edit::Spill {
                node: node.clone(),
                lists: *lists,
                fragment: fragment.as_ref().map(&mut change),
                children: children.clone(),
            },
            Self::FastSplit { node, split } => Edit::FastSplit { node: node.clone(), split: split.clone() },
            Self::Rewrite { node, lists, fragment, portion, split, unsplittable_bytes } => Edit::Rewrite {
                node: node.clone(),
                lists: *lists,
                fragment: fragment.as_ref().map(&mut change),
                portion: *portion,
                split: split.clone(),
                unsplittable_bytes: *unsplittable_bytes,
            },
            Self::SplitInner { node, right, at } => {
                Edit::SplitInner { node: node.clone(), right: *right, at: at.clone() }
            }
            Self::Grow { nodes } => Edit::Grow { nodes: nodes.clone() },
        }
    }
}
