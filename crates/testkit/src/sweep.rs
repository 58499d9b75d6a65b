//! A fault at every file operation of a fixed script, one after the other: an error is returned or the fault
//! is flushed, reads go on with right answers, nothing acknowledged is lost, and once the disk is well
//! again so is the database. Time is a clock that only waiting moves.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::{Change, Config, Harness, Keys, Merging, Op, Query, Values, Write};
use forebay::{Durability, Error, Layout};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Env, FileSystem, Rng};

const DIR: &str = "/some/where/db";
/// How many tables there are.
const TABLES: usize = 2;

/// A tiny database, whose first table, or the second where this layout is of hash order, has it.
fn config(layout: Layout) -> Config {
    let ordered_layout = if layout.is_ordered() { layout } else { Layout::wb_tree_ordered() };
    Config {
        ordered: layout.is_ordered(),
        ordered_layout,
        node_bytes: 3 << 10,
        fan_out: 3,
        fast_per_slow: 1,
        write_buffer_bytes: Some(4 << 10),
        key_count: 150,
        keys: Keys::Mixed,
        values: Values::Short,
        merging: [Merging::Operands, Merging::Tally, Merging::None],
        ..Config::default()
    }
}

/// Writes that spill, split and rotate; reads; a flush, a compaction, a checkpoint, a reopening.
fn script() -> Vec<Op> {
    let mut rng = Rng::new(9);
    let mut ops = Vec::new();
    for number in 0..36u64 {
        let mut changes: Vec<Change> = (0..12)
            .map(|_| {
                let (table, key) = (rng.index(TABLES), Keys::Mixed.key(rng.below(150)));
                let value = Values::Short.value(&mut rng, number);
                let write = match (table, rng.below(10)) {
                    (0, 0..5) => Write::Put(value),
                    (0, 5) => Write::Delete,
                    _ => Write::Merge(value),
                };
                Change { table, key, write }
            })
            .collect();
        if number % 9 == 4 {
            let write = Write::Metadata(number.to_le_bytes().to_vec());
            changes.push(Change { table: 1, key: Vec::new(), write });
        }
        let durability = [Durability::Memory, Durability::Os, Durability::Os, Durability::Disk][rng.index(4)];
        ops.push(Op::Commit(changes, durability));
        ops.push(Op::Step(rng.index(12)));
        ops.push(Op::Read(rng.index(TABLES), Query::Get(Keys::Mixed.key(rng.below(150)))));
        match number {
            10 => ops.push(Op::Flush),
            16 => ops.push(Op::Reopen),
            20 => ops.push(Op::Wait(150)),
            24 => ops.push(Op::Checkpoint),
            30 => ops.push(Op::Compact(0)),
            _ if number % 10 == 3 => ops.push(Op::Read(rng.index(TABLES), Query::All)),
            _ => {}
        }
    }
    ops
}

struct Sweep {
    fs: Arc<FaultyFs>,
    harness: Harness,
    errors: u64,
    is_poisoned: bool,
}

impl Sweep {
    fn new(layout: Layout, rule: Option<&str>) -> Self {
        let fs = FaultyFs::new(MemoryFs::new());
        let harness = Harness::closed(Env::simulated(fs.clone(), 1), config(layout), Path::new(DIR));
        if let Some(rule) = rule {
            fs.rule(rule).expect("a rule that is well formed");
        }
        Self { fs, harness, errors: 0, is_poisoned: false }
    }

    /// Opens, again where a fault came between.
    fn open(&mut self) {
        for _ in 0..2 {
            match self.harness.open() {
                Ok(()) => return,
                Err(error) => self.judge(&error),
            }
            if self.fs.fired() > 1 {
                self.fs.clear();
            }
        }
        self.harness.open().expect("opening when nothing fails any more");
    }

    fn judge(&mut self, error: &Error) {
        assert!(self.fs.fired() > 0, "an error without a fault: {error}");
        assert!(!error.is_corruption() && !error.is_bug(), "a fault was taken for another: {error}");
        self.errors += 1;
        self.is_poisoned |= matches!(error, Error::Poisoned(_));
    }

