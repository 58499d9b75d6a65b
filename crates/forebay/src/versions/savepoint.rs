//! What a savepoint keeps: a version of each table, and how much of their files that needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::DataFile;
use forebay_store::manifest::{self, Edit};

use crate::versions::{State, Tables, VersionSet, VersionSetGuard, Versions};

/// The longest name of a savepoint, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// What is kept under a name.
pub(crate) struct Savepoint {
    pub(crate) sequence: u64,
    pub(crate) taken_at_milliseconds: u64,
    pub(crate) tables: Tables,
    /// How much it needs of each table's files, from their beginnings.
    pub(crate) needs: BTreeMap<u32, BTreeMap<u64, u64>>,
}

impl Savepoint {
    pub(crate) fn new(sequence: u64, taken_at_milliseconds: u64, tables: Tables) -> Self {
        let needs = tables.iter().map(|(id, table)| (*id, table.file_lengths())).collect();
        Self { sequence, taken_at_milliseconds, tables, needs }
    }

    /// What the manifest keeps of it.
    pub(crate) fn entry(&self, name: &str) -> manifest::Savepoint {
        manifest::Savepoint {
            name: name.to_string(),
            sequence: self.sequence,
            taken_at_milliseconds: self.taken_at_milliseconds,
            tables: self.tables.values().map(|table| table.entry()).collect(),
        }
    }

    /// Its files, as often as parts refer to them.
    pub(crate) fn files(&self) -> impl Iterator<Item = DataFile> {
        self.tables.values().flat_map(|table| table.version.files())
    }
}

impl VersionSet {
    /// The savepoint of this name.
    pub(crate) fn savepoint(&self, name: &str) -> Result<&Arc<Savepoint>> {
        self.savepoints.get(name).ok_or_else(|| Error::NotFound(format!("there is no savepoint `{name}`")))
    }

    pub(crate) fn is_free(&self, name: &str) -> Result<()> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let reason = format!("a savepoint's name has 1 to {NAME_BYTES_MAX} bytes, not {}", name.len());
            return Err(Error::invalid(reason));
        }
        if self.savepoints.contains_key(name) {
            return Err(Error::invalid(format!("a savepoint `{name}` exists already; drop it first")));
        }
        Ok(())
    }
}

impl VersionSetGuard<'_> {
    /// Takes the savepoints that are waited for. Call when a buffer has just been flushed.
    pub(super) fn keep_wanted(&mut self) {
        let wanted = self.versions.wanted.lock().clone();
        let names = wanted.into_iter().filter(|(_, taken)| taken.is_none()).map(|(name, _)| name);
        for name in names {
            let taken = self.keep(&name, &self.versions.state());
            self.versions.wanted.lock().entry(name).and_modify(|outcome| *outcome = Some(taken));
        }
    }

    /// Has a savepoint taken as soon as the next buffer is flushed.
    pub(crate) fn want_savepoint(&self, name: &str) -> Result<()> {
        let mut wanted = self.versions.wanted.lock();
        if wanted.contains_key(name) {
            return Err(Error::invalid(format!("savepoint `{name}` is already being taken")));
        }
        wanted.insert(name.to_string(), None);
        Ok(())
    }

    /// Wants a savepoint no more. Returns what came of it, if anything has.
    pub(crate) fn end_want(&self, name: &str) -> Option<Result<u64>> {
        self.versions.wanted.lock().remove(name).flatten()
    }

    /// Keeps the tables of a state under a name.
    pub(crate) fn keep(&mut self, name: &str, state: &State) -> Result<u64> {
        self.is_free(name)?;
        if let Some(table) = state.tables.values().find(|table| table.version.resident().is_some()) {
            return Err(Error::invalid(format!(
                "table `{}` keeps records in memory that no file has yet, so it cannot be in a savepoint; try again",
                table.name
            )));
        }
        let now = self.versions.context.env.clock.unix_milliseconds();
        let sequence = self.log.flushed.1;
        let written = self.versions.context.log.as_ref().map(|log| log.last_sequence());
        debug_assert!(written.is_none_or(|last| sequence <= last), "a savepoint is not of what is to come");
        let next = state.sealed.last().filter(|next| !next.is_empty());
        debug_assert!(
            next.is_none_or(|next| next.first_sequence() > sequence),
            "what is not flushed is not in it"
        );
        let savepoint = Savepoint::new(sequence, now, state.tables.clone());
        self.append(&Edit::Savepoint(savepoint.entry(name)))?;
        self.refer(savepoint.files().map(|file| (file, 1)).collect());
        let other = self.savepoints.insert(name.to_string(), Arc::new(savepoint));
        debug_assert!(other.is_none(), "a name that is free is no savepoint's");
        self.weigh_savepoints();
        Ok(sequence)
    }

    /// Notes what of each table's files is there for savepoints only. Call when either has changed.
    pub(crate) fn weigh_savepoints(&self) {
        for (id, table) in self.versions.state().tables.iter() {
            let needs = self.savepoints.values().filter_map(|savepoint| savepoint.needs.get(id));
            let needs = longest(needs.cloned());
            let bytes = if needs.is_empty() { 0 } else { excess(&needs, &table.file_lengths()) };
            table.space.kept_bytes.store(bytes, Ordering::Relaxed);
        }
    }
}

impl Versions {
    /// Whether a savepoint that was wanted is taken, or cannot be.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.wanted.lock().get(name).is_some_and(Option::is_some)
    }
}

/// How long each file is for whoever needs most of it.
pub(crate) fn longest(all: impl Iterator<Item = BTreeMap<u64, u64>>) -> BTreeMap<u64, u64> {
    all.flatten().fold(BTreeMap::new(), |mut longest, (id, bytes)| {
        let known = longest.entry(id).or_default();
        *known = bytes.max(*known);
        longest
    })
}

/// Bytes that some need and others do not.
pub(crate) fn excess(needs: &BTreeMap<u64, u64>, others: &BTreeMap<u64, u64>) -> u64 {
    needs.iter().map(|(id, bytes)| bytes.saturating_sub(others.get(id).copied().unwrap_or_default())).sum()
}
