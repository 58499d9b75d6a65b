//! Reading the log back: what is acted upon, how much is held, what is taken for a frame, and what can be saved of
//! damage.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Error, Layout, Options, OrderedTable, Result, Table};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
use forebay_env::{Access, Env, FileSystem};
use forebay_store::log::frame::{Header, Secret};
use forebay_testkit::Suffix;

const DIR: &str = "/db";
const DRAWS: u64 = 20;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

fn start(fs: Arc<dyn FileSystem>) -> (Env, Database, Table) {
    let env = Env::simulated(fs, 7);
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    (env, db, table)
}

/// The files as a process leaves them that is killed.
fn killed(fs: &MemoryFs, env: &Env, open: (Database, Table)) -> Arc<MemoryFs> {
    let left = fs.deep_clone();
    env.jobs.abandon();
    drop(open);
    left
}

fn put(db: &Database, table: &Table, key: &[u8], durability: Durability) {
    let mut batch = Batch::new();
    batch.put(table, key, b"value");
    db.commit(batch, durability).unwrap();
}

fn logs(fs: &dyn FileSystem) -> Vec<PathBuf> {
    let names = fs.list(Path::new(DIR)).unwrap();
    names.iter().filter(|name| name.ends_with(".log")).map(|name| Path::new(DIR).join(name)).collect()
}

fn bytes_of(fs: &dyn FileSystem, path: &Path) -> Vec<u8> {
    let file = fs.open_read(path, Access::Buffered).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// A process died between writing an edit and syncing it. The next opening read the edit from the system's memory and
/// removed the files that it drops, durably. Then the power failed: the edit was gone, and so were the files.
#[test]
fn an_edit_that_was_never_synced_is_not_acted_upon() {
    for seed in 0..2 * DRAWS {
        let disk = CrashFs::new(seed);
        let fs = FaultyFs::new(disk.clone());
        let (env, db, table) = start(fs.clone());
        for half in 0..2u8 {
            (0..40u8).for_each(|n| table.put([half, n], [7; 40]).unwrap());
            db.flush().unwrap();
        }
        db.sync().unwrap();
        fs.rule("sync *.manifest #1 io-error").unwrap();
        let _ = table.compact();
        drop(table);
        assert!(db.close().is_err());
        fs.clear();
        env.jobs.abandon();
        let (env, db, table) = start(fs.clone());
        let left = disk.power_cycle();
        env.jobs.abandon();
        drop((db, table));
        let (_env, _db, table) = start(left);
        for half in 0..2u8 {
            (0..40u8).for_each(|n| assert!(table.get([half, n]).unwrap().is_some(), "disk {seed}"));
        }
    }
}

/// A sync fails once: the system drops what it could not write, shows it all the same, and says at the next sync that
/// all is well. The reopened database took it for durable, and the next power loss took it, and with it the database.
#[test]
fn what_a_failed_sync_lost_is_written_again_at_the_next_opening() {
    for seed in 0..DRAWS {
        for kind in [".log", ".manifest"] {
            let disk = CrashFs::new(seed);
            let (env, db, table) = start(disk.clone());
            put(&db, &table, b"before", Durability::Disk);
            put(&db, &table, b"lost", Durability::Os);
            disk.fail_next_sync(kind);
            let failed = db.sync().and_then(|()| db.flush());
            assert!(failed.is_err(), "{kind}");
            drop(table);
            assert!(db.close().is_err());
            env.jobs.abandon();
            let (env, db, table) = start(disk.clone());
            assert!(table.get(b"lost").unwrap().is_some(), "the system has it");
            put(&db, &table, b"after", Durability::Disk);
            assert_eq!(db.durable_sequence(), 3);
            let left = disk.power_cycle();
            env.jobs.abandon();
            drop((db, table));
            let (_env, _db, table) = start(left);
            for key in ["before", "lost", "after"] {
                assert!(table.get(key.as_bytes()).unwrap().is_some(), "disk {seed}, {kind}: {key}");
            }
        }
    }
}

/// What stands behind the log's end is whatever a file had before. One header with the right sum there, and every
/// opening told of damage: by chance in one crash of some hundred with large buffers, or on purpose, by a value.
#[test]
fn a_value_that_looks_like_a_frame_does_no_harm() {
    let fs = MemoryFs::new();
    let (env, db, table) = start(fs.clone());
    put(&db, &table, b"key", Durability::Os);
    env.jobs.step_some(100);
    let fs = killed(&fs, &env, (db, table));
    let logs = logs(&*fs);
    assert!(logs.len() >= 2, "a segment is ready");
    for path in &logs {
        let id: u64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        let file = fs.open(path, Access::Buffered).unwrap();
        for offset in (1024..3072).step_by(96) {
            // As long as it claims to be, of a sound payload: all but the secret is right.
            let payload = [7; 40];
            let header = Header {
                payload_sum: Secret::default().payload_sum(&payload),
                is_encrypted: false,
                payload_bytes: payload.len() as u32,
                records: 1,
                sequence: 1 << 40,
                watermark: (1 << 40) - 1,
            };
            file.write_at(offset, &header.encode(Secret::default(), id, offset as usize)).unwrap();
            file.write_at(offset + 32, &payload).unwrap();
        }
    }
    let (_env, db, table) = start(fs);
    assert!(table.get(b"key").unwrap().is_some());
    assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new());
}

