//! Handles that outlive their database: they read on, and change nothing, whoever has opened the directory by then.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay::aggregate::functions::Count;
use forebay::{Batch, Database, Durability, Layout, Options, Result};
use forebay_env::{Access, Env};

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

/// The files of the database, byte for byte.
fn files(env: &Env) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| {
        let file = env.fs.open_read(&Path::new("/db").join(&name), Access::Buffered).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        (name, bytes)
    };
    env.fs.list(Path::new("/db")).unwrap().into_iter().map(read).collect()
}

fn assert_closed<T>(outcome: Result<T>, what: &str) {
    let said = outcome.err().unwrap_or_else(|| panic!("{what} was not refused")).to_string();
    assert!(said.contains("the database is closed"), "{what}: {said}");
}

/// An edit of the manifest behind what `CURRENT` says of it made a database that nothing could open again.
#[test]
fn what_is_asked_of_handles_after_close_changes_no_file() {
    for is_empty in [true, false] {
        let env = Env::memory(1);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").layout(Layout::leveling(4)).node_bytes(8 << 10).open_ordered().unwrap();
        let hits = db.aggregator("hits", Count).open().unwrap();
        let builder = db.table("made later");
        let mut batch = Batch::new();
        batch.add(&hits, b"k", ());
        let entries = |from: u8| (from..from + 9).map(|n| Ok((vec![n], vec![n])));
        table.ingest(entries(1)).unwrap();
        if !is_empty {
            // So that the old log's buffer has something that a flush would write.
            table.put(b"k", b"v").unwrap();
        }
        db.close().unwrap();
        let before = files(&env);
        assert_closed(table.put(b"k", b"w"), "put");
        assert_closed(table.delete_range(..), "delete_range");
        assert_closed(table.set_layout(Layout::tiering(4)), "set_layout");
        assert_closed(table.set_layout(Layout::wb_tree()), "set_layout of another order");
        assert_closed(table.compact(), "compact");
        assert_closed(table.ingest(entries(100)), "ingest");
        assert_closed(hits.commit(batch, Durability::Os, b"offset"), "commit");
        assert_closed(hits.add(b"k", ()), "add");
        assert_closed(hits.finalize(), "finalize");
        assert_closed(builder.open(), "open");
        assert_eq!(table.get([3]).unwrap().as_deref(), Some(&[3][..]), "reads go on");
        assert_eq!(table.snapshot().iter(&table).unwrap().count(), if is_empty { 9 } else { 10 });
        assert!(before == files(&env), "files have changed");
        let again = Database::open("/db", options(&env)).unwrap();
        assert_closed(table.put(b"k", b"w"), "put");
        assert_closed(table.compact(), "compact");
        drop((table, hits));
        again.close().unwrap();
    }
}

/// Entries of an ingest came in after the database was closed, into the manifest of whoever had opened it again.
#[test]
fn an_ingest_that_is_under_way_when_the_database_is_closed_brings_nothing_in() {
    let env = Env::memory(2);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").layout(Layout::leveling(4)).node_bytes(8 << 10).open_ordered().unwrap();
    let left = Arc::new(forebay_env::sync::Mutex::new(Vec::new()));
    let closes = forebay_env::sync::Mutex::new({
        let (mut db, env, left) = (Some(db), env.clone(), Arc::clone(&left));
        move |n: u16| {
            if n == 500 {
                db.take().unwrap().close().unwrap();
                *left.lock() = files(&env);
            }
        }
    });
    let entries = (0..3000_u16).map(move |n| {
        closes.lock()(n);
        Ok((n.to_be_bytes().to_vec(), vec![7; 40]))
    });
    assert_closed(table.ingest(entries), "ingest");
    assert!(*left.lock() == files(&env), "it wrote, or cleared away, behind who closed the database");
    let db = Database::open("/db", options(&env)).unwrap();
    assert_eq!(db.table("t").open().unwrap().iter().unwrap().count(), 0);
}

