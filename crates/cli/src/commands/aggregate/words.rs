//! Words: bytes between ASCII white space, as they are.
//!
//! 1. Take what is at hand. A word ends at the next white space.
//! 2. What follows the last white space may go on in what is read next: it moves to the front.
//!
//! Eight bytes are looked at together: those of at most 0x20 are found with one subtraction, and only they
//! are looked at closely. Nothing is copied but a chunk's last word.

use std::io::{ErrorKind, Read};

use crate::failure::Failure;
use crate::input::window::Tail;
use forebay::limits::KEY_BYTES_MAX;

/// How much is read at once.
const CHUNK_BYTES: usize = 256 << 10;
const _: () = assert!(CHUNK_BYTES > KEY_BYTES_MAX);

/// What becomes of upper case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// Words stay as they are.
    Kept,
    /// ASCII letters become lower case.
    Folded,
}

/// What splits `input` into words.
pub(super) struct Words<R> {
    input: R,
    name: String,
    case: Case,
    tail: Tail,
    bytes: Vec<u8>,
}

impl<R: Read> Words<R> {
    pub(super) fn new(input: R, name: &str, case: Case, tail: Tail) -> Self {
        Self { input, name: name.into(), case, tail, bytes: vec![0; CHUNK_BYTES] }
    }

    /// Shows each word and the offset at which it begins. Of one that is longer than a chunk, and so than a
    /// key may be, the first chunk is shown. Returns how many bytes at the end are left, of a word that may go on.
    pub(super) fn for_each(
        mut self,
        mut show: impl FnMut(&[u8], u64) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let (mut held, mut offset) = (0, 0);
        // Whether what is held was shown already, and its word goes on.
        let mut is_cut = false;
        loop {
            let read = self.read(held)?;
            let end = held + read;
            let mut start = 0;
            while let Some(length) = find_space(&self.bytes[start..end]) {
                if length > 0 && !is_cut {
                    show(&self.bytes[start..start + length], offset + start as u64)?;
                }
                is_cut = false;
                start += length + 1;
            }
            if read == 0 && self.tail == Tail::Left && !is_cut {
                return Ok((end - start) as u64);
            }
            let is_last = read == 0 || end - start == CHUNK_BYTES;
            if is_last && start < end && !is_cut {
                show(&self.bytes[start..end], offset + start as u64)?;
            }
            if read == 0 {
                return Ok(0);
            }
            is_cut |= is_last;
            if is_cut {
                start = end;
            }
            offset += start as u64;
            held = end - start;
            self.bytes.copy_within(start..end, 0);
        }
    }

    /// Reads more behind the first `held` bytes.
    fn read(&mut self, held: usize) -> Result<usize, Failure> {
        let free = &mut self.bytes[held..];
        loop {
            match self.input.read(free) {
                Ok(read) => {
                    if self.case == Case::Folded {
                        free[..read].make_ascii_lowercase();
                    }
                    return Ok(read);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::work(format!("cannot read {}: {error}", self.name))),
            }
        }
    }
}

/// What separates words: the white space of C.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Where the first white space is.
#[inline]
pub(super) fn find_space(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let eight = u64::from_le_bytes(*eight);
        // The lowest bit that is set is right; those above it may come of borrowing.
        let low = eight.wrapping_sub(ONES * 0x21) & !eight & (ONES << 7);
        if low == 0 {
            at += 8;
            continue;
        }
        at += low.trailing_zeros() as usize / 8;
        if is_space(bytes[at]) {
            return Some(at);
        }
        at += 1;
    }
    bytes[at..].iter().position(|byte| is_space(*byte)).map(|length| at + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn words(input: impl Read, case: Case) -> Vec<(Vec<u8>, u64)> {
        let mut seen = Vec::new();
        let keep = |word: &[u8], offset| {
            seen.push((word.to_vec(), offset));
            Ok(())
        };
        Words::new(input, "test", case, Tail::Taken).for_each(keep).unwrap();
        seen
    }

    #[test]
    fn words_stand_between_white_space() {
        let text = b" The  cat\x0b\x0csat\r\non\x01\t\xc3\xa9";
        let expected: [(&[u8], u64); 5] =
            [(b"The", 1), (b"cat", 6), (b"sat", 11), (b"on\x01", 16), (b"\xc3\xa9", 20)];
        assert_eq!(words(&text[..], Case::Kept), expected.map(|(word, at)| (word.to_vec(), at)));
        assert_eq!(words(&text[..], Case::Folded)[0].0, b"the");
        assert_eq!(words(&b""[..], Case::Kept), []);
    }

    #[test]
    fn a_word_that_may_go_on_is_left() {
        for (text, left, count) in [("one two", 3, 1), ("one two ", 0, 2), ("one", 3, 0), ("", 0, 0)] {
            let mut seen = 0;
            let rest = Words::new(text.as_bytes(), "test", Case::Kept, Tail::Left).for_each(|_, _| {
                seen += 1;
                Ok(())
            });
            assert_eq!((rest.unwrap(), seen), (left, count), "{text:?}");
        }
    }

    #[test]
    fn a_word_may_lie_across_chunks_and_a_longer_one_is_cut_once() {
        let (long, longer) = ("x".repeat(CHUNK_BYTES - 10), "y".repeat(3 * CHUNK_BYTES));
        let text = format!("a {long} {long} {longer} b {longer}");
        let seen = words(text.as_bytes(), Case::Kept);
        let lengths: Vec<usize> = seen.iter().map(|(word, _)| word.len()).collect();
        assert_eq!(lengths[..3], [1, long.len(), long.len()]);
        assert!(lengths[3] > KEY_BYTES_MAX && lengths[5] > KEY_BYTES_MAX, "{lengths:?}");
        assert_eq!((lengths.len(), &seen[4].0[..]), (6, &b"b"[..]));
        for (word, offset) in seen {
            assert_eq!(text.as_bytes()[offset as usize], word[0]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(12),
            ..ProptestConfig::with_cases(1000)
        })]

        #[test]
        fn white_space_is_found_wherever_it_is(text in "[a\u{1} \u{1f}!\t\u{e9}]{0,40}") {
            let bytes = text.as_bytes();
            prop_assert_eq!(find_space(bytes), bytes.iter().position(|byte| is_space(*byte)));
        }
    }
}