/// Each opening that wrote something left a segment, and the next one gave each a write buffer of its own: after 200 of
/// them a database under a limit of 64 MiB took 400.
#[test]
fn many_openings_leave_few_segments_and_take_little_memory() {
    let fs = MemoryFs::new();
    for round in 0..200u32 {
        let (env, db, table) = start(fs.clone());
        table.put(round.to_be_bytes(), b"value").unwrap();
        assert!(logs(&*fs).len() <= 11, "{} segments after {round} openings", logs(&*fs).len());
        let memory = db.stats().memory.write_buffers;
        assert!(memory <= 10 * (4 << 10), "{memory} bytes of buffers after {round} openings");
        drop(table);
        db.close().unwrap();
        drop(env);
    }
    let (_env, _db, table) = start(fs);
    assert_eq!(table.iter().unwrap().count(), 200);
}

/// A database whose log is longer than the buffers that it is opened with later.
fn with_long_log(fs: &Arc<MemoryFs>) -> (Env, Database, Table) {
    let env = Env::simulated(fs.clone(), 7);
    let large = Options::default().memory_limit(16 << 20).write_buffer(128 << 10).env(env.clone());
    let db = Database::open(DIR, large).unwrap();
    let table = db.table("t").open().unwrap();
    (0..3000u32).for_each(|n| table.put(n.to_be_bytes(), [n as u8; 60]).unwrap());
    (env, db, table)
}

/// A log that is longer than write buffers may be, because they were larger before, was read into memory whole.
#[test]
fn a_log_longer_than_all_buffers_goes_to_lists_while_it_is_read() {
    for is_closed in [true, false] {
        let fs = MemoryFs::new();
        let (env, db, table) = with_long_log(&fs);
        let fs = if is_closed {
            drop(table);
            db.close().unwrap();
            fs
        } else {
            killed(&fs, &env, (db, table))
        };
        let (_env, db, table) = start(fs);
        let memory = db.stats().memory.write_buffers;
        assert!(memory <= 5 * (4 << 10), "{memory} bytes of buffers");
        assert_eq!(table.iter().unwrap().map(Result::unwrap).count(), 3000);
        (0..3000u32).for_each(|n| assert_eq!(table.get(n.to_be_bytes()).unwrap().unwrap(), [n as u8; 60]));
    }
}

/// Whoever opened a database for reading took as much memory as the log's files are long, whatever was in them.
#[test]
fn a_long_file_with_little_in_it_takes_little_memory() {
    let fs = MemoryFs::new();
    let (env, db, table) = start(fs.clone());
    put(&db, &table, b"key", Durability::Os);
    let fs = killed(&fs, &env, (db, table));
    for path in logs(&*fs) {
        fs.open(&path, Access::Buffered).unwrap().set_len(64 << 20).unwrap();
    }
    let env = Env::simulated(fs, 7);
    let db = Database::open(DIR, options(&env).read_only(true)).unwrap();
    let memory = db.stats().memory.write_buffers;
    assert!(memory <= 4 << 10, "{memory} bytes of buffers");
    assert_eq!(db.table("t").open().unwrap().iter().unwrap().count(), 1);
}

