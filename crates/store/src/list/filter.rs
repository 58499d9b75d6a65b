//! The filter of a list: a split-block Bloom filter whose blocks are in the list's own order.
//!
//! A key sets eight bits in one block of 256. The block is chosen by the *high* bits of the key's hash, so
//! in a hash-ordered list the filter is written from front to back, and a slice of the list uses a slice of
//! the filter. (WB paper, section 3.4.1, has plain Bloom filters of 10 bits a key.)
//!
//! The number of records is only known within a bound when the first one is added. Blocks are therefore
//! made for the bound and, at the end, neighbours are folded into one as often as the true count allows:
//! because the choice of block keeps order, block `i` of the folded filter is exactly `2i | 2i + 1` of the
//! unfolded one.

use forebay_base::wire::Reader;

/// One cache line's half: 256 bits as eight words, one bit set in each per key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(32))]
struct Block([u32; 8]);

const BLOCK_BITS: u64 = 256;
const BLOCK_BYTES: usize = 32;

/// Odd constants that draw eight independent 5-bit numbers from one 32-bit hash.
const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// Which hashes a filter may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    low: u64,
    shift: u32,
    /// How many blocks the whole of the 64-bit space, seen through `low` and `shift`, would have.
    virtual_blocks: u64,
    fold: u32,
}

impl Span {
    #[inline]
    fn block_of(&self, hash: u64) -> usize {
        let position = hash.wrapping_sub(self.low) << self.shift;
        ((position as u128 * self.virtual_blocks as u128) >> 64) as usize >> self.fold
    }
}

/// How many blocks so many keys get.
fn blocks_for(keys: u64, bits_per_key: u32) -> u64 {
    (keys.max(1) * u64::from(bits_per_key)).div_ceil(BLOCK_BITS)
}

/// A set of hashes that may also answer yes for others, seldom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    span: Span,
    blocks: Vec<Block>,
}

impl Filter {
    /// An empty filter for up to `keys` hashes between `low` and `high`, both included.
    pub fn new(keys: u64, bits_per_key: u32, low: u64, high: u64) -> Self {
        let wanted = blocks_for(keys, bits_per_key);
        let width = high.saturating_sub(low);
        let shift = width.leading_zeros().min(63);
        // The span fills between half and all of the shifted space; scale so that it gets `wanted` blocks.
        let reach = (width << shift) as u128 + 1;
        let virtual_blocks = (((wanted as u128) << 64) / reach).min(u64::MAX as u128) as u64;
        let mut span = Span { low, shift, virtual_blocks: virtual_blocks.max(1), fold: 0 };
        let blocks = span.block_of(high) + 1;
        span.fold = 0;
        Self { span, blocks: vec![Block::default(); blocks] }
    }

