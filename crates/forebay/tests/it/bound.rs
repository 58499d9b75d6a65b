//! The bound on a table's space: it is kept to under every layout, whatever is written, and where readers hold what it
//! needs it is said who does.

use std::path::Path;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Error, Layout, Options, Table};
use forebay_env::Env;
use forebay_testkit::ordered_layouts;

use crate::space::list_bytes;

const DIR: &str = "/db";
const BUFFER_BYTES: u64 = 32 << 10;
const NODE_BYTES: u64 = 32 << 10;
const KEYS: u64 = 10_000;
/// As many buffers as there are and one, and eight nodes.
const ALLOWANCE: u64 = 4 * BUFFER_BYTES + 8 * NODE_BYTES;

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(2 << 20).write_buffer(BUFFER_BYTES).env(env.clone());
    Database::open(Path::new(DIR), options).unwrap()
}

fn bounded(db: &Database, layout: Layout, most: f64) -> Table {
    db.table("t").layout(layout).node_bytes(NODE_BYTES).max_space_amplification(most).open().unwrap()
}

/// Those that write out what is flushed: most.
fn flushing_layouts() -> impl Iterator<Item = Layout> {
    layouts().filter(|layout| !layout.keeps_in_memory())
}

fn layouts() -> impl Iterator<Item = Layout> {
    ordered_layouts().into_iter().chain([Layout::wb_tree()])
}

