//! Crashes that once lost data or stopped work, each found by the simulation and told here in few steps.
//! The disk draws anew what survives, many times over.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Layout, Options, Result, Table};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
use forebay_env::{Env, FileSystem};

/// How often a crash is drawn.
const DRAWS: u64 = 60;

fn open(fs: Arc<dyn FileSystem>, dir: &str) -> Result<(Env, Database, Table)> {
    let env = Env::simulated(fs, 7);
    let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone());
    let db = Database::open(dir, options)?;
    let table = db.table("t").open()?;
    Ok((env, db, table))
}

fn write(db: &Database, table: &Table, key: &[u8], value: &[u8], durability: Durability) {
    let mut batch = Batch::new();
    batch.put(table, key, value);
    db.commit(batch, durability).unwrap();
}

/// Switches the power off and forgets the open database.
fn crash(fs: &CrashFs, open: (Env, Database, Table)) -> Arc<CrashFs> {
    let left = fs.power_cycle();
    open.0.jobs.abandon();
    drop(open);
    left
}

/// Only the database's own directory entry was synced, not those of its new parents: a power loss took the
/// parents, and all in them.
#[test]
fn the_directories_above_a_new_database_are_durable_too() {
    for seed in 0..DRAWS {
        let fs = CrashFs::new(seed);
        let opened = open(fs.clone(), "/new/and/deep/db").unwrap();
        write(&opened.1, &opened.2, b"key", b"value", Durability::Disk);
        let fs = crash(&fs, opened);
        let (_env, _db, table) = open(fs, "/new/and/deep/db").unwrap();
        assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]), "disk {seed}");
    }
}

/// A batch without records, as of a range that holds no key, was acknowledged at `Os` with the number of a record that
/// was only in the process's memory.
#[test]
fn a_batch_of_nothing_hands_over_what_was_written_before() {
    for durability in [Durability::Os, Durability::Disk] {
        let fs = CrashFs::new(1);
        let opened = open(fs.clone(), "/db").unwrap();
        write(&opened.1, &opened.2, b"key", b"value", Durability::Memory);
        assert_eq!(opened.1.commit(Batch::new(), durability).unwrap(), 1);
        let left = if durability == Durability::Os { fs.process_cycle() } else { fs.power_cycle() };
        opened.0.jobs.abandon();
        drop(opened);
        let (_env, db, table) = open(left, "/db").unwrap();
        assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]), "{durability:?}");
        assert_eq!(db.last_sequence(), 1);
    }
}

/// What tables keep in memory counts as flushed once the log has it, durable or not. Whoever kept fewer changes from then
/// on had the manifest told so while nothing was synced; the power failed, and the database did not open.
#[test]
fn changes_that_are_given_up_leave_nothing_flushed_that_is_not_durable() {
    for seed in 0..DRAWS {
        let fs = CrashFs::new(seed);
        let env = Env::simulated(fs.clone(), 7);
        let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).keep_changes(1 << 20);
        let options = options.sync_interval(Duration::from_secs(3600)).env(env.clone());
        let db = Database::open("/db", options).unwrap();
        let [table, files] = ["t", "files"].map(|name| {
            let layout = if name == "t" { Layout::range_merge() } else { Layout::wb_tree() };
            db.table(name).layout(layout).open().unwrap()
        });
        // Its segment is kept for its changes alone.
        write(&db, &files, b"first", &[1; 40], Durability::Disk);
        db.flush().unwrap();
        let durable = db.stats().durable_sequence;
        (0..90u8).for_each(|n| write(&db, &table, &[n], &[2; 40], Durability::Os));
        env.jobs.step_some(500);
        let stats = db.stats();
        assert!(stats.memory.resident_records > 0 && stats.durable_sequence == durable);
        db.keep_changes(0).unwrap();
        drop(files);
        let fs = crash(&fs, (env, db, table));
        let (_env, db, _table) = open(fs, "/db").unwrap();
        let files = db.table("files").open().unwrap();
        assert_eq!(files.get(b"first").unwrap().as_deref(), Some(&[1; 40][..]), "disk {seed}");
    }
}

/// A checkpoint's directory was not synced in its parent.
#[test]
fn a_checkpoint_survives_a_power_loss() {
    for seed in 0..DRAWS {
        let fs = CrashFs::new(seed);
        let opened = open(fs.clone(), "/db").unwrap();
        write(&opened.1, &opened.2, b"key", b"value", Durability::Memory);
        opened.1.checkpoint("/copies/one").unwrap();
        let fs = crash(&fs, opened);
        let (_env, _db, table) = open(fs, "/copies/one").unwrap();
        assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]), "disk {seed}");
    }
}

/// The manifest says that segments below number `n` are in lists. Crashes then took all segments from `n` on,
/// numbering began again at the highest file left, and a new segment got a number below `n`. At the next
/// crash it was taken for one that is in lists, and removed with all that was acknowledged in it.
#[test]
fn a_new_segment_is_never_numbered_below_those_in_lists() {
    for seed in 0..DRAWS {
        let fs = CrashFs::new(seed);
        let opened = open(fs.clone(), "/db").unwrap();
        // The background sync has its turn now, and none after the write.
        opened.0.jobs.step_some(10);
        // Too long for the empty first buffer: that one is sealed, and flushed with nothing in it.
        write(&opened.1, &opened.2, b"long", &[1; 9000], Durability::Memory);
        opened.0.jobs.step_some(50);
        let fs = crash(&fs, opened);
        // The next opening clears the segments away, and is cut short before it makes one of its own.
        fs.crash_at(1 + seed % 12);
        let cut_short = open(fs.clone(), "/db").is_err();
        let fs = if cut_short { fs.power_cycle() } else { continue };
        let opened = open(fs.clone(), "/db").unwrap();
        write(&opened.1, &opened.2, b"key", b"value", Durability::Disk);
        let fs = crash(&fs, opened);
        let (_env, _db, table) = open(fs, "/db").unwrap();
        assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]), "disk {seed}");
    }
}

