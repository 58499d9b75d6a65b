//! What a batch will write, from counts alone: for plans without data. The filter is left out: about two bytes for each
//! record of a tree that is built, some six for each new key, and its whole length once in a while.

use crate::root::ROOT_BYTES;

/// A tree as far as it matters to what a batch of evenly spread keys writes. All are means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Records.
    pub records: f64,
    /// Leaves. None, and no records, before a tree is built.
    pub leaves: f64,
    /// Those of them that are full: built or packed, and not divided since.
    pub full_leaves: f64,
    /// A leaf's entry: about 4 bytes, the key less what all in a leaf begin with, and the value; or 12 bytes instead of
    /// the value where that is kept apart.
    pub record_bytes: f64,
    /// An inner node's entry: about 14 bytes, and what it takes of a key to tell two leaves apart.
    pub child_bytes: f64,
    /// A value kept apart, or 0.
    pub value_bytes: f64,
    /// How long nodes are at most.
    pub node_bytes: f64,
}

/// What a batch comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Appended {
    /// Leaves written.
    pub leaves: f64,
    /// Nodes above them.
    pub inner_nodes: f64,
    /// All that is written: values, nodes, padding and root.
    pub bytes: f64,
    /// The tree with it.
    pub tree: Shape,
}

impl Shape {
    /// What a batch of this many records writes, of which this many have keys that the tree does not.
    ///
    /// Keys fall on leaves at random, so `leaves * (1 - e^(-batch / leaves))` of them are touched, and so on up. Leaves
    /// that lie side by side are packed anew together; a lone one that was full falls in two.
    pub fn append(&self, batch: f64, fresh: f64) -> Appended {
        let touched = |nodes: f64| nodes * (1.0 - (-batch / nodes.max(1e-9)).exp());
        let records_max = self.node_bytes / self.record_bytes;
        let leaves = touched(self.leaves);
        let share = if self.leaves > 0.0 { leaves / self.leaves } else { 1.0 };
        let runs = leaves * (1.0 - share) + share;
        let records = self.records * share + fresh;
        // How likely it is that none of those that come to a run, or to a leaf, is new.
        let none_new = |groups: f64| (1.0 - fresh / batch.max(1e-9)).max(0.0).powf(batch / groups.max(1.0));
        let full = self.full_leaves / self.leaves.max(1e-9);
        // Of a long run all but the last two are filled. Full leaves need one more as soon as a record is new, others
        // half a one.
        let room = (1.0 - fresh / (runs.max(1.0) * records_max)).max(0.5);
        let rounded = full * (1.0 - none_new(runs)) * room + (1.0 - full) * 0.5;
        let packed = records / records_max + runs * rounded;
        // A lone leaf stays one as long as it has room.
        let (kept, lone) = (self.full_leaves * share * none_new(leaves), (1.0 - share).powi(2));
        let divided = (self.full_leaves * share - kept + fresh / records_max).min(leaves);
        let written = (lone * (leaves + divided) + (1.0 - lone) * packed).max(records / records_max).ceil();
        let filled = (written - 2.0 * runs * (1.0 - full * none_new(runs))).max(0.0);
        let tree = Self {
            records: self.records + fresh,
            leaves: self.leaves - leaves + written,
            full_leaves: self.full_leaves * (1.0 - share) + lone * kept + (1.0 - lone) * filled,
            ..*self
        };
        let mut bytes = batch * self.value_bytes + records * self.record_bytes + written * 10.0;
        let (mut inner_nodes, mut below, mut below_written) = (0.0, tree.leaves, written);
        while below > 1.0 {
            let fill = 0.7 + 0.3 * (tree.full_leaves / tree.leaves).min(1.0);
            let children = (self.node_bytes * fill / self.child_bytes).max(2.0);
            let level = (below / children).ceil();
            below_written = touched(level).min(below_written).max(1.0);
            bytes += below_written * below / level * self.child_bytes;
            inner_nodes += below_written;
            below = level;
        }
        debug_assert!(bytes >= 0.0 && inner_nodes >= 0.0, "{bytes} bytes, {inner_nodes} inner nodes");
        let padding = ROOT_BYTES as f64 / 2.0;
        Appended { leaves: written, inner_nodes, bytes: bytes + padding + ROOT_BYTES as f64, tree }
    }
}
