//! [`HashAggregator`]: a hash table in memory. The first thing to hold other aggregators against, and the
//! fastest while everything fits.
//!
//! Keys and fixed states lie in chunks, in the order in which keys came; the table holds eight bytes a key:
//! half of its hash, and where it lies. States of other functions lie each in memory of their own, followed
//! by what is still to be merged into them, so that a state is decoded once for as many bytes as it has.
//!
//! **Invariant:** `memory_bytes` counts every allocation. A call that would exceed the limit, even for a
//! moment while something grows, fails before it and changes nothing that can be read; only one state that
//! becomes longer as it is merged is found to be too long afterwards.

use forebay_base::hash::key_hash;
use forebay_base::limits::KEY_BYTES_MAX;
use forebay_base::wire::{get_varint, put_bytes, put_varint, varint_bytes};
use forebay_base::{Error, Result};
use forebay_env::hash_secret;
use hashbrown::HashTable;

use crate::aggregate::Aggregate;
use crate::aggregator::{Aggregator, Visit, check, grow, growth, lift, over_limit};

/// What keys are laid into: longer than any one entry.
const CHUNK_BYTES: usize = 256 << 10;
/// Entries start at multiples of this.
const UNIT_BYTES: usize = 4;
/// Longer states are kept like those of no fixed length.
const FIXED_BYTES_MAX: usize = 1024;
/// What an allocator adds to an allocation, about.
const ALLOCATION_BYTES: usize = 16;
/// This many bytes may wait behind a state, however short it is.
const WAITING_BYTES: usize = 32;
/// Bytes of the number of a state that lies elsewhere.
const NUMBER_BYTES: usize = 4;

const _: () = assert!(CHUNK_BYTES.is_multiple_of(UNIT_BYTES) && NUMBER_BYTES == size_of::<u32>());
const _: () =
    assert!(KEY_BYTES_MAX + FIXED_BYTES_MAX + 2 * ALLOCATION_BYTES < CHUNK_BYTES, "any entry fits a chunk");

/// A table's slot: a hash's upper half, and the unit at which the entry starts.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    unit: u32,
}

