//! A node: a leaf with records, or an inner node with children. Taken apart when it is read; its entries stay where
//! they are in the bytes.
//!
//! `u8 level | varint entries | bytes common | entries`, and an entry: `varint suffix_bytes << 3 | flags`, the
//! key behind what all keys of the node begin with, and a payload. See `docs/format/cow_tree.md`.

use std::ops::Range;
use std::sync::Arc;

use forebay_base::limits::KEY_BYTES_MAX;
use forebay_base::wire::Reader;
use forebay_base::{Kind, Order};
use forebay_env::PageFrames;
use forebay_store::{Cached, Held};
use smallvec::SmallVec;

use crate::extent::Extent;

/// A whole key, put together.
pub(crate) type Key = SmallVec<[u8; 64]>;

/// No tree is higher: each level has at most half as many nodes as the one below it.
pub(crate) const LEVEL_MAX: u8 = 62;

/// A leaf entry's flag beside its kind: the value is kept apart.
pub(crate) const APART: u8 = 4;

const _: () = assert!(APART > Kind::Pointer as u8 && APART < 8, "an entry has three bits of flags");
const _: () = assert!(LEVEL_MAX < 64, "a tree of more levels has more nodes than 64 bits count");

/// A checked node.
#[derive(Debug)]
pub(crate) struct Node {
    extent: Extent,
    level: u8,
    bytes: Held,
    common: Range<usize>,
    spots: Vec<Spot>,
}

/// Where an entry lies.
#[derive(Clone, Copy, Debug)]
struct Spot {
    suffix_at: u32,
    payload_at: u32,
    end: u32,
    flags: u8,
}

/// A leaf entry's value, or the way to it.
pub(crate) enum Value<'a> {
    Inline(&'a [u8]),
    Apart(Extent),
}

/// What an inner node knows of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) node: Extent,
    /// Records below it.
    pub(crate) records: u64,
    /// Bytes of it, of all nodes below it and of their values.
    pub(crate) live_bytes: u64,
}

impl Child {
    pub(crate) fn decode(from: &mut Reader<'_>, end: u64) -> Option<Self> {
        Some(Self { node: Extent::decode(from, end)?, records: from.varint()?, live_bytes: from.varint()? })
    }
}

