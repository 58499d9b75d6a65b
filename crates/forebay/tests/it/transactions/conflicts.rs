//! What is a conflict, and what is none: key by key, place by place of a range, and whatever else happens to a table.

use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use forebay::aggregate::functions::Count;
use forebay::{
    Batch, Database, Error, Keep, Layout, MergeRule, Nearest, Options, OrderedTable, Table, Transaction,
};
use forebay_env::Env;
use forebay_env::fs::MemoryFs;
use forebay_env::sync::Mutex;
use forebay_testkit::{Suffix, Wall};

use super::{assert_conflict, commit, flush, layouts, open, open_ordered, open_table, ordered_layouts, put};

/// What a transaction does with a table before others write to it.
type Read = fn(&mut Transaction, &OrderedTable);

/// A table with these keys, and one that transactions may write to.
fn filled(layout: Layout) -> (Database, OrderedTable) {
    let db = open();
    let table = open_ordered(&db, layout);
    ["b", "d", "f", "h"].iter().for_each(|key| commit(&db, &table, key, 1));
    (db, table)
}

/// Begins, reads, writes something else; then others write `key`. Says whether that was a conflict.
fn conflicts(layout: Layout, key: &str, read: Read) -> bool {
    let outcomes = [false, true].map(|is_flushed| {
        let (db, table) = filled(layout);
        let mut transaction = db.begin();
        read(&mut transaction, &table);
        put(&mut transaction, &table, "z", 1);
        commit(&db, &table, key, 2);
        if is_flushed {
            flush(&db);
        }
        match transaction.commit() {
            Ok(_) => false,
            Err(Error::Conflict(_)) => true,
            Err(error) => panic!("{error}"),
        }
    });
    assert_eq!(outcomes[0], outcomes[1], "it is no matter where records are");
    outcomes[0]
}

/// The keys by which others conflict with what was read.
fn read_keys(layout: Layout, read: Read) -> String {
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    keys.into_iter().filter(|key| conflicts(layout, key, read)).collect()
}

/// A walk has read as far as it has come, and the gaps between its entries.
#[test]
fn a_walk_conflicts_as_far_as_it_came() {
    for layout in ordered_layouts() {
        println!("{layout}");
        let keys = |read: Read| read_keys(layout, read);
        assert_eq!(keys(|_, _| ()), "");
        assert_eq!(keys(|tx, table| drop(tx.get(table, "c").unwrap())), "c");
        assert_eq!(keys(|tx, table| drop(tx.multi_get(table, &["a", "d"]).unwrap())), "ad");
        assert_eq!(keys(|tx, table| drop(tx.range(table, "c".."g").unwrap())), "", "it was not walked");
        assert_eq!(keys(|tx, table| tx.range(table, "c".."g").unwrap().for_each(drop)), "cdef");
        assert_eq!(keys(|tx, table| drop(tx.range(table, "c".."g").unwrap().next())), "cd");
        assert_eq!(keys(|tx, table| drop(tx.range(table, "c".."g").unwrap().next_back())), "f");
        assert_eq!(keys(|tx, table| drop(tx.range(table, "c"..="g").unwrap().next_back())), "fg");
        assert_eq!(keys(|tx, table| tx.prefix(table, "d").unwrap().for_each(drop)), "d");
        assert_eq!(keys(|tx, table| tx.iter(table).unwrap().for_each(drop)), "abcdefghi");
        assert_eq!(keys(|tx, table| drop(tx.iter(table).unwrap().nth(1))), "abcd");
        assert_eq!(keys(|tx, table| drop(tx.snapshot().unwrap().last(table).unwrap())), "hi");
        let nearest: [(_, Read, _); 4] = [
            ("below", |tx, table| near(tx, table, Nearest::Below), "bc"),
            ("at or below", |tx, table| near(tx, table, Nearest::AtOrBelow), "d"),
            ("at or above", |tx, table| near(tx, table, Nearest::AtOrAbove), "d"),
            ("above", |tx, table| near(tx, table, Nearest::Above), "ef"),
        ];
        for (what, read, wanted) in nearest {
            assert_eq!(keys(read), wanted, "nearest {what}");
        }
    }
}

