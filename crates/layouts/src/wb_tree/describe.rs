//! The tree as a person would draw it, and as numbers.

use forebay_buffer_tree::{Fragment as _, Node, Tree};

use crate::files::Fragment;
use crate::seam::{Description, LevelDescription, NodeDescription};

pub(super) fn describe(tree: &Tree<Fragment>) -> Description {
    let mut description = Description { levels: levels(tree), nodes: Vec::new() };
    tree.for_each_node(&mut |level, node| {
        if level > 0 {
            description.nodes.push(described(level, node));
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

fn described(level: usize, node: &Node<Fragment>) -> NodeDescription {
    NodeDescription {
        id: node.id().0,
        level,
        low: format!("{:016x}", node.range().low.prefix),
        bytes: node.bytes(),
        records: node.records(),
        children: node.children().len(),
        files: node.lists().iter().map(|list| list.fragment.id()).collect(),
    }
}
