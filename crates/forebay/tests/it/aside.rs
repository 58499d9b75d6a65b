//! What background work cannot merge it sets aside: whoever waits for that is told, others go on, and it is tried again
//! where somebody asks for that.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay::{Database, Error, Keep, Layout, Options, Result, Table};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Access, Env};
use forebay_testkit::{Short, ordered_layouts};

const DIR: &str = "/db";

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone());
    Database::open(DIR, options).unwrap()
}

/// So much that buffers are sealed, of a table of no interest.
fn seal(db: &Database, filler: &Table) {
    let writes = db.stats().log_bytes;
    (0..80u8).for_each(|number| filler.put([number], [number; 100]).unwrap());
    assert!(db.stats().log_bytes > writes);
}

/// Turns a byte round at the front of each of these lists.
fn damage(env: &Env, lists: &[String]) {
    for name in lists {
        let file = env.fs.open(&Path::new(DIR).join(name), Access::Buffered).unwrap();
        let mut byte = [0];
        file.read_at(40, &mut byte).unwrap();
        file.write_at(40, &[!byte[0]]).unwrap();
    }
}

fn lists(env: &Env) -> Vec<String> {
    let names = env.fs.list(Path::new(DIR)).unwrap();
    names.into_iter().filter(|name| name.ends_with(".list")).collect()
}

/// What the compactor had set aside it never came back to, and whoever waited for it did so forever.
#[test]
fn memory_that_cannot_go_to_files_is_told_to_whoever_waits_for_that() {
    let env = Env::memory(7);
    let db = open(&env);
    let panics = Arc::new(AtomicBool::new(true));
    let told = Arc::clone(&panics);
    let filter = move |key: &[u8], _: &[u8]| {
        assert!(key != b"bad" || !told.load(Ordering::SeqCst), "no such key");
        Keep::Keep
    };
    let builder = || db.table("t").layout(Layout::range_merge());
    let table = builder().compaction_filter(filter).open_ordered().unwrap();
    let other = db.table("other").layout(Layout::range_merge()).open().unwrap();
    let filler = db.table("filler").open().unwrap();
    table.put(b"bad", b"1").unwrap();
    for round in 0..3 {
        seal(&db, &filler);
        other.put(b"k", [round]).unwrap();
        let waits: [&dyn Fn() -> Result<()>; 3] = [&|| db.flush(), &|| db.savepoint("s").map(drop), &|| {
            table.set_layout(Layout::wb_tree_ordered())
        }];
        for (number, wait) in waits.iter().enumerate() {
            let error = wait().expect_err(&format!("wait {number} of round {round}"));
            assert!(matches!(error, Error::Panicked(_)), "{error}");
        }
        // The layout is what it was.
        assert_eq!(builder().open_ordered().unwrap().get(b"bad").unwrap().as_deref(), Some(&b"1"[..]));
    }
    other.set_layout(Layout::wb_tree_ordered()).unwrap();
    panics.store(false, Ordering::SeqCst);
    table.compact().unwrap();
    db.flush().unwrap();
    db.savepoint("s").unwrap();
    table.set_layout(Layout::wb_tree_ordered()).unwrap();
    assert_eq!(table.get(b"bad").unwrap().as_deref(), Some(&b"1"[..]));
}

/// Until the database was opened again `compact` and `verify` named a key that was no more.
#[test]
fn what_was_set_aside_is_tried_again_by_compact() {
    for layout in ordered_layouts().into_iter().chain([Layout::wb_tree()]) {
        let env = Env::memory(1);
        let db = open(&env);
        let table = || db.table("t").layout(layout).merge_rule(Short).open();
        let fill = |table: &Table| {
            for round in 0..3_u8 {
                table.merge(b"long", [round; 400]).unwrap();
                table.put(b"k", [round]).unwrap();
                db.flush().unwrap();
            }
            let error = table.compact().expect_err(&format!("{layout}"));
            assert!(matches!(error, Error::TooLong(_)), "{layout}: {error}");
            assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems.len(), 1, "{layout}");
        };
        let first = table().unwrap();
        fill(&first);
        first.delete(b"long").unwrap();
        first.compact().unwrap_or_else(|error| panic!("{layout}: {error}"));
        assert_eq!(first.get(b"long").unwrap(), None);
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, [""; 0], "{layout}");
        assert_eq!(first.get(b"k").unwrap().as_deref(), Some(&[2][..]));
        fill(&first);
        db.drop_table("t").unwrap();
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, [""; 0], "{layout}, dropped");
    }
}

/// A flush met damage, set that aside and went on: to be told of it once more by each flush until the database was
/// opened again, by a rollback, too.
#[test]
fn a_flush_that_went_on_without_damaged_runs_is_not_told_as_stuck() {
    for seed in 0..4 {
        let (env, layout) = (Env::memory(seed), "immediate".parse::<Layout>().unwrap());
        let db = open(&env);
        let fill = |db: &Database, round: u8| {
            let table = db.table("t").layout(layout).open().unwrap();
            (0..40u8).for_each(|number| table.put([number], [round; 50]).unwrap());
        };
        fill(&db, 0);
        db.flush().unwrap();
        db.savepoint("sound").unwrap();
        db.close().unwrap();
        damage(&env, &lists(&env));
        let db = open(&env);
        let met = (1..9).find_map(|round| {
            fill(&db, round);
            db.flush().err()
        });
        assert!(met.as_ref().is_some_and(Error::is_corruption), "{met:?}");
        env.jobs.advance(Duration::from_secs(1));
        env.jobs.step_some(200);
        for round in 2..5 {
            fill(&db, round);
            db.flush().unwrap_or_else(|error| panic!("seed {seed}, round {round}: {error}"));
        }
        fill(&db, 9);
        db.rollback("sound").unwrap();
    }
}

