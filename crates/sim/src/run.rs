//! One seed, from the empty disk to rest.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use forebay::{Durability, Error};
use forebay_env::fs::{CrashFs, FaultyFs, TracedFs};
use forebay_env::{Env, FileSystem, Rng};
use forebay_testkit::{Generator, Harness, Op, Wall};

use crate::judged::{brief, is_doubtful, is_told_durable, opens_a_copy};
use crate::trace::Trace;
use crate::{Part, SimOptions, faults};

/// Steps in which background work must come to rest once nobody writes.
pub(crate) const STEPS_TO_IDLE: usize = 200_000;
/// The operations of a round are numbered from a multiple of this.
const ROUND: u64 = 10_000;
/// The database and its copies that are written at a time.
const DATABASES_MAX: usize = 3;

/// What came of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of everything that happened.
    pub trace: u64,
    /// The files at the end.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// How often the power or the process was lost.
    pub crashes: u64,
    /// The numbers of the operations that were done.
    pub operations: Vec<u64>,
}

pub(crate) struct Run {
    seed: u64,
    part: Part,
    pub(crate) options: SimOptions,
    rng: Rng,
    generator: Generator,
    pub(crate) fs: Arc<CrashFs>,
    pub(crate) faulty: Arc<FaultyFs>,
    /// Writes down file operations, for whoever wants to be told.
    traced: Arc<TracedFs>,
    pub(crate) wall: Arc<Wall>,
    pub(crate) env: Env,
    /// The database, and copies that are databases of their own.
    pub(crate) databases: Vec<Harness>,
    /// Whether anything fails in this round.
    pub(crate) may_fail: bool,
    /// A sync may have failed since the power was lost last, so what is seen may be on no disk.
    pub(crate) may_forget: bool,
    /// Whether the round ended just after something was said to be on disk.
    pub(crate) was_told: bool,
    /// Whether code of tables panics in this round.
    pub(crate) panics: bool,
    /// The worst of the crashes since the last recovery.
    pub(crate) loss: Durability,
    trace: Trace,
    crashes: u64,
    operations: Vec<u64>,
    verbose: bool,
}

/// Runs a part of a seed; panics where the engine breaks a promise. `watch` is told the number of each operation
/// before it is done.
pub fn run(seed: u64, part: &Part, verbose: bool, watch: &mut dyn FnMut(u64)) -> Outcome {
    let mut rng = Rng::new(seed);
    let mut options = SimOptions::draw(&mut rng);
    let generator = Generator::new(rng.fork(), &options.config).wide();
    let generator = match options.theme {
        Some(theme) => generator.themed(theme),
        None => generator,
    };
    part.plain.iter().for_each(|name| options.make_plain(name));
    if verbose {
        println!("seed {seed}: {options:#?}\n{}", generator.mix());
    }
    let fs = CrashFs::new(rng.next_u64());
    let faulty = FaultyFs::new(Arc::clone(&fs) as Arc<dyn FileSystem>);
    let traced = TracedFs::new(Arc::clone(&faulty) as Arc<dyn FileSystem>);
    let wall = Wall::new();
    let env = Env::memory(0);
    let mut database = Harness::closed(env.clone(), options.config.clone(), &options.dir);
    database.wall = Some(Arc::clone(&wall));
    let rounds = options.rounds;
    let mut run = Run {
        seed,
        part: part.clone(),
        options,
        rng,
        generator,
        fs,
        faulty,
        traced,
        wall,
        env,
        databases: vec![database],
        may_fail: false,
        may_forget: false,
        was_told: false,
        panics: false,
        loss: Durability::Os,
        trace: Trace::default(),
        crashes: 0,
        operations: Vec::new(),
        verbose,
    };
    for round in 0..rounds {
        run.tell(|| format!("round {round}"));
        run.rng = run.dice(round * ROUND + ROUND - 1);
        run.start();
        run.operate(round, watch);
        run.crash();
    }
    run.become_idle();
    Outcome {
        trace: run.trace.sum(),
        files: run.fs.snapshot_files(),
        crashes: run.crashes,
        operations: run.operations,
    }
}

