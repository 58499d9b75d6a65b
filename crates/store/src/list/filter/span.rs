//! Where a hash lies in a filter. The mapping keeps the order of the hashes, so that in a hash-ordered list a
//! filter is written from front to back and a slice of the list uses a slice of the filter.

/// Which hashes a filter may be asked for, and how many parts it has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The lowest hash.
    pub(super) low: u64,
    /// By how much the hashes less `low` are shifted to the left, at most 63.
    pub(super) shift: u32,
    /// How many parts the whole of the 64-bit space, seen through `low` and `shift`, would have.
    pub(super) scale: u64,
}

impl Span {
    /// About this many parts for the hashes between `low` and `high`, both included.
    pub(super) fn new(low: u64, high: u64, parts: u64) -> Self {
        let width = high.saturating_sub(low);
        let shift = width.leading_zeros().min(63);
        // The hashes fill between half and all of the shifted space; scale so that they get `parts`.
        let reach = (width << shift) as u128 + 1;
        let scale = (((parts as u128) << 64) / reach).clamp(1, u64::MAX as u128) as u64;
        let span = Self { low, shift, scale };
        debug_assert!(
            span.part(low).0 == 0 && span.part(high).0 <= parts,
            "the lowest hash is in the first part"
        );
        span
    }

    /// The part that a hash is in, and how far into it, in units of 2^-64 of a part. Hashes outside count as
    /// the nearest inside.
    #[inline]
    pub(super) fn part(&self, hash: u64) -> (u64, u64) {
        let distance = hash.saturating_sub(self.low).min(u64::MAX >> self.shift);
        let place = (distance << self.shift) as u128 * self.scale as u128;
        ((place >> 64) as u64, place as u64)
    }

    /// The lowest hash that is so far into this part or further; `None` where there is none.
    pub(super) fn first_hash(&self, part: u64, fraction: u64) -> Option<u64> {
        let shifted = ((part as u128) << 64 | fraction as u128).div_ceil(self.scale.max(1) as u128);
        let distance = u64::try_from(shifted.div_ceil(1 << self.shift)).ok()?;
        self.low.checked_add(distance).filter(|_| distance <= u64::MAX >> self.shift)
    }
}

#[cfg(test)]
mod tests {
    use forebay_base::hash::mix;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_keep_order_and_begin_where_they_say(low: u64, width_bits in 0..64u32, parts in 1..1u64 << 50, seed: u64) {
            let high = low.saturating_add(u64::MAX >> width_bits);
            let span = Span::new(low, high, parts);
            prop_assert_eq!(span.part(low), (0, 0));
            prop_assert!(span.part(high).0 <= parts);
            let inside = |i| low + ((mix(i) as u128 * (high - low) as u128) >> 64) as u64;
            let (one, other) = (inside(seed), inside(!seed));
            prop_assert!(one >= other || span.part(one) <= span.part(other));
            let (part, fraction) = span.part(one);
            prop_assert_eq!(span.first_hash(part, fraction), Some(one));
            let first = span.first_hash(part, 0).unwrap();
            prop_assert!(first <= one && span.part(first).0 == part);
            prop_assert!(first == low || span.part(first - 1).0 < part);
        }
    }
}
