//! Packed radix sort: records are sorted as 64-bit words, the top half a piece of their prefix, the low half
//! where they are (`place`). One word moves instead of a record, ties fall in order of place, and a last
//! pass orders the few words whose pieces are equal by looking at the records themselves.
//!
//! 1. While a range of words is long, deal it into 256 buckets in place by its highest differing byte
//!    (American flag sort: count, then swap each word to its bucket).
//! 2. A range that fits the second cache is sorted by two digits below the highest differing bit, the lower one first;
//!    the few words that are still out of order are inserted, or all sorted by comparison where they are many.
//! 3. Each run of equal pieces is sorted by the caller's comparison, stably.

use std::cmp::Ordering;

/// Up to this many words a comparison sort wins.
const SMALL_RUN: usize = 64;
/// This many words are sorted with a copy of them in the second cache.
const CACHED_RUN: usize = 1 << 15;

// Words that fit the cache are counted by 32 bits.
const _: () = assert!(SMALL_RUN >= 4 && SMALL_RUN < CACHED_RUN && CACHED_RUN <= u32::MAX as usize);

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
    /// For all prefixes.
    pub const WHOLE: Self = Self { low: 0, span: u64::MAX, shift: 0 };

    /// For prefixes from `low` to `high`, both included.
    pub fn new(low: u64, high: u64) -> Self {
        debug_assert!(low <= high, "bounds in order: {low} and {high}");
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
    deal(words, &mut Scratch::default());
    debug_assert!(words.is_sorted(), "by piece, then by place");
    break_ties(words, compare);
    debug_assert!(words.is_sorted_by_key(|&word| piece_of(word)), "ties are broken within a piece");
}

/// Deals words into 256 buckets by the highest byte of their pieces, in steps, so that a long sort is many
/// short ones: each bucket is then given to [`sort_words`].
pub struct Deal {
    /// Where the next word of each bucket goes.
    next: Box<[usize; 256]>,
    dealt: usize,
}

const TOP_SHIFT: u32 = 56;

impl Deal {
    /// Counts the words of each bucket.
    pub fn new(words: &[u64]) -> Self {
        let mut next = Box::new([0; 256]);
        words.iter().for_each(|word| next[(word >> TOP_SHIFT) as usize] += 1);
        let mut start = 0;
        for count in next.iter_mut() {
            start += std::mem::replace(count, start);
        }
        Self { next, dealt: 0 }
    }

    /// Copies some more words to their buckets in `into`, which is as long as `words`.
    pub fn step(&mut self, words: &[u64], into: &mut [u64], count: usize) {
        debug_assert_eq!(words.len(), into.len(), "each word has one place");
        let end = (self.dealt + count).min(words.len());
        for &word in &words[self.dealt..end] {
            let place = &mut self.next[(word >> TOP_SHIFT) as usize];
            into[*place] = word;
            *place += 1;
        }
        self.dealt = end;
    }

    /// How many words are dealt.
    pub fn dealt(&self) -> usize {
        self.dealt
    }

    /// Where each bucket ends, once all words are dealt.
    pub fn ends(&self) -> &[usize; 256] {
        &self.next
    }
}

/// How many low bits there are up to the highest one in which words differ.
fn differing_bits(words: &[u64]) -> u32 {
    let (any, all) = words.iter().fold((0, u64::MAX), |(any, all), word| (any | word, all & word));
    64 - (any & !all).leading_zeros()
}

fn deal(words: &mut [u64], scratch: &mut Scratch) {
    if words.len() <= SMALL_RUN {
        return words.sort_unstable();
    } else if words.len() <= CACHED_RUN {
        return sort_in_cache(words, scratch);
    }
    let bits = differing_bits(words);
    if bits == 0 {
        return;
    }
    let mut start = 0;
    for end in deal_by(words, bits.saturating_sub(8)) {
        deal(&mut words[start..end], scratch);
        start = end;
    }
}

/// Memory for [`sort_in_cache`].
#[derive(Default)]
struct Scratch {
    words: Vec<u64>,
    lows: Vec<u32>,
    highs: Vec<u32>,
}

