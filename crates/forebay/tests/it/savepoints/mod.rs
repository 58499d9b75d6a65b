//! Savepoints: what is kept under a name stays as it was, whatever is merged, dropped, rolled back or restarted; a
//! rollback brings all of it back, or nothing; what nobody needs any more goes.

mod numbers;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use forebay::{Database, Error, Layout, Options, Result, Snapshot, Table};
use forebay_env::fs::{CrashFs, MemoryFs};
use forebay_env::{Access, Env, FileSystem, Rng};
use forebay_testkit::{Suffix, ordered_layouts};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const DIR: &str = "/db";

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(8 << 10).env(env.clone())
}

fn open(env: &Env) -> Database {
    Database::open(DIR, options(env)).unwrap()
}

fn make(db: &Database, name: &str, layout: Layout) -> Table {
    db.table(name).layout(layout).node_bytes(6 << 10).fan_out(3).open().unwrap()
}

fn existing(db: &Database, name: &str) -> Table {
    db.table(name).existing(true).open().unwrap()
}

fn all(table: &Table) -> Model {
    table.iter().unwrap().map(Result::unwrap).collect()
}

fn seen(snapshot: &Snapshot, table: &str) -> Model {
    let table = snapshot.table(table).unwrap();
    let entries: Model = snapshot.iter(&table).unwrap().map(Result::unwrap).collect();
    for (key, value) in entries.iter().step_by(17) {
        assert_eq!(snapshot.get(&table, key).unwrap().as_ref(), Some(value));
    }
    entries
}

