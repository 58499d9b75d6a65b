//! What readers beside a writer were found to lose, or to keep others from: each test tells what happened.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::{Database, Durability, Error, Operation, Options, OrderedTable, Pool};
use forebay_env::fs::{CrashFs, FaultyFs};
use forebay_env::{Env, FileLock, FileSystem, LockMode, Machine, Step};

use crate::readers::{DIR, all, all_at, come_to_rest, envs, fill, leases, options, reader_of};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// How a writer ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Killed,
    Closed,
    Powerless,
}

/// A writer of two tables on a machine that loses power.
struct Writer {
    faulty: Arc<FaultyFs>,
    env: Env,
    tables: [OrderedTable; 2],
    db: Database,
}

impl Writer {
    fn open(disk: &Arc<CrashFs>, layout: &str, fit: impl Fn(Options) -> Options, seed: u64) -> Self {
        let faulty = FaultyFs::new(Arc::clone(disk) as Arc<dyn FileSystem>);
        let env = Env::simulated(faulty.clone(), seed);
        let db = Database::open(DIR, fit(options(&env))).unwrap();
        let open = |name: &str, layout: &str| {
            db.table(name).layout(layout.parse().unwrap()).node_bytes(8 << 10).open_ordered().unwrap()
        };
        let tables = [open("t", layout), open("other", "wb-tree:ordered")];
        Self { faulty, env, tables, db }
    }

    /// Nothing that it does from here on reaches a file, and its locks are free.
    fn kill(self) {
        self.faulty.rule("any * all io-error").unwrap();
        self.env.jobs.abandon();
    }

    fn contents(&self) -> [Entries; 2] {
        [all(&self.tables[0]), all(&self.tables[1])]
    }

    /// All keys that the feed tells of, in their order.
    fn told(&self) -> Vec<Vec<u8>> {
        told(&self.db)
    }
}

fn told(db: &Database) -> Vec<Vec<u8>> {
    let batches = db.changes(0).unwrap().map(|batch| batch.unwrap());
    let changes = batches.flat_map(|batch| batch.changes);
    let key_of = |operation| match operation {
        Operation::Put { key, .. } => key,
        other => panic!("{other:?}"),
    };
    changes.map(|change| key_of(change.operation)).collect()
}

fn segments(fs: &dyn FileSystem) -> usize {
    fs.list(Path::new(DIR)).unwrap().iter().filter(|name| name.ends_with(".log")).count()
}

/// Segments that opening had folded were left under their names while a reader lived. Once more was flushed nothing told
/// them from the log: it ended behind them, or told everything twice, or what was not renewed was all that there was.
#[test]
fn what_was_folded_beside_a_reader_is_no_log_any_more() {
    for (layout, keep) in [("range-merge", 0), ("wb-tree:ordered", 1 << 20)] {
        for end in [End::Killed, End::Closed, End::Powerless] {
            for steps in [0, 5, 10, 20, 40, 80, 200, 1000] {
                fold_and_go_on(layout, keep, end, steps);
            }
        }
    }
}

