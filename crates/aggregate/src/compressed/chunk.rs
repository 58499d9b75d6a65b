//! A chunk: a few hundred records in order, column by column, each column packed as suits it.
//!
//! `varint records | keys | states`. Keys of one length up to eight bytes are the differences of their hashes, which
//! give them back. Other keys are their lengths and their bytes. States of a fixed length are a column for each
//! eight bytes of them, as little-endian numbers. Others are their lengths and their bytes. Bytes are a column of
//! symbols, or LZ4 where that was shorter when it was tried.

use std::ops::Range;

use forebay_base::codec::Codec;
use forebay_base::hash::short_key;
use forebay_base::wire::{Reader, put_bytes, put_varint};
use forebay_env::sync::Arc;

use super::column::{get_column, get_symbols, put_column, put_symbols};
use super::columns::{Columns, Strings};
use super::hashing::{Hashing, SEED};
use super::stream::Stream;
use crate::stages::{Stage, Stages, timed_within};

const SHORT_KEYS: u8 = 0;
const KEYS: u8 = 1;
/// Keys of at most this many bytes are given back by their hashes.
const SHORT_KEY_BYTES_MAX: usize = 8;
/// LZ4 is kept where it saves this share.
const WORTHWHILE: f64 = 0.1;
/// How bytes are packed.
const SYMBOLS: u8 = 0;
const LZ4: u8 = 1;

/// Packs and unpacks, with memory to do so.
#[derive(Debug)]
pub(super) struct Packer {
    /// Bytes of every state, if that is one number.
    state_bytes: Option<usize>,
    hashing: Hashing,
    /// How bytes are packed; chosen at the first chunk.
    codec: Option<u8>,
    numbers: Vec<u64>,
    compressed: Vec<u8>,
    packed: Vec<u8>,
    /// Where what it takes is counted: as part of a merge.
    stages: Option<Arc<Stages>>,
}

impl Packer {
    pub(super) fn new(state_bytes: Option<usize>, hashing: Hashing) -> Self {
        let (numbers, compressed, packed, stages) = Default::default();
        Self { state_bytes, hashing, codec: None, numbers, compressed, packed, stages }
    }

    /// One whose work is counted.
    pub(super) fn counted(self, stages: Option<Arc<Stages>>) -> Self {
        Self { stages, ..self }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<u64>() * self.numbers.capacity() + self.compressed.capacity() + self.packed.capacity()
    }

    pub(super) fn hashing(&self) -> Hashing {
        self.hashing
    }

    pub(super) fn state_bytes(&self) -> Option<usize> {
        self.state_bytes
    }

    /// Forgets how bytes were packed, to choose anew.
    pub(super) fn restart(&mut self) {
        self.codec = None;
    }

    /// Packs all records, of which there is at least one.
    pub(super) fn pack(&mut self, records: &Columns) -> &[u8] {
        let stages = self.stages.clone();
        timed_within(stages.as_deref(), Stage::Merge, Stage::Pack, || self.pack_best(records));
        &self.packed
    }

    fn pack_best(&mut self, records: &Columns) {
        debug_assert!(!records.is_empty() && records.is_whole() && records.hashes.is_sorted());
        let codec = match self.codec {
            Some(codec) => codec,
            None => {
                let [symbols, lz4] = [SYMBOLS, LZ4].map(|codec| self.pack_by(codec, records).len());
                if lz4 as f64 <= (1.0 - WORTHWHILE) * symbols as f64 { LZ4 } else { SYMBOLS }
            }
        };
        self.codec = Some(codec);
        self.pack_by(codec, records);
    }

