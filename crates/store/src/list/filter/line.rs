//! One line of a filter: the keys of an equal share of the list's hashes, in one cache line.
//!
//! 1. *Header*: the last eight bits of the first key's rank, and how many keys there are, in eight bits.
//! 2. *Upper bits*: for each slot a one for each of its keys, and then a zero. So the *i*-th key of the line, if
//!    it is in slot `s`, is bit `s + i`.
//! 3. *Low bits* of each key, in order: which of its slot's cells it is in.
//!
//! How many slots and low bits there are follows from the number of keys: see [forms](super::forms).
//!
//! A line that was made shorter has no slots. Behind its header it has *marks*: in each of its words a key sets one bit,
//! which its cell draws. So it is made shorter by leaving words out, and each leaves about half as many absent keys.
//! (With slots for fewer cells more of them would be left.) Which key of the line it is, marks do not tell.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use forebay_base::hash::mix;

use super::forms::{CROWDED, Form, HEADER_BITS, LINE_WORDS, form};
use super::select::select;

/// A line in memory. Its words may change while they are read; then what is found means nothing, but it is
/// found all the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a>(pub(super) &'a [AtomicU64]);

/// A line's words, those that it does not have being zeros.
pub(super) type LineWords = [u64; LINE_WORDS];

/// As many ones, at the low end.
#[inline(always)]
pub(super) fn ones(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// The line, at its full length, of keys so far into its share, the first of which has this rank.
pub(super) fn line_of(fractions: &[u64], rank: u32) -> LineWords {
    let header = rank as u8 as u64 | (fractions.len().min(CROWDED) as u64) << 8;
    if fractions.len() >= CROWDED {
        return with_header(header);
    }
    let form = form(fractions.len());
    filled(header, form, fractions.len(), fractions.iter().map(|&fraction| form.cell(fraction)))
}

fn with_header(header: u64) -> LineWords {
    let mut words = LineWords::default();
    words[0] = header;
    words
}

/// The line of keys in these cells, in order.
#[inline]
fn filled(header: u64, form: &Form, keys: usize, cells: impl Iterator<Item = u64>) -> LineWords {
    let mut words = [0; LINE_WORDS + 1];
    words[0] = header;
    let low_bits = form.low_bits as usize;
    // Both halves grow a word at a time, so that no key waits for memory that the one before wrote.
    let lows_at = HEADER_BITS + form.slots as usize + keys;
    let (mut upper, mut upper_index) = (0, 0);
    let (mut lows, mut lows_index, mut used) = (0u64, lows_at / 64, lows_at % 64);
    for (index, cell) in cells.enumerate() {
        let bit = HEADER_BITS + (cell >> low_bits) as usize + index;
        if bit / 64 != upper_index {
            words[upper_index] |= upper;
            (upper, upper_index) = (0, bit / 64);
        }
        upper |= 1 << (bit % 64);
        let low = cell & ones(low_bits as u32);
        lows |= low << (used % 64);
        used += low_bits;
        if used >= 64 {
            words[lows_index] |= lows;
            lows_index += 1;
            used -= 64;
            lows = low >> (low_bits - used);
        }
    }
    words[upper_index] |= upper;
    words[lows_index] |= lows;
    let [line @ .., spill] = words;
    debug_assert_eq!(spill, 0, "a form's bits fit its line");
    line
}

/// The line of this many words that has marks of these cells. Short ones are made often, and in registers.
fn marked(header: u64, words: usize, cells: impl Iterator<Item = u64>) -> LineWords {
    match words {
        0 => with_header(header),
        1 => marks::<1>(header, cells),
        2 => marks::<2>(header, cells),
        3..=4 => cut(marks::<4>(header, cells), words),
        _ => cut(marks::<LINE_WORDS>(header, cells), words),
    }
}

fn marks<const WORDS: usize>(header: u64, cells: impl Iterator<Item = u64>) -> LineWords {
    let mut line = [0; WORDS];
    for cell in cells {
        line.iter_mut().zip(marks_of(cell)).for_each(|(word, mark)| *word |= mark);
    }
    let mut words = with_header(header);
    words.iter_mut().zip(line).for_each(|(word, marks)| *word |= marks);
    words
}

/// The line without its words from this one on.
fn cut(mut line: LineWords, words: usize) -> LineWords {
    line[words..].fill(0);
    line
}

/// The bit that a cell's keys set in each word.
#[inline]
fn marks_of(cell: u64) -> [u64; LINE_WORDS] {
    let drawn = mix(cell);
    // Sixteen bits of what is drawn for the first word, which has a header, and six for each other.
    let first = HEADER_BITS as u64 + (((drawn & 0xffff) * (64 - HEADER_BITS as u64)) >> 16);
    std::array::from_fn(|word| 1 << if word == 0 { first } else { drawn >> (10 + 6 * word) & 63 })
}

impl Line<'_> {
    /// A word; zero behind the end.
    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, |word| word.load(Relaxed))
    }

    /// The 64 bits that begin at `bit`.
    #[inline]
    fn window(&self, bit: usize) -> u64 {
        self.word(bit / 64) >> (bit % 64) | self.word(bit / 64 + 1) << 1 << (63 - bit % 64)
    }

    /// How many keys it has, [`CROWDED`] for more than can be kept.
    #[inline]
    pub(super) fn keys(&self) -> usize {
        (self.word(0) >> 8) as usize & 0xff
    }

    /// The last bits of the rank of its first key.
    pub(super) fn last_bits(&self) -> u8 {
        self.word(0) as u8
    }

    /// What its bits mean, and how many keys it has; `None` where it has no slots.
    #[inline]
    fn form(&self) -> Option<(&'static Form, usize)> {
        let keys = self.keys();
        (keys < CROWDED && self.0.len() == LINE_WORDS).then(|| (form(keys), keys))
    }

    /// Which of its keys a hash may be, by its marks: all or none, and `0..CROWDED` where nothing is kept of them.
    #[inline]
    fn marked(&self, fraction: u64) -> Range<usize> {
        let keys = self.keys();
        if keys == CROWDED {
            return 0..CROWDED;
        }
        let marks = marks_of(form(keys).cell(fraction));
        let is_marked = self.0.iter().zip(marks).all(|(word, mark)| word.load(Relaxed) & mark == mark);
        0..if is_marked { keys } else { 0 }
    }

    /// Whether its bits are those of this many keys.
    pub(super) fn is_sound(&self) -> bool {
        self.form().is_none_or(|(form, keys)| {
            let upper = form.slots as usize + keys;
            let at = |bit: usize| self.window(HEADER_BITS + bit) & ones((upper - bit).min(64) as u32);
            (0..upper).step_by(64).map(|bit| at(bit).count_ones() as usize).sum::<usize>() == keys
        })
    }

    #[inline]
    fn low(&self, form: &Form, keys: usize, index: usize) -> u64 {
        let lows = HEADER_BITS + form.slots as usize + keys;
        self.window(lows + index * form.low_bits as usize) & ones(form.low_bits as u32)
    }

    /// Which of its keys are in the slot.
    #[inline]
    fn run(&self, slot: u32) -> Range<usize> {
        let (mut index, mut before) = (0, slot);
        let mut here = !self.word(0) & !ones(HEADER_BITS as u32);
        while before >= here.count_ones() {
            before -= here.count_ones();
            index += 1;
            if index >= LINE_WORDS {
                return 0..0;
            }
            here = !self.word(index);
        }
        let end = select(here, before);
        // As many ones as lie in front of it: of 64 bits that end there, the leading ones.
        let earlier = if index == 0 { 0 } else { self.word(index - 1) };
        let ahead = earlier >> end | !here << 1 << (63 - end);
        let end = 64 * index + end as usize - HEADER_BITS;
        let mut count = (ahead.leading_ones() as usize).min(end);
        if count == 64 {
            let is_one = |count: usize| self.window(HEADER_BITS + end - count) & 1 == 1;
            count = (1..=end).take_while(|&count| is_one(count)).count();
        }
        (end - count).saturating_sub(slot as usize)..end.saturating_sub(slot as usize)
    }

    /// Which of its keys a hash may be that is so far into the line's share: `0..CROWDED` where it may be any.
    pub(super) fn find(&self, fraction: u64) -> Range<usize> {
        let Some((form, keys)) = self.form() else { return self.marked(fraction) };
        let cell = form.cell(fraction);
        let run = self.run((cell >> form.low_bits) as u32);
        let low = cell & ones(form.low_bits as u32);
        // Low bits ascend within a slot, so matches are neighbours.
        let is_alike = |&index: &usize| self.low(form, keys, index) == low;
        let start = run.clone().find(is_alike).unwrap_or(run.end);
        start..start + (start..run.end).take_while(is_alike).count()
    }

    /// Which of its keys are in the slot that such a hash is in; `0..CROWDED` where that is not known.
    pub(super) fn around(&self, fraction: u64) -> Range<usize> {
        self.form().map_or(0..CROWDED, |(form, _)| self.run((form.cell(fraction) >> form.low_bits) as u32))
    }

    /// How far into the line's share the slot of a key begins.
    pub(super) fn slot_start(&self, index: usize) -> u64 {
        let Some((form, _)) = self.form() else { return 0 };
        let is_before = |&slot: &u32| self.run(slot).end <= index;
        let slot = (0..form.slots as u32).take_while(is_before).count() as u128;
        let cell = slot << form.low_bits;
        u64::try_from((cell << 64).div_ceil(form.cells as u128)).unwrap_or(u64::MAX)
    }

    /// The same keys in a line of this many words.
    pub(super) fn shortened(&self, words: usize) -> LineWords {
        let header = self.word(0) & ones(HEADER_BITS as u32);
        let Some((form, keys)) = self.form() else {
            // Of marks as many as there is room for, and the header in any case.
            let word = |index: usize| if index < words { self.word(index) } else { 0 };
            let mut line: LineWords = std::array::from_fn(word);
            line[0] |= header;
            return line;
        };
        debug_assert!(words < LINE_WORDS, "a shorter line tells less");
        marked(header, words, Cells::of(self, form, keys))
    }
}

