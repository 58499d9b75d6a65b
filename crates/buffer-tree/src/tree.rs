//! The tree as a value, and the ways down it.
//!
//! **Invariant:** the root has no lists, its buffer being memory that the engine owns, and at least one
//! child. An empty tree is a root above one empty leaf.

use std::sync::Arc;

use forebay_base::{Bound, Range, Result};

use crate::{List, Node, NodeId, TreeOptions};

/// A buffer tree. Cheap to clone; edits copy one path of it.
#[derive(Debug)]
pub struct Tree<F> {
    pub(crate) options: TreeOptions,
    pub(crate) root: Arc<Node<F>>,
    pub(crate) next_node_id: u64,
}

impl<F> Clone for Tree<F> {
    fn clone(&self) -> Self {
        Self { options: self.options, root: Arc::clone(&self.root), next_node_id: self.next_node_id }
    }
}

impl<F> Tree<F> {
    /// An empty tree.
    pub fn new(options: TreeOptions) -> Self {
        let leaf = Arc::new(Node::new(NodeId(1), Range::all(), Vec::new(), Vec::new()));
        let root = Arc::new(Node::new(NodeId(0), Range::all(), Vec::new(), vec![leaf]));
        Self { options, root, next_node_id: 2 }
    }

    /// A tree of these leaves, which lie side by side and cover everything, under inner nodes without lists.
    pub fn of_leaves(options: TreeOptions, leaves: Vec<(Range, Vec<List<F>>)>) -> Self {
        let mut next_node_id = 1;
        let mut new_id = || {
            next_node_id += 1;
            NodeId(next_node_id - 1)
        };
        let mut nodes: Vec<Arc<Node<F>>> = leaves
            .into_iter()
            .map(|(range, lists)| Arc::new(Node::new(new_id(), range, lists, Vec::new())))
            .collect();
        while nodes.len() > options.children_max() {
            // As many as it takes, of about the same size.
            let groups = nodes.len().div_ceil(options.children_max());
            let size = nodes.len().div_ceil(groups);
            let group = |children: &[Arc<Node<F>>]| {
                let low = children.first().map(|child| child.range.low.clone()).unwrap_or_default();
                let high = children.last().and_then(|child| child.range.high.clone());
                Arc::new(Node::new(new_id(), Range { low, high }, Vec::new(), children.to_vec()))
            };
            nodes = nodes.chunks(size).map(group).collect();
        }
        let root = Arc::new(Node::new(NodeId(0), Range::all(), Vec::new(), nodes));
        let tree = Self { options, root, next_node_id };
        debug_assert_eq!(tree.check(), Ok(()), "leaves lie side by side and cover everything");
        tree
    }

    /// Its options.
    pub fn options(&self) -> &TreeOptions {
        &self.options
    }

    /// Its root.
    pub fn root(&self) -> &Arc<Node<F>> {
        &self.root
    }

    /// Bytes that wait above the limits of their nodes: what the engine slows writers by.
    pub fn debt_bytes(&self) -> u64 {
        self.root.debt_bytes(&self.options)
    }

    /// The levels below the root.
    pub fn height(&self) -> usize {
        let mut height = 0;
        let mut node = &self.root;
        while let Some(child) = node.children.first() {
            node = child;
            height += 1;
        }
        height
    }

    /// The nodes below the root that may hold the place, down to the leaf: the newest records first.
    pub fn path<'t>(&'t self, prefix: u64, key: &[u8]) -> impl Iterator<Item = &'t Arc<Node<F>>> {
        let below =
            move |node: &'t Arc<Node<F>>| node.child_at(prefix, key).map(|child| &node.children[child]);
        std::iter::successors(below(&self.root), move |node| below(node))
    }

    /// The path to the leaf that is responsible for `at`, and that leaf's range.
    pub fn leaf_path(&self, at: &Bound) -> (Vec<Arc<Node<F>>>, Range) {
        let path: Vec<_> = self.path(at.prefix, &at.key).cloned().collect();
        debug_assert!(
            path.last().is_some_and(|leaf| leaf.is_leaf() && leaf.range.contains(at.prefix, &at.key))
        );
        let range = path.last().map_or_else(Range::all, |leaf| leaf.range.clone());
        (path, range)
    }

    /// The path to the leaf of the records just below `at`, or below the end, and that leaf's range; `None`
    /// when nothing lies before `at`.
    pub fn leaf_path_before(&self, at: Option<&Bound>) -> Option<(Vec<Arc<Node<F>>>, Range)> {
        if at.is_some_and(|at| *at == Bound::least()) {
            return None;
        }
        let mut path: Vec<Arc<Node<F>>> = Vec::new();
        let mut node = &self.root;
        while !node.is_leaf() {
            let below = node.children.partition_point(|child| at.is_none_or(|at| child.range.low < *at));
            node = &node.children[below.checked_sub(1)?];
            path.push(Arc::clone(node));
        }
        Some((path, node.range.clone()))
    }

    /// Calls `visit` with every node and its depth, parents before children, in order; the root's depth is 0.
    pub fn for_each_node(&self, visit: &mut impl FnMut(usize, &Node<F>)) {
        fn walk<F>(node: &Node<F>, depth: usize, visit: &mut impl FnMut(usize, &Node<F>)) {
            visit(depth, node);
            node.children.iter().for_each(|child| walk(child, depth + 1, visit));
        }
        walk(&self.root, 0, visit);
    }

    /// The fragment of every list; one that several lists share comes several times.
    pub fn fragments(&self) -> Vec<F>
    where
        F: Clone,
    {
        let mut fragments = Vec::new();
        self.for_each_node(&mut |_, node| {
            fragments.extend(node.lists.iter().map(|list| list.fragment.clone()))
        });
        fragments
    }

    /// The same tree over other handles, such as the ids of its fragments.
    pub fn map<G>(&self, mut change: impl FnMut(&F) -> Result<G>) -> Result<Tree<G>> {
        let root = Arc::new(map_node(&self.root, &mut change)?);
        Ok(Tree { options: self.options, root, next_node_id: self.next_node_id })
    }

    /// The same tree under other options.
    pub fn with_options(&self, options: TreeOptions) -> Result<Self>
    where
        F: Clone,
    {
        options.validate()?;
        // A new root down to the leaves: what nodes cache depends on the options.
        Ok(Self { options, ..self.map(|fragment| Ok(fragment.clone()))? })
    }
}

fn map_node<F, G>(node: &Node<F>, change: &mut impl FnMut(&F) -> Result<G>) -> Result<Node<G>> {
    let mut lists = Vec::with_capacity(node.lists.len());
    for list in &node.lists {
        lists.push(List::new(change(&list.fragment)?, list.portion(), list.is_bottom));
    }
    let mut children = Vec::with_capacity(node.children.len());
    for child in node.children.iter() {
        children.push(Arc::new(map_node(child, change)?));
    }
    let mut mapped = Node::new(node.id, node.range.clone(), lists, children);
    mapped.fast_splits = node.fast_splits;
    mapped.unsplittable_bytes = node.unsplittable_bytes;
    Ok(mapped)
}
