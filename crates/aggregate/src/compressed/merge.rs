//! Merging a leaf: what was added to it is sorted by hash and merged with its chunks into new ones.

use std::cmp::Ordering;

use forebay_base::hash::mix;
use forebay_base::sort::{Pieces, pack, place_of, sort_words};
use forebay_base::wire::is_same;
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;

use super::base::Base;
use super::chunk::Packer;
use super::columns::Columns;
use super::hashing::Hashing;
use super::leaves::Leaf;
use super::parts::Part;
use super::spill::REPEATS_MIN;
use super::stream::Pool;
use super::tail::{Tail, lengthen, record_at};
use super::walk::{Chunks, Walk};
use super::writer::{CHUNK_BYTES, CHUNK_RECORDS, Form, Writer};
use crate::aggregate::Aggregate;
use crate::aggregator::check_length;
use crate::broken::Broken;
use crate::stages::{Stage, Stages, timed};

/// This many records are fetched at once.
const LOOK_AHEAD: usize = 32;

const _: () = assert!(CHUNK_RECORDS >= LOOK_AHEAD && CHUNK_BYTES <= u32::MAX as usize);

/// Memory to merge with.
pub(super) struct Merger {
    /// The records that were added.
    raw: Vec<u8>,
    /// Their order,
    words: Vec<u64>,
    /// and how many of them are merged.
    done: usize,
    walk: Walk,
    writer: Writer,
    state: Vec<u8>,
    state_bytes_max: usize,
    /// How many records were merged that had been added.
    merged: u64,
    stages: Option<Arc<Stages>>,
}

