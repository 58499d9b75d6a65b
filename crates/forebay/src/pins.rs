//! Snapshots that are held: each has a number and an age, and what it pins can be told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use forebay_layouts::DataFile;
use serde::Serialize;

use crate::engine::{Engine, State};

/// The snapshots of a database that are held, by their numbers.
#[derive(Default)]
pub(crate) struct Pins {
    last_number: u64,
    held: BTreeMap<u64, Pinned>,
}

#[derive(Clone)]
struct Pinned {
    since: Duration,
    state: Arc<State>,
}

/// Lasts as long as any handle to a snapshot, or any scan of it.
pub(crate) struct Pin {
    engine: Arc<Engine>,
    number: u64,
}

/// A snapshot that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    pub(crate) fn new(engine: &Arc<Engine>, state: &Arc<State>) -> Arc<Self> {
        let mut pins = engine.pins.lock();
        pins.last_number += 1;
        let number = pins.last_number;
        let pinned = Pinned { since: engine.env.clock.now(), state: Arc::clone(state) };
        pins.held.insert(number, pinned);
        Arc::new(Self { engine: Arc::clone(engine), number })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // Outside the lock: what goes with it may be much.
        let gone = self.engine.pins.lock().held.remove(&self.number);
        drop(gone);
        self.engine.env.jobs.wake();
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({})", self.number)
    }
}

impl Engine {
    /// Snapshots that hold files, of one table or of all, oldest first. Those that hold none are listed too.
    pub(crate) fn snapshots(&self, table: Option<u32>) -> Vec<SnapshotStats> {
        let held: BTreeMap<u64, Pinned> = self.pins.lock().held.clone();
        let files: Vec<_> = held
            .iter()
            .map(|(number, pinned)| (number, pinned, retired_files(&pinned.state, table)))
            .collect();
        let mut seen_by: BTreeMap<u64, usize> = BTreeMap::new();
        for (_, _, files) in &files {
            files.keys().for_each(|id| *seen_by.entry(*id).or_default() += 1);
        }
        let now = self.env.clock.now();
        let stats = files.iter().map(|(number, pinned, files)| SnapshotStats {
            number: **number,
            age_seconds: now.saturating_sub(pinned.since).as_secs(),
            held_bytes: files.values().sum(),
            own_bytes: files
                .iter()
                .filter(|(id, _)| seen_by.get(id) == Some(&1))
                .map(|(_, bytes)| bytes)
                .sum(),
        });
        stats.collect()
    }

    /// Bytes of a table's files that are there for snapshots only.
    pub(crate) fn bytes_held_by_snapshots(&self, table: u32) -> u64 {
        let states: Vec<Arc<State>> =
            self.pins.lock().held.values().map(|pinned| Arc::clone(&pinned.state)).collect();
        let files: BTreeSet<(u64, u64)> =
            states.iter().flat_map(|state| retired_files(state, Some(table))).collect();
        files.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Files that this version sees and the newest does not: their ids and bytes.
fn retired_files(state: &State, table: Option<u32>) -> BTreeMap<u64, u64> {
    let tables = state.tables.values().filter(|entry| table.is_none_or(|id| entry.id == id));
    let files = tables.flat_map(|entry| entry.catalog.files());
    let retired = files.filter(|file: &DataFile| file.is_retired() && !file.is_resident());
    retired.map(|file| (file.meta().id, file.meta().bytes)).collect()
}
