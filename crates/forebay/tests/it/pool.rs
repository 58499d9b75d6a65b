//! Many databases on one memory and few threads: all answers are right, no more is taken than there is, and memory moves
//! to where it is used.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use forebay::{Batch, Database, Durability, Error, MergeRule, Options, Pool, Table};
use forebay_env::fs::MemoryFs;
use forebay_env::sync::Mutex;
use forebay_env::{Env, Rng};

const MIB: u64 = 1 << 20;

/// Threads and a clock of the machine, files in memory.
fn threads() -> Env {
    Env { fs: MemoryFs::new(), ..Env::real() }
}

fn open(pool: &Pool, env: &Env, number: usize) -> Database {
    Database::open(format!("/stores/{number}"), Options::default().pool(pool).env(env.clone())).unwrap()
}

/// What all databases say they hold, but for merges and files being written.
fn held(databases: &[Database]) -> u64 {
    let held = |db: &Database| {
        let memory = db.stats().memory;
        memory.total - memory.merging - memory.writing
    };
    databases.iter().map(held).sum()
}

/// Merges and files that are being written, of all databases.
fn work(databases: &[Database]) -> u64 {
    let work = |db: &Database| db.stats().memory.merging + db.stats().memory.writing;
    databases.iter().map(work).sum()
}

fn value(key: u64, round: u64) -> [u8; 100] {
    let mut value = [round as u8; 100];
    value[..8].copy_from_slice(&key.to_le_bytes());
    value
}

/// Batches of a hundred records to each of these.
fn load(tables: &[(&Database, Table)], records: u64, round: u64) {
    for first in (0..records).step_by(100) {
        for (db, table) in tables {
            let mut batch = Batch::new();
            (first..first + 100).for_each(|key| batch.put(table, key.to_be_bytes(), value(key, round)));
            db.commit(batch, Durability::Os).unwrap();
        }
    }
}

#[test]
fn two_hundred_databases_take_no_more_than_there_is() {
    const DATABASES: usize = 200;
    const AT_A_TIME: usize = 5;
    const RECORDS: u64 = 20_000;
    let (memory_bytes, env) = (96 * MIB, threads());
    let pool = Pool::new(memory_bytes, 2).unwrap();
    let databases: Vec<Database> = (0..DATABASES).map(|number| open(&pool, &env, number)).collect();
    assert!(held(&databases) <= DATABASES as u64 * (256 << 10), "{} bytes at rest", held(&databases));
    let stats = pool.stats();
    assert_eq!((stats.databases.len(), stats.threads.len()), (DATABASES, 4));
    let mut rng = Rng::new(11);
    let mut most = 0;
    // How often each database was loaded.
    let mut rounds = [0; DATABASES];
    for round in 1..=6 {
        let mut busy: Vec<usize> = (0..AT_A_TIME).map(|_| rng.index(DATABASES)).collect();
        busy.sort_unstable();
        busy.dedup();
        let tables: Vec<_> = busy
            .iter()
            .map(|&number| (&databases[number], databases[number].table("t").open().unwrap()))
            .collect();
        for part in 0..4 {
            load(&tables, RECORDS * (part + 1) / 4, round);
            let (held, work, stats) = (held(&databases), work(&databases), pool.stats());
            most = most.max(held);
            let limit = memory_bytes + (memory_bytes / 10).max(16 * MIB);
            assert!(stats.taken_bytes <= memory_bytes, "{} are taken of {memory_bytes}", stats.taken_bytes);
            assert!(
                held + work <= limit,
                "{held} are held and {work} are worked with, of {limit}: {stats:?}"
            );
        }
        busy.iter().for_each(|&number| rounds[number] = round);
        for &number in &busy {
            let table = databases[number].table("t").open().unwrap();
            for key in (0..RECORDS).step_by(997) {
                let found = table.get(key.to_be_bytes()).unwrap();
                assert_eq!(found.as_deref(), Some(&value(key, round)[..]), "{key} of {number}");
            }
        }
    }
    assert!(most > 20 * MIB, "{most} bytes were in use");
    for (number, round) in rounds.into_iter().enumerate().filter(|(_, round)| *round > 0) {
        let table = databases[number].table("t").open().unwrap();
        assert_eq!(table.iter().unwrap().count() as u64, RECORDS);
        let found = table.get(5u64.to_be_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&value(5, round)[..]), "{number}");
    }
    databases.into_iter().for_each(|db| db.close().unwrap());
    assert_eq!((pool.stats().databases.len(), pool.stats().taken_bytes), (0, 0));
}

