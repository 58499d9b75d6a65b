//! K-mers: every K bases that follow each other, two bits each, and canonical: of a k-mer and its reverse
//! complement the smaller one stands for both.
//!
//! **Invariant:** a sequence and its reverse complement show the same canonical k-mers, equally often.
//!
//! Bases are `ACGT` in either case. Anything else breaks a sequence, but for the end of a line.

use serde::{Deserialize, Serialize};

/// The most bases of a k-mer.
pub(super) const BASES_MAX: usize = 32;
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

/// Bytes of the key of a k-mer of so many bases.
pub(super) fn key_bytes(k: usize) -> usize {
    k.div_ceil(4)
}

/// The last K bases, forwards and as their reverse complement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Roller {
    k: usize,
    forward: u64,
    reverse: u64,
    bases: usize,
}

impl Roller {
    pub(super) fn new(k: usize) -> Self {
        Self { k, forward: 0, reverse: 0, bases: 0 }
    }

    /// Takes the next bytes of a sequence, and shows every canonical k-mer that ends in them.
    #[inline]
    pub(super) fn feed<E>(
        &mut self,
        sequence: &[u8],
        mut show: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mask = u64::MAX >> (64 - 2 * self.k);
        let top = 2 * (self.k - 1);
        for byte in sequence {
            let code = CODES[usize::from(*byte)];
            if code >= BREAK {
                if code == BREAK {
                    self.bases = 0;
                }
                continue;
            }
            let code = u64::from(code);
            self.forward = (self.forward << 2 | code) & mask;
            self.reverse = self.reverse >> 2 | (3 - code) << top;
            self.bases += 1;
            if self.bases >= self.k {
                show(self.forward.min(self.reverse))?;
            }
        }
        Ok(())
    }

    /// What comes is another sequence.
    pub(super) fn clear(&mut self) {
        self.bases = 0;
    }
}

/// Appends the letters of a key.
pub(super) fn letters(k: usize, key: &[u8], out: &mut Vec<u8>) {
    let word = key.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
    out.extend((0..k).rev().map(|base| LETTERS[(word >> (2 * base) & 3) as usize]));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn kmers(k: usize, parts: &[&str]) -> Vec<String> {
        let (mut roller, mut seen) = (Roller::new(k), Vec::new());
        for part in parts {
            let shown = roller.feed(part.as_bytes(), |kmer| {
                let mut text = Vec::new();
                letters(k, &kmer.to_be_bytes()[8 - key_bytes(k)..], &mut text);
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
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(14),
            ..ProptestConfig::with_cases(500)
        })]

        #[test]
        fn rolling_shows_what_slices_have(
            sequence in "[ACGT]{0,20}N?[ACGT]{0,70}", k in 1_usize..33, cut in 0_usize..90,
        ) {
            let (head, tail) = sequence.split_at(cut.min(sequence.len()));
            prop_assert_eq!(kmers(k, &[head, tail]), plainly(k, &sequence));
        }

        #[test]
        fn a_sequence_and_its_reverse_complement_are_one(sequence in "[ACGTN]{0,60}", k in 1_usize..33) {
            let mut other = kmers(k, &[&reverse_complement(&sequence)]);
            other.reverse();
            prop_assert_eq!(kmers(k, &[&sequence]), other);
        }
    }
}
