//! The filter of a list that is not in the order of its hashes: a split-block Bloom filter. (WB paper, section
//! 3.4.1, has plain Bloom filters of 10 bits a key.)
//!
//! A key sets eight bits in one block of 256. The block is chosen by the *high* bits of the key's hash.
//!
//! The number of records is only known within a bound when the first one is added. Blocks are therefore
//! made for the bound and, at the end, neighbours are folded into one as often as the true count allows:
//! because the choice of block keeps order, block `i` of the folded filter is exactly `2i | 2i + 1` of the
//! unfolded one. Thinning folds on, in place, while lookups go on, by the same rules as those of
//! [fingerprints](super::fingerprints).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use forebay_base::wire::{Reader, u64_at};
use forebay_env::sync::atomic::{AtomicU32, Ordering, fence};
use forebay_env::{Words, prefetch};

use super::fingerprints::Place;
use super::span::Span;

const BLOCK_BITS: u64 = 256;
const BLOCK_WORDS: usize = 4;
/// Thinning leaves this many bits for each key: fewer deny none.
pub(super) const BITS_MIN: u64 = 2;
/// Of `state`: blocks are being folded.
const REWRITING: u32 = 1 << 31;
/// Nothing is left of them.
const GONE: u32 = 1 << 30;

const _: () = assert!(REWRITING & GONE == 0 && BLOCK_BITS == 64 * BLOCK_WORDS as u64);

/// Odd constants that draw eight independent 5-bit numbers from one 32-bit hash.
const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// A set of hashes that may also answer yes for others, seldom.
#[derive(Debug)]
pub(crate) struct Blocks {
    span: Span,
    /// How many blocks there were at first.
    count: usize,
    /// How often neighbours were folded before this filter was made.
    folded: u32,
    /// How often since, and whether that is going on.
    state: AtomicU32,
    words: Words,
}

/// The bits of a hash in its block.
#[inline]
fn bits_of(hash: u64) -> [u64; BLOCK_WORDS] {
    let bit = |lane: usize| (hash as u32).wrapping_mul(SALTS[lane]) >> 27;
    std::array::from_fn(|word| 1 << bit(2 * word) | 1 << (32 + bit(2 * word + 1)))
}

impl Blocks {
    /// An empty filter for up to about `keys` hashes between `low` and `high`, both included.
    pub(crate) fn new(keys: u64, bits_per_key: u32, low: u64, high: u64) -> Self {
        let span = Span::new(low, high, wanted(keys, bits_per_key));
        Self::of(span, span.part(high).0 as usize + 1)
    }

    /// An empty filter of this many blocks, for any hash.
    pub(super) fn even(count: u32) -> Self {
        Self::of(Span::new(0, u64::MAX, count as u64), count as usize)
    }

    fn of(span: Span, count: usize) -> Self {
        Self { span, count, folded: 0, state: AtomicU32::new(0), words: Words::zeroed(BLOCK_WORDS * count) }
    }

