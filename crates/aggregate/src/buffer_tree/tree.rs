//! The tree: an (a, b)-tree of hash ranges, all of whose leaves are equally deep, each of whose nodes has a buffer of
//! fragments [5.3.3]. Work is found and taken under a lock, done without it, and applied under it.
//!
//! 1. A full root buffer is sorted, by itself: buffers of a root are independent of each other and of the tree.
//! 2. What was sorted is given to the root's children, none of which may be full or be emptied meanwhile. A root without
//!    children is a leaf and gets two.
//! 3. A full inner node is emptied to its children likewise. A full leaf is merged, and divided in two.
//! 4. A node with too many children is divided once it is empty; where the root has, the tree grows by a level.
//!
//! **Invariant:** a node's children are in the order of their ranges, the first of which begins where the node's does.

use std::collections::VecDeque;

use forebay_env::sync::Arc;

use super::fragment::Fragment;
use super::meter::Held;
use super::records::Records;
use super::root::RootBuffer;

pub(super) type NodeId = usize;
const ROOT: NodeId = 0;

/// A node; the root's buffer is not here.
#[derive(Default)]
struct Node {
    /// The least hash of its range.
    low: u32,
    /// None: it is a leaf.
    children: Vec<NodeId>,
    fragments: Vec<Arc<Fragment>>,
    /// Of all fragments, unpacked.
    bytes: usize,
    /// It is being emptied.
    is_busy: bool,
}

/// What was sorted, with its memory.
pub(super) struct Sorted {
    pub(super) records: Records,
    pub(super) _held: Held,
}

/// What can be done next.
#[derive(Clone, Copy)]
pub(super) enum Next {
    Empty(NodeId),
    Spill,
    Sort,
}

/// A node's child with the least hash of its range.
#[derive(Clone, Copy)]
pub(super) struct Child {
    pub(super) id: NodeId,
    pub(super) low: u32,
}

/// A piece of work. A node that is emptied into no children is a leaf.
pub(super) enum Job {
    Sort(RootBuffer),
    Spill(Sorted, Vec<Child>),
    Empty(NodeId, Vec<Arc<Fragment>>, Vec<Child>),
}

/// What came of it.
pub(super) enum Outcome {
    Sorted(RootBuffer, Sorted),
    /// Fragments for children; of the root where no node is named.
    Given(Option<NodeId>, Vec<(NodeId, Fragment)>),
    /// One fragment, or two with the hash that divides them.
    Divided(Option<NodeId>, Fragment, Option<(u32, Fragment)>),
}

/// See the module.
pub(super) struct Tree {
    buffer_bytes: usize,
    fan_out: usize,
    nodes: Vec<Node>,
    /// Full root buffers.
    sealed: VecDeque<RootBuffer>,
    /// How many are being sorted.
    sorting: usize,
    sorted: VecDeque<Sorted>,
    /// Root buffers that are empty.
    free: Vec<RootBuffer>,
}

impl Tree {
    pub(super) fn new(buffer_bytes: usize, fan_out: usize) -> Self {
        let (sealed, sorting, sorted, free) = Default::default();
        Self { buffer_bytes, fan_out, nodes: vec![Node::default()], sealed, sorting, sorted, free }
    }

    /// Root buffers that were given and are not yet emptied.
    pub(super) fn waiting(&self) -> usize {
        self.sealed.len() + self.sorting + self.sorted.len() + usize::from(self.nodes[ROOT].is_busy)
    }

    pub(super) fn seal(&mut self, buffer: RootBuffer) {
        self.sealed.push_back(buffer);
    }

    pub(super) fn take_free(&mut self) -> Option<RootBuffer> {
        self.free.pop()
    }

    /// What can be done next: of all that hold others up, the lowest first. To finish is to empty all that is above
    /// leaves, from the top on, and to merge these.
    pub(super) fn find(&self, is_finishing: bool) -> Option<Next> {
        let is_finishing = is_finishing && self.waiting() == 0;
        if let Some(id) = self.find_node(ROOT, false, is_finishing) {
            return Some(Next::Empty(id));
        }
        if !self.sorted.is_empty() && !self.nodes[ROOT].is_busy && self.accepts(ROOT) {
            return Some(Next::Spill);
        }
        (!self.sealed.is_empty()).then_some(Next::Sort)
    }

