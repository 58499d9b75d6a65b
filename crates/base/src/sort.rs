//! Packed radix sort: records are sorted as 64-bit words, the top half a piece of their prefix, the low half
//! where they are (`place`). One word moves instead of a record, ties fall in order of place, and a last
//! pass settles the few words whose pieces are equal by looking at the records themselves.
//!
//! 1. While a range of words is long, deal it into 256 buckets in place by its highest differing byte
//!    (American flag sort: count, then swap each word to its bucket).
//! 2. A range that fits the first cache is sorted by comparison, which is faster there.
//! 3. Each run of equal pieces is sorted by the caller's comparison, stably.

use std::cmp::Ordering;

/// Below this many words a comparison sort in cache wins.
const SMALL_RUN: usize = 512;

/// Packs a 32-bit piece of a prefix and a place.
#[inline]
pub fn pack(piece: u32, place: u32) -> u64 {
    (piece as u64) << 32 | place as u64
}

/// The piece of prefix in a word.
#[inline]
pub fn piece_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The place in a word.
#[inline]
pub fn place_of(word: u64) -> u32 {
    word as u32
}

/// Maps prefixes between `low` and `high` to 32-bit pieces that keep their order and use all the bits.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    low: u64,
    span: u64,
    shift: u32,
}

impl Pieces {
    /// For prefixes from `low` to `high`, both included.
    pub fn new(low: u64, high: u64) -> Self {
        Self { low, span: high - low, shift: (high - low).leading_zeros() }
    }

    /// The piece of a prefix inside the bounds; one outside counts as the nearest inside.
    #[inline]
    pub fn of(&self, prefix: u64) -> u32 {
        (prefix.saturating_sub(self.low).min(self.span).unbounded_shl(self.shift) >> 32) as u32
    }
}

/// Sorts words by piece, then place, then sorts runs of equal pieces by `compare` over their places.
pub fn sort_words(words: &mut [u64], compare: &mut impl FnMut(u32, u32) -> Ordering) {
    deal(words);
    settle_ties(words, compare);
}

/// Deals words once, by the highest byte in which their pieces differ, and returns where each bucket ends:
/// buckets can then be given to [`sort_words`] one by one, so that a long sort goes in short steps.
pub fn deal_once(words: &mut [u64]) -> Vec<usize> {
    match differing_shift(words) {
        // Words of equal pieces must stay together for the ties to be settled.
        Some(shift) if shift + 8 > 32 => deal_by(words, shift.max(32)).to_vec(),
        _ => vec![words.len()],
    }
}

/// How far to shift the highest byte in which words differ down to the bottom.
fn differing_shift(words: &[u64]) -> Option<u32> {
    let (any, all) = words.iter().fold((0, u64::MAX), |(any, all), word| (any | word, all & word));
    let differing = any ^ all;
    (differing != 0 && !words.is_empty()).then(|| (64 - differing.leading_zeros()).saturating_sub(8))
}

fn deal(words: &mut [u64]) {
    if words.len() <= SMALL_RUN {
        words.sort_unstable();
        return;
    }
    let Some(shift) = differing_shift(words) else { return };
    let mut start = 0;
    for end in deal_by(words, shift) {
        if end - start > 1 {
            deal(&mut words[start..end]);
        }
        start = end;
    }
}

/// One round of American flag sort by the byte at `shift`. Returns the buckets' ends.
fn deal_by(words: &mut [u64], shift: u32) -> [usize; 256] {
    let bucket_of = |word: u64| (word >> shift) as usize & 0xff;
    let mut ends = [0usize; 256];
    for &word in words.iter() {
        ends[bucket_of(word)] += 1;
    }
    let mut starts = [0usize; 256];
    let mut sum = 0;
    for (start, end) in starts.iter_mut().zip(&mut ends) {
        *start = sum;
        sum += *end;
        *end = sum;
    }
    let mut next = starts;
    for bucket in 0..256 {
        while next[bucket] < ends[bucket] {
            let mut word = words[next[bucket]];
            // Follow the cycle until a word of this bucket comes back.
            loop {
                let target = bucket_of(word);
                if target == bucket {
                    break;
                }
                std::mem::swap(&mut word, &mut words[next[target]]);
                next[target] += 1;
            }
            words[next[bucket]] = word;
            next[bucket] += 1;
        }
    }
    ends
}

fn settle_ties(words: &mut [u64], compare: &mut impl FnMut(u32, u32) -> Ordering) {
    let mut start = 0;
    while start + 1 < words.len() {
        let piece = piece_of(words[start]);
        if piece_of(words[start + 1]) != piece {
            start += 1;
            continue;
        }
        let run = words[start..].iter().take_while(|&&word| piece_of(word) == piece).count();
        words[start..start + run].sort_by(|&left, &right| compare(place_of(left), place_of(right)));
        start += run;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hash::mix;

    #[test]
    fn long_inputs_equal_the_standard_sort() {
        for (count, mask) in
            [(100_000u64, u64::MAX), (100_000, 0xffff_0000_ffff_ffff), (5_000, 0xf_ffff_ffff), (5_000, 0)]
        {
            let mut words: Vec<u64> = (0..count).map(|i| mix(i) & mask).collect();
            let mut expected = words.clone();
            expected.sort_unstable();
            sort_words(&mut words, &mut |left, right| left.cmp(&right));
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn dealing_once_then_sorting_buckets_equals_sorting() {
        for (count, mask) in [(0, 0), (1, 1), (5_000u64, u64::MAX), (5_000, 0x1_ffff_ffff), (5_000, 0xffff)] {
            let mut words: Vec<u64> = (0..count).map(|i| mix(i) & mask).collect();
            let (mut expected, mut start) = (words.clone(), 0);
            expected.sort_unstable();
            for end in deal_once(&mut words) {
                sort_words(&mut words[start..end], &mut |left, right| left.cmp(&right));
                start = end;
            }
            assert_eq!(words, expected);
        }
    }

    proptest! {
        #[test]
        fn pieces_keep_order_inside_and_outside_their_bounds(mut a: [u64; 6]) {
            a.sort_unstable();
            let pieces = Pieces::new(a[1], a[4]);
            prop_assert!(a.windows(2).all(|pair| pieces.of(pair[0]) <= pieces.of(pair[1])));
        }

        #[test]
        fn ties_are_settled_by_the_records(keys: Vec<u8>) {
            let mut words: Vec<u64> = (0..keys.len()).map(|i| pack(keys[i] as u32 >> 5, i as u32)).collect();
            sort_words(&mut words, &mut |left, right| keys[left as usize].cmp(&keys[right as usize]));
            let mut expected: Vec<usize> = (0..keys.len()).collect();
            expected.sort_by_key(|&i| keys[i]);
            let sorted: Vec<usize> = words.iter().map(|&word| place_of(word) as usize).collect();
            prop_assert_eq!(sorted, expected);
        }
    }
}