/// What a long segment has is read to its end, in memory that grows with it.
#[test]
fn a_long_segment_is_read_whole_by_who_opens_for_reading() {
    let fs = MemoryFs::new();
    let (env, db, table) = with_long_log(&fs);
    let fs = killed(&fs, &env, (db, table));
    let env = Env::simulated(fs, 7);
    let db = Database::open(DIR, options(&env).read_only(true)).unwrap();
    let table = db.table("t").open().unwrap();
    assert_eq!(table.iter().unwrap().map(Result::unwrap).count(), 3000);
    (0..3000u32).for_each(|n| assert_eq!(table.get(n.to_be_bytes()).unwrap().unwrap(), [n as u8; 60]));
    assert!(db.stats().memory.write_buffers <= 3 * 3000 * 100);
}

/// Where lists cannot be written, all of a long log was loaded into memory.
#[test]
fn a_log_that_nothing_can_take_is_not_loaded_whole() {
    let disk = MemoryFs::new();
    let (env, db, table) = with_long_log(&disk);
    let fs = FaultyFs::new(killed(&disk, &env, (db, table)));
    fs.rule("write *.list all no-space").unwrap();
    let refused = Database::open(DIR, options(&Env::simulated(fs.clone(), 7))).unwrap_err();
    assert!(refused.is_no_space(), "{refused}");
    fs.clear();
    let (_env, _db, table) = start(fs);
    assert_eq!(table.iter().unwrap().map(Result::unwrap).count(), 3000);
}

struct World {
    env: Env,
    db: Database,
    merged: Table,
    resident: OrderedTable,
}

fn world(fs: Arc<dyn FileSystem>) -> Result<World> {
    let env = Env::simulated(fs, 7);
    let db = Database::open(DIR, options(&env).keep_changes(64 << 10))?;
    let merged = db.table("merged").merge_rule(Suffix).open()?;
    let resident = db.table("resident").layout(Layout::range_merge()).node_bytes(8 << 10).open_ordered()?;
    Ok(World { env, db, merged, resident })
}

impl World {
    fn check(&self, rounds: u32, seed: u64) {
        let all: String = (0..rounds).map(|round| format!("{round},")).collect();
        let merged = self.merged.get(b"key").unwrap().unwrap();
        assert_eq!(String::from_utf8(merged).unwrap(), all, "crash {seed}");
        for round in 0..rounds {
            let found = self.resident.get(round.to_be_bytes()).unwrap();
            assert_eq!(found.is_none(), round % 5 == 4, "crash {seed}: {round}");
        }
        let mut next = 1;
        for batch in self.db.changes(0).unwrap() {
            let batch = batch.unwrap();
            next += batch.changes.len() as u64;
            assert_eq!(batch.last_sequence, next - 1, "crash {seed}");
        }
    }
}

/// Segments are folded into new ones beside what is held for tables in memory and kept for changes. Power that fails at
/// any moment of that leaves each record once.
#[test]
fn a_crash_while_segments_are_folded_leaves_each_record_once() {
    const ROUNDS: u32 = 14;
    for seed in 0..70 {
        let fs = CrashFs::new(seed);
        for round in 0..ROUNDS {
            let world = world(fs.clone()).unwrap();
            let mut batch = Batch::new();
            batch.merge(&world.merged, b"key", format!("{round},").as_bytes());
            batch.put(&world.resident, round.to_be_bytes(), b"value");
            if round % 5 == 4 {
                batch.delete_range(&world.resident, &round.to_be_bytes()[..]..);
            }
            world.db.commit(batch, Durability::Disk).unwrap();
            if round % 3 == 2 {
                world.db.flush().unwrap();
            }
            if round + 1 < ROUNDS {
                let World { db, merged, resident, .. } = world;
                drop((merged, resident));
                db.close().unwrap();
            } else {
                fs.power_cycle();
                world.env.jobs.abandon();
            }
        }
        let fs = fs.power_cycle();
        fs.crash_at(1 + seed % 35);
        let left = match world(fs.clone()) {
            Ok(world) => {
                world.check(ROUNDS, seed);
                let left = fs.power_cycle();
                world.env.jobs.abandon();
                left
            }
            Err(_) => fs.power_cycle(),
        };
        let world = world(left).unwrap();
        world.check(ROUNDS, seed);
        world.db.flush().unwrap();
        world.check(ROUNDS, seed);
    }
}