/// Whoever waited for room in memory was told of damage in a table of no concern, and writes stopped.
#[test]
fn damage_in_one_table_stops_no_other() {
    let env = Env::memory(3);
    let db = open(&env);
    let damaged = |db: &Database| db.table("damaged").layout(Layout::leveling(2)).open().unwrap();
    let table = damaged(&db);
    for round in 0..2u8 {
        (0..40u8).for_each(|number| table.put([number], [round; 100]).unwrap());
        db.flush().unwrap();
    }
    drop(table);
    db.close().unwrap();
    damage(&env, &lists(&env));
    let db = open(&env);
    assert!(damaged(&db).compact().unwrap_err().is_corruption());
    let sound = db.table("sound").layout("immediate".parse().unwrap()).open().unwrap();
    let resident = db.table("resident").layout(Layout::range_merge()).open().unwrap();
    for number in 0..4000u32 {
        let key = number.wrapping_mul(0x9e37_79b9).to_be_bytes();
        for table in [&sound, &resident] {
            table.put(&key[..2], [7; 100]).unwrap_or_else(|error| panic!("write {number}: {error}"));
        }
    }
    db.flush().unwrap();
    sound.compact().unwrap();
    resident.compact().unwrap();
}

/// File operations that background work never takes over so little, unless it has no end.
const OPERATIONS_MAX: u64 = 5_000;

/// A database whose lists were written and merged in rounds, of which the last is in memory where that is its layout's
/// way.
fn filled(layout: Layout) -> Arc<MemoryFs> {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 7);
    let db = open(&env);
    let table = bounded(&db, layout);
    for round in 0..5u8 {
        for number in 0..150u32 {
            table.put((number * 7 % 200 * 3 + u32::from(round)).to_be_bytes(), [round; 60]).unwrap();
        }
        if round == 2 {
            table.compact().unwrap();
        }
    }
    drop(table);
    db.close().unwrap();
    fs
}

fn bounded(db: &Database, layout: Layout) -> Table {
    let builder = db.table("t").layout(layout).node_bytes(4 << 10);
    builder.max_space_amplification(1.25).open().unwrap()
}

/// A damaged key range of a `range-merge` table held the log, and the next one behind it was written anew without end.
/// And `compact` of such a table never returned.
#[test]
fn compaction_and_idle_time_over_damage_come_to_an_end() {
    let mut told = 0;
    for layout in ordered_layouts().into_iter().chain([Layout::wb_tree()]) {
        let fs = filled(layout);
        for (path, bytes) in fs.snapshot_files().into_iter().filter(|(path, _)| is_data(path)) {
            for share in [0.02, 0.5, 0.98] {
                let damaged = fs.deep_clone();
                let (mut bytes, at) = (bytes.clone(), (bytes.len() as f64 * share) as usize);
                bytes[at] ^= 1;
                damaged.replace_file(&path, bytes);
                let faulty = FaultyFs::new(damaged);
                faulty.rule(&format!("any * from:{OPERATIONS_MAX} io-error")).unwrap();
                let env = Env::simulated(faulty.clone(), 7);
                let db = open(&env);
                let table = bounded(&db, layout);
                if let Err(error) = table.compact() {
                    assert!(error.is_corruption(), "{layout}, {} at {share}: {error}", path.display());
                    told += 1;
                }
                // What is written from here on holds the log for as long as its range is set aside.
                let filler = db.table("filler").open().unwrap();
                for number in 0..1000u16 {
                    let table = if number % 80 < 3 { &table } else { &filler };
                    // The flush tells of damage before it goes on without.
                    if let Err(error) = table.put(u32::from(number).to_be_bytes(), [7; 100]) {
                        assert!(error.is_corruption(), "{layout}, {} at {share}: {error}", path.display());
                    }
                }
                env.jobs.advance(Duration::from_secs(10));
                env.jobs.step_some(100_000);
                let asked = faulty.matched();
                assert!(asked < OPERATIONS_MAX, "{layout}, {} at {share}: no end", path.display());
                env.jobs.abandon();
            }
        }
    }
    assert!(told > 0);
}

fn is_data(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "list" || kind == "tree")
}

/// What could not be merged took all of the memory that such tables share. Another one waited for room in it, forever,
/// and so did all who wrote to anything.
#[test]
fn memory_that_is_set_aside_keeps_no_other_table_waiting() {
    let env = Env::memory(7);
    let db = open(&env);
    let builder = db.table("t").layout(Layout::range_merge());
    let table = builder.compaction_filter(|key, _| {
        assert!(key != b"bad", "no such key");
        Keep::Keep
    });
    let table = table.open_ordered().unwrap();
    let other = db.table("other").layout(Layout::range_merge()).open().unwrap();
    table.put(b"bad", [1; 6000]).unwrap();
    assert!(table.compact().is_err());
    for number in 0..400u16 {
        other.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
    other.compact().unwrap();
    assert_eq!(other.iter().unwrap().count(), 400);
    assert!(table.get(b"bad").unwrap().is_some());
}