/// A number from 0 to `KEYS`, spread evenly.
fn drawn(number: u64) -> u64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % KEYS
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn value(number: u64) -> [u8; 100] {
    let mut value = [7; 100];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

/// Writes all keys, then draws some again and again. Calls `look` after every commit, and returns what was written
/// last.
fn write(
    db: &Database,
    table: &Table,
    numbers: std::ops::Range<u64>,
    look: &mut dyn FnMut(),
) -> Result<(), Error> {
    let mut batch = Batch::new();
    for number in numbers {
        let key = if number < KEYS { number } else { drawn(number) };
        batch.put(table, self::key(key), value(number));
        if number % 100 == 99 {
            db.write(&mut batch, Durability::Memory)?;
            look();
        }
    }
    Ok(())
}

fn check(table: &Table, written: u64) {
    let mut expected: Vec<u64> = (0..KEYS).collect();
    (KEYS..written).for_each(|number| expected[drawn(number) as usize] = number);
    for key in (0..KEYS).step_by(17) {
        let found = table.get(self::key(key)).unwrap().unwrap();
        assert_eq!(found, value(expected[key as usize]), "key {key}");
    }
}

#[test]
fn overwrites_stay_within_the_bound_under_every_layout() {
    const WRITTEN: u64 = 4 * KEYS;
    for layout in layouts() {
        for most in [1.5, 2.0, 3.0] {
            let env = Env::memory(11);
            let db = open(&env);
            let table = bounded(&db, layout, most);
            let mut taken = Vec::new();
            write(&db, &table, 0..WRITTEN, &mut || taken.push(list_bytes(&env))).unwrap();
            check(&table, WRITTEN);
            let said = db.stats().tables[0].space;
            table.compact().unwrap();
            let live = db.stats().tables[0].space.live_file_bytes;
            // Samples err; and short lists, of which there are none once all is compacted, take more for a record.
            let limit = (most * 1.2 * live as f64) as u64 + ALLOWANCE;
            let peak = *taken.iter().max().unwrap();
            assert!(peak <= limit, "{layout}, {most}: {peak} of {limit}, {live} live; {said:?}");
            let is_lazy = layout.to_string() == "no-merge";
            assert!(!is_lazy || peak > live * 5 / 4, "{layout}, {most}: {peak} makes no use of it");
            drop(table);
            db.close().unwrap();
            let db = open(&env);
            let space = db.stats().tables[0].space;
            assert!(space.limit_bytes.is_some() && space.disk_bytes <= space.limit_bytes.unwrap());
            check(&db.table("t").open().unwrap(), WRITTEN);
        }
    }
}

#[test]
fn a_snapshot_that_needs_the_room_is_named_and_writes_go_on_without_it() {
    for layout in flushing_layouts() {
        let env = Env::memory(12);
        let db = open(&env);
        let (table, other) = (bounded(&db, layout, 2.0), db.table("other").open().unwrap());
        write(&db, &table, 0..2 * KEYS, &mut || ()).unwrap();
        let first = db.snapshot();
        let (mut written, mut peak) = (2 * KEYS, 0);
        let error = loop {
            if let Err(error) = write(&db, &table, written..written + 100, &mut || ()) {
                break error;
            }
            written += 100;
            peak = list_bytes(&env).max(peak);
            assert!(written < 20 * KEYS, "{layout}: no error, {:?}", db.stats());
        };
        let Error::NoSpace(said) = &error else { panic!("{layout}: {error}") };
        let held = db.stats().snapshots[0].held_bytes;
        for part in
            ["table `t`", "max_space_amplification of 2 ", "(snapshot 1 of ", &format!(" s: {held} bytes)")]
        {
            assert!(said.contains(part), "{layout}: {part}: {said}");
        }
        let limit = db.stats().tables[0].space.limit_bytes.unwrap();
        assert!(peak <= limit, "{layout}: {peak} of {limit}");
        // Nothing is lost, others write on, and so does this one once the snapshot goes.
        assert!(write(&db, &table, written..written + 100, &mut || ()).is_err());
        check(&table, written);
        other.put(b"k", b"v").unwrap();
        db.wait_until_idle().unwrap();
        drop(first);
        write(&db, &table, written..written + 2 * KEYS, &mut || ()).unwrap();
        check(&table, written + 2 * KEYS);
        // A scan holds as much.
        let scan = table.iter().unwrap();
        written += 2 * KEYS;
        let error = loop {
            if let Err(error) = write(&db, &table, written..written + 100, &mut || ()) {
                break error;
            }
            written += 100;
            assert!(written < 40 * KEYS, "{layout}: no error");
        };
        assert!(error.to_string().contains("of them (scans)"), "{layout}: {error}");
        assert_eq!(scan.count() as u64, KEYS);
        write(&db, &table, written..written + KEYS, &mut || ()).unwrap();
        check(&table, written + KEYS);
    }
}

#[test]
fn space_follows_deletes_and_growth() {
    for layout in flushing_layouts() {
        let env = Env::memory(13);
        let db = open(&env);
        let table = bounded(&db, layout, 1.5);
        let space = || db.stats().tables[0].space;
        for round in 0..3 {
            write(&db, &table, 0..KEYS, &mut || ()).unwrap();
            // What lives goes down faster than files can.
            let limit = space().limit_bytes.unwrap();
            let mut batch = Batch::new();
            for number in 0..KEYS {
                batch.delete(&table, key(number));
                if number % 100 == 99 {
                    db.write(&mut batch, Durability::Memory).unwrap();
                    assert!(list_bytes(&env) <= limit, "{layout}, {round}, {number}: {limit}, {:?}", space());
                }
            }
            db.wait_until_idle().unwrap();
            // Files that nobody needs any more go a little later.
            env.jobs.advance(Duration::from_secs(1));
            env.jobs.step_some(1000);
            let least = space();
            assert!(least.disk_bytes <= least.limit_bytes.unwrap(), "{layout}, {round}: {least:?}");
            // Some of what was written last is in no list yet when the limit is asked.
            assert!(least.limit_bytes.unwrap() < limit / 3 * 2, "{layout}, {round}: {limit}, {least:?}");
        }
    }
}

#[test]
fn bounds_out_of_bounds_and_other_bounds_are_refused() {
    let env = Env::memory(14);
    let db = open(&env);
    for most in [0.0, 1.2, f64::NAN, f64::INFINITY] {
        assert!(
            db.table("t")
                .max_space_amplification(most)
                .open()
                .is_err_and(|error| { error.to_string().contains("max_space_amplification") })
        );
    }
    bounded(&db, Layout::wb_tree(), 2.0);
    let other = db.table("t").max_space_amplification(3.0).open();
    assert!(other.is_err_and(|error| error.to_string().contains("has max_space_amplification 2, not 3")));
    assert!(db.table("t").open().is_ok());
    assert!(db.describe().to_string().contains("at most 2 times on disk"));
}

/// Nobody worked on the room that a flush waited for, and nobody said so.
#[test]
fn what_rangemerge_keeps_in_memory_waits_for_no_room_in_silence() {
    for seed in 0..4 {
        let env = Env::memory(13 + seed);
        let db = open(&env);
        let (table, other) = (bounded(&db, Layout::range_merge(), 1.25), db.table("other").open().unwrap());
        write(&db, &table, 0..2 * KEYS, &mut || ()).unwrap();
        let held = db.snapshot();
        let mut written = 2 * KEYS;
        while written < 6 * KEYS && write(&db, &table, written..written + 100, &mut || ()).is_ok() {
            written += 100;
        }
        for number in 0..200 {
            let refused = other.put(key(number), value(number)).err();
            assert!(refused.is_none_or(|error| matches!(error, Error::NoSpace(_))));
        }
        let refused = db.flush().err();
        assert!(refused.as_ref().is_none_or(|error| matches!(error, Error::NoSpace(_))), "{refused:?}");
        check(&table, written);
        drop(held);
        env.jobs.advance(Duration::from_secs(1));
        env.jobs.step_some(10_000);
        db.flush().unwrap();
        check(&table, written);
    }
}

/// Memory that such tables share was full of what had no room on disk beside a snapshot. Another one waited for it,
/// forever, and whoever wrote to anything did, too. Once it was told, it was told again after the snapshot was gone.
#[test]
fn memory_that_has_no_room_on_disk_keeps_no_other_table_waiting() {
    for seed in 0..4 {
        let env = Env::memory(13 + seed);
        let db = open(&env);
        let table = bounded(&db, Layout::range_merge(), 1.25);
        let other = db.table("other").layout(Layout::range_merge()).open().unwrap();
        write(&db, &table, 0..2 * KEYS, &mut || ()).unwrap();
        let held = db.snapshot();
        let mut written = 2 * KEYS;
        while written < 6 * KEYS && write(&db, &table, written..written + 100, &mut || ()).is_ok() {
            written += 100;
        }
        for number in 0..2000 {
            let refused = other.put(key(number), value(number)).err();
            assert!(refused.is_none_or(|error| matches!(error, Error::NoSpace(_))));
        }
        drop(held);
        other.put(b"last", b"value").unwrap();
        table.put(b"last", b"value").unwrap();
    }
}
