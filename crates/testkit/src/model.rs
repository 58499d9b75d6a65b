//! What a database must hold: the accepted batches, by sequence number, and what was promised of them.
//!
//! **Invariant:** sequence numbers have no holes: each record of each accepted batch takes the next one.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::time::Duration;

use forebay::{ChangeBatch, Durability};

use crate::Merging;
use crate::config::ASIDE;
use crate::groups::{Groups, Whole};

/// How many tables tests use at most: two, so that batches span tables, and [one aside](crate::Aside).
pub const TABLES: usize = 3;

/// A table's contents.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// It gets a value.
    Put(Vec<u8>),
    /// It gets a value for so long.
    PutFor(Vec<u8>, Duration),
    /// It has none any more.
    Delete,
    /// Not a key but all that lie between.
    DeleteRange(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Not a key but all that begin so.
    DeletePrefix(Vec<u8>),
    /// An operand is merged into it, or a value aggregated.
    Merge(Vec<u8>),
    /// Not a key but what the whole batch tells of itself: the last of its changes, of a table of states.
    Metadata(Vec<u8>),
    /// Not a key but all windows: what is not kept any more at a time goes.
    Expire(u64, Whole),
}

impl Write {
    /// Whether it is of many keys, of a table that keeps them in order.
    pub fn is_of_range(&self) -> bool {
        matches!(self, Self::DeleteRange(..) | Self::DeletePrefix(_))
    }
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

/// A batch that was accepted.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The number of its last record.
    pub last_sequence: u64,
    /// Several batches as one, which end anywhere behind this number, and up to the last one.
    several_behind: Option<u64>,
    /// What it changed. Of tables that expire, values have their expiry behind them, as they are stored.
    pub changes: Vec<Change>,
    /// Which table [aside](crate::Aside) it was.
    generation: u64,
}

/// What tables hold at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// By table.
    pub tables: [Contents; TABLES],
    /// What the last commits with metadata told, by table.
    pub metadata: [Option<Vec<u8>>; TABLES],
    /// The number of the last record.
    pub sequence: u64,
    /// Which table [aside](crate::Aside) it is: each time that it is made again it is another one.
    generation: u64,
    /// The cube and the windows.
    groups: Groups,
}

/// The model of a database.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// What tables merge by.
    merging: [Merging; TABLES],
    /// What survives whatever comes.
    base: Moment,
    /// What was accepted since.
    batches: Vec<Accepted>,
    now: Moment,
    /// All batches that were ever accepted and not lost, since the last rollback: what the feed of changes tells.
    history: Vec<Accepted>,
    /// The number of the last rollback.
    restored: u64,
    /// How many tables aside there were.
    generations: u64,
    /// What must survive a crash of the process.
    kept_by_process_crash: u64,
    /// What must survive a power loss.
    kept_by_power_loss: u64,
    /// What is kept under a name.
    savepoints: BTreeMap<String, Moment>,
}

impl Moment {
    fn apply(&mut self, merging: &[Merging; TABLES], batch: &Accepted) {
        self.apply_changes(merging, &batch.changes);
        self.sequence = batch.last_sequence;
    }

    fn apply_changes(&mut self, merging: &[Merging; TABLES], changes: &[Change]) {
        for change @ Change { table: number, key, write } in changes {
            let Some(table) = self.tables.get_mut(*number) else {
                self.groups.apply(change);
                continue;
            };
            match write {
                Write::Put(value) | Write::PutFor(value, _) => drop(table.insert(key.clone(), value.clone())),
                Write::Delete => drop(table.remove(key)),
                Write::DeleteRange(low, high) => {
                    let bounds = (low.as_ref(), high.as_ref());
                    table.retain(|key, _| !RangeBounds::<Vec<u8>>::contains(&bounds, key));
                }
                Write::DeletePrefix(prefix) => table.retain(|key, _| !key.starts_with(prefix)),
                Write::Merge(operand) => {
                    let merged = merging[*number].merged(operand, table.get(key).map(Vec::as_slice));
                    table.insert(key.clone(), merged);
                }
                Write::Metadata(bytes) => self.metadata[*number] = Some(bytes.clone()),
                Write::Expire(..) => {}
            }
        }
    }

