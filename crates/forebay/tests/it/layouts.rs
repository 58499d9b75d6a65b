//! Layouts of runs as users meet them: their promises about runs, and switching from one to another in use.

use std::collections::BTreeMap;
use std::path::Path;

use forebay::{Database, Layout, Options, OrderedTable};
use forebay_env::Env;
use forebay_env::fs::{CrashFs, FaultyFs};
use forebay_testkit::ordered_layouts;

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone());
    Database::open(Path::new("/db"), options).unwrap()
}

fn put(table: &OrderedTable, number: u64, value: &str) {
    table.put(key_of(number), value.as_bytes()).unwrap();
}

/// Keys come in no order.
fn key_of(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn runs(db: &Database) -> usize {
    db.stats().tables[0].levels.iter().map(|level| level.lists_max).sum()
}

#[test]
fn the_number_of_runs_is_as_promised() {
    for (layout, most) in [("immediate", 1), ("geometric:p=1", 1), ("geometric:p=2", 2), ("geometric:p=3", 3)]
    {
        let env = Env::memory(4);
        let db = open(&env);
        let table = db.table("t").layout(layout.parse().unwrap()).node_bytes(8 << 10).open_ordered().unwrap();
        for number in 0..15_000 {
            put(&table, number, "some value");
            env.jobs.step_some(1);
            let is_at_rest = layout == "immediate" || number % 500 == 0;
            if layout != "immediate" && is_at_rest {
                db.wait_until_idle().unwrap();
            }
            assert!(!is_at_rest || runs(&db) <= most, "{layout}: {} runs", runs(&db));
        }
        let stats = db.stats();
        assert!(stats.jobs_done["flush"] > 10, "{layout}: {:?}", stats.jobs_done);
    }
}

/// Parts of runs on disk, as pairs of where they begin and which run they are of; and runs in memory.
fn parts_on_disk(db: &Database) -> (Vec<(String, u64)>, usize) {
    let resident = db.stats().tables[0]
        .levels
        .iter()
        .filter(|level| level.level == 0)
        .map(|level| level.lists_max)
        .sum();
    let nodes = &db.describe().tables[0].nodes;
    let on_disk = nodes.iter().filter(|node| node.level > 0);
    (on_disk.map(|node| (node.low.clone(), node.id)).collect(), resident)
}

#[test]
fn rangemerge_keeps_one_run_a_key_range_and_its_memory() {
    let env = Env::memory(4);
    let db = open(&env);
    let table = db.table("t").layout(Layout::range_merge()).node_bytes(8 << 10).open_ordered().unwrap();
    let mut ranges = 0;
    for number in 0..15_000 {
        put(&table, number, "some value");
        env.jobs.step_some(1);
        let (parts, resident) = parts_on_disk(&db);
        let run = parts.first().map(|(_, run)| *run);
        assert!(parts.iter().all(|(_, of)| Some(*of) == run), "{parts:?}");
        assert!(parts.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert!(resident <= 9, "{resident} runs in memory");
        // Each file in memory has its index, and ends with a whole page.
        let resident_bytes = db.stats().memory.resident_records;
        assert!(resident_bytes <= 2 * (16 << 10) + 9 * (24 << 10), "{resident_bytes} bytes");
        ranges = ranges.max(parts.len());
    }
    assert!(ranges > 10, "{ranges} key ranges");
    let entries = table.range(..).unwrap().map(Result::unwrap).count();
    assert_eq!(entries, 15_000);
}

/// What waits in memory comes back, but not what has gone since.
#[test]
fn rangemerge_comes_back_whole_from_any_moment() {
    for stop in [100, 2_000, 5_000, 9_000, 18_000] {
        let env = Env::memory(6);
        let mut db = open(&env);
        let builder =
            |db: &Database| db.table("t").layout(Layout::range_merge()).node_bytes(8 << 10).open_ordered();
        let (table, other) = (builder(&db).unwrap(), db.table("other").open().unwrap());
        let mut model = BTreeMap::new();
        for number in 0..stop {
            put(&table, number % 8_000, &format!("{number}"));
            model.insert(key_of(number % 8_000), format!("{number}").into_bytes());
            other.put(b"the same again and again", number.to_be_bytes()).unwrap();
            env.jobs.step_some(2);
        }
        let (low, high) = ([0x40; 8], [0xa0; 8]);
        table.delete_range(&low[..]..&high[..]).unwrap();
        model.retain(|key, _| !(low..high).contains(key));
        for _ in 0..3 {
            assert!(stop < 9_000 || db.stats().memory.resident_records > 0);
            db.close().unwrap();
            db = open(&env);
            let table = builder(&db).unwrap();
            let entries = table.range(..).unwrap().map(Result::unwrap);
            assert!(
                entries.eq(model.iter().map(|(key, value)| (key.to_vec(), value.clone()))),
                "after {stop}"
            );
            let other = db.table("other").open().unwrap();
            assert_eq!(other.get(b"the same again and again").unwrap().unwrap(), (stop - 1).to_be_bytes());
        }
    }
}

#[test]
fn any_layout_becomes_any_other_without_moving_a_record() {
    for before in ordered_layouts() {
        for after in ordered_layouts() {
            let env = Env::memory(5);
            let db = open(&env);
            let table = db.table("t").layout(before).node_bytes(6 << 10).fan_out(3).open_ordered().unwrap();
            for number in 0..3_000 {
                put(&table, number % 2_000, &format!("{number}"));
            }
            db.flush().unwrap();
            let entries =
                |table: &OrderedTable| -> Vec<_> { table.range(..).unwrap().map(Result::unwrap).collect() };
            let (expected, snapshot) = (entries(&table), db.snapshot());
            assert_eq!(expected.len(), 2_000);
            let written = |db: &Database| db.stats().list_bytes_written.values().sum::<u64>();
            let bytes = written(&db);
            table.set_layout(after).unwrap();
            assert_eq!(table.layout().unwrap(), after);
            // A WB tree has no place for what waits in memory, and none for files that grow.
            let has_no_place = before.keeps_in_memory() || before.grows_trees();
            let moves = has_no_place && after == Layout::wb_tree_ordered();
            assert!(moves || written(&db) == bytes, "{before} to {after} moved something");
            assert!(entries(&table) == expected, "{before} to {after}");
            for number in 3_000..4_000 {
                put(&table, number % 2_000, &format!("{}", number - 2_000));
            }
            db.wait_until_idle().unwrap();
            let seen: Vec<_> = snapshot.range(&table, ..).unwrap().map(Result::unwrap).collect();
            assert!(seen == expected, "{before} to {after}: the snapshot");
            drop(snapshot);
            let expected = entries(&table);
            drop(table);
            db.close().unwrap();
            let db = open(&env);
            let table = db.table("t").open_ordered().unwrap();
            assert_eq!(table.layout().unwrap(), after);
            assert!(entries(&table) == expected, "{before} to {after}: opened again");
            table.compact().unwrap();
            assert!(entries(&table) == expected, "{before} to {after}: compacted");
            assert!(db.verify(&mut |_, _| ()).unwrap().problems.is_empty());
        }
    }
}

#[test]
fn a_layout_of_no_sense_is_refused() {
    let db = open(&Env::memory(6));
    let ordered = db.table("ordered").layout(Layout::tiering(4)).open_ordered().unwrap();
    assert!(ordered.set_layout(Layout::leveling(1)).is_err());
    assert_eq!(ordered.layout().unwrap(), Layout::tiering(4));
}

#[test]
fn a_range_goes_and_nothing_else_does() {
    for layout in ordered_layouts() {
        let env = Env::memory(7);
        let db = open(&env);
        let table = db.table("t").layout(layout).node_bytes(4 << 10).fan_out(3).open_ordered().unwrap();
        let mut expected = BTreeMap::new();
        for round in 0..12_u64 {
            for number in 0..600 {
                let key = (number * 7919 % 4000 + round).to_be_bytes().to_vec();
                let value = format!("{round} {number}").into_bytes();
                table.put(&key, &value).unwrap();
                expected.insert(key, value);
            }
            env.jobs.step_some(round as usize * 5);
            let snapshot = db.snapshot();
            let before = expected.clone();
            let (low, high) = ((round * 300).to_be_bytes(), (round * 300 + 400 * (round % 3)).to_be_bytes());
            table.delete_range(&low[..]..&high[..]).unwrap();
            expected.retain(|key, _| key[..] < low[..] || key[..] >= high[..]);
            let entries = |scan: forebay::Scan| scan.map(Result::unwrap).collect::<Vec<_>>();
            assert!(
                entries(table.range(..).unwrap()).into_iter().eq(expected.clone()),
                "{layout}, round {round}"
            );
            assert!(
                entries(snapshot.range(&table, ..).unwrap()).into_iter().eq(before),
                "{layout}: the snapshot"
            );
            assert_eq!(table.get(low).unwrap(), expected.get(&low[..]).cloned());
        }
        db.wait_until_idle().unwrap();
        drop(table);
        db.close().unwrap();
        let db = open(&env);
        let table = db.table("t").open_ordered().unwrap();
        assert!(table.range(..).unwrap().map(Result::unwrap).eq(expected), "{layout}: opened again");
        table.delete_range(..).unwrap();
        table.compact().unwrap();
        assert_eq!(table.range(..).unwrap().count(), 0);
        assert_eq!(db.stats().list_records, 0, "{layout}");
        assert!(db.verify(&mut |_, _| ()).unwrap().problems.is_empty());
    }
}

/// Files still have what a merge under way has taken from them, and what was cut out.
#[test]
fn a_tree_sees_nothing_that_was_taken_from_files() {
    let mut begun = 0;
    for before in ["tiering:t=2", "leveling:t=3", "no-merge"] {
        for steps in 0..40 {
            let env = Env::memory(8);
            let db = open(&env);
            let table =
                db.table("t").layout(before.parse().unwrap()).node_bytes(1 << 10).open_ordered().unwrap();
            // The newest merges leave less of some keys than their inputs' files have.
            for round in 0..6_u64 {
                for number in 0..600 {
                    put(&table, number, &format!("{round}"));
                }
                table.delete((round.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes()).unwrap();
                db.flush().unwrap();
            }
            env.jobs.step_some(steps);
            let nodes = &db.describe().tables[0].nodes;
            let first = |id: u64| nodes.iter().find(|node| node.id == id).map(|node| node.low.clone());
            begun += u32::from(nodes.iter().any(|node| first(node.id).unwrap() != "0000000000000000"));
            if steps % 2 == 0 {
                let low = (steps as u8).wrapping_mul(5);
                table.delete_range(&[low][..]..&[low + 17, 3][..]).unwrap();
                // The largest run is a new one, from which nothing was cut.
                for number in 1000..1700 {
                    put(&table, number, "new");
                }
                db.flush().unwrap();
            }
            let entries =
                |table: &OrderedTable| -> Vec<_> { table.range(..).unwrap().map(Result::unwrap).collect() };
            let expected = entries(&table);
            table.set_layout(Layout::wb_tree_ordered()).unwrap();
            assert!(entries(&table) == expected, "{before} after {steps} steps");
            db.wait_until_idle().unwrap();
            assert!(entries(&table) == expected, "{before} after {steps} steps, idle");
        }
    }
    assert!(begun > 10, "only {begun} merges were under way");
}

/// A merge that has read a range, and is done only after the range was deleted, does not bring it back.
#[test]
fn a_range_that_goes_while_it_is_merged_stays_gone() {
    for layout in ["tiering:t=2", "leveling:t=3"] {
        for steps in 0..40 {
            let env = Env::memory(9);
            let db = open(&env);
            let table =
                db.table("t").layout(layout.parse().unwrap()).node_bytes(2 << 10).open_ordered().unwrap();
            for number in 0..4_000 {
                put(&table, number % 1_500, &format!("{number}"));
            }
            db.flush().unwrap();
            env.jobs.step_some(steps);
            table.delete_range(&[40_u8][..]..&[200_u8][..]).unwrap();
            let entries =
                |table: &OrderedTable| -> Vec<_> { table.range(..).unwrap().map(Result::unwrap).collect() };
            let expected = entries(&table);
            assert!(expected.iter().all(|(key, _)| !(40..200).contains(&key[0])) && expected.len() > 300);
            db.wait_until_idle().unwrap();
            assert!(entries(&table) == expected, "{layout} after {steps} steps");
        }
    }
}

/// A merge that began before its table became a tree, and ends after it became runs again, knows other runs.
#[test]
fn work_of_an_older_layout_never_comes_in() {
    for layout in ["tiering:t=2", "leveling:t=3"] {
        for steps in 0..40 {
            let env = Env::memory(10);
            let db = open(&env);
            let layout: Layout = layout.parse().unwrap();
            let table = db.table("t").layout(layout).node_bytes(2 << 10).open_ordered().unwrap();
            for number in 0..4_000 {
                put(&table, number % 1_500, &format!("{number}"));
            }
            db.flush().unwrap();
            let entries =
                |table: &OrderedTable| -> Vec<_> { table.range(..).unwrap().map(Result::unwrap).collect() };
            let expected = entries(&table);
            env.jobs.step_some(steps);
            table.set_layout(Layout::wb_tree_ordered()).unwrap();
            table.set_layout(layout).unwrap();
            db.wait_until_idle().unwrap();
            assert!(entries(&table) == expected, "{layout} after {steps} steps");
        }
    }
}

/// On its way a table had a third layout, which stayed where that was cut short: programs that ask for either of the
/// two could not open the table any more.
#[test]
fn a_table_that_is_given_another_layout_has_the_one_or_the_other() {
    let (before, after) = (Layout::range_merge(), Layout::wb_tree_ordered());
    for is_crash in [true, false] {
        let (mut kept, mut given) = (0, 0);
        for operation in 1..200 {
            let crash = CrashFs::new(operation);
            let faulty = FaultyFs::new(crash.clone());
            let env = Env::simulated(faulty.clone(), operation);
            let db = open(&env);
            let table = db.table("t").layout(before).node_bytes(8 << 10).open_ordered().unwrap();
            (0..300).for_each(|number| put(&table, number, "some value"));
            db.wait_until_idle().unwrap();
            assert!(db.stats().memory.resident_records > 0);
            match is_crash {
                true => crash.crash_at(crash.operations() + operation),
                false => faulty.rule(&format!("write *.list #{operation} no-space")).unwrap(),
            }
            let outcome = table.set_layout(after);
            let is_over = outcome.is_ok() && !crash.is_off() && faulty.fired() == 0;
            faulty.clear();
            let left = crash.power_cycle();
            env.jobs.abandon();
            drop((table, db));
            let db = open(&Env::simulated(left, operation));
            let layout = db.table("t").open_ordered().unwrap().layout().unwrap();
            assert!(layout == after || layout == before && !is_over, "operation {operation}: {layout}");
            (kept, given) = (kept + u32::from(layout == before), given + u32::from(layout == after));
            assert_eq!(db.table("t").open_ordered().unwrap().iter().unwrap().count(), 300);
            if is_over {
                break;
            }
        }
        assert!(kept > 0 && given > 0, "crash {is_crash}: {kept} {given}");
    }
}
