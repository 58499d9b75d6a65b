//! K-mers: every K bases that follow each other, two bits each, and canonical: of a k-mer and its reverse
//! complement the smaller one stands for both.
//!
//! **Invariant:** a sequence and its reverse complement show the same canonical k-mers, equally often.
//!
//! Bases are `ACGT` in either case. Anything else breaks a sequence, but for the end of a line.

use std::ops::{BitAnd, BitOr, Shl, Shr};

use serde::{Deserialize, Serialize};

/// The most bases of a k-mer.
pub(super) const BASES_MAX: usize = 64;
const LETTERS: [u8; 4] = *b"ACGT";
/// In [`CODES`]: between two sequences.
const BREAK: u8 = 4;
/// In [`CODES`]: nothing at all.
const PASS: u8 = 5;

/// What each byte means.
const CODES: [u8; 256] = {
    let mut codes = [BREAK; 256];
    let mut code = 0;
    while code < LETTERS.len() {
        codes[LETTERS[code] as usize] = code as u8;
        codes[LETTERS[code].to_ascii_lowercase() as usize] = code as u8;
        code += 1;
    }
    codes[b'\r' as usize] = PASS;
    codes[b'\n' as usize] = PASS;
    codes
};

/// Bytes of the key of a k-mer of this many bases.
pub(super) fn key_bytes(k: usize) -> usize {
    k.div_ceil(4)
}

/// The key of a k-mer of this many bases, whose bytes these are.
#[inline]
pub(super) fn key<B: AsRef<[u8]>>(k: usize, bytes: &B) -> &[u8] {
    let bytes = bytes.as_ref();
    &bytes[bytes.len() - key_bytes(k)..]
}

/// Leaves of a sequence the last so many bases that follow each other, or as many as do, without ends of lines.
pub(super) fn keep_last(sequence: &mut Vec<u8>, most: usize) {
    let bases = sequence.iter().rev().map(|byte| (*byte, CODES[usize::from(*byte)]));
    let bases = bases.filter(|(_, code)| *code != PASS).take_while(|(_, code)| *code != BREAK).take(most);
    let mut kept: Vec<u8> = bases.map(|(byte, _)| byte).collect();
    kept.reverse();
    *sequence = kept;
}

/// A machine word that holds a k-mer: `u64` up to 32 bases, or `u128`.
pub(super) trait Word:
    Copy
    + Ord
    + From<u8>
    + Into<u128>
    + TryFrom<u128>
    + Shl<usize, Output = Self>
    + Shr<usize, Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
{
    const ALL: Self;
    const BITS: usize;
    /// What holds its bytes.
    type Bytes: AsRef<[u8]>;

    /// Its bytes, the highest first.
    fn to_bytes(self) -> Self::Bytes;
}

impl Word for u64 {
    const ALL: Self = Self::MAX;
    const BITS: usize = 64;
    type Bytes = [u8; 8];

    #[inline]
    fn to_bytes(self) -> [u8; 8] {
        self.to_be_bytes()
    }
}

impl Word for u128 {
    const ALL: Self = Self::MAX;
    const BITS: usize = 128;
    type Bytes = [u8; 16];

    #[inline]
    fn to_bytes(self) -> [u8; 16] {
        self.to_be_bytes()
    }
}

/// The last K bases, forwards and as their reverse complement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Roller<W> {
    k: usize,
    forward: W,
    reverse: W,
    bases: usize,
}

impl<W: Word> Roller<W> {
    pub(super) fn new(k: usize) -> Self {
        assert!(2 * k <= W::BITS, "{k} bases do not fit a word of {} bits", W::BITS);
        Self { k, forward: W::from(0), reverse: W::from(0), bases: 0 }
    }

    /// Takes the next bytes of a sequence, and shows every canonical k-mer that ends in them.
    #[inline]
    pub(super) fn feed<E>(
        &mut self,
        sequence: &[u8],
        mut show: impl FnMut(W) -> Result<(), E>,
    ) -> Result<(), E> {
        let mask = W::ALL >> (W::BITS - 2 * self.k);
        let top = 2 * (self.k - 1);
        for byte in sequence {
            let code = CODES[usize::from(*byte)];
            if code >= BREAK {
                if code == BREAK {
                    self.bases = 0;
                }
                continue;
            }
            self.forward = (self.forward << 2 | W::from(code)) & mask;
            self.reverse = self.reverse >> 2 | W::from(3 - code) << top;
            self.bases += 1;
            if self.bases >= self.k {
                show(self.forward.min(self.reverse))?;
            }
        }
        Ok(())
    }