    /// Adds a hash inside the span.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let block = self.span.block_of(hash);
        if let Some(Block(words)) = self.blocks.get_mut(block) {
            for (word, salt) in words.iter_mut().zip(SALTS) {
                *word |= 1 << ((hash as u32).wrapping_mul(salt) >> 27);
            }
        }
    }

    /// Whether the hash may have been added. A hash outside the span was not.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        hash >= self.span.low
            && self.blocks.get(self.span.block_of(hash)).is_some_and(|Block(words)| {
                words
                    .iter()
                    .zip(SALTS)
                    .all(|(word, salt)| word >> ((hash as u32).wrapping_mul(salt) >> 27) & 1 == 1)
            })
    }

    /// Halves the filter as often as `keys` hashes still have their bits.
    pub fn fold_for(&mut self, keys: u64, bits_per_key: u32) {
        let wanted = blocks_for(keys, bits_per_key);
        while self.blocks.len() as u64 >= 2 * wanted && self.blocks.len() > 1 {
            let half = self.blocks.len().div_ceil(2);
            for index in 0..half {
                let mut folded = self.blocks[2 * index];
                if let Some(Block(words)) = self.blocks.get(2 * index + 1) {
                    folded.0.iter_mut().zip(words).for_each(|(into, word)| *into |= word);
                }
                self.blocks[index] = folded;
            }
            self.blocks.truncate(half);
            self.span.fold += 1;
        }
        self.blocks.shrink_to_fit();
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * BLOCK_BYTES
    }

    /// Memory that a filter for up to `keys_max` hashes will hold once it is folded for `keys`, in bytes.
    pub fn memory_bytes_of(keys_max: u64, keys: u64, bits_per_key: u32) -> u64 {
        let (mut blocks, wanted) = (blocks_for(keys_max, bits_per_key), blocks_for(keys, bits_per_key));
        while blocks >= 2 * wanted && blocks > 1 {
            blocks = blocks.div_ceil(2);
        }
        blocks * BLOCK_BYTES as u64
    }

    /// The share of absent hashes to which a filter of so many bits a key says yes. Blocks get more or fewer
    /// keys by chance, and one of `keys` has set its bit of each word but for `(31/32)^keys`.
    pub fn false_positive_rate(bits_per_key: u32) -> f64 {
        if bits_per_key == 0 {
            return 1.0;
        }
        let mean = BLOCK_BITS as f64 / f64::from(bits_per_key);
        let mut chance = (-mean).exp();
        let mut rate = 0.0;
        for keys in 1..(4.0 * mean) as i32 + 20 {
            chance *= mean / f64::from(keys);
            rate += chance * (1.0 - (31.0f64 / 32.0).powi(keys)).powi(8);
        }
        rate
    }

    /// Appends the filter's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.span.low.to_le_bytes());
        out.extend_from_slice(&self.span.virtual_blocks.to_le_bytes());
        out.extend_from_slice(&self.span.shift.to_le_bytes());
        out.extend_from_slice(&self.span.fold.to_le_bytes());
        out.extend_from_slice(&(self.blocks.len() as u64).to_le_bytes());
        out.reserve(self.blocks.len() * BLOCK_BYTES);
        for Block(words) in &self.blocks {
            words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        }
    }

    /// Reads a filter.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (low, virtual_blocks) = (from.u64()?, from.u64()?);
        let (shift, fold) = (from.u32()?, from.u32()?);
        let count = usize::try_from(from.u64()?).ok()?;
        if shift > 63 || fold > 63 {
            return None;
        }
        let bytes = from.take(count.checked_mul(BLOCK_BYTES)?)?;
        let blocks = bytes
            .chunks_exact(BLOCK_BYTES)
            .map(|block| Block(std::array::from_fn(|word| forebay_base::wire::u32_at(block, 4 * word))))
            .collect();
        Some(Self { span: Span { low, shift, virtual_blocks, fold }, blocks })
    }
}

#[cfg(test)]
mod tests {
    use forebay_base::hash::mix;

    use super::*;

    fn check(keys: u64, bound: u64, low: u64, high: u64) -> (f64, f64) {
        let inside = |i: u64| low + ((mix(i) as u128 * (high - low) as u128) >> 64) as u64;
        let mut filter = Filter::new(bound, 12, low, high);
        (0..keys).for_each(|i| filter.add(inside(i)));
        filter.fold_for(keys, 12);
        assert!((0..keys).all(|i| filter.may_contain(inside(i))), "no key is ever denied");
        let wrong = (keys..keys + 200_000).filter(|&i| filter.may_contain(inside(i))).count();
        let told = Filter::memory_bytes_of(bound, keys, 12) as usize;
        assert!(told.abs_diff(filter.memory_bytes()) <= 64, "{told} bytes told for {keys} of {bound}");
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        assert_eq!(Filter::decode(&mut Reader::new(&bytes)).as_ref(), Some(&filter));
        (wrong as f64 / 200_000.0, filter.memory_bytes() as f64 * 8.0 / keys as f64)
    }

    #[test]
    fn false_positives_and_size_stay_in_bounds_for_any_span_and_fold() {
        for (low, high) in [(0, u64::MAX), (1 << 63, (1 << 63) + (1 << 55)), (12345, 12345 + (3 << 50))] {
            for bound in [50_000, 70_000, 400_000] {
                let (wrong, bits) = check(50_000, bound, low, high);
                assert!(wrong < 0.009, "{wrong} at {low}..{high} for {bound}");
                assert!((11.9..24.5).contains(&bits), "{bits} bits a key at {low}..{high} for {bound}");
            }
        }
        let (wrong, _) = check(50_000, 50_000, 0, u64::MAX);
        let told = Filter::false_positive_rate(12);
        assert!((0.8..1.25).contains(&(wrong / told)), "{wrong} measured, {told} told");
        let (_, bits) = check(1, 1, 0, u64::MAX);
        assert_eq!(bits, 256.0);
    }
}
