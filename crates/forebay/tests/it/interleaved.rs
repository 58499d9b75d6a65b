//! Users and background work who stop between two lines while others go on, as a seed says.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forebay::{Database, Layout, Options, Table};
use forebay_env::Env;
use forebay_env::sync::Mutex;
use forebay_testkit::Suffix;

const KEYS: u64 = 50;

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone());
    Database::open(Path::new("/db"), options).unwrap()
}

fn write(table: &Table, number: u64) {
    table.put((number % KEYS).to_be_bytes(), number.to_be_bytes()).unwrap();
}

/// What was acknowledged is there, or something newer of the key.
fn assert_all_there(db: &Database, table: &Table, acknowledged: u64, what: &str) {
    let snapshot = db.snapshot();
    for key in 0..KEYS.min(acknowledged) {
        let last = (acknowledged - 1 - key) / KEYS * KEYS + key;
        let got = snapshot.get(table, key.to_be_bytes()).unwrap();
        let got = got.map(|value| u64::from_be_bytes(value.try_into().unwrap()));
        assert!(got.is_some_and(|got| got >= last), "{what}: key {key} is {got:?}, was {last}");
    }
}

/// Its layout was read first, and then it had to have just that.
#[test]
fn a_table_is_opened_whatever_order_of_runs_it_is_given_meanwhile() {
    for seed in 0..20 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = open(&env);
        let table = db.table("t").layout(Layout::leveling(4)).open().unwrap();
        let changing = env.jobs.fork("changing", move || {
            for _ in 0..20 {
                table.set_layout(Layout::tiering(4)).unwrap();
                table.set_layout(Layout::leveling(4)).unwrap();
            }
        });
        for _ in 0..20 {
            db.table("t").open_ordered().unwrap();
        }
        changing.join();
        db.close().unwrap();
    }
}

/// The flusher had just seen that a rule was missing, and said so when it was there.
#[test]
fn nobody_is_told_that_a_rule_is_missing_once_it_is_there() {
    for seed in 0..40 {
        let env = Env::memory(seed);
        let db = open(&env);
        for name in ["a", "b"] {
            let table = db.table(name).merge_rule(Suffix).open().unwrap();
            (0..60_u64).for_each(|n| table.merge(n.to_be_bytes(), [0; 8]).unwrap());
        }
        drop(db);
        env.jobs.interleave(seed);
        let db = open(&env);
        env.jobs.step_some(seed as usize);
        let [a, b] = ["a", "b"].map(|name| db.table(name).merge_rule(Suffix).open().unwrap());
        db.flush().unwrap();
        a.merge(b"k", [0; 8]).unwrap();
        b.compact().unwrap();
    }
}

/// A change of order had read the options before anybody saw that it was under way, and put them back.
#[test]
fn options_that_are_acknowledged_stay_beside_a_change_of_order() {
    let (mut told, mut refused) = (0, 0);
    for seed in 0..40 {
        let env = Env::memory(seed);
        let db = open(&env);
        let table = db.table("t").layout(Layout::leveling(4)).open().unwrap();
        (0..20).for_each(|number| write(&table, number));
        env.jobs.interleave(seed);
        let sorting = env.jobs.fork("sorting", move || {
            for _ in 0..3 {
                table.set_layout(Layout::wb_tree()).unwrap();
                table.set_layout(Layout::leveling(4)).unwrap();
            }
        });
        let mut bits = db.describe().tables[0].filter_bits_per_key;
        for asked in 1..20 {
            env.jobs.step_some(seed as usize % 7);
            match db.table("t").filter_bits_per_key(asked).alter() {
                Ok(()) => (bits, told) = (asked, told + 1),
                Err(error) => {
                    assert!(error.to_string().contains("sorted"), "{error}");
                    refused += 1;
                }
            }
            assert_eq!(db.describe().tables[0].filter_bits_per_key, bits, "seed {seed}");
        }
        sorting.join();
        assert_eq!(db.describe().tables[0].filter_bits_per_key, bits, "seed {seed}: in the end");
        db.close().unwrap();
    }
    assert!(told > 0 && refused > 0, "{told} told, {refused} refused");
}

/// Whoever is told of progress may panic. The table is as it was, and nothing thinks that it is still being sorted.
#[test]
fn a_rewrite_whose_user_panics_is_over() {
    let env = Env::memory(1);
    let db = open(&env);
    let table = db.table("t").open().unwrap();
    (0..500).for_each(|number| write(&table, number));
    db.savepoint("before").unwrap();
    let ordered = Layout::wb_tree_ordered();
    let panics = || table.set_layout_telling(ordered, &mut |_, _| panic!("no luck"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    write(&table, 1);
    db.rollback("before").unwrap();
    table.set_layout(ordered).unwrap();
    assert_all_there(&db, &table, 500, "after all");
}

/// The buffer that held the last writes had left memory, and its lists were not among those that follow yet, when the
/// table that was sorted anew took over.
#[test]
fn a_table_that_is_sorted_anew_keeps_what_others_write_meanwhile() {
    let mut pauses = 0;
    for seed in 0..40 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = open(&env);
        let table = db.table("t").open().unwrap();
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writer = env.jobs.fork("writer", {
            let (table, stop, written) = (table.clone(), Arc::clone(&stop), Arc::clone(&written));
            move || {
                for number in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    write(&table, number);
                    written.store(number + 1, Ordering::SeqCst);
                }
            }
        });
        for round in 0..8 {
            env.jobs.step_some(200);
            let layouts = [Layout::wb_tree_ordered(), Layout::wb_tree()];
            table.set_layout(layouts[round % 2]).unwrap();
            let acknowledged = written.load(Ordering::SeqCst);
            assert_all_there(&db, &table, acknowledged, &format!("seed {seed}, round {round}"));
        }
        stop.store(true, Ordering::SeqCst);
        writer.join();
        pauses += env.jobs.pauses().get("edit is published").copied().unwrap_or_default();
        db.close().unwrap();
    }
    assert!(pauses > 0);
}