impl Node {
    /// Takes apart the bytes that `extent` vouches for. `Err` says what is wrong with them.
    pub(crate) fn decode(bytes: Vec<u8>, extent: Extent, level: u8) -> Result<Self, &'static str> {
        let mut from = Reader::new(&bytes);
        if from.u8() != Some(level) {
            return Err("the node is of another level");
        }
        let entries = from.varint().ok_or("the node is cut short")?;
        let common = from.bytes().ok_or("the node is cut short")?.len();
        let position = |from: &Reader<'_>| bytes.len() - from.remaining();
        let common = position(&from) - common..position(&from);
        let mut spots = Vec::with_capacity((entries as usize).min(from.remaining()));
        for _ in 0..entries {
            let mut entry = || {
                let tag = from.varint()?;
                let (suffix_bytes, flags) = (usize::try_from(tag >> 3).ok()?, (tag & 7) as u8);
                let suffix_at = position(&from) as u32;
                from.take(suffix_bytes).filter(|_| common.len() + suffix_bytes <= KEY_BYTES_MAX)?;
                let payload_at = position(&from) as u32;
                match (level, flags & APART) {
                    (0, 0) => from.bytes().map(drop)?,
                    (0, _) => Extent::decode(&mut from, extent.at).map(drop)?,
                    _ => Child::decode(&mut from, extent.at).map(drop)?,
                }
                let kind = Kind::from_bits((flags & 3) as u64)?;
                // The way to a value file is always with its key. Children have no kinds.
                let is_sound =
                    if level > 0 { flags == 0 } else { kind != Kind::Pointer || flags & APART == 0 };
                is_sound.then_some(())?;
                Some(Spot { suffix_at, payload_at, end: position(&from) as u32, flags })
            };
            spots.push(entry().ok_or("the node holds a malformed entry")?);
        }
        if from.remaining() > 0 || spots.is_empty() {
            return Err("the node's entries do not fill it");
        }
        Ok(Self { extent, level, common, spots, bytes: bytes.into() })
    }

    pub(crate) fn extent(&self) -> Extent {
        self.extent
    }

    /// 0 for a leaf.
    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    /// How many entries; never none.
    pub(crate) fn len(&self) -> usize {
        self.spots.len()
    }

    /// Makes `key` that of an entry: of a record, or the low bound of a child. The first child's is not kept here.
    pub(crate) fn key_into(&self, index: usize, key: &mut Key) {
        debug_assert!(index < self.len() && self.common.end <= self.bytes.len());
        let spot = &self.spots[index];
        key.clear();
        key.extend_from_slice(&self.bytes[self.common.clone()]);
        key.extend_from_slice(&self.bytes[spot.suffix_at as usize..spot.payload_at as usize]);
    }

    pub(crate) fn key(&self, index: usize) -> Key {
        let mut key = Key::new();
        self.key_into(index, &mut key);
        key
    }

    pub(crate) fn flags(&self, index: usize) -> u8 {
        self.spots[index].flags
    }

    /// What a leaf's record does.
    pub(crate) fn kind(&self, index: usize) -> Kind {
        // `decode` has seen that it is one.
        Kind::from_bits((self.flags(index) & 3) as u64).unwrap_or(Kind::Delete)
    }

    /// What follows an entry's key: it may be copied to another node as it is.
    pub(crate) fn payload(&self, index: usize) -> &[u8] {
        let spot = &self.spots[index];
        &self.bytes[spot.payload_at as usize..spot.end as usize]
    }

    /// A leaf's value.
    pub(crate) fn value(&self, index: usize) -> Value<'_> {
        let mut payload = Reader::new(self.payload(index));
        if self.flags(index) & APART == 0 {
            return Value::Inline(payload.bytes().unwrap_or_default());
        }
        Value::Apart(Extent::decode(&mut payload, self.extent.at).unwrap_or(Extent::NOWHERE))
    }

    /// What a leaf's record has for a value, where that leads to a value file.
    pub(crate) fn pointer(&self, index: usize) -> Option<&[u8]> {
        let is_pointer = self.level == 0 && self.kind(index) == Kind::Pointer;
        is_pointer.then(|| Reader::new(self.payload(index)).bytes().unwrap_or_default())
    }

    /// An inner node's child.
    pub(crate) fn child(&self, index: usize) -> Child {
        let nothing = Child { node: Extent::NOWHERE, records: 0, live_bytes: 0 };
        Child::decode(&mut Reader::new(self.payload(index)), self.extent.at).unwrap_or(nothing)
    }

    /// The first entry whose key is not among those that `is_before` says yes to: a binary search.
    pub(crate) fn first_not(&self, order: Order, is_before: impl Fn(u64, &[u8]) -> bool) -> usize {
        let mut key = Key::new();
        // All keys are before the first child's high bound or behind; its low bound is not asked.
        let (mut low, mut high) = (usize::from(self.level > 0), self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            self.key_into(middle, &mut key);
            if is_before(order.prefix(&key), &key) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The first record of a leaf at or behind a place.
    pub(crate) fn lower_bound(&self, order: Order, place: (u64, &[u8])) -> usize {
        self.first_not(order, |prefix, key| (prefix, key) < place)
    }

    /// The child in whose range a place lies.
    pub(crate) fn child_at(&self, order: Order, place: (u64, &[u8])) -> usize {
        debug_assert!(self.level > 0, "a leaf has no children");
        self.first_not(order, |prefix, key| (prefix, key) <= place) - 1
    }

    /// The child in whose range the last record before a place lies, if any lies before it.
    pub(crate) fn child_before(&self, order: Order, place: (u64, &[u8])) -> usize {
        self.lower_bound(order, place) - 1
    }
}

impl Cached for Node {
    fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes() + size_of::<Spot>() * self.spots.capacity() + size_of::<Self>()
    }

    fn move_to_frame(&mut self, frames: &Arc<PageFrames>) {
        self.bytes.move_to_frame(frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An inner node's entry was taken with any flags but those of a pointer.
    #[test]
    fn flags_say_what_a_record_is_and_nothing_of_a_child() {
        let place = Extent { at: 1 << 20, bytes: 64, sum: 0 };
        for flags in 0..8 {
            let entry = |level: u8| vec![level, 1, 0, 1 << 3 | flags, b'k'];
            let (mut leaf, mut inner) = (entry(0), entry(1));
            match flags & APART {
                0 => leaf.push(0),
                _ => Extent { at: 0, bytes: 10, sum: 7 }.encode(&mut leaf),
            }
            Extent { at: 0, bytes: 10, sum: 7 }.encode(&mut inner);
            inner.extend([5, 50]);
            assert_eq!(Node::decode(leaf, place, 0).is_ok(), flags != APART | 3, "{flags}");
            assert_eq!(Node::decode(inner, place, 1).is_ok(), flags == 0, "{flags}");
        }
    }
}