/// Sorts words that fit the cache by the highest bits in which they differ: by two digits, the lower one first. No
/// branch depends on where a word goes. Of evenly spread words next to nothing is left to sort then: there are 64 times
/// as many digits as words.
fn sort_in_cache(words: &mut [u64], scratch: &mut Scratch) {
    debug_assert!((SMALL_RUN + 1..=CACHED_RUN).contains(&words.len()));
    let digit_bits = (words.len().ilog2() + 6) / 2;
    let shift = differing_bits(words).saturating_sub(2 * digit_bits);
    let digit = |word: u64, shift: u32| (word >> shift) as usize & ((1 << digit_bits) - 1);
    let Scratch { words: spread, lows, highs } = scratch;
    spread.resize(words.len().max(spread.len()), 0);
    let spread = &mut spread[..words.len()];
    for counts in [&mut *lows, &mut *highs] {
        counts.clear();
        counts.resize(1 << digit_bits, 0);
    }
    for &word in words.iter() {
        lows[digit(word, shift)] += 1;
        highs[digit(word, shift + digit_bits)] += 1;
    }
    let (mut low, mut high) = (0, 0);
    for (lows, highs) in lows.iter_mut().zip(highs.iter_mut()) {
        low += std::mem::replace(lows, low);
        high += std::mem::replace(highs, high);
    }
    debug_assert!(low == high && low as usize == words.len(), "each word has one place");
    for &word in words.iter() {
        let place = &mut lows[digit(word, shift)];
        spread[*place as usize] = word;
        *place += 1;
    }
    for &word in spread.iter() {
        let place = &mut highs[digit(word, shift + digit_bits)];
        words[*place as usize] = word;
        *place += 1;
    }
    if !insert(words) {
        words.sort_unstable();
    }
}

/// Insertion sort, for words that are nearly where they belong. Gives up, and says so, where they are not.
fn insert(words: &mut [u64]) -> bool {
    let mut moves_left = words.len();
    for at in 1..words.len() {
        let word = words[at];
        let mut free = at;
        while free > 0 && words[free - 1] > word {
            words[free] = words[free - 1];
            free -= 1;
        }
        words[free] = word;
        moves_left = match moves_left.checked_sub(at - free) {
            Some(left) => left,
            None => return false,
        };
    }
    true
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
    debug_assert_eq!(sum, words.len(), "each word has one bucket");
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

fn break_ties(words: &mut [u64], compare: &mut impl FnMut(u32, u32) -> Ordering) {
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
    fn dealing_then_sorting_buckets_equals_sorting() {
        for (count, mask) in [(0, 0), (1, 1), (50_000u64, u64::MAX), (5_000, 0x1_ffff_ffff), (5_000, 0xffff)]
        {
            let words: Vec<u64> = (0..count).map(|i| mix(i) & mask).collect();
            let (mut expected, mut dealt) = (words.clone(), vec![0; words.len()]);
            expected.sort_unstable();
            let mut deal = Deal::new(&words);
            while deal.dealt() < words.len() {
                deal.step(&words, &mut dealt, 999);
            }
            let mut start = 0;
            for &end in deal.ends() {
                sort_words(&mut dealt[start..end], &mut |left, right| left.cmp(&right));
                start = end;
            }
            assert_eq!(dealt, expected);
        }
    }

    #[test]
    fn skewed_words_are_sorted_too() {
        for count in [65u64, 1_000, 40_000] {
            // Half of the words share all but their lowest bits.
            let mut words: Vec<u64> = (0..count).map(|i| mix(i) >> if i % 2 == 0 { 0 } else { 50 }).collect();
            let mut expected = words.clone();
            expected.sort_unstable();
            sort_words(&mut words, &mut |left, right| left.cmp(&right));
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
        fn ties_are_broken_by_the_records(keys: Vec<u8>) {
            let mut words: Vec<u64> = (0..keys.len()).map(|i| pack(keys[i] as u32 >> 5, i as u32)).collect();
            sort_words(&mut words, &mut |left, right| keys[left as usize].cmp(&keys[right as usize]));
            let mut expected: Vec<usize> = (0..keys.len()).collect();
            expected.sort_by_key(|&i| keys[i]);
            let sorted: Vec<usize> = words.iter().map(|&word| place_of(word) as usize).collect();
            prop_assert_eq!(sorted, expected);
        }
    }
}