    /// Itself in the widest words, to be kept.
    pub(super) fn kept(&self) -> Roller<u128> {
        let Self { k, forward, reverse, bases } = *self;
        Roller { k, forward: forward.into(), reverse: reverse.into(), bases }
    }

    /// One that was kept, if it fits these words.
    pub(super) fn resume(kept: &Roller<u128>) -> Option<Self> {
        let word = |word: u128| W::try_from(word).ok();
        Some(Self {
            k: kept.k,
            forward: word(kept.forward)?,
            reverse: word(kept.reverse)?,
            bases: kept.bases,
        })
    }

    /// What comes is another sequence.
    pub(super) fn clear(&mut self) {
        self.bases = 0;
    }
}

/// Appends the letters of a key.
pub(super) fn letters(k: usize, key: &[u8], out: &mut Vec<u8>) {
    let word = key.iter().fold(0, |word: u128, byte| word << 8 | u128::from(*byte));
    out.extend((0..k).rev().map(|base| LETTERS[(word >> (2 * base) & 3) as usize]));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn kmers(k: usize, parts: &[&str]) -> Vec<String> {
        let wide = kmers_in::<u128>(k, parts);
        if k <= 32 {
            assert_eq!(kmers_in::<u64>(k, parts), wide);
        }
        wide
    }

    fn kmers_in<W: Word>(k: usize, parts: &[&str]) -> Vec<String> {
        let (mut roller, mut seen) = (Roller::<W>::new(k), Vec::new());
        for part in parts {
            let shown = roller.feed(part.as_bytes(), |word| {
                let mut text = Vec::new();
                letters(k, key(k, &word.to_bytes()), &mut text);
                seen.push(String::from_utf8(text).unwrap());
                Ok::<(), ()>(())
            });
            shown.unwrap();
        }
        seen
    }

    fn reverse_complement(sequence: &str) -> String {
        let complement = |base| match base {
            'A' => 'T',
            'C' => 'G',
            'G' => 'C',
            'T' => 'A',
            other => other,
        };
        sequence.chars().rev().map(complement).collect()
    }

    /// Slices, each or its reverse complement, whichever is less.
    fn plainly(k: usize, sequence: &str) -> Vec<String> {
        let windows =
            sequence.as_bytes().windows(k).map(|window| String::from_utf8(window.to_vec()).unwrap());
        let canonical = |kmer: String| {
            let other = reverse_complement(&kmer);
            kmer.min(other)
        };
        windows.filter(|kmer| !kmer.contains('N')).map(canonical).collect()
    }

    #[test]
    fn ends_of_lines_are_passed_over_and_other_letters_break() {
        assert_eq!(kmers(3, &["AC\r\ngT"]), ["ACG", "ACG"]);
        assert_eq!(kmers(3, &["ACNGT"]), Vec::<String>::new());
        assert_eq!(kmers(1, &["ACGT"]), ["A", "C", "C", "A"]);
        assert_eq!(kmers(32, &[&"A".repeat(33)]), ["A".repeat(32), "A".repeat(32)]);
        assert_eq!(kmers(32, &[&"T".repeat(32)]), ["A".repeat(32)]);
        assert_eq!(kmers(64, &[&"T".repeat(65)]), ["A".repeat(64), "A".repeat(64)]);
    }

    /// Going on behind the last bases shows what is left.
    #[test]
    fn the_last_bases_are_kept() {
        let mut sequence = b"AAC\r\nG\r\rTt\r".to_vec();
        keep_last(&mut sequence, 4);
        assert_eq!(sequence, b"CGTt");
        let mut broken = b"ACG-T\nA".to_vec();
        keep_last(&mut broken, 4);
        assert_eq!(broken, b"TA");
        keep_last(&mut broken, 0);
        assert_eq!(broken, b"");
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(14),
            ..ProptestConfig::with_cases(500)
        })]

        #[test]
        fn rolling_shows_what_slices_have(
            sequence in "[ACGT]{0,20}N?[ACGT]{0,90}", k in 1_usize..65, cut in 0_usize..110,
        ) {
            let (head, tail) = sequence.split_at(cut.min(sequence.len()));
            prop_assert_eq!(kmers(k, &[head, tail]), plainly(k, &sequence));
        }

        #[test]
        fn a_sequence_and_its_reverse_complement_are_one(sequence in "[ACGTN]{0,90}", k in 1_usize..65) {
            let mut other = kmers(k, &[&reverse_complement(&sequence)]);
            other.reverse();
            prop_assert_eq!(kmers(k, &[&sequence]), other);
        }
    }
}
