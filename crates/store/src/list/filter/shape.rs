//! How many lines a filter of fingerprints has, for which hashes, and what they take.

use forebay_env::Words;

use super::allowance::Allowance;
use super::forms::LINE_WORDS;
use super::span::Span;

/// Of this many lines, the rank of one is kept whole.
pub(super) const SHARING: u32 = 32;
/// How many words lines have as they are made shorter. In the end they have none, and a byte of each is left, which tells
/// ranks.
pub(super) const STEPS: [usize; 8] = [LINE_WORDS, 6, 5, 4, 3, 2, 1, 0];
/// How many lines share a word where a byte is left of each.
pub(super) const BYTES: usize = size_of::<u64>();
/// Fewer bits for each key would not even tell how many are in a line.
const BITS_MIN: u64 = 3;

const _: () = assert!(STEPS[0] == LINE_WORDS && STEPS[STEPS.len() - 1] == 0 && SHARING.is_power_of_two());

/// What a filter is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) span: Span,
    pub(super) lines: u32,
    pub(super) keys: u32,
    /// Of how many lines the rank of one is kept whole: [`SHARING`] or 1.
    pub(super) sharing: u32,
}

impl Shape {
    /// That of a filter with about this many bits for each of its keys, which are between `low` and `high`, both
    /// included.
    pub(super) fn of(keys: u64, bits_per_key: u32, low: u64, high: u64) -> Self {
        // Three eighths of a bit of each key are for what else a list keeps of it.
        let bits = keys * (8 * BITS_MIN.max(bits_per_key as u64) - 3) / 8;
        let span = Span::new(low, high, bits.div_ceil(64 * LINE_WORDS as u64).max(1));
        Self { span, lines: span.part(high).0 as u32 + 1, keys: keys as u32, sharing: SHARING }
    }

    /// Memory with this many words a line, in bytes.
    pub(super) fn bytes(&self, words: usize) -> u64 {
        8 * (self.head_words() + self.line_words(words)) as u64
    }

    /// How many words lines of this many words take in all.
    pub(super) fn line_words(&self, words: usize) -> usize {
        if words == 0 { (self.lines as usize).div_ceil(BYTES) } else { words * self.lines as usize }
    }

    /// How many words a line may have so that a key takes no more than these bits: one of [`STEPS`].
    pub(super) fn words_within(&self, allowed: Allowance) -> usize {
        let step_bits = |step: usize| 8.0 * self.bytes(step) as f64 / self.keys as f64;
        allowed.step(&STEPS, step_bits)
    }

    /// How many ranks are kept whole; that behind the last line is one of them.
    pub(super) fn ranks(&self) -> usize {
        self.lines.div_ceil(self.sharing) as usize + 1
    }

    /// Memory for a filter, all zeros: for ranks, and behind them for lines.
    pub(super) fn room(&self) -> Words {
        Words::zeroed(self.head_words() + LINE_WORDS * self.lines as usize)
    }

    /// How many words those take: whole cache lines.
    pub(super) fn head_words(&self) -> usize {
        self.ranks().div_ceil(2).next_multiple_of(LINE_WORDS)
    }
}
