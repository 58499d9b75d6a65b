//! The one order of records: by `(prefix, key)`.
//!
//! **Contract:** within a table, `prefix(a) < prefix(b)` implies that `a` comes before `b`; equal prefixes
//! are ordered by the keys' bytes. Sorting, merging, partitioning and page search work on the prefix and
//! touch the key only to break ties.

use std::cmp::Ordering;

use crate::hash;

/// How a table orders its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// By a seeded stable hash of the key: uniform, and useless for ranges.
    Hashed {
        /// The database's seed.
        seed: u64,
    },
    /// By the key's bytes; the prefix is the first eight of them, big-endian, padded with zeros.
    Lexical,
    /// By a hash of few bits, so that different keys collide on purpose.
    #[doc(hidden)]
    Colliding {
        /// How many distinct prefixes there are, as a power of two.
        bits: u32,
    },
}

impl Order {
    /// The prefix of `key`.
    #[inline]
    pub fn prefix(&self, key: &[u8]) -> u64 {
        match *self {
            Self::Hashed { seed } => hash::key_hash(key, seed),
            Self::Lexical => match key.first_chunk() {
                Some(&word) => u64::from_be_bytes(word),
                None => {
                    let mut word = [0; 8];
                    word[..key.len()].copy_from_slice(key);
                    u64::from_be_bytes(word)
                }
            },
            Self::Colliding { bits } => hash::key_hash(key, 0) >> (64 - bits) << (64 - bits),
        }
    }

    /// A hash of `key`, whose prefix is this: the prefix itself where that is one. By it filters and digests know keys.
    #[inline]
    pub fn key_hash(&self, prefix: u64, key: &[u8]) -> u64 {
        match self {
            Self::Hashed { .. } => prefix,
            Self::Lexical | Self::Colliding { .. } => hash::key_hash(key, 0),
        }
    }

    /// Whether prefixes are spread evenly over all 64 bits.
    pub fn is_uniform(&self) -> bool {
        matches!(self, Self::Hashed { .. })
    }

    /// Whether a scan in this order means something to a user.
    pub fn is_lexical(&self) -> bool {
        matches!(self, Self::Lexical)
    }

    /// The bound just at `key`.
    pub fn bound(&self, key: &[u8]) -> Bound {
        Bound { prefix: self.prefix(key), key: key.into() }
    }

    /// The shortest bound above `before` and not above `after`, which follow one another: what a page
    /// index or a split needs, and no more.
    pub fn separator(&self, before: &[u8], after: &[u8]) -> Bound {
        let prefix = self.prefix(after);
        if self.prefix(before) < prefix {
            return Bound { prefix, key: Box::default() };
        }
        let shared = before.iter().zip(after).take_while(|(left, right)| left == right).count();
        Bound { prefix, key: after[..(shared + 1).min(after.len())].into() }
    }
}

/// A place between records: all records `>=` it are after it. An empty key stands before every key of the
/// prefix.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Bound {
    /// Compared first.
    pub prefix: u64,
    /// Breaks ties.
    pub key: Box<[u8]>,
}

impl Bound {
    /// The bound before every record.
    pub fn least() -> Self {
        Self::default()
    }

    /// The bound before every record of this prefix.
    pub fn at_prefix(prefix: u64) -> Self {
        Self { prefix, key: Box::default() }
    }

    /// Where the record `(prefix, key)` stands: `Less` when it is before this bound.
    #[inline]
    pub fn place(&self, prefix: u64, key: &[u8]) -> Ordering {
        prefix.cmp(&self.prefix).then_with(|| key.cmp(&self.key))
    }
}

/// The records from `low` up to, not including, `high`; no `high` means to the end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// Inclusive.
    pub low: Bound,
    /// Exclusive.
    pub high: Option<Bound>,
}

impl Range {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Whether the record is inside.
    #[inline]
    pub fn contains(&self, prefix: u64, key: &[u8]) -> bool {
        self.low.place(prefix, key).is_ge() && self.is_below_high(prefix, key)
    }

    /// Whether the record is before the range's end.
    #[inline]
    pub fn is_below_high(&self, prefix: u64, key: &[u8]) -> bool {
        self.high.as_ref().is_none_or(|high| high.place(prefix, key).is_lt())
    }

    /// Whether the bound lies strictly inside, so that both halves can hold records.
    pub fn can_split_at(&self, at: &Bound) -> bool {
        self.low < *at && self.high.as_ref().is_none_or(|high| at < high)
    }

    /// The part of both ranges; it may be empty.
    pub fn intersect(&self, other: &Self) -> Self {
        let low = (&self.low).max(&other.low).clone();
        let high = match (&self.high, &other.high) {
            (Some(left), Some(right)) => Some(left.min(right).clone()),
            (left, right) => left.clone().or_else(|| right.clone()),
        };
        let part = Self { low, high };
        debug_assert!(part.is_empty() || (self.low <= part.low && other.low <= part.low));
        part
    }

    /// Whether nothing can be inside.
    pub fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_prefix_keeps_lexical_order(a: Vec<u8>, b: Vec<u8>) {
            let order = Order::Lexical;
            let by_prefix = (order.prefix(&a), &a).cmp(&(order.prefix(&b), &b));
            prop_assert_eq!(by_prefix, a.cmp(&b));
        }

        #[test]
        fn a_separator_separates(a: Vec<u8>, b: Vec<u8>, hashed: bool) {
            let order = if hashed { Order::Colliding { bits: 2 } } else { Order::Lexical };
            let place = |key: &Vec<u8>| (order.prefix(key), key.clone());
            let (before, after) = if place(&a) < place(&b) { (a, b) } else { (b, a) };
            prop_assume!(before != after);
            let separator = order.separator(&before, &after);
            prop_assert!(separator.place(order.prefix(&before), &before).is_lt());
            prop_assert!(separator.place(order.prefix(&after), &after).is_ge());
        }
    }
}
