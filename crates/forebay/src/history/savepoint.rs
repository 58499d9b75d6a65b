//! Savepoints: all tables as they were at a moment, kept in the manifest under a name. One holds its files as tables
//! hold theirs, so nothing that it needs is removed, and costs nothing else.
//!
//! **Invariant:** a savepoint has all records up to its sequence number, and none of a later one. Buffers are flushed
//! in order, each into all tables at once, so what lists hold is such a beginning of history whenever no range has
//! been cut out of them that a buffer deletes which is still to be flushed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::yield_point;
use forebay_layouts::DataFile;
use forebay_store::WriteBuffer;
use forebay_store::manifest::Edit;
use serde::{Deserialize, Serialize};

use crate::context::refuse_guests;
use crate::history::History;
use crate::versions::{State, View, excess, longest};

/// A savepoint, and what it costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavepointStats {
    /// Its name.
    pub name: String,
    /// The number of the last record that is in it.
    pub sequence: u64,
    /// When it was taken, in milliseconds since 1970.
    pub taken_at_milliseconds: u64,
    /// How many tables it has.
    pub tables: usize,
    /// Bytes of files that it needs and tables do not.
    pub held_bytes: u64,
    /// Bytes of those that no other savepoint needs: what goes when it goes, unless a snapshot sees it.
    pub own_bytes: u64,
}

impl fmt::Display for SavepointStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sequence, tables, held_bytes, own_bytes, .. } = self;
        let tables = if *tables == 1 { "1 table".into() } else { format!("{tables} tables") };
        write!(
            f,
            "{name}: {tables} up to record {sequence}; holds {held_bytes} bytes, {own_bytes} of them alone"
        )
    }
}

impl History {
    /// Takes a savepoint. Returns the number of its last record.
    pub(crate) fn savepoint(&self, name: &str) -> Result<u64> {
        self.context.log()?;
        self.versions.lock().is_free(name)?;
        // What comes in beside the log would be in it, and what was written before that, since the flush, would not.
        let _one_at_a_time = self.versions.bringing_in.lock();
        // Until it is taken, no table takes records into memory that no file has.
        let _draining = self.background.flush_to_files()?;
        yield_point("savepoint is flushed");
        {
            let mut version_set = self.versions.lock();
            let state = self.versions.state();
            let next = state.sealed.last();
            if next.is_none_or(|next| next.range_deletes(usize::MAX).is_empty()) {
                return version_set.keep(name, &state);
            }
            // Lists may have lost a range already that the next buffer deletes. Once that is flushed they have all of
            // it.
            version_set.want_savepoint(name)?;
        }
        let is_taken = || self.versions.is_taken(name);
        let waited = self.context.wait_for(|| self.writer.flush_trouble(), is_taken);
        // Held by whoever is taking it just now.
        let taken = self.versions.lock().end_want(name);
        answer(waited, taken)
    }

    pub(crate) fn drop_savepoint(&self, name: &str) -> Result<()> {
        refuse_guests()?;
        let mut version_set = self.versions.lock();
        let savepoint = Arc::clone(version_set.savepoint(name)?);
        version_set.append(&Edit::DropSavepoint(name.to_string()))?;
        let gone = version_set.savepoints.remove(name);
        debug_assert!(gone.is_some_and(|gone| Arc::ptr_eq(&gone, &savepoint)), "what was found goes");
        version_set.refer(savepoint.files().map(|file| (file, -1)).collect());
        version_set.weigh_savepoints();
        drop(version_set);
        self.context.env.jobs.wake();
        Ok(())
    }

    /// The database as it was: tables, and nothing in buffers; and when that was, in milliseconds since 1970.
    pub(crate) fn view_savepoint(&self, name: &str) -> Result<(View, u64)> {
        refuse_guests()?;
        let savepoint = Arc::clone(self.versions.lock().savepoint(name)?);
        let active = WriteBuffer::never_filled();
        let (tables, frozen) = (savepoint.tables.clone(), BTreeSet::new());
        let state = State { active, sealed: Vec::new(), tables, frozen, is_frozen: false };
        Ok((View::new(Arc::new(state), 0), savepoint.taken_at_milliseconds))
    }

    /// All of them, oldest first.
    pub(crate) fn savepoints(&self) -> Vec<SavepointStats> {
        let (savepoints, state) = {
            let version_set = self.versions.lock();
            (version_set.savepoints.clone(), self.versions.state())
        };
        if savepoints.is_empty() {
            return Vec::new();
        }
        let live = needed(state.files());
        let all = savepoints.iter().map(|(name, savepoint)| (name, savepoint, needed(savepoint.files())));
        let all: Vec<_> = all.collect();
        let stats = all.iter().map(|(name, savepoint, needs)| {
            let others = all.iter().filter(|(other, ..)| other != name).map(|(.., needs)| needs.clone());
            SavepointStats {
                name: String::clone(name),
                sequence: savepoint.sequence,
                taken_at_milliseconds: savepoint.taken_at_milliseconds,
                tables: savepoint.tables.values().filter(|table| !table.is_hidden()).count(),
                held_bytes: excess(needs, &live),
                own_bytes: excess(needs, &longest(others.chain([live.clone()]))),
            }
        });
        let mut stats: Vec<_> = stats.collect();
        debug_assert!(
            stats.iter().all(|savepoint| savepoint.own_bytes <= savepoint.held_bytes),
            "what goes with a savepoint is held by it"
        );
        stats.sort_by_key(|savepoint| (savepoint.sequence, savepoint.taken_at_milliseconds));
        stats
    }

    /// Bytes of lists and trees that are there for savepoints only. All value files are counted elsewhere.
    pub(crate) fn bytes_kept(&self) -> u64 {
        let (savepoints, state) = {
            let version_set = self.versions.lock();
            (version_set.savepoints.clone(), self.versions.state())
        };
        let needs = longest(savepoints.values().flat_map(|savepoint| savepoint.needs.values().cloned()));
        if needs.is_empty() {
            0
        } else {
            excess(&needs, &longest(state.tables.values().map(|table| table.file_lengths())))
        }
    }
}

/// How much of each file is needed by who has these, value files too.
fn needed(files: impl Iterator<Item = DataFile>) -> BTreeMap<u64, u64> {
    let mut needs = BTreeMap::new();
    for file in files.filter(|file| !file.is_resident()) {
        let (id, bytes) = file.version();
        // A later version of a tree names all value files that earlier ones do.
        if needs.get(&id).is_none_or(|&known| known < bytes) {
            needs.insert(id, bytes);
            needs.extend(file.value_files().iter().map(|values| (values.id(), values.bytes())));
        }
    }
    needs
}

/// What whoever waited for a savepoint is told: where it was taken, or could not be, just that, whatever went wrong
/// besides.
fn answer(waited: Result<()>, taken: Option<Result<u64>>) -> Result<u64> {
    taken.unwrap_or_else(|| waited.and(Err(Error::bug("the savepoint was not taken"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It was taken just when whoever waited for it gave up, who said that it was not.
    #[test]
    fn a_savepoint_that_is_there_was_not_refused() {
        let trouble = || Err(Error::invalid("no room"));
        assert_eq!(answer(trouble(), Some(Ok(7))).unwrap(), 7);
        assert_eq!(answer(Ok(()), Some(Ok(7))).unwrap(), 7);
        assert!(answer(trouble(), None).is_err_and(|error| error.to_string() == "no room"));
        assert!(answer(Ok(()), None).is_err() && answer(Ok(()), Some(trouble().and(Ok(1)))).is_err());
    }
}
