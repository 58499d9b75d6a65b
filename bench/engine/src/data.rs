//! Keys and values as a function of (seed, record number, version), so that every answer can be checked
//! without keeping what was written.
//!
//! 1. A record number and whether it is meant to be absent make a code. Codes of absent keys are never
//!    written.
//! 2. A key begins with eight bytes that a bijection makes of the code: keys are unique, and a key that is
//!    read gives its record number back.
//! 3. A value is a stream of words from (number, version). It does not compress.
//!
//! **Invariant:** the same seed gives the same bytes on every machine.

use serde::{Deserialize, Serialize};

/// Record numbers are below this, so that a number and a version make one word.
pub(crate) const RECORDS_MAX: u64 = u32::MAX as u64;
/// The first bytes of a key carry its number.
pub(crate) const KEY_BYTES_MIN: usize = 8;
/// The same of keys of hexadecimal digits.
pub(crate) const HEX_BYTES: usize = 16;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const MIX_1: u64 = 0xBF58_476D_1CE4_E5B9;
const MIX_2: u64 = 0x94D0_49BB_1331_11EB;
const UNMIX_1: u64 = 0x96DE_1B17_3F11_9089;
const UNMIX_2: u64 = 0x3196_42B2_D24D_8EC3;

/// In which order keys follow each other as records are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyOrder {
    /// In none that could be seen.
    #[default]
    Random,
    /// Ascending.
    Ascending,
    /// In none that could be seen, and of hexadecimal digits: for what takes lines of text.
    Hex,
}

/// Which key of a record number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The one that is written.
    Present,
    /// One beside it that never is.
    Absent,
}

/// Makes keys and values.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
    order: KeyOrder,
    key_seed: u64,
    value_seed: u64,
}

impl Records {
    pub(crate) fn new(seed: u64, key_bytes: usize, value_bytes: usize, order: KeyOrder) -> Self {
        Self { key_bytes, value_bytes, order, key_seed: mix(seed), value_seed: mix(!seed) }
    }

    pub(crate) fn record_bytes(&self) -> usize {
        self.key_bytes + self.value_bytes
    }

    /// The first eight bytes of a key, most significant first: keys are ordered as these are.
    #[inline]
    pub(crate) fn word(&self, number: u64, presence: Presence) -> u64 {
        let code = number << 1 | u64::from(presence == Presence::Absent);
        match self.order {
            KeyOrder::Random | KeyOrder::Hex => mix(code ^ self.key_seed),
            KeyOrder::Ascending => code,
        }
    }

    /// The record number whose written key begins so.
    pub(crate) fn number(&self, word: u64) -> Option<u64> {
        let code = match self.order {
            KeyOrder::Random | KeyOrder::Hex => unmix(word) ^ self.key_seed,
            KeyOrder::Ascending => word,
        };
        (code & 1 == 0 && code >> 1 <= RECORDS_MAX).then_some(code >> 1)
    }

    /// The record number whose written key this is.
    pub(crate) fn number_of(&self, key: &[u8]) -> Option<u64> {
        let word = match self.order {
            KeyOrder::Hex => {
                let digits = std::str::from_utf8(key.first_chunk::<HEX_BYTES>()?).ok()?;
                u64::from_str_radix(digits, 16).ok()?
            }
            _ => u64::from_be_bytes(*key.first_chunk()?),
        };
        let number = self.number(word)?;
        // Compared where no memory need be asked for.
        let mut short = [0; 64];
        let is_key = match short.get_mut(..self.key_bytes) {
            Some(written) => {
                self.fill_key(number, Presence::Present, written);
                written == key
            }
            None => self.key(number, Presence::Present) == key,
        };
        is_key.then_some(number)
    }

    /// Writes the key over `key`, which has its length.
    #[inline]
    pub(crate) fn fill_key(&self, number: u64, presence: Presence, key: &mut [u8]) {
        let word = self.word(number, presence);
        if self.order == KeyOrder::Hex {
            return fill_hex(word, key);
        }
        let (first, rest) = key.split_at_mut(KEY_BYTES_MIN);
        first.copy_from_slice(&word.to_be_bytes());
        fill(word, rest);
    }

