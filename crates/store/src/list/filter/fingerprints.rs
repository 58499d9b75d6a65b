//! The filter of a hash-ordered list: the hashes themselves, in order, as far as memory allows. It tells not
//! only whether a hash may be in the list but also at which rank.
//!
//! The list's range of hashes is cut into equal shares, one for each [line](super::line) of 64 bytes. A lookup
//! reads just one line, and nothing tells it the way there but the hash: where memory is slow that is what counts.
//! (An Elias-Fano sequence of the whole list would need a twelfth less memory, and three lines of it.)
//!
//! *Ranks.* How many keys are before a line is kept for one line in 32. As hashes are uniform, between those it is
//! nearly a straight line; each line's header has the last eight bits of its own. Where those do not tell it, it is
//! kept for every line.
//!
//! **Thinning** makes all lines shorter, in place, while lookups go on. They look at `state` before and after they
//! copy a line, and look again where it moved meanwhile.
//!
//! **Invariant:** a hash that was added is never denied, and its rank is among those that are found, however
//! thin the filter is.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use forebay_base::wire::{Reader, put_varint, u32_at, u64_at};
use forebay_env::Words;
use forebay_env::sync::atomic::{AtomicU64, Ordering, fence};

use super::allowance::Allowance;
use super::forms::{CROWDED, LINE_WORDS, false_positive_rate};
use super::kernel::Level;
use super::line::Line;
use super::shape::{BYTES, SHARING, Shape};
use super::span::Span;

/// The shortened hashes of a list.
#[derive(Debug)]
pub(crate) struct Fingerprints {
    shape: Shape,
    /// How long lines are, and how far a change of that is: see [`State`].
    state: AtomicU64,
    level: Level,
    /// Where the lines begin; ranks are in front of them.
    lines_at: usize,
    words: Words,
}

/// Where a hash is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    line: u32,
    /// How far into the line's share, in units of 2^-64 of it.
    fraction: u64,
}

impl Place {
    /// About which of the ranks of its line it is, where they are in order and even.
    pub(crate) fn likely(&self, ranks: &Range<u32>) -> u32 {
        let ahead = (self.fraction as u128 * (ranks.end - ranks.start) as u128) >> 64;
        ranks.start + ahead as u32
    }
}

/// Lines below `moved` have `new` words each, the others `old`. While these differ, the line `moved` is on its
/// way.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    moved: u32,
    old: usize,
    new: usize,
}

impl State {
    fn idle(words: usize) -> Self {
        Self { moved: 0, old: words, new: words }
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Self { moved: word as u32, old: (word >> 32) as usize & 0xff, new: (word >> 40) as usize }
    }

    fn to_word(self) -> u64 {
        self.moved as u64 | (self.old as u64) << 32 | (self.new as u64) << 40
    }

    /// How many words a line has.
    #[inline]
    fn words_of(&self, line: u32) -> usize {
        if line < self.moved { self.new } else { self.old }
    }

    #[inline]
    fn moves(&self, line: u32) -> bool {
        self.old != self.new && line == self.moved
    }
}

impl Fingerprints {
    /// The filter of these lines, all of whose ranks are kept whole.
    pub(super) fn exact(shape: Shape, ranks: &[u32], lines: &[AtomicU64]) -> Self {
        let lines = lines.iter().map(|word| word.load(Relaxed));
        Self::assemble(Shape { sharing: 1, ..shape }, ranks.iter().copied(), lines)
    }

    /// The filter of these whole ranks and lines.
    fn assemble(shape: Shape, ranks: impl Iterator<Item = u32>, lines: impl Iterator<Item = u64>) -> Self {
        let words = shape.room();
        words.as_slice()[shape.head_words()..]
            .iter()
            .zip(lines)
            .for_each(|(at, word)| at.store(word, Relaxed));
        Self::over(shape, ranks, words)
    }

    /// The filter of these whole ranks, and of lines that are in their place already, in [room](Shape::room) for both.
    pub(super) fn over(shape: Shape, ranks: impl Iterator<Item = u32>, words: Words) -> Self {
        let lines_at = shape.head_words();
        for (index, rank) in ranks.enumerate() {
            words.set(index / 2, words.get(index / 2) | (rank as u64) << (32 * (index % 2)));
        }
        debug_assert_eq!(words.as_slice().len(), lines_at + LINE_WORDS * shape.lines as usize);
        let state = AtomicU64::new(State::idle(LINE_WORDS).to_word());
        Self { shape, state, level: Level::here(), lines_at, words }
    }