    /// A node at or below this one that is to be emptied. Where its parent is emptied into it, it has to wait.
    fn find_node(&self, id: NodeId, parent_is_busy: bool, is_finishing: bool) -> Option<NodeId> {
        let node = &self.nodes[id];
        let is_passed = is_finishing && node.fragments.is_empty() && !node.is_busy;
        let below = node.children.iter().find_map(|&child| self.find_node(child, node.is_busy, is_passed));
        let is_next = || {
            id != ROOT
                && !node.is_busy
                && !parent_is_busy
                && (self.is_full(node)
                    || is_finishing && is_work(node)
                    || self.is_wide(node) && is_work(node))
                && self.accepts(id)
        };
        below.or_else(|| is_next().then_some(id))
    }

    /// A leaf of one fragment is as small as it gets.
    fn is_full(&self, node: &Node) -> bool {
        node.bytes >= self.buffer_bytes && is_work(node)
    }

    fn is_wide(&self, node: &Node) -> bool {
        node.children.len() > self.fan_out
    }

    /// Whether all children may be given more.
    fn accepts(&self, id: NodeId) -> bool {
        let mut children = self.nodes[id].children.iter().map(|&child| &self.nodes[child]);
        children.all(|child| !child.is_busy && !self.is_full(child))
    }

    /// Takes what was found.
    pub(super) fn take(&mut self, next: Next) -> Option<Job> {
        let children_of = |tree: &Self, id: NodeId| {
            let child = |&id: &NodeId| Child { id, low: tree.nodes[id].low };
            tree.nodes[id].children.iter().map(child).collect()
        };
        match next {
            Next::Sort => {
                let buffer = self.sealed.pop_front()?;
                self.sorting += 1;
                Some(Job::Sort(buffer))
            }
            Next::Spill => {
                let sorted = self.sorted.pop_front()?;
                self.nodes[ROOT].is_busy = true;
                Some(Job::Spill(sorted, children_of(self, ROOT)))
            }
            Next::Empty(id) => {
                let children = children_of(self, id);
                let node = &mut self.nodes[id];
                (node.is_busy, node.bytes) = (true, 0);
                Some(Job::Empty(id, std::mem::take(&mut node.fragments), children))
            }
        }
    }