/// One gets nearly all; once another one writes it gets its part, and what the first one had in a half-filled buffer
/// goes to a list.
#[test]
fn memory_moves_to_where_it_is_used() {
    let (pool, env) = (Pool::new(64 * MIB, 2).unwrap(), Env::memory(3));
    let databases = [0, 1].map(|number| open(&pool, &env, number));
    let tables = databases.each_ref().map(|db| db.table("t").open().unwrap());
    let share = |number: usize| pool.stats().databases[number].share_bytes;
    let pass = |seconds: u64| {
        for _ in 0..10 * seconds {
            env.jobs.advance(Duration::from_millis(100));
            env.jobs.step_some(10_000);
        }
    };
    assert_eq!([share(0), share(1)], [256 << 10; 2]);
    load(&[(&databases[0], tables[0].clone())], 200_000, 1);
    assert!(share(0) > 40 * MIB && share(1) == 256 << 10, "{:?}", pool.stats());
    pass(15);
    // Nobody wants what it has.
    assert!(share(0) > 16 * MIB, "{:?}", pool.stats());
    load(&[(&databases[1], tables[1].clone())], 200_000, 2);
    pass(3);
    load(&[(&databases[1], tables[1].clone())], 200_000, 3);
    assert!(share(1) > 40 * MIB && share(0) < 2 * MIB, "{:?}", pool.stats());
    pass(1);
    let memory = databases[0].stats().memory;
    assert!(memory.write_buffers <= 256 << 10, "{memory:?}");
    for (table, round) in [(&tables[0], 1), (&tables[1], 3)] {
        let found = table.get(77_777_u64.to_be_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&value(77_777, round)[..]));
    }
    // Together they have half each.
    load(&[0, 1].map(|number| (&databases[number], tables[number].clone())), 400_000, 4);
    assert!([0, 1].iter().all(|&number| (16 * MIB..40 * MIB).contains(&share(number))), "{:?}", pool.stats());
}

/// Who is read gets memory for pages.
#[test]
fn a_database_that_is_read_gets_memory_for_pages() {
    let (pool, env) = (Pool::new(32 * MIB, 1).unwrap(), Env::memory(4));
    let databases = [0, 1].map(|number| open(&pool, &env, number));
    let table = databases[0].table("t").open().unwrap();
    load(&[(&databases[0], table.clone())], 50_000, 1);
    databases[0].flush().unwrap();
    // Others have all meanwhile.
    let other = databases[1].table("t").open().unwrap();
    let write_and_pass = |round: u64| {
        load(&[(&databases[1], other.clone())], 20_000, round);
        env.jobs.advance(Duration::from_millis(500));
        env.jobs.step_some(10_000);
    };
    (0..20).for_each(write_and_pass);
    let cached = || databases[0].stats().memory.page_cache;
    let before = cached();
    let mut rng = Rng::new(1);
    for round in 0..40 {
        (0..500).for_each(|_| drop(table.get(rng.below(50_000).to_be_bytes()).unwrap()));
        write_and_pass(round);
    }
    assert!(cached() > before + MIB, "{before} bytes of pages, then {}: {:?}", cached(), pool.stats());
}

/// A database that nobody uses has machines that rest, and wakes for a write in time.
#[test]
fn who_rests_syncs_what_is_written_then() {
    let (pool, env) = (Pool::new(16 * MIB, 1).unwrap(), Env::memory(5));
    let db = open(&pool, &env, 0);
    let table = db.table("t").open().unwrap();
    let pass = |milliseconds: u64| {
        for _ in 0..milliseconds / 10 {
            env.jobs.advance(Duration::from_millis(10));
            env.jobs.step_some(1000);
        }
    };
    for round in 0..5u64 {
        pass(7_000 + 130 * round);
        table.put(b"key", round.to_le_bytes()).unwrap();
        assert!(db.durable_sequence() < db.last_sequence());
        pass(120);
        assert_eq!(db.durable_sequence(), db.last_sequence(), "round {round}");
    }
}

