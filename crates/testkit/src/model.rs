//! What a database must hold: the accepted batches, by sequence number, and what was promised of them.
//!
//! **Invariant:** sequence numbers have no holes: each record of each accepted batch takes the next one.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use forebay::Durability;

use crate::Merging;

/// How many tables tests use: two, so that batches span tables.
pub const TABLES: usize = 2;

/// A table's contents.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// It gets a value.
    Put(Vec<u8>),
    /// It has none any more.
    Delete,
    /// Not a key but all that lie between.
    DeleteRange(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// An operand is merged into it, or a value aggregated.
    Merge(Vec<u8>),
    /// Not a key but what the whole batch tells of itself: the last of its changes, of a table of states.
    Metadata(Vec<u8>),
}

/// One record of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The table's number.
    pub table: usize,
    /// The key.
    pub key: Vec<u8>,
    /// What becomes of it.
    pub write: Write,
}

#[derive(Clone, Debug)]
struct Accepted {
    last_sequence: u64,
    changes: Vec<Change>,
}

/// The model of a database.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// What tables merge by.
    merging: [Merging; TABLES],
    /// The contents at `base_sequence`.
    base: [Contents; TABLES],
    base_metadata: [Option<Vec<u8>>; TABLES],
    base_sequence: u64,
    /// What was accepted since.
    batches: Vec<Accepted>,
    /// The contents now.
    now: [Contents; TABLES],
    metadata: [Option<Vec<u8>>; TABLES],
    last_sequence: u64,
    /// What must survive a crash of the process.
    kept_by_process_crash: u64,
    /// What must survive a power loss.
    kept_by_power_loss: u64,
}

fn apply(
    merging: [Merging; TABLES],
    contents: &mut [Contents; TABLES],
    metadata: &mut [Option<Vec<u8>>; TABLES],
    changes: &[Change],
) {
    for Change { table: number, key, write } in changes {
        let table = &mut contents[*number];
        match write {
            Write::Put(value) => drop(table.insert(key.clone(), value.clone())),
            Write::Delete => drop(table.remove(key)),
            Write::DeleteRange(low, high) => {
                let bounds = (low.as_ref(), high.as_ref());
                table.retain(|key, _| !bounds.contains(key));
            }
            Write::Merge(operand) => {
                let merged = merging[*number].merged(operand, table.get(key).map(Vec::as_slice));
                table.insert(key.clone(), merged);
            }
            Write::Metadata(bytes) => metadata[*number] = Some(bytes.clone()),
        }
    }
}

impl Model {
    /// An empty database, whose tables merge so.
    pub fn new(merging: [Merging; TABLES]) -> Self {
        Self { merging, ..Self::default() }
    }

    /// What the last commits with metadata told, by table.
    pub fn metadata(&self) -> &[Option<Vec<u8>>; TABLES] {
        &self.metadata
    }

    /// The contents of a table now.
    pub fn table(&self, table: usize) -> &Contents {
        &self.now[table]
    }

    /// The contents of all tables now.
    pub fn tables(&self) -> &[Contents; TABLES] {
        &self.now
    }

    /// The number of the last record.
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// The engine numbered a batch of so many records, which may be fewer than its changes, as a batch merges states of
    /// one key: from here on it is visible.
    pub fn accept(&mut self, last_sequence: u64, records: u64, changes: Vec<Change>) {
        assert!(records <= changes.len() as u64, "a batch has more records than changes");
        let expected = self.last_sequence + records;
        assert_eq!(last_sequence, expected, "sequence numbers have a hole");
        apply(self.merging, &mut self.now, &mut self.metadata, &changes);
        self.last_sequence = last_sequence;
        self.batches.push(Accepted { last_sequence, changes });
    }

    /// The engine said that records up to here are this durable.
    pub fn acknowledge(&mut self, sequence: u64, durability: Durability) {
        assert!(sequence <= self.last_sequence, "more was acknowledged than was accepted");
        if durability >= Durability::Os {
            self.kept_by_process_crash = self.kept_by_process_crash.max(sequence);
        }
        if durability == Durability::Disk {
            self.kept_by_power_loss = self.kept_by_power_loss.max(sequence);
        }
    }

    /// What must survive a crash of the process, or a power loss.
    pub fn kept_by(&self, durability: Durability) -> u64 {
        match durability {
            Durability::Memory => 0,
            Durability::Os => self.kept_by_process_crash.max(self.kept_by_power_loss),
            Durability::Disk => self.kept_by_power_loss,
        }
    }

    /// A crash took everything behind `sequence`, all of which is durable from now on. It must be the end
    /// of a batch.
    pub fn roll_back(&mut self, sequence: u64) {
        let is_whole = sequence == self.base_sequence
            || self.batches.iter().any(|batch| batch.last_sequence == sequence);
        assert!(is_whole, "recovery ended at {sequence}, inside a batch");
        let kept: Vec<Accepted> =
            self.batches.drain(..).take_while(|batch| batch.last_sequence <= sequence).collect();
        let (merging, base, metadata) = (self.merging, &mut self.base, &mut self.base_metadata);
        kept.iter().for_each(|batch| apply(merging, base, metadata, &batch.changes));
        self.base_sequence = sequence;
        self.now = self.base.clone();
        self.metadata = self.base_metadata.clone();
        self.last_sequence = sequence;
        self.kept_by_process_crash = sequence;
        self.kept_by_power_loss = sequence;
    }
}
