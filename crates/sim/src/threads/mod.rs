//! Real threads: writers, a reader, transactions that meet, and whoever changes layouts, copies and rolls back, all at
//! once on the engine's own threads. The stepper never lets anybody run between two lines of one step; here everybody may.
//!
//! Each writer has keys of its own and numbers its batches. So whoever reads knows which states are possible: after
//! each batch from the last that was acknowledged before the read began to the last that had begun when it ended.
//!
//! **Invariant:** what is written follows from the seed. When it is written does not, so a seed that failed once may
//! pass.

mod admin;
mod history;
mod meeting;

#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forebay::{
    Batch, Database, Durability, Error, Layout, Options, OrderedTable, Pool, Result, Snapshot, Table,
};
use forebay_env::fs::MemoryFs;
use forebay_env::sync::RwLock;
use forebay_env::{Env, Rng};
use forebay_testkit::ordered_layouts;

use history::{History, KEYS, WRITERS};
use meeting::{MEETING, Meeting};

/// How many tables there are: the first in hash order, the others in that of keys.
const TABLES: usize = 3;
/// The table that loses ranges.
const CUT: usize = 2;
/// Batches of each writer.
const BATCHES: u64 = 1500;

/// What came of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threaded {
    /// Batches that were written.
    pub batches: u64,
    /// What was done beside.
    pub acts: u64,
}

/// What all threads share.
struct World {
    db: Database,
    env: Env,
    options: Options,
    hashed: Table,
    ordered: Vec<OrderedTable>,
    history: History,
    meeting: Meeting,
    /// Held for writing while nobody may write or read: by a rollback.
    quiet: RwLock<()>,
    writing: AtomicUsize,
    failed: AtomicBool,
}

/// What somebody sees of the tables.
#[derive(Clone, Copy)]
enum Seen<'a> {
    Now,
    At(&'a Snapshot),
}

/// Runs a seed; panics where the engine breaks a promise.
pub fn run(seed: u64) -> Threaded {
    let mut rng = Rng::new(seed);
    let env = Env { fs: MemoryFs::new(), ..Env::real() };
    // By dice of its own: half of them on the threads of a pool, with the databases that come and go beside.
    let has_pool = rng.clone().fork().chance(50);
    let is_cached = rng.clone().fork().fork().chance(50);
    let options = Options::default()
        .write_buffer([4 << 10, 8 << 10, 32 << 10][rng.index(3)])
        .write_buffers(2 + rng.index(3))
        .system_cache(is_cached)
        .env(env.clone());
    let threads = [1, 2, 4][rng.index(3)];
    let options = match has_pool {
        true => options.pool(&Pool::new(8 << 20, threads).expect("memory and threads are enough")),
        false => options.memory_limit(4 << 20).background_threads(threads),
    };
    let world = World::open(&env, &options, &mut rng).expect("opening");
    let dice: Vec<Rng> = (0..WRITERS + 2 + MEETING).map(|_| rng.fork()).collect();
    let acts = std::thread::scope(|scope| {
        let world = &world;
        let mut threads = Vec::new();
        for (writer, dice) in dice[..WRITERS].iter().enumerate() {
            let mut rng = dice.clone();
            threads.push(scope.spawn(move || {
                let outcome = world.guarded(|| world.write_all(writer, &mut rng));
                world.writing.fetch_sub(1, Ordering::SeqCst);
                outcome.map(|()| 0)
            }));
        }
        let mut rng = dice[WRITERS].clone();
        threads.push(scope.spawn(move || world.guarded(|| world.read_all(&mut rng))));
        let mut rng = dice[WRITERS + 1].clone();
        threads.push(scope.spawn(move || world.guarded(|| admin::run(world, &mut rng))));
        for dice in &dice[WRITERS + 2..] {
            let mut rng = dice.clone();
            threads.push(scope.spawn(move || world.guarded(|| world.meeting.run(world, &mut rng))));
        }
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let mut acts = 0;
        for outcome in outcomes {
            match outcome.expect("panics are caught") {
                Ok(count) => acts += count,
                Err(panic) => resume_unwind(panic),
            }
        }
        acts
    });
    world.check_end(&env);
    Threaded { batches: WRITERS as u64 * BATCHES, acts }
}

