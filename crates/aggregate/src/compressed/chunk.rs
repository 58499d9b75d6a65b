//! A chunk: a few hundred records in order, column by column, each column packed as suits it.
//!
//! `varint records | keys | states`. Keys of one length up to eight bytes, in hash order, are the differences of
//! their hashes, which give them back. Other keys are their lengths and their bytes. States of a fixed length are a
//! column for each eight bytes of them, as little-endian numbers. Others are their lengths and their bytes. Bytes are
//! as they are or LZ4, whichever was shorter when it was tried.

use forebay_base::codec::Codec;
use forebay_base::hash::short_key;
use forebay_base::wire::{Reader, put_bytes, put_varint};
use forebay_base::{Block, Order};

use super::column::{get_column, put_column};

const SHORT_KEYS: u8 = 0;
const KEYS: u8 = 1;
/// Keys of at most this many bytes are given back by their hashes.
const SHORT_KEY_BYTES_MAX: usize = 8;

/// How records are packed, and memory to do so.
#[derive(Debug)]
pub(super) struct Packer {
    order: Order,
    /// Bytes of every state, if that is one number.
    state_bytes: Option<usize>,
    numbers: Vec<u64>,
    bytes: Vec<u8>,
    compressed: Vec<u8>,
    packed: Vec<u8>,
}

