//! Databases without a log: what a crash leaves of them, that nothing is written twice, and that whoever asks for more
//! gets it.

use std::path::Path;

use forebay::{Batch, Database, Durability, Layout, Options, Table};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
use forebay_env::{Env, Rng};

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(8 << 10).log(false).env(env.clone())
}

/// Puts a piece of the input, and how far that goes, in one batch.
fn read_on(db: &Database, table: &Table, input: std::ops::Range<u64>) {
    let mut batch = Batch::new();
    input.clone().for_each(|n| batch.put(table, n.to_be_bytes(), n.to_le_bytes()));
    batch.put(table, "offset", input.end.to_le_bytes());
    db.commit(batch, Durability::Memory).unwrap();
}

/// How far the input is in the table, of which all is there and no more.
fn offset(table: &Table) -> u64 {
    let offset =
        table.get("offset").unwrap().map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()));
    let found = table.iter().unwrap().count() as u64;
    assert_eq!(found, if offset == 0 { 0 } else { offset + 1 }, "all up to {offset}");
    offset
}

/// A program that goes on where its last flush was loses nothing, wherever its process or the power ends.
#[test]
fn state_is_what_the_last_flush_had_and_the_host_goes_on_from_there() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut fs = CrashFs::new(seed);
        let mut flushed = 0;
        for _ in 0..6 {
            let env = Env::simulated(fs.clone(), rng.next_u64());
            let db = Database::open("/db", options(&env)).unwrap();
            let table = db.table("t").open().unwrap();
            let mut at = offset(&table);
            assert!(at >= flushed, "what was flushed up to {flushed} is there, not only up to {at}");
            for _ in 0..rng.index(60) {
                let to = at + 1 + rng.index(50) as u64;
                read_on(&db, &table, at..to);
                at = to;
                if rng.chance(3) {
                    db.flush().unwrap();
                    flushed = at;
                    assert_eq!(db.durable_sequence(), db.last_sequence());
                }
            }
            if rng.chance(30) {
                db.close().unwrap();
                flushed = at;
            } else {
                std::mem::forget(db);
                fs = if rng.chance(50) { fs.power_cycle() } else { fs.process_cycle() };
            }
        }
    }
}

fn log_bytes(db: &Database) -> u64 {
    db.stats().log_bytes
}

