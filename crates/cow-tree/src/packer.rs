//! Packs the entries of one level into nodes as they come, in order. It keeps up to two nodes' worth back, so that what
//! is left at the end of a run of changes can be divided evenly.
//!
//! **Invariant:** no node gets longer than its limit, unless one record or two children alone do.

use std::ops::Range;

use forebay_base::Order;
use forebay_base::wire::{put_bytes, put_varint, varint_bytes};

use crate::extent::Extent;
use crate::node::{Key, Node};

/// Nodes of one level in the making.
pub(crate) struct Packer {
    order: Order,
    level: u8,
    node_bytes_max: usize,
    /// Key and payload of each entry.
    bytes: Vec<u8>,
    parts: Vec<Part>,
    /// Those of the node that is sealed next. The ones behind it fit one more node, but perhaps for the last.
    front: Measure,
    back: Measure,
    /// The low bound of the node that is sealed next.
    low: Key,
}

/// An entry.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    payload_at: usize,
    end: usize,
    flags: u8,
    weight: Weight,
}

/// What an entry stands for.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) records: u64,
    /// Bytes of the file outside this node.
    pub(crate) live_bytes: u64,
    /// Of a leaf, bytes of values in value files.
    pub(crate) pointed_bytes: u64,
}

/// How long a node of some entries becomes.
#[derive(Clone, Copy, Default)]
struct Measure {
    entries: usize,
    /// Entries whose keys the node has: all but a first child's.
    keyed: usize,
    keys_bytes: usize,
    /// What all keys begin with.
    common_bytes: usize,
    /// Tags and payloads.
    other_bytes: usize,
}

impl Measure {
    /// At most a few bytes more than it takes.
    fn node_bytes(&self) -> usize {
        const HEADER_BYTES_MAX: usize = 1 + 5 + 3;
        HEADER_BYTES_MAX + self.common_bytes + self.keys_bytes - self.keyed * self.common_bytes
            + self.other_bytes
    }
}

impl Packer {
    pub(crate) fn new(order: Order, level: u8, node_bytes_max: usize) -> Self {
        Self {
            order,
            level,
            node_bytes_max,
            bytes: Vec::new(),
            parts: Vec::new(),
            front: Measure::default(),
            back: Measure::default(),
            low: Key::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether there is so little that it should be joined with what follows.
    pub(crate) fn is_scant(&self) -> bool {
        !self.is_empty() && self.back.entries == 0 && self.front.node_bytes() < self.node_bytes_max / 4
    }

    /// The payload of the only entry, and what it stands for.
    pub(crate) fn only(&self) -> Option<(&[u8], Weight)> {
        let [part] = &self.parts[..] else { return None };
        Some((&self.bytes[part.payload_at..part.end], part.weight))
    }

    /// Says where the records begin that come next, if none are here.
    pub(crate) fn begin(&mut self, low: &[u8]) {
        if self.is_empty() {
            self.low.clear();
            self.low.extend_from_slice(low);
        }
    }

    /// Adds an entry. Says whether a node must be [taken](Self::take) now.
    pub(crate) fn push(&mut self, key: &[u8], flags: u8, payload: &[u8], weight: Weight) -> bool {
        if self.level > 0 {
            self.begin(key);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        let payload_at = start + key.len();
        self.parts.push(Part { start, payload_at, end: self.bytes.len(), flags, weight });
        let index = self.parts.len() - 1;
        if self.back.entries == 0 {
            match self.widened(0, self.front, index) {
                Some(wider) => self.front = wider,
                None => self.back = self.with(index, Measure::default(), index),
            }
            return false;
        }
        match self.widened(self.front.entries, self.back, index) {
            Some(wider) => self.back = wider,
            None => return true,
        }
        false
    }

    /// A node that begins at the entry `first`, with one more entry, if it still fits.
    fn widened(&self, first: usize, measure: Measure, index: usize) -> Option<Measure> {
        let wider = self.with(first, measure, index);
        let entries_min = 1 + usize::from(self.level > 0);
        (measure.entries < entries_min || wider.node_bytes() <= self.node_bytes_max).then_some(wider)
    }

    fn with(&self, first: usize, mut measure: Measure, index: usize) -> Measure {
        let part = &self.parts[index];
        measure.other_bytes += part.end - part.payload_at;
        measure.entries += 1;
        if self.level > 0 && index == first {
            measure.other_bytes += 1;
            return measure;
        }
        let key = self.key(index);
        measure.other_bytes += varint_bytes((key.len() as u64) << 3);
        measure.keys_bytes += key.len();
        measure.common_bytes = match measure.keyed {
            0 => key.len(),
            // Any of them has what all begin with.
            _ => shared(&self.key(index - 1)[..measure.common_bytes], key),
        };
        measure.keyed += 1;
        measure
    }

    fn measure(&self, range: Range<usize>) -> Measure {
        range.clone().fold(Measure::default(), |measure, index| self.with(range.start, measure, index))
    }

    fn key(&self, index: usize) -> &[u8] {
        let part = &self.parts[index];
        &self.bytes[part.start..part.payload_at]
    }

    /// Divides what is here evenly, if it takes two nodes.
    pub(crate) fn balance(&mut self) {
        if self.back.entries == 0 {
            return;
        }
        debug_assert!(self.parts.len() > 1, "two nodes have an entry each");
        let cut = self.parts.partition_point(|part| part.end <= self.bytes.len() / 2).max(1);
        let (front, back) = (self.measure(0..cut), self.measure(cut..self.parts.len()));
        if front.node_bytes().max(back.node_bytes()) <= self.node_bytes_max {
            (self.front, self.back) = (front, back);
        }
    }

    /// Makes `node` the bytes of the first node, and forgets its entries. Returns its low bound and what its entries
    /// stand for.
    pub(crate) fn take(&mut self, node: &mut Vec<u8>) -> (Key, Weight) {
        debug_assert!(self.front.entries > 0, "no node is empty");
        node.clear();
        let (entries, first_keyed) = (self.front.entries, usize::from(self.level > 0));
        node.push(self.level);
        put_varint(node, entries as u64);
        let common = self.front.common_bytes;
        put_bytes(node, if common > 0 { &self.key(first_keyed)[..common] } else { &[] });
        let mut weight = Weight::default();
        for (index, part) in self.parts[..entries].iter().enumerate() {
            let key = if index < first_keyed { &[] } else { &self.key(index)[common..] };
            put_varint(node, (key.len() as u64) << 3 | part.flags as u64);
            node.extend_from_slice(key);
            node.extend_from_slice(&self.bytes[part.payload_at..part.end]);
            weight.records += part.weight.records;
            weight.live_bytes += part.weight.live_bytes;
            weight.pointed_bytes += part.weight.pointed_bytes;
        }
        debug_assert!(node.len() <= self.front.node_bytes(), "a node is as long as was measured, or shorter");
        debug_assert!(self.is_read_from(node), "what is packed is read");
        let next = match self.parts.get(entries) {
            None => Key::new(),
            Some(_) if self.level > 0 => Key::from_slice(self.key(entries)),
            Some(_) => Key::from_slice(separator(self.order, self.key(entries - 1), self.key(entries))),
        };
        self.forget(entries);
        (std::mem::replace(&mut self.low, next), weight)
    }

    /// Whether these bytes are a node of the entries that come first.
    fn is_read_from(&self, node: &[u8]) -> bool {
        // Behind all that its references lead to.
        let extent = Extent { at: u64::MAX, bytes: node.len() as u32, sum: 0 };
        let read = Node::decode(node.to_vec(), extent, self.level);
        read.is_ok_and(|read| read.len() == self.front.entries)
    }

    fn forget(&mut self, entries: usize) {
        let bytes = self.parts[entries - 1].end;
        self.bytes.drain(..bytes);
        self.parts.drain(..entries);
        for part in &mut self.parts {
            part.start -= bytes;
            part.payload_at -= bytes;
            part.end -= bytes;
        }
        let front = self.back.entries;
        self.front = self.measure(0..front);
        self.back = self.measure(front..self.parts.len());
        debug_assert_eq!(
            self.front.entries + self.back.entries,
            self.parts.len(),
            "each entry is in one of the two"
        );
    }
}

/// How long the beginning is that both have.
fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// A key above the first one and not above the second, which follows it: short where the order allows.
fn separator<'a>(order: Order, before: &[u8], after: &'a [u8]) -> &'a [u8] {
    if order.is_lexical() { &after[..(shared(before, after) + 1).min(after.len())] } else { after }
}

#[cfg(test)]
mod tests {
    use forebay_base::checksum::checksum;