/// A list that could not be opened for a moment answered every later lookup with that moment's error.
#[test]
fn a_list_that_could_not_be_opened_is_tried_again() {
    let fs = FaultyFs::new(MemoryFs::new());
    let (_env, db, table) = open(fs.clone(), "/db").unwrap();
    write(&db, &table, b"key", b"value", Durability::Os);
    db.flush().unwrap();
    drop(table);
    db.close().unwrap();
    fs.rule("open *.list all io-error").unwrap();
    let (_env, _db, table) = open(fs.clone(), "/db").unwrap();
    assert!(table.get(b"key").is_err());
    fs.clear();
    assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// A merge that failed once, and was not wanted any more when the disk was well again, left its error behind
/// for every flush and every writer that met a full buffer.
#[test]
fn a_failed_merge_does_not_stop_writers_or_flushes() {
    let fs = FaultyFs::new(MemoryFs::new());
    let (env, db, table) = open(fs.clone(), "/db").unwrap();
    let put_some = || (0..300u32).for_each(|number| table.put(number.to_be_bytes(), [7; 30]).unwrap());
    put_some();
    db.flush().unwrap();
    // Merges read lists; writers and flushes do not.
    fs.rule("read *.list all io-error").unwrap();
    assert!(table.compact().is_err());
    put_some();
    db.flush().unwrap();
    fs.clear();
    env.jobs.advance(Duration::from_secs(1));
    env.jobs.step_some(10_000);
    table.compact().unwrap();
    assert_eq!(table.iter().unwrap().map(Result::unwrap).count(), 300);
}

/// After a failed sync nobody knows what is on the disk: nothing more is written, what was read stays
/// readable, and reopening finds all that was acknowledged.
#[test]
fn a_failed_sync_stops_all_writing_until_the_database_is_reopened() {
    for rule in ["sync *.log #1 lost", "sync *.manifest #1 lost"] {
        let fs = FaultyFs::new(MemoryFs::new());
        let (_env, db, table) = open(fs.clone(), "/db").unwrap();
        write(&db, &table, b"kept", b"value", Durability::Disk);
        fs.rule(rule).unwrap();
        let mut batch = Batch::new();
        batch.put(&table, b"key", b"value");
        let failed = db.commit(batch, Durability::Disk).and_then(|_| db.flush());
        assert!(failed.is_err(), "{rule}");
        fs.clear();
        for outcome in [table.put(b"more", b"value"), db.flush(), db.sync()] {
            assert!(matches!(outcome, Err(forebay::Error::Poisoned(_))), "{rule}: {outcome:?}");
        }
        assert_eq!(table.get(b"kept").unwrap().as_deref(), Some(&b"value"[..]));
        drop(table);
        assert!(db.close().is_err(), "closing hides that a sync failed");
        let (_env, db, table) = open(fs.clone(), "/db").unwrap();
        assert_eq!(table.get(b"kept").unwrap().as_deref(), Some(&b"value"[..]));
        write(&db, &table, b"more", b"value", Durability::Disk);
    }
}

/// Machines that wake each other, or themselves, for nothing would never let the machine sleep.
#[test]
fn background_work_rests_when_there_is_none() {
    let (env, db, table) = open(MemoryFs::new(), "/db").unwrap();
    (0..900u32).for_each(|number| table.put(number.to_be_bytes(), [7; 30]).unwrap());
    db.flush().unwrap();
    // Time passes only when no machine has anything to do.
    let started = env.clock.now();
    let later = started + Duration::from_secs(1);
    let mut asked = 0;
    env.jobs.wait_until(later, &mut || {
        asked += 1;
        false
    });
    assert!(asked < 500, "{asked} steps in a second without work");
}

/// What sealed segments had reserved and not used was left at closing, and any damage to it went unseen;
/// so was the segment kept for recycling.
#[test]
fn a_closed_database_has_no_byte_that_nothing_checks() {
    let fs = MemoryFs::new();
    let (env, db, table) = open(fs.clone(), "/db").unwrap();
    (0..900u32).for_each(|number| table.put(number.to_be_bytes(), [7; 30]).unwrap());
    drop(table);
    db.close().unwrap();
    for name in fs.list(Path::new("/db")).unwrap().iter().filter(|name| name.ends_with(".log")) {
        let file = fs.open(&Path::new("/db").join(name), forebay_env::Access::Buffered).unwrap();
        let Some(last) = file.len().unwrap().checked_sub(1) else { continue };
        let mut byte = [0];
        file.read_at(last, &mut byte).unwrap();
        file.write_at(last, &[!byte[0]]).unwrap();
        assert!(Database::open("/db", Options::default().env(env.clone())).is_err(), "{name}");
        file.write_at(last, &byte).unwrap();
    }
    Database::open("/db", Options::default().env(env)).unwrap();
}
