//! One seed, from the empty disk to rest.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay::env::fs::{CrashFs, FaultyFs, TracedFs};
use forebay::env::{Access, Env, FileSystem, Rng};
use forebay::{Durability, Error};
use forebay_testkit::{Generator, Harness, Kind, Op};

use crate::trace::Trace;
use crate::{SimOptions, faults};

/// Steps in which background work must come to rest once nobody writes.
const STEPS_TO_REST: usize = 200_000;

/// What came of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of everything that happened.
    pub trace: u64,
    /// The files at the end.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// How often the power or the process was lost.
    pub crashes: u64,
    /// How many operations were done.
    pub operations: u64,
}

struct Run {
    options: SimOptions,
    rng: Rng,
    generator: Generator,
    fs: Arc<CrashFs>,
    faulty: Arc<FaultyFs>,
    /// Writes down file operations, for whoever wants to be told.
    traced: Arc<TracedFs>,
    harness: Harness,
    /// What the crash before this round may not have taken.
    survives: Durability,
    trace: Trace,
    crashes: u64,
    operations: u64,
    verbose: bool,
}

/// Runs a seed; panics where the engine breaks a promise.
pub fn run(seed: u64, verbose: bool) -> Outcome {
    let mut rng = Rng::new(seed);
    let options = SimOptions::draw(&mut rng);
    let mut generator = Generator::new(rng.fork(), &options.config);
    if options.fault_percent > 0 {
        // A fault in the middle of these leaves copies behind, or another order, which the model does not follow.
        generator = generator.without(Kind::Checkpoint).without_turns();
    }
    if verbose {
        println!("seed {seed}: {options:#?}\n{}", generator.mix());
    }
    let fs = CrashFs::new(rng.next_u64());
    let faulty = FaultyFs::new(Arc::clone(&fs) as Arc<dyn FileSystem>);
    let traced = TracedFs::new(Arc::clone(&faulty) as Arc<dyn FileSystem>);
    let harness = Harness::closed(Env::memory(0), options.config.clone(), &options.dir);
    let (rounds, survives, trace) = (options.rounds, Durability::Disk, Trace::default());
    let (crashes, operations) = (0, 0);
    let mut run = Run {
        options,
        rng,
        generator,
        fs,
        faulty,
        traced,
        harness,
        survives,
        trace,
        crashes,
        operations,
        verbose,
    };
    for round in 0..rounds {
        run.tell(|| format!("round {round}"));
        run.start();
        run.operate();
        run.crash();
    }
    run.come_to_rest();
    Outcome {
        trace: run.trace.sum(),
        files: run.fs.snapshot_files(),
        crashes: run.crashes,
        operations: run.operations,
    }
}

