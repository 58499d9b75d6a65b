//! Tables that keep records in memory, beside others that do not: what was deleted stays deleted, and the log goes on.

use std::collections::BTreeMap;
use std::path::Path;

use forebay::{Database, Layout, Options, OrderedTable};
use forebay_env::{Env, Rng};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone());
    Database::open("/db", options).unwrap()
}

fn table(db: &Database) -> OrderedTable {
    db.table("t").layout(Layout::range_merge()).node_bytes(8 << 10).open_ordered().unwrap()
}

fn contents(table: &OrderedTable) -> Model {
    table.iter().unwrap().map(Result::unwrap).collect()
}

/// One record of an early log segment stays in memory, so that the segment and all newer ones are held. What newer ones
/// brought was evicted and deleted.
#[test]
fn a_deleted_range_that_was_evicted_stays_deleted_after_opening() {
    let env = Env::memory(3);
    let db = open(&env);
    let (hot, other) = (table(&db), db.table("other").open().unwrap());
    for prefix in ["a", "m"] {
        for number in 0..200 {
            hot.put(format!("{prefix}{number:04}").as_bytes(), [1; 100]).unwrap();
        }
    }
    db.flush().unwrap();
    hot.compact().unwrap();
    hot.put(b"m0199x", [2; 100]).unwrap();
    // Another table's records seal the buffer, so that nothing but the log's end says where segments end.
    seal(&db, &other);
    for round in 1..=2 {
        for number in 0..80 {
            hot.put(format!("a000{round}-{number:02}").as_bytes(), [3; 100]).unwrap();
        }
        seal(&db, &other);
    }
    db.wait_until_idle().unwrap();
    let resident = db.stats().memory.resident_records;
    assert!(resident > 0 && resident < 16 << 10, "{resident} bytes are in memory: the cold record's alone");
    hot.delete_range(&b"a"[..]..&b"b"[..]).unwrap();
    seal(&db, &other);
    seal(&db, &other);
    assert_eq!(hot.get(b"a0001-05").unwrap(), None);
    drop((hot, other));
    db.close().unwrap();
    let db = open(&env);
    assert_eq!(table(&db).get(b"a0001-05").unwrap(), None, "it was deleted");
    assert!(table(&db).get(b"m0199x").unwrap().is_some());
}

/// Has the write buffer sealed and flushed, by records of another table.
fn seal(db: &Database, other: &forebay::Table) {
    for number in 0..200_u32 {
        other.put(number.to_be_bytes(), [0; 100]).unwrap();
    }
    db.wait_until_idle().unwrap();
}