impl Slot {
    /// What the table places a slot by: all of the bits that are kept.
    #[inline]
    fn spread(&self) -> u64 {
        u64::from(self.hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    fn chunk_and_offset(self) -> (usize, usize) {
        let at = self.unit as usize * UNIT_BYTES;
        (at / CHUNK_BYTES, at % CHUNK_BYTES)
    }
}

/// A state of its own memory, and states behind it, each after its length, that wait to be merged.
#[derive(Default)]
struct Loose {
    bytes: Vec<u8>,
    merged_bytes: usize,
}

impl Loose {
    /// The state and what waits.
    fn parts(&self) -> Vec<&[u8]> {
        debug_assert!(self.merged_bytes <= self.bytes.len());
        let (state, mut waiting) = self.bytes.split_at(self.merged_bytes);
        let mut parts = vec![state];
        while let Some((bytes, used)) = get_varint(waiting) {
            let (part, rest) = waiting[used..].split_at(bytes as usize);
            parts.push(part);
            waiting = rest;
        }
        parts
    }
}

/// An aggregator over a hash table.
pub struct HashAggregator<A> {
    function: A,
    /// Bytes of a state in its entry; `None` where an entry has a number into `loose` instead.
    fixed: Option<usize>,
    memory_max: usize,
    /// What keys are hashed with, so that nobody can choose some that fall together.
    secret: u64,
    table: HashTable<Slot>,
    chunks: Vec<Vec<u8>>,
    chunk_bytes: usize,
    loose: Vec<Loose>,
    loose_bytes: usize,
    lifted: Vec<u8>,
    spare: Vec<u8>,
}

impl<A: Aggregate> HashAggregator<A> {
    /// An empty one that takes no more than `memory_max` bytes.
    pub fn new(function: A, memory_max: usize) -> Self {
        Self {
            fixed: function.state_bytes().filter(|&bytes| bytes <= FIXED_BYTES_MAX),
            function,
            memory_max,
            secret: hash_secret(),
            table: HashTable::new(),
            chunks: Vec::new(),
            chunk_bytes: 0,
            loose: Vec::new(),
            loose_bytes: 0,
            lifted: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    #[inline]
    fn hash_of(&self, key: &[u8]) -> u32 {
        (key_hash(key, self.secret) >> 32) as u32
    }

    #[inline]
    fn find(&self, hash: u32, key: &[u8]) -> Option<Slot> {
        let wanted = Slot { hash, unit: 0 };
        let is_it = |slot: &Slot| slot.hash == hash && self.entry(*slot).0 == key;
        self.table.find(wanted.spread(), is_it).copied()
    }

    /// An entry's key, and what lies behind: its state or a number, and the entries after it.
    #[inline]
    fn entry(&self, slot: Slot) -> (&[u8], &[u8]) {
        let (chunk, offset) = slot.chunk_and_offset();
        let bytes = &self.chunks[chunk][offset..];
        let (key_bytes, used) = get_varint(bytes).unwrap_or_default();
        bytes[used..].split_at(key_bytes as usize)
    }

    fn tail_bytes(&self) -> usize {
        self.fixed.unwrap_or(NUMBER_BYTES)
    }

    fn loose_of(&self, slot: Slot) -> usize {
        self.entry(slot).1.first_chunk().map_or(0, |number| u32::from_le_bytes(*number) as usize)
    }

    /// Fails if `more` bytes would exceed the limit.
    #[inline]
    fn ensure(&self, more: usize) -> Result<()> {
        if more > 0 && self.memory_bytes() + more > self.memory_max {
            return Err(over_limit(self.memory_max, "raise it, or aggregate by sorting"));
        }
        Ok(())
    }

    #[inline]
    fn upsert(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        let hash = self.hash_of(key);
        match (self.find(hash, key), self.fixed) {
            (Some(slot), Some(bytes)) => {
                let (chunk, offset) = slot.chunk_and_offset();
                let at = offset + varint_bytes(key.len() as u64) + key.len();
                self.function.merge_in_place(&mut self.chunks[chunk][at..at + bytes], state);
                Ok(())
            }
            (Some(slot), None) => self.wait(self.loose_of(slot), state),
            (None, _) => self.insert(hash, key, state),
        }
    }

    /// Puts a state behind one that it will be merged into.
    fn wait(&mut self, number: usize, state: &[u8]) -> Result<()> {
        let Loose { bytes, merged_bytes } = &self.loose[number];
        let waiting = bytes.len() - merged_bytes;
        if waiting + state.len() > WAITING_BYTES.max(*merged_bytes) && waiting > 0 {
            self.merge_loose(number)?;
        }
        let more = varint_bytes(state.len() as u64) + state.len();
        self.ensure(growth(&self.loose[number].bytes, more))?;
        let bytes = &mut self.loose[number].bytes;
        let before = bytes.capacity();
        grow(bytes, more);
        put_bytes(bytes, state);
        self.loose_bytes += bytes.capacity() - before;
        Ok(())
    }

    /// Merges what waits behind a state.
    fn merge_loose(&mut self, number: usize) -> Result<()> {
        let loose = &self.loose[number];
        if loose.bytes.len() == loose.merged_bytes {
            return Ok(());
        }
        self.spare.clear();
        self.ensure(growth(&self.spare, loose.bytes.len()))?;
        grow(&mut self.spare, loose.bytes.len());
        self.function.merge(&self.loose[number].parts(), &mut self.spare);
        // A sketch may become longer than what went in.
        let more = self.spare.len().saturating_sub(self.loose[number].bytes.len());
        self.ensure(growth(&self.loose[number].bytes, more))?;
        let Loose { bytes, merged_bytes } = &mut self.loose[number];
        let before = bytes.capacity();
        bytes.clear();
        grow(bytes, self.spare.len());
        bytes.extend_from_slice(&self.spare);
        *merged_bytes = bytes.len();
        debug_assert!(bytes.capacity() >= before, "what has grown stays");
        self.loose_bytes += bytes.capacity() - before;
        Ok(())
    }

    #[inline(never)]
    fn insert(&mut self, hash: u32, key: &[u8], state: &[u8]) -> Result<()> {
        let entry_bytes = varint_bytes(key.len() as u64) + key.len() + self.tail_bytes();
        let entry_bytes = entry_bytes.next_multiple_of(UNIT_BYTES);
        let fresh = self.chunks.last().is_none_or(|chunk| chunk.len() + entry_bytes > CHUNK_BYTES);
        let mut more = match self.chunks.last() {
            Some(chunk) if !fresh => growth(chunk, entry_bytes),
            Some(_) => CHUNK_BYTES + growth(&self.chunks, 1),
            None => growth(&Vec::<u8>::new(), entry_bytes) + growth(&self.chunks, 1),
        };
        if self.table.len() == self.table.capacity() {
            more += 2 * self.table.allocation_size() + 1024;
        }
        if self.fixed.is_none() {
            more += growth(&self.loose, 1) + state.len().max(1) + ALLOCATION_BYTES;
        }
        self.ensure(more)?;

        if fresh {
            grow(&mut self.chunks, 1);
            // The first one grows as it fills, so that a few keys take little.
            let bytes = if self.chunks.is_empty() { 0 } else { CHUNK_BYTES };
            self.chunks.push(Vec::with_capacity(bytes));
            self.chunk_bytes += bytes + ALLOCATION_BYTES;
        }
        let at = (self.chunks.len() - 1) * CHUNK_BYTES + self.chunks.last().map_or(0, Vec::len);
        let unit = u32::try_from(at / UNIT_BYTES).map_err(|_| {
            Error::invalid(format!("the keys take more than {at} bytes, the most that a table can hold"))
        })?;
        let number = (self.loose.len() as u32).to_le_bytes();
        if self.fixed.is_none() {
            grow(&mut self.loose, 1);
            self.loose.push(Loose { bytes: state.to_vec(), merged_bytes: state.len() });
            self.loose_bytes += state.len() + ALLOCATION_BYTES;
        }
        if let Some(chunk) = self.chunks.last_mut() {
            let (before, start) = (chunk.capacity(), chunk.len());
            grow(chunk, entry_bytes);
            put_varint(chunk, key.len() as u64);
            chunk.extend_from_slice(key);
            chunk.extend_from_slice(if self.fixed.is_some() { state } else { &number });
            debug_assert!(chunk.len() <= start + entry_bytes && start.is_multiple_of(UNIT_BYTES));
            chunk.resize(start + entry_bytes, 0);
            self.chunk_bytes += chunk.capacity() - before;
        }
        let slot = Slot { hash, unit };
        debug_assert!(self.entry(slot).0 == key, "an entry is found where it was put");
        self.table.insert_unique(slot.spread(), slot, Slot::spread);
        Ok(())
    }

    /// The state of an entry whose tail this is.
    fn state_of<'a>(&'a self, tail: &'a [u8], merged: &'a mut Vec<u8>) -> &'a [u8] {
        if let Some(bytes) = self.fixed {
            return &tail[..bytes];
        }
        let number = tail.first_chunk().map_or(0, |number| u32::from_le_bytes(*number) as usize);
        let loose = &self.loose[number];
        if loose.bytes.len() == loose.merged_bytes {
            return &loose.bytes;
        }
        merged.clear();
        self.function.merge(&loose.parts(), merged);
        merged
    }
}

impl<A: Aggregate> Aggregator<A> for HashAggregator<A> {
    #[inline]
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        let mut lifted = std::mem::take(&mut self.lifted);
        let added = lift(&self.function, key, value, &mut lifted).and_then(|()| self.upsert(key, &lifted));
        self.lifted = lifted;
        added
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        check(&self.function, key, state)?;
        self.upsert(key, state)
    }

    fn finalize(&mut self) -> Result<()> {
        (0..self.loose.len()).try_for_each(|number| self.merge_loose(number))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.find(self.hash_of(key), key);
        Ok(found.map(|slot| self.state_of(self.entry(slot).1, &mut Vec::new()).to_vec()))
    }

    /// In the order in which keys first came.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        let mut merged = Vec::new();
        for chunk in &self.chunks {
            let mut rest = &chunk[..];
            while let Some((key_bytes, used)) = get_varint(rest) {
                let (key, tail) = rest[used..].split_at(key_bytes as usize);
                visit(key, self.state_of(tail, &mut merged))?;
                let entry_bytes = used + key.len() + self.tail_bytes();
                rest = &rest[entry_bytes.next_multiple_of(UNIT_BYTES)..];
            }
        }
        Ok(())
    }

    #[inline]
    fn memory_bytes(&self) -> usize {
        self.table.allocation_size()
            + self.chunk_bytes
            + self.chunks.capacity() * size_of::<Vec<u8>>()
            + self.loose_bytes
            + self.loose.capacity() * size_of::<Loose>()
            + self.lifted.capacity()
            + self.spare.capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use forebay_base::hash::short_key;

    use super::*;
    use crate::functions::Count;

    /// Keys had one hash everywhere, and of eight bytes some that have the same are easily found.
    #[test]
    fn keys_of_chosen_hashes_do_not_fall_together() {
        let mut aggregator = HashAggregator::new(Count, 1 << 20);
        (0..1000).for_each(|hash| aggregator.add(&short_key(hash, 8, 0), ()).unwrap());
        let hashes: BTreeSet<u32> = aggregator.table.iter().map(|slot| slot.hash).collect();
        assert!(hashes.len() > 900, "{} hashes of 1000 keys", hashes.len());
    }
}