impl Packer {
    pub(super) fn new(order: Order, state_bytes: Option<usize>) -> Self {
        Self {
            order,
            state_bytes,
            numbers: Vec::new(),
            bytes: Vec::new(),
            compressed: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// Packs all records of a block, of which there is at least one.
    pub(super) fn pack(&mut self, block: &Block, codec: Codec) -> &[u8] {
        let mut out = std::mem::take(&mut self.packed);
        out.clear();
        put_varint(&mut out, block.len() as u64);
        self.put_keys(block, codec, &mut out);
        match self.state_bytes {
            Some(bytes) => self.put_fixed_states(block, bytes, &mut out),
            None => self.put_bytes(block, codec, &mut out, Block::value),
        }
        self.packed = out;
        &self.packed
    }

    fn put_keys(&mut self, block: &Block, codec: Codec, out: &mut Vec<u8>) {
        let key_bytes = block.key(0).len();
        let short = matches!(self.order, Order::Hashed { .. })
            && key_bytes <= SHORT_KEY_BYTES_MAX
            && (1..block.len()).all(|index| block.key(index).len() == key_bytes);
        if !short {
            out.push(KEYS);
            return self.put_bytes(block, codec, out, Block::key);
        }
        out.extend_from_slice(&[SHORT_KEYS, key_bytes as u8]);
        let mut last = 0;
        self.numbers.clear();
        self.numbers
            .extend(block.prefixes().iter().map(|&prefix| prefix - std::mem::replace(&mut last, prefix)));
        // The first is no difference, and would be an exception.
        put_varint(out, self.numbers[0]);
        put_column(&self.numbers[1..], out);
    }

    /// Puts pieces of any length.
    fn put_bytes<'b>(
        &mut self,
        block: &'b Block,
        codec: Codec,
        out: &mut Vec<u8>,
        piece: impl Fn(&'b Block, usize) -> &'b [u8],
    ) {
        self.numbers.clear();
        self.bytes.clear();
        for index in 0..block.len() {
            let piece = piece(block, index);
            self.numbers.push(piece.len() as u64);
            self.bytes.extend_from_slice(piece);
        }
        put_column(&self.numbers, out);
        self.compressed.clear();
        let (used, stored) = match codec {
            Codec::None => (Codec::None, &self.bytes),
            codec => (codec.compress(&self.bytes, &mut self.compressed), &self.compressed),
        };
        out.push(used as u8);
        put_bytes(out, stored);
    }

    fn put_fixed_states(&mut self, block: &Block, bytes: usize, out: &mut Vec<u8>) {
        for word in 0..bytes.div_ceil(8) {
            let (start, end) = (8 * word, bytes.min(8 * word + 8));
            self.numbers.clear();
            self.numbers.extend((0..block.len()).map(|index| number(&block.value(index)[start..end])));
            put_column(&self.numbers, out);
        }
    }

    /// Appends the records of a chunk to a block. `None` where the bytes are no chunk.
    pub(super) fn unpack(&mut self, chunk: &[u8], block: &mut Block) -> Option<()> {
        let mut from = Reader::new(chunk);
        let count = from.varint()? as usize;
        let keys = Pieces::keys(&mut from, count, self.order)?;
        let states = match self.state_bytes {
            Some(bytes) => Pieces::fixed_states(&mut from, count, bytes)?,
            None => Pieces::read(&mut from, count)?,
        };
        let (mut key_ends, mut state_ends) = (keys.ends(), states.ends());
        let (mut key, mut state) = (0, 0);
        for index in 0..count {
            let (key_end, state_end) = (key_ends.next()?, state_ends.next()?);
            let prefix = match keys.hashes.get(index) {
                Some(&hash) => hash,
                None => self.order.prefix(keys.bytes.get(key..key_end)?),
            };
            block.push_parts(prefix, (&keys.bytes, key..key_end), (&states.bytes, state..state_end));
            (key, state) = (key_end, state_end);
        }
        Some(())
    }
}

/// A little-endian number of up to eight bytes.
#[inline]
fn number(bytes: &[u8]) -> u64 {
    if let Ok(word) = bytes.try_into() {
        return u64::from_le_bytes(word);
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Keys or states, side by side.
struct Pieces {
    bytes: Vec<u8>,
    lengths: Lengths,
    /// Of keys that were their hashes.
    hashes: Vec<u64>,
}

enum Lengths {
    All(usize),
    Each(Vec<u64>),
}

impl Pieces {
    fn keys(from: &mut Reader<'_>, count: usize, order: Order) -> Option<Self> {
        if from.u8()? == KEYS {
            return Self::read(from, count);
        }
        let Order::Hashed { seed } = order else { return None };
        let key_bytes = from.u8()? as usize;
        let mut hash = from.varint()?;
        let mut differences = Vec::new();
        get_column(from, count.checked_sub(1)?, &mut differences)?;
        let mut bytes = Vec::with_capacity(count * key_bytes);
        let mut push = |hash: u64| {
            let key = short_key(hash, key_bytes, seed);
            match key_bytes {
                8 => bytes.extend_from_slice(&key),
                _ => bytes.extend_from_slice(key.get(..key_bytes)?),
            }
            Some(())
        };
        push(hash)?;
        for difference in &mut differences {
            let before = std::mem::replace(difference, hash);
            hash = hash.wrapping_add(before);
            push(hash)?;
        }
        differences.push(hash);
        Some(Self { bytes, lengths: Lengths::All(key_bytes), hashes: differences })
    }

    fn read(from: &mut Reader<'_>, count: usize) -> Option<Self> {
        let mut lengths = Vec::new();
        get_column(from, count, &mut lengths)?;
        let codec = Codec::from_byte(from.u8()?)?;
        let stored = from.bytes()?;
        let sum = lengths.iter().try_fold(0u64, |sum, &length| sum.checked_add(length))?;
        let sum = usize::try_from(sum).ok()?;
        let bytes = codec.decompress(stored, sum)?;
        Some(Self { bytes, lengths: Lengths::Each(lengths), hashes: Vec::new() })
    }

    fn fixed_states(from: &mut Reader<'_>, count: usize, state_bytes: usize) -> Option<Self> {
        let mut bytes = vec![0; count.checked_mul(state_bytes)?];
        let mut numbers = Vec::new();
        for word in 0..state_bytes.div_ceil(8) {
            let (start, end) = (8 * word, state_bytes.min(8 * word + 8));
            get_column(from, count, &mut numbers)?;
            for (state, number) in bytes.chunks_exact_mut(state_bytes).zip(&numbers) {
                match state[start..end].first_chunk_mut() {
                    Some(word) => *word = number.to_le_bytes(),
                    None => state[start..end].copy_from_slice(&number.to_le_bytes()[..end - start]),
                }
            }
        }
        Some(Self { bytes, lengths: Lengths::All(state_bytes), hashes: Vec::new() })
    }

    /// Where each ends; all of them in `bytes`.
    fn ends(&self) -> impl Iterator<Item = usize> {
        let (mut end, mut index) = (0, 0);
        std::iter::from_fn(move || {
            end += match &self.lengths {
                Lengths::All(length) => *length,
                Lengths::Each(lengths) => *lengths.get(index)? as usize,
            };
            index += 1;
            (end <= self.bytes.len()).then_some(end)
        })
    }
}
