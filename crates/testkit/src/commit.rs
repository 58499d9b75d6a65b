//! Writing batches, and telling the model what became of them.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use forebay::{Batch, Durability, Error, Pending, Result};

use crate::groups::stored;
use crate::harness::{Harness, after, until};
use crate::model::TABLES;
use crate::trip::survives;
use crate::{Change, Tables, Write};

/// One of so many lengths of batches is awaited.
const AWAITED_EVERY: usize = 3;

/// What was awaited: under a stepper it is complete.
fn at_once<T>(pending: Pending<T>) -> Result<T> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(pending).poll(&mut context) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("under a stepper nothing is left for later"),
    }
}

impl Harness {
    /// Writes a batch, and tells the model what became of it.
    pub fn commit(&mut self, changes: &[Change], durability: Durability) -> Result<()> {
        let mut batch = Batch::new();
        let mut written = self.stored(changes);
        let is_grouped = self.tables().groups().is_some();
        let (groups, others): (Vec<_>, Vec<_>) =
            changes.iter().cloned().partition(|change| change.table >= TABLES);
        self.push_all(self.tables(), &mut batch, &others)?;
        let mut records = batch.len() as u64;
        let outcome = match changes.last() {
            _ if !groups.is_empty() => {
                if !is_grouped {
                    return Ok(());
                }
                let (changed, outcome) = self.commit_groups(batch, changes, durability)?;
                written = changed;
                records = self.db().last_sequence() - self.model.last_sequence();
                outcome
            }
            Some(Change { table, write: Write::Metadata(bytes), .. }) => {
                records += 1;
                self.tables().aggregator(*table).commit(batch, durability, bytes)
            }
            _ if batch.len() % AWAITED_EVERY == 2 => at_once(self.db().commit_async(batch, durability)),
            _ => self.db().write(&mut batch, durability),
        };
        let numbered = self.db().last_sequence();
        if numbered > self.model.last_sequence() {
            self.model.accept(numbered, records, written);
        }
        let sequence = match outcome {
            Err(Error::NoSpace { .. }) if self.holds_files() => return Ok(()),
            outcome => outcome?,
        };
        assert_eq!(sequence, self.model.last_sequence(), "the number of an acknowledged batch");
        self.model.acknowledge(sequence, durability);
        Ok(())
    }

    /// Adds changes to a batch. One of which an addition has panicked is refused, and nothing of it is written.
    pub(crate) fn push_all(&self, tables: &Tables, batch: &mut Batch, changes: &[Change]) -> Result<()> {
        if survives(|| changes.iter().for_each(|change| tables.push(batch, change))) {
            return Ok(());
        }
        let error =
            self.db().write(batch, Durability::Os).expect_err("a batch of which an addition panicked");
        assert!(matches!(error, Error::Panicked(_) | Error::Poisoned(_)), "{error}");
        Err(error)
    }

    /// Changes with values as they are stored: where they expire, with their expiry.
    pub(crate) fn stored(&self, changes: &[Change]) -> Vec<Change> {
        let now = self.engine_time();
        let store = |change: &Change| {
            let Some(usual) = self.config.usual_expiry(change.table, now) else { return stored(change) };
            let write = match &change.write {
                Write::Put(value) => Write::Put(until(value, usual)),
                Write::PutFor(value, ttl) => Write::Put(until(value, after(now, *ttl))),
                Write::Merge(operand) => Write::Merge(until(operand, usual)),
                _ => return change.clone(),
            };
            Change { write, ..change.clone() }
        };
        changes.iter().map(store).collect()
    }
}