    use super::*;

    /// A node of this level with a dozen entries.
    fn node(level: u8) -> Vec<u8> {
        let mut packer = Packer::new(Order::Lexical, level, 4096);
        for number in 0..12u8 {
            let mut payload = Vec::new();
            let apart = number % 2 == 1 || level > 0;
            match apart {
                true => Extent { at: 100, bytes: 50, sum: 7 }.encode(&mut payload),
                false => put_bytes(&mut payload, &[number; 5]),
            }
            if level > 0 {
                payload.extend_from_slice(&[3, 9]);
            }
            let flags = if apart && level == 0 { crate::node::APART } else { 0 };
            assert!(!packer.push(&[1, 2, 3, number], flags, &payload, Weight::default()));
        }
        let mut bytes = Vec::new();
        packer.take(&mut bytes);
        assert!(packer.is_empty());
        bytes
    }

    /// Looks at all that a node says.
    fn look(node: &Node) -> usize {
        let order = Order::Lexical;
        let seen = (0..node.len()).map(|index| {
            let value = matches!(node.value(index), crate::node::Value::Inline(_)) as usize;
            node.key(index).len() + node.payload(index).len() + node.child(index).node.bytes as usize + value
        });
        let place = (order.prefix(b"\x01\x02\x03\x05"), &b"\x01\x02\x03\x05"[..]);
        seen.sum::<usize>() + node.lower_bound(order, place)
    }

    #[test]
    fn no_bytes_make_a_node_that_cannot_be_looked_at() {
        for level in [0, 1] {
            let bytes = node(level);
            // Behind all that its references lead to.
            let extent =
                |bytes: &[u8]| Extent { at: 1000, bytes: bytes.len() as u32, sum: checksum(1, 1000, bytes) };
            let whole = Node::decode(bytes.clone(), extent(&bytes), level).unwrap();
            assert_eq!(whole.len(), 12);
            let mut refused = 0;
            for at in 0..bytes.len() {
                for changed in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 4] {
                    let mut bytes = bytes.clone();
                    bytes[at] = changed;
                    match Node::decode(bytes.clone(), extent(&bytes), level) {
                        Ok(node) => _ = look(&node),
                        Err(_) => refused += 1,
                    }
                }
                assert!(Node::decode(bytes[..at].to_vec(), extent(&bytes[..at]), level).is_err());
            }
            assert!(refused > bytes.len(), "{refused}");
            assert!(Node::decode(bytes.clone(), extent(&bytes), level + 1).is_err(), "another level");
            let low = Extent { at: 149, ..extent(&bytes) };
            assert!(Node::decode(bytes, low, level).is_err(), "it refers to what is not before it");
        }
    }
}
