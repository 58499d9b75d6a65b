//! The feed of changes, held against what was accepted.

use std::ops::Bound;

use forebay::{Error, Operation, Result};

use crate::config::ASIDE;
use crate::harness::Harness;
use crate::{Accepted, Change, Model, Write, name_of};

impl Harness {
    /// The feed of changes has the batches that were accepted, each whole and in order, up to the last; all since the
    /// last rollback, where all of the log is kept. Whoever asks from before that is told of it.
    pub(crate) fn check_changes(&self) -> Result<()> {
        match self.misfed(&self.model)? {
            Some(misfed) => panic!("{misfed}"),
            None => Ok(()),
        }
    }

    /// What the feed of changes tells otherwise than a model.
    pub(crate) fn misfed(&self, model: &Model) -> Result<Option<String>> {
        let keeps_all = self.config.keep_changes_bytes == u64::MAX && !self.is_copy();
        let (history, restored) = (model.history(), model.restored());
        for since in
            [1, restored.saturating_sub(1)].into_iter().filter(|&since| 0 < since && since < restored)
        {
            match self.db().changes(since).err() {
                Some(Error::ChangesGone { rolled_back: Some(told), .. }) if told == restored => {}
                other => {
                    return Ok(Some(format!("changes after {since}, rolled back at {restored}: {other:?}")));
                }
            }
        }
        let since = if keeps_all { model.last_sequence().min(1).max(restored) } else { 0 };
        let mut fed = model.as_accepted(self.db().changes(since)?.collect::<Result<Vec<_>>>()?);
        if self.unknown_max > 0 {
            // What opening has just written is not known yet.
            fed.retain(|batch| batch.last_sequence <= model.last_sequence());
        }
        let expected = history.iter().filter(|batch| batch.last_sequence > since).count();
        if fed.len() > history.len() || keeps_all && fed.len() != expected {
            return Ok(Some(format!("{} of {expected} batches are fed", fed.len())));
        }
        let known = &history[history.len() - fed.len()..];
        let differ = |(fed, known): (&forebay::ChangeBatch, &Accepted)| {
            let told: Vec<_> = fed.changes.iter().filter_map(|change| self.told(change)).collect();
            let wanted = self.wanted(model, known);
            let is_same = fed.last_sequence == known.last_sequence && told == wanted;
            (!is_same)
                .then(|| format!("a batch is fed as {fed:?}; wanted {} {wanted:?}", known.last_sequence))
        };
        Ok(fed.iter().zip(known).find_map(differ))
    }

    fn is_copy(&self) -> bool {
        self.dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("copy"))
    }

    /// What the feed tells of a change, unless it is of states, which a batch merges by itself.
    fn told(&self, change: &forebay::Change) -> Option<(usize, Write, Vec<u8>)> {
        let table = (0..self.config.tables()).find(|&table| *change.table == *name_of(table))?;
        if self.config.merging[table].has_states() {
            return None;
        }
        Some(match &change.operation {
            Operation::Put { key, value, expiry_milliseconds } => {
                (table, Write::Put(self.as_stored(table, value, *expiry_milliseconds)), key.clone())
            }
            Operation::Delete { key } => (table, Write::Delete, key.clone()),
            Operation::Merge { key, operand, expiry_milliseconds } => {
                (table, Write::Merge(self.as_stored(table, operand, *expiry_milliseconds)), key.clone())
            }
            Operation::DeleteRange { low, high } => {
                let high = high.clone().map_or(Bound::Unbounded, Bound::Excluded);
                (table, Write::DeleteRange(Bound::Included(low.clone()), high), Vec::new())
            }
            // There are no others.
            _ => return None,
        })
    }

    /// A value with its expiry behind it, where those of the table have one.
    fn as_stored(&self, table: usize, value: &[u8], expiry_milliseconds: Option<u64>) -> Vec<u8> {
        match self.config.time_to_live(table) {
            Some(_) => [value, &expiry_milliseconds.unwrap_or(u64::MAX).to_le_bytes()].concat(),
            None => value.to_vec(),
        }
    }

    fn wanted(&self, model: &Model, known: &Accepted) -> Vec<(usize, Write, Vec<u8>)> {
        let is_told =
            |change: &&Change| change.table <= ASIDE && !self.config.merging[change.table].has_states();
        let told = model.told(known).into_iter().filter(|change| is_told(&change));
        told.filter_map(|Change { table, key, write }| match write.is_of_range() {
            true => Some((table, half_open(&write)?, Vec::new())),
            false => Some((table, write, key)),
        })
        .collect()
    }
}

/// A deletion of a range as it is told, by its first key and the one that it ends before. One without a key between them
/// is not told.
fn half_open(write: &Write) -> Option<Write> {
    let after = |key: &[u8]| [key, &[0]].concat();
    let (low, high) = match write {
        Write::DeleteRange(low, high) => {
            let low = match low {
                Bound::Included(key) => key.clone(),
                Bound::Excluded(key) => after(key),
                Bound::Unbounded => Vec::new(),
            };
            let high = match high {
                Bound::Included(key) => Some(after(key)),
                Bound::Excluded(key) => Some(key.clone()),
                Bound::Unbounded => None,
            };
            (low, high)
        }
        Write::DeletePrefix(prefix) => {
            let last = prefix.iter().rposition(|&byte| byte < 0xff);
            let high = last.map(|last| [&prefix[..last], &[prefix[last] + 1]].concat());
            (prefix.clone(), high)
        }
        _ => return None,
    };
    let is_empty = high.as_ref().is_some_and(|high| *high <= low);
    (!is_empty)
        .then(|| Write::DeleteRange(Bound::Included(low), high.map_or(Bound::Unbounded, Bound::Excluded)))
}
