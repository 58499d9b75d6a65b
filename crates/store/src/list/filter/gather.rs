//! Making fingerprints of hashes that come in order.
//!
//! How many there will be is known only within a bound when the first one comes, and it decides how many lines there
//! are. So the first ones are kept aside; as hashes are uniform, how far they reach tells how many there will be, to
//! less than a hundredth. Hashes that crowd at the low end, as somebody may choose his keys to have them, would tell
//! of far too many: room is made for no more than a few times those that were announced.

use forebay_env::Words;

use super::fingerprints::Fingerprints;
use super::forms::LINE_WORDS;
use super::line::line_of;
use super::shape::{SHARING, Shape};

/// This many are kept aside.
pub(super) const EARLY: usize = 1 << 16;
/// More keys are not numbered.
const KEYS_MAX: u64 = 1 << 31;

/// What is announced may be an estimate, and be this many times less than what comes.
const SURPLUS: u64 = 4;

const _: () = assert!((EARLY as u64) < KEYS_MAX && KEYS_MAX <= u32::MAX as u64, "ranks are of 32 bits");

/// Fingerprints on their way.
#[derive(Debug)]
pub(crate) struct Gathering {
    low: u64,
    high: u64,
    /// More are not reckoned with.
    keys_max: u64,
    bits_per_key: u32,
    early: Vec<u64>,
    lines: Option<Lines>,
}

/// Lines on their way.
#[derive(Debug)]
struct Lines {
    shape: Shape,
    /// Where they will stay, behind ranks.
    words: Words,
    /// The rank at which each line begins.
    ranks: Vec<u32>,
    /// How far into its share each key of the last line is.
    fractions: Vec<u64>,
}

impl Gathering {
    /// For up to about `keys` hashes between `low` and `high`, both included. `None` for more than can be
    /// numbered.
    pub(crate) fn new(keys: u64, bits_per_key: u32, low: u64, high: u64) -> Option<Self> {
        let early = Vec::with_capacity(EARLY.min(keys as usize));
        let keys_max = keys.saturating_mul(SURPLUS).clamp(EARLY as u64, KEYS_MAX);
        (keys <= KEYS_MAX).then_some(Self { low, high, keys_max, bits_per_key, early, lines: None })
    }

    /// Adds a hash that is not below the last one.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        match &mut self.lines {
            Some(lines) => lines.add(hash),
            None => self.keep_aside(hash),
        }
    }

    fn keep_aside(&mut self, hash: u64) {
        self.early.push(hash);
        if self.early.len() >= EARLY {
            let (reach, width) = (hash.saturating_sub(self.low), self.high.saturating_sub(self.low));
            let expected = EARLY as f64 * (width as f64 + 1.0) / (reach as f64 + 1.0);
            self.begin_lines((expected as u64).min(self.keys_max));
        }
    }

    /// Decides how many lines there are, and puts into them what was kept aside.
    fn begin_lines(&mut self, keys: u64) -> &mut Lines {
        let mut lines = Lines::new(keys, self.bits_per_key, self.low, self.high);
        std::mem::take(&mut self.early).into_iter().for_each(|hash| lines.add(hash));
        self.lines.insert(lines)
    }

    /// The fingerprints of all that was added; `None` if nothing was, or more than can be numbered.
    pub(crate) fn finish(mut self) -> Option<Fingerprints> {
        if self.lines.is_none() {
            self.begin_lines(self.early.len() as u64);
        }
        debug_assert!(self.early.is_empty(), "those kept aside are in lines");
        self.lines?.finish()
    }
}

impl Lines {
    fn new(keys: u64, bits_per_key: u32, low: u64, high: u64) -> Self {
        let shape = Shape { keys: 0, ..Shape::of(keys, bits_per_key, low, high) };
        let ranks = Vec::with_capacity(shape.lines as usize + 1);
        Self { words: shape.room(), shape, ranks, fractions: Vec::new() }
    }

    #[inline]
    fn add(&mut self, hash: u64) {
        let (line, fraction) = self.shape.span.part(hash);
        while line.min(self.shape.lines as u64 - 1) > self.ranks.len() as u64 {
            self.end_line();
        }
        self.fractions.push(fraction);
    }

    fn end_line(&mut self) {
        let (rank, at) = (self.shape.keys, self.shape.head_words() + LINE_WORDS * self.ranks.len());
        self.ranks.push(rank);
        debug_assert!(self.ranks.len() <= self.shape.lines as usize, "there is room for each line");
        let line = line_of(&self.fractions, rank);
        line.iter().enumerate().for_each(|(index, &word)| self.words.set(at + index, word));
        self.shape.keys = rank.saturating_add(self.fractions.len() as u32);
        self.fractions.clear();
    }

    fn finish(mut self) -> Option<Fingerprints> {
        while self.ranks.len() < self.shape.lines as usize {
            self.end_line();
        }
        if self.shape.keys == 0 || self.shape.keys as u64 > KEYS_MAX {
            return None;
        }
        self.ranks.push(self.shape.keys);
        let whole = self.ranks[..self.shape.lines as usize].iter().step_by(SHARING as usize);
        let whole = whole.chain(self.ranks.last()).copied();
        let made = Fingerprints::over(self.shape, whole, self.words);
        // Where hashes are not uniform, as those of no good hash are, ranks are kept whole.
        let is_exact = (0..self.shape.lines).all(|line| made.rank_of_line(line) == self.ranks[line as usize]);
        if is_exact {
            return Some(made);
        }
        Some(Fingerprints::exact(self.shape, &self.ranks, made.line_words()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_that_crowd_at_the_low_end_take_no_more_memory_than_as_many_others() {
        let keys = 100_000_u64;
        let mut gathering = Gathering::new(keys, 11, 0, u64::MAX).unwrap_or_else(|| unreachable!());
        (0..keys).for_each(|hash| gathering.add(hash));
        let reserved_bytes = gathering.lines.as_ref().map_or(0, |lines| size_of_val(lines.words.as_slice()));
        assert!(reserved_bytes as u64 <= 4 * SURPLUS * keys, "{reserved_bytes} bytes of {keys} keys");
        assert!(gathering.finish().is_some());
    }
}