    fn pack_by(&mut self, codec: u8, records: &Columns) -> &[u8] {
        let mut out = std::mem::take(&mut self.packed);
        out.clear();
        put_varint(&mut out, records.len() as u64);
        if let Some(key_bytes) = self.short_key_bytes(records) {
            out.extend_from_slice(&[SHORT_KEYS, key_bytes]);
            put_varint(&mut out, records.hashes[0]);
            self.numbers.clear();
            self.numbers.extend(records.hashes.windows(2).map(|pair| pair[1] - pair[0]));
            put_column(&self.numbers, &mut out);
        } else {
            out.push(KEYS);
            self.put_strings(codec, &records.keys, &mut out);
        }
        match self.state_bytes {
            Some(bytes) => self.put_fixed_states(&records.states.bytes, bytes, &mut out),
            None => self.put_strings(codec, &records.states, &mut out),
        }
        self.packed = out;
        &self.packed
    }

    /// The length of all keys, where it is one and their hashes give them back.
    fn short_key_bytes(&self, records: &Columns) -> Option<u8> {
        let length = records.keys.get(0).len();
        let is_short = length <= SHORT_KEY_BYTES_MAX
            && self.hashing.is_invertible()
            && records.keys.bytes.len() == length * records.len()
            && records.keys.lengths().all(|other| other == length as u64);
        is_short.then_some(length as u8)
    }

    fn put_strings(&mut self, codec: u8, strings: &Strings, out: &mut Vec<u8>) {
        self.numbers.clear();
        self.numbers.extend(strings.lengths());
        put_column(&self.numbers, out);
        self.compressed.clear();
        match codec {
            LZ4 if Codec::Lz4.compress(&strings.bytes, &mut self.compressed) == Codec::Lz4 => {
                out.push(LZ4);
                put_bytes(out, &self.compressed);
            }
            _ => {
                out.push(SYMBOLS);
                put_symbols(&strings.bytes, out);
            }
        }
    }

    fn put_fixed_states(&mut self, states: &[u8], bytes: usize, out: &mut Vec<u8>) {
        debug_assert!(bytes == 0 || states.len().is_multiple_of(bytes), "states of one length");
        for word in 0..bytes.div_ceil(8) {
            let (start, end) = (8 * word, bytes.min(8 * word + 8));
            self.numbers.clear();
            self.numbers.extend(states.chunks_exact(bytes).map(|state| number(&state[start..end])));
            put_column(&self.numbers, out);
        }
    }

    /// Puts the records of the chunk that lies there in place of those in `records`. `None` where none does.
    pub(super) fn unpack_from(
        &mut self,
        stream: &Stream,
        place: Range<usize>,
        records: &mut Columns,
    ) -> Option<()> {
        let mut joined = std::mem::take(&mut self.packed);
        let stages = self.stages.clone();
        let unpacked = timed_within(stages.as_deref(), Stage::Merge, Stage::Unpack, || {
            self.unpack(stream.get(place, &mut joined), records)
        });
        self.packed = joined;
        debug_assert!(unpacked.is_some() && records.is_whole(), "what was packed here is unpacked");
        unpacked
    }

    fn unpack(&mut self, chunk: &[u8], records: &mut Columns) -> Option<()> {
        records.clear();
        let mut from = Reader::new(chunk);
        let count = usize::try_from(from.varint()?).ok()?;
        if from.u8()? == SHORT_KEYS {
            self.get_short_keys(&mut from, count, records)?;
        } else {
            self.get_strings(&mut from, count, &mut records.keys)?;
            let Columns { hashes, keys, .. } = records;
            hashes.extend((0..count).map(|index| self.hashing.of(keys.get(index))));
        }
        match self.state_bytes {
            Some(bytes) => self.get_fixed_states(&mut from, count, bytes, &mut records.states.bytes),
            None => self.get_strings(&mut from, count, &mut records.states),
        }
    }

    fn get_short_keys(&mut self, from: &mut Reader<'_>, count: usize, records: &mut Columns) -> Option<()> {
        let key_bytes = from.u8()? as usize;
        let mut hash = from.varint()?;
        get_column(from, count.checked_sub(1)?, &mut self.numbers)?;
        let differences = self.numbers.iter().chain([&0]);
        for &difference in differences {
            records.hashes.push(hash);
            records.keys.push(short_key(hash, key_bytes, SEED).get(..key_bytes)?);
            hash = hash.wrapping_add(difference);
        }
        Some(())
    }