impl World {
    fn open(env: &Env, options: &Options, rng: &mut Rng) -> Result<Self> {
        let db = Database::open(Path::new("/db"), options.clone())?;
        let layouts = ordered_layouts();
        let node_bytes = [4 << 10, 16 << 10][rng.index(2)];
        let hashed = db.table("t0").node_bytes(node_bytes).fan_out(4).open()?;
        let mut ordered = Vec::new();
        for number in 1..TABLES {
            let layout = layouts[rng.index(layouts.len())];
            let builder = db.table(&format!("t{number}")).layout(layout).node_bytes(node_bytes).fan_out(4);
            ordered.push(builder.open_ordered()?);
        }
        Ok(Self {
            env: env.clone(),
            options: options.clone(),
            hashed,
            ordered,
            history: History::new(TABLES),
            meeting: Meeting::open(&db, &mut rng.clone().fork())?,
            db,
            quiet: RwLock::new(()),
            writing: AtomicUsize::new(WRITERS),
            failed: AtomicBool::new(false),
        })
    }

    /// Catches a panic, and tells everybody to end.
    fn guarded<T>(&self, run: impl FnOnce() -> T) -> std::thread::Result<T> {
        let outcome = catch_unwind(AssertUnwindSafe(run));
        if outcome.is_err() {
            self.failed.store(true, Ordering::SeqCst);
        }
        outcome
    }

    fn is_over(&self) -> bool {
        self.failed.load(Ordering::SeqCst) || self.writing.load(Ordering::SeqCst) == 0
    }

    fn table(&self, number: usize) -> &Table {
        if number == 0 { &self.hashed } else { &self.ordered[number - 1] }
    }

    /// Keys of a writer begin with its number.
    fn key(writer: usize, key: usize) -> Vec<u8> {
        format!("{writer}-key-{key:04}").into_bytes()
    }

    /// Puts and deletes of the same keys in the first two tables, and now and then a range that the third one loses.
    fn write_all(&self, writer: usize, rng: &mut Rng) {
        for number in 1..=BATCHES {
            if self.failed.load(Ordering::SeqCst) {
                return;
            }
            let _others = self.quiet.read();
            let mut batch = Batch::new();
            let mut changed = Vec::new();
            for _ in 0..1 + rng.below(8) {
                let key = rng.index(KEYS);
                let value = (!rng.chance(20)).then(|| value(number, rng));
                for table in 0..TABLES {
                    match &value {
                        Some(value) => batch.put(self.table(table), Self::key(writer, key), value),
                        None => batch.delete(self.table(table), Self::key(writer, key)),
                    }
                    changed.push((table, key, value.clone()));
                }
            }
            // A range is deleted of tables in key order only, and the other order comes and goes for the first.
            if rng.chance(5) {
                let low = rng.index(KEYS);
                let high = (low + rng.index(20)).min(KEYS);
                let bounds = (Self::key(writer, low), Self::key(writer, high));
                batch.delete_range(&self.ordered[CUT - 1], &bounds.0[..]..&bounds.1[..]);
                changed.extend((low..high).map(|key| (CUT, key, None)));
            }
            let durability = [Durability::Memory, Durability::Os, Durability::Disk][rng.index(3)];
            self.history.begin(writer, number, changed);
            self.write(&mut batch, durability).unwrap_or_else(|error| {
                panic!("batch {number} of writer {writer}: {error}");
            });
            self.history.acknowledge(writer, number);
            if rng.chance(30) {
                self.read_own(writer, number, rng);
            }
        }
    }

    /// Writes a batch; again, where it deletes a range of a table that is just being sorted anew.
    fn write(&self, batch: &mut Batch, durability: Durability) -> Result<u64> {
        loop {
            match self.db.write(batch, durability) {
                Err(Error::Invalid(reason)) if reason.contains("ranges cannot be deleted") => {
                    std::thread::yield_now();
                }
                outcome => return outcome,
            }
        }
    }

