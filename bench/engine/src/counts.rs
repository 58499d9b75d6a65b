//! What the engine has to hold where values are counts: a number for each key, in four bytes.

use crate::Failure;
use crate::answers::WrongAnswer;
use crate::data::{Presence, Records};

/// Length of a count as a value.
pub(crate) const COUNT_BYTES: usize = 8;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// By record number, from zero; those that are missing are 0.
    counts: Vec<u32>,
    keys: u64,
}

impl Counts {
    /// How many keys were added to.
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// Makes room for this many keys.
    pub(crate) fn reserve(&mut self, keys: u64) {
        self.counts.resize(self.counts.len().max(keys as usize), 0);
    }

    /// One was added to a key that there is room for.
    #[inline]
    pub(crate) fn add(&mut self, number: u64) {
        let count = &mut self.counts[number as usize];
        self.keys += u64::from(*count == 0);
        *count += 1;
    }

    /// Compares an answer with what the key has to have.
    pub(crate) fn check(&self, records: &Records, number: u64, found: Option<&[u8]>) -> Result<(), Failure> {
        let count = self.counts.get(number as usize).copied().unwrap_or(0);
        let expected = (count > 0).then(|| u64::from(count).to_le_bytes());
        let expected = expected.as_ref().map(<[u8; COUNT_BYTES]>::as_slice);
        if found == expected {
            return Ok(());
        }
        Err(Box::new(WrongAnswer::new(&records.key(number, Presence::Present), expected, found)))
    }

    /// Compares all that there is with all that has to be there.
    pub(crate) fn checking<'a>(&'a self, records: &'a Records) -> Checking<'a> {
        Checking { counts: self, records, seen: vec![0; self.counts.len().div_ceil(64)], keys: 0 }
    }
}

/// A comparison of everything.
#[derive(Debug)]
pub(crate) struct Checking<'a> {
    counts: &'a Counts,
    records: &'a Records,
    /// A bit a key.
    seen: Vec<u64>,
    keys: u64,
}

impl Checking<'_> {
    /// The next entry.
    pub(crate) fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let Some(number) = self.records.number_of(key).filter(|&number| self.room(number)) else {
            return Err(Box::new(WrongAnswer::new(key, None, Some(value))));
        };
        self.counts.check(self.records, number, Some(value))?;
        let (word, bit) = (&mut self.seen[number as usize / 64], 1 << (number % 64));
        if *word & bit != 0 {
            return Err(format!("wrong answer: record {number} was shown twice").into());
        }
        *word |= bit;
        self.keys += 1;
        Ok(())
    }

    fn room(&self, number: u64) -> bool {
        number < self.counts.counts.len() as u64
    }

    /// That was all: says how many there were.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        if self.keys == self.counts.keys {
            return Ok(self.keys);
        }
        Err(format!("wrong answer: {} keys were shown, and there are {}", self.keys, self.counts.keys).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::KeyOrder;

    #[test]
    fn counts_are_held_against_answers() {
        let records = Records::new(1, 16, 8, KeyOrder::Random);
        let mut counts = Counts::default();
        counts.reserve(10);
        [3, 4, 3].into_iter().for_each(|number| counts.add(number));
        assert_eq!(counts.keys(), 2);
        let (one, two) = (1u64.to_le_bytes(), 2u64.to_le_bytes());
        assert!(counts.check(&records, 3, Some(&two)).is_ok() && counts.check(&records, 5, None).is_ok());
        assert!(counts.check(&records, 3, Some(&one)).is_err() && counts.check(&records, 4, None).is_err());
        let key = |number| records.key(number, Presence::Present);
        let outcome = |entries: &[(u64, [u8; 8])]| {
            let mut checking = counts.checking(&records);
            entries.iter().try_for_each(|(number, value)| checking.entry(&key(*number), value))?;
            checking.finish()
        };
        assert_eq!(outcome(&[(4, one), (3, two)]).unwrap(), 2);
        for wrong in [&[(3, two)][..], &[(3, two), (3, two)], &[(4, two), (3, two)], &[(3, two), (11, one)]] {
            assert!(outcome(wrong).unwrap_err().to_string().contains("wrong answer"), "{wrong:?}");
        }
    }
}
