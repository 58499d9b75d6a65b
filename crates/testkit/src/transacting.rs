//! Transactions beside the model, with what others do meanwhile.
//!
//! **Invariant:** a transaction that was committed has read what the model holds just before its writes; one that was
//! refused has something of others that can be to blame.

use forebay::{Durability, Error, Result};

use crate::check::{View, answer};
use crate::harness::Harness;
use crate::model::Moment;
use crate::seen::{Shown, Time};
use crate::{Act, Change, Expected, Op, Query, Write};

/// A query of a table, and what the transaction had written before.
type Read<'a> = (usize, &'a Query, Vec<Change>);

/// Longer values are cut before more is added to them.
const UPDATED_BYTES_MAX: usize = 100;
/// Values that updates are given of these lengths leave a key without one.
const EMPTY_EVERY: usize = 5;

impl Harness {
    /// Does a transaction. On a conflict it is over.
    pub(crate) fn transact(&mut self, acts: &[Act], durability: Durability) -> Result<()> {
        let (tables, time, begun) = (self.tables().clone(), self.time(), self.model.now().clone());
        let mut transaction = self.db().begin();
        transaction.set_durability(durability);
        let (mut seen, mut written) = (begun.clone(), Vec::new());
        let (mut reads, mut others) = (Vec::new(), Vec::new());
        for act in acts {
            match act {
                Act::Read(table, query) => {
                    let snapshot = transaction.snapshot()?;
                    let view = View { tables: &tables, config: &self.config, snapshot: Some(&snapshot) };
                    let time = Time { now: time.now, highest: self.highest };
                    let shown = Shown::of(&self.config, &seen, *table, time);
                    view.check(*table, &shown, query)?;
                    // Beside what is doubtful nothing is walked.
                    if shown.doubtful.is_empty() || !matches!(query, Query::Walk(_)) {
                        reads.push((*table, query, written.clone()));
                    }
                }
                Act::Write(change) => {
                    let change = std::slice::from_ref(change);
                    let stored = self.stored(change);
                    self.push_all(&tables, &mut transaction, change)?;
                    seen = self.model.changed(seen, &stored);
                    written.extend(stored);
                }
                Act::Clear => {
                    transaction.clear();
                    (seen, written) = (begun.clone(), Vec::new());
                }
                Act::Beside(op) => {
                    if !self.is_refused_beside(op) {
                        others.push(&**op);
                        self.act(op)?;
                    }
                }
            }
        }
        let (is_empty, records) = (transaction.is_empty(), transaction.len() as u64);
        let before = self.model.last_sequence();
        let outcome = transaction.commit();
        let numbered = self.db().last_sequence();
        if numbered > before {
            self.assert_current(&begun, &reads, time);
            self.model.accept(numbered, records, written);
        }
        match outcome {
            Err(Error::Conflict(reason)) => {
                assert!(numbered == before, "what conflicts got the number {numbered}");
                assert!(!is_empty && self.is_disturbed(&reads, &others), "{reason}; but by {others:?}");
                self.conflicts += 1;
                Ok(())
            }
            // Of a table that was dropped meanwhile.
            Err(error) if error.is_not_found() && others.iter().any(|op| replaces_tables(op)) => Ok(()),
            // Of what it holds itself.
            Err(Error::NoSpace(_)) => Ok(()),
            outcome => {
                let sequence = outcome?;
                assert_eq!(sequence, self.model.last_sequence(), "the number of an acknowledged transaction");
                self.model.acknowledge(sequence, durability);
                Ok(())
            }
        }
    }

