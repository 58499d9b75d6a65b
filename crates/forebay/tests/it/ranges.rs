//! Ranges deleted in a batch: in order with what else the batch does, atomic with it, hidden from every reader at once,
//! and gone after any way through buffers, lists and the log.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Layout, Nearest, Options, OrderedTable};
use forebay_env::Env;
use forebay_env::fs::MemoryFs;
use forebay_testkit::{Suffix, ordered_layouts};

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone());
    Database::open(Path::new("/db"), options).unwrap()
}

fn all(table: &OrderedTable) -> Vec<(Vec<u8>, Vec<u8>)> {
    table.range(..).unwrap().map(Result::unwrap).collect()
}

fn text(table: &OrderedTable) -> String {
    let entry = |(key, value): (Vec<u8>, Vec<u8>)| [key, value].concat();
    String::from_utf8(all(table).into_iter().map(entry).collect::<Vec<_>>().join(&b' ')).unwrap()
}

#[test]
fn a_batch_deletes_a_range_in_order_with_its_other_operations() {
    for layout in ordered_layouts() {
        for flushed in [false, true] {
            let env = Env::memory(1);
            let db = open(&env);
            let table = db.table("t").layout(layout).node_bytes(8 << 10).open_ordered().unwrap();
            let other = db.table("other").open().unwrap();
            for key in ["a", "b", "c", "d", "e"] {
                table.put(key.as_bytes(), b"1").unwrap();
            }
            if flushed {
                db.flush().unwrap();
            }
            table.put(b"c", b"2").unwrap();
            let before = db.snapshot();
            let mut batch = Batch::new();
            batch.put(&table, b"bb", b"3");
            batch.delete_range(&table, &b"b"[..]..&b"e"[..]);
            batch.put(&table, b"d", b"4");
            batch.put(&other, b"k", b"5");
            batch.delete_prefix(&table, b"e");
            assert_eq!(batch.len(), 5);
            let last = db.commit(batch, Durability::Os).unwrap();
            assert_eq!(last, 11, "a range counts as a record");
            let check = |table: &OrderedTable| {
                assert_eq!(text(table), "a1 d4", "{layout}");
                let got = table.multi_get(&["a", "b", "bb", "c", "d", "e"]).unwrap();
                assert_eq!(got.iter().filter(|value| value.is_some()).count(), 2, "{layout}");
                assert_eq!(table.get(b"c").unwrap(), None);
                let reversed: Vec<_> = table.range(..).unwrap().rev().map(Result::unwrap).collect();
                assert_eq!(reversed[0], (b"d".to_vec(), b"4".to_vec()));
                assert_eq!(reversed.len(), 2);
                let below = table.nearest(b"d", Nearest::Below).unwrap();
                assert_eq!(below.unwrap().0, b"a");
            };
            check(&table);
            let seen: Vec<_> = before.range(&table, ..).unwrap().map(Result::unwrap).collect();
            assert_eq!(seen.len(), 5);
            assert_eq!(before.get(&table, b"c").unwrap().unwrap(), b"2");
            env.jobs.step_some(3);
            check(&table);
            let seen_again: Vec<_> = before.range(&table, ..).unwrap().map(Result::unwrap).collect();
            assert_eq!(seen, seen_again);
            drop((before, table, other));
            db.close().unwrap();
            // Out of the log, and then out of lists.
            let db = open(&env);
            let table = db.table("t").open_ordered().unwrap();
            check(&table);
            db.flush().unwrap();
            check(&table);
            table.compact().unwrap();
            check(&table);
            assert_eq!(db.table("other").open().unwrap().get(b"k").unwrap().unwrap(), b"5");
            assert!(db.verify(&mut |_, _| ()).unwrap().problems.is_empty());
        }
    }
}

