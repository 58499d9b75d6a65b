//! Many transactions at once: in turns that a seed draws, and on threads. What was committed is done again one after the
//! other, and must have read what it reads there.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use forebay::aggregate::functions::Count;
use forebay::{Aggregator, Database, Error, Layout, Options, OrderedTable, Table, Transaction};
use forebay_env::fs::MemoryFs;
use forebay_env::sync::Mutex;
use forebay_env::{Env, Rng, yield_point};
use forebay_testkit::{Contents, Did, Done, Serial};

use super::layouts;

/// Few, so that transactions meet.
const KEYS: u64 = 12;
const HASHED: usize = 0;
const ORDERED: usize = 1;
const COUNTS: usize = 2;

#[derive(Clone)]
struct World {
    db: Arc<Database>,
    hashed: Table,
    ordered: OrderedTable,
    counts: Aggregator<Count>,
    single: Table,
    done: Arc<Mutex<Vec<Done>>>,
    conflicts: Arc<Mutex<u64>>,
}

fn key(rng: &mut Rng) -> Vec<u8> {
    format!("key {:02}", rng.below(KEYS)).into_bytes()
}

impl World {
    fn open(env: &Env, layout: Layout) -> Self {
        let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone());
        let db = Database::open(Path::new("/db"), options).unwrap();
        let ordered = if layout.is_ordered() { layout } else { Layout::wb_tree_ordered() };
        Self {
            hashed: db.table("hashed").open().unwrap(),
            ordered: db.table("ordered").layout(ordered).node_bytes(8 << 10).open_ordered().unwrap(),
            counts: db.aggregator("counts", Count).layout(layout).node_bytes(8 << 10).open().unwrap(),
            single: db.table("single").layout(layout).node_bytes(8 << 10).open().unwrap(),
            db: Arc::new(db),
            done: Arc::default(),
            conflicts: Arc::default(),
        }
    }

    fn table(&self, table: usize) -> &Table {
        if table == HASHED { &self.hashed } else { &self.ordered }
    }

    /// A transaction: some look only, some write only.
    fn transact(&self, rng: &mut Rng) {
        let begun = self.db.last_sequence();
        let mut transaction = self.db.begin();
        let (reads, writes) = [(5, 5), (5, 5), (10, 0), (0, 10)][rng.index(4)];
        let mut acts = Vec::new();
        for _ in 0..=rng.below(6) {
            yield_point("between two acts");
            let table = [HASHED, ORDERED][rng.index(2)];
            if rng.below(reads + writes) < reads {
                acts.push(match rng.below(8) {
                    0..5 => {
                        let key = key(rng);
                        let found = transaction.get(self.table(table), &key).unwrap();
                        Did::Get(table, key, found)
                    }
                    5..7 => {
                        let bounds = (Bound::Included(key(rng)), Bound::Excluded(key(rng)));
                        let slices =
                            (bounds.0.as_ref().map(|key| &key[..]), bounds.1.as_ref().map(|key| &key[..]));
                        let mut found: Vec<_> =
                            transaction.range(&self.ordered, slices).unwrap().map(Result::unwrap).collect();
                        found.sort();
                        Did::Walk(ORDERED, bounds, found)
                    }
                    _ => {
                        let key = key(rng);
                        let found = self.counts.at(&transaction.snapshot().unwrap()).get(&key).unwrap();
                        Did::Get(COUNTS, key, found.map(|count| count.to_le_bytes().to_vec()))
                    }
                });
                continue;
            }
            let key = key(rng);
            acts.push(match rng.below(10) {
                0..6 => {
                    let mut value = rng.next_u64().to_le_bytes().to_vec();
                    value.resize(8 + rng.index(60), 7);
                    transaction.put(self.table(table), &key, &value);
                    Did::Put(table, key, Some(value))
                }
                6 => {
                    transaction.delete(self.table(table), &key);
                    Did::Put(table, key, None)
                }
                7 => {
                    let bounds = (Bound::Included(key.clone()), Bound::Included(key));
                    let slices =
                        (bounds.0.as_ref().map(|key| &key[..]), bounds.1.as_ref().map(|key| &key[..]));
                    transaction.delete_range(&self.ordered, slices);
                    Did::Cut(ORDERED, bounds)
                }
                _ => {
                    transaction.add(&self.counts, &key, ());
                    Did::Add(COUNTS, key, 1)
                }
            });
        }
        let is_numbered = !transaction.is_empty();
        match transaction.commit() {
            Ok(number) if is_numbered => {
                self.done.lock().push(Done { begun, ended: number, is_numbered, acts })
            }
            Ok(_) => {
                let ended = self.db.last_sequence();
                self.done.lock().push(Done { begun, ended, is_numbered, acts });
            }
            Err(Error::Conflict(_)) => *self.conflicts.lock() += 1,
            Err(error) => panic!("{error}"),
        }
    }

    /// What a thread does: transactions, and numbers that go up by single keys. Returns by how much.
    fn work(&self, rng: &mut Rng, rounds: usize) -> u64 {
        let mut added = 0;
        for _ in 0..rounds {
            match rng.below(10) {
                0 => {
                    self.single.update("n", |old| Some((number(old) + 1).to_le_bytes().to_vec())).unwrap();
                    added += 1;
                }
                1 => {
                    let old = self.single.get("n").unwrap();
                    let new = (number(old.as_deref()) + 1).to_le_bytes();
                    added +=
                        u64::from(self.single.compare_and_swap("n", old.as_deref(), Some(&new)).unwrap());
                }
                2 if rng.chance(10) => self.db.flush().unwrap(),
                _ => self.transact(rng),
            }
        }
        added
    }

    /// Everything that was done, one after the other.
    fn check(self, added: u64) -> (usize, u64) {
        let (done, conflicts) = (self.done.lock().clone(), *self.conflicts.lock());
        let mut serial = Serial::default();
        serial.check(&done, &[], &[]);
        for table in [HASHED, ORDERED] {
            let found: Contents = self.table(table).iter().unwrap().map(Result::unwrap).collect();
            assert!(serial.table(table) == found, "table {table} at the end");
        }
        let counts = self.counts.iter().unwrap().map(Result::unwrap);
        let counts: Contents = counts.map(|(key, count)| (key, count.to_le_bytes().to_vec())).collect();
        assert!(serial.table(COUNTS) == counts, "counts at the end");
        assert_eq!(number(self.single.get("n").unwrap().as_deref()), added, "an update was lost");
        (done.len(), conflicts)
    }
}