    fn get_strings(&mut self, from: &mut Reader<'_>, count: usize, strings: &mut Strings) -> Option<()> {
        get_column(from, count, &mut self.numbers)?;
        let bytes = strings.set_lengths(&self.numbers)?;
        match from.u8()? {
            LZ4 => strings.bytes = Codec::Lz4.decompress(from.bytes()?, bytes)?,
            _ => get_symbols(from, bytes, &mut strings.bytes)?,
        }
        Some(())
    }

    fn get_fixed_states(
        &mut self,
        from: &mut Reader<'_>,
        count: usize,
        bytes: usize,
        states: &mut Vec<u8>,
    ) -> Option<()> {
        states.resize(count.checked_mul(bytes)?, 0);
        for word in 0..bytes.div_ceil(8) {
            let (start, end) = (8 * word, bytes.min(8 * word + 8));
            get_column(from, count, &mut self.numbers)?;
            for (state, number) in states.chunks_exact_mut(bytes).zip(&self.numbers) {
                match state[start..end].first_chunk_mut() {
                    Some(word) => *word = number.to_le_bytes(),
                    None => state[start..end].copy_from_slice(&number.to_le_bytes()[..end - start]),
                }
            }
        }
        Some(())
    }
}

/// A little-endian number of up to eight bytes.
#[inline]
pub(super) fn number(bytes: &[u8]) -> u64 {
    if let Ok(word) = bytes.try_into() {
        return u64::from_le_bytes(word);
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use forebay_base::hash::{key_hash, mix};
    use proptest::prelude::*;

    use super::*;

    /// Records of these keys in order, each with a state made from its key.
    fn records(mut keys: Vec<Vec<u8>>, state_bytes: Option<usize>) -> Columns {
        keys.sort_by_key(|key| (key_hash(key, SEED), key.clone()));
        keys.dedup();
        let mut records = Columns::new(state_bytes);
        for key in keys {
            let state: Vec<u8> =
                key.iter().copied().cycle().take(state_bytes.unwrap_or(key.len() % 5)).collect();
            let state = if key.is_empty() { vec![0; state_bytes.unwrap_or(0)] } else { state };
            records.push(key_hash(&key, SEED), &key, &state);
        }
        records
    }

    proptest! {
        #[test]
        fn chunks_come_back(keys: Vec<Vec<u8>>, length in 0..12usize, state_bytes: Option<u8>, same: bool) {
            let state_bytes = state_bytes.map(|bytes| bytes as usize % 20 + 1);
            let keys = keys.into_iter().map(|mut key| {
                if same {
                    key.resize(length, 7);
                }
                key
            });
            let records = records(keys.chain([vec![1; length]]).collect(), state_bytes);
            let mut packer = Packer::new(state_bytes, Hashing::WHOLE);
            let chunk = packer.pack(&records).to_vec();
            let mut found = Columns::new(state_bytes);
            found.push(1, b"rubbish", &vec![3; state_bytes.unwrap_or(1)]);
            prop_assert_eq!(packer.unpack(&chunk, &mut found), Some(()));
            prop_assert_eq!(&found.hashes, &records.hashes);
            for index in 0..records.len() {
                prop_assert_eq!(found.keys.get(index), records.keys.get(index));
                prop_assert_eq!(found.states.get(index), records.states.get(index));
            }
        }
    }

    #[test]
    fn lower_case_words_take_five_bits_a_letter() {
        let mut words = Columns::new(Some(8));
        for word in 0..512u64 {
            let letters: Vec<u8> =
                (0..10).map(|letter| b'a' + (mix(word ^ letter << 32) % 26) as u8).collect();
            words.push(word, &letters, &1u64.to_le_bytes());
        }
        let packed = Packer::new(Some(8), Hashing::WHOLE).pack(&words).len();
        assert!((512 * 50 / 8..512 * 52 / 8).contains(&packed), "{packed} bytes");
    }
}