impl Run {
    /// Dice that follow from the seed and this number alone.
    fn dice(&self, number: u64) -> Rng {
        let mut rng = Rng::new(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.fork()
    }

    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            self.traced.take_log().iter().for_each(|line| println!("              {line}"));
            println!("{:>6} {}", self.fs.operations(), what());
        }
    }

    pub(crate) fn trace_operations(&mut self) {
        self.trace.add(self.fs.operations());
    }

    /// Opens the databases, however often the power goes meanwhile, and holds them against their models.
    fn start(&mut self) {
        // A little longer each time: opening makes what it reads durable, which takes as long as there is much of that.
        for tries in 0.. {
            let within = match self.rng.chance(self.options.crash_opening_percent) {
                true => 30 + tries,
                false => 30 + tries + self.options.crash_within,
            };
            self.fs.crash_at(self.fs.operations() + 1 + self.rng.below(within));
            let dice = self.rng.clone().fork();
            // Once it is opened again with nothing in the way, nothing may be.
            let is_hindered = tries % 2 == 0 && self.take_ground_away(dice);
            match self.open() {
                Ok(()) if !is_hindered || self.writes_on() => {
                    self.assert_stopped_by_names();
                    (self.loss, self.may_forget) = (Durability::Os, false);
                    return self.fs.heal();
                }
                Ok(()) => {
                    self.tell(|| "hindered just after opening".to_owned());
                    self.lose(Durability::Os);
                }
                Err(error) if is_hindered && !self.fs.is_off() => {
                    self.tell(|| format!("hindered while opening: {error}"));
                    self.lose(Durability::Os);
                }
                Err(error) if self.fs.is_off() => {
                    self.tell(|| format!("power lost while opening: {error}"));
                    self.crash();
                }
                Err(error) => panic!("opening and reading after a crash: {error}"),
            }
        }
    }

    pub(crate) fn open(&mut self) -> Result<(), Error> {
        self.faulty = FaultyFs::new(Arc::clone(&self.fs) as Arc<dyn FileSystem>);
        self.traced = TracedFs::new(Arc::clone(&self.faulty) as Arc<dyn FileSystem>);
        let fs: Arc<dyn FileSystem> = match self.verbose {
            true => Arc::clone(&self.traced) as Arc<dyn FileSystem>,
            false => Arc::clone(&self.faulty) as Arc<dyn FileSystem>,
        };
        self.traced.start_log(&self.options.dir);
        self.env = self.wall.env(fs, self.rng.next_u64(), Some(&self.env));
        if self.options.interleaves {
            self.env.jobs.interleave(self.rng.clone().fork().next_u64());
        }
        for number in 0..self.databases.len() {
            let database = &mut self.databases[number];
            database.restart(self.env.clone());
            database.open()?;
            let sequence = database.recovered(self.loss)?;
            self.tell(|| format!("database {number}: recovered to {sequence}"));
            self.trace.add((sequence, self.fs.operations()));
            let database = &mut self.databases[number];
            database.check_all()?;
            database.apply(&Op::Verify)?;
            database.check_copies()?;
        }
        Ok(())
    }

    /// Does operations until the power goes, or something fails for good.
    fn operate(&mut self, round: u64, watch: &mut dyn FnMut(u64)) {
        let faults = match self.rng.chance(self.options.fault_percent) {
            true => faults::add(&self.faulty, &mut self.rng),
            false => Vec::new(),
        };
        (self.may_fail, self.was_told) = (!faults.is_empty(), false);
        self.fail_syncs(self.dice(round * ROUND + ROUND - 2));
        self.databases.iter_mut().for_each(|database| database.may_fail = self.may_fail);
        if !faults.is_empty() {
            self.tell(|| format!("faults: {faults:?}"));
        }
        self.trip();
        for index in 0..self.rng.below(self.options.ops_per_round) {
            let number = round * ROUND + index;
            if !self.part.has(number) {
                continue;
            }
            let mut dice = self.dice(number);
            self.generator.reseed(&mut dice, number << 10);
            let op = self.generator.draw();
            let database = dice.index(self.databases.len());
            self.tell(|| format!("{number} database {database}: {}", brief(&op)));
            watch(number);
            self.operations.push(number);
            let outcome = self.apply(database, &op);
            self.assert_stopped_by_names();
            // One clock, and one thread's steps, for all.
            for other in &mut self.databases {
                other.look_at_the_clock();
            }
            let last = self.databases[database].model.last_sequence();
            self.trace.add((outcome.is_ok(), last, self.fs.operations()));
            if let Err(error) = outcome {
                self.tell(|| format!("error: {error}"));
                if self.fs.is_off() || self.is_over(&op, &error) {
                    if matches!(error, Error::Poisoned(_)) && !opens_a_copy(&op) && !self.fs.is_off() {
                        self.databases[database].assert_stopped();
                    }
                    return;
                }
            }
            // What was told is lost most easily just after it was told.
            self.was_told = is_told_durable(&op) && dice.chance(self.options.crash_told_percent);
            if self.was_told {
                return;
            }
            self.env.jobs.step_some(dice.index(self.options.steps_max + 1));
        }
        self.recover_from_faults();
    }

    /// Has code that tables ask panic, now and then.
    fn trip(&mut self) {
        let mut dice = self.rng.clone().fork();
        self.panics = dice.chance(self.options.panic_percent);
        if !self.panics {
            return;
        }
        let within = [10, 100, 1000][dice.index(3)];
        let (call, more) = (1 + dice.below(within), [0, 3, 1000][dice.index(3)]);
        self.options.config.trip.set(call, more);
        self.tell(|| format!("code of tables panics at call {call} and {more} times more"));
        self.may_fail = true;
        self.databases.iter_mut().for_each(|database| database.may_fail = true);
    }

    fn apply(&mut self, number: usize, op: &Op) -> Result<(), Error> {
        if !matches!(op, Op::Fork) || self.databases.len() == DATABASES_MAX {
            return self.databases[number].apply(op);
        }
        let copy = self.databases[number].fork()?;
        self.databases.push(copy);
        let copy = self.databases.last_mut().expect("just added");
        copy.open()?;
        copy.check_all()
    }

    /// Judges an error while the power is on: only faults excuse it. Tells whether the round must end.
    fn is_over(&self, op: &Op, error: &Error) -> bool {
        assert!(self.may_fail, "{} failed without a cause: {error}", brief(op));
        assert!(!error.is_corruption() && !error.is_bug(), "{} took a fault for another: {error}", brief(op));
        is_doubtful(op) || matches!(error, Error::Poisoned(_))
    }

    /// Loses power, or only the process.
    fn crash(&mut self) {
        let only_process = self.rng.chance(self.options.process_crash_percent);
        // In the midst of something, or after what was done last.
        let in_midst = self.fs.is_off();
        self.lose(if only_process { Durability::Os } else { Durability::Disk });
        self.tell(|| format!("crash: only of the process: {only_process}"));
        let mut dice = self.rng.clone().fork();
        if dice.chance(self.options.damage_percent) {
            self.ask_damaged(dice, in_midst);
        }
    }

    /// The process is lost, or (`Disk`) the power.
    fn lose(&mut self, loss: Durability) {
        // Off before anything is dropped, so that nothing is closed in order.
        let left = match loss {
            Durability::Disk => self.fs.power_cycle(),
            _ => self.fs.process_cycle(),
        };
        self.databases.iter_mut().for_each(Harness::abandon);
        self.env.jobs.abandon();
        self.crashes += 1;
        self.fs = left;
        self.options.config.trip.clear();
        if loss == Durability::Disk {
            (self.loss, self.may_forget) = (Durability::Disk, false);
        }
    }
}
