//! What a scan has to find: all keys in their order, by their first eight bytes, which no two of them share.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::Failure;
use crate::answers::{self, Expected};
use crate::data::{Presence, Records};
use crate::oracle::Oracle;

/// See the module.
#[derive(Debug)]
pub(super) struct ScanIndex {
    loaded: Vec<u64>,
    inserted: BTreeSet<u64>,
}

impl ScanIndex {
    pub(super) fn new(records: &Records, numbers: Range<u64>) -> Self {
        let mut loaded: Vec<u64> = numbers.map(|number| records.word(number, Presence::Present)).collect();
        loaded.sort_unstable();
        Self { loaded, inserted: BTreeSet::new() }
    }

    pub(super) fn insert(&mut self, records: &Records, number: u64) {
        self.inserted.insert(records.word(number, Presence::Present));
    }

    /// The first `limit` words from `from` on.
    fn from(&self, from: u64, limit: usize) -> impl Iterator<Item = u64> {
        let first = self.loaded.partition_point(|word| *word < from);
        let mut loaded = self.loaded[first..].iter().copied().peekable();
        let mut inserted = self.inserted.range(from..).copied().peekable();
        std::iter::from_fn(move || match (loaded.peek(), inserted.peek()) {
            (Some(one), Some(other)) if other < one => inserted.next(),
            (None, _) => inserted.next(),
            _ => loaded.next(),
        })
        .take(limit)
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
        let mut found = entries.chunks_exact(records.record_bytes());
        let mut scratch = Vec::new();
        for word in self.from(records.word(from, Presence::Present), limit) {
            let number = records.number(word).unwrap_or_default();
            let expected = Expected::Version { number, version: oracle.version(number) };
            let entry = found.next().map(|entry| entry.split_at(records.key_bytes));
            let value = entry
                .filter(|(key, _)| *key == &records.key(number, Presence::Present)[..])
                .map(|(_, value)| value);
            answers::check(records, expected, value, &mut scratch)?;
        }
        match (found.next(), found.remainder()) {
            (None, []) => Ok(()),
            _ => Err(format!("wrong answer: a scan of at most {limit} gave more than there is").into()),
        }
    }
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
}