#[test]
fn what_contradicts_a_pool_is_refused_and_a_full_pool_says_so() {
    let env = Env::memory(1);
    for (memory_bytes, threads) in [(0, 1), (MIB, 1), (64 * MIB, 0), (64 * MIB, 65)] {
        assert!(matches!(Pool::new(memory_bytes, threads), Err(Error::Invalid(_))));
    }
    let pool = Pool::new(4 * MIB, 1).unwrap();
    let options = || Options::default().pool(&pool).env(env.clone());
    for twice in [options().memory_limit(64 << 20), options().background_threads(2)] {
        let refused = Database::open("/twice", twice).unwrap_err().to_string();
        assert!(refused.contains("pool") && refused.contains("memory_limit"), "{refused}");
    }
    let mut databases = Vec::new();
    let refused = loop {
        match Database::open(format!("/db-{}", databases.len()), options()) {
            Ok(db) => databases.push(db),
            Err(error) => break error.to_string(),
        }
    };
    assert!(databases.len() == 13 && refused.contains("13 databases"), "{}: {refused}", databases.len());
    // All of them write.
    for (number, db) in databases.iter().enumerate() {
        let table = db.table("t").open().unwrap();
        load(&[(db, table.clone())], 5000, number as u64);
        assert_eq!(table.iter().unwrap().count(), 5000);
    }
    drop(databases.pop());
    databases.push(Database::open("/another", options()).unwrap());
}

/// A crash leaves long buffers in the logs of some; opened again, they are written out before more is opened.
#[test]
fn logs_are_read_back_without_more_memory_than_there_is() {
    let env = Env::memory(8);
    let pool = Pool::new(64 * MIB, 2).unwrap();
    let databases: Vec<Database> = (0..6).map(|number| open(&pool, &env, number)).collect();
    let tables: Vec<_> = databases.iter().map(|db| (db, db.table("t").open().unwrap())).collect();
    load(&tables, 60_000, 1);
    drop(tables);
    env.jobs.abandon();
    drop(databases);
    let pool = Pool::new(64 * MIB, 2).unwrap();
    let mut databases = Vec::new();
    for number in 0..6 {
        databases.push(open(&pool, &env, number));
        let limit = 64 * MIB + 16 * MIB;
        assert!(held(&databases) <= limit, "{number}: {} of {limit}", held(&databases));
    }
    for db in &databases {
        let table = db.table("t").open().unwrap();
        assert_eq!(table.iter().unwrap().count(), 60_000);
    }
}

/// It began with the least memory, and what its log had was written anew in segments of 64 KiB, each of which was flushed
/// before the opening was over.
#[test]
fn a_long_log_is_read_back_as_it_is_where_there_is_memory() {
    let env = Env::memory(10);
    let pool = Pool::new(64 * MIB, 2).unwrap();
    let db = open(&pool, &env, 0);
    let table = db.table("t").open().unwrap();
    let mut records = 0;
    while db.stats().unlisted_bytes < 6 * MIB {
        load(&[(&db, table.clone())], 1000, records);
        records += 1000;
    }
    let unlisted = db.stats().unlisted_records;
    db.close().unwrap();
    let db = open(&pool, &env, 0);
    let stats = db.stats();
    assert_eq!(stats.unlisted_records, unlisted);
    assert!(stats.jobs_done.values().sum::<u64>() == 0, "{:?}", stats.jobs_done);
    let seconds = |count: u64| {
        for _ in 0..10 * count {
            env.jobs.advance(Duration::from_millis(100));
            env.jobs.step_some(10_000);
        }
    };
    // Another one that wants it gets it.
    let other = open(&pool, &env, 1);
    let other = (&other, other.table("t").open().unwrap());
    (0..5).for_each(|round| {
        load(std::slice::from_ref(&other), 50_000, round);
        seconds(1);
    });
    let shares = pool.stats().databases;
    assert!(shares[0].share_bytes < 4 * MIB && shares[1].share_bytes > 30 * MIB, "{shares:?}");
}

