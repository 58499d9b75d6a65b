//! Snapshots that are held: each has a number and an age, and what it pins can be told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use forebay_layouts::DataFile;
use forebay_store::{ValueFile, WriteBuffer};
use serde::{Deserialize, Serialize};

use crate::versions::{State, Versions};

/// The snapshots of a database that are held, by their numbers.
#[derive(Default)]
pub(crate) struct Pins {
    last_number: u64,
    held: BTreeMap<u64, Pinned>,
    /// Buffers that were flushed, as long as somebody sees them.
    flushed: Vec<Weak<WriteBuffer>>,
}

impl Pins {
    /// Remembers a buffer that may still be seen.
    pub(crate) fn note_flushed(&mut self, buffer: &Arc<WriteBuffer>) {
        self.flushed.push(Arc::downgrade(buffer));
    }
}

#[derive(Clone)]
struct Pinned {
    since: Duration,
    state: Arc<State>,
}

/// Lasts as long as any handle to a snapshot, or any scan of it.
pub(crate) struct Pin {
    versions: Arc<Versions>,
    number: u64,
}

/// A snapshot that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SnapshotStats {
    /// As [`Snapshot::number`](crate::Snapshot::number).
    pub number: u64,
    /// How long it has been held.
    pub age_seconds: u64,
    /// Bytes of files that are there for snapshots only, and that it sees.
    pub held_bytes: u64,
    /// Bytes of those that no other snapshot sees: what goes when it goes.
    pub own_bytes: u64,
}

impl Pin {
    pub(crate) fn new(versions: &Arc<Versions>, state: &Arc<State>) -> Arc<Self> {
        let mut pins = versions.pins.lock();
        pins.last_number += 1;
        let number = pins.last_number;
        let pinned = Pinned { since: versions.context.env.clock.now(), state: Arc::clone(state) };
        let other = pins.held.insert(number, pinned);
        debug_assert!(other.is_none(), "each snapshot has a number of its own");
        Arc::new(Self { versions: Arc::clone(versions), number })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // Outside the lock: what goes with it may be much.
        let gone = self.versions.pins.lock().held.remove(&self.number);
        debug_assert!(gone.is_some(), "a snapshot is held until it is let go of");
        // Of one that saw what there is nothing goes, and nobody need look. It is kept until then: another version might
        // take its place in memory.
        let is_newest =
            |state: &State| gone.as_ref().is_some_and(|gone| std::ptr::eq(Arc::as_ptr(&gone.state), state));
        let was_newest = self.versions.look(is_newest);
        drop(gone);
        if !was_newest {
            self.versions.context.env.jobs.wake();
        }
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({})", self.number)
    }
}

impl Versions {
    /// The oldest buffer that was flushed, that somebody sees all the same, and that is in memory.
    pub(crate) fn oldest_pinned_buffer(&self) -> Option<Arc<WriteBuffer>> {
        let pinned: Vec<_> = self.pins.lock().flushed.iter().filter_map(Weak::upgrade).collect();
        pinned.into_iter().find(|buffer| !buffer.is_filed())
    }

    /// Forgets flushed buffers that nobody sees any more.
    pub(crate) fn forget_flushed_buffers(&self) {
        self.pins.lock().flushed.retain(|buffer| buffer.strong_count() > 0);
    }

    /// The versions that snapshots see, each once.
    fn pinned_states(&self) -> Vec<Arc<State>> {
        let mut states: Vec<Arc<State>> =
            self.pins.lock().held.values().map(|pinned| Arc::clone(&pinned.state)).collect();
        states.dedup_by(|one, other| Arc::ptr_eq(one, other));
        states
    }

    /// Snapshots that hold files, of one table or of all, oldest first. Those that hold none are listed too.
    pub(crate) fn snapshots(&self, table: Option<u32>) -> Vec<SnapshotStats> {
        let held: BTreeMap<u64, Pinned> = self.pins.lock().held.clone();
        // Of snapshots in order, those that see one version are neighbours.
        let held: Vec<_> = held.into_iter().collect();
        let alike = || held.chunk_by(|(_, one), (_, other)| Arc::ptr_eq(&one.state, &other.state));
        let mut seen_by: BTreeMap<u64, usize> = BTreeMap::new();
        for snapshots in alike() {
            for id in held_files(&snapshots[0].1.state, table).into_keys() {
                *seen_by.entry(id).or_default() += snapshots.len();
            }
        }
        let now = self.context.env.clock.now();
        let mut stats = Vec::with_capacity(held.len());
        for snapshots in alike() {
            let files = held_files(&snapshots[0].1.state, table);
            let held_bytes: u64 = files.values().sum();
            let own = files.iter().filter(|(id, _)| seen_by.get(id) == Some(&1));
            let own_bytes = own.map(|(_, bytes)| bytes).sum();
            debug_assert!(own_bytes <= held_bytes, "what goes with a snapshot is held by it");
            stats.extend(snapshots.iter().map(|(number, pinned)| SnapshotStats {
                number: *number,
                age_seconds: now.saturating_sub(pinned.since).as_secs(),
                held_bytes,
                own_bytes,
            }));
        }
        stats
    }

    /// Opens what snapshots and tables may still read, as far as files may be open: whoever opens the database next may
    /// remove their names.
    pub(crate) fn hold_files(&self) {
        let states = self.pinned_states().into_iter().chain([self.state()]);
        let mut files: BTreeMap<u64, DataFile> = BTreeMap::new();
        let mut values: BTreeMap<u64, Arc<ValueFile>> = BTreeMap::new();
        for file in states.flat_map(|state| state.files().collect::<Vec<_>>()) {
            if !file.is_resident() {
                values.extend(file.value_files().iter().map(|values| (values.id(), Arc::clone(values))));
                files.insert(file.id(), file);
            }
        }
        let most = self.context.options.open_files(self.context.env.fs.process_files_max()) / 2;
        // One that cannot be opened is an error to who reads it.
        files.values().take(most).for_each(|file| drop(file.reopen()));
        values.values().take(most.saturating_sub(files.len())).for_each(|values| drop(values.reopen()));
    }

    /// Bytes of a table's lists and trees that are there for snapshots only. Value files are of all tables.
    pub(crate) fn bytes_held_by_snapshots(&self, table: u32) -> u64 {
        let mut files = BTreeSet::new();
        for state in self.pinned_states() {
            let retired = retired_files(&state, Some(table)).map(|file| (file.id(), file.bytes()));
            files.extend(retired.collect::<BTreeMap<_, _>>());
        }
        files.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Lists and trees that this version sees and the newest does not.
fn retired_files(state: &State, table: Option<u32>) -> impl Iterator<Item = DataFile> {
    let tables = state.tables.values().filter(move |entry| table.is_none_or(|id| entry.id == id));
    let files = tables.flat_map(|entry| entry.version.files());
    files.filter(|file: &DataFile| file.is_retired() && !file.is_resident())
}

/// These and the value files that no other ones have anything in: their ids, of which each is one file's, and bytes.
fn held_files(state: &State, table: Option<u32>) -> BTreeMap<u64, u64> {
    let mut held = BTreeMap::new();
    for file in retired_files(state, table) {
        let values = file.value_files().iter().filter(|values| !values.is_needed());
        held.extend(values.map(|values| (values.id(), values.bytes())));
        held.insert(file.id(), file.bytes());
    }
    held
}