/// What a power loss left torn stays where it stood, and its numbers are given again. Behind the torn frame a whole
/// one stood: to salvage, it was taken for the record that had its number later.
#[test]
fn what_was_torn_off_is_not_taken_for_what_came_later() {
    let disk = MemoryFs::new();
    let (env, db, table) = start(disk.clone());
    ["first", "torn", "lost"].iter().for_each(|key| put(&db, &table, key.as_bytes(), Durability::Os));
    let disk = killed(&disk, &env, (db, table));
    let log = logs(&*disk)
        .into_iter()
        .max_by_key(|log| disk.open_read(log, Access::Buffered).unwrap().len().unwrap());
    let log = log.unwrap();
    let at = bytes_of(&*disk, &log).windows(4).position(|bytes| bytes == b"torn").unwrap() as u64;
    disk.open(&log, Access::Buffered).unwrap().write_at(at, b"T").unwrap();
    let (env, db, table) = start(disk.clone());
    ["second", "third"].iter().for_each(|key| put(&db, &table, key.as_bytes(), Durability::Os));
    let disk = killed(&disk, &env, (db, table));
    let env = Env::simulated(disk, 7);
    let db = Database::open(DIR, options(&env).read_only(true).salvage(true)).unwrap();
    let table = db.table("t").open().unwrap();
    let mut keys: Vec<_> = table.iter().unwrap().map(|entry| entry.unwrap().0).collect();
    keys.sort();
    assert_eq!(keys, [b"first".to_vec(), b"second".to_vec(), b"third".to_vec()]);
}

/// A crash on a full disk, with what a merge had half written. Opening wrote the log to new segments before it cleared
/// anything away, and failed for want of room, at every try.
#[test]
fn a_full_disk_is_cleared_before_it_is_asked_for_room() {
    let disk = MemoryFs::new();
    let (env, db, table) = start(disk.clone());
    for key in 0..100_u32 {
        put(&db, &table, &key.to_be_bytes(), Durability::Os);
    }
    let disk = killed(&disk, &env, (db, table));
    let half = Path::new(DIR).join("00000999.list");
    disk.create(&half, Access::Buffered).unwrap().write_at(0, &[1; 9999]).unwrap();
    let full = FaultyFs::new(disk);
    ["create * all no-space", "reserve *.log #1 no-space"].iter().for_each(|rule| full.rule(rule).unwrap());
    Database::open(DIR, options(&Env::simulated(full.clone(), 7))).unwrap_err();
    assert!(
        !full.exists(&half).unwrap(),
        "what nobody needs is gone, though there is no room for a new segment"
    );
    full.clear();
    full.rule("reserve *.log #1 no-space").unwrap();
    let fired = full.fired();
    let (_env, db, table) = start(full.clone());
    assert_eq!(full.fired(), fired + 1, "the first segment was refused its room");
    assert_eq!(table.iter().unwrap().count(), 100);
    put(&db, &table, b"a key", Durability::Disk);
    assert_eq!(table.iter().unwrap().count(), 101);
}

/// Each opening that a crash cut short left segments and a manifest of its own, which the next had to clear away
/// first: in the end none came so far.
#[test]
fn openings_that_do_not_come_to_their_end_leave_nothing_that_grows() {
    let mut disk = CrashFs::new(3);
    let (env, db, table) = start(disk.clone());
    for key in 0..100_u32 {
        put(&db, &table, &key.to_be_bytes(), Durability::Disk);
    }
    let files = |fs: &CrashFs| fs.list(Path::new(DIR)).unwrap().len();
    let most = files(&disk) + 4;
    let left = disk.power_cycle();
    env.jobs.abandon();
    drop((db, table));
    disk = left;
    for round in 0..60 {
        disk.crash_at(disk.operations() + 1 + round % 20);
        let env = Env::simulated(disk.clone(), 7);
        drop(Database::open(DIR, options(&env)));
        let left = disk.power_cycle();
        env.jobs.abandon();
        disk = left;
        assert!(files(&disk) <= most, "round {round} leaves {} files", files(&disk));
    }
    let (_env, _db, table) = start(disk);
    assert_eq!(table.iter().unwrap().count(), 100);
}

