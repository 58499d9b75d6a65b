//! Words and n-grams of text, read by several threads: each counts the words that end in its chunks, and the n-grams
//! whose last word does.
//!
//! What stands before a chunk is the beginning of a word that may go on in it and, for n-grams, the last words before
//! that one, one fewer than an n-gram has.

use std::collections::VecDeque;
use std::mem;

use forebay::limits::KEY_BYTES_MAX;
use forebay_aggregate::functions::Count;

use super::adder::{Counter, TOGETHER};
use super::chunks::{self, Chunk, Look};
use super::crew::{Fault, Place, Reader};
use super::gathering::Gatherer;
use super::inputs::{Inputs, Tally};
use super::labels::Labels;
use super::means::Means;
use super::ngrams::{Numbering, Vocabulary, Window};
use super::words::{Case, find_space, is_space};
use crate::failure::Failure;
use crate::input::Position;

/// Words that get their numbers together.
const NUMBERED_TOGETHER: usize = 4096;

/// Counts the words of all inputs.
pub(super) fn words(
    inputs: &mut Inputs<'_, '_>,
    gatherer: &Gatherer<Count>,
    case: Case,
) -> Result<Labels, Failure> {
    let reader = |counter| WordReader::new(counter, case);
    chunks::count::<TextLook, _>(inputs, gatherer, 0, reader)?;
    Ok(Labels::Plain)
}

/// Counts the n-grams of all inputs, under keys of their words' numbers.
pub(super) fn ngrams(
    inputs: &mut Inputs<'_, '_>,
    gatherer: &Gatherer<Count>,
    words: usize,
    case: Case,
    means: Means,
) -> Result<Labels, Failure> {
    let vocabulary = Vocabulary::new(means.memory_bytes);
    let reader = |counter| NgramReader::new(counter, case, &vocabulary, words);
    chunks::count::<TextLook, _>(inputs, gatherer, words - 1, reader)?;
    let (words, renumbered) = vocabulary.sorted();
    Ok(Labels::Ngrams { words, renumbered })
}

/// What stands before a chunk.
#[derive(Clone, Default)]
pub(super) struct Before {
    /// The last words; none behind one that is too long for a key.
    words: VecDeque<Vec<u8>>,
    /// The beginning of a word that may go on, so much of it as tells that it is too long, and how long that is.
    begun: Vec<u8>,
    begun_bytes: u64,
}

impl Before {
    /// A word goes on.
    fn go_on(&mut self, bytes: &[u8]) {
        let room = (KEY_BYTES_MAX + 1).saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.begun_bytes += bytes.len() as u64;
    }

    /// The word that has begun ends in these bytes, behind which white space stands, and so do all others in them: the
    /// last `wanted` are kept.
    fn end_words(&mut self, bytes: &[u8], wanted: usize) {
        let head = find_space(bytes).unwrap_or(bytes.len());
        let joined = [&self.begun[..], &bytes[..head]].concat();
        let others = bytes[head..].rsplit(|byte| is_space(*byte));
        let mut words = VecDeque::new();
        for word in others.chain([&joined[..]]).filter(|word| !word.is_empty()) {
            if words.len() == wanted {
                break;
            }
            if word.len() > KEY_BYTES_MAX {
                self.words.clear();
                break;
            }
            words.push_front(word.to_vec());
        }
        while words.len() < wanted
            && let Some(word) = self.words.pop_back()
        {
            words.push_front(word);
        }
        self.words = words;
    }
}

/// Looks for the last words before each chunk, and one that may go on in it.
#[derive(Default)]
pub(super) struct TextLook(Before);

impl Look for TextLook {
    type Before = Before;
    /// How many words.
    type Wanted = usize;

    fn pass(&mut self, bytes: &[u8], wanted: usize, _: &str) -> Result<Before, Failure> {
        let Self(next) = self;
        let before = next.clone();
        let mut rest = bytes;
        if let Some(last) = bytes.iter().rposition(|byte| is_space(*byte)) {
            if wanted > 0 {
                next.end_words(&bytes[..last], wanted);
            }
            next.begun.clear();
            next.begun_bytes = 0;
            rest = &bytes[last + 1..];
        }
        next.go_on(rest);
        Ok(before)
    }
}

impl Chunk<Before> {
    fn fold(&mut self, case: Case) {
        if case == Case::Folded {
            self.bytes.make_ascii_lowercase();
            self.before.begun.make_ascii_lowercase();
            self.before.words.iter_mut().for_each(|word| word.make_ascii_lowercase());
        }
    }

