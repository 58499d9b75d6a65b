//! Looking into a whole line, which is what a get does most: compiled thrice, because processors count and
//! find bits in hardware, but for the oldest, and a baseline build must not count on it.
//!
//! The same as [`Line::find`], which is its oracle, as long as all is as usual:
//!
//! 1. the slot's zero is in one of the first three words;
//! 2. the slot has at most three keys, whose low bits fit one window.
//!
//! Then there is no branch that could go either way. Otherwise the oracle answers.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::forms::{HEADER_BITS, LINE_WORDS, form};
use super::line::{Line, ones};
use super::select::select;

/// What a processor has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    /// Nothing but arithmetic.
    Baseline,
    /// It counts bits.
    #[cfg(target_arch = "x86_64")]
    Counting,
    /// It also finds the n-th set bit.
    #[cfg(target_arch = "x86_64")]
    Depositing,
}

impl Level {
    /// That of this processor.
    pub(super) fn here() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("popcnt") && has!("bmi1") && has!("lzcnt") {
                // Early processors of one make have the instruction but take a hundred cycles for it. They lack
                // the other feature asked for here, as do some that are quick at it: those count.
                return if has!("bmi2") && has!("vaes") { Self::Depositing } else { Self::Counting };
            }
        }
        Self::Baseline
    }

    /// As [`Line::find`] for a whole line.
    #[inline]
    pub(super) fn find(self, line: &[AtomicU64; LINE_WORDS], fraction: u64) -> Range<usize> {
        match self {
            Self::Baseline => find(line, fraction, select),
            // SAFETY: `here` made sure that the processor has what the function was compiled for.
            #[cfg(target_arch = "x86_64")]
            Self::Counting => unsafe { find_counting(line, fraction) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Depositing => unsafe { find_depositing(line, fraction) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,lzcnt")]
fn find_counting(line: &[AtomicU64; LINE_WORDS], fraction: u64) -> Range<usize> {
    find(line, fraction, select)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,lzcnt,bmi2")]
fn find_depositing(line: &[AtomicU64; LINE_WORDS], fraction: u64) -> Range<usize> {
    // A single bit is put where the n-th set one is.
    find(line, fraction, |word, before| std::arch::x86_64::_pdep_u64(1 << before, word).trailing_zeros())
}

/// One of two words, without a branch.
#[inline(always)]
fn choose(second: bool, first_word: u64, second_word: u64) -> u64 {
    first_word ^ ((first_word ^ second_word) & (second as u64).wrapping_neg())
}

#[inline(always)]
fn find(line: &[AtomicU64; LINE_WORDS], fraction: u64, select: impl Fn(u64, u32) -> u32) -> Range<usize> {
    let word = |index: usize| line[index % LINE_WORDS].load(Relaxed);
    let words = [word(0), word(1), word(2)];
    let keys = (words[0] >> 8) as usize & 0xff;
    let form = form(keys);
    let (cell, bits) = (form.cell(fraction), form.low_bits as u32);
    let slot = (cell >> bits) as u32;
    let header = ones(HEADER_BITS as u32);
    // Which of the three words has the slot's zero, and how many zeros are before that word.
    let first = (!words[0] & !header).count_ones();
    let second = first + (!words[1]).count_ones();
    let (beyond_first, beyond_second) = (slot >= first, slot >= second);
    let here = choose(beyond_second, choose(beyond_first, words[0] | header, words[1]), words[2]);
    let earlier = choose(beyond_second, choose(beyond_first, 0, words[0] | header), words[1]);
    let before = slot - choose(beyond_second, choose(beyond_first, 0, first as u64), second as u64) as u32;
    let at = select(!here, before.min(63));
    // As many keys as there are ones in front of it: the leading ones of the 64 bits that end there.
    let ahead = earlier >> (at % 64) | here << 1 << (63 - at % 64);
    let count = ahead.leading_ones();
    let end = 64 * (beyond_first as usize + beyond_second as usize) + at as usize;
    let count = (count as usize).min(end.wrapping_sub(HEADER_BITS));
    let start = end.wrapping_sub(HEADER_BITS + count + slot as usize);
    // Their low bits.
    let lows_at = start.wrapping_mul(bits as usize).wrapping_add(HEADER_BITS + form.slots as usize + keys);
    let lows = word(lows_at / 64) >> (lows_at % 64)
        | word((lows_at / 64).wrapping_add(1)) << 1 << (63 - lows_at % 64);
    let low = cell & ones(bits);
    let is_alike = |index: u32| ((lows >> (index * bits % 64) & ones(bits) == low) as u32) << index;
    let alike = (is_alike(0) | is_alike(1) | is_alike(2)) & ((1 << (count as u32 % 32)) - 1);
    let usual = before < (!here).count_ones() && count <= 3 && bits <= 21 && form.slots > 0;
    if !usual {
        return Line(line).find(fraction);
    }
    if alike == 0 {
        return 0..0;
    }
    start + alike.trailing_zeros() as usize..start + 32 - alike.leading_zeros() as usize
}

#[cfg(test)]
mod tests {
    use forebay_base::hash::mix;

    use super::super::line::line_of;
    use super::*;

    #[test]
    fn every_level_finds_what_the_oracle_finds() {
        let mut levels = vec![Level::Baseline];
        #[cfg(target_arch = "x86_64")]
        match Level::here() {
            Level::Baseline => {}
            Level::Counting => levels.push(Level::Counting),
            Level::Depositing => levels.extend([Level::Counting, Level::Depositing]),
        }
        // Miri takes a microsecond where the processor takes a nanosecond.
        let seeds = if cfg!(miri) { 13 } else { 400 };
        for seed in 0..seeds {
            let keys = [0, 1, 5, 20, 40, 44, 48, 60, 90, 200, 254, 255, 300][seed as usize % 13];
            // Some crowd into the line's first slots.
            let crowd = if seed % 3 == 0 { 5 } else { 0 };
            let mut fractions: Vec<u64> = (0..keys).map(|key| mix(seed << 32 | key) >> crowd).collect();
            fractions.sort_unstable();
            let line = line_of(&fractions, 3).map(AtomicU64::new);
            let asked = fractions.iter().copied().chain((0..seeds / 2).map(|other| mix(!other) >> crowd));
            for fraction in asked {
                let found = Line(&line).find(fraction);
                for level in &levels {
                    let by_level = level.find(&line, fraction);
                    assert!(
                        by_level == found || by_level.is_empty() && found.is_empty(),
                        "{level:?}: {keys} keys"
                    );
                }
            }
        }
    }
}
