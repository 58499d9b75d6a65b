//! Readers beside a writer: two environments over one file system in memory stand for two processes. Locks exclude each
//! other there as they do between processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay::{Database, Durability, Error, Layout, Options, OrderedTable, Result, Snapshot};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
use forebay_env::{Env, FileSystem, Rng};

pub(crate) const DIR: &str = "/db";
const LAYOUTS: [&str; 6] =
    ["wb-tree:ordered", "leveling:t=3", "jungle:c=2,t=4", "range-merge", "range-merge:c=2", "tiering:t=3"];

pub(crate) fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(8 << 10).env(env.clone())
}

pub(crate) fn reader_of(env: &Env) -> Result<Database> {
    Database::open(DIR, options(env).read_only(true))
}

pub(crate) fn envs() -> (Arc<MemoryFs>, Env, Env) {
    let fs = MemoryFs::new();
    let (one, other) = (Env::simulated(fs.clone(), 1), Env::simulated(fs.clone(), 2));
    (fs, one, other)
}

pub(crate) fn all(table: &OrderedTable) -> BTreeMap<Vec<u8>, Vec<u8>> {
    table.range(..).unwrap().map(|entry| entry.unwrap()).collect()
}

pub(crate) fn all_at(snapshot: &Snapshot, table: &OrderedTable) -> BTreeMap<Vec<u8>, Vec<u8>> {
    snapshot.range(table, ..).unwrap().map(|entry| entry.unwrap()).collect()
}

/// The names of lists, trees and value files.
pub(crate) fn files(fs: &dyn FileSystem) -> usize {
    let is_file = |name: &String| [".list", ".tree", ".values"].iter().any(|kind| name.ends_with(kind));
    fs.list(Path::new(DIR)).unwrap().iter().filter(|name| is_file(name)).count()
}

pub(crate) fn leases(fs: &dyn FileSystem) -> usize {
    fs.list(&Path::new(DIR).join("readers")).map_or(0, |names| names.len())
}

/// Lets background work remove what it may.
pub(crate) fn come_to_rest(env: &Env, db: &Database) {
    db.wait_until_idle().unwrap();
    for _ in 0..40 {
        env.jobs.advance(Duration::from_millis(500));
        env.jobs.step_some(500);
    }
}

pub(crate) fn fill(table: &OrderedTable, stamp: u32) {
    for key in 0..400u32 {
        table.put(key.to_be_bytes(), format!("value {stamp} of {key}, which is not short")).unwrap();
    }
}