    /// Adds a hash inside the span.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        if let Some(block) = self.block(self.part(hash), 0) {
            block.iter().zip(bits_of(hash)).for_each(|(at, bits)| at.store(at.load(Relaxed) | bits, Relaxed));
        }
    }

    /// The filter of the `keys` hashes that were added, with about this many bits for each.
    pub(crate) fn finish(self, keys: u64, bits_per_key: u32) -> Self {
        let mut folds = 0;
        while self.count > 1 && self.count as u64 >= wanted(keys, bits_per_key) << (folds + 1) {
            folds += 1;
        }
        self.fold(folds);
        let count = self.blocks();
        let words = Words::zeroed(BLOCK_WORDS * count);
        words
            .as_slice()
            .iter()
            .zip(self.words.as_slice())
            .for_each(|(to, from)| to.store(from.load(Relaxed), Relaxed));
        Self { count, folded: folds, state: AtomicU32::new(0), words, ..self }
    }

    /// Adds a hash of this part, the lower half of which is given, while lookups go on. Nobody folds meanwhile.
    pub(super) fn mark(&self, part: u64, half: u32) {
        if let Some(block) = self.block(part, self.state.load(Relaxed)) {
            block.iter().zip(bits_of(half as u64)).for_each(|(at, bits)| _ = at.fetch_or(bits, Relaxed));
        }
    }

    /// Adds all that another filter has of as many blocks as this one had at first, given by its words' bytes. As
    /// [`mark`](Self::mark).
    pub(super) fn unite(&self, bytes: &[u8]) {
        for (part, other) in bytes.chunks_exact(8 * BLOCK_WORDS).enumerate() {
            let block = self.block(part as u64, self.state.load(Relaxed)).into_iter().flatten();
            block.zip(other.chunks_exact(8)).for_each(|(at, word)| _ = at.fetch_or(u64_at(word, 0), Relaxed));
        }
    }

    /// The part of the span that a hash is in: its block, as long as none are folded.
    #[inline]
    fn part(&self, hash: u64) -> u64 {
        self.span.part(hash).0
    }

    /// The block of a part, once neighbours were folded so often.
    #[inline]
    fn block(&self, part: u64, folds: u32) -> Option<&[AtomicU64]> {
        let block = part.checked_shr(self.folded + folds).filter(|&block| block < self.count as u64)?;
        self.words.as_slice().get(BLOCK_WORDS * block as usize..)?.get(..BLOCK_WORDS)
    }

    /// How many blocks there are.
    fn blocks(&self) -> usize {
        match self.state.load(Relaxed) & !REWRITING {
            GONE => 0,
            folds => self.count.div_ceil(1 << folds),
        }
    }

    /// Asks for the block of a hash.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> Place {
        if let Some([word, ..]) = self.block(self.part(hash), self.state.load(Relaxed) & !REWRITING) {
            prefetch(word);
        }
        Place::default()
    }

    /// Whether the hash may have been added.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let state = self.state.load(Ordering::Acquire);
        let found = self.block(self.part(hash), state & !REWRITING).is_some_and(|block| {
            block
                .iter()
                .zip(bits_of(hash))
                .fold(true, |all, (word, bits)| all & (word.load(Relaxed) & bits == bits))
        });
        fence(Ordering::Acquire);
        // What was read while it changed says nothing.
        found || state & (REWRITING | GONE) != 0 || self.state.load(Relaxed) != state
    }

    /// How many bits each of `keys` keys has.
    pub(crate) fn bits_per_key(&self, keys: u64) -> f64 {
        (self.blocks() as u64 * BLOCK_BITS) as f64 / keys.max(1) as f64
    }

    /// Folds neighbours until `keys` keys take no more than this many bits each, as far as that is of use; with no
    /// bits at all until one block is left, which denies nothing. Returns how many bytes it gave back.
    pub(crate) fn thin(&self, bits_per_key: u32, keys: u64) -> usize {
        let mut folds = 0;
        let bits = |folds: u32| (self.blocks() as u64).div_ceil(1 << folds) * BLOCK_BITS;
        while bits(folds) > bits_per_key as u64 * keys
            && (bits(folds + 1) >= BITS_MIN * keys || bits_per_key == 0)
            && bits(folds) > BLOCK_BITS
        {
            folds += 1;
        }
        self.fold(folds)
    }

    /// Gives back all of its memory that has pages of its own; it denies nothing any more. Not for what is written to a
    /// file later. Returns how many bytes that was.
    pub(crate) fn forget(&self) -> usize {
        if self.begin().is_none() {
            return 0;
        }
        let before = self.words.memory_bytes(BLOCK_WORDS * self.blocks());
        self.state.store(GONE, Ordering::Release);
        self.words.release(0);
        before - self.memory_bytes()
    }

    /// One thread at a time changes it; another one that comes meanwhile does nothing. How often it was folded before.
    fn begin(&self) -> Option<u32> {
        let state = self.state.load(Relaxed);
        let begins = state & (REWRITING | GONE) == 0
            && self.state.compare_exchange(state, state | REWRITING, Ordering::Acquire, Relaxed).is_ok();
        fence(Ordering::Release);
        begins.then_some(state)
    }

    fn fold(&self, folds: u32) -> usize {
        let Some(state) = Some(folds).filter(|folds| *folds > 0).and_then(|_| self.begin()) else { return 0 };
        let before = self.count.div_ceil(1 << state);
        let after = before.div_ceil(1 << folds);
        debug_assert!(after > 0 && after <= before && BLOCK_WORDS * before <= self.words.as_slice().len());
        for block in 0..after {
            let old = block << folds..((block + 1) << folds).min(before);
            for word in 0..BLOCK_WORDS {
                let folded = old.clone().fold(0, |all, old| all | self.words.get(BLOCK_WORDS * old + word));
                self.words.set(BLOCK_WORDS * block + word, folded);
            }
        }
        self.state.store(state + folds, Ordering::Release);
        self.words.release(BLOCK_WORDS * after);
        self.words.memory_bytes(BLOCK_WORDS * before) - self.words.memory_bytes(BLOCK_WORDS * after)
    }

    /// Moves to memory for what thinning has left.
    pub(super) fn fit(&mut self) {
        self.words.cut(BLOCK_WORDS * self.blocks());
    }

    /// Memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.memory_bytes(BLOCK_WORDS * self.blocks())
    }

    /// Memory that a filter for up to about `keys_max` hashes will hold once it is finished with `keys`, in bytes.
    pub(crate) fn memory_bytes_of(keys_max: u64, keys: u64, bits_per_key: u32) -> u64 {
        let mut blocks = wanted(keys_max, bits_per_key);
        while blocks >= 2 * wanted(keys, bits_per_key) && blocks > 1 {
            blocks = blocks.div_ceil(2);
        }
        8 * BLOCK_WORDS as u64 * blocks
    }

    /// Appends the filter's bytes but for its blocks.
    pub(super) fn encode_head(&self, out: &mut Vec<u8>) {
        let folds = self.state.load(Relaxed) & !REWRITING;
        out.extend_from_slice(&self.span.low.to_le_bytes());
        out.extend_from_slice(&self.span.scale.to_le_bytes());
        out.extend_from_slice(&self.span.shift.to_le_bytes());
        out.extend_from_slice(&(self.folded + folds).to_le_bytes());
        out.extend_from_slice(&(self.blocks() as u64).to_le_bytes());
    }

    /// The words of its blocks.
    pub(super) fn block_words(&self) -> &[AtomicU64] {
        &self.words.as_slice()[..BLOCK_WORDS * self.blocks()]
    }

    /// Reads a filter.
    pub(crate) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (low, scale) = (from.u64()?, from.u64()?);
        let (shift, folded) = (from.u32()?, from.u32()?);
        let count = usize::try_from(from.u64()?).ok()?;
        if shift > 63 || folded > 63 {
            return None;
        }
        let bytes = from.take(count.checked_mul(8 * BLOCK_WORDS)?)?;
        let words = Words::zeroed(BLOCK_WORDS * count);
        let pairs = words.as_slice().iter().zip(bytes.chunks_exact(8));
        pairs.for_each(|(word, bytes)| word.store(u64_at(bytes, 0), Relaxed));
        Some(Self { span: Span { low, shift, scale }, count, folded, state: AtomicU32::new(0), words })
    }
}

/// How many blocks this many keys should have.
pub(super) fn wanted(keys: u64, bits_per_key: u32) -> u64 {
    (keys.max(1) * bits_per_key as u64).div_ceil(BLOCK_BITS)
}

/// What filters of this many bits a key come to: bytes for each key, and the share of absent hashes to which they say
/// yes. Blocks get more or fewer keys by chance, and one of `keys` has set its bit of each eighth but for
/// `(31/32)^keys`.
pub(super) fn thinned(bits_per_key: f64) -> (f64, f64) {
    let mean = BLOCK_BITS as f64 / bits_per_key;
    let (mut chance, mut rate) = ((-mean).exp(), 0.0);
    for keys in 1..(4.0 * mean) as i32 + 20 {
        chance *= mean / keys as f64;
        rate += chance * (1.0 - (31.0f64 / 32.0).powi(keys)).powi(8);
    }
    (bits_per_key / 8.0, rate)
}
