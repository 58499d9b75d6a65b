//! The bytes of edits and of whole trees, whose fragments are named by id. Varints throughout; a bound is its
//! prefix and its key's bytes.
//!
//! **Contract:** decoding never panics, and never allocates more than its input justifies.

use std::sync::Arc;

use forebay_base::wire::{Reader, put_bytes, put_varint};
use forebay_base::{Bound, Range};

use crate::{Division, Edit, List, Node, NodeId, NodeRef, Portion, Split, Tree, TreeOptions};

/// No tree is so high; deeper nesting is damage, and would overflow the stack.
const HEIGHT_MAX: usize = 64;

const SPILL: u8 = 1;
const FAST_SPLIT: u8 = 2;
const REWRITE: u8 = 3;
const SPLIT_INNER: u8 = 4;
const GROW: u8 = 5;

impl Edit<u64> {
    /// Appends the edit's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.put(out);
        debug_assert_eq!(
            Self::decode(&mut Reader::new(&out[start..])).as_ref(),
            Some(self),
            "what is put is read"
        );
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Spill { node, lists, fragment, children } => {
                out.push(SPILL);
                put_node(out, node);
                put_varint(out, *lists as u64);
                put_option(out, fragment.as_ref(), |out, id| put_varint(out, *id));
                put_all(out, children, |out, (id, portion)| {
                    put_varint(out, id.0);
                    put_portion(out, portion);
                });
            }
            Self::FastSplit { node, split } => {
                out.push(FAST_SPLIT);
                put_node(out, node);
                put_split(out, split);
            }
            Self::Rewrite { node, lists, fragment, portion, split, unsplittable_bytes } => {
                out.push(REWRITE);
                put_node(out, node);
                put_varint(out, *lists as u64);
                put_option(out, fragment.as_ref(), |out, id| put_varint(out, *id));
                put_portion(out, portion);
                put_option(out, split.as_ref(), put_split);
                put_varint(out, *unsplittable_bytes);
            }
            Self::SplitInner { node, right, at } => {
                out.push(SPLIT_INNER);
                put_node(out, node);
                put_varint(out, right.0);
                put_bound(out, at);
            }
            Self::Grow { nodes } => {
                out.push(GROW);
                put_all(out, nodes, put_node);
            }
        }
    }

    /// Reads an edit.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        match from.u8()? {
            SPILL => Some(Self::Spill {
                node: node(from)?,
                lists: count(from)?,
                fragment: option(from, Reader::varint)?,
                children: all(from, |from| Some((NodeId(from.varint()?), portion(from)?)))?,
            }),
            FAST_SPLIT => Some(Self::FastSplit { node: node(from)?, split: split(from)? }),
            REWRITE => Some(Self::Rewrite {
                node: node(from)?,
                lists: count(from)?,
                fragment: option(from, Reader::varint)?,
                portion: portion(from)?,
                split: option(from, split)?,
                unsplittable_bytes: from.varint()?,
            }),
            SPLIT_INNER => {
                Some(Self::SplitInner { node: node(from)?, right: NodeId(from.varint()?), at: bound(from)? })
            }
            GROW => Some(Self::Grow { nodes: all(from, node)? }),
            _ => None,
        }
    }
}

impl TreeOptions {
    /// Appends the options' bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.node_bytes);
        put_varint(out, self.fan_out as u64);
        put_varint(out, self.fast_per_slow.into());
        put_varint(out, self.lists_max as u64);
        out.extend_from_slice(&self.repeats_max.to_bits().to_le_bytes());
    }

    /// Reads options that are valid.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let options = Self {
            node_bytes: from.varint()?,
            fan_out: count(from)?,
            fast_per_slow: u32::try_from(from.varint()?).ok()?,
            lists_max: count(from)?,
            repeats_max: f64::from_bits(from.u64()?),
        };
        options.validate().ok()?;
        Some(options)
    }
}

impl Tree<u64> {
    /// Appends a snapshot of the whole tree, options included.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.options.encode(out);
        put_varint(out, self.next_node_id);
        put_subtree(out, &self.root);
    }

    /// Reads a snapshot. What comes back passes [`check`](Self::check).
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let options = TreeOptions::decode(from)?;
        let next_node_id = from.varint()?;
        let root = Arc::new(subtree(from, Range::all(), HEIGHT_MAX)?);
        Some(Self { options, root, next_node_id }).filter(|tree| tree.check().is_ok())
    }
}

