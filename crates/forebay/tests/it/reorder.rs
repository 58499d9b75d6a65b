//! Another order for a table in use: what is written meanwhile is kept, handles of before stay of use or say that they
//! are not, and a crash leaves one order or the other.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Error, Keep, Layout, Options, Result, Table};
use forebay_env::fs::CrashFs;
use forebay_env::{Env, Rng};
use forebay_testkit::{Merging, Suffix, ordered_layouts};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone())
}

fn open(env: &Env) -> Database {
    Database::open(Path::new("/db"), options(env)).unwrap()
}

fn all(table: &Table) -> Model {
    let entries: Vec<_> = table.iter().unwrap().map(Result::unwrap).collect();
    let model: Model = entries.iter().cloned().collect();
    assert_eq!(entries.len(), model.len(), "a key comes twice");
    model
}

/// Writes to the table and to its model: puts, deletes, and operands where they merge.
fn write(table: &Table, model: &mut Model, rng: &mut Rng, merges: bool, count: usize) {
    for _ in 0..count {
        let key = rng.below(3000).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
        match rng.below(10) {
            0..2 => {
                table.delete(&key).unwrap();
                model.remove(&key);
            }
            2..5 if merges => {
                let operand = rng.below(1000).to_le_bytes();
                table.merge(&key, operand).unwrap();
                let merged = Merging::Operands.merged(&operand, model.get(&key).map(Vec::as_slice));
                model.insert(key, merged);
            }
            _ => {
                let value = rng.next_u64().to_le_bytes().to_vec();
                table.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
    }
}

#[test]
fn any_layout_becomes_one_of_the_other_order_while_it_is_written() {
    for (number, ordered) in ordered_layouts().into_iter().enumerate() {
        for merges in [false, true] {
            for (before, after) in [(ordered, Layout::wb_tree()), (Layout::wb_tree(), ordered)] {
                let env = Env::memory(number as u64);
                let (mut model, mut rng) = (Model::new(), Rng::new(number as u64));
                let db = open(&env);
                let builder = db.table("t").layout(before).node_bytes(6 << 10).fan_out(3);
                let builder = if merges { builder.merge_rule(Suffix) } else { builder };
                let table = builder.open().unwrap();
                write(&table, &mut model, &mut rng, merges, 6000);
                let (snapshot, seen) = (db.snapshot(), model.clone());
                let mut told = Vec::new();
                table
                    .set_layout_telling(after, &mut |done, all| {
                        told.push((done, all));
                        assert!(db.stats().tables[0].reordered_share.is_some_and(|share| share <= 1.0));
                        write(&table, &mut model, &mut rng, merges, 200);
                        env.jobs.step_some(told.len() % 5);
                    })
                    .unwrap();
                let what = format!("{before} to {after}");
                assert!(told.len() > 4 && told.iter().all(|(done, all)| done <= all), "{what}: {told:?}");
                assert_eq!(table.layout().unwrap(), after);
                assert!(all(&table) == model, "{what}");
                write(&table, &mut model, &mut rng, merges, 2000);
                for (key, value) in &model {
                    assert_eq!(table.get(key).unwrap().as_ref(), Some(value), "{what}");
                }
                let old: Model = snapshot.iter(&table).unwrap().map(Result::unwrap).collect();
                assert!(old == seen, "{what}: the snapshot");
                drop(snapshot);
                db.wait_until_idle().unwrap();
                assert!(all(&table) == model, "{what}, idle");
                drop(table);
                db.close().unwrap();
                let db = open(&env);
                let builder = db.table("t");
                let table = if merges { builder.merge_rule(Suffix) } else { builder }.open().unwrap();
                assert!(all(&table) == model, "{what}, opened again");
                assert!(db.verify(&mut |_, _| ()).unwrap().problems.is_empty());
                let files = env.fs.list(Path::new("/db")).unwrap();
                let kept = files.iter().filter(|name| name.ends_with(".list") || name.ends_with(".tree"));
                assert_eq!(kept.count() as u64, db.stats().list_files, "{what}: files are left behind");
            }
        }
    }
}

#[test]
fn writers_owe_nothing_for_another_order() {
    for (before, after) in [
        (Layout::no_merge(), Layout::wb_tree()),
        (Layout::wb_tree(), Layout::leveling(4)),
        (Layout::wb_tree(), Layout::tiering(2)),
    ] {
        let env = Env::memory(3);
        let db = open(&env);
        let table = db.table("t").layout(before).node_bytes(6 << 10).fan_out(3).open().unwrap();
        write(&table, &mut Model::new(), &mut Rng::new(3), false, 20_000);
        db.wait_until_idle().unwrap();
        let owed = db.stats().debt_bytes;
        table.set_layout(after).unwrap();
        assert!(db.stats().debt_bytes <= owed, "{before} to {after}: {}", db.stats().debt_bytes);
    }
}

#[test]
fn handles_of_before_stay_of_use_or_say_why_not() {
    let env = Env::memory(1);
    let db = open(&env);
    let table = db.table("t").layout(Layout::tiering(4)).open_ordered().unwrap();
    table.put(b"a", b"1").unwrap();
    table.put(b"b", b"1").unwrap();
    let (mut late, mut cutting) = (Batch::new(), Batch::new());
    late.put(&table, b"b", b"2");
    late.delete(&table, b"a");
    cutting.delete_range(&table, ..);
    let snapshot = db.snapshot();
    let mut refused = Vec::new();
    let write_buffer = Layout::wb_tree();
    table
        .set_layout_telling(write_buffer, &mut |_, _| {
            let entry = Ok((b"c".to_vec(), b"3".to_vec()));
            let errors = [table.delete_range(..), table.ingest([entry].into_iter()).map(drop)];
            refused
                .extend(errors.into_iter().chain([table.set_layout(write_buffer)]).map(Result::unwrap_err));
        })
        .unwrap();
    assert!(refused.len() > 3 && refused.iter().all(|error| matches!(error, Error::Invalid(_))));
    for error in
        [table.range(..).unwrap_err(), table.first().unwrap_err(), table.delete_range(..).unwrap_err()]
    {
        assert!(error.to_string().contains("keeps no order"), "{error}");
    }
    assert!(db.table("t").open_ordered().is_err());
    assert_eq!(snapshot.range(&table, ..).unwrap().count(), 2);
    assert!(db.commit(cutting, Durability::Os).is_err());
    // Their records were prepared for the other order.
    db.commit(late, Durability::Os).unwrap();
    table.put(b"d", b"4").unwrap();
    let plain = db.table("t").open().unwrap();
    plain.put(b"e", b"5").unwrap();
    let mut mixed = Batch::new();
    mixed.put(&table, b"f", b"6");
    mixed.put(&plain, b"f", b"7");
    db.commit(mixed, Durability::Os).unwrap();
    let expected = [("b", "2"), ("d", "4"), ("e", "5"), ("f", "7")];
    let expected: Model = expected.map(|(key, value)| (key.into(), value.into())).into();
    assert!(all(&plain) == expected);
    db.flush().unwrap();
    assert!(all(&plain) == expected);
    assert_eq!(plain.get(b"b").unwrap().unwrap(), b"2");
    plain.set_layout(Layout::leveling(10)).unwrap();
    let entries: Vec<_> = table.range(..).unwrap().map(Result::unwrap).collect();
    assert!(entries.into_iter().eq(expected), "it keeps its keys in order again");
}

/// The power goes at one file operation after the other.
#[test]
fn a_crash_leaves_one_order_or_the_other() {
    let (mut turned, mut kept) = (0, 0);
    for (before, after) in
        [(Layout::wb_tree(), Layout::leveling(10)), (Layout::tiering(2), Layout::wb_tree())]
    {
        for operation in (1..400).step_by(3) {
            let fs = CrashFs::new(operation);
            let env = Env::simulated(fs.clone(), operation);
            let (mut model, mut rng) = (Model::new(), Rng::new(operation));
            let db = open(&env);
            let table = db.table("t").layout(before).node_bytes(4 << 10).open().unwrap();
            write(&table, &mut model, &mut rng, false, 3000);
            db.sync().unwrap();
            fs.crash_at(fs.operations() + operation);
            let outcome = table.set_layout(after);
            let crashed = fs.is_off();
            assert!(crashed || outcome.is_ok(), "{outcome:?}");
            let left = fs.power_cycle();
            env.jobs.abandon();
            drop((table, db));
            let db = open(&Env::simulated(left, operation));
            let table = db.table("t").open().unwrap();
            let layout = table.layout().unwrap();
            assert!(layout == after || layout == before && crashed, "{layout}");
            (turned, kept) = (turned + u32::from(layout == after), kept + u32::from(layout == before));
            assert!(all(&table) == model, "{before} to {after}, operation {operation}");
            assert!(db.verify(&mut |_, _| ()).unwrap().problems.is_empty());
            if layout == after {
                break;
            }
        }
    }
    assert!(turned == 2 && kept > 20, "{turned} {kept}");
}

/// What a flush to files took in was merged with the runs that the table had in memory alone, down to where tombstones
/// and what has expired go. The list that followed had no word of the key, and the successor still had it.
#[test]
fn what_goes_while_runs_in_memory_are_sorted_anew_does_not_come_back() {
    for seed in 0..10 {
        let env = Env::memory(seed);
        let db = open(&env);
        // Keeps the compactor from writing out what is in memory.
        let other = db.table("other").layout(Layout::no_merge()).open_ordered().unwrap();
        for _ in 0..2 {
            let entries = (0..80_u8).map(|key| Ok((vec![key], vec![0; 100 << 10])));
            other.ingest(entries).unwrap();
        }
        let life = Duration::from_secs(3600);
        let table = db.table("t").layout(Layout::range_merge()).time_to_live(life).open().unwrap();
        (0..100_u8).for_each(|key| table.put([key], [1; 50]).unwrap());
        let mut compacting = None;
        table
            .set_layout_telling(Layout::wb_tree(), &mut |_, _| {
                if compacting.is_none() {
                    let other = other.clone();
                    compacting = Some(env.jobs.fork("compacting", move || other.compact().unwrap()));
                    env.jobs.step_some(8);
                    table.delete([7]).unwrap();
                    table.put_with_ttl([8], b"short", Duration::from_secs(1)).unwrap();
                    env.jobs.advance(Duration::from_secs(2));
                    db.flush().unwrap();
                }
            })
            .unwrap();
        compacting.unwrap().join();
        assert_eq!(table.get([7]).unwrap(), None, "seed {seed}: deleted");
        assert_eq!(table.get([8]).unwrap(), None, "seed {seed}: expired");
        assert_eq!(table.iter().unwrap().count(), 98, "seed {seed}");
    }
}

/// A table that was dropped while it was sorted may be back by a rollback: it stays as the savepoint has it.
#[test]
fn a_rollback_amid_sorting_is_not_undone() {
    let env = Env::memory(1);
    let db = open(&env);
    let table = db.table("t").layout(Layout::wb_tree()).open().unwrap();
    let other = db.table("other").layout(Layout::wb_tree()).open().unwrap();
    table.put(b"k", b"1").unwrap();
    db.savepoint("s").unwrap();
    table.put(b"k", b"2").unwrap();
    let mut came_back = false;
    let error = table.set_layout_telling(Layout::wb_tree_ordered(), &mut |_, _| {
        if !came_back {
            db.drop_table("t").unwrap();
            other
                .set_layout_telling(Layout::leveling(4), &mut |_, _| {
                    assert!(db.rollback("s").unwrap_err().to_string().contains("`other`"));
                })
                .unwrap();
            db.rollback("s").unwrap();
            came_back = true;
        }
    });
    assert!(error.unwrap_err().is_not_found());
    let table = db.table("t").open().unwrap();
    assert_eq!(table.get(b"k").unwrap(), Some(b"1".to_vec()));
    assert!(!table.layout().unwrap().is_ordered());
    table.put(b"k", b"3").unwrap();
    table.set_layout(Layout::wb_tree_ordered()).unwrap();
    assert_eq!(table.get(b"k").unwrap(), Some(b"3".to_vec()));
}

/// What a filter drops of the table while it is sorted may have been copied already: a deletion that comes then must
/// reach the copy, also where no run lies beneath it any more.
#[test]
fn what_is_deleted_amid_sorting_stays_deleted_where_a_filter_has_emptied_the_table() {
    for layout in ordered_layouts() {
        let env = Env::memory(2);
        let db = open(&env);
        let drops = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&drops);
        let keep = move |_: &[u8], _: &[u8]| if asked.load(Relaxed) { Keep::Drop } else { Keep::Keep };
        let table = db.table("t").layout(layout).compaction_filter(keep).open().unwrap();
        for key in [b"a", b"k"] {
            table.put(key, b"v").unwrap();
            db.flush().unwrap();
        }
        let mut is_copied = false;
        table
            .set_layout_telling(Layout::wb_tree(), &mut |done, all| {
                if done == all && !is_copied {
                    is_copied = true;
                    drops.store(true, Relaxed);
                    table.compact().unwrap();
                    table.delete(b"k").unwrap();
                    db.flush().unwrap();
                    drops.store(false, Relaxed);
                }
            })
            .unwrap();
        assert!(is_copied && table.get(b"k").unwrap().is_none(), "{layout}");
    }
}
