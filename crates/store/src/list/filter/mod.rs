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
use forebay_base::{Order, PrefixFilter, Range as KeyRange, planted, sometimes};
use forebay_env::sync::atomic::AtomicU64;

pub use allowance::{Allowance, FilterDemand, FilterKind, FilterLevel};
pub(crate) use blocks::Blocks;
pub(crate) use fingerprints::{Fingerprints, Place};
use forms::LINE_WORDS;
use gather::Gathering;
pub use growing::{GrowingFilter, Mark};
use shape::{STEPS, Shape};

use super::store::ListOptions;

/// What fingerprints on their way may take for what is kept aside.
pub(crate) const EARLY_BYTES: u64 = 8 * gather::EARLY as u64;

/// How its bytes begin.
const KIND_NONE: u8 = 0;
const KIND_BLOCKS: u8 = 1;
const KIND_FINGERPRINTS: u8 = 2;
/// Of blocks that know key prefixes, too.
const KIND_PREFIXES: u8 = 3;

/// A filter on its way.
#[derive(Debug)]
pub(crate) enum FilterWriter {
    Blocks(Blocks, Option<PrefixFilter>),
    Fingerprints(Gathering),
}

/// A list's filter.
#[derive(Debug)]
pub(crate) enum Filter {
    /// Of a list in another order than that of the hashes: of keys and, in key order, of these key prefixes of theirs.
    Blocks(Blocks, Option<PrefixFilter>),
    /// Of a list in the order of the hashes.
    Fingerprints(Fingerprints),
}

impl FilterWriter {
    /// For up to about `keys` keys inside the range of a list in this order. `None` where there is to be none.
    pub(crate) fn new(options: &ListOptions, range: &KeyRange, keys: u64) -> Option<Self> {
        let ListOptions { order, filter_bits_per_key: bits_per_key, prefix_filter, .. } = *options;
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
            None => {
                let prefix_filter = prefix_filter.filter(|_| order.is_lexical());
                Self::Blocks(Blocks::new(keys, bits_per_key, 0, u64::MAX), prefix_filter)
            }
        })
    }

    /// Whether it will know ranks.
    pub(crate) fn has_ranks(&self) -> bool {
        matches!(self, Self::Fingerprints(_))
    }

    /// Adds the next key of the list, whose filter hash this is.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], hash: u64) {
        match self {
            Self::Blocks(blocks, None) => blocks.add(hash),
            Self::Blocks(blocks, Some(prefixes)) => {
                blocks.add(hash);
                // Mostly that of the key before, whose bits are there.
                let known = prefixes
                    .hash(key)
                    .filter(|_| !planted::is("key-prefix-not-added") || !hash.is_multiple_of(4));
                known.into_iter().for_each(|hash| blocks.add(hash));
            }
            Self::Fingerprints(gathering) => gathering.add(hash),
        }
    }

    /// The filter of the `keys` keys that were added. `None` where they are more than it can number.
    pub(crate) fn finish(self, keys: u64, bits_per_key: u32) -> Option<Filter> {
        match self {
            Self::Blocks(blocks, prefixes) => {
                Some(Filter::Blocks(blocks.finish(keys, bits_per_key), prefixes))
            }
            Self::Fingerprints(gathering) => gathering.finish().map(Filter::Fingerprints),
        }
    }
}

impl Filter {
    /// Whether the list may have a key of this filter hash.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        match self {
            Self::Blocks(blocks, _) => blocks.may_contain(hash),
            Self::Fingerprints(fingerprints) => !fingerprints.find(hash).is_empty(),
        }
    }

    /// Which key prefixes it knows, if it does.
    pub(crate) fn prefixes(&self) -> Option<PrefixFilter> {
        match self {
            Self::Blocks(_, prefixes) => *prefixes,
            Self::Fingerprints(_) => None,
        }
    }

    /// The ranks of hashes, where it knows them.
    pub(crate) fn ranks(&self) -> Option<&Fingerprints> {
        match self {
            Self::Blocks(..) => None,
            Self::Fingerprints(fingerprints) => Some(fingerprints),
        }
    }

    /// Gives up precision until each of the list's `keys` keys takes no more than it is allowed, or as little as is
    /// still of use; of [none](Allowance::NONE), the filter of a list in another order than that of the hashes is gone.
    /// Lookups go on meanwhile. Returns how many bytes that gave back.
    pub(crate) fn thin(&self, allowed: Allowance, keys: u64) -> usize {
        match self {
            Self::Blocks(blocks, _) if allowed == Allowance::NONE => blocks.forget(),
            Self::Blocks(blocks, _) => {
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
        self.thin(allowed, keys);
        // A small one has given nothing back where it is.
        match &mut self {
            Self::Blocks(blocks, _) => blocks.fit(),
            Self::Fingerprints(fingerprints) => fingerprints.fit(),
        }
        self
    }

    /// Memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Blocks(blocks, _) => blocks.memory_bytes(),
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
            None => out.push(KIND_NONE),
            Some(Self::Blocks(blocks, prefixes)) => {
                out.push(if prefixes.is_none() { KIND_BLOCKS } else { KIND_PREFIXES });
                prefixes.iter().for_each(|prefixes| prefixes.encode(out));
                blocks.encode_head(out);
            }
            Some(Self::Fingerprints(fingerprints)) => {
                out.push(KIND_FINGERPRINTS);
                fingerprints.encode_head(out);
            }
        }
    }

    /// The words that its bytes end with: most of them.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        match self {
            Self::Blocks(blocks, _) => blocks.block_words(),
            Self::Fingerprints(fingerprints) => fingerprints.line_words(),
        }
    }

    /// Reads a filter, or that there is none.
    pub(crate) fn decode(from: &mut Reader<'_>) -> Option<Option<Self>> {
        Some(match from.u8()? {
            KIND_NONE => None,
            KIND_BLOCKS => Some(Self::Blocks(Blocks::decode(from)?, None)),
            KIND_PREFIXES => {
                let prefixes = PrefixFilter::decode(from)?;
                Some(Self::Blocks(Blocks::decode(from)?, Some(prefixes)))
            }
            KIND_FINGERPRINTS => Some(Self::Fingerprints(Fingerprints::decode(from)?)),
            _ => return None,
        })
    }
}