    /// First stage of a lookup: asks for the line.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> Place {
        let (line, fraction) = self.shape.span.part(hash);
        let last = self.shape.lines - 1;
        let (line, fraction) = if line > last as u64 { (last, u64::MAX) } else { (line as u32, fraction) };
        let words = State::from_word(self.state.load(Relaxed)).words_of(line);
        let ahead = if words == 0 { line as usize / BYTES } else { line as usize * words };
        self.words.prefetch(self.lines_at + ahead);
        Place { line, fraction }
    }

    /// What `look` makes of a line; it may look more than once.
    #[inline]
    fn with_line<T>(&self, line: u32, look: impl Fn(Line<'_>) -> T) -> T {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let words = State::from_word(state).words_of(line);
            let seen = if words == 0 {
                look(Line(&[self.last_byte(line).into()]))
            } else {
                let at = self.lines_at + line as usize * words;
                look(Line(self.words.as_slice().get(at..at + words).unwrap_or_default()))
            };
            fence(Ordering::Acquire);
            let now = State::from_word(self.state.load(Relaxed));
            if now.words_of(line) == words && !now.moves(line) {
                return seen;
            }
            std::hint::spin_loop();
        }
    }

    /// The header of a line of which a byte is left: as that of a crowded one.
    fn last_byte(&self, line: u32) -> u64 {
        let line = line as usize;
        let word = self.words.get(self.lines_at + line / BYTES);
        word >> (8 * (line % BYTES)) & 0xff | (CROWDED as u64) << 8
    }

    fn whole_rank(&self, index: usize) -> u32 {
        (self.words.get(index / 2) >> (32 * (index % 2))) as u32
    }

    /// The rank of the first key of a line whose header says that it ends with these bits.
    fn rank(&self, line: u32, last_bits: u8) -> u32 {
        let Shape { lines, sharing, .. } = self.shape;
        let (index, ahead) = (line / sharing, line % sharing);
        let (low, high) = (self.whole_rank(index as usize), self.whole_rank(index as usize + 1));
        let among = sharing.min(lines - index * sharing).max(1);
        let near = low + (high.saturating_sub(low) as u64 * ahead as u64 / among as u64) as u32;
        match ahead {
            0 => low,
            _ => near.wrapping_add_signed(last_bits.wrapping_sub(near as u8) as i8 as i32),
        }
    }

    /// The rank of a line's first key; behind the last line, the number of keys.
    pub(super) fn rank_of_line(&self, line: u32) -> u32 {
        if line < self.shape.lines {
            self.rank(line, self.with_line(line, |line| line.last_bits()))
        } else {
            self.shape.keys
        }
    }

    /// The ranks of some keys of a line.
    #[inline]
    fn ranks(&self, line: u32, last_bits: u8, keys: Range<usize>) -> Range<u32> {
        let first = self.rank(line, last_bits);
        match keys.end {
            CROWDED => first..self.rank_of_line(line + 1),
            _ => first + keys.start as u32..first + keys.end as u32,
        }
    }

    /// Last stage: the ranks at which the hash may be; empty where it is not.
    #[inline]
    pub(crate) fn matches(&self, place: &Place) -> Range<u32> {
        let (found, last_bits) =
            self.with_line(place.line, |line| (self.look(line, place.fraction), line.last_bits()));
        if found.is_empty() { 0..0 } else { self.ranks(place.line, last_bits, found) }
    }

    #[inline]
    fn look(&self, line: Line<'_>, fraction: u64) -> Range<usize> {
        match <&[AtomicU64; LINE_WORDS]>::try_from(line.0).ok() {
            Some(whole) => self.level.find(whole, fraction),
            None => line.find(fraction),
        }
    }

    /// The ranks at which a hash may be.
    pub(crate) fn find(&self, hash: u64) -> Range<u32> {
        self.matches(&self.locate(hash))
    }

    /// How many keys there are.
    pub(crate) fn keys(&self) -> u32 {
        self.shape.keys
    }

    /// The ranks between which a hash is or would be: all keys before the first have lower hashes, all from
    /// the end on higher ones.
    pub(crate) fn around(&self, hash: u64) -> Range<u32> {
        let place = self.locate(hash);
        let (run, last_bits) =
            self.with_line(place.line, |line| (line.around(place.fraction), line.last_bits()));
        self.ranks(place.line, last_bits, run)
    }

    /// The lowest hash of the slot in which the key of this rank is.
    pub(crate) fn slot_start(&self, rank: u32) -> Option<u64> {
        let (mut low, mut high) = (0, self.shape.lines);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.rank_of_line(middle) <= rank { low = middle } else { high = middle }
        }
        let index = rank.saturating_sub(self.rank_of_line(low)) as usize;
        self.shape.span.first_hash(low as u64, self.with_line(low, |line| line.slot_start(index)))
    }

    /// Makes lines shorter until a key takes no more than these bits, as far as that goes. One thread at a
    /// time does so; another one that comes meanwhile does nothing. Returns how many bytes it gave back.
    pub(crate) fn thin(&self, allowed: Allowance) -> usize {
        let word = self.state.load(Relaxed);
        let State { old, new, .. } = State::from_word(word);
        let words = self.shape.words_within(allowed);
        let begin = State { moved: 0, old, new: words };
        // Precision is given up for memory, and for nothing else.
        let begins = old == new
            && words < old
            && self.memory_of(words) < self.memory_of(old)
            && self.state.compare_exchange(word, begin.to_word(), Ordering::Acquire, Relaxed).is_ok();
        if !begins {
            return 0;
        }
        for line in 0..self.shape.lines {
            let from = self.lines_at + line as usize * old;
            let short = Line(&self.words.as_slice()[from..from + old]).shortened(words);
            self.state.store(State { moved: line, ..begin }.to_word(), Ordering::Release);
            // From here on whoever sees a word of the new line sees that the line moves.
            fence(Ordering::Release);
            if words == 0 {
                self.leave_byte(line, short[0]);
                continue;
            }
            let to = self.lines_at + line as usize * words;
            debug_assert!(to + words <= from + old, "a shorter line lies where longer ones were");
            (0..words).for_each(|index| self.words.set(to + index, short[index]));
        }
        self.state.store(State::idle(words).to_word(), Ordering::Release);
        let before = self.memory_of(old);
        self.words.release(self.lines_at + self.shape.line_words(words));
        before - self.memory_of(words)
    }

    /// Leaves a byte of a line, the last bits of its rank. Its word is that of lines that moved before, whose bytes stay
    /// as they are, and of some that have not, whose old places lie behind it.
    fn leave_byte(&self, line: u32, header: u64) {
        let (at, shift) = (self.lines_at + line as usize / BYTES, 8 * (line as usize % BYTES));
        let before = self.words.get(at) & ((1 << shift) - 1);
        self.words.set(at, before | (header & 0xff) << shift);
    }

    /// Moves to memory for what thinning has left.
    pub(super) fn fit(&mut self) {
        let words = State::from_word(self.state.load(Relaxed)).new;
        self.words.cut(self.lines_at + self.shape.line_words(words));
    }

    /// Memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_of(State::from_word(self.state.load(Relaxed)).new)
    }

    fn memory_of(&self, words: usize) -> usize {
        self.words.memory_bytes(self.lines_at + self.shape.line_words(words))
    }

    /// Appends the filter's bytes but for its lines. It must not have been thinned.
    pub(super) fn encode_head(&self, out: &mut Vec<u8>) {
        let Shape { span, lines, keys, sharing } = self.shape;
        [span.low, span.scale].iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        [span.shift, sharing, lines, keys].iter().for_each(|&field| put_varint(out, field as u64));
        let ranks = 0..self.shape.ranks();
        ranks.for_each(|index| out.extend_from_slice(&self.whole_rank(index).to_le_bytes()));
    }

    /// The words of its lines.
    pub(super) fn line_words(&self) -> &[AtomicU64] {
        &self.words.as_slice()[self.lines_at..]
    }

    /// Reads a filter. `None` where the bytes are not one.
    pub(crate) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let (low, scale) = (from.u64()?, from.u64()?);
        let mut field = || u32::try_from(from.varint()?).ok();
        let (shift, sharing, lines, keys) = (field()?, field()?, field()?, field()?);
        let shape = Shape { span: Span { low, shift, scale }, lines, keys, sharing };
        if shift > 63 || lines == 0 || keys == 0 || !matches!(sharing, 1 | SHARING) {
            return None;
        }
        let ranks = from.take(4 * shape.ranks())?;
        let bytes = from.take((lines as usize).checked_mul(8 * LINE_WORDS)?)?;
        let words = bytes.chunks_exact(8).map(|word| u64_at(word, 0));
        let filter = Self::assemble(shape, ranks.chunks_exact(4).map(|word| u32_at(word, 0)), words);
        filter.is_sound().then_some(filter)
    }

    /// Whether every line is one, and all ranks are where the keys of the lines put them.
    fn is_sound(&self) -> bool {
        let mut rank = 0;
        for line in 0..self.shape.lines {
            let (keys, is_sound) = self.with_line(line, |line| (line.keys(), line.is_sound()));
            if self.rank_of_line(line) != rank || !is_sound {
                return false;
            }
            rank = match keys {
                // Those are not counted in the line.
                CROWDED => self.rank_of_line(line + 1).max(rank),
                keys => rank.saturating_add(keys as u32),
            };
        }
        rank == self.shape.keys && self.whole_rank(self.shape.ranks() - 1) == rank
    }
}

/// What filters that were made with this many bits a key come to with this many words a line: bytes for each key, and
/// the share of absent hashes that they find. A line gets more or fewer keys by chance.
pub(super) fn thinned(bits_per_key: u32, words: usize) -> (f64, f64) {
    let many = 1 << 24;
    let shape = Shape::of(many, bits_per_key, 0, u64::MAX);
    let mean = many as f64 / shape.lines as f64;
    let (mut chance, mut rate) = ((-mean).exp(), 0.0);
    for keys in 1..CROWDED {
        chance *= mean / keys as f64;
        rate += chance * false_positive_rate(words, keys);
    }
    (shape.bytes(words) as f64 / many as f64, rate.min(1.0))
}