    /// What was read is what would be read now, each beside what the transaction had written by then.
    fn assert_current(&self, begun: &Moment, reads: &[Read<'_>], time: Time) {
        let time = Time { now: time.now, highest: self.highest };
        for (table, query, written) in reads {
            let answered = |moment: &Moment| {
                let moment = self.model.changed(moment.clone(), written);
                answer(&self.config, *table, &Shown::of(&self.config, &moment, *table, time), query)
            };
            let (then, now) = (answered(begun), answered(self.model.now()));
            let differing = then.iter().zip(&now).find(|(then, now)| then != now);
            assert!(
                then == now,
                "a transaction was committed that has read table {table} as it was: {} answers then, {} now, first \
                 {differing:?}; {query:?}",
                then.len(),
                now.len()
            );
        }
    }

    /// Whether others may be to blame for a conflict.
    fn is_disturbed(&self, reads: &[Read<'_>], others: &[&Op]) -> bool {
        // What expires, or is dropped by a filter, goes whenever a merge comes by.
        let fades = |table: usize| self.config.time_to_live(table).is_some() || self.config.drops(table);
        let is_read = |table: usize| reads.iter().any(|(read, ..)| *read == table);
        let changes = |changes: &[Change]| changes.iter().any(|change| is_read(change.table));
        reads.iter().any(|(table, ..)| fades(*table))
            || others.iter().any(|op| match op {
                Op::Commit(changed, _) => changes(changed),
                Op::Swap(table, ..) | Op::Update(table, ..) | Op::Ingest(table, _) | Op::Life(table, ..) => {
                    is_read(*table)
                }
                // It comes with another order, and goes with the first.
                Op::Turn(..) | Op::Rollback(_) | Op::Renew => true,
                _ => false,
            })
    }

    /// A table that is given another order and again its own may need the room that the transaction holds.
    fn is_refused_beside(&self, op: &Op) -> bool {
        matches!(op, Op::Turn(..)) && self.config.max_space_amplification.iter().any(Option::is_some)
    }

    /// Changes a key by a comparison.
    pub(crate) fn swap(
        &mut self,
        table: usize,
        key: &[u8],
        expected: Expected,
        new: Option<&[u8]>,
    ) -> Result<()> {
        let (Some(plain), Some(old)) = (self.tables().plain(table), self.certain(table, key)) else {
            return Ok(());
        };
        let other = [old.as_deref().unwrap_or_default(), b"~other"].concat();
        let expected = match expected {
            Expected::Own => old.as_deref(),
            Expected::Nothing => None,
            Expected::Other => Some(&other[..]),
        };
        let is_same = old.as_deref() == expected;
        let changes = self.replacement(table, key, new);
        let outcome = plain.compare_and_swap(key, expected, new);
        let is_meant = is_same && (old.is_some() || new.is_some());
        if let Some(is_swapped) = self.replaced(is_meant, changes, outcome)? {
            assert_eq!(is_swapped, is_same, "whether a value was as expected");
        }
        Ok(())
    }

    /// Makes a key's value of the one that it has.
    pub(crate) fn update(&mut self, table: usize, key: &[u8], more: &[u8]) -> Result<()> {
        let (Some(plain), Some(old)) = (self.tables().plain(table), self.certain(table, key)) else {
            return Ok(());
        };
        let change = |old: Option<&[u8]>| {
            let old = old.unwrap_or_default();
            let kept = &old[old.len().saturating_sub(UPDATED_BYTES_MAX)..];
            (!more.len().is_multiple_of(EMPTY_EVERY)).then(|| [kept, more].concat())
        };
        let new = change(old.as_deref());
        let changes = self.replacement(table, key, new.as_deref());
        let outcome = plain.update(key, change);
        if let Some(told) = self.replaced(old.is_some() || new.is_some(), changes, outcome)? {
            assert_eq!(told, new, "the value that an update made");
        }
        Ok(())
    }

    /// The value of a key, where it is certain.
    pub(crate) fn certain(&self, table: usize, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let shown = self.shown(table);
        (!shown.doubtful.contains(key)).then(|| shown.contents.get(key).cloned())
    }

    /// What the model is told if a key is given a value.
    fn replacement(&self, table: usize, key: &[u8], new: Option<&[u8]>) -> Vec<Change> {
        let write = new.map_or(Write::Delete, |new| Write::Put(new.to_vec()));
        self.stored(&[Change { table, key: key.to_vec(), write }])
    }

    /// Tells the model what was written, if anything should be; `None` where that was refused for want of space.
    pub(crate) fn replaced<T>(
        &mut self,
        is_meant: bool,
        changes: Vec<Change>,
        outcome: Result<T>,
    ) -> Result<Option<T>> {
        let numbered = self.db().last_sequence();
        if numbered > self.model.last_sequence() {
            assert!(is_meant, "a write that was not meant");
            self.model.accept(numbered, 1, changes);
        } else {
            assert!(!is_meant || outcome.is_err(), "a write that was not done");
        }
        match outcome {
            Err(Error::NoSpace(_)) => Ok(None),
            outcome => {
                let told = outcome?;
                // What is written without more outlives the process, where there is a log.
                if is_meant && self.config.log {
                    self.model.acknowledge(numbered, Durability::Os);
                }
                Ok(Some(told))
            }
        }
    }
}

/// Whether it may make other tables of those that there were.
fn replaces_tables(op: &Op) -> bool {
    matches!(op, Op::Renew | Op::Rollback(_))
}