/// A key range went to its place on disk while a write buffer was merged with the same runs in memory. The buffer's
/// tombstones were dropped, as nothing was on disk when that began; or one of both found its runs gone.
#[test]
fn what_is_deleted_while_a_range_goes_to_disk_does_not_come_back() {
    for seed in 0..100 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = open(&env);
        let hot = db.table("t").layout(Layout::range_merge()).node_bytes(1 << 10).open_ordered().unwrap();
        let (other, value) = (db.table("other").open().unwrap(), [1; 100]);
        (0..30_u64).for_each(|key| hot.put(key.to_be_bytes(), value).unwrap());
        // Has the buffer flushed, and so kept in memory.
        other.compact().unwrap();
        assert!(db.stats().memory.resident_records > 0, "seed {seed}");
        let compacting = env.jobs.fork("compacting", {
            let hot = hot.clone();
            move || hot.compact().unwrap()
        });
        env.jobs.step_some(seed as usize % 5);
        let key = 3_u64.to_be_bytes();
        hot.delete(key).unwrap();
        db.flush().unwrap();
        compacting.join();
        assert_eq!(hot.get(key).unwrap(), None, "seed {seed}");
        db.close().unwrap();
    }
}

fn number_of(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| u64::from_be_bytes(value.try_into().unwrap()))
}

/// What is moved from one table to another, which is dropped then, is in one of them.
#[test]
fn a_savepoint_beside_a_drop_has_what_was_moved_before_it() {
    let mut pauses = 0;
    for seed in 0..60 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = Arc::new(open(&env));
        let kept = db.table("kept").open().unwrap();
        let written = Arc::new(AtomicU64::new(0));
        let moving = env.jobs.fork("moving", {
            let (db, written) = (Arc::clone(&db), Arc::clone(&written));
            move || {
                for number in 1_u64..=12 {
                    let moved = db.table(&format!("moved-{number}")).open().unwrap();
                    moved.put(b"n", b"v").unwrap();
                    written.store(number, Ordering::SeqCst);
                    kept.put(number.to_be_bytes(), b"v").unwrap();
                    db.drop_table(&format!("moved-{number}")).unwrap();
                }
            }
        });
        for round in 0..8 {
            env.jobs.step_some(seed as usize % 7);
            let before = written.load(Ordering::SeqCst);
            db.savepoint("now").unwrap();
            let savepoint = db.open_savepoint("now").unwrap();
            let has = |table: &str, key: &[u8]| {
                let table = savepoint.table(table);
                table.is_ok_and(|table| savepoint.get(&table, key).unwrap().is_some())
            };
            for number in 1..=before {
                let is_there = has("kept", &number.to_be_bytes()) || has(&format!("moved-{number}"), b"n");
                assert!(is_there, "seed {seed}, round {round}: {number} of {before} is nowhere");
            }
            db.drop_savepoint("now").unwrap();
        }
        moving.join();
        pauses += env.jobs.pauses().get("drop is durable").copied().unwrap_or_default();
        Arc::into_inner(db).unwrap().close().unwrap();
    }
    assert!(pauses > 0);
}

/// It had an ingest that had come in since its flush, and not what was written to another table before that: a state that
/// no reader could have seen.
#[test]
fn a_savepoint_that_has_an_ingest_has_what_was_written_before_it() {
    let mut pauses = 0;
    for seed in 0..60 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let db = open(&env);
        let written = db.table("written").open().unwrap();
        let ingested = db.table("ingested").layout(Layout::leveling(4)).open_ordered().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        // How many ingests there were at most just after the n-th write.
        let seen = Arc::new(Mutex::new(Vec::new()));
        let writer = env.jobs.fork("writer", {
            let (ingested, stop, seen) = (ingested.clone(), Arc::clone(&stop), Arc::clone(&seen));
            move || {
                for number in 1_u64.. {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    written.put(b"n", number.to_be_bytes()).unwrap();
                    let count = number_of(ingested.get(b"n").unwrap());
                    seen.lock().push(count);
                }
            }
        });
        let bringing = env.jobs.fork("bringing", move || {
            for number in 1_u64..=12 {
                let entry = (b"n".to_vec(), number.to_be_bytes().to_vec());
                ingested.ingest(std::iter::once(Ok(entry))).unwrap();
            }
        });
        for round in 0..8 {
            env.jobs.step_some(seed as usize % 7);
            db.savepoint("now").unwrap();
            let savepoint = db.open_savepoint("now").unwrap();
            let [number, count] = ["written", "ingested"].map(|name| {
                let table = savepoint.table(name).unwrap();
                number_of(savepoint.get(&table, b"n").unwrap())
            });
            let before = seen.lock().iter().take_while(|&&seen| seen < count).count() as u64;
            assert!(number >= before, "seed {seed}, round {round}: {number} of {before}, ingest {count}");
            db.drop_savepoint("now").unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        writer.join();
        bringing.join();
        pauses += env.jobs.pauses().get("ingest is written").copied().unwrap_or_default();
        db.close().unwrap();
    }
    assert!(pauses > 0);
}