impl Run {
    fn tell(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            self.traced.take_log().iter().for_each(|line| println!("              {line}"));
            println!("{:>6} {}", self.fs.operations(), what());
        }
    }

    /// Opens the database, however often the power goes meanwhile, and holds it against the model.
    fn start(&mut self) {
        loop {
            let within = match self.rng.chance(self.options.crash_opening_percent) {
                true => 30,
                false => 30 + self.options.crash_within,
            };
            self.fs.crash_at(self.fs.operations() + 1 + self.rng.below(within));
            match self.open().and_then(|()| self.recovered()) {
                Ok(()) => return,
                Err(error) if self.fs.is_off() => {
                    self.tell(|| format!("power lost while opening: {error}"));
                    // What survived the crash before this one is durable, and survives this one too.
                    let survives = self.survives;
                    self.crash();
                    self.survives = survives;
                }
                Err(error) => panic!("opening and reading after a crash: {error}"),
            }
        }
    }

    fn open(&mut self) -> Result<(), Error> {
        self.faulty = FaultyFs::new(Arc::clone(&self.fs) as Arc<dyn FileSystem>);
        self.traced = TracedFs::new(Arc::clone(&self.faulty) as Arc<dyn FileSystem>);
        let fs: Arc<dyn FileSystem> = match self.verbose {
            true => Arc::clone(&self.traced) as Arc<dyn FileSystem>,
            false => Arc::clone(&self.faulty) as Arc<dyn FileSystem>,
        };
        self.traced.start_log(&self.options.dir);
        let env = Env::simulated(fs, self.rng.next_u64());
        self.harness.restart(env);
        self.harness.open()
    }

    /// What was recovered must be whole batches, all that was promised, and nothing else.
    fn recovered(&mut self) -> Result<(), Error> {
        let sequence = self.harness.db().last_sequence();
        let kept = self.harness.model.kept_by(self.survives);
        self.tell(|| format!("recovered to {sequence}; {kept} was promised"));
        assert!(sequence >= kept, "recovered only to {sequence}; {kept} was acknowledged");
        let last = self.harness.model.last_sequence();
        assert!(sequence <= last, "recovered to {sequence}; only {last} was written");
        self.harness.model.roll_back(sequence);
        self.trace.add((sequence, self.fs.operations()));
        self.harness.check_all()?;
        self.harness.apply(&Op::Verify)?;
        self.harness.check_copies()
    }

    /// Does operations until the power goes, or something fails for good.
    fn operate(&mut self) {
        let faults = match self.rng.chance(self.options.fault_percent) {
            true => faults::add(&self.faulty, &mut self.rng),
            false => Vec::new(),
        };
        if !faults.is_empty() {
            self.tell(|| format!("faults: {faults:?}"));
        }
        for _ in 0..self.rng.below(self.options.ops_per_round) {
            let op = self.generator.draw();
            self.tell(|| brief(&op));
            self.operations += 1;
            let outcome = self.harness.apply(&op);
            self.trace.add((outcome.is_ok(), self.harness.model.last_sequence(), self.fs.operations()));
            if let Err(error) = outcome {
                self.tell(|| format!("error: {error}"));
                if self.fs.is_off() || self.is_over(&op, &error) {
                    return;
                }
            }
            self.harness.env.jobs.step_some(self.rng.index(self.options.steps_max + 1));
        }
        self.recover_from_faults();
    }

    /// Judges an error while the power is on: only faults excuse it. Tells whether the round must end.
    fn is_over(&self, op: &Op, error: &Error) -> bool {
        assert!(self.faulty.fired() > 0, "{} failed without a cause: {error}", brief(op));
        assert!(!error.is_corruption(), "{} took a fault for damage: {error}", brief(op));
        matches!(error, Error::Poisoned(_)) || matches!(op, Op::Reopen)
    }

    /// Once the disk is well again, so is the database, unless a sync has failed.
    fn recover_from_faults(&mut self) {
        if self.faulty.fired() == 0 || self.fs.is_off() {
            return;
        }
        self.faulty.clear();
        self.harness.env.jobs.advance(Duration::from_secs(1));
        self.harness.env.jobs.step_some(STEPS_TO_REST);
        match self.harness.apply(&Op::Flush) {
            Ok(()) | Err(Error::Poisoned(_)) => {}
            Err(_) if self.fs.is_off() => return,
            Err(error) => panic!("the disk is well again, and writing is not: {error}"),
        }
        if !self.fs.is_off() {
            self.harness.check_all().expect("reading after faults");
        }
    }

    /// Loses power, or only the process.
    fn crash(&mut self) {
        let only_process = !self.fs.is_off() && self.rng.chance(self.options.process_crash_percent);
        // Off before anything is dropped, so that nothing is closed in order.
        let left = self.fs.power_cycle();
        self.harness.abandon();
        self.crashes += 1;
        (self.fs, self.survives) = match only_process {
            true => (durable_copy(&self.fs, self.rng.next_u64()), Durability::Os),
            false => (left, Durability::Disk),
        };
        self.tell(|| format!("crash: only of the process: {only_process}"));
    }

    /// No more faults: the engine must come to rest, and give back space.
    fn come_to_rest(&mut self) {
        self.open().and_then(|()| self.recovered()).expect("opening without faults");
        let jobs = self.harness.env.jobs.clone();
        for table in 0..forebay_testkit::TABLES {
            self.harness.apply(&Op::Compact(table)).expect("compacting without faults");
        }
        // Once for merges at rest, of what no compaction reaches, and once for the files that they leave behind.
        for _ in 0..2 {
            jobs.advance(Duration::from_secs(1));
            jobs.step_some(STEPS_TO_REST);
        }
        assert_eq!(self.harness.db().stats().debt_bytes, 0, "background work does not come to rest");
        self.harness.check_all().expect("reading at rest");
        self.harness.apply(&Op::Verify).expect("verifying at rest");
        self.check_space();
        self.harness.close().expect("closing without faults");
        self.trace.add(self.fs.operations());
    }

    /// No file is left over, and what there is holds little more than the records.
    fn check_space(&self) {
        let stats = self.harness.db().stats();
        let names = self.fs.list(&self.options.dir).expect("listing");
        let files = names.iter().filter(|name| name.ends_with(".list") || name.ends_with(".tree"));
        assert_eq!(files.count() as u64, stats.list_files, "files that nothing refers to");
        let logs = names.iter().filter(|name| name.ends_with(".log")).count();
        let config = &self.options.config;
        let is_bounded = config.keep_changes_bytes == 0;
        assert!(!is_bounded || logs <= config.write_buffers + 1, "{logs} log segments are left");
        for level in stats.tables.iter().flat_map(|table| table.levels.split_last()) {
            let (leaves, inner) = level;
            assert!(inner.iter().all(|level| level.lists == 0), "compacting left lists in inner nodes");
            assert!(leaves.lists_max <= 1, "compacting left {} lists in a leaf", leaves.lists_max);
        }
        let live: usize =
            self.harness.model.tables().iter().flatten().map(|(key, value)| key.len() + value.len()).sum();
        // A page, page search with filter and a footer at least for each list, and pages that long records
        // leave half empty.
        let bound = 3 * live as u64 + 20_000 * lists + 100_000;
        let disk_bytes = stats.disk_bytes - stats.kept_log_bytes;
        assert!(disk_bytes <= bound, "{disk_bytes} bytes on disk for {live} bytes of records");
    }
}

/// The files as processes saw them, all durable: what a crash of only the process leaves.
fn durable_copy(from: &CrashFs, seed: u64) -> Arc<CrashFs> {
    let copy = CrashFs::new(seed);
    for (path, bytes) in from.snapshot_files() {
        let dir = path.parent().expect("files are in directories");
        copy.create_dir_all(dir).expect("making a directory");
        let file = copy.create(&path, Access::Buffered).expect("making a file");
        file.write_at(0, &bytes).expect("writing a file");
        file.sync().expect("syncing a file");
        dir.ancestors().for_each(|dir| copy.sync_dir(dir).expect("syncing a directory"));
    }
    copy
}

fn brief(op: &Op) -> String {
    match op {
        Op::Commit(changes, durability) => format!("commit {} records, {durability:?}", changes.len()),
        other => {
            let mut text = format!("{other:?}");
            text.truncate(text.char_indices().nth(90).map_or(text.len(), |(at, _)| at));
            text
        }
    }
}