/// The cells of a line's keys, in order.
struct Cells {
    /// Zeros behind the end.
    words: [u64; LINE_WORDS + 2],
    form: &'static Form,
    keys: usize,
    /// Ones of the word at `index` that were not come to yet.
    ones: u64,
    index: usize,
    next: usize,
}

impl Cells {
    fn of(line: &Line<'_>, form: &'static Form, keys: usize) -> Self {
        let words = std::array::from_fn(|index| line.word(index));
        Self { words, form, keys, ones: words[0] & !ones(HEADER_BITS as u32), index: 0, next: 0 }
    }
}

impl Iterator for Cells {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let (key, low_bits) = (self.next, self.form.low_bits as usize);
        if key == self.keys {
            return None;
        }
        while self.ones == 0 && self.index + 1 < LINE_WORDS {
            self.index += 1;
            self.ones = self.words[self.index];
        }
        let bit = 64 * self.index + self.ones.trailing_zeros() as usize;
        self.ones &= self.ones.wrapping_sub(1);
        self.next += 1;
        // There is no slot behind the last, whatever a damaged line says.
        let slots = self.form.slots as usize;
        let slot = bit.saturating_sub(HEADER_BITS + key).min(slots - 1);
        let at = HEADER_BITS + slots + self.keys + key * low_bits;
        let low = self.words[at / 64] >> (at % 64) | self.words[at / 64 + 1] << 1 << (63 - at % 64);
        Some((slot << low_bits) as u64 | low & ones(low_bits as u32))
    }
}
