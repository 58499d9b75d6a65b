//! What a scan has to find: keys in their order, by their first eight bytes, which no two of them share.
//!
//! Every entry that a scan gives is checked: that its key was written, that it comes behind the one before, its
//! version. For what a scan leaves out the keys that are there have to be kept, in the memory that the engine's share
//! is measured in. So they are all kept as long as they are few; of more, every second or every tenth is, drawn by a
//! hash. A scan that leaves out what it should not is then found by the first range that has one of those.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::Failure;
use crate::answers::{self, Expected};
use crate::data::{Presence, Records};
use crate::oracle::Oracle;

/// About how many keys are kept: 8 MiB.
const WORDS_MAX: u64 = 1 << 20;
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// See the module.
#[derive(Debug)]
pub(super) struct ScanIndex {
    /// One word in this many is kept.
    every: u64,
    loaded: Vec<u64>,
    inserted: BTreeSet<u64>,
}

impl ScanIndex {
    pub(super) fn new(records: &Records, numbers: Range<u64>) -> Self {
        Self::with_words(records, numbers, WORDS_MAX)
    }

    fn with_words(records: &Records, numbers: Range<u64>, words_max: u64) -> Self {
        let live = numbers.end - numbers.start;
        let every = live.div_ceil(words_max).max(1);
        // Asked for at once: growing would hold it twice.
        let mut loaded = Vec::with_capacity((live / every + live / every / 8) as usize);
        let words = numbers.map(|number| records.word(number, Presence::Present));
        loaded.extend(words.filter(|word| keeps(every, *word)));
        loaded.sort_unstable();
        Self { every, loaded, inserted: BTreeSet::new() }
    }

    pub(super) fn insert(&mut self, records: &Records, number: u64) {
        let word = records.word(number, Presence::Present);
        if keeps(self.every, word) {
            self.inserted.insert(word);
        }
    }

    /// The words that are kept, from `from` on.
    fn from(&self, from: u64) -> impl Iterator<Item = u64> {
        let first = self.loaded.partition_point(|word| *word < from);
        let mut loaded = self.loaded[first..].iter().copied().peekable();
        let mut inserted = self.inserted.range(from..).copied().peekable();
        std::iter::from_fn(move || match (loaded.peek(), inserted.peek()) {
            (Some(one), Some(other)) if other < one => inserted.next(),
            (None, _) => inserted.next(),
            _ => loaded.next(),
        })
    }

    /// Compares the entries that a scan from the record's key on gave.
    pub(super) fn check(
        &self,
        records: &Records,
        oracle: &Oracle,
        from: u64,
        limit: usize,
        entries: &[u8],
    ) -> Result<(), Failure> {
        let mut scratch = Vec::new();
        let mut check = |word: u64, found: Option<&[u8]>| {
            let number = records.number(word).unwrap_or_default();
            let expected = Expected::Version { number, version: oracle.version(number) };
            answers::check(records, expected, found, &mut scratch)
        };
        let first = records.word(from, Presence::Present);
        let is_kept = |word| word == first || keeps(self.every, word);
        let mut kept = std::iter::once(first).chain(self.from(first.saturating_add(1))).peekable();
        let (mut next, mut count) = (first, 0);
        let found = entries.chunks_exact(records.record_bytes());
        if !found.remainder().is_empty() {
            return Err("wrong answer: a scan gave entries of other lengths".into());
        }
        for (key, value) in found.map(|entry| entry.split_at(records.key_bytes)) {
            let number = records.number_of(key).filter(|number| oracle.numbers().contains(number));
            let word = number.map(|number| records.word(number, Presence::Present)).unwrap_or_default();
            // What is kept and comes before this should have been here.
            if let Some(missed) = kept.next_if(|kept| number.is_none() || *kept < word) {
                check(missed, None)?;
            }
            if number.is_none() || word < next || (is_kept(word) && kept.next() != Some(word)) {
                return Err(format!("wrong answer: a scan gave {key:02x?}, where it is not").into());
            }
            check(word, Some(value))?;
            (next, count) = (word.saturating_add(1), count + 1);
        }
        match count < limit {
            // It ended, so there must be no more.
            true => kept.next().map_or(Ok(()), |missed| check(missed, None)),
            false if count > limit => {
                Err(format!("wrong answer: a scan of at most {limit} gave more than there is").into())
            }
            false => Ok(()),
        }
    }
}