/// What makes a table's count known, and how that is called.
type Way = (&'static str, fn(&Database, &Table));

/// Two that count, so as not to become too many, and add one each: the number is what both have read, also where it is
/// remembered, or lists tell it, and nothing is walked.
#[test]
fn a_count_conflicts_however_it_is_known() {
    let ways: [Way; 3] = [
        ("it is walked", |_, _| ()),
        ("it is remembered", |db, table| {
            flush(db);
            assert_eq!(table.count().unwrap(), 1);
        }),
        ("lists tell it", |_, table| table.compact().unwrap()),
    ];
    for layout in layouts() {
        for (way, know) in ways {
            let db = open();
            let table = open_table(&db, layout);
            commit(&db, &table, "a", 1);
            know(&db, &table);
            let [first, late] = ["b", "c"].map(|own| {
                let mut tx = db.begin();
                assert_eq!(tx.snapshot().unwrap().count(&table).unwrap(), 1);
                put(&mut tx, &table, own, 1);
                tx
            });
            first.commit().unwrap();
            assert!(late.commit().is_err_and(|error| error.is_conflict()), "{layout}: {way}");
            assert_eq!(table.count().unwrap(), 2, "{layout}: {way}");
        }
    }
}

fn near(tx: &mut Transaction, table: &OrderedTable, nearest: Nearest) {
    tx.snapshot().unwrap().nearest(table, "d", nearest).unwrap();
}

#[test]
fn a_cursor_conflicts_by_its_seeks_and_steps() {
    for layout in ordered_layouts() {
        println!("{layout}");
        let keys = |read: Read| read_keys(layout, read);
        let seeks = keys(|tx, table| {
            let mut cursor = tx.cursor(table).unwrap();
            cursor.seek("a").unwrap();
            cursor.seek("g").unwrap();
        });
        assert_eq!(seeks, "abgh");
        let back_and_forth = keys(|tx, table| {
            let mut cursor = tx.cursor(table).unwrap();
            cursor.seek("f").unwrap();
            cursor.prev().unwrap();
            cursor.next().unwrap();
            assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"f"[..]));
        });
        assert_eq!(back_and_forth, "def");
        let past_the_end = keys(|tx, table| {
            let mut cursor = tx.cursor(table).unwrap();
            cursor.seek("h").unwrap();
            (0..3).for_each(|_| cursor.next().unwrap());
            assert_eq!(cursor.entry(), None);
        });
        assert_eq!(past_the_end, "hi");
        let from_the_end = keys(|tx, table| {
            let mut cursor = tx.cursor(table).unwrap();
            cursor.seek_to_last().unwrap();
            (0..2).for_each(|_| cursor.prev().unwrap());
        });
        assert_eq!(from_the_end, "defghi");
    }
}

/// Of its own writes only what is below them was read.
#[test]
fn own_writes_are_no_conflict() {
    for layout in layouts() {
        let db = open();
        let table = open_table(&db, layout);
        let mut transaction = db.begin();
        for n in 0..100 {
            put(&mut transaction, &table, "n", n);
            assert_eq!(super::number(transaction.get(&table, "n").unwrap()), n);
        }
        transaction.commit().unwrap();
        assert_eq!(super::number(table.get("n").unwrap()), 99);
    }
}

/// The deletion of a range conflicts with what was read of it, there or not, and with no neighbour.
#[test]
fn a_deleted_range_conflicts_with_what_was_read_of_it() {
    for layout in ordered_layouts() {
        for is_flushed in [false, true] {
            let story = |low: &str, high: &str| {
                let (db, table) = filled(layout);
                let mut transaction = db.begin();
                assert!(transaction.contains_key(&table, "b").unwrap());
                transaction.range(&table, "d".."g").unwrap().for_each(drop);
                put(&mut transaction, &table, "z", 1);
                table.delete_range(low..high).unwrap();
                if is_flushed {
                    flush(&db);
                }
                transaction.commit().is_ok()
            };
            assert!(!story("a", "c") && !story("b", "b1") && !story("f", "z") && !story("a", "z"));
            assert!(!story("c", "e"), "{layout}");
            assert!(story("c", "d") && story("h", "i") && story("a", "b"), "{layout}");
            // In buffers it is not known that there was nothing.
            assert_eq!(story("f5", "f7"), is_flushed, "{layout}");
        }
    }
}