/// Puts and deletes.
fn write(table: &Table, model: &mut Model, rng: &mut Rng, count: usize) {
    for _ in 0..count {
        let key = rng.below(1500).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
        if rng.chance(20) {
            table.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = vec![rng.below(256) as u8; 1 + rng.index(40)];
            table.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

/// Whether all that is kept is sound, and nothing else is there once what is unneeded has gone.
fn assert_sound(env: &Env, db: &Database, what: &str) {
    let report = db.verify(&mut |_, _| ()).unwrap();
    assert!(report.problems.is_empty(), "{what}: {:?}", report.problems);
    env.jobs.advance(Duration::from_secs(1));
    env.jobs.step_some(2_000);
}

fn files(env: &Env, kind: &str) -> Vec<String> {
    let mut names = env.fs.list(Path::new(DIR)).unwrap();
    names.retain(|name| name.ends_with(kind));
    names
}

fn layouts() -> impl Iterator<Item = Layout> {
    let ordered = ordered_layouts().into_iter().filter(|layout| !layout.keeps_in_memory());
    ordered.chain([Layout::wb_tree()])
}

/// A layout that is not this one: now of the same order, now of the other.
fn another(layout: Layout, number: usize) -> Layout {
    match number % 3 {
        0 if layout != Layout::wb_tree() => Layout::wb_tree(),
        1 => Layout::wb_tree_ordered(),
        _ => Layout::tiering(3),
    }
}

#[test]
fn what_is_kept_stays_as_it_was_under_every_layout() {
    for (number, layout) in layouts().enumerate() {
        let env = Env::memory(number as u64);
        let (mut rng, mut model) = (Rng::new(number as u64), Model::new());
        let what = layout.to_string();
        let db = open(&env);
        let (table, other) = (make(&db, "t", layout), make(&db, "other", layout));
        write(&table, &mut model, &mut rng, 4000);
        let mut beside = Model::new();
        write(&other, &mut beside, &mut rng, 500);
        assert_eq!(db.savepoint("one").unwrap(), db.last_sequence());
        let (one, beside_one) = (model.clone(), beside.clone());
        write(&table, &mut model, &mut rng, 2000);
        db.wait_until_idle().unwrap();
        assert_eq!(db.savepoint("two").unwrap(), db.last_sequence());
        let two = model.clone();
        db.drop_table("other").unwrap();
        let fresh = make(&db, "fresh", layout);
        write(&fresh, &mut beside, &mut rng, 300);
        write(&table, &mut model, &mut rng, 2000);
        table.compact().unwrap();
        table.set_layout(another(layout, number)).unwrap();
        write(&table, &mut model, &mut rng, 2000);
        db.wait_until_idle().unwrap();
        let check = |db: &Database, what: &str| {
            let (early, late) = (db.open_savepoint("one").unwrap(), db.open_savepoint("two").unwrap());
            assert!(seen(&early, "t") == one && seen(&late, "t") == two, "{what}");
            assert!(seen(&early, "other") == beside_one, "{what}");
            assert!(early.table("fresh").is_err());
            let names: Vec<_> = db.savepoints().into_iter().map(|savepoint| savepoint.name).collect();
            assert_eq!(names, ["one", "two"]);
        };
        check(&db, &what);
        assert!(all(&table) == model, "{what}");
        assert_sound(&env, &db, &what);
        drop((table, other, fresh));
        db.close().unwrap();
        let read_only = Database::open(DIR, options(&env).read_only(true)).unwrap();
        check(&read_only, &what);
        drop(read_only);
        let db = open(&env);
        check(&db, &what);
        assert!(all(&existing(&db, "t")) == model, "{what}, opened again");

        let held = db.snapshot();
        db.rollback("one").unwrap();
        let table = existing(&db, "t");
        assert!(seen(&held, "t") == model, "{what}: a snapshot over a rollback");
        drop(held);
        let mut model = one.clone();
        assert!(all(&table) == model, "{what}, rolled back");
        assert!(all(&existing(&db, "other")) == beside_one, "{what}: a dropped table comes back");
        assert_eq!(table.layout().unwrap(), layout);
        assert!(matches!(db.table("fresh").existing(true).open().unwrap_err(), Error::NotFound(_)));
        write(&table, &mut model, &mut rng, 2000);
        db.wait_until_idle().unwrap();
        check(&db, &what);
        assert!(all(&table) == model, "{what}, rolled back and written");
        drop(table);
        // Much is written to the manifest, which is rewritten then.
        for _ in 0..8 {
            let table = existing(&db, "t");
            write(&table, &mut model, &mut rng, 500);
            table.compact().unwrap();
        }
        assert_sound(&env, &db, &what);
        drop(db);
        let db = open(&env);
        check(&db, &what);
        assert!(all(&existing(&db, "t")) == model, "{what}, rolled back, written and opened again");
        db.rollback("two").unwrap();
        assert!(all(&existing(&db, "t")) == two, "{what}, rolled on");
        check(&db, &what);
        drop(db);
        let db = open(&env);
        assert!(all(&existing(&db, "t")) == two, "{what}, rolled on and opened again");
        check(&db, &what);
        for name in ["one", "two"] {
            db.drop_savepoint(name).unwrap();
        }
        db.wait_until_idle().unwrap();
        assert_sound(&env, &db, &what);
        let kept = files(&env, ".list").len() + files(&env, ".tree").len();
        assert_eq!(kept as u64, db.stats().list_files, "{what}: files are left behind");
        assert!(all(&existing(&db, "t")) == two, "{what}");
        assert!(db.open_savepoint("one").is_err());
    }
}

/// A file of a tree that two savepoints have, and the table: three versions.
#[test]
fn a_tree_goes_on_growing_behind_what_savepoints_have_of_it() {
    for seed in 0..12 {
        let env = Env::memory(seed);
        let (mut rng, mut model) = (Rng::new(seed), Model::new());
        let mut db = open(&env);
        let grown = |db: &Database| {
            let builder = db.table("t").layout(Layout::jungle(50.0)).node_bytes(200 << 10);
            builder.open().unwrap()
        };
        let mut table = grown(&db);
        let mut kept: Vec<(String, Model)> = Vec::new();
        for step in 0..60_u64 {
            write(&table, &mut model, &mut rng, 300);
            db.wait_until_idle().unwrap();
            match rng.below(10) {
                0..3 => {
                    let name = format!("at {step}");
                    db.savepoint(&name).unwrap();
                    kept.push((name, model.clone()));
                }
                3..6 if !kept.is_empty() => {
                    let (name, then) = &kept[rng.index(kept.len())];
                    db.rollback(name).unwrap();
                    model.clone_from(then);
                }
                6 if kept.len() > 3 => {
                    let (name, _) = kept.remove(rng.index(kept.len()));
                    db.drop_savepoint(&name).unwrap();
                }
                7 => {
                    drop(table);
                    drop(db);
                    db = open(&env);
                    table = grown(&db);
                }
                _ => {}
            }
            assert!(all(&table) == model, "seed {seed}, step {step}");
            for (name, then) in &kept {
                let savepoint = db.open_savepoint(name).unwrap();
                assert!(seen(&savepoint, "t") == *then, "seed {seed}, step {step}: {name}");
            }
        }
        let trees = files(&env, ".tree").len();
        assert!(trees > 0 && trees < 60, "{trees}: versions share files");
        assert_sound(&env, &db, "trees");
        let stats = db.stats();
        let table = &stats.tables[0].space;
        let known = table.live_file_bytes + table.savepoint_bytes + table.held_bytes + table.leaving_bytes;
        assert!(known <= table.disk_bytes && table.savepoint_bytes > 0, "{table:?}");
        assert!(stats.savepoints.iter().all(|savepoint| savepoint.own_bytes <= savepoint.held_bytes));
    }
}

#[test]
fn files_go_with_the_last_savepoint_that_needs_them() {
    let env = Env::memory(1);
    let (mut rng, mut model) = (Rng::new(1), Model::new());
    let db = open(&env);
    let table = make(&db, "t", Layout::leveling(4));
    write(&table, &mut model, &mut rng, 4000);
    db.savepoint("one").unwrap();
    db.savepoint("again").unwrap();
    assert_eq!(db.stats().savepoints[0].held_bytes, 0, "the table needs all of it");
    write(&table, &mut model, &mut rng, 6000);
    table.compact().unwrap();
    let names = |db: &Database| -> Vec<(u64, u64)> {
        let stats = db.stats().savepoints;
        stats.iter().map(|savepoint| (savepoint.held_bytes, savepoint.own_bytes)).collect()
    };
    let [(held, 0), (other, 0)] = names(&db)[..] else { panic!("{:?}", names(&db)) };
    assert!(held > 0 && held == other);
    let space = db.stats().tables[0].space;
    assert!(space.savepoint_bytes == held && space.writing_bytes == 0, "{space:?}");
    assert_sound(&env, &db, "both are there");
    let lists = files(&env, ".list").len();
    db.drop_savepoint("again").unwrap();
    assert_eq!(names(&db), [(held, held)]);
    assert_sound(&env, &db, "one is left");
    assert_eq!(files(&env, ".list").len(), lists);
    let snapshot = db.open_savepoint("one").unwrap();
    let then = seen(&snapshot, "t");
    db.drop_savepoint("one").unwrap();
    assert_sound(&env, &db, "a snapshot is left");
    assert_eq!(files(&env, ".list").len(), lists);
    assert!(seen(&snapshot, "t") == then, "what was opened can still be read");
    drop(snapshot);
    assert_sound(&env, &db, "none is left");
    assert_eq!(files(&env, ".list").len() as u64, db.stats().list_files);
    assert!(all(&table) == model);
}

/// The power goes at one file operation after the other.
#[test]
fn a_crash_leaves_all_of_a_step_or_nothing() {
    let mut outcomes = [[0_u32; 2]; 3];
    for (step, seen_after) in outcomes.iter_mut().enumerate() {
        for operation in 1..80 {
            let fs = CrashFs::new(operation);
            let env = Env::simulated(fs.clone(), operation);
            let (mut rng, mut model) = (Rng::new(operation), Model::new());
            let layout =
                [Layout::jungle(20.0), Layout::leveling(3), Layout::wb_tree()][operation as usize % 3];
            let db = open(&env);
            let table = make(&db, "t", layout);
            write(&table, &mut model, &mut rng, 1500);
            db.savepoint("kept").unwrap();
            let then = model.clone();
            write(&table, &mut model, &mut rng, 1500);
            db.sync().unwrap();
            fs.crash_at(fs.operations() + operation);
            let outcome = match step {
                0 => db.savepoint("new").map(drop),
                1 => db.rollback("kept"),
                _ => db.drop_savepoint("kept"),
            };
            let crashed = fs.is_off();
            assert!(crashed || outcome.is_ok(), "{outcome:?}");
            let left = fs.power_cycle();
            env.jobs.abandon();
            drop((table, db));
            let db = open(&Env::simulated(left, operation));
            let what = format!("step {step}, operation {operation}");
            let now = all(&existing(&db, "t"));
            let names: Vec<_> = db.savepoints().into_iter().map(|savepoint| savepoint.name).collect();
            let done = match step {
                0 => names.len() == 2,
                1 => now == then,
                _ => names.is_empty(),
            };
            assert!(done || outcome.is_err(), "{what}: it was said to be done");
            seen_after[usize::from(done)] += 1;
            if step != 1 || !done {
                assert!(now == model, "{what}");
            }
            if step != 2 || !done {
                assert!(seen(&db.open_savepoint("kept").unwrap(), "t") == then, "{what}");
            }
            if step == 0 && done {
                assert!(seen(&db.open_savepoint("new").unwrap(), "t") == model, "{what}");
            }
            assert!(db.verify(&mut |_, _| ()).unwrap().problems.is_empty(), "{what}");
            if !crashed {
                break;
            }
        }
    }
    let both = outcomes.iter().all(|[undone, done]| *undone > 0 && *done > 0);
    assert!(both, "{outcomes:?}");
}

#[test]
fn damage_in_what_only_a_savepoint_needs_is_named_and_stops_nothing() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 1);
    let (mut rng, mut model) = (Rng::new(1), Model::new());
    let db = open(&env);
    let table = make(&db, "t", Layout::leveling(4));
    write(&table, &mut model, &mut rng, 2000);
    db.wait_until_idle().unwrap();
    db.savepoint("old").unwrap();
    assert_sound(&env, &db, "before");
    let lists = files(&env, ".list");
    write(&table, &mut model, &mut rng, 4000);
    table.compact().unwrap();
    drop(table);
    db.close().unwrap();
    let damaged = &lists[0];
    let path = Path::new(DIR).join(damaged);
    let file = fs.open(&path, Access::Buffered).unwrap();
    let mut byte = [0];
    file.read_at(100, &mut byte).unwrap();
    file.write_at(100, &[byte[0] ^ 1]).unwrap();
    let db = open(&env);
    assert!(all(&existing(&db, "t")) == model);
    let savepoint = db.open_savepoint("old").unwrap();
    let table = savepoint.table("t").unwrap();
    let error = savepoint.iter(&table).unwrap().find_map(Result::err).unwrap();
    assert!(error.is_corruption() && error.to_string().contains(damaged), "{error}");
    let problems = db.verify(&mut |_, _| ()).unwrap().problems;
    assert!(problems.len() == 1 && problems[0].contains(damaged), "{problems:?}");
    db.drop_savepoint("old").unwrap();
    assert!(all(&existing(&db, "t")) == model);
}

/// It is written to files for that. What it once kept in memory is in log segments that are still there, for another
/// table's sake.
#[test]
fn a_table_that_keeps_records_in_memory_is_in_a_savepoint_and_does_not_get_them_back() {
    let env = Env::memory(1);
    let (mut rng, mut model) = (Rng::new(1), Model::new());
    let db = open(&env);
    let table = make(&db, "t", Layout::range_merge());
    db.savepoint("empty").unwrap();
    write(&table, &mut model, &mut rng, 600);
    db.savepoint("full").unwrap();
    assert_eq!(db.stats().memory.resident_records, 0);
    assert!(seen(&db.open_savepoint("full").unwrap(), "t") == model);
    write(&table, &mut model.clone(), &mut rng, 600);
    db.rollback("full").unwrap();
    assert!(all(&table) == model);
    db.rollback("empty").unwrap();
    assert!(all(&table).is_empty());
    assert_eq!(db.savepoint("again").unwrap(), db.last_sequence());
    table.put(b"after", b"1").unwrap();
    db.sync().unwrap();
    drop((table, db));
    let db = open(&env);
    assert!(all(&existing(&db, "t")).into_keys().eq([b"after".to_vec()]));
    assert!(seen(&db.open_savepoint("again").unwrap(), "t").is_empty());
}

#[test]
fn rules_times_and_handles_go_along() {
    let env = Env::memory(1);
    let db = open(&env);
    let merging = || db.table("m").layout(Layout::no_merge()).merge_rule(Suffix).open().unwrap();
    let mortal = db.table("e").time_to_live(Duration::from_secs(60)).open().unwrap();
    let table = merging();
    table.merge(b"k", b"one").unwrap();
    mortal.put(b"k", b"v").unwrap();
    db.savepoint("then").unwrap();
    table.merge(b"k", b"two").unwrap();
    db.drop_table("e").unwrap();
    db.flush().unwrap();
    let expected = seen(&db.open_savepoint("then").unwrap(), "m");
    env.jobs.advance(Duration::from_secs(3600));
    assert_eq!(seen(&db.open_savepoint("then").unwrap(), "e").len(), 1, "alive by then");
    assert!(mortal.put(b"k", b"v").is_err(), "dropped");
    db.rollback("then").unwrap();
    assert!(all(&table) == expected);
    assert_eq!(mortal.get(b"k").unwrap(), None, "its time is over");
    mortal.put(b"k", b"w").unwrap();
    assert_eq!(mortal.get(b"k").unwrap().unwrap(), b"w");
    table.merge(b"k", b"three").unwrap();
    table.compact().unwrap();
    let now = all(&table);
    drop((table, mortal, db));
    let db = open(&env);
    let savepoint = db.open_savepoint("then").unwrap();
    let table = savepoint.table("m").unwrap();
    let error = savepoint.get(&table, b"k").unwrap_err();
    assert!(error.to_string().contains("merge rule"), "{error}");
    let table = db.table("m").merge_rule(Suffix).open().unwrap();
    assert!(seen(&savepoint, "m") == expected, "the rule of the table is that of the savepoint");
    assert!(all(&table) == now);
}

#[test]
fn what_cannot_be_done_is_said() {
    let env = Env::memory(1);
    let db = open(&env);
    let table = make(&db, "t", Layout::wb_tree());
    table.put(b"k", b"v").unwrap();
    for name in ["", &"x".repeat(256)] {
        assert!(matches!(db.savepoint(name), Err(Error::Invalid(_))));
    }
    db.savepoint("a").unwrap();
    assert!(db.savepoint("a").unwrap_err().to_string().contains("`a`"));
    for error in [
        db.rollback("b").unwrap_err(),
        db.drop_savepoint("b").unwrap_err(),
        db.open_savepoint("b").unwrap_err(),
    ] {
        assert!(matches!(&error, Error::NotFound(text) if text.contains("`b`")), "{error}");
    }
    let mut refused = Vec::new();
    table
        .set_layout_telling(Layout::leveling(4), &mut |_, _| {
            refused.extend(db.rollback("a").err());
            table.put(b"l", b"w").unwrap();
        })
        .unwrap();
    assert!(!refused.is_empty() && refused.iter().all(|error| error.to_string().contains("another order")));
    assert_eq!(all(&table).len(), 2);
    // A copy is a database of its own, without savepoints.
    db.checkpoint("/copy").unwrap();
    let copy = Database::open("/copy", options(&env)).unwrap();
    assert!(copy.savepoints().is_empty());
    assert_eq!(all(&existing(&copy, "t")).len(), 2);
    drop(table);
    db.close().unwrap();
    let db = Database::open(DIR, options(&env).read_only(true)).unwrap();
    assert!(db.savepoint("c").is_err() && db.rollback("a").is_err() && db.drop_savepoint("a").is_err());
    assert_eq!(seen(&db.open_savepoint("a").unwrap(), "t").len(), 1);
}