    /// Who writes alone sees just what it has written.
    fn read_own(&self, writer: usize, number: u64, rng: &mut Rng) {
        let (table, key) = (rng.index(TABLES), rng.index(KEYS));
        let got = self.table(table).get(Self::key(writer, key)).expect("reading");
        let wanted = self.history.state(table, writer, key, number);
        assert!(
            got == wanted,
            "key {key} of writer {writer} in table {table} is {}, was {}",
            show(&got),
            show(&wanted)
        );
    }

    fn read_all(&self, rng: &mut Rng) -> u64 {
        let mut reads = 0;
        while !self.is_over() {
            let _others = self.quiet.read();
            let writer = rng.index(WRITERS);
            if rng.chance(90) {
                let (table, key) = (rng.index(TABLES), rng.index(KEYS));
                let before = self.history.acknowledged(writer);
                let got = self.table(table).get(Self::key(writer, key)).expect("reading");
                let possible = self.history.states(table, writer, key, before);
                assert!(
                    possible.contains(&got),
                    "key {key} of writer {writer} in table {table} is {}",
                    show(&got)
                );
            } else {
                let before = self.history.all_acknowledged();
                let snapshot = self.db.snapshot();
                self.check_whole(Seen::At(&snapshot), &before, "a snapshot");
            }
            reads += 1;
        }
        reads
    }

    /// All of what somebody sees are the states after one batch of each writer.
    fn check_whole(&self, seen: Seen<'_>, before: &[u64], what: &str) {
        let begun = self.history.all_begun();
        let tables: Vec<Contents> = (0..TABLES).map(|table| self.contents(table, seen)).collect();
        self.history.check(&tables, before, &begun, what);
    }

    fn contents(&self, table: usize, seen: Seen<'_>) -> Contents {
        let scan = match seen {
            Seen::Now => self.table(table).iter(),
            Seen::At(snapshot) => snapshot.iter(self.table(table)),
        };
        scan.and_then(Iterator::collect).expect("scanning")
    }

    /// Nobody writes any more: everything is as the last batches left it, also once it is opened again.
    fn check_end(self, env: &Env) {
        let ends = self.history.all_acknowledged();
        self.check_whole(Seen::Now, &ends, "the end");
        self.meeting.check();
        let options = self.options.clone().env(env.clone());
        let Self { db, history, .. } = self;
        db.close().expect("closing");
        let db = Database::open(Path::new("/db"), options).expect("opening again");
        check_database(&db, &history, &ends, &ends, "the end, opened again");
        let problems = db.verify(&mut |_, _| ()).expect("verifying").problems;
        assert!(problems.is_empty(), "verify found {problems:?}");
    }
}

/// What a table has, in its own order.
type Contents = std::collections::BTreeMap<Vec<u8>, Vec<u8>>;

/// A database that was opened beside, or again, has what the history says.
fn check_database(db: &Database, history: &History, before: &[u64], begun: &[u64], what: &str) {
    let names = (0..TABLES).map(|table| format!("t{table}"));
    let contents = |name: String| {
        let table = db.table(&name).existing(true).open()?;
        table.iter()?.collect()
    };
    let tables: Vec<Contents> = names.map(contents).collect::<Result<_>>().expect("scanning");
    history.check(&tables, before, begun, what);
}

fn value(number: u64, rng: &mut Rng) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    value.resize(8 + rng.index(100), number as u8);
    value
}

fn show(value: &Option<Vec<u8>>) -> String {
    match value {
        Some(value) => format!("of batch {}", history::number_of(value)),
        None => "not there".to_owned(),
    }
}

/// The other order than a layout's, and its own.
fn other_order(layout: Layout, rng: &mut Rng) -> Layout {
    if layout.is_ordered() {
        return Layout::wb_tree();
    }
    let layouts = ordered_layouts();
    layouts[rng.index(layouts.len())]
}