#[test]
fn a_reader_sees_what_was_written_once_it_refreshes() {
    let (_, env, other) = envs();
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    table.put("a", "1").unwrap();
    let reader = reader_of(&other).unwrap();
    let seen = reader.table("t").existing(true).open().unwrap();
    assert_eq!(seen.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(reader.refresh().unwrap(), 1);

    table.put("a", "2").unwrap();
    let fresh = db.table("fresh").open().unwrap();
    fresh.put("b", "3").unwrap();
    db.savepoint("then").unwrap();
    table.delete("a").unwrap();
    assert_eq!(seen.get("a").unwrap().as_deref(), Some(&b"1"[..]), "as of then");
    let snapshot = reader.snapshot();
    assert_eq!((reader.refresh().unwrap(), reader.last_sequence()), (4, 4));
    assert_eq!(seen.get("a").unwrap(), None);
    assert_eq!(snapshot.get(&seen, b"a").unwrap().as_deref(), Some(&b"1"[..]));
    let also = reader.table("fresh").existing(true).open().unwrap();
    assert_eq!(also.get("b").unwrap().as_deref(), Some(&b"3"[..]));
    let kept = reader.open_savepoint("then").unwrap();
    assert_eq!(kept.get(&seen, b"a").unwrap().as_deref(), Some(&b"2"[..]));

    db.drop_table("fresh").unwrap();
    db.drop_savepoint("then").unwrap();
    reader.refresh().unwrap();
    assert!(matches!(also.get("b"), Err(Error::NotFound(_))));
    assert!(reader.open_savepoint("then").is_err() && reader.savepoints().is_empty());
    assert!(matches!(seen.put("a", "4"), Err(Error::Invalid(_))), "it only reads");

    // What is in no file yet is not seen.
    let mut batch = forebay::Batch::new();
    batch.put(&table, b"m", b"1");
    let last = db.commit(batch, Durability::Memory).unwrap();
    assert!(reader.refresh().unwrap() < last && seen.get("m").unwrap().is_none());
    db.sync().unwrap();
    assert_eq!(reader.refresh().unwrap(), last);
    assert!(seen.get("m").unwrap().is_some());
    // A writer sees everything as it is.
    assert_eq!(db.refresh().unwrap(), last);
}

#[test]
fn rollbacks_and_other_layouts_are_followed() {
    let (_, env, other) = envs();
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").layout("wb-tree:ordered".parse().unwrap()).open_ordered().unwrap();
    fill(&table, 1);
    db.savepoint("then").unwrap();
    let then = all(&table);
    let reader = reader_of(&other).unwrap();
    let seen = reader.table("t").existing(true).open_ordered().unwrap();
    fill(&table, 2);
    reader.refresh().unwrap();
    let before = reader.snapshot();
    assert_eq!(all(&seen), all(&table));
    db.rollback("then").unwrap();
    reader.refresh().unwrap();
    assert_eq!(all(&seen), then);
    table.set_layout("leveling:t=3".parse().unwrap()).unwrap();
    table.put("after", "1").unwrap();
    assert_eq!(reader.refresh().unwrap(), db.last_sequence());
    assert_eq!(all(&seen), all(&table));
    fill(&table, 3);
    come_to_rest(&env, &db);
    assert_eq!(all_at(&before, &seen).len(), 400, "snapshots stay");
    assert!(all_at(&before, &seen).values().all(|value| value.starts_with(b"value 2")));
    reader.refresh().unwrap();
    assert_eq!(all(&seen), all(&table));
}

/// Whatever the writer merges meanwhile, a reader that does not refresh goes on seeing what it did; the files go once it
/// refreshes, and those that only its snapshot needs once that is gone.
#[test]
fn files_stay_for_as_long_as_a_reader_needs_them_and_no_longer() {
    for layout in LAYOUTS {
        let (fs, env, other) = envs();
        let db = Database::open(DIR, options(&env)).unwrap();
        let table = db.table("t").layout(layout.parse().unwrap()).open_ordered().unwrap();
        fill(&table, 1);
        db.flush().unwrap();
        let reader = reader_of(&other).unwrap();
        let seen = reader.table("t").existing(true).open_ordered().unwrap();
        let then = all(&table);
        for stamp in 2..8 {
            fill(&table, stamp);
            table.compact().unwrap();
        }
        come_to_rest(&env, &db);
        let stats = db.stats();
        assert_eq!(stats.readers.len(), 1, "{layout}");
        assert_eq!(stats.readers[0].process, u64::from(std::process::id()));
        assert!(stats.readers[0].held_bytes > 0, "{layout}: {stats}");
        assert_eq!(all(&seen), then, "{layout}");
        let snapshot = reader.snapshot();
        reader.refresh().unwrap();
        assert_eq!(all(&seen), all(&table), "{layout}");
        come_to_rest(&env, &db);
        assert_eq!(all_at(&snapshot, &seen), then, "{layout}: a snapshot");
        drop(snapshot);
        reader.refresh().unwrap();
        come_to_rest(&env, &db);
        let stats = db.stats();
        assert_eq!(stats.readers[0].held_bytes, 0, "{layout}: {stats}");
        assert_eq!(files(&*fs) as u64, stats.list_files, "{layout}");
        drop((seen, reader));
        assert_eq!((leases(&*fs), db.stats().readers.len()), (0, 0), "{layout}");
    }
}

#[test]
fn a_dead_reader_leaves_nothing_and_holds_nothing() {
    let fs = CrashFs::new(1);
    let env = Env::simulated(fs.clone(), 1);
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").layout("wb-tree:ordered".parse().unwrap()).open_ordered().unwrap();
    fill(&table, 1);
    db.flush().unwrap();
    let reader = reader_of(&Env::simulated(fs.clone(), 2)).unwrap();
    fill(&table, 2);
    table.compact().unwrap();
    assert_eq!(leases(&*fs), 1);
    // Both processes are lost.
    let left = fs.process_cycle();
    env.jobs.abandon();
    assert_eq!(leases(&*left), 1, "its lease is there, and nobody holds it");
    let env = Env::simulated(left.clone(), 3);
    drop((table, db, reader));
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").layout("wb-tree:ordered".parse().unwrap()).open_ordered().unwrap();
    table.put("k", "v").unwrap();
    come_to_rest(&env, &db);
    assert_eq!((leases(&*left), db.stats().readers.len()), (0, 0));
    assert_eq!(files(&*left) as u64, db.stats().list_files);
}

/// A writer that dies and comes back, readers that come, refresh and go, at random: each sees whole batches up to some
/// number, never goes back, and nothing is removed under it.
#[test]
fn whoever_comes_and_goes_each_reader_sees_what_there_was_at_a_number() {
    for seed in 0..60 {
        History::new(seed).run();
    }
}

/// A writer of one table, and what there was at each number.
struct History {
    seed: u64,
    rng: Rng,
    layout: &'static str,
    fs: Arc<MemoryFs>,
    faulty: Arc<FaultyFs>,
    env: Env,
    db: Option<(OrderedTable, Database)>,
    /// By the number of the last record.
    states: BTreeMap<u64, BTreeMap<Vec<u8>, Vec<u8>>>,
    readers: Vec<Seen>,
}

struct Seen {
    snapshots: Vec<(u64, Snapshot)>,
    table: OrderedTable,
    db: Database,
    last: u64,
}

impl History {
    fn new(seed: u64) -> Self {
        let (fs, mut rng) = (MemoryFs::new(), Rng::new(seed));
        let layout = LAYOUTS[rng.index(LAYOUTS.len())];
        let (faulty, env) = Self::process(&fs, seed);
        let states = BTreeMap::from([(0, BTreeMap::new())]);
        let mut history = Self { seed, rng, layout, fs, faulty, env, db: None, states, readers: Vec::new() };
        history.open();
        history
    }

    fn process(fs: &Arc<MemoryFs>, seed: u64) -> (Arc<FaultyFs>, Env) {
        let faulty = FaultyFs::new(Arc::clone(fs) as Arc<dyn FileSystem>);
        (Arc::clone(&faulty), Env::simulated(faulty, seed))
    }

    fn open(&mut self) {
        let keep = [0, 100 << 10][self.rng.index(2)];
        let db = Database::open(DIR, options(&self.env).keep_changes(keep)).unwrap();
        let table = db.table("t").layout(self.layout.parse().unwrap()).node_bytes(8 << 10);
        let table = if self.seed.is_multiple_of(3) { table.values_apart(100) } else { table };
        let table = table.open_ordered().unwrap();
        let last = db.last_sequence();
        self.states.retain(|sequence, _| *sequence <= last);
        assert_eq!(self.states.keys().next_back(), Some(&last), "seed {}: a batch in part", self.seed);
        assert_eq!(all(&table), self.states[&last], "seed {}", self.seed);
        self.db = Some((table, db));
    }

    /// The process is lost: nothing that it does from here on reaches a file, and its locks are free.
    fn kill(&mut self) {
        self.faulty.rule("any * all io-error").unwrap();
        self.env.jobs.abandon();
        self.db = None;
        (self.faulty, self.env) = Self::process(&self.fs, self.rng.next_u64());
    }

    fn write(&mut self) {
        let Some((table, db)) = &self.db else { return };
        let mut state = self.states.values().next_back().unwrap().clone();
        let mut batch = forebay::Batch::new();
        for _ in 0..1 + self.rng.below(20) {
            let key = format!("key {:03}", self.rng.below(300)).into_bytes();
            if self.rng.chance(20) {
                batch.delete(table, &key);
                state.remove(&key);
            } else {
                let value = vec![self.rng.below(256) as u8; self.rng.index(200)];
                batch.put(table, &key, &value);
                state.insert(key, value);
            }
        }
        let durability = [Durability::Memory, Durability::Os, Durability::Disk][self.rng.index(3)];
        let last = db.commit(batch, durability).unwrap();
        self.states.insert(last, state);
    }

    fn look(&mut self) {
        let seed = self.seed;
        if self.readers.len() < 3 && self.rng.chance(30) {
            let env = Env::simulated(self.fs.clone(), self.rng.next_u64());
            let db = reader_of(&env).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let table = db.table("t").existing(true).open_ordered().unwrap();
            self.readers.push(Seen { snapshots: Vec::new(), table, db, last: 0 });
        }
        if self.readers.is_empty() {
            return;
        }
        let at = self.rng.index(self.readers.len());
        let reader = &mut self.readers[at];
        // As it was, whatever was removed since.
        for (sequence, snapshot) in &reader.snapshots {
            assert_eq!(
                all_at(snapshot, &reader.table),
                self.states[sequence],
                "seed {seed}: snapshot of {sequence}"
            );
        }
        if reader.last > 0 {
            assert_eq!(all(&reader.table), self.states[&reader.last], "seed {seed}: at {}", reader.last);
        }
        let since = reader.last;
        let last = reader.db.refresh().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(last >= reader.last, "seed {seed}: {last} after {}", reader.last);
        reader.last = last;
        let state =
            self.states.get(&last).unwrap_or_else(|| panic!("seed {seed}: half of a batch at {last}"));
        assert_eq!(all(&reader.table), *state, "seed {seed}: at {last}");
        match reader.db.changes(since) {
            Ok(changes) => {
                let ends: Vec<u64> = changes.map(|batch| batch.unwrap().last_sequence).collect();
                let ended = self.states.keys().copied();
                let expected: Vec<u64> = ended.filter(|end| (since + 1..=last).contains(end)).collect();
                // 0 is for all that the log still has.
                let is_right = if since == 0 { expected.ends_with(&ends) } else { ends == expected };
                assert!(is_right, "seed {seed}: {ends:?}, not {expected:?}");
            }
            Err(Error::ChangesGone { .. }) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
        match self.rng.below(8) {
            0 => reader.snapshots.push((last, reader.db.snapshot())),
            1 => drop(reader.snapshots.drain(..)),
            2 => drop(self.readers.swap_remove(at)),
            _ => {}
        }
    }

    fn run(mut self) {
        let seed = self.seed;
        for _ in 0..250 {
            match self.rng.below(100) {
                0..55 => self.write(),
                55..75 => self.env.jobs.step_some(self.rng.clone().index(60)),
                75..78 => {
                    let Some((_, db)) = &self.db else { continue };
                    db.flush().unwrap();
                }
                78..80 => {
                    let Some((table, _)) = &self.db else { continue };
                    table.compact().unwrap();
                }
                80..82 => {
                    self.kill();
                    // Readers come, too, while nobody writes.
                    self.look();
                    self.open();
                }
                82 => {
                    let (table, db) = self.db.take().unwrap();
                    drop(table);
                    db.close().unwrap();
                    self.look();
                    self.open();
                }
                83 => self.env.jobs.advance(Duration::from_secs(2)),
                _ => self.look(),
            }
        }
        self.readers.iter_mut().for_each(|reader| reader.snapshots.clear());
        for reader in &self.readers {
            reader.db.refresh().unwrap();
        }
        let (table, db) = self.db.take().unwrap();
        // One edit more: what was sealed before it is known to be durable.
        db.savepoint("end").unwrap_or(0);
        for reader in &self.readers {
            reader.db.refresh().unwrap();
            assert_eq!(all(&reader.table), all(&table), "seed {seed}: at the end");
        }
        let _ = db.drop_savepoint("end");
        come_to_rest(&self.env, &db);
        for reader in &self.readers {
            reader.db.refresh().unwrap();
        }
        come_to_rest(&self.env, &db);
        let stats = db.stats();
        assert_eq!(stats.readers.len(), self.readers.len());
        assert!(
            stats.readers.iter().all(|reader| reader.held_bytes == 0),
            "seed {seed}: {:?}",
            stats.readers
        );
        self.readers.clear();
        assert_eq!(leases(&*self.fs), 0, "seed {seed}");
        assert_eq!(files(&*self.fs) as u64, stats.list_files + stats.values.files, "seed {seed}");
    }
}

#[test]
fn a_database_that_is_read_is_not_destroyed() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 1);
    let db = Database::open(DIR, options(&env)).unwrap();
    db.table("t").open().unwrap().put("a", "1").unwrap();
    let reader = reader_of(&Env::simulated(fs.clone(), 2)).unwrap();
    // By whoever has made it, too.
    let refused = db.take_back();
    assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
    let seen = reader.table("t").existing(true).open().unwrap();
    assert_eq!(seen.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    drop((seen, reader));
    let db = Database::open(DIR, options(&env)).unwrap();
    assert_eq!(db.table("t").open().unwrap().get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(leases(&*fs), 0);
}

/// A table that somebody still held kept the lease, and so all files for ever.
#[test]
fn a_reader_that_is_closed_needs_nothing_whoever_holds_its_tables() {
    let (fs, env, other) = envs();
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").layout(Layout::wb_tree_ordered()).open_ordered().unwrap();
    fill(&table, 1);
    db.flush().unwrap();
    let reader = reader_of(&other).unwrap();
    let seen = reader.table("t").existing(true).open_ordered().unwrap();
    assert_eq!(leases(&*fs), 1);
    reader.close().unwrap();
    assert_eq!(leases(&*fs), 0);
    drop(table);
    db.take_back().unwrap();
    assert_eq!(all(&seen).len(), 400, "what it held open it reads on");
}

/// Buffers that had become full were shown as such before they had their bytes.
#[test]
fn a_snapshot_amid_a_refresh_is_of_one_moment() {
    let mut amid = 0;
    for seed in 0..30 {
        let (_, env, other) = envs();
        let db = Database::open(DIR, options(&env)).unwrap();
        let table = db.table("t").layout(Layout::wb_tree_ordered()).open_ordered().unwrap();
        fill(&table, 0);
        let reader = Arc::new(reader_of(&other).unwrap());
        let seen = reader.table("t").existing(true).open_ordered().unwrap();
        other.jobs.interleave(seed);
        for stamp in 1..6 {
            fill(&table, stamp);
            let is_done = Arc::new(AtomicBool::new(false));
            let refreshing = other.jobs.fork("refreshing", {
                let (reader, is_done) = (Arc::clone(&reader), Arc::clone(&is_done));
                move || {
                    reader.refresh().unwrap();
                    is_done.store(true, Ordering::SeqCst);
                }
            });
            other.jobs.step_some(seed as usize % 3 + stamp as usize % 2);
            let snapshot = reader.snapshot();
            let found = all_at(&snapshot, &seen);
            amid += usize::from(!is_done.load(Ordering::SeqCst));
            refreshing.join();
            assert_eq!(all_at(&snapshot, &seen), found, "seed {seed}, {stamp}");
        }
    }
    assert!(amid > 0, "none was taken amid a refresh");
}

/// Where no lease can be written a reader keeps writers out, as it is kept out by one; the error says what is missing.
#[test]
fn who_may_write_no_lease_reads_alone() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 1);
    let faulty = FaultyFs::new(fs.clone());
    let other = Env::simulated(faulty.clone(), 2);
    let db = Database::open(DIR, options(&env)).unwrap();
    db.table("t").open().unwrap().put("a", "1").unwrap();
    faulty.rule("lock *.lease all io-error").unwrap();
    let refused = reader_of(&other).unwrap_err().to_string();
    assert!(
        refused.contains("has the database open to write") && refused.contains("/db/readers"),
        "{refused}"
    );
    db.close().unwrap();
    let reader = reader_of(&other).unwrap();
    assert!(matches!(Database::open(DIR, options(&env)), Err(Error::Locked { .. })));
    assert_eq!(reader.refresh().unwrap(), 1);
    let seen = reader.table("t").existing(true).open().unwrap();
    assert_eq!(seen.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    drop((seen, reader));
    Database::open(DIR, options(&env)).unwrap();
}

/// Numbers of the writer, and none where nobody writes.
#[test]
fn a_reader_gets_the_writers_numbers() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 1);
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    (0..100u32).for_each(|key| table.put(key.to_be_bytes(), "value").unwrap());
    // One environment, so that waiting for the answer lets the writer work.
    let reader = reader_of(&env).unwrap();
    assert_eq!(reader.stats().user_records, 0, "it has written none");
    let told = reader.writer_stats(Duration::from_secs(3)).unwrap().unwrap();
    assert_eq!((told.user_records, told.last_sequence), (100, 100));
    assert_eq!(told.tables.len(), 1);
    assert_eq!(told.readers.len(), 1);
    assert_eq!(leases(&*fs), 1, "question and answer are gone");
    db.close().unwrap();
    assert!(reader.writer_stats(Duration::from_secs(3)).unwrap().is_none(), "nobody writes");
    drop(reader);
    assert_eq!(leases(&*fs), 0);
}

/// A table's bound is not kept where a reader holds what merges free. Whoever writes is told which process it is.
#[test]
fn a_reader_that_never_refreshes_is_named_where_there_is_no_room() {
    let (_, env, other) = envs();
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").layout("leveling:t=3".parse().unwrap()).max_space_amplification(1.5);
    let table = table.open_ordered().unwrap();
    fill(&table, 1);
    let reader = reader_of(&other).unwrap();
    let written = (2..200).find_map(|stamp| {
        (0..400u32).find_map(|key| {
            table.put(key.to_be_bytes(), format!("value {stamp} of {key}, which is long")).err()
        })
    });
    let refused = written.expect("the bound is kept").to_string();
    let process = format!("process {}, which reads the database", std::process::id());
    assert!(refused.contains(&process) && refused.contains("refreshes"), "{refused}");
    // What is merged from here on is held again, until the next refresh.
    for _ in 0..20 {
        reader.refresh().unwrap();
        env.jobs.advance(Duration::from_millis(500));
        env.jobs.step_some(500);
    }
    table.put("now", "there is room").unwrap();
    reader.refresh().unwrap();
    let seen = reader.table("t").existing(true).open_ordered().unwrap();
    assert_eq!(all(&seen), all(&table));
}
