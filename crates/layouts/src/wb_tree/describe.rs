//! The tree as a person would draw it, and as numbers.

use std::fmt;

use forebay_buffer_tree::{Fragment as _, Node, Tree};
use serde::Serialize;

use crate::files::Fragment;

/// One level of a tree.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LevelDescription {
    /// 1 is just below the root.
    pub level: usize,
    /// Its nodes.
    pub nodes: usize,
    /// Their lists.
    pub lists: usize,
    /// The most lists of one node.
    pub lists_max: usize,
    /// Bytes of records.
    pub bytes: u64,
    /// Records, every version counted.
    pub records: u64,
    /// Whether it is in memory, and in no file yet.
    pub in_memory: bool,
}

/// One node of a tree.
#[derive(Clone, Debug, Serialize)]
pub struct NodeDescription {
    /// Its id.
    pub id: u64,
    /// Its depth; 1 is just below the root.
    pub level: usize,
    /// The lowest prefix it is responsible for, in hexadecimal.
    pub low: String,
    /// Bytes of records.
    pub bytes: u64,
    /// Records, every version counted.
    pub records: u64,
    /// How many children.
    pub children: usize,
    /// The files of its lists, oldest first.
    pub files: Vec<u64>,
}

/// A table's tree.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Description {
    /// By level, top first.
    pub levels: Vec<LevelDescription>,
    /// Every node, in order.
    pub nodes: Vec<NodeDescription>,
}

pub(super) fn describe(tree: &Tree<Fragment>) -> Description {
    let mut description = Description { levels: levels(tree), nodes: Vec::new() };
    tree.for_each_node(&mut |level, node| {
        if level > 0 {
            description.add(level, node);
        }
    });
    description
}

/// A tree's levels, top first.
pub(super) fn levels<F>(tree: &Tree<F>) -> Vec<LevelDescription> {
    let mut levels: Vec<LevelDescription> = Vec::new();
    tree.for_each_node(&mut |level, node| {
        if levels.len() < level {
            levels.push(LevelDescription { level, ..LevelDescription::default() });
        }
        if let Some(sum) = level.checked_sub(1).and_then(|index| levels.get_mut(index)) {
            sum.nodes += 1;
            sum.lists += node.lists().len();
            sum.lists_max = sum.lists_max.max(node.lists().len());
            sum.bytes += node.bytes();
            sum.records += node.records();
        }
    });
    levels
}

impl Description {
    fn add(&mut self, level: usize, node: &Node<Fragment>) {
        self.nodes.push(NodeDescription {
            id: node.id().0,
            level,
            low: format!("{:016x}", node.range().low.prefix),
            bytes: node.bytes(),
            records: node.records(),
            children: node.children().len(),
            files: node.lists().iter().map(|list| list.fragment.id()).collect(),
        });
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let indent = "  ".repeat(node.level);
            let kind = if node.children == 0 { "leaf" } else { "node" };
            write!(f, "{indent}{kind} {} from {}: ", node.id, node.low)?;
            write!(f, "{} records, {} bytes, {} lists", node.records, node.bytes, node.files.len())?;
            let files: Vec<String> = node.files.iter().map(u64::to_string).collect();
            writeln!(f, " [{}]", files.join(" "))?;
        }
        Ok(())
    }
}
