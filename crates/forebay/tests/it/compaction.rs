//! Compactions that users wait for: they end, and say what was not done.

use std::sync::Arc;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Error, Layout, Options, Table};
use forebay_env::Env;
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::sync::Mutex;
use forebay_testkit::Suffix;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

fn fill(table: &Table, value: u8) {
    (0..300_u32).for_each(|n| table.put(n.to_be_bytes(), [value; 40]).unwrap());
}

#[test]
fn compacting_a_table_that_is_gone_says_so() {
    for is_rolled_back in [false, true] {
        let env = Env::memory(1);
        let db = Database::open("/db", options(&env)).unwrap();
        db.savepoint("before").unwrap();
        let table = db.table("t").open().unwrap();
        fill(&table, 1);
        match is_rolled_back {
            true => db.rollback("before").unwrap(),
            false => db.drop_table("t").unwrap(),
        }
        assert!(matches!(table.compact(), Err(Error::NotFound(_))));
    }
}

#[test]
fn compacting_a_table_that_goes_meanwhile_ends() {
    for seed in 0..20 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").open().unwrap();
        fill(&table, 1);
        let compacting = env.jobs.fork("compacting", {
            let table = table.clone();
            move || {
                let outcome = table.compact();
                assert!(matches!(outcome, Ok(()) | Err(Error::NotFound(_))), "{outcome:?}");
            }
        });
        env.jobs.step_some(seed as usize * 5);
        db.drop_table("t").unwrap();
        compacting.join();
        assert_eq!(db.stats().debt_bytes, 0, "a dropped table owes nothing");
        db.close().unwrap();
    }
}

/// It said that all was done where the table's rule was not known, and nothing was.
#[test]
fn compacting_says_what_keeps_it_from_that() {
    let env = Env::memory(2);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").merge_rule(Suffix).open().unwrap();
    table.merge(b"k", b"12345678").unwrap();
    db.flush().unwrap();
    drop(table);
    db.close().unwrap();
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.snapshot().table("t").unwrap();
    let said = table.compact().unwrap_err().to_string();
    assert!(said.contains("`t`") && said.contains("was not opened with it"), "{said}");
}

/// Both ask at once: nobody is told before a compactor has looked since they asked, and all are told.
#[test]
fn all_who_ask_for_a_compaction_are_told() {
    for seed in 0..10 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").layout(Layout::leveling(4)).open().unwrap();
        let users = [1, 2, 3].map(|value| {
            let table = table.clone();
            env.jobs.fork("user", move || {
                fill(&table, value);
                table.compact().unwrap();
            })
        });
        users.into_iter().for_each(forebay_env::Handle::join);
        drop(table);
        db.close().unwrap();
    }
}

/// Some tables' files cannot be read for now: merges of others went on waiting for them, of which two had their turns
/// one after the other.
#[test]
fn a_table_that_fails_keeps_no_other_waiting() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::simulated(fs.clone(), 3);
    let db = Database::open("/db", options(&env)).unwrap();
    let tables = ["a", "b", "c"].map(|name| db.table(name).node_bytes(4 << 10).open().unwrap());
    for value in 1..4 {
        fill(&tables[0], value);
        fill(&tables[2], value);
        db.flush().unwrap();
    }
    let lists_of_both: Vec<String> = env.fs.list("/db".as_ref()).unwrap();
    for value in 1..4 {
        fill(&tables[1], value);
        db.flush().unwrap();
    }
    for name in lists_of_both.iter().filter(|name| name.ends_with(".list")) {
        fs.rule(&format!("read {name} all io-error")).unwrap();
    }
    let [a, b, c] = tables;
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let compacting = [&a, &c].map(|table| {
        let (table, outcomes) = (table.clone(), Arc::clone(&outcomes));
        env.jobs.fork("compacting", move || {
            while table.compact().inspect_err(|error| outcomes.lock().push(error.to_string())).is_err() {}
        })
    });
    b.compact().unwrap();
    assert!(!outcomes.lock().is_empty());
    fs.clear();
    compacting.into_iter().for_each(forebay_env::Handle::join);
}

/// An edit of a tree that moves no data could not be recorded: whoever asked waited for as long as the disk was full.
#[test]
fn a_compaction_whose_edit_is_not_recorded_says_so() {
    for seed in 0..12 {
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::simulated(fs.clone(), seed);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").node_bytes(4 << 10).open().unwrap();
        fill(&table, 1);
        (300..300 + 40 * seed as u32).for_each(|n| table.put(n.to_be_bytes(), [2; 40]).unwrap());
        db.flush().unwrap();
        fs.rule("write *.manifest all io-error").unwrap();
        let outcome = Arc::new(Mutex::new(None));
        let compacting = env.jobs.fork("compacting", {
            let (table, outcome) = (table.clone(), Arc::clone(&outcome));
            move || *outcome.lock() = Some(table.compact())
        });
        env.jobs.step_some(10_000);
        // What has failed is tried again once some time has passed.
        env.jobs.advance(Duration::from_millis(200));
        env.jobs.step_some(10_000);
        let told = outcome.lock().take();
        fs.clear();
        compacting.join();
        assert!(matches!(told, Some(Err(Error::Io { .. }) | Ok(()))), "seed {seed}: {told:?}");
    }
}

/// It was over once a compactor found nothing to merge, and where others write that moment may never come.
#[test]
fn a_compaction_ends_while_others_write() {
    const PUTS_MAX: u32 = 30_000;
    const LAYOUTS: [&str; 11] = [
        "wb-tree",
        "wb-tree:ordered",
        "no-merge",
        "immediate",
        "geometric:r=2",
        "geometric:p=3",
        "range-merge",
        "range-merge:c=2",
        "leveling:t=3",
        "tiering:t=3",
        "jungle:c=2,t=3",
    ];
    for seed in 0..20 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = Arc::new(Database::open("/db", options(&env)).unwrap());
        let layout = LAYOUTS[seed as usize % LAYOUTS.len()].parse().unwrap();
        let table = db.table("t").layout(layout).node_bytes(4 << 10).fan_out(3).open().unwrap();
        let key = |number: u32| number.wrapping_mul(0x9e37_79b9).to_be_bytes();
        (0..4000).for_each(|number| table.put(key(number), [1; 20]).unwrap());
        (0..4000).step_by(2).for_each(|number| table.delete(key(number)).unwrap());
        let puts = Arc::new(Mutex::new(Some(0)));
        let writer = env.jobs.fork("writer", {
            let (db, table, puts) = (Arc::clone(&db), table.clone(), Arc::clone(&puts));
            move || {
                let now = || *puts.lock();
                while let Some(number @ 0..PUTS_MAX) = now() {
                    // As much as a write buffer has, for merges of few runs take few steps.
                    let mut batch = Batch::new();
                    (number..number + 50)
                        .for_each(|number| batch.put(&table, key((number % 4000) | 1), [2; 20]));
                    db.write(&mut batch, Durability::Os).unwrap();
                    puts.lock().as_mut().into_iter().for_each(|puts| *puts += 50);
                }
            }
        });
        table.compact().unwrap();
        let put = puts.lock().take().unwrap();
        writer.join();
        assert!(0 < put && put < PUTS_MAX, "seed {seed}: it took until nobody wrote any more");
        (0..4000).step_by(2).for_each(|number| assert_eq!(table.get(key(number)).unwrap(), None));
        table.compact().unwrap();
        assert_eq!(table.iter().unwrap().count(), 2000);
    }
}
