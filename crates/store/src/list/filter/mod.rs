//! The filter of a list: which keys it may hold and, where it is in the order of their hashes, at which rank.

mod allowance;
mod blocks;
mod fingerprints;
mod forms;
mod gather;
mod growing;
mod kernel;
mod line;
mod select;
mod shape;
mod span;
#[cfg(test)]
mod tests;

use forebay_base::wire::Reader;
use forebay_base::{Order, Range as KeyRange, sometimes};
use forebay_env::sync::atomic::AtomicU64;

pub use allowance::{Allowance, FilterDemand, FilterKind, FilterLevel};
pub(crate) use blocks::Blocks;
pub(crate) use fingerprints::{Fingerprints, Place};
use forms::LINE_WORDS;
use gather::Gathering;
pub use growing::{GrowingFilter, Mark};
use shape::{STEPS, Shape};

/// What fingerprints on their way may take for what is kept aside.
pub(crate) const EARLY_BYTES: u64 = 8 * gather::EARLY as u64;

/// A filter on its way.
#[derive(Debug)]
pub(crate) enum FilterWriter {
    Blocks(Blocks),
    Fingerprints(Gathering),
}

/// A list's filter.
#[derive(Debug)]
pub(crate) enum Filter {
    /// Of a list in another order than that of the hashes.
    Blocks(Blocks),
    /// Of a list in the order of the hashes.
    Fingerprints(Fingerprints),
}

impl FilterWriter {
    /// For up to about `keys` keys inside the range of a list in this order. `None` where there is to be none.
    pub(crate) fn new(order: Order, range: &KeyRange, keys: u64, bits_per_key: u32) -> Option<Self> {
        if bits_per_key == 0 {
            return None;
        }
        let hashed = || {
            let high = range.high.as_ref().map_or(u64::MAX, |high| high.prefix);
            Gathering::new(keys, bits_per_key, range.low.prefix, high)
        };
        let gathering = order.is_uniform().then(hashed).flatten();
        Some(match gathering {
            Some(gathering) => Self::Fingerprints(gathering),
            None => Self::Blocks(Blocks::new(keys, bits_per_key, 0, u64::MAX)),
        })
    }

    /// Whether it will know ranks.
    pub(crate) fn has_ranks(&self) -> bool {
        matches!(self, Self::Fingerprints(_))
    }

    /// Adds the filter hash of the next key of the list.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        match self {
            Self::Blocks(blocks) => blocks.add(hash),
            Self::Fingerprints(gathering) => gathering.add(hash),
        }
    }

    /// The filter of the `keys` keys that were added. `None` where they are more than it can number.
    pub(crate) fn finish(self, keys: u64, bits_per_key: u32) -> Option<Filter> {
        match self {
            Self::Blocks(blocks) => Some(Filter::Blocks(blocks.finish(keys, bits_per_key))),
            Self::Fingerprints(gathering) => gathering.finish().map(Filter::Fingerprints),
        }
    }
}

impl Filter {
    /// Whether the list may have a key of this filter hash.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        match self {
            Self::Blocks(blocks) => blocks.may_contain(hash),
            Self::Fingerprints(fingerprints) => !fingerprints.find(hash).is_empty(),
        }
    }

    /// The ranks of hashes, where it knows them.
    pub(crate) fn ranks(&self) -> Option<&Fingerprints> {
        match self {
            Self::Blocks(_) => None,
            Self::Fingerprints(fingerprints) => Some(fingerprints),
        }
    }

    /// Gives up precision until each of the list's `keys` keys takes no more than it is allowed, or as little as is
    /// still of use; of [none](Allowance::NONE), the filter of a list in another order than that of the hashes is gone.
    /// Lookups go on meanwhile. Returns how many bytes that gave back.
    pub(crate) fn thin(&self, allowed: Allowance, keys: u64) -> usize {
        match self {
            Self::Blocks(blocks) if allowed == Allowance::NONE => blocks.forget(),
            Self::Blocks(blocks) => {
                let halves = |bits: &f64| (*bits >= 2.0 * blocks::BITS_MIN as f64).then_some(bits / 2.0);
                let steps: Vec<f64> =
                    std::iter::successors(Some(blocks.bits_per_key(keys)), halves).collect();
                blocks.thin(allowed.step(&steps, |bits| bits).ceil() as u32, keys)
            }
            Self::Fingerprints(fingerprints) => fingerprints.thin(allowed),
        }
    }

    /// As [`thin`](Self::thin), before anybody looks: it moves to memory of its own length.
    pub(crate) fn thinned(mut self, allowed: Allowance, keys: u64) -> Self {
        let allowed = if sometimes!(1 in 4) { Allowance::bits((keys % 8) as f64) } else { allowed };
        if self.thin(allowed, keys) > 0 {
            match &mut self {
                Self::Blocks(blocks) => blocks.fit(),
                Self::Fingerprints(fingerprints) => fingerprints.fit(),
            }
        }
        self
    }

    /// Memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Blocks(blocks) => blocks.memory_bytes(),
            Self::Fingerprints(fingerprints) => fingerprints.memory_bytes(),
        }
    }

    /// Memory that the filter of `keys` keys will hold that was begun for up to `keys_max`, in bytes.
    pub(crate) fn memory_bytes_of(order: Order, keys_max: u64, keys: u64, bits_per_key: u32) -> u64 {
        match bits_per_key {
            0 => 0,
            bits if order.is_uniform() => Shape::of(keys, bits, 0, u64::MAX).bytes(LINE_WORDS),
            bits => Blocks::memory_bytes_of(keys_max, keys, bits),
        }
    }

    /// What filters of this many bits a key come to as they are made thinner, step by step: bytes for each key, and
    /// the share of absent keys to which they say yes.
    pub(crate) fn steps(order: Order, bits_per_key: u32) -> Vec<(f64, f64)> {
        let halves = |bits: &f64| (*bits >= 2.0 * blocks::BITS_MIN as f64).then_some(bits / 2.0);
        match bits_per_key {
            0 => vec![(0.0, 1.0)],
            bits if order.is_uniform() => {
                STEPS.into_iter().map(|words| fingerprints::thinned(bits, words)).collect()
            }
            bits => std::iter::successors(Some(bits as f64), halves).map(blocks::thinned).collect(),
        }
    }

    /// Appends the filter's bytes but for its [words](Self::words): its kind, and then its own.
    pub(crate) fn encode_head(filter: Option<&Self>, out: &mut Vec<u8>) {
        match filter {
            None => out.push(0),
            Some(Self::Blocks(blocks)) => {
                out.push(1);
                blocks.encode_head(out);
            }
            Some(Self::Fingerprints(fingerprints)) => {
                out.push(2);
                fingerprints.encode_head(out);
            }
        }
    }

    /// The words that its bytes end with: most of them.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        match self {
            Self::Blocks(blocks) => blocks.block_words(),
            Self::Fingerprints(fingerprints) => fingerprints.line_words(),
        }
    }

    /// Reads a filter, or that there is none.
    pub(crate) fn decode(from: &mut Reader<'_>) -> Option<Option<Self>> {
        Some(match from.u8()? {
            0 => None,
            1 => Some(Self::Blocks(Blocks::decode(from)?)),
            2 => Some(Self::Fingerprints(Fingerprints::decode(from)?)),
            _ => return None,
        })
    }
}
