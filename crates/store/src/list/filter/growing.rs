//! A filter that keys are added to while lookups go on: that of a tree file. Split blocks, as many as were thought fit
//! when it was begun; more keys than that make it err more often.

use forebay_base::hash::mix;
use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::Ordering;

use super::allowance::Allowance;
use super::blocks::{Blocks, wanted};
use super::span::Span;

/// 2 GiB of them.
const BLOCKS_MAX: u64 = 1 << 26;

/// Split blocks for a set that grows.
#[derive(Debug)]
pub struct GrowingFilter {
    blocks: Blocks,
    /// How many there were at first.
    count: u32,
    /// Held by whoever adds or thins: lookups do not need it.
    changing: Mutex<()>,
}

/// What a key does to a filter of this many blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its block.
    pub block: u32,
    /// What its bits in there follow from.
    pub half: u32,
}

impl Mark {
    /// That of a key of this filter hash.
    pub fn of(hash: u64, blocks: u32) -> Self {
        debug_assert!(blocks > 0, "a mark lies in a block");
        let spread = spread(hash);
        Self { block: Span::new(0, u64::MAX, blocks as u64).part(spread).0 as u32, half: spread as u32 }
    }
}

impl GrowingFilter {
    /// What a block takes, in bytes.
    pub const BLOCK_BYTES: usize = 32;

    /// How many blocks this many keys should have.
    pub fn blocks_for(keys: u64, bits_per_key: u32) -> u32 {
        wanted(keys, bits_per_key).min(BLOCKS_MAX) as u32
    }

    /// An empty one.
    pub fn new(count: u32) -> Self {
        debug_assert!(count > 0 && u64::from(count) <= BLOCKS_MAX);
        Self { blocks: Blocks::even(count), count, changing: Mutex::new(()) }
    }

    /// How many blocks it was begun with.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Adds keys.
    pub fn add(&self, marks: impl IntoIterator<Item = Mark>) {
        let _changing = self.changing.lock();
        marks.into_iter().for_each(|mark| self.blocks.mark(mark.block as u64, mark.half));
    }

    /// Adds all that another one of as many blocks has, given by its [bytes](Self::encode). Says whether they are that.
    pub fn unite(&self, bytes: &[u8]) -> bool {
        let _changing = self.changing.lock();
        let fits = bytes.len() == Self::BLOCK_BYTES * self.count as usize;
        if fits {
            self.blocks.unite(bytes);
        }
        fits
    }

    /// Whether a key of this filter hash may have been added.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.blocks.may_contain(spread(hash))
    }

    /// Gives up precision until `keys` keys take no more than they are allowed, as far as that goes. Returns how many
    /// bytes that gave back.
    pub fn thin(&self, allowed: Allowance, keys: u64) -> usize {
        let _changing = self.changing.lock();
        self.blocks.thin(allowed.whole_bits(), keys)
    }

    /// As [`thin`](Self::thin), before anybody looks: it moves to memory of its own length.
    pub fn thinned(mut self, allowed: Allowance, keys: u64) -> Self {
        self.thin(allowed, keys);
        self.blocks.fit();
        self
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.blocks.memory_bytes()
    }

    /// Appends its blocks, one behind the other.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let words = self.blocks.block_words();
        out.reserve_exact(size_of_val(words));
        words.iter().for_each(|word| out.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()));
    }
}

/// A tree in hash order may have only a stretch of all hashes, and still needs all blocks.
#[inline]
fn spread(hash: u64) -> u64 {
    mix(hash)
}
