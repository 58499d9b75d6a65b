//! Openings of which the ground is taken away: by a system that forgets what it could not write, by a full disk.

use std::path::Path;
use std::sync::Arc;

use forebay::{Batch, Database, Durability, Options, Result, Table};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
use forebay_env::{Env, FileSystem};

const DIR: &str = "/db";

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

fn start(fs: Arc<dyn FileSystem>) -> Result<(Env, Database, Table)> {
    let env = Env::simulated(fs, 7);
    let db = Database::open(DIR, options(&env))?;
    let table = db.table("t").open()?;
    Ok((env, db, table))
}

fn put(db: &Database, table: &Table, key: &[u8], durability: Durability) -> Result<()> {
    let mut batch = Batch::new();
    batch.put(table, key, b"value");
    db.commit(batch, durability).map(drop)
}

/// The system showed what it could not write, and forgot it while the database was opened again. What was written over
/// itself then was what the disk had, and not what had been read and acted upon: files were removed by grace of an
/// edit on no disk.
#[test]
fn what_is_forgotten_while_it_is_renewed_is_not_acted_upon() {
    for seed in 0..6 {
        for kind in [".log", ".manifest"] {
            for read in 1..9 {
                let what = format!("disk {seed}, {kind} forgotten at read {read}");
                let disk = CrashFs::new(seed);
                let (env, db, table) = start(disk.clone()).unwrap();
                put(&db, &table, b"before", Durability::Disk).unwrap();
                put(&db, &table, b"lost", Durability::Os).unwrap();
                disk.fail_next_sync(kind);
                assert!(db.sync().and_then(|()| db.flush()).is_err());
                drop(table);
                assert!(db.close().is_err());
                env.jobs.abandon();
                disk.evict_at_read(kind, read);
                // Where it comes to nothing the next one begins with what there is.
                let (env, db, table) = start(disk.clone()).or_else(|_| start(disk.clone())).expect(&what);
                let is_there = table.get(b"lost").unwrap().is_some();
                put(&db, &table, b"after", Durability::Disk).unwrap();
                let left = disk.power_cycle();
                env.jobs.abandon();
                drop((db, table));
                let (_env, _db, table) = start(left).expect(&what);
                assert!(table.get(b"before").unwrap().is_some(), "{what}");
                assert!(table.get(b"after").unwrap().is_some(), "{what}");
                assert_eq!(table.get(b"lost").unwrap().is_some(), is_there, "{what}");
            }
        }
    }
}

/// `CURRENT` said that the database is open, in memory alone: the sync of its name had failed, and the next one said
/// that all is well. A power loss brought back the one of before, and with it "the manifest is not as it was when
/// closed". The next opening may have no room to write it, until it has cleared away.
#[test]
fn a_name_whose_sync_has_failed_is_made_again() {
    for (seed, is_full) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        let disk = CrashFs::new(seed);
        let (_env, db, table) = start(disk.clone()).unwrap();
        put(&db, &table, b"before", Durability::Disk).unwrap();
        drop(table);
        db.close().unwrap();
        disk.fail_next_sync_of_name("CURRENT");
        assert!(start(disk.clone()).is_err(), "disk {seed}");
        let full = FaultyFs::new(disk.clone());
        if is_full {
            full.rule("write *CURRENT.tmp #1 no-space").unwrap();
        }
        let (env, db, table) = start(full).unwrap();
        put(&db, &table, b"after", Durability::Disk).unwrap();
        db.flush().unwrap();
        let left = disk.power_cycle();
        env.jobs.abandon();
        drop((db, table));
        let (_env, _db, table) = start(left).unwrap_or_else(|error| panic!("disk {seed}: {error}"));
        assert_eq!(table.iter().unwrap().count(), 2, "disk {seed}");
    }
}

/// The sync of the name found no room, and that passed for a `CURRENT` that was not replaced: names that were lost by it
/// were taken for durable.
#[test]
fn a_name_whose_sync_finds_no_room_is_not_passed_over() {
    let disk = CrashFs::new(7);
    let (env, db, table) = start(disk.clone()).unwrap();
    put(&db, &table, b"before", Durability::Disk).unwrap();
    let left = disk.process_cycle();
    env.jobs.abandon();
    drop((db, table));
    let full = FaultyFs::new(left);
    full.rule("sync_dir db #1 no-space").unwrap();
    assert!(start(full.clone()).is_err_and(|error| error.is_no_space()));
    assert_eq!(full.fired(), 1);
    let (_env, _db, table) = start(full).unwrap();
    assert_eq!(table.iter().unwrap().count(), 1);
}

/// A database of as many segments as it was opened and closed, each with one record, and more than are left as they
/// are.
fn with_many_segments() -> Arc<MemoryFs> {
    let disk = MemoryFs::new();
    for round in 0..12u8 {
        let env = Env::simulated(disk.clone(), 7);
        // Not to be folded yet.
        let many = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).write_buffers(40);
        let db = Database::open(DIR, many.env(env)).unwrap();
        let table = db.table("t").open().unwrap();
        put(&db, &table, &[round], Durability::Os).unwrap();
        drop(table);
        db.close().unwrap();
    }
    disk
}

/// What was folded took the room that `CURRENT.tmp` needs, at every try. Unfolded there was room.
#[test]
fn a_log_is_not_folded_at_the_cost_of_what_opening_needs() {
    let disk = with_many_segments();
    let before = disk.list(Path::new(DIR)).unwrap();
    let full = FaultyFs::new(disk);
    full.rule("write *CURRENT.tmp all no-space").unwrap();
    assert!(start(full.clone()).is_err_and(|error| error.is_no_space()));
    assert_eq!(full.list(Path::new(DIR)).unwrap(), before, "nothing was folded before there is room to open");
    full.clear();
    let (_env, _db, table) = start(full.clone()).unwrap();
    assert!(full.list(Path::new(DIR)).unwrap().len() < before.len(), "folded");
    assert_eq!(table.iter().unwrap().count(), 12);
}

/// Where there was no room for what is folded, opening failed at every try, though nothing has to be folded.
#[test]
fn a_log_that_there_is_no_room_to_fold_is_read_as_it_is() {
    let full = FaultyFs::new(with_many_segments());
    full.rule("write *.log all no-space").unwrap();
    let (_env, _db, table) = start(full.clone()).unwrap();
    assert_eq!(table.iter().unwrap().count(), 12);
    full.clear();
}