/// One flipped bit in the log, and no table could be read any more, not even those that are wholly in lists.
#[test]
fn what_is_intact_can_be_read_where_the_log_is_damaged() {
    let env = Env::memory(5);
    let db = Database::open(DIR, options(&env)).unwrap();
    let (flushed, table) = (db.table("flushed").open().unwrap(), db.table("t").open().unwrap());
    (0..50u8).for_each(|n| flushed.put([n], b"value").unwrap());
    db.flush().unwrap();
    (0..30u8).for_each(|n| table.put([n], b"value").unwrap());
    drop((flushed, table));
    db.close().unwrap();
    let path = logs(&*env.fs).pop().unwrap();
    let intact = bytes_of(&*env.fs, &path);
    let frame = intact.len() / 30;
    for at in [0, 5, frame * 10 + 40, frame * 29 + 3, intact.len() - 1] {
        let file = env.fs.open(&path, Access::Buffered).unwrap();
        file.write_at(at as u64, &[intact[at] ^ 4]).unwrap();
        assert!(Database::open(DIR, options(&env)).unwrap_err().is_corruption(), "byte {at}");
        let salvage = || options(&env).salvage(true);
        let db = Database::open(DIR, salvage()).unwrap();
        let table = db.table("t").open().unwrap();
        for n in 0..30 {
            let found = table.get([n]).unwrap();
            assert_eq!(found.is_none(), usize::from(n) == at / frame, "byte {at}: key {n}");
        }
        assert_eq!(db.table("flushed").open().unwrap().iter().unwrap().count(), 50);
        let damage = db.damage();
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert_eq!(
            (damage[0].file.as_ref(), damage[0].offset),
            (Some(&path), (at / frame * frame) as u64),
            "{damage:?}"
        );
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems.len(), 1);
        assert!(matches!(table.put(b"k", b"v"), Err(Error::Invalid(_))));
        drop((db, table));
        file.write_at(at as u64, &[intact[at]]).unwrap();
    }
    assert!(matches!(
        Database::open(DIR, options(&env).salvage(true).read_only(false)),
        Err(Error::Invalid(_))
    ));
    let db = Database::open(DIR, options(&env)).unwrap();
    assert!(db.damage().is_empty());
}

/// A whole segment that is missing is a gap; what comes behind it is there.
#[test]
fn a_lost_segment_costs_what_was_in_it_only() {
    let env = Env::memory(5);
    for round in 0..4u8 {
        let db = Database::open(DIR, options(&env)).unwrap();
        db.table("t").open().unwrap().put([round], b"value").unwrap();
        db.close().unwrap();
    }
    let lost = &logs(&*env.fs)[1];
    env.fs.remove(lost).unwrap();
    assert!(Database::open(DIR, options(&env)).unwrap_err().is_corruption());
    let db = Database::open(DIR, options(&env).salvage(true)).unwrap();
    let table = db.table("t").open().unwrap();
    let there: Vec<u8> = table.iter().unwrap().map(|entry| entry.unwrap().0[0]).collect();
    assert_eq!((there.len(), there.contains(&1)), (3, false));
    let damage = db.damage();
    assert!(damage.len() == 1 && damage[0].reason.contains("records 2 to 2"), "{damage:?}");
}

