//! Sums of decimal numbers that come by columns: integers, and texts of few digits, are added up in 128 bits for as long
//! as they stay together.
//!
//! **Invariant:** 128 bits hold any sum of 2^64 integers of 64.

use super::decimal::Wide;
use crate::columns::{Accumulator, Folding, Items, Lane, Rows, ShortOrOdd, present, resize};
use crate::number::POWERS;
use crate::optional::{MISSING, PRESENT};
use crate::{Plain, Value};

/// The sum of integers: a state of `sum`, or of `isum`.
pub(crate) struct Integers<const WIDE: bool>;

impl<const WIDE: bool> Folding for Integers<WIDE> {
    type Value = i64;
    type Kept = i128;
    const BYTES: usize = if WIDE { Wide::BYTES } else { i128::BYTES };

    fn read(&self, lane: &Lane<'_>, values: &mut Vec<i64>, _refused: &mut Vec<u32>) {
        values.clear();
        values.extend_from_slice(if let Items::I64(values) = lane.items() { values } else { &[] });
    }
    #[inline]
    fn of(&self, value: i64) -> i128 {
        value.into()
    }
    #[inline]
    fn join(&self, kept: i128, value: i64) -> i128 {
        kept.wrapping_add(value.into())
    }
    fn write(&self, kept: i128, state: &mut [u8]) {
        if WIDE { Wide::whole(kept).write(state) } else { kept.write(state) }
    }
}

/// The sum of what texts say, or floating-point numbers: most are short.
pub(super) struct Texts {
    lane: usize,
    /// In units of 10^-9, and 0 for other numbers.
    read: ShortOrOdd<i128, Wide>,
    /// In units of 10^-9; 0 without values.
    sums: Vec<i128>,
    has_values: Vec<bool>,
    /// What groups have besides, as soon as one has.
    odd_sums: Vec<Wide>,
}

impl Texts {
    pub(super) fn new(lane: usize) -> Self {
        let (read, sums, has_values, odd_sums) = Default::default();
        Self { lane, read, sums, has_values, odd_sums }
    }
}

/// Digits behind the point of short numbers, and what such a number has in all: 64 bits hold it.
const DIGITS: u32 = 9;
const BYTES_MAX: usize = 19;

/// The number that a text is, in units of 10^-9, where it is nothing but some digits, perhaps behind a sign, and perhaps
/// a point and some more. Minus zero is not one.
#[inline]
fn short(text: &[u8]) -> Option<i128> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.len() > BYTES_MAX {
        return None;
    }
    let (mut size, mut point) = (0_u64, None);
    for (at, byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            size = 10 * size + u64::from(digit);
        } else if *byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    let whole = point.unwrap_or(digits.len());
    let behind = (digits.len() - whole).saturating_sub(1);
    let is_negative = digits.len() < text.len();
    if whole == 0
        || behind > DIGITS as usize
        || (point.is_some() && behind == 0)
        || (is_negative && size == 0)
    {
        return None;
    }
    let size = i128::from(size) * POWERS[DIGITS as usize - behind].cast_signed();
    Some(if is_negative { -size } else { size })
}

impl Accumulator for Texts {
    fn read(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) {
        let odd = |value: Value<'_>| value.as_exact_number().and_then(Wide::of);
        self.read.read(&rows.lane(self.lane), 0, short, odd, refused);
    }

    fn resize(&mut self, groups: usize) {
        resize(&mut self.sums, groups, 0);
        resize(&mut self.has_values, groups, false);
        let odd = if self.odd_sums.is_empty() { 0 } else { groups };
        resize(&mut self.odd_sums, odd, Wide::default());
    }

    fn add(&mut self, rows: &Rows<'_>, groups: &[u32]) {
        debug_assert_eq!(self.read.short.len(), rows.len(), "the rows that were read are added");
        for (group, value) in present(&rows.lane(self.lane), groups).zip(&self.read.short) {
            let before = self.sums[group];
            let sum = before.checked_add(*value).unwrap_or_else(|| {
                // There is no more room for it here.
                self.odd_sums.resize(self.sums.len(), Wide::default());
                self.odd_sums[group] = self.odd_sums[group].plus(Wide::decimal(before, DIGITS));
                *value
            });
            (self.sums[group], self.has_values[group]) = (sum, true);
        }
        if !self.read.odd.is_empty() {
            self.odd_sums.resize(self.sums.len(), Wide::default());
        }
        for (row, value) in &self.read.odd {
            let sum = &mut self.odd_sums[groups[*row as usize] as usize];
            *sum = sum.plus(*value);
        }
    }

    fn write_state(&self, group: usize, state: &mut Vec<u8>) {
        let start = state.len();
        state.resize(start + 1 + Wide::BYTES, MISSING);
        if self.has_values[group] {
            let odd = self.odd_sums.get(group).copied().unwrap_or_default();
            state[start] = PRESENT;
            Wide::decimal(self.sums[group], DIGITS).plus(odd).write(&mut state[start + 1..]);
        }
    }

    fn memory_bytes(&self) -> usize {
        self.read.memory_bytes()
            + size_of::<i128>() * self.sums.capacity()
            + self.has_values.capacity()
            + size_of::<Wide>() * self.odd_sums.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Number;

    #[test]
    fn short_texts_are_the_numbers_that_they_are() {
        let short_ones = [
            "0",
            "7",
            "-7",
            "00012.50",
            "123456789.123456789",
            "9999999999999999999",
            "-0.000000001",
            "42.0",
        ];
        for text in short_ones {
            let expected = Number::parse_exact(text).and_then(Wide::of).map(|wide| wide.bytes());
            let units = short(text.as_bytes()).map(|units| Wide::decimal(units, DIGITS).bytes());
            assert_eq!(units, expected, "{text}");
            assert!(units.is_some(), "{text}");
        }
        let others = [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "-0",
            "-0.0",
            "+1",
            " 1",
            "1 ",
            "1e3",
            "1.2.3",
            "10000000000000000000",
        ];
        for text in others.into_iter().chain(["0.1234567890", "0000000000000000000000000001", "--1", "1-"]) {
            assert_eq!(short(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_sum_that_128_bits_do_not_hold_is_carried() {
        let mut sums = Texts::new(0);
        sums.resize(2);
        let texts = b"1";
        let lane = || {
            let texts = crate::columns::Texts::new(&[0, 1], texts).expect("a text");
            Lane::new(Items::Bytes(texts), None).expect("a lane")
        };
        let rows = Rows::new(vec![lane()], 1).expect("rows");
        sums.read(&rows, &mut Vec::new());
        sums.sums[1] = i128::MAX;
        sums.add(&rows, &[1]);
        let mut state = Vec::new();
        sums.write_state(1, &mut state);
        let expected = Wide::decimal(i128::MAX, DIGITS).plus(Wide::whole(1));
        assert_eq!(&state[1..], &expected.bytes()[..]);
    }
}