#[test]
fn nothing_is_written_to_a_log_that_nobody_asks_for() {
    let env = Env::simulated(MemoryFs::new(), 1);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    for n in 0..5000_u64 {
        table.put(n.to_be_bytes(), [1; 20]).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(log_bytes(&db), 0);
    table.put("last", "one").unwrap();
    // It is written as the database is closed, too, but as a list.
    db.close().unwrap();
    let db = Database::open("/db", options(&env).read_only(true)).unwrap();
    assert_eq!(db.table("t").open().unwrap().get("last").unwrap().as_deref(), Some(&b"one"[..]));
}

/// What is asked for is a beginning of all: what was put before is as durable, in sealed buffers, too.
#[test]
fn a_write_that_asks_for_more_takes_all_before_it_along() {
    for durability in [Durability::Os, Durability::Disk] {
        let fs = CrashFs::new(7);
        let env = Env::simulated(fs.clone(), 1);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").open().unwrap();
        for n in 0..400_u64 {
            table.put(n.to_be_bytes(), [n as u8; 20]).unwrap();
        }
        let mut batch = Batch::new();
        batch.put(&table, "asked", "");
        db.commit(batch, durability).unwrap();
        assert!(log_bytes(&db) > 0, "no buffer was flushed, or none was written");
        std::mem::forget(db);
        let is_disk = durability == Durability::Disk;
        let fs = if is_disk { fs.power_cycle() } else { fs.process_cycle() };
        let env = Env::simulated(fs, 2);
        let db = Database::open("/db", options(&env)).unwrap();
        assert_eq!(db.table("t").open().unwrap().iter().unwrap().count(), 401);
    }
}

#[test]
fn a_log_may_come_and_go_between_openings() {
    let mut fs = CrashFs::new(3);
    let mut puts = 0_u64;
    for round in 0..12 {
        let env = Env::simulated(fs.clone(), round);
        let db = Database::open("/db", options(&env).log(round % 3 == 0)).unwrap();
        let table = db.table("t").open().unwrap();
        assert_eq!(table.iter().unwrap().count() as u64, puts);
        for _ in 0..300 {
            table.put(puts.to_be_bytes(), [2; 20]).unwrap();
            puts += 1;
        }
        if round % 2 == 0 {
            db.sync().unwrap();
            std::mem::forget(db);
            fs = fs.power_cycle();
        }
    }
}

/// Tables that need the log have it: records in memory alone, and values that stay where they are written.
#[test]
fn tables_that_rest_on_the_log_keep_what_was_flushed() {
    let fs = CrashFs::new(5);
    let env = Env::simulated(fs.clone(), 1);
    let db = Database::open("/db", options(&env)).unwrap();
    let resident = db.table("resident").layout(Layout::range_merge()).node_bytes(8 << 10).open().unwrap();
    let apart = db.table("apart").values_apart(100).open().unwrap();
    for n in 0..2000_u64 {
        resident.put(n.to_be_bytes(), [3; 20]).unwrap();
        apart.put(n.to_be_bytes(), [4; 400]).unwrap();
    }
    let durable = db.durable_sequence();
    assert!(durable > 1000, "buffers were flushed: {durable}");
    std::mem::forget(db);
    let env = Env::simulated(fs.power_cycle(), 2);
    let db = Database::open("/db", options(&env)).unwrap();
    assert!(db.last_sequence() >= durable);
    assert!(db.verify(&mut |_, _| {}).unwrap().problems.is_empty());
    let counts =
        ["resident", "apart"].map(|name| db.table(name).open().unwrap().iter().unwrap().count() as u64);
    assert_eq!(counts[0] + counts[1], db.last_sequence(), "one record a key");
}

/// A segment of which some was asked for is sealed, and then somebody waits for just that to be durable.
#[test]
fn what_is_written_of_a_sealed_segment_is_synced_with_all_else() {
    for seed in 0..8 {
        let fs = CrashFs::new(seed);
        let env = Env::simulated(fs.clone(), seed);
        let options = options(&env).sync_interval(std::time::Duration::MAX);
        let db = Database::open("/db", options.write_buffers(8)).unwrap();
        let table = db.table("t").open().unwrap();
        let put = |key: &str, durability| {
            let mut batch = Batch::new();
            batch.put(&table, key, [5; 1000]);
            db.commit(batch, durability).unwrap()
        };
        put("first", Durability::Memory);
        let asked = put("asked", Durability::Os);
        (0..12).for_each(|n| assert!(put(&format!("key{n}"), Durability::Memory) > asked));
        println!("seed {seed}");
        db.wait_durable(asked).unwrap();
        assert!(db.durable_sequence() >= asked);
        std::mem::forget(db);
        let env = Env::simulated(fs.power_cycle(), seed);
        let db = Database::open("/db", self::options(&env)).unwrap();
        let table = db.table("t").open().unwrap();
        assert!(table.contains_key("first").unwrap() && table.contains_key("asked").unwrap());
    }
}

/// A closing that cannot flush writes the log.
#[test]
fn what_no_list_takes_when_it_is_closed_is_in_the_log() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::simulated(fs.clone(), 1);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    table.put("key", "value").unwrap();
    fs.rule("write *.list all no-space").unwrap();
    db.close().unwrap();
    fs.clear();
    assert!(env.fs.list(Path::new("/db")).unwrap().iter().any(|name| name.ends_with(".log")));
    let db = Database::open("/db", options(&env)).unwrap();
    assert_eq!(db.table("t").open().unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
}