/// Those that are opened for reading only give nothing back: what they hold is counted, and is a part of all.
#[test]
fn who_only_reads_leaves_most_of_the_memory_to_others() {
    const READERS: u64 = 12;
    let env = Env::memory(11);
    for number in 0..READERS as usize {
        let alone = Options::default().memory_limit(64 * MIB).env(env.clone());
        let db = Database::open(format!("/stores/{number}"), alone).unwrap();
        load(&[(&db, db.table("t").open().unwrap())], 10_000, 1);
        db.close().unwrap();
    }
    let pool = Pool::new(64 * MIB, 2).unwrap();
    let read_only = |number| {
        let options = Options::default().pool(&pool).env(env.clone()).read_only(true);
        Database::open(format!("/stores/{number}"), options).unwrap()
    };
    let readers: Vec<Database> = (0..READERS).map(read_only).collect();
    let stats = pool.stats();
    let shares: u64 = stats.databases.iter().map(|database| database.share_bytes).sum();
    assert!(shares <= 16 * MIB + READERS * (256 << 10), "{stats:?}");
    let buffers: u64 = readers.iter().map(|db| db.stats().memory.write_buffers).sum();
    assert!(buffers > 10 * MIB && stats.taken_bytes >= shares + buffers, "{buffers}: {stats:?}");
    for db in &readers {
        assert_eq!(db.table("t").open().unwrap().iter().unwrap().count(), 10_000);
    }
}

/// A rule that has a database of its own, and waits where it is asked.
struct Holds {
    _other: Database,
    asked: Mutex<Sender<()>>,
    goes_on: Mutex<Receiver<()>>,
}

impl MergeRule for Holds {
    fn name(&self) -> &str {
        "holds/1"
    }
    fn merge(&self, _: &[u8], newer: &[u8], _: &[u8], out: &mut Vec<u8>) {
        self.asked.lock().send(()).unwrap();
        self.goes_on.lock().recv().unwrap();
        out.extend_from_slice(newer);
    }
}

/// A flush of one drops what holds the other one, on the only thread that flushes: to close that takes a flush's turn.
#[test]
fn a_database_that_another_one_of_its_pool_lets_go_of_is_closed() {
    let (pool, env) = (Pool::new(16 * MIB, 1).unwrap(), threads());
    let (one, _other) = (open(&pool, &env, 1), open(&pool, &env, 2));
    let ((asked, is_asked), (go, goes_on)) = (channel(), channel());
    let rule = Holds { _other, asked: Mutex::new(asked), goes_on: Mutex::new(goes_on) };
    let table = one.table("t").merge_rule(rule).open().unwrap();
    (0..2).for_each(|operand| table.merge(b"key", [operand]).unwrap());
    std::thread::scope(|scope| {
        let flushes = scope.spawn(|| one.flush().unwrap());
        is_asked.recv().unwrap();
        one.drop_table("t").unwrap();
        drop(table);
        go.send(()).unwrap();
        flushes.join().unwrap();
    });
    let open_again = || {
        Database::open("/stores/2", Options::default().pool(&pool).env(env.clone()))
            .inspect_err(|_| std::thread::yield_now())
    };
    let other = std::iter::repeat_with(open_again).find_map(Result::ok).unwrap();
    other.close().unwrap();
    one.close().unwrap();
}

/// Threads and files in memory: many users of many databases at once, which are opened and closed beside.
#[test]
fn databases_come_and_go_beside_others_that_work() {
    let env = threads();
    let pool = Pool::new(24 * MIB, 1).unwrap();
    let shared = Arc::new(open(&pool, &env, 1000));
    std::thread::scope(|scope| {
        for user in 0..4 {
            let (pool, env, shared) = (&pool, &env, Arc::clone(&shared));
            scope.spawn(move || {
                let common = shared.table("t").open().unwrap();
                for round in 0..12u64 {
                    let db = open(pool, env, user);
                    let table = db.table("t").open().unwrap();
                    load(&[(&db, table.clone())], 3000, round);
                    common.put([user as u8], round.to_le_bytes()).unwrap();
                    if round % 3 == 0 {
                        table.compact().unwrap();
                        db.wait_until_idle().unwrap();
                    }
                    assert_eq!(table.iter().unwrap().count(), 3000);
                    db.close().unwrap();
                }
            });
        }
    });
    let common = shared.table("t").open().unwrap();
    for user in 0..4u8 {
        assert_eq!(common.get([user]).unwrap().as_deref(), Some(&11u64.to_le_bytes()[..]));
    }
    assert_eq!(pool.stats().databases.len(), 1);
    assert!(env.fs.exists(Path::new("/stores/0")).unwrap());
}