    /// Writes the value over `value`, which has its length.
    #[inline]
    pub(crate) fn fill_value(&self, number: u64, version: u32, value: &mut [u8]) {
        fill(self.value_seed ^ (number << 32 | u64::from(version)), value);
    }

    /// Writes both, back to back.
    #[inline]
    pub(crate) fn fill_record(&self, number: u64, version: u32, record: &mut [u8]) {
        let (key, value) = record.split_at_mut(self.key_bytes);
        self.fill_key(number, Presence::Present, key);
        self.fill_value(number, version, value);
    }

    pub(crate) fn key(&self, number: u64, presence: Presence) -> Vec<u8> {
        let mut key = vec![0; self.key_bytes];
        self.fill_key(number, presence, &mut key);
        key
    }
}

/// Writes the digits of a word, and zeros behind them.
fn fill_hex(word: u64, key: &mut [u8]) {
    let digits = (0..HEX_BYTES).map(|digit| b"0123456789abcdef"[(word >> (60 - 4 * digit)) as usize & 15]);
    key.iter_mut().zip(digits.chain(std::iter::repeat(b'0'))).for_each(|(byte, digit)| *byte = digit);
}

/// Fills `bytes` with the words that follow from `start`.
#[inline]
fn fill(start: u64, bytes: &mut [u8]) {
    let mut state = start;
    let mut words = bytes.chunks_exact_mut(8);
    for word in &mut words {
        state = state.wrapping_add(GOLDEN);
        word.copy_from_slice(&mix(state).to_le_bytes());
    }
    let rest = words.into_remainder();
    if !rest.is_empty() {
        let last = mix(state.wrapping_add(GOLDEN)).to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// The finaliser of SplitMix64, a bijection.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(MIX_1);
    z = (z ^ (z >> 27)).wrapping_mul(MIX_2);
    z ^ (z >> 31)
}

/// Its inverse.
fn unmix(mut z: u64) -> u64 {
    z = (z ^ (z >> 31) ^ (z >> 62)).wrapping_mul(UNMIX_2);
    z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(UNMIX_1);
    z ^ (z >> 30) ^ (z >> 60)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_unique_and_give_their_number_back() {
        for order in [KeyOrder::Random, KeyOrder::Ascending, KeyOrder::Hex] {
            let records = Records::new(7, 16, 8, order);
            let mut seen = HashSet::new();
            for number in (0..20_000).chain(RECORDS_MAX - 100..=RECORDS_MAX) {
                let word = records.word(number, Presence::Present);
                let key = records.key(number, Presence::Present);
                match order {
                    KeyOrder::Hex => assert_eq!(key, format!("{word:016x}").into_bytes()),
                    _ => assert_eq!(key[..8], word.to_be_bytes()),
                }
                assert_eq!(records.number_of(&key), Some(number));
                assert_eq!(records.number_of(&records.key(number, Presence::Absent)), None);
                assert_eq!(records.number(word), Some(number));
                assert!(seen.insert(key) && seen.insert(records.key(number, Presence::Absent)));
                assert_eq!(records.number(records.word(number, Presence::Absent)), None);
            }
        }
    }

    #[test]
    fn values_differ_by_number_version_and_seed() {
        let mut seen = HashSet::new();
        for seed in 0..3 {
            let records = Records::new(seed, 8, 13, KeyOrder::Random);
            for number in 0..100 {
                for version in 0..5 {
                    let mut value = [0; 13];
                    records.fill_value(number, version, &mut value);
                    assert!(seen.insert(value));
                }
            }
        }
    }

    #[test]
    fn the_bytes_of_a_seed_never_change() {
        let mut record = [0; 24];
        Records::new(1, 8, 16, KeyOrder::Random).fill_record(5, 2, &mut record);
        let text: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "05a11e90228919ec3b66fffa8d3454214921320dfabd571e");
    }
}