/// Whether the word is one of those that are kept.
fn keeps(every: u64, word: u64) -> bool {
    every == 1 || (word.wrapping_mul(GOLDEN) >> 32).is_multiple_of(every)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::KeyOrder;

    #[test]
    fn scans_are_held_against_all_keys() {
        let records = Records::new(3, 16, 8, KeyOrder::Random);
        let mut oracle = Oracle::default();
        oracle.written_to(100);
        let mut index = ScanIndex::new(&records, 0..100);
        oracle.written_to(110);
        (100..110).for_each(|number| index.insert(&records, number));
        let mut all: Vec<Vec<u8>> = (0..110)
            .map(|number| {
                let mut record = vec![0; 24];
                records.fill_record(number, 0, &mut record);
                record
            })
            .collect();
        all.sort();
        let from = records.number(u64::from_be_bytes(all[30][..8].try_into().unwrap())).unwrap();
        let check = |entries: &[Vec<u8>], limit| {
            index.check(&records, &oracle, from, limit, &entries.concat()).map_err(|error| error.to_string())
        };
        assert_eq!(check(&all[30..50], 20), Ok(()));
        assert_eq!(check(&all[30..], 100), Ok(()));
        // One too few, one left out, one too many, a value of another key.
        assert!(check(&all[30..49], 20).unwrap_err().contains("found nothing"));
        let mut wrong = all[30..51].to_vec();
        wrong.remove(7);
        assert!(check(&wrong, 20).unwrap_err().contains("wrong answer"));
        assert!(check(&all[30..51], 20).unwrap_err().contains("more than there is"));
        let mut wrong = all[30..50].to_vec();
        wrong[5][20] ^= 1;
        assert!(check(&wrong, 20).unwrap_err().contains("expected"));
    }

    #[test]
    fn of_many_keys_a_part_is_kept_and_what_it_holds_is_missed() {
        let records = Records::new(3, 16, 8, KeyOrder::Random);
        let mut oracle = Oracle::default();
        oracle.written_to(1000);
        let index = ScanIndex::with_words(&records, 0..1000, 300);
        assert_eq!(index.every, 4);
        assert!((200..300).contains(&index.loaded.len()), "{}", index.loaded.len());
        let mut all: Vec<u64> = (0..1000).collect();
        all.sort_by_key(|number| records.word(*number, Presence::Present));
        let check = |numbers: &[u64], limit| {
            let mut entries = vec![0; numbers.len() * 24];
            for (entry, number) in entries.chunks_exact_mut(24).zip(numbers) {
                records.fill_record(*number, 0, entry);
            }
            index.check(&records, &oracle, all[30], limit, &entries)
        };
        check(&all[30..80], 50).unwrap();
        check(&all[30..], 2000).unwrap();
        // One left out: found where it is one of those that are kept, and where the scan ends too early.
        let is_missed = |left_out: usize| {
            let mut numbers = all[30..81].to_vec();
            numbers.remove(left_out);
            check(&numbers, 50).is_err()
        };
        assert!(is_missed(0), "the first is known to be there");
        let missed = (1..49).filter(|left_out| is_missed(*left_out)).count();
        let kept = (31..79).filter(|at| keeps(4, records.word(all[*at], Presence::Present))).count();
        assert_eq!(missed, kept);
        assert!(kept > 5 && check(&all[30..600], 2000).is_err());
        // One twice, two that changed places, one that nobody wrote.
        for wrong in [vec![all[30], all[30]], vec![all[31], all[30]], vec![all[30], 1000]] {
            assert!(check(&wrong, 2).is_err(), "{wrong:?}");
        }
    }
}