impl Merger {
    pub(super) fn new(
        state_bytes: Option<usize>,
        hashing: Hashing,
        state_bytes_max: usize,
        pool: Arc<Pool>,
        stages: Option<Arc<Stages>>,
    ) -> Self {
        let packer = || Packer::new(state_bytes, hashing).counted(stages.clone());
        Self {
            raw: Vec::new(),
            words: Vec::new(),
            done: 0,
            walk: Walk::new(packer(), state_bytes),
            writer: Writer::new(packer(), state_bytes, pool),
            state: vec![0; state_bytes.unwrap_or(0)],
            state_bytes_max,
            merged: 0,
            stages,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let vecs = self.raw.capacity() + size_of::<u64>() * self.words.capacity() + self.state.capacity();
        vecs + self.walk.memory_bytes() + self.writer.memory_bytes()
    }

    /// Shows the records of a tail, of which nothing is left.
    pub(super) fn take_apart(&mut self, tail: Tail, mut show: impl FnMut(&[u8], &[u8])) {
        self.read(tail);
        self.writer.give_back();
        let mut place = 0;
        while let Some((key, state, end)) = record_at(&self.raw, place) {
            show(key, state);
            place = end;
        }
    }

    /// Appends what a leaf has of a key, each state at its full length.
    pub(super) fn collect(
        &mut self,
        tail: &Tail,
        base: &Base,
        hash: u64,
        key: &[u8],
        states: &mut Vec<Vec<u8>>,
    ) -> Result<()> {
        let Self { raw, walk, state, .. } = self;
        raw.clear();
        tail.copy(raw);
        let mut place = 0;
        while place < raw.len() {
            let (other, found, end) = record_at(raw, place).ok_or_else(malformed)?;
            if is_same(other, key) {
                states.push(match walk.packer.state_bytes() {
                    Some(_) => {
                        lengthen(found, state);
                        state.clone()
                    }
                    None => found.to_vec(),
                });
            }
            place = end;
        }
        states.extend(base.get(hash, key, &mut walk.packer, &mut walk.records)?);
        Ok(())
    }

    fn read(&mut self, tail: Tail) {
        self.raw.clear();
        tail.drain(&mut self.raw, &mut self.writer.free);
    }

    /// Merges what was added to a leaf with its chunks.
    pub(super) fn merge<A: Aggregate>(
        &mut self,
        function: &A,
        leaf: &Leaf,
        tail: Tail,
        base: Base,
    ) -> Result<Base> {
        let stages = self.stages.clone();
        let stages = stages.as_deref();
        timed(stages, Stage::Copy, || self.read(tail));
        timed(stages, Stage::Sort, || self.sort(leaf))?;
        timed(stages, Stage::Merge, || self.merge_sorted(function, leaf, base))
    }

    /// Begins to do the same with what is left where it lies, and comes in pieces of about so many bytes.
    pub(super) fn begin_loose(&mut self, part: &Arc<Part>, piece_bytes: usize) -> Result<()> {
        let stages = self.stages.clone();
        let stages = stages.as_deref();
        self.raw.clear();
        timed(stages, Stage::Copy, || part.tail.copy(&mut self.raw));
        timed(stages, Stage::Sort, || self.sort(&part.leaf))?;
        self.writer.restart(None, Form::Loose { piece_bytes });
        timed(stages, Stage::Merge, || self.begin(Chunks::Lent(Arc::clone(part))))
    }

    /// Puts what comes next in place of what `records` hold, unpacked. Returns the groups that are lost once that is all.
    pub(super) fn go_on_loose<A: Aggregate>(
        &mut self,
        function: &A,
        records: &mut Columns,
    ) -> Result<Option<Broken>> {
        let stages = self.stages.clone();
        let is_over = timed(stages.as_deref(), Stage::Merge, || self.go_on(function))?;
        self.writer.take_loose(records);
        debug_assert!(is_over || !records.is_empty(), "who has not enough goes on to the end");
        Ok(is_over.then(|| self.writer.finish_loose()))
    }

    /// Whether so many records of a tail have the key of another one that merging them pays. Few hashes meet by chance:
    /// there are 64 bits for each.
    pub(super) fn has_repeats(&mut self, tail: &Tail) -> Result<bool> {
        let (records, hashing) = (tail.lengths().records, self.walk.packer.hashing());
        self.raw.clear();
        tail.copy(&mut self.raw);
        self.words.clear();
        self.words.resize(records as usize, 0);
        let (mut place, mut distinct) = (0, 0_u64);
        while place < self.raw.len() {
            let (key, _, end) = record_at(&self.raw, place).ok_or_else(malformed)?;
            let bit = ((u128::from(mix(hashing.of(key))) * u128::from(64 * records)) >> 64) as usize;
            let word = &mut self.words[bit / 64];
            distinct += !*word >> (bit % 64) & 1;
            *word |= 1 << (bit % 64);
            place = end;
        }
        debug_assert!(distinct <= records, "each record is counted once");
        Ok(records as f64 >= REPEATS_MIN * distinct as f64)
    }

    /// How many records were merged since this was asked last.
    pub(super) fn take_merged(&mut self) -> u64 {
        std::mem::take(&mut self.merged)
    }

    fn merge_sorted<A: Aggregate>(&mut self, function: &A, leaf: &Leaf, base: Base) -> Result<Base> {
        self.writer.restart(leaf.middle(), Form::Packed);
        self.begin(Chunks::Own(base))?;
        let is_over = self.go_on(function)?;
        debug_assert!(is_over, "of chunks there is never enough");
        Ok(self.writer.finish())
    }

    fn begin(&mut self, chunks: Chunks) -> Result<()> {
        self.done = 0;
        self.walk.restart(chunks, &mut self.writer)?;
        self.writer.base.broken = self.walk.base.take_broken();
        self.merged += self.words.len() as u64;
        Ok(())
    }

    /// Merges until the writer has enough; says whether that is all.
    fn go_on<A: Aggregate>(&mut self, function: &A) -> Result<bool> {
        let (words, raw) = (std::mem::take(&mut self.words), std::mem::take(&mut self.raw));
        self.done += match function.state_bytes() {
            Some(_) => self.merge_fixed(function, &raw, &words[self.done..])?,
            None => self.merge_any(function, &raw, &words[self.done..])?,
        };
        debug_assert!(self.done <= words.len(), "each record is merged once");
        (self.words, self.raw) = (words, raw);
        Ok(self.done == self.words.len() && self.walk.finish(&mut self.writer)?)
    }

    /// Puts what was added in the order of hashes, and of keys of equal hashes.
    fn sort(&mut self, leaf: &Leaf) -> Result<()> {
        let (raw, (low, high), hashing) = (&self.raw, leaf.hashes(), self.walk.packer.hashing());
        let pieces = Pieces::new(low, high);
        self.words.clear();
        let mut place = 0;
        while place < raw.len() {
            let (key, _, end) = record_at(raw, place).ok_or_else(malformed)?;
            let hash = hashing.of(key);
            debug_assert!((low..=high).contains(&hash), "the record is of this leaf");
            self.words.push(pack(pieces.of(hash), place as u32));
            place = end;
        }
        debug_assert_eq!(place, raw.len(), "the last record ends where all do");
        sort_words(&mut self.words, &mut |one, other| {
            let [one, other] = [one, other].map(|place| record_at(raw, place as usize).map(|(key, ..)| key));
            match (one, other) {
                // Nearly all whose pieces are equal are of one key.
                (Some(one), Some(other)) if is_same(one, other) => Ordering::Equal,
                keys => {
                    let [one, other] = <[_; 2]>::from(keys).map(|key| key.map(|key| (hashing.of(key), key)));
                    one.cmp(&other)
                }
            }
        });
        Ok(())
    }

    /// Merges states of a fixed length into their keys' where those lie. Returns how many, where the writer has enough.
    fn merge_fixed<A: Aggregate>(&mut self, function: &A, raw: &[u8], words: &[u64]) -> Result<usize> {
        let Self { walk, writer, state, .. } = self;
        let hashing = walk.packer.hashing();
        // Records lie anywhere: this many are asked for at a time, and not each only once the one before is merged.
        let mut next = [(0, &raw[..0], &raw[..0]); LOOK_AHEAD];
        for (number, some) in words.chunks(LOOK_AHEAD).enumerate() {
            for (place, &word) in next.iter_mut().zip(some) {
                let (key, state, _) = record_at(raw, place_of(word) as usize).ok_or_else(malformed)?;
                *place = (hashing.of(key), key, state);
            }
            for (at, &(hash, key, added)) in next[..some.len()].iter().enumerate() {
                lengthen(added, state);
                if !walk.seek(hash, key, writer)? {
                    return Ok(number * LOOK_AHEAD + at);
                }
                if walk.is_at(hash, key) {
                    function.merge_in_place(walk.records.states.get_mut(walk.at), state);
                } else if let Some(last) = writer.last_of(hash, key) {
                    function.merge_in_place(last, state);
                } else {
                    walk.copy(writer);
                    writer.push(hash, key, state);
                }
            }
        }
        Ok(words.len())
    }

    /// Merges states of any length, all of a key at once, into new ones. Of a state that becomes too long the group is
    /// lost, and so is what comes to it later. Returns how many are merged, where the writer has enough.
    fn merge_any<A: Aggregate>(&mut self, function: &A, raw: &[u8], words: &[u64]) -> Result<usize> {
        let Self { walk, writer, state: merged, state_bytes_max, .. } = self;
        let record = |word: u64| record_at(raw, place_of(word) as usize).ok_or_else(malformed);
        let mut rest = words;
        while let Some(&word) = rest.first() {
            let (key, ..) = record(word)?;
            let hash = walk.packer.hashing().of(key);
            if !walk.seek(hash, key, writer)? {
                return Ok(words.len() - rest.len());
            }
            let found = walk.is_at(hash, key);
            let mut states: Vec<&[u8]> = Vec::new();
            if found {
                states.push(walk.records.states.get(walk.at));
            }
            while let Some((&word, behind)) = rest.split_first() {
                let (other, state, _) = record(word)?;
                if other != key {
                    break;
                }
                states.push(state);
                rest = behind;
            }
            merged.clear();
            match states[..] {
                [state] => merged.extend_from_slice(state),
                _ => function.merge(&states, merged),
            }
            let length = check_length(key, merged, *state_bytes_max);
            walk.copy(writer);
            match length {
                Ok(()) if writer.base.broken.of(key).is_none() => writer.push(hash, key, merged),
                Ok(()) => {}
                Err(error) => writer.base.broken.add(key, error),
            }
            if found {
                walk.skip();
            }
        }
        Ok(words.len())
    }
}

pub(super) fn malformed() -> Error {
    Error::bug("a record or chunk in memory is malformed")
}