#[test]
fn what_merges_does_not_merge_across_a_deleted_range() {
    let env = Env::memory(2);
    let db = open(&env);
    let table = db
        .table("t")
        .layout(Layout::tiering(4))
        .node_bytes(8 << 10)
        .merge_rule(Suffix)
        .open_ordered()
        .unwrap();
    let mut snapshots = Vec::new();
    let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for round in 0..40_u8 {
        let mut batch = Batch::new();
        for key in 0..20_u8 {
            let operand = [round, key];
            batch.merge(&table, [key], operand);
            if key == 10 {
                let low = round % 9;
                batch.delete_range(&table, &[low][..]..&[low + 3][..]);
            }
        }
        db.write(&mut batch, Durability::Memory).unwrap();
        for key in 0..20_u8 {
            table.merge([key], b"!").unwrap();
        }
        // What was looked at is folded.
        let now: BTreeMap<_, _> = all(&table).into_iter().collect();
        let low = round % 9;
        for key in 0..20_u8 {
            let is_gone = (low..low + 3).contains(&key);
            let older = if is_gone { None } else { expected.get(&vec![key]) };
            let operand: &[u8] = if is_gone { &[] } else { &[round, key] };
            let mut value = older.cloned();
            for operand in [operand, b"!"].into_iter().filter(|operand| !operand.is_empty()) {
                value = Some(forebay_testkit::Merging::Operands.merged(operand, value.as_deref()));
            }
            expected.insert(vec![key], value.unwrap());
        }
        assert!(now == expected, "round {round}");
        let got = table.multi_get(&(0..20_u8).map(|key| [key]).collect::<Vec<_>>()).unwrap();
        assert!(got.into_iter().flatten().eq(expected.values().cloned()), "round {round}");
        snapshots.push((db.snapshot(), now));
        if round % 7 == 6 {
            env.jobs.step_some(5);
        }
    }
    for (number, (snapshot, seen)) in snapshots.iter().enumerate() {
        let found: BTreeMap<_, _> = snapshot.range(&table, ..).unwrap().map(Result::unwrap).collect();
        assert!(found == *seen, "snapshot {number}");
        for (key, value) in seen {
            assert_eq!(snapshot.get(&table, key).unwrap().as_ref(), Some(value), "snapshot {number}");
        }
    }
    db.wait_until_idle().unwrap();
    assert!(all(&table).into_iter().eq(expected));
}

/// A buffer takes some hundred; more go to the next.
#[test]
fn very_many_ranges_are_deleted() {
    for layout in [Layout::wb_tree_ordered(), Layout::leveling(10)] {
        let db = open(&Env::memory(3));
        let table = db.table("t").layout(layout).node_bytes(8 << 10).open_ordered().unwrap();
        for number in 0..2000_u32 {
            table.put(number.to_be_bytes(), b"v").unwrap();
        }
        let mut batch = Batch::new();
        for number in (0..1000_u32).step_by(2) {
            table.delete_range(&number.to_be_bytes()[..]..&(number + 1).to_be_bytes()[..]).unwrap();
            batch.delete_prefix(&table, (number + 1000).to_be_bytes());
        }
        db.commit(batch, Durability::Memory).unwrap();
        let odd = |table: &OrderedTable| {
            let keys: Vec<_> = all(table).into_iter().map(|(key, _)| key[3] % 2).collect();
            assert!(keys.len() == 1000 && keys.iter().all(|&bit| bit == 1), "{layout}");
        };
        odd(&table);
        db.wait_until_idle().unwrap();
        odd(&table);
    }
}

/// Lists had lost the range already, durably, and a bit of the log took its deletion along, and all that was written
/// before that: the log seemed to end there, torn, and what was to be deleted by something that never was had gone.
#[test]
fn a_range_is_not_gone_without_what_deleted_it() {
    let options = |env: &Env| {
        let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).write_buffers(5);
        // So that no frame tells of a sync.
        options.sync_interval(Duration::MAX).env(env.clone())
    };
    let mut refused = 0;
    for layout in ordered_layouts() {
        let fs = MemoryFs::new();
        let env = Env::simulated(fs.clone(), 3);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").layout(layout).node_bytes(8 << 10).open_ordered().unwrap();
        (0..40u8).for_each(|key| table.put([key], [1; 60]).unwrap());
        table.compact().unwrap();
        let before = db.last_sequence();
        let mut batch = Batch::new();
        batch.delete_range(&table, &[10][..]..&[30][..]);
        db.commit(batch, Durability::Os).unwrap();
        // The next segment begins, and nothing stands in it.
        table.put([50], [2; 4200]).unwrap();
        for moment in 0..40 {
            let left = fs.deep_clone();
            let segment = left.snapshot_files().into_iter().filter(|(path, bytes)| {
                path.extension().is_some_and(|kind| kind == "log") && bytes.iter().any(|byte| *byte != 0)
            });
            for (path, mut bytes) in segment {
                bytes[34] ^= 1;
                let damaged = left.deep_clone();
                damaged.replace_file(&path, bytes);
                let env = Env::simulated(damaged, 3);
                match Database::open("/db", options(&env)) {
                    Err(error) => {
                        assert!(error.is_corruption() && error.to_string().contains(".log"), "{error}");
                        refused += 1;
                    }
                    Ok(db) if db.last_sequence() == before => {
                        let found = all(&db.table("t").open_ordered().unwrap()).len();
                        assert_eq!(found, 40, "{layout}, {moment} steps later");
                    }
                    Ok(_) => {}
                }
                env.jobs.abandon();
            }
            env.jobs.step_some(1);
        }
        env.jobs.abandon();
    }
    assert!(refused > 0);
}