fn number(bytes: Option<&[u8]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

/// Some work at once, each with dice of its own; then it is checked.
fn run(env: &Env, layout: Layout, seed: u64, workers: usize, rounds: usize) -> (usize, u64) {
    let world = World::open(env, layout);
    let mut rng = Rng::new(seed);
    let added = Arc::new(Mutex::new(Vec::new()));
    let forked: Vec<_> = (0..workers)
        .map(|number| {
            let (world, added, mut rng) = (world.clone(), Arc::clone(&added), rng.fork());
            env.jobs.fork(&format!("worker {number}"), move || {
                let by = world.work(&mut rng, rounds);
                added.lock().push(by);
            })
        })
        .collect();
    forked.into_iter().for_each(|forked| forked.join());
    assert_eq!(env.jobs.panicked(), None, "seed {seed}");
    let added = added.lock().clone();
    assert_eq!(added.len(), workers, "seed {seed}: not all came to their end");
    world.check(added.iter().sum())
}

#[test]
fn transactions_in_turns_are_serialisable() {
    let (mut done, mut conflicts) = (0, 0);
    for seed in 0..60 {
        println!("seed {seed}");
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let came = run(&env, layouts()[seed as usize % 5], seed, 2 + seed as usize % 3, 40);
        (done, conflicts) = (done + came.0, conflicts + came.1);
    }
    assert!(done > 1000 && conflicts > 100, "{done} done, {conflicts} conflicts");
}

#[test]
fn transactions_on_threads_are_serialisable() {
    let (mut done, mut conflicts) = (0, 0);
    for (seed, layout) in layouts().into_iter().enumerate() {
        println!("seed {seed}");
        let env = Env { fs: MemoryFs::new(), ..Env::real() };
        let came = run(&env, layout, seed as u64, 4, 400);
        (done, conflicts) = (done + came.0, conflicts + came.1);
    }
    assert!(done > 1000, "{done} done, {conflicts} conflicts");
}

/// What is ingested was there before whoever has seen it, and it is newer than what those wrote who have not.
#[test]
fn an_ingest_has_one_place_among_transactions() {
    let mut written = 0;
    for seed in 0..30 {
        println!("seed {seed}");
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = super::open_in(&env);
        let table = super::open_ordered(&db, Layout::leveling(4));
        let ingesting = env.jobs.fork("ingesting", {
            let table = table.clone();
            move || {
                let entry = |key: &str| Ok((key.as_bytes().to_vec(), b"ingested".to_vec()));
                table.ingest(["k", "m"].map(entry).into_iter()).unwrap();
            }
        });
        let write_unless_there = |tx: &mut Transaction| {
            let is_there = tx.contains_key(&table, "k")?;
            if !is_there {
                super::put(tx, &table, "m", seed as i64);
            }
            Ok(is_there)
        };
        while !db.transaction(write_unless_there).unwrap() {
            written += 1;
            yield_point("another one");
        }
        ingesting.join();
        assert_eq!(env.jobs.panicked(), None, "seed {seed}");
        assert_eq!(table.get("m").unwrap().as_deref(), Some(&b"ingested"[..]), "seed {seed}");
    }
    assert!(written > 100, "{written} wrote while something was ingested");
}