/// A handle of before made log segments with numbers of its own, and so cut one to nothing that was in use.
#[test]
fn a_handle_of_before_wipes_no_log_of_who_opened_the_database_again() {
    let env = Env::memory(3);
    let db = Database::open("/db", options(&env)).unwrap();
    let old = db.table("t").open().unwrap();
    old.put(b"old", b"1").unwrap();
    env.jobs.step_some(50);
    db.close().unwrap();
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    for n in 0..8_u32 {
        let mut batch = Batch::new();
        batch.put(&table, n.to_be_bytes(), b"acknowledged");
        db.commit(batch, Durability::Disk).unwrap();
        let before = files(&env);
        let _ = old.compact();
        assert!(before == files(&env), "round {n}");
        db.flush().unwrap();
    }
}

/// A writer who stood still between two lines for as long as closing and opening again took.
#[test]
fn a_writer_who_sleeps_through_close_and_open_wakes_to_an_error() {
    for seed in 0..60 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = Database::open("/db", options(&env)).unwrap();
        let old = db.table("t").open().unwrap();
        let written = Arc::new(AtomicU64::new(0));
        let writer = env.jobs.fork("writer", {
            let written = Arc::clone(&written);
            move || {
                for number in 0_u64.. {
                    if old.put(number.to_be_bytes(), [1; 100]).is_err() {
                        return;
                    }
                    written.store(number + 1, Ordering::SeqCst);
                }
            }
        });
        env.jobs.step_some(100 + seed as usize * 7);
        db.close().unwrap();
        let before = written.load(Ordering::SeqCst);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").open().unwrap();
        for number in 0..100_u64 {
            table.put((number << 32).to_be_bytes(), [2; 100]).unwrap();
            env.jobs.step_some(3);
        }
        writer.join();
        drop(table);
        db.close().unwrap();
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").open().unwrap();
        for number in 1..before {
            assert!(table.get(number.to_be_bytes()).unwrap().is_some(), "seed {seed}: {number} of {before}");
        }
        for number in 0..100_u64 {
            assert_eq!(table.get((number << 32).to_be_bytes()).unwrap(), Some(vec![2; 100]), "seed {seed}");
        }
        drop(table);
        db.close().unwrap();
    }
}

/// Who opened the database again gave segments of the log another use that the feed of a handle of before still read,
/// which was told of damage in a sound database.
#[test]
fn the_log_that_a_handle_of_before_reads_is_given_no_other_use() {
    let env = Env::memory(4);
    let options = || Options::default().memory_limit(32 << 20).write_buffer(4 << 20).env(env.clone());
    let db = Database::open("/db", options().keep_changes(64 << 20)).unwrap();
    let table = db.table("t").open().unwrap();
    let fill = |table: &forebay::Table, count: u32| {
        (0..count).for_each(|number| table.put(number.to_be_bytes(), [number as u8; 10_000]).unwrap());
    };
    fill(&table, 350);
    db.flush().unwrap();
    let mut changes = db.changes(0).unwrap();
    let first = changes.next().unwrap().unwrap();
    assert_eq!(first.last_sequence, 1);
    drop(table);
    db.close().unwrap();
    let db = Database::open("/db", options()).unwrap();
    let table = db.table("t").open().unwrap();
    fill(&table, 2000);
    db.flush().unwrap();
    let mut last = 1;
    for batch in changes {
        last = batch.unwrap_or_else(|error| panic!("{error}, after {last}")).last_sequence;
    }
    assert_eq!(last, 350);
}

/// Who dropped a database while unwinding waited for itself, forever: closing took that for its own end.
#[test]
fn a_panic_with_a_database_at_hand_closes_it() {
    let env = Env::memory(4);
    let panics = || {
        let db = Database::open("/db", options(&env)).unwrap();
        db.table("t").open().unwrap().put(b"k", b"v").unwrap();
        panic!("at the user's own");
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    let db = Database::open("/db", options(&env)).unwrap();
    assert_eq!(db.table("t").open().unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}
