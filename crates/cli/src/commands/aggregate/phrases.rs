//! N-grams whose keys are their words, as a store keeps them: words have no numbers there that would have to be kept
//! too.
//!
//! **Invariant:** a key is its words as [`keys`](super::keys) writes columns, so that different n-grams have different
//! keys, and keys are ordered word by word.

use std::collections::VecDeque;

use crate::input::Position;
use forebay_aggregate::group_key as keys;

/// The last N words of a file.
pub(super) struct Phrase {
    words: usize,
    key: Vec<u8>,
    /// Where each of them begins, and how much of the key it takes.
    parts: VecDeque<(Position, usize)>,
}

impl Phrase {
    pub(super) fn new(words: usize) -> Self {
        Self { words, key: Vec::new(), parts: VecDeque::with_capacity(words) }
    }

    /// Takes the next word, behind `before`, and gives the key of the n-gram that it ends, if it ends one.
    pub(super) fn push(&mut self, word: &[u8], before: Position) -> Option<&[u8]> {
        if self.parts.len() == self.words
            && let Some((_, bytes)) = self.parts.pop_front()
        {
            self.key.drain(..bytes);
        }
        let start = self.key.len();
        keys::push(&mut self.key, Some(word));
        self.parts.push_back((before, self.key.len() - start));
        (self.parts.len() == self.words).then_some(&self.key[..])
    }

    /// Where reading has to go on so that the next n-gram shown is the next one: at the last words but for one less
    /// than there are in an n-gram; nothing where it is behind everything.
    pub(super) fn next(&self) -> Option<Position> {
        let oldest = self.parts.len().saturating_sub(self.words - 1);
        self.parts.get(oldest).map(|(before, _)| *before)
    }

    /// Forgets all words.
    pub(super) fn clear(&mut self) {
        self.key.clear();
        self.parts.clear();
    }
}

/// The key that looks so: its words are shown as they are.
pub(super) fn key(text: &[u8]) -> Vec<u8> {
    keys::of(text.split(|&byte| byte == b' ').map(Some))
}

/// Appends what a key looks like.
pub(super) fn text(key: &[u8], out: &mut Vec<u8>) {
    for (place, word) in keys::split(key).enumerate() {
        out.extend_from_slice(if place > 0 { b" " } else { b"" });
        out.extend_from_slice(&keys::column(word).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever word reading stops behind, going on shows each n-gram once.
    #[test]
    fn going_on_shows_what_is_left() {
        let words = ["a", "b\0", "a", "a", "", "c", "b\0"];
        for n in 1..=4 {
            let shown = |phrase: &mut Phrase, from: usize, to: usize| {
                let mut seen = Vec::new();
                for (at, word) in words.iter().enumerate().take(to).skip(from) {
                    let before = Position { number: at as u64, offset: 10 * at as u64 };
                    if let Some(key) = phrase.push(word.as_bytes(), before) {
                        let mut shown = Vec::new();
                        text(key, &mut shown);
                        seen.push(String::from_utf8(shown).unwrap());
                    }
                }
                seen
            };
            let expected: Vec<String> = words.windows(n).map(|window| window.join(" ")).collect();
            for stop in 0..=words.len() {
                let mut first = Phrase::new(n);
                let mut seen = shown(&mut first, 0, stop);
                let next = first.next().map_or(stop, |next| next.number as usize);
                seen.extend(shown(&mut Phrase::new(n), next, words.len()));
                assert_eq!(seen, expected, "{n} words, stopped behind {stop}");
            }
        }
    }
}
