//! Four threads reading and one writing on the machine's own files and threads, with snapshots held across
//! spills and splits: whatever a reader sees is whole. Each thread does a fixed number of operations.

#![expect(clippy::disallowed_methods, reason = "the users of a database bring threads of their own")]

use std::path::PathBuf;
use std::sync::Arc;

use forebay::aggregate::functions::Count;
use forebay::{Batch, Database, Durability, Error, Layout, Options, OrderedTable, Table};
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::{Env, FileSystem, Rng, sync};

/// A directory of this test alone, removed at its end.
struct TestDir {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
}

impl TestDir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("forebay-test-{}-{name}", std::process::id()));
        let fs = Env::real().fs;
        fs.create_dir_all(&path).unwrap();
        Self { fs, path }
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        for name in self.fs.list(&self.path).unwrap_or_default() {
            let _ = self.fs.remove(&self.path.join(name));
        }
        let _ = self.fs.remove_dir(&self.path);
    }
}

const KEYS: u64 = 500;
const BATCHES: u64 = 6000;
const LOOKS: u64 = 1500;

/// Two tables that are always written together: each key has the same counter in both, and counters grow.
struct Bank {
    db: Database,
    hashed: Table,
    ordered: OrderedTable,
    /// The last batch that was acknowledged.
    acknowledged: AtomicU64,
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn counter(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

impl Bank {
    fn open(dir: &TestDir) -> Self {
        let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10);
        let db = Database::open(&dir.path, options).unwrap();
        let builder = |name: &str| db.table(name).node_bytes(16 << 10).fan_out(3).fast_per_slow(2);
        let hashed = builder("hashed").open().unwrap();
        let ordered = builder("ordered").layout(Layout::wb_tree_ordered()).open_ordered().unwrap();
        Self { db, hashed, ordered, acknowledged: AtomicU64::new(0) }
    }

    /// Batch `number` sets three keys to its number, in both tables, and the key that says which batch.
    fn write(&self, rng: &mut Rng, number: u64, durability: Durability) {
        let mut batch = Batch::new();
        let mut value = number.to_le_bytes().to_vec();
        value.resize(8 + rng.index(40), 7);
        for key in [key(rng.below(KEYS)), key(rng.below(KEYS)), key(KEYS)] {
            batch.put(&self.hashed, key, &value);
            batch.put(&self.ordered, key, &value);
        }
        self.db.commit(batch, durability).unwrap();
        self.acknowledged.store(number, Ordering::Release);
    }

    /// A snapshot holds everything acknowledged before it, each batch whole.
    fn look(&self, rng: &mut Rng) -> forebay::Snapshot {
        let acknowledged = self.acknowledged.load(Ordering::Acquire);
        let snapshot = self.db.snapshot();
        let newest =
            |table: &Table| snapshot.get(table, key(KEYS)).unwrap().map_or(0, |value| counter(&value));
        let (hashed, ordered) = (newest(&self.hashed), newest(&self.ordered));
        assert_eq!(hashed, ordered, "a batch is in one table and not in the other");
        assert!(
            hashed >= acknowledged,
            "batch {acknowledged} was acknowledged and is not in a later snapshot"
        );
        let asked = key(rng.below(KEYS));
        assert_eq!(snapshot.get(&self.hashed, asked).unwrap(), snapshot.get(&self.ordered, asked).unwrap());
        snapshot
    }

    /// All of a snapshot: the same in both tables, and never newer than the snapshot's newest batch.
    fn look_through(&self, snapshot: &forebay::Snapshot) {
        let collect =
            |scan: forebay::Result<forebay::Scan>| -> Vec<_> { scan.unwrap().map(Result::unwrap).collect() };
        let mut hashed = collect(snapshot.iter(&self.hashed));
        hashed.sort();
        let ordered = collect(snapshot.range(&self.ordered, ..));
        assert!(hashed == ordered, "the tables differ in one snapshot");
        let newest = snapshot.get(&self.hashed, key(KEYS)).unwrap().map_or(0, |value| counter(&value));
        assert!(
            ordered.iter().all(|(_, value)| counter(value) <= newest),
            "a record newer than the snapshot"
        );
        let mut backward: Vec<_> =
            snapshot.range(&self.ordered, ..).unwrap().rev().map(Result::unwrap).collect();
        backward.reverse();
        assert!(backward == ordered, "forward and backward differ in one snapshot");
    }
}

fn read(bank: &Bank, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut seen = vec![0; KEYS as usize];
    let mut held = None;
    for look in 0..LOOKS {
        let number = rng.below(KEYS);
        let found = bank.hashed.get(key(number)).unwrap().map_or(0, |value| counter(&value));
        let last = &mut seen[number as usize];
        assert!(found >= *last, "a counter went back from {last} to {found}");
        *last = found;
        let snapshot = bank.look(&mut rng);
        if look % 200 == 0 {
            bank.look_through(&snapshot);
            // Held while the writer goes on, then read once more: it must not have moved.
            if let Some((older, answer)) = held.replace((snapshot, found)) {
                let older: forebay::Snapshot = older;
                bank.look_through(&older);
                assert!(answer <= bank.acknowledged.load(Ordering::Acquire) + 1);
            }
        }
    }
}

#[test]
fn four_threads_read_what_one_writes() {
    let dir = TestDir::new("threads");
    let bank = Arc::new(Bank::open(&dir));
    let readers: Vec<_> = (0..4)
        .map(|seed| {
            let bank = Arc::clone(&bank);
            sync::spawn(move || read(&bank, seed))
        })
        .collect();
    // Verifying a database that is being written finds nothing wrong.
    let verifier = {
        let bank = Arc::clone(&bank);
        sync::spawn(move || {
            for _ in 0..40 {
                assert_eq!(bank.db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new());
            }
        })
    };
    let mut rng = Rng::new(99);
    for number in 1..=BATCHES {
        let durability = [Durability::Memory, Durability::Os, Durability::Os, Durability::Disk][rng.index(4)];
        bank.write(&mut rng, number, durability);
        if number % 2000 == 0 {
            bank.db.flush().unwrap();
            assert_eq!(bank.db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new());
        }
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    verifier.join().unwrap();
    let stats = bank.db.stats();
    assert!(stats.tables.iter().all(|table| table.levels.len() >= 2), "the trees did not grow");
    let bank = Arc::into_inner(bank).unwrap();
    let Bank { db, hashed, ordered, .. } = bank;
    drop((hashed, ordered));
    db.close().unwrap();
    let bank = Bank::open(&dir);
    bank.look_through(&bank.db.snapshot());
    assert_eq!(counter(&bank.hashed.get(key(KEYS)).unwrap().unwrap()), BATCHES);
}

/// Group commit: every thread's own batches are there, in its own order, whoever wrote them for it.
#[test]
fn four_threads_write_at_every_durability() {
    let dir = TestDir::new("writers");
    let options = || Options::default().memory_limit(1 << 20).write_buffer(16 << 10);
    let db = Arc::new(Database::open(&dir.path, options()).unwrap());
    let table = db.table("t").node_bytes(16 << 10).open().unwrap();
    let writers: Vec<_> = (0..4u64)
        .map(|writer| {
            let (db, table) = (Arc::clone(&db), table.clone());
            sync::spawn(move || {
                let mut last = 0;
                for number in 0..500u64 {
                    let mut batch = Batch::new();
                    batch.put(&table, key((writer + 1) << 32 | number), number.to_le_bytes());
                    batch.put(&table, key(writer), number.to_le_bytes());
                    let durability =
                        [Durability::Memory, Durability::Os, Durability::Disk][number as usize % 25 % 3];
                    let sequence = db.commit(batch, durability).unwrap();
                    assert!(
                        sequence > last
                            && (durability != Durability::Disk || db.durable_sequence() >= sequence)
                    );
                    last = sequence;
                    assert_eq!(counter(&table.get(key(writer)).unwrap().unwrap()), number);
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(db.last_sequence(), 4 * 500 * 2);
    drop(table);
    Arc::into_inner(db).unwrap().close().unwrap();
    let db = Database::open(&dir.path, options()).unwrap();
    let table = db.table("t").open().unwrap();
    assert_eq!(table.iter().unwrap().count(), 4 * 500 + 4);
}

/// Two threads count, each batch once under every key; others look. Counts never fall, those of one moment are equal,
/// and a snapshot's stay.
#[test]
fn threads_read_counters_that_others_add_to() {
    const COUNTED: u64 = 10_000;
    let dir = TestDir::new("counters");
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10);
    let db = Arc::new(Database::open(&dir.path, options).unwrap());
    let hits = db.aggregator("hits", Count).node_bytes(16 << 10).open().unwrap();
    let keys: Vec<[u8; 8]> = (0..6).map(key).collect();
    let writers: Vec<_> = (0..2u64)
        .map(|_| {
            let (db, hits, keys) = (Arc::clone(&db), hits.clone(), keys.clone());
            sync::spawn(move || {
                for _ in 0..COUNTED {
                    let mut batch = Batch::new();
                    keys.iter().for_each(|key| batch.add(&hits, key, ()));
                    db.commit(batch, Durability::Os).unwrap();
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..3u64)
        .map(|seed| {
            let (db, hits, keys) = (Arc::clone(&db), hits.clone(), keys.clone());
            sync::spawn(move || {
                let (mut rng, mut last) = (Rng::new(seed), 0);
                for _ in 0..400 {
                    let found = hits.get(keys[rng.index(6)]).unwrap().unwrap_or(0);
                    assert!(found >= last, "{found} after {last}");
                    let all = hits.multi_get(&keys).unwrap();
                    assert!(all.iter().all(|count| *count == all[0]), "{all:?}");
                    assert!(all[0].unwrap_or(0) >= found);
                    let snapshot = db.snapshot();
                    let seen = hits.at(&snapshot).get(keys[0]).unwrap();
                    last = hits.get(keys[1]).unwrap().unwrap_or(0);
                    let entries: Vec<_> = hits.at(&snapshot).iter().unwrap().map(Result::unwrap).collect();
                    assert!(entries.iter().all(|(_, count)| Some(*count) == seen), "{seen:?} {entries:?}");
                }
            })
        })
        .collect();
    writers.into_iter().chain(readers).for_each(|thread| thread.join().unwrap());
    assert_eq!(hits.multi_get(&keys).unwrap(), vec![Some(2 * COUNTED); 6]);
}

/// A buffer was gone before its lists were among those that follow a rewrite, and what it held with it.
#[test]
fn a_table_that_changes_its_layout_loses_nothing_of_its_writers() {
    const WRITERS: u64 = 2;
    const WRITES: u64 = 8_000;
    let dir = TestDir::new("layouts-beside-writers");
    let options = Options::default().memory_limit(1 << 20).write_buffer(8 << 10);
    let db = Database::open(&dir.path, options).unwrap();
    let table = db.table("t").layout(Layout::leveling(4)).open().unwrap();
    let writing = AtomicU64::new(WRITERS);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (table, writing) = (table.clone(), &writing);
            scope.spawn(move || {
                for number in 0..WRITES {
                    let (key, value) = (key(number % KEYS * WRITERS + writer), number.to_le_bytes());
                    table.put(key, value).unwrap();
                    let got = table.get(key).unwrap().map(|value| counter(&value));
                    assert_eq!(got, Some(number), "writer {writer}");
                }
                writing.fetch_sub(1, Ordering::AcqRel);
            });
        }
        let layouts = [Layout::wb_tree(), Layout::tiering(4), Layout::jungle(2.0), Layout::leveling(4)];
        for layout in layouts.into_iter().cycle().take(40) {
            if writing.load(Ordering::Acquire) == 0 {
                break;
            }
            table.set_layout(layout).unwrap();
        }
    });
    for number in WRITES - KEYS..WRITES {
        for writer in 0..WRITERS {
            let got = table.get(key(number % KEYS * WRITERS + writer)).unwrap();
            assert_eq!(got.map(|value| counter(&value)), Some(number), "writer {writer}");
        }
    }
    assert_eq!(table.iter().unwrap().count() as u64, KEYS * WRITERS);
    drop(table);
    db.close().unwrap();
}

/// Whoever had opened the lock's file of a database that was then destroyed held a lock on what had no name any more,
/// and the next one made a file of that name and locked that: two owners of one directory.
#[test]
fn a_database_that_others_destroy_has_one_owner() {
    let dir = TestDir::new("destroyed");
    let (path, owners) = (dir.path.join("db"), AtomicU64::new(0));
    let options = || Options::default().memory_limit(1 << 20).write_buffer(4 << 10);
    let live = || {
        for _ in 0..60 {
            match Database::open(&path, options()) {
                Ok(db) => {
                    assert_eq!(owners.fetch_add(1, Ordering::SeqCst), 0, "two owners");
                    let table = db.table("t").open().unwrap();
                    table.put(b"key", b"value").unwrap();
                    assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
                    owners.fetch_sub(1, Ordering::SeqCst);
                    db.close().unwrap();
                }
                Err(Error::Locked { .. }) => {}
                Err(error) => panic!("opened: {error}"),
            }
            match Database::destroy(&path) {
                Err(Error::Locked { .. }) => {}
                Err(error) if !error.is_not_found() => panic!("destroyed: {error}"),
                _ => {}
            }
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(live))));
}