    fn run(&mut self) {
        self.open();
        for op in script() {
            if let Err(error) = self.harness.apply(&op) {
                self.judge(&error);
                if matches!(op, Op::Reopen) {
                    self.reopened();
                }
            }
        }
        // Reads go on, whatever has happened to writing.
        match self.harness.check_all() {
            Ok(()) => {}
            Err(error) => self.judge(&error),
        }
    }

    /// Opens after a failure to close or to open; what was not acknowledged may be gone.
    fn reopened(&mut self) {
        let _ = self.harness.close();
        self.open();
        self.adopt();
        self.is_poisoned = false;
    }

    fn adopt(&mut self) {
        let (sequence, kept) =
            (self.harness.db().last_sequence(), self.harness.model.kept_by(Durability::Os));
        assert!(sequence >= kept, "recovered only to {sequence}; {kept} was acknowledged");
        self.harness.model.roll_back(sequence, Durability::Disk);
    }

    /// The disk is well again: so is the database, at once or, after a failed sync, once it is reopened.
    fn finish(&mut self) {
        self.fs.clear();
        self.harness.env.jobs.advance(Duration::from_secs(1));
        self.harness.env.jobs.step_some(100_000);
        self.harness.check_all().expect("reading once the disk is well again");
        let change = Change { table: 0, key: b"resumed".to_vec(), write: Write::Put(b"yes".to_vec()) };
        match self.harness.commit(&[change], Durability::Disk).and_then(|()| self.harness.apply(&Op::Flush)) {
            Ok(()) => assert!(!self.is_poisoned, "a failed sync was forgotten"),
            Err(Error::Poisoned(_)) => {}
            Err(error) => panic!("writing does not resume: {error}"),
        }
        self.check_leftovers();
        self.reopened();
        self.harness.check_all().expect("reading after reopening");
        self.harness.apply(&Op::Verify).expect("verifying after reopening");
        self.harness.apply(&Op::Compact(0)).expect("compacting after reopening");
        self.harness.check_copies().ok();
        self.harness.close().expect("closing");
    }
}

impl Sweep {
    /// What failed has left no list behind: a full disk must not be filled further by every new try.
    fn check_leftovers(&self) {
        if self.harness.db().sync().is_err() {
            return;
        }
        // To finish what is to be done, to see that nobody writes, to merge at rest, and to remove what that has left.
        for _ in 0..4 {
            self.harness.env.jobs.advance(Duration::from_secs(1));
            self.harness.env.jobs.step_some(100_000);
        }
        let names = self.fs.list(Path::new(DIR)).expect("a rule that is well formed");
        let files =
            names.iter().filter(|name| name.ends_with(".list") || name.ends_with(".tree")).count() as u64;
        assert_eq!(files, self.harness.db().stats().list_files, "files that nothing refers to");
        let logs = names.iter().filter(|name| name.ends_with(".log")).count();
        assert!(logs <= self.harness.config.write_buffers_max() + 1, "{logs} log segments: {names:?}");
    }
}

/// What a sweep met.
#[derive(Clone, Copy, Debug)]
pub struct Swept {
    /// Operations on files that had the fault, each in a run of its own.
    pub operations: u64,
    /// Runs in which the fault came back as an error.
    pub noticed: u64,
}

/// Runs the script with the fault at the first, second, … operation that the rule matches, until none does. A rule is
/// made for each number; where it says `from:`, the fault lasts.
pub fn sweep(layout: Layout, rule_of: impl Fn(u64) -> String) -> Swept {
    let mut faultless = Sweep::new(layout, None);
    faultless.run();
    assert_eq!(faultless.errors, 0);
    let (mut operations, mut noticed) = (0, 0);
    loop {
        let rule = rule_of(operations + 1);
        println!("{layout}: {rule}");
        let mut sweep = Sweep::new(layout, Some(&rule));
        sweep.run();
        if sweep.fs.fired() == 0 {
            break;
        }
        operations += 1;
        noticed += u64::from(sweep.errors > 0);
        sweep.finish();
    }
    assert!(
        operations > 50 && noticed > operations / 10,
        "only {noticed} of {operations} faults were noticed"
    );
    Swept { operations, noticed }
}