    /// The words that end in it, each with where it begins in the input; `joined` is memory for one that began before.
    fn words<'c>(&'c self, joined: &'c mut Vec<u8>) -> impl Iterator<Item = (&'c [u8], u64)> {
        let Before { begun, begun_bytes, .. } = &self.before;
        joined.clear();
        let head = match find_space(&self.bytes) {
            _ if *begun_bytes == 0 => 0,
            None if !self.is_last => self.bytes.len(),
            head => {
                let head = head.unwrap_or(self.bytes.len());
                joined.extend_from_slice(begun);
                joined.extend_from_slice(&self.bytes[..head]);
                head
            }
        };
        let first = Some((&joined[..], self.offset - begun_bytes)).filter(|(word, _)| !word.is_empty());
        let rest =
            Rest { bytes: &self.bytes[head..], offset: self.offset + head as u64, is_last: self.is_last };
        first.into_iter().chain(rest)
    }
}

/// The words that end in the rest of a chunk.
struct Rest<'c> {
    bytes: &'c [u8],
    offset: u64,
    is_last: bool,
}

impl<'c> Iterator for Rest<'c> {
    type Item = (&'c [u8], u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (word, rest) = match find_space(self.bytes) {
                Some(length) => (&self.bytes[..length], &self.bytes[length + 1..]),
                None if self.is_last && !self.bytes.is_empty() => (self.bytes, &[][..]),
                None => return None,
            };
            let offset = self.offset;
            self.offset += (self.bytes.len() - rest.len()) as u64;
            self.bytes = rest;
            if !word.is_empty() {
                return Some((word, offset));
            }
        }
    }
}

/// Whether a word is too long for a key, which is told.
fn check(word: &[u8], at: Position, counter: &mut Counter<'_>) -> Result<bool, Fault> {
    let is_short = word.len() <= KEY_BYTES_MAX;
    if !is_short {
        counter.teller.refuse(at, format!("a word of more than {KEY_BYTES_MAX} bytes"))?;
    }
    Ok(is_short)
}

/// Counts words.
pub(super) struct WordReader<'a> {
    counter: Counter<'a>,
    case: Case,
    joined: Vec<u8>,
}

impl<'a> WordReader<'a> {
    pub(super) fn new(counter: Counter<'a>, case: Case) -> Self {
        Self { counter, case, joined: Vec::new() }
    }
}

impl Reader for WordReader<'_> {
    type Piece = Chunk<Before>;
    type Found = Tally;

    fn read(&mut self, _: Place, mut chunk: Chunk<Before>, spare: &mut Vec<u8>) -> Result<u64, Fault> {
        chunk.fold(self.case);
        let mut joined = mem::take(&mut self.joined);
        let (mut number, mut keys) = (0, Vec::with_capacity(TOGETHER));
        for (word, offset) in chunk.words(&mut joined) {
            number += 1;
            if check(word, Position { number, offset }, &mut self.counter)? {
                keys.push((word, ()));
            }
            if keys.len() == TOGETHER {
                self.counter.add(&keys)?;
                keys.clear();
            }
        }
        self.counter.add(&keys)?;
        (self.joined, *spare) = (joined, chunk.bytes);
        Ok(number)
    }

    fn finish(self) -> Tally {
        self.counter.teller.tally
    }
}

/// Counts n-grams.
pub(super) struct NgramReader<'a> {
    counter: Counter<'a>,
    case: Case,
    joined: Vec<u8>,
    vocabulary: &'a Vocabulary,
    numbering: Numbering,
    window: Window,
}

impl<'a> NgramReader<'a> {
    pub(super) fn new(counter: Counter<'a>, case: Case, vocabulary: &'a Vocabulary, words: usize) -> Self {
        let (joined, numbering) = Default::default();
        Self { counter, case, joined, vocabulary, numbering, window: Window::new(words) }
    }

    /// Counts the n-grams that end with these words.
    fn add(&mut self, words: &mut Vec<&[u8]>) -> Result<(), Fault> {
        let numbers = self.vocabulary.number(words, &mut self.numbering)?;
        words.clear();
        self.window.extend(numbers);
        let keys: Vec<_> = self.window.keys().map(|key| (key, ())).collect();
        self.counter.add(&keys)?;
        self.window.pass();
        Ok(())
    }
}

impl Reader for NgramReader<'_> {
    type Piece = Chunk<Before>;
    type Found = Tally;

    fn read(&mut self, _: Place, mut chunk: Chunk<Before>, spare: &mut Vec<u8>) -> Result<u64, Fault> {
        chunk.fold(self.case);
        let mut joined = mem::take(&mut self.joined);
        self.window.clear();
        let mut number = 0;
        let mut words: Vec<&[u8]> = chunk.before.words.iter().map(|word| &word[..]).collect();
        for (word, offset) in chunk.words(&mut joined) {
            number += 1;
            if check(word, Position { number, offset }, &mut self.counter)? {
                words.push(word);
            } else {
                self.add(&mut words)?;
                self.window.clear();
            }
            if words.len() >= NUMBERED_TOGETHER {
                self.add(&mut words)?;
            }
        }
        self.add(&mut words)?;
        drop(words);
        (self.joined, *spare) = (joined, chunk.bytes);
        Ok(number)
    }

    fn finish(self) -> Tally {
        self.counter.teller.tally
    }
}