fn fold_and_go_on(layout: &str, keep: u64, end: End, steps: usize) {
    let told_so = format!("{layout}, {end:?} after {steps} steps");
    let mut disk = CrashFs::new(steps as u64);
    let many = |options: Options| options.write_buffers(24).memory_limit(4 << 20).keep_changes(keep);
    let usual = |options: Options| options.keep_changes(keep);
    let writer = Writer::open(&disk, layout, many, 1);
    let put = |writer: &Writer, number: u32| {
        for table in &writer.tables {
            table.put(number.to_be_bytes(), vec![number as u8; 900]).unwrap();
        }
    };
    (0..10).for_each(|number| put(&writer, number));
    writer.db.flush().unwrap();
    (10..70).for_each(|number| put(&writer, number));
    let contents = writer.contents();
    let reader = reader_of(&Env::simulated(disk.clone(), 2)).unwrap();
    writer.kill();
    assert!(segments(&*disk) > 10, "{told_so}");
    let writer = Writer::open(&disk, layout, usual, 3);
    writer.env.jobs.step_some(steps);
    assert_eq!(writer.contents(), contents, "{told_so}");
    match end {
        End::Closed => {
            drop(writer.tables);
            writer.db.close().unwrap();
        }
        End::Killed | End::Powerless => writer.kill(),
    }
    if end == End::Powerless {
        reader.close().unwrap();
        disk = disk.power_cycle();
    } else {
        let seen = ["t", "other"].map(|name| reader.table(name).existing(true).open_ordered().unwrap());
        assert_eq!([all(&seen[0]), all(&seen[1])], contents, "{told_so}");
        let found = reader.verify(&mut |_, _| ()).unwrap();
        assert_eq!(found.problems, Vec::<String>::new(), "{told_so}: nothing is damaged");
        reader.refresh().unwrap_or_else(|error| panic!("{told_so}: {error}"));
        assert_eq!([all(&seen[0]), all(&seen[1])], contents, "{told_so}");
    }
    let writer = Writer::open(&disk, layout, usual, 4);
    if end != End::Powerless {
        assert_eq!(writer.contents(), contents, "{told_so}");
        // The last of them was flushed, or is folded again.
        let later = reader_of(&Env::simulated(disk.clone(), 5)).unwrap();
        let keys = writer.told();
        assert!(keep == 0 || keys.len() == 140, "{told_so}: {} changes", keys.len());
        assert_eq!(told(&later), keys, "{told_so}");
    }
    let before = writer.contents();
    (70..90).for_each(|number| put(&writer, number));
    writer.db.flush().unwrap();
    for (table, before) in writer.contents().iter().zip(&before) {
        assert_eq!(table.len(), before.len() + 20, "{told_so}");
    }
    writer.told();
}

/// Where all had to be looked at anew, lists got other objects than those that were counted. The lease moved on while a
/// snapshot had only those, and the writer removed the files.
#[test]
fn what_a_snapshot_reads_stays_after_all_was_looked_at_anew() {
    for (layout, how) in
        [("wb-tree:ordered", "alter"), ("leveling:t=3", "rollback"), ("wb-tree:ordered", "range-merge")]
    {
        let (_, env, other) = envs();
        let db = Database::open(DIR, options(&env)).unwrap();
        let table = db.table("t").layout(layout.parse().unwrap()).node_bytes(8 << 10).open_ordered().unwrap();
        if how == "range-merge" {
            db.table("beside")
                .layout("range-merge".parse().unwrap())
                .node_bytes(8 << 10)
                .open_ordered()
                .unwrap();
        }
        let reader = reader_of(&other).unwrap();
        let seen = reader.table("t").existing(true).open_ordered().unwrap();
        fill(&table, 1);
        table.compact().unwrap();
        reader.refresh().unwrap();
        match how {
            "alter" => db.table("t").reclaim_interval(Duration::from_secs(1000)).alter().unwrap(),
            "rollback" => {
                db.savepoint("now").unwrap();
                db.rollback("now").unwrap();
                db.drop_savepoint("now").unwrap();
            }
            _ => table.put("one more", "1").unwrap(),
        }
        reader.refresh().unwrap();
        let (snapshot, then) = (reader.snapshot(), all(&table));
        for stamp in 2..5 {
            fill(&table, stamp);
            table.compact().unwrap();
            reader.refresh().unwrap();
            come_to_rest(&env, &db);
        }
        assert!(db.stats().readers[0].held_bytes > 0, "{how}: the snapshot needs files");
        assert_eq!(all_at(&snapshot, &seen), then, "{how}");
        drop(snapshot);
        reader.refresh().unwrap();
        come_to_rest(&env, &db);
        assert_eq!(db.stats().readers[0].held_bytes, 0, "{how}: nobody needs anything");
        assert_eq!(all(&seen), all(&table), "{how}");
    }
}

/// A lease that somebody had removed protected nothing, and its reader did not know.
#[test]
fn a_reader_whose_lease_was_removed_takes_another_one() {
    let (fs, env, other) = envs();
    let db = Database::open(DIR, options(&env)).unwrap();
    let table =
        db.table("t").layout("wb-tree:ordered".parse().unwrap()).node_bytes(8 << 10).open_ordered().unwrap();
    fill(&table, 1);
    let reader = reader_of(&other).unwrap();
    let seen = reader.table("t").existing(true).open_ordered().unwrap();
    let folder = Path::new(DIR).join("readers");
    for name in fs.list(&folder).unwrap() {
        fs.remove(&folder.join(name)).unwrap();
    }
    assert!(db.stats().readers.is_empty());
    fill(&table, 2);
    table.compact().unwrap();
    reader.refresh().unwrap();
    assert_eq!((leases(&*fs), db.stats().readers.len()), (1, 1));
    assert_eq!(all(&seen), all(&table));
    fill(&table, 3);
    table.compact().unwrap();
    assert!(db.stats().readers[0].held_bytes > 0);
    drop((seen, reader));
    assert_eq!(leases(&*fs), 0);
}