/// A table of which one range is written often and others hardly ever, beside one that is written sometimes: ranges are
/// deleted, whole ranges come in by themselves, and the database is closed and opened.
#[test]
fn a_hot_range_beside_idle_ones_is_what_was_written() {
    for seed in 0..8 {
        let env = Env::memory(seed);
        let (mut rng, mut model) = (Rng::new(seed + 100), Model::new());
        let mut db = open(&env);
        for round in 0..60_u64 {
            let hot = table(&db);
            let other = db.table("other").layout(Layout::leveling(4)).open_ordered().unwrap();
            // Often a buffer has nothing but what is hot.
            let (hottest, is_cold) = (rng.below(4) / 3 * 2_000, rng.chance(20));
            for number in 0..rng.below(220) {
                let key = if is_cold && number < 3 { rng.below(4_000) } else { hottest + rng.below(300) };
                let (key, value) = (key.to_be_bytes().to_vec(), vec![round as u8; 60 + rng.index(120)]);
                if rng.chance(10) {
                    hot.delete(&key).unwrap();
                    model.remove(&key);
                } else {
                    hot.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            if rng.chance(50) {
                let low = hottest + rng.below(300);
                let (low, high) = (low.to_be_bytes(), (low + rng.below(400)).to_be_bytes());
                hot.delete_range(&low[..]..&high[..]).unwrap();
                model.retain(|key, _| !(&low[..]..&high[..]).contains(&&key[..]));
            }
            if rng.chance(16) {
                let low = rng.below(4_000);
                let entries: Model =
                    (low..low + 30).map(|key| (key.to_be_bytes().to_vec(), vec![0xee; 80])).collect();
                hot.ingest(entries.clone().into_iter().map(Ok)).unwrap();
                model.extend(entries);
            }
            for number in 0..rng.below(3) * 120 {
                other.put(number.to_be_bytes(), [round as u8; 100]).unwrap();
            }
            match rng.below(8) {
                0 => db.flush().unwrap(),
                1 => db.wait_until_idle().unwrap(),
                2 | 3 => {
                    drop((hot, other));
                    db.close().unwrap();
                    db = open(&env);
                }
                _ => {}
            }
            let now = contents(&table(&db));
            let differing = now.iter().find(|(key, value)| model.get(*key) != Some(value));
            assert_eq!(differing, None, "seed {seed}, round {round}");
            assert_eq!(now.len(), model.len(), "seed {seed}, round {round}");
        }
    }
}

/// A table in memory that nobody writes to any more does not keep the log of all others.
#[test]
fn an_idle_table_holds_the_log_for_a_few_segments_only() {
    let env = Env::memory(5);
    let db = open(&env);
    let (cold, other) = (table(&db), db.table("other").open().unwrap());
    cold.put(b"cold", b"1").unwrap();
    for _ in 0..40 {
        seal(&db, &other);
    }
    let logs =
        env.fs.list(Path::new("/db")).unwrap().into_iter().filter(|name| name.ends_with(".log")).count();
    assert!(logs <= 12, "{logs} log segments");
    assert_eq!(db.stats().memory.resident_records, 0);
    assert_eq!(cold.get(b"cold").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_flush_leaves_nothing_in_memory_alone() {
    let env = Env::memory(6);
    let db = open(&env);
    let (hot, other) = (table(&db), db.table("other").open().unwrap());
    let mut model = Model::new();
    for round in 0..6_u8 {
        for number in 0..60_u64 {
            let (key, value) = ((number * 7 % 90).to_be_bytes().to_vec(), vec![round; 100]);
            hot.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        if round % 2 == 1 {
            seal(&db, &other);
            assert!(db.stats().memory.resident_records > 0, "round {round}");
            db.flush().unwrap();
        }
        assert!(contents(&hot) == model, "round {round}");
    }
    assert_eq!(db.stats().memory.resident_records, 0);
    assert!(hot.approximate(..).unwrap().records > 0);
    hot.compact().unwrap();
    assert!(contents(&hot) == model);
}

/// The memory for such tables is for the one that has use for it.
#[test]
fn a_busy_table_has_the_memory_that_idle_ones_do_not_need() {
    let env = Env::memory(7);
    let db = open(&env);
    let make = |name: &str| db.table(name).layout(Layout::range_merge()).open_ordered().unwrap();
    let (busy, _idle) = (make("busy"), [make("a"), make("b"), make("c")]);
    let other = db.table("other").open().unwrap();
    for number in 0..100_u64 {
        busy.put(number.to_be_bytes(), [1; 100]).unwrap();
    }
    seal(&db, &other);
    let resident = db.stats().memory.resident_records;
    assert!(resident > 10 << 10, "{resident} bytes are in memory");
}

/// A list in memory of many key ranges stays until the last of them is merged: where write buffers had little of each,
/// up to eight of them stayed.
#[test]
fn lists_that_are_mostly_merged_leave_memory() {
    let options = Options::default().memory_limit(16 << 20).write_buffer(1 << 20).env(Env::memory(9));
    let db = Database::open("/db", options).unwrap();
    let table = db.table("t").layout(Layout::range_merge()).node_bytes(32 << 10).open().unwrap();
    let mut most = 0;
    for batch in 0..2000_u64 {
        let mut writes = forebay::Batch::new();
        for number in batch * 100..(batch + 1) * 100 {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            writes.put(&table, key, [7; 90]);
        }
        db.commit(writes, forebay::Durability::Memory).unwrap();
        most = most.max(db.stats().memory.resident_records);
    }
    assert!((1 << 20..6 << 20).contains(&most), "{most} bytes of lists in memory");
}

/// One room for all: of a table that has much in memory, but little of each range, nothing goes while another has more of
/// one.
#[test]
fn the_fullest_range_of_all_tables_goes_first() {
    let options = Options::default().memory_limit(1 << 20).write_buffer(8 << 10).resident_percent(20);
    let db = Database::open("/db", options.env(Env::memory(10))).unwrap();
    let make = |name: &str| db.table(name).layout(Layout::range_merge()).node_bytes(16 << 10);
    let (wide, narrow) = (make("wide").open_ordered().unwrap(), make("narrow").open_ordered().unwrap());
    let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    (0..4000).for_each(|number| wide.put(spread(number), [1; 90]).unwrap());
    wide.compact().unwrap();
    narrow.put(b"0", b"1").unwrap();
    narrow.compact().unwrap();
    let on_disk = || {
        let stats = db.stats();
        let of =
            |name: &str| stats.tables.iter().find(|table| table.name == name).unwrap().space.live_file_bytes;
        (of("wide"), of("narrow"))
    };
    let before = on_disk();
    for number in 4000..5200 {
        wide.put(spread(number), [1; 90]).unwrap();
    }
    for number in 0..900_u64 {
        narrow.put(number.to_be_bytes(), [2; 90]).unwrap();
    }
    db.wait_until_idle().unwrap();
    let after = on_disk();
    let [of_wide, of_narrow] = [after.0 - before.0, after.1 - before.1];
    assert!(of_narrow > 40 << 10 && of_wide < of_narrow / 4, "{before:?} {after:?}");
}

/// Records that come in order lie in the last key range. Lists of them in memory touch ranges by their bounds in which
/// they have nothing: those are not what is merged for their memory, of which nothing would come back.
#[test]
fn records_that_come_in_order_leave_memory() {
    let options = Options::default().memory_limit(32 << 20).resident_percent(25).env(Env::memory(11));
    let db = Database::open("/db", options).unwrap();
    let table = db.table("t").layout(Layout::range_merge()).node_bytes(2 << 20).open().unwrap();
    let other = db.table("other").open().unwrap();
    for batch in 0..800_u64 {
        let mut writes = forebay::Batch::new();
        for number in batch * 200..(batch + 1) * 200 {
            writes.put(&table, number.to_be_bytes(), [7; 92]);
            (0..2).for_each(|at| writes.put(&other, (2 * number + at).to_be_bytes(), [8; 92]));
        }
        db.commit(writes, forebay::Durability::Memory).unwrap();
    }
    db.wait_until_idle().unwrap();
    let resident = db.stats().memory.resident_records;
    assert!(resident <= 8 << 20, "{resident} bytes of records in memory");
    assert_eq!(table.count().unwrap(), 160_000);
}