    /// The cube and the windows.
    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }
}

impl Accepted {
    /// Whether it may have ended at this number.
    fn may_end_at(&self, sequence: u64) -> bool {
        self.last_sequence == sequence || self.is_cut_by(sequence)
    }

    /// Whether a crash that left all up to this number left a part of it.
    fn is_cut_by(&self, sequence: u64) -> bool {
        self.several_behind.is_some_and(|behind| (behind + 1..self.last_sequence).contains(&sequence))
    }

    /// Loses what is behind this number.
    fn cut(&mut self, sequence: u64) {
        if self.is_cut_by(sequence) {
            self.last_sequence = sequence;
            for change in &mut self.changes {
                if let Write::Expire(_, whole) = &mut change.write {
                    *whole = Whole::Perhaps;
                }
            }
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
        &self.now.metadata
    }

    /// The contents of a table now.
    pub fn table(&self, table: usize) -> &Contents {
        &self.now.tables[table]
    }

    /// The contents of all tables now.
    pub fn tables(&self) -> &[Contents; TABLES] {
        &self.now.tables
    }

    /// Everything as it is now.
    pub fn now(&self) -> &Moment {
        &self.now
    }

    /// A moment as it is once these changes are made, which nobody has committed.
    pub(crate) fn changed(&self, mut moment: Moment, changes: &[Change]) -> Moment {
        moment.apply_changes(&self.merging, changes);
        moment
    }

    /// The number of the last record.
    pub fn last_sequence(&self) -> u64 {
        self.now.sequence
    }

    /// The number of the last rollback; 0 where there was none.
    pub fn restored(&self) -> u64 {
        self.restored
    }

    /// All batches since that, in their order.
    pub fn history(&self) -> &[Accepted] {
        &self.history
    }

    /// Batches of the feed, of which several are one where they were taken for one.
    pub(crate) fn as_accepted(&self, fed: Vec<ChangeBatch>) -> Vec<ChangeBatch> {
        let mut all: Vec<ChangeBatch> = Vec::new();
        for batch in fed {
            let at = self.history.partition_point(|known| known.last_sequence < batch.last_sequence);
            let several = self.history.get(at).and_then(|known| known.several_behind);
            match all.last_mut() {
                Some(before) if several.is_some_and(|behind| before.last_sequence > behind) => {
                    *before = batch
                }
                _ => all.push(batch),
            }
        }
        all
    }

    /// What a batch changed, of the tables that there are now: one that was dropped since, and made again, is another
    /// one, unless a rollback brought it back.
    pub fn told(&self, batch: &Accepted) -> Vec<Change> {
        let is_there = batch.generation == self.now.generation;
        batch.changes.iter().filter(|change| change.table != ASIDE || is_there).cloned().collect()
    }

    /// What is kept under names.
    pub fn savepoints(&self) -> &BTreeMap<String, Moment> {
        &self.savepoints
    }

    /// The engine numbered a batch of this many records, which may be fewer than its changes, as a batch merges states
    /// of one key: from here on it is visible.
    pub fn accept(&mut self, last_sequence: u64, records: u64, changes: Vec<Change>) {
        // Values of groups go to several of them.
        let has_groups = changes.iter().any(|change| change.table >= TABLES);
        assert!(has_groups || records <= changes.len() as u64, "a batch has more records than changes");
        let expected = self.now.sequence + records;
        assert_eq!(last_sequence, expected, "sequence numbers have a hole");
        self.take(last_sequence, None, changes);
    }

    /// The engine wrote batches of its own up to this number, if any.
    pub(crate) fn adopt(&mut self, last_sequence: u64, changes: Vec<Change>) {
        let behind = self.now.sequence;
        if last_sequence > behind {
            return self.take(last_sequence, Some(behind), changes);
        }
        changes.iter().for_each(|change| self.now.groups.apply(change));
    }

    fn take(&mut self, last_sequence: u64, several_behind: Option<u64>, changes: Vec<Change>) {
        let batch = Accepted { last_sequence, several_behind, changes, generation: self.now.generation };
        self.now.apply(&self.merging, &batch);
        self.batches.push(batch.clone());
        self.history.push(batch);
    }

    /// The engine said that records up to here are this durable.
    pub fn acknowledge(&mut self, sequence: u64, durability: Durability) {
        assert!(sequence <= self.now.sequence, "more was acknowledged than was accepted");
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

    /// Whether a crash may have left it there: at the end of a batch.
    pub fn may_end_at(&self, sequence: u64) -> bool {
        sequence == self.base.sequence || self.batches.iter().any(|batch| batch.may_end_at(sequence))
    }

    /// A crash took everything behind `sequence`, which must be the end of a batch. Nothing up to there is lost by
    /// another crash of the process, nor by a power loss if this one was a loss of this `kind` or it was promised
    /// before.
    pub fn roll_back(&mut self, sequence: u64, kind: Durability) {
        assert!(self.may_end_at(sequence), "recovery ended at {sequence}, inside a batch");
        for batches in [&mut self.batches, &mut self.history] {
            batches.iter_mut().for_each(|batch| batch.cut(sequence));
            batches.retain(|batch| batch.last_sequence <= sequence);
        }
        self.kept_by_process_crash = sequence;
        if kind == Durability::Disk {
            self.kept_by_power_loss = sequence;
        }
        self.fold();
        self.now = self.base.clone();
        self.batches.iter().for_each(|batch| self.now.apply(&self.merging, batch));
    }

    /// What is durable needs no batches any more.
    fn fold(&mut self) {
        let kept = self.kept_by_power_loss;
        let durable = self.batches.iter().take_while(|batch| batch.last_sequence <= kept).count();
        for batch in self.batches.drain(..durable) {
            self.base.apply(&self.merging, &batch);
        }
    }

    /// Everything so far is durable, and what comes next is no batch but passes by the log.
    fn forget_batches(&mut self) {
        self.base = self.now.clone();
        self.batches.clear();
        self.acknowledge(self.now.sequence, Durability::Disk);
    }

    /// Entries came in from the side.
    pub fn ingest(&mut self, table: usize, entries: &[(Vec<u8>, Vec<u8>)]) {
        self.now.tables[table].extend(entries.iter().cloned());
        self.forget_batches();
    }

    /// A table was dropped and made again: no crash brings back what it had.
    pub fn renew(&mut self, table: usize) {
        self.generations += 1;
        for moment in [&mut self.base, &mut self.now] {
            moment.tables[table].clear();
            moment.generation = self.generations;
        }
        self.batches.iter_mut().for_each(|batch| batch.changes.retain(|change| change.table != table));
    }

    /// The cube, or the windows, were dropped and made again.
    pub(crate) fn renew_groups(&mut self, table: usize) {
        self.generations += 1;
        for moment in [&mut self.base, &mut self.now] {
            moment.groups.renew(table, self.generations);
        }
        self.batches.iter_mut().for_each(|batch| batch.changes.retain(|change| change.table != table));
    }

    /// All may be kept under a name.
    pub(crate) fn keep_perhaps(&mut self, name: &str) {
        self.savepoints.insert(name.to_owned(), self.now.clone());
    }

    /// All is kept under a name.
    pub fn keep(&mut self, name: &str) {
        self.forget_batches();
        self.savepoints.insert(name.to_owned(), self.now.clone());
    }

    /// What was kept under a name goes.
    pub fn forget(&mut self, name: &str) {
        self.savepoints.remove(name);
    }

    /// Tables become what they were. That takes a number, and numbers go on.
    pub fn restore(&mut self, name: &str) {
        let Some(then) = self.savepoints.get(name) else { return };
        self.restored = self.now.sequence + 1;
        self.now = Moment { sequence: self.restored, ..then.clone() };
        self.history.clear();
        self.forget_batches();
    }

    /// What a checkpoint becomes: this, but for savepoints.
    pub fn copied(&self) -> Self {
        let mut copy = self.clone();
        copy.savepoints.clear();
        copy.forget_batches();
        copy
    }
}