    pub(super) fn apply(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Sorted(buffer, sorted) => {
                debug_assert!(
                    self.sorting > 0 && buffer.is_empty(),
                    "who sorts is counted, and keeps nothing"
                );
                self.sorting -= 1;
                self.sorted.push_back(sorted);
                self.free.push(buffer);
            }
            Outcome::Given(from, parts) => {
                debug_assert!(self.nodes[from.unwrap_or(ROOT)].is_busy, "it was taken");
                self.nodes[from.unwrap_or(ROOT)].is_busy = false;
                for (child, fragment) in parts {
                    debug_assert!(
                        !self.nodes[child].is_busy && !self.is_full(&self.nodes[child]),
                        "it accepts"
                    );
                    self.give(child, fragment);
                }
            }
            Outcome::Divided(None, lower, upper) => {
                self.nodes[ROOT].is_busy = false;
                for (low, fragment) in std::iter::once((0, lower)).chain(upper) {
                    let child = self.make(low);
                    self.nodes[ROOT].children.push(child);
                    self.give(child, fragment);
                }
            }
            Outcome::Divided(Some(leaf), lower, upper) => {
                self.nodes[leaf].is_busy = false;
                self.give(leaf, lower);
                if let Some((low, fragment)) = upper {
                    let parent = self.parent(leaf);
                    let sibling = self.make(low);
                    self.insert(parent, sibling);
                    self.give(sibling, fragment);
                }
            }
        }
        self.narrow(ROOT);
    }

    fn give(&mut self, id: NodeId, fragment: Fragment) {
        let node = &mut self.nodes[id];
        node.bytes += fragment.bytes();
        node.fragments.push(Arc::new(fragment));
    }

    fn make(&mut self, low: u32) -> NodeId {
        self.nodes.push(Node { low, ..Node::default() });
        self.nodes.len() - 1
    }

    /// Puts a child in its place.
    fn insert(&mut self, parent: NodeId, child: NodeId) {
        let low = self.nodes[child].low;
        debug_assert!(self.nodes[parent].low <= low, "a child lies in its parent's range");
        let place = self.nodes[parent].children.partition_point(|&other| self.nodes[other].low < low);
        self.nodes[parent].children.insert(place, child);
    }

    /// The child of an inner node in whose range a hash is.
    fn child(&self, id: NodeId, hash: u32) -> NodeId {
        let children = &self.nodes[id].children;
        let behind = children.partition_point(|&child| self.nodes[child].low <= hash);
        children[behind.saturating_sub(1)]
    }

    fn parent(&self, id: NodeId) -> NodeId {
        let mut parent = ROOT;
        loop {
            match self.child(parent, self.nodes[id].low) {
                child if child == id => return parent,
                child => parent = child,
            }
        }
    }

    /// Divides nodes with too many children, where nothing is on its way to them.
    fn narrow(&mut self, id: NodeId) {
        let mut at = 0;
        while let Some(&child) = self.nodes[id].children.get(at) {
            if !self.nodes[child].children.is_empty() {
                self.narrow(child);
            }
            let node = &self.nodes[child];
            if self.is_wide(node) && node.fragments.is_empty() && !node.is_busy && !self.nodes[id].is_busy {
                let half = node.children.len() / 2;
                debug_assert!(half >= 2, "both have two children at least");
                let upper = self.nodes[child].children.split_off(half);
                let sibling = self.make(self.nodes[upper[0]].low);
                self.nodes[sibling].children = upper;
                self.insert(id, sibling);
            }
            at += 1;
        }
        if id == ROOT && self.is_wide(&self.nodes[ROOT]) && !self.nodes[ROOT].is_busy {
            let only = self.make(0);
            self.nodes[only].children = std::mem::replace(&mut self.nodes[ROOT].children, vec![only]);
            self.narrow(ROOT);
        }
    }

    /// The fragments of the leaf of a hash.
    pub(super) fn leaf(&self, hash: u32) -> &[Arc<Fragment>] {
        let mut id = ROOT;
        while !self.nodes[id].children.is_empty() {
            id = self.child(id, hash);
        }
        &self.nodes[id].fragments
    }

    /// All fragments, in the order of hashes once only leaves have any.
    pub(super) fn fragments(&self) -> Vec<Arc<Fragment>> {
        let mut all = Vec::new();
        self.gather(ROOT, &mut all);
        all
    }

    fn gather(&self, id: NodeId, all: &mut Vec<Arc<Fragment>>) {
        all.extend_from_slice(&self.nodes[id].fragments);
        self.nodes[id].children.iter().for_each(|&child| self.gather(child, all));
    }

    /// Levels above leaves, the root's with them.
    pub(super) fn height(&self) -> usize {
        let (mut id, mut height) = (ROOT, 0);
        while let Some(&first) = self.nodes[id].children.first() {
            (id, height) = (first, height + 1);
        }
        height
    }

    /// What it takes besides records.
    pub(super) fn memory_bytes(&self) -> usize {
        let of = |node: &Node| {
            size_of::<NodeId>() * node.children.capacity()
                + size_of::<Arc<Fragment>>() * node.fragments.capacity()
                + size_of::<Fragment>() * node.fragments.len()
        };
        size_of::<Node>() * self.nodes.capacity() + self.nodes.iter().map(of).sum::<usize>()
    }
}

/// Whether emptying the node would do anything.
fn is_work(node: &Node) -> bool {
    node.fragments.len() > usize::from(node.children.is_empty())
}
