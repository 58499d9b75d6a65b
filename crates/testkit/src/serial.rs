//! Histories of transactions that ran at once, held against doing them one after the other.
//!
//! The engine numbers what is committed, so the order is known, and the check is exact: each transaction is done again on
//! maps, in the order of numbers, and must read there what it has read. What only reads has no number; it must fit
//! somewhere between what was committed when it began and when it ended.
//!
//! **Invariant:** whoever records tells everything that was written to the tables.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::Contents;
use crate::check::borrowed;

/// One thing that a transaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// It found this value of a table's key.
    Get(usize, Vec<u8>, Option<Vec<u8>>),
    /// It found these entries in a range of a table.
    Walk(usize, (Bound<Vec<u8>>, Bound<Vec<u8>>), Vec<(Vec<u8>, Vec<u8>)>),
    /// It gave a key a value, or none.
    Put(usize, Vec<u8>, Option<Vec<u8>>),
    /// It deleted a range.
    Cut(usize, (Bound<Vec<u8>>, Bound<Vec<u8>>)),
    /// It added to a key's number, which it had not read.
    Add(usize, Vec<u8>, u64),
}

/// One transaction that came to an end.
#[derive(Clone, Debug)]
pub struct Done {
    /// The last number when it began.
    pub begun: u64,
    /// Its own number, or where it has none, the last one when it ended.
    pub ended: u64,
    /// Whether it has a number.
    pub is_numbered: bool,
    /// What it did, in order.
    pub acts: Vec<Did>,
}

/// Tables that are done to what transactions did, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serial {
    tables: BTreeMap<usize, Contents>,
    kept: BTreeMap<u64, BTreeMap<usize, Contents>>,
}

impl Serial {
    /// What a table has.
    pub fn table(&self, table: usize) -> Contents {
        self.tables.get(&table).cloned().unwrap_or_default()
    }

    /// Does again what was done, and panics where somebody has read something else. Numbers from which tables were
    /// kept, and those of rollbacks with what they went back to, are told apart.
    pub fn check(&mut self, done: &[Done], kept: &[u64], rollbacks: &[(u64, u64)]) {
        let (mut numbered, readers): (Vec<&Done>, Vec<&Done>) =
            done.iter().partition(|done| done.is_numbered);
        numbered.sort_by_key(|done| done.ended);
        assert!(
            numbered.windows(2).all(|pair| pair[0].ended < pair[1].ended),
            "two transactions have one number"
        );
        let mut ends: Vec<u64> = numbered.iter().map(|done| done.ended).collect();
        ends.extend(kept.iter().copied().chain(rollbacks.iter().map(|(at, _)| *at)));
        ends.push(0);
        ends.sort_unstable();
        ends.dedup();
        let mut fits = vec![false; readers.len()];
        let mut numbered = numbered.into_iter().peekable();
        for (at, &end) in ends.iter().enumerate() {
            while let Some(done) = numbered.next_if(|done| done.ended <= end) {
                assert!(done.begun < done.ended, "it began before it ended");
                if let Some(misread) = self.redo(&done.acts) {
                    panic!(
                        "number {}, begun at {}, has done what it would not do: {misread:?}",
                        done.ended, done.begun
                    );
                }
            }
            if let Some((_, savepoint)) = rollbacks.iter().find(|(number, _)| *number == end) {
                self.tables.clone_from(&self.kept[savepoint]);
            }
            if kept.contains(&end) {
                self.kept.insert(end, self.tables.clone());
            }
            // What is seen from here until the next number.
            let next = ends.get(at + 1).copied().unwrap_or(u64::MAX);
            for (reader, fits) in readers.iter().zip(&mut fits) {
                *fits |=
                    reader.begun < next && end <= reader.ended && self.clone().redo(&reader.acts).is_none();
            }
        }
        let misfit = readers.iter().zip(fits).find(|(_, fits)| !fits);
        assert!(misfit.is_none(), "a reader has seen what never was: {misfit:?}");
    }