/// Values that come again are no change. In buffers a write is one, whatever it wrote.
#[test]
fn what_is_flushed_conflicts_by_value() {
    for layout in layouts() {
        for (is_flushed, value, is_conflict) in [(false, 1, true), (true, 1, false), (true, 2, true)] {
            let db = open();
            let table = open_table(&db, layout);
            commit(&db, &table, "n", 1);
            let mut transaction = db.begin();
            transaction.get(&table, "n").unwrap();
            put(&mut transaction, &table, "m", 1);
            commit(&db, &table, "n", value);
            if is_flushed {
                flush(&db);
            }
            assert_eq!(transaction.commit().is_err(), is_conflict, "{layout}");
        }
    }
}

/// What is far more than was read is not walked, though it is in buffers.
#[test]
fn much_that_others_wrote_conflicts_by_value() {
    let options = Options::default().memory_limit(16 << 20).write_buffer(2 << 20).env(Env::memory(1));
    let db = Database::open("/db", options).unwrap();
    for layout in layouts() {
        let table = db.table("t").layout(layout).open().unwrap();
        commit(&db, &table, "n", 1);
        let begin = || {
            let mut transaction = db.begin();
            transaction.get(&table, "n").unwrap();
            transaction.get(&table, "no").unwrap();
            put(&mut transaction, &table, "m", 1);
            (0..4000_u32).for_each(|n| table.put(n.to_be_bytes(), [0; 200]).unwrap());
            commit(&db, &table, "n", 1);
            transaction
        };
        begin().commit().unwrap();
        let late = begin();
        commit(&db, &table, "no", 1);
        assert_conflict(late);
        drop(table);
        db.drop_table("t").unwrap();
    }
}

/// Adds and merges that nobody has read conflict with nothing.
#[test]
fn what_is_added_unread_conflicts_with_nothing() {
    let db = open();
    let merging = db.table("t").merge_rule(Suffix).open().unwrap();
    let counts = db.aggregator("counts", Count).open().unwrap();
    let [mut one, mut other, mut reader] = [0; 3].map(|_| db.begin());
    for transaction in [&mut one, &mut other] {
        transaction.merge(&merging, "key", "x");
        transaction.add(&counts, "key", ());
    }
    reader.get(&merging, "other").unwrap();
    assert_eq!(counts.at(&reader.snapshot().unwrap()).get("key").unwrap(), None);
    reader.merge(&merging, "key", "y");
    one.commit().unwrap();
    other.commit().unwrap();
    assert_eq!(counts.get("key").unwrap(), Some(2));
    let Err(Error::Conflict(reason)) = reader.commit() else { panic!("what it has read was added to") };
    assert!(reason.contains("`counts`"), "{reason}");
    assert_eq!(merging.get("key").unwrap().as_deref(), Some(&b"xx"[..]));
}

/// What keeps metadata is made by the first call that puts some into a batch. From then on they are read as any key.
#[test]
fn metadata_conflict_once_there_is_what_keeps_them() {
    let db = open();
    let counts = db.aggregator("counts", Count).open().unwrap();
    counts.put_metadata(&mut Batch::new(), "never committed").unwrap();
    let [first, late] = [0; 2].map(|_| {
        let mut tx = db.begin();
        assert_eq!(counts.at(&tx.snapshot().unwrap()).metadata().unwrap(), None);
        tx.add(&counts, "key", ());
        counts.put_metadata(&mut tx, "offset 100").unwrap();
        tx
    });
    first.commit().unwrap();
    assert!(late.commit().is_err_and(|error| error.is_conflict()));
    assert_eq!(counts.get("key").unwrap(), Some(1));
}

/// Whatever else happens to a table that was read: entries that come beside the log conflict if they are where it was
/// read, as do a rollback, another order, and that it is dropped. What moves records only does not.
#[test]
fn changes_of_tables_as_a_whole() {
    let begin = |db: &Database, table: &OrderedTable| {
        let mut transaction = db.begin();
        transaction.range(table, "a".."e").unwrap().for_each(drop);
        let other = db.table("other").open().unwrap();
        put(&mut transaction, &other, "z", 1);
        transaction
    };
    let entry = |key: &str| std::iter::once(Ok((key.as_bytes().to_vec(), b"ingested".to_vec())));
    let (db, table) = filled(Layout::leveling(4));
    let transaction = begin(&db, &table);
    table.ingest(entry("x")).unwrap();
    transaction.commit().unwrap();
    let transaction = begin(&db, &table);
    table.ingest(entry("c")).unwrap();
    assert_conflict(transaction);

    let transaction = begin(&db, &table);
    db.savepoint("kept").unwrap();
    commit(&db, &table, "x", 5);
    db.rollback("kept").unwrap();
    transaction.commit().unwrap();
    commit(&db, &table, "a", 5);
    let transaction = begin(&db, &table);
    db.rollback("kept").unwrap();
    assert_conflict(transaction);

    let transaction = begin(&db, &table);
    db.savepoint("other").unwrap();
    table.set_layout(Layout::tiering(4)).unwrap();
    table.compact().unwrap();
    db.wait_until_idle().unwrap();
    transaction.commit().unwrap();

    let transaction = begin(&db, &table);
    table.set_layout(Layout::wb_tree()).unwrap();
    assert_conflict(transaction);
    table.set_layout(Layout::wb_tree_ordered()).unwrap();

    let transaction = begin(&db, &table);
    db.drop_table("t").unwrap();
    let error = transaction.commit().unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(super::number(db.table("other").open().unwrap().get("z").unwrap()), 1);
}