/// Verifying held the locks of writers while it read the whole log into memory, and took what stands behind its end in
/// a segment that is being written for damage.
#[test]
fn verifying_goes_on_beside_writes() {
    let (env, db, table) = start(MemoryFs::new());
    for round in 0..30u8 {
        (0..20u8).for_each(|n| table.put([n], [round; 40]).unwrap());
        if round % 7 == 3 {
            db.flush().unwrap();
        }
        put(&db, &table, b"memory", Durability::Memory);
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new(), "round {round}");
        env.jobs.advance(Duration::from_millis(30));
    }
    let path = logs(&*env.fs)[0].clone();
    put(&db, &table, b"last", Durability::Os);
    let damaged: Vec<PathBuf> =
        logs(&*env.fs).into_iter().filter(|path| bytes_of(&*env.fs, path)[0] != 0).collect();
    for path in damaged.iter().chain([&path]) {
        let file = env.fs.open(path, Access::Buffered).unwrap();
        file.write_at(9, &[0xee]).unwrap();
    }
    let problems = db.verify(&mut |_, _| ()).unwrap().problems;
    assert!(problems.iter().any(|problem| problem.contains(".log")), "{problems:?}");
}

/// The process that made the directories died before it had synced their names. The next one took them for made, and a
/// power loss took all of the database with a directory above it.
#[test]
fn a_database_whose_making_was_cut_short_is_not_lost_with_a_directory_above() {
    let dir = "/deep/down/db";
    for operation in 1..40 {
        let disk = CrashFs::new(operation);
        disk.crash_at(operation);
        let env = Env::simulated(disk.clone(), 7);
        drop(Database::open(dir, options(&env)));
        env.jobs.abandon();
        let disk = disk.process_cycle();
        let env = Env::simulated(disk.clone(), 7);
        let db = Database::open(dir, options(&env)).unwrap();
        let table = db.table("t").open().unwrap();
        put(&db, &table, b"key", Durability::Disk);
        let disk = disk.power_cycle();
        env.jobs.abandon();
        drop((table, db));
        let db = Database::open(dir, options(&Env::simulated(disk, 7))).unwrap();
        let found = db.table("t").open().unwrap().get(b"key").unwrap();
        assert!(found.is_some(), "cut short at operation {operation}");
    }
}

/// On threads a long log is read ahead of who checks it, and written and synced while the rest is read. What a failed sync
/// had lost is durable once the database is open, and what fails meanwhile fails the opening.
#[test]
fn a_long_log_is_read_and_made_durable_by_several_threads() {
    const BATCHES: u64 = 420;
    let options = |fs: Arc<dyn FileSystem>| {
        let env = Env { fs, ..Env::real() };
        Options::default().memory_limit(256 << 20).write_buffer(18 << 20).env(env)
    };
    let value = |number: u64| number.to_le_bytes().repeat(250);
    let rules = ["sync *.log #1 io-error", "write *.log #2 io-error", "write *.log #1 no-space"];
    let rules = rules.into_iter().chain([""; 8]).zip(1..);
    for (rule, seed) in rules {
        let disk = CrashFs::new(seed);
        let fs = FaultyFs::new(disk.clone());
        let db = Database::open(DIR, options(fs.clone())).unwrap();
        let table = db.table("t").open().unwrap();
        db.sync().unwrap();
        // Nothing is flushed.
        fs.rule("create *.list all no-space").unwrap();
        for batch in 0..BATCHES {
            let mut records = Batch::new();
            (0..50).map(|n| batch * 50 + n).for_each(|n| records.put(&table, n.to_be_bytes(), value(n)));
            db.commit(records, Durability::Os).unwrap();
        }
        disk.fail_next_sync(".log");
        let _ = db.sync();
        drop(table);
        assert!(db.close().is_err());
        fs.clear();
        if !rule.is_empty() {
            fs.rule(rule).unwrap();
            let opened = Database::open(DIR, options(fs.clone()));
            // There may be room once all is cleared away.
            assert_eq!(opened.is_ok(), rule.ends_with("no-space"), "{rule}");
            drop(opened.map(Database::close));
            fs.clear();
        }
        let db = Database::open(DIR, options(fs.clone())).unwrap();
        let left = disk.power_cycle();
        drop(db.close());
        let db = Database::open(DIR, options(left)).unwrap();
        let table = db.table("t").open().unwrap();
        for n in 0..BATCHES * 50 {
            assert!(table.get(n.to_be_bytes()).unwrap().as_deref() == Some(&value(n)[..]), "{rule}: {n}");
        }
        drop(table);
        db.close().unwrap();
    }
}