    /// Does again what was done. The first read that finds something else.
    fn redo<'a>(&mut self, acts: &'a [Did]) -> Option<&'a Did> {
        acts.iter().find(|act| match act {
            Did::Get(table, key, found) => self.tables.entry(*table).or_default().get(key) != found.as_ref(),
            Did::Walk(table, (low, high), found) => {
                let entries = within(self.tables.entry(*table).or_default(), low, high);
                !entries
                    .iter()
                    .map(|(key, value)| (&**key, &**value))
                    .eq(found.iter().map(|(key, value)| (&**key, &**value)))
            }
            Did::Put(table, key, value) => {
                let table = self.tables.entry(*table).or_default();
                match value {
                    Some(value) => drop(table.insert(key.clone(), value.clone())),
                    None => drop(table.remove(key)),
                }
                false
            }
            Did::Cut(table, (low, high)) => {
                let table = self.tables.entry(*table).or_default();
                for (key, _) in within(table, low, high) {
                    table.remove(&key);
                }
                false
            }
            Did::Add(table, key, by) => {
                let table = self.tables.entry(*table).or_default();
                let number = table.get(key).map_or(0, |bytes| number_of(bytes));
                table.insert(key.clone(), number.wrapping_add(*by).to_le_bytes().to_vec());
                false
            }
        })
    }
}

fn within(table: &Contents, low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bounds = (borrowed(low), borrowed(high));
    let is_within = |key: &[u8]| std::ops::RangeBounds::<&[u8]>::contains(&bounds, &key);
    let entries = table.iter().filter(|(key, _)| is_within(key));
    entries.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn number_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn key(name: &str) -> Vec<u8> {
        name.as_bytes().to_vec()
    }

    fn done(begun: u64, ended: u64, is_numbered: bool, acts: Vec<Did>) -> Done {
        Done { begun, ended, is_numbered, acts }
    }

    fn is_serial(history: &[Done]) -> bool {
        catch_unwind(AssertUnwindSafe(|| Serial::default().check(history, &[], &[]))).is_ok()
    }

    /// The checker itself: it must refuse what is not serialisable.
    #[test]
    fn a_lost_update_a_skew_and_a_reader_of_what_never_was_are_found() {
        let get = |name: &str, value: Option<&str>| Did::Get(0, key(name), value.map(key));
        let put = |name: &str, value: &str| Did::Put(0, key(name), Some(key(value)));
        let first = done(0, 1, true, vec![get("a", None), put("a", "1")]);
        let second = done(1, 2, true, vec![get("a", Some("1")), put("b", "2")]);
        let lost = done(0, 3, true, vec![get("a", None), put("a", "2")]);
        let skewed = done(1, 3, true, vec![get("b", None), put("c", "3")]);
        assert!(is_serial(&[second.clone(), first.clone()]));
        assert!(!is_serial(&[first.clone(), second.clone(), lost]));
        assert!(!is_serial(&[first.clone(), second.clone(), skewed]));
        let reader = |begun, acts| done(begun, 2, false, acts);
        let early = vec![get("a", Some("1")), get("b", None)];
        let never = vec![get("a", None), get("b", Some("2"))];
        assert!(is_serial(&[first.clone(), second.clone(), reader(0, early.clone())]));
        assert!(
            !is_serial(&[first.clone(), second.clone(), reader(2, early)]),
            "it began too late to see that"
        );
        assert!(!is_serial(&[first, second, reader(0, never)]));
    }

    #[test]
    fn a_phantom_is_found_and_rollbacks_are_done_again() {
        let all = || (Bound::Unbounded, Bound::Unbounded);
        let put = |name: &str| Did::Put(0, key(name), Some(Vec::new()));
        let walk =
            |names: &[&str]| Did::Walk(0, all(), names.iter().map(|name| (key(name), Vec::new())).collect());
        let history = [
            done(0, 1, true, vec![walk(&[]), put("a")]),
            done(1, 2, true, vec![walk(&["a"]), put("b")]),
            done(3, 4, true, vec![walk(&["a"]), Did::Cut(0, all()), put("c"), walk(&["c"])]),
        ];
        Serial::default().check(&history, &[1], &[(3, 1)]);
        assert!(!is_serial(&history), "nobody has gone back");
        assert!(!is_serial(&[done(0, 1, true, vec![put("a")]), done(0, 2, true, vec![walk(&[]), put("b")])]));
        let adds = |by| vec![Did::Add(0, key("n"), by)];
        let total = Did::Get(0, key("n"), Some(5_u64.to_le_bytes().to_vec()));
        assert!(is_serial(&[
            done(0, 1, true, adds(2)),
            done(0, 2, true, adds(3)),
            done(2, 2, false, vec![total])
        ]));
    }
}
