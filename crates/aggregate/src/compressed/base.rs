//! What a leaf holds merged: chunks in the order of hashes, in which each key comes once, packed one behind the other
//! in one stream.

use std::ops::Range;

use forebay_base::Result;

use super::chunk::Packer;
use super::columns::Columns;
use super::hashing::Hashing;
use super::merge::malformed;
use super::stream::{Segment, Stream};
use super::tail::Lengths;
use crate::broken::Broken;

/// Packed records.
struct Chunk {
    /// The hash of the first.
    first: u64,
    /// Where they begin; they end where the next chunk begins.
    start: usize,
    lengths: Lengths,
}

/// The chunks of a leaf.
#[derive(Default)]
pub(super) struct Base {
    chunks: Vec<Chunk>,
    stream: Stream,
    pub(super) broken: Broken,
}

impl Base {
    /// Packs records that come behind all that are there, of which there is at least one; `next` gives segments.
    pub(super) fn push(
        &mut self,
        packer: &mut Packer,
        records: &Columns,
        next: &mut impl FnMut() -> Segment,
    ) {
        debug_assert!(
            self.chunks.last().is_none_or(|last| last.first <= records.hashes[0]),
            "chunks come in order"
        );
        let start = self.stream.end();
        self.stream.append(packer.pack(records), next);
        let mut lengths = Lengths::default();
        records.keys.lengths().for_each(|key_bytes| lengths.add(key_bytes as usize, 1));
        self.chunks.push(Chunk { first: records.hashes[0], start, lengths });
    }

    /// How many chunks there are.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// How many records there are.
    pub(super) fn records(&self) -> u64 {
        self.lengths().records
    }

    /// What they are like.
    pub(super) fn lengths(&self) -> Lengths {
        let mut lengths = Lengths::default();
        self.chunks.iter().for_each(|chunk| lengths.join(chunk.lengths));
        lengths
    }

    /// Gives all segments to `free`.
    pub(super) fn give_up(self, free: &mut Vec<Segment>) {
        self.stream.give_up(free);
    }

    /// Bytes of the chunks.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.first().map_or(0, |first| self.stream.end() - first.start)
    }

    /// Memory that it takes besides segments.
    pub(super) fn index_bytes(&self) -> usize {
        size_of::<Chunk>() * self.chunks.len() + self.broken.memory_bytes()
    }

    /// Takes no more memory than it needs.
    pub(super) fn shrink(mut self) -> Self {
        self.chunks.shrink_to_fit();
        self
    }

    fn place(&self, number: usize) -> Range<usize> {
        debug_assert!(number < self.len(), "chunk {number} of {}", self.len());
        let end = self.chunks.get(number + 1).map_or(self.stream.end(), |next| next.start);
        self.chunks[number].start..end
    }

    /// Puts the records of a chunk in place of those in `records`.
    pub(super) fn unpack(&self, number: usize, packer: &mut Packer, records: &mut Columns) -> Result<()> {
        packer.unpack_from(&self.stream, self.place(number), records).ok_or_else(malformed)?;
        debug_assert_eq!(
            records.len(),
            self.chunks[number].lengths.records as usize,
            "as many come out as went in"
        );
        Ok(())
    }

    /// The same for each in its turn, if there is one; segments that are behind then go to `free`.
    pub(super) fn consume(
        &mut self,
        number: usize,
        packer: &mut Packer,
        records: &mut Columns,
        free: &mut Vec<Segment>,
    ) -> Result<()> {
        records.clear();
        if number < self.len() {
            self.unpack(number, packer, records)?;
            let end = self.place(number).end;
            self.stream.cut_front(end, free);
        } else {
            self.stream.cut_back(self.stream.start(), free);
        }
        Ok(())
    }

    /// Takes off the chunks from this hash on, on both sides of which none lies.
    pub(super) fn split_off(&mut self, hash: u64, hashing: Hashing, next: impl FnOnce() -> Segment) -> Self {
        let number = self.chunks.partition_point(|chunk| chunk.first < hash);
        let broken = self.broken.split_off(|key| hashing.of(key) >= hash);
        if number == 0 {
            let left = Self { broken: std::mem::take(&mut self.broken), ..Self::default() };
            return Self { broken, ..std::mem::replace(self, left) };
        }
        let Some(start) = self.chunks.get(number).map(|chunk| chunk.start) else {
            return Self { broken, ..Self::default() };
        };
        let (chunks, stream) = (self.chunks.split_off(number), self.stream.split_off(start, next));
        debug_assert!(chunks.first().is_some_and(|chunk| chunk.first >= hash));
        self.chunks.shrink_to_fit();
        Self { chunks, stream, broken }
    }

    /// The first chunk in which there may be keys of this hash, or of a higher one.
    pub(super) fn first_with(&self, hash: u64) -> usize {
        // They may begin in the chunk before.
        self.chunks.partition_point(|chunk| chunk.first < hash).saturating_sub(1)
    }

    /// The state of a key, with memory to unpack; an error where the group is lost.
    pub(super) fn get(
        &self,
        hash: u64,
        key: &[u8],
        packer: &mut Packer,
        records: &mut Columns,
    ) -> Result<Option<Vec<u8>>> {
        if let Some(error) = self.broken.of(key) {
            return Err(error.clone());
        }
        let behind = self.chunks.partition_point(|chunk| chunk.first <= hash);
        for number in self.first_with(hash)..behind {
            self.unpack(number, packer, records)?;
            let at = records.seek(records.hashes.partition_point(|&other| other < hash), hash, key);
            if records.is(at, hash, key) {
                return Ok(Some(records.states.get(at).to_vec()));
            }
        }
        Ok(None)
    }
}
