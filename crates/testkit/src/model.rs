//! What a database must hold: the accepted batches, by sequence number, and what was promised of them.
//!
//! **Invariant:** sequence numbers have no holes: each record of each accepted batch takes the next one.

use std::collections::BTreeMap;

use forebay::Durability;

/// How many tables tests use: two, so that batches span tables.
pub const TABLES: usize = 2;

/// A table's contents.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// One record of a batch: a put, or a delete where there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The table's number.
    pub table: usize,
    /// The key.
    pub key: Vec<u8>,
    /// The value, or none.
    pub value: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Accepted {
    last_sequence: u64,
    changes: Vec<Change>,
}

/// The model of a database.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The contents at `base_sequence`.
    base: [Contents; TABLES],
    base_sequence: u64,
    /// What was accepted since.
    batches: Vec<Accepted>,
    /// The contents now.
    now: [Contents; TABLES],
    last_sequence: u64,
    /// What must survive a crash of the process.
    kept_by_process_crash: u64,
    /// What must survive a power loss.
    kept_by_power_loss: u64,
}

fn apply(contents: &mut [Contents; TABLES], changes: &[Change]) {
    for change in changes {
        let table = &mut contents[change.table];
        match &change.value {
            Some(value) => table.insert(change.key.clone(), value.clone()),
            None => table.remove(&change.key),
        };
    }
}

impl Model {
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

    /// The engine numbered a batch: from here on it is visible.
    pub fn accept(&mut self, last_sequence: u64, changes: Vec<Change>) {
        let expected = self.last_sequence + changes.len() as u64;
        assert_eq!(last_sequence, expected, "sequence numbers have a hole");
        apply(&mut self.now, &changes);
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
        kept.iter().for_each(|batch| apply(&mut self.base, &batch.changes));
        self.base_sequence = sequence;
        self.now = self.base.clone();
        self.last_sequence = sequence;
        self.kept_by_process_crash = sequence;
        self.kept_by_power_loss = sequence;
    }
}