/// A transaction sees what was alive when it began. That entries are gone since, by their time or a filter, is no conflict;
/// that somebody puts one is.
#[test]
fn time_alone_is_no_conflict() {
    let wall = Wall::new();
    let env = wall.env(MemoryFs::new(), 1, None);
    let db = Database::open("/db", options_of(&env)).unwrap();
    let expiring = db.table("t").time_to_live(Duration::from_secs(10)).open().unwrap();
    let filtered = db.table("f").compaction_filter(|_, _| Keep::Drop).open().unwrap();
    expiring.put("a", "1").unwrap();
    filtered.put("a", "1").unwrap();
    let begin = || {
        let mut transaction = db.begin();
        assert!(transaction.contains_key(&expiring, "a").unwrap());
        transaction.get(&filtered, "a").unwrap();
        transaction.put(&filtered, "b", "1");
        transaction
    };
    let transaction = begin();
    let mut late = begin();
    wall.jump(20_000);
    assert!(!expiring.contains_key("a").unwrap());
    assert!(late.contains_key(&expiring, "a").unwrap(), "it still sees what it saw");
    late.commit().unwrap();
    expiring.put("a", "2").unwrap();
    assert_conflict(transaction);
}

/// Keeps the newest. Each time that this thread has it merge, somebody else writes to a table and has that flushed.
#[derive(Clone, Default)]
struct Outrunning(Arc<Mutex<Option<Outrun>>>);

/// Who is outrun, and where others write.
type Outrun = (ThreadId, Arc<Database>, Table);

impl MergeRule for Outrunning {
    fn name(&self) -> &str {
        "outrunning/1"
    }
    #[expect(clippy::disallowed_methods, reason = "the users of a database bring threads of their own")]
    fn merge(&self, _key: &[u8], newer: &[u8], _older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(newer);
        let others = self.0.lock().clone();
        let Some((_, db, table)) = others.filter(|(outrun, ..)| *outrun == thread::current().id()) else {
            return;
        };
        let write = move || {
            table.put("z", "1").unwrap();
            flush(&db);
        };
        thread::spawn(write).join().unwrap();
    }
}

/// What was read takes so long to be read again that others have flushed more each time. It is given up.
#[test]
fn who_is_outrun_conflicts() {
    let env = Env { fs: MemoryFs::new(), ..Env::real() };
    let db = Arc::new(super::open_in(&env));
    let (rule, other) = (Outrunning::default(), db.table("other").open().unwrap());
    let table = db.table("t").merge_rule(rule.clone()).open().unwrap();
    table.put("key", "1").unwrap();
    flush(&db);
    // A buffer has this, and a list what it merges with, as long as the transaction sees it.
    table.merge("key", "2").unwrap();
    let before = db.last_sequence();
    let mut transaction = db.begin();
    assert_eq!(transaction.get(&table, "key").unwrap().as_deref(), Some(&b"2"[..]));
    put(&mut transaction, &other, "y", 1);
    flush(&db);
    *rule.0.lock() = Some((thread::current().id(), Arc::clone(&db), other.clone()));
    let outcome = transaction.commit();
    *rule.0.lock() = None;
    let Err(Error::Conflict(reason)) = &outcome else { panic!("it is not outrun: {outcome:?}") };
    assert!(reason.contains("8 times") && reason.ends_with("begin it anew"), "{reason}");
    assert!(db.last_sequence() >= before + 8, "the others have written each time");
    assert_eq!(other.get("y").unwrap(), None);
}

fn options_of(env: &Env) -> Options {
    super::options(env)
}