/// What a reader saw was told as durable, before any sync.
#[test]
fn a_reader_tells_what_is_durable_of_what_it_sees() {
    let (_, env, other) = envs();
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    let reader = reader_of(&other).unwrap();
    (0..10u32).for_each(|key| table.put(key.to_be_bytes(), "1").unwrap());
    assert_eq!((reader.refresh().unwrap(), reader.durable_sequence()), (10, 0));
    db.sync().unwrap();
    table.put("later", "2").unwrap();
    assert_eq!((reader.refresh().unwrap(), reader.durable_sequence()), (11, 10));
    assert_eq!(reader_of(&other).unwrap().durable_sequence(), 10);
    db.flush().unwrap();
    db.savepoint("the edit before this one is durable").unwrap();
    assert_eq!((reader.refresh().unwrap(), reader.durable_sequence()), (11, 11));
    drop(table);
    db.close().unwrap();
    assert_eq!(reader_of(&other).unwrap().durable_sequence(), 11);
}

/// Whoever has a lock until it is stepped.
struct Holder(Option<FileLock>);

impl Machine for Holder {
    fn step(&mut self) -> Step {
        self.0 = None;
        Step::Finished
    }
}

/// A reader that looked whether anybody writes kept a writer out that came just then.
#[test]
fn who_only_looks_whether_somebody_writes_keeps_no_writer_out() {
    let (fs, env, _) = envs();
    Database::open(DIR, options(&env)).unwrap().close().unwrap();
    let lock = Path::new(DIR).join("LOCK");
    let shared = || fs.lock(&lock, LockMode::Shared).unwrap();
    drop(env.jobs.spawn("a reader", Box::new(Holder(Some(shared())))));
    Database::open(DIR, options(&env)).unwrap().close().unwrap();
    let _long = shared();
    assert!(matches!(Database::open(DIR, options(&env)), Err(Error::Locked { .. })));
    // Where nobody writes, what could not be read is looked at again.
    let faulty = FaultyFs::new(fs.clone());
    faulty.rule("read CURRENT #1 io-error").unwrap();
    reader_of(&Env::simulated(faulty.clone(), 9)).unwrap();
    assert_eq!(faulty.fired(), 1);
    faulty.clear();
    faulty.rule("read CURRENT all io-error").unwrap();
    assert!(reader_of(&Env::simulated(faulty, 9)).is_err());
}

/// What others had put beside the leases made `destroy` stop half way.
#[test]
fn a_database_is_destroyed_whatever_else_is_among_its_leases() {
    let (fs, env, _) = envs();
    let db = Database::open(DIR, options(&env)).unwrap();
    db.table("t").open().unwrap().put("a", "1").unwrap();
    let folder = Path::new(DIR).join("readers");
    fs.create_dir_all(&folder.join("notes")).unwrap();
    // By the same way as `destroy`.
    db.take_back().unwrap();
    assert!(fs.exists(&folder.join("notes")).unwrap());
    let db = Database::open(DIR, options(&env)).unwrap();
    assert_eq!(db.last_sequence(), 0, "a new one");
}

/// Entries that a writer saw over were seen again by readers whose clock was behind, though parts of them were merged away.
#[test]
fn a_reader_takes_the_time_from_the_manifest() {
    let (_, env, other) = envs();
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").time_to_live(Duration::from_secs(60)).open().unwrap();
    table.put("a", "1").unwrap();
    let reader = reader_of(&other).unwrap();
    let seen = reader.table("t").existing(true).open().unwrap();
    env.jobs.advance(Duration::from_secs(3600));
    reader.refresh().unwrap();
    assert!(seen.get("a").unwrap().is_some(), "its own clock stands still");
    let late = db.unix_milliseconds();
    drop(table);
    db.close().unwrap();
    reader.refresh().unwrap();
    assert!(reader.unix_milliseconds() >= late);
    assert!(seen.get("a").unwrap().is_none());
    assert!(reader_of(&other).unwrap().unix_milliseconds() >= late);
}