/// A node, then its children's low bounds but the first, then the children.
fn put_subtree(out: &mut Vec<u8>, node: &Node<u64>) {
    put_varint(out, node.id.0);
    put_varint(out, node.fast_splits.into());
    put_varint(out, node.unsplittable_bytes);
    put_all(out, &node.lists, |out, list| {
        put_varint(out, list.fragment);
        put_portion(out, &list.portion());
        out.push(list.is_bottom.into());
    });
    put_varint(out, node.children.len() as u64);
    node.children.iter().skip(1).for_each(|child| put_bound(out, &child.range.low));
    node.children.iter().for_each(|child| put_subtree(out, child));
}

fn subtree(from: &mut Reader<'_>, range: Range, height_max: usize) -> Option<Node<u64>> {
    let id = NodeId(from.varint()?);
    let fast_splits = u32::try_from(from.varint()?).ok()?;
    let unsplittable_bytes = from.varint()?;
    let lists = all(from, |from| {
        let (fragment, portion) = (from.varint()?, portion(from)?);
        Some(List::new(fragment, portion, flag(from)?))
    })?;
    let children = count(from)?;
    let mut lows = vec![range.low.clone()];
    for _ in 1..children {
        lows.push(bound(from)?);
    }
    let mut below = Vec::new();
    for index in 0..children {
        let high = lows.get(index + 1).or(range.high.as_ref()).cloned();
        let part = Range { low: lows[index].clone(), high };
        below.push(Arc::new(subtree(from, part, height_max.checked_sub(1)?)?));
    }
    let mut node = Node::new(id, range, lists, below);
    node.fast_splits = fast_splits;
    node.unsplittable_bytes = unsplittable_bytes;
    Some(node)
}

/// Appends how many items there are, and each.
pub fn put_all<T>(out: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_varint(out, items.len() as u64);
    items.iter().for_each(|item| put(out, item));
}

/// Reads what [`put_all`] wrote.
pub fn all<T>(from: &mut Reader<'_>, item: impl Fn(&mut Reader<'_>) -> Option<T>) -> Option<Vec<T>> {
    // Grows as items come: a false count runs out of input before it costs memory.
    (0..from.varint()?).map(|_| item(from)).collect()
}

/// Appends whether there is an item, and it.
pub fn put_option<T>(out: &mut Vec<u8>, item: Option<&T>, put: impl Fn(&mut Vec<u8>, &T)) {
    out.push(item.is_some().into());
    item.into_iter().for_each(|item| put(out, item));
}

/// Reads what [`put_option`] wrote.
pub fn option<'a, T>(
    from: &mut Reader<'a>,
    item: impl Fn(&mut Reader<'a>) -> Option<T>,
) -> Option<Option<T>> {
    if flag(from)? { Some(Some(item(from)?)) } else { Some(None) }
}

/// Reads a byte that is 0 or 1.
pub fn flag(from: &mut Reader<'_>) -> Option<bool> {
    match from.u8()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Reads a number of things in memory.
pub fn count(from: &mut Reader<'_>) -> Option<usize> {
    usize::try_from(from.varint()?).ok()
}

/// Appends a bound.
pub fn put_bound(out: &mut Vec<u8>, bound: &Bound) {
    put_varint(out, bound.prefix);
    put_bytes(out, &bound.key);
}

/// Reads a bound.
pub fn bound(from: &mut Reader<'_>) -> Option<Bound> {
    Some(Bound { prefix: from.varint()?, key: from.bytes()?.into() })
}

fn put_node(out: &mut Vec<u8>, node: &NodeRef) {
    put_varint(out, node.id.0);
    put_bound(out, &node.low);
}

fn node(from: &mut Reader<'_>) -> Option<NodeRef> {
    Some(NodeRef { id: NodeId(from.varint()?), low: bound(from)? })
}

/// Appends a portion.
pub fn put_portion(out: &mut Vec<u8>, portion: &Portion) {
    put_varint(out, portion.bytes);
    put_varint(out, portion.records);
}

/// Reads a portion.
pub fn portion(from: &mut Reader<'_>) -> Option<Portion> {
    Some(Portion { bytes: from.varint()?, records: from.varint()? })
}

fn put_split(out: &mut Vec<u8>, split: &Split) {
    put_varint(out, split.right.0);
    put_bound(out, &split.at);
    put_all(out, &split.lists, |out, division| {
        put_option(out, division.below.as_ref(), put_portion);
        put_option(out, division.above.as_ref(), put_portion);
    });
}

fn split(from: &mut Reader<'_>) -> Option<Split> {
    let division = |from: &mut Reader<'_>| {
        Some(Division { below: option(from, portion)?, above: option(from, portion)? })
    };
    Some(Split { right: NodeId(from.varint()?), at: bound(from)?, lists: all(from, division)? })
}