/// What a reader has in memory its pool has not, also where a writer's buffers are longer than the reader's share.
#[test]
fn a_readers_memory_is_counted_in_its_pool() {
    let (_, env, other) = envs();
    let long = Options::default().memory_limit(64 << 20).write_buffer(4 << 20).env(env);
    let db = Database::open(DIR, long).unwrap();
    let table = db.table("t").open().unwrap();
    let pool = Pool::new(16 << 20, 1).unwrap();
    let reader = Database::open(DIR, Options::default().read_only(true).pool(&pool).env(other)).unwrap();
    let share = pool.stats().databases[0].share_bytes;
    assert!(share > 256 << 10);
    for key in 0..3000u32 {
        table.put(key.to_be_bytes(), vec![7; 1000]).unwrap();
    }
    reader.refresh().unwrap();
    let stats = &pool.stats().databases[0];
    assert!(stats.held_bytes > 3 << 20 && stats.held_bytes > share, "{stats:?}");
    let seen = reader.table("t").existing(true).open().unwrap();
    assert_eq!(seen.count().unwrap(), 3000);
    reader.close().unwrap();
    assert!(pool.stats().databases.is_empty());
}

/// All that reads works beside a writer, and nothing that writes does.
#[test]
fn every_call_that_reads_works_and_none_that_writes() {
    let (_, env, other) = envs();
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").time_to_live(Duration::from_secs(600)).open().unwrap();
    let ordered = db.table("o").open_ordered().unwrap();
    for key in 0..500u32 {
        table.put(key.to_be_bytes(), "value").unwrap();
        ordered.put(key.to_be_bytes(), "value").unwrap();
    }
    db.savepoint("then").unwrap();
    let reader = reader_of(&other).unwrap();
    (500..600u32).for_each(|key| table.put(key.to_be_bytes(), "value").unwrap());
    reader.refresh().unwrap();
    let seen = reader.table("t").existing(true).open().unwrap();
    let seen_ordered = reader.table("o").existing(true).open_ordered().unwrap();
    let (mut position, mut got) = (Some(0), 0);
    while let Some(from) = position {
        let scanned = seen.scan_from(from, 100).unwrap();
        (position, got) = (scanned.next, got + scanned.entries.len());
    }
    assert_eq!((got, seen.count().unwrap()), (600, 600));
    assert_eq!(seen.parts(3).unwrap().into_iter().flatten().count(), 600);
    let key = 7u32.to_be_bytes();
    assert_eq!(seen.get_with(key, <[u8]>::len).unwrap(), Some(5));
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    seen.multi_get_into(&[key, 9999u32.to_be_bytes()], &mut bytes, &mut places).unwrap();
    assert!(bytes == b"value" && places.len() == 2 && places[1].is_none());
    assert!(seen.get_with_expiry(key).unwrap().unwrap().1.is_some());
    assert_eq!(seen_ordered.prefix([0]).unwrap().count(), 500);
    let mut transaction = reader.begin();
    assert!(transaction.get(&seen, key).unwrap().is_some());
    transaction.put(&seen, key, "2");
    let mut batch = forebay::Batch::new();
    batch.put(&seen, key, b"2");
    let refused = [
        transaction.commit().map(drop),
        reader.commit(batch, Durability::Os).map(drop),
        seen.put(key, "2"),
        seen.delete(key),
        seen.expire(key, 1).map(drop),
        seen.persist(key).map(drop),
        seen.put_until(key, "2", u64::MAX),
        seen.compact(),
        seen.set_layout("tiering:t=3".parse().unwrap()),
        seen_ordered.delete_range(b"a".to_vec()..b"b".to_vec()),
        seen_ordered.ingest([Ok((b"z".to_vec(), b"1".to_vec()))].into_iter()).map(drop),
        reader.table("t").reclaim_interval(Duration::from_secs(1)).alter(),
        reader.table("new").open().map(drop),
        reader.drop_table("t"),
        reader.savepoint("mine").map(drop),
        reader.rollback("then"),
        reader.drop_savepoint("then"),
        reader.sync(),
        reader.flush(),
    ];
    for (number, refused) in refused.iter().enumerate() {
        assert!(refused.is_err(), "call {number} was not refused");
    }
    reader.refresh().unwrap();
    assert_eq!((seen.count().unwrap(), seen_ordered.count().unwrap()), (600, 500));
    assert!(reader.savepoints().len() == 1 && db.stats().readers.len() == 1);
}
