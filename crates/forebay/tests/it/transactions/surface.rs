//! What transactions show and say: their own writes, errors, ends without a commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use forebay::aggregate::functions::Count;
use forebay::{Batch, Database, Durability, Error, MergeRule, Options, Period, Result, Tiers, Transaction};
use forebay_env::Env;
use forebay_testkit::Suffix;

use super::{commit, layouts, number, open, open_ordered, open_table, options, ordered_layouts, put};

fn keys(entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>) -> String {
    entries.map(|entry| String::from_utf8(entry.unwrap().0).unwrap()).collect()
}

#[test]
fn a_transaction_sees_its_own_writes_and_nobody_else_does() {
    for layout in layouts() {
        let db = open();
        let table = open_table(&db, layout);
        for key in ["a", "b", "c"] {
            commit(&db, &table, key, 1);
        }
        let mut tx = db.begin();
        assert_eq!(keys(tx.iter(&table).unwrap()).len(), 3);
        put(&mut tx, &table, "d", 4);
        tx.delete(&table, "a");
        assert_eq!(number(tx.get(&table, "d").unwrap()), 4);
        put(&mut tx, &table, "b", 2);
        commit(&db, &table, "e", 5);
        let got = tx.multi_get(&table, &["a", "b", "c", "d", "e"]).unwrap();
        assert_eq!(got.into_iter().map(number).collect::<Vec<_>>(), [0, 2, 1, 4, 0], "{layout}");
        let mut found: Vec<_> = keys(tx.iter(&table).unwrap()).into_bytes();
        found.sort();
        assert_eq!(found, b"bcd");
        assert!(!table.contains_key("d").unwrap() && table.contains_key("a").unwrap());
        assert!(!db.snapshot().contains_key(&table, "d").unwrap());
        drop(tx);
        assert!(!table.contains_key("d").unwrap() && table.contains_key("a").unwrap(), "nothing happened");
    }
}

/// Both ways, amid what others wrote before, with ranges deleted; and a walk that was begun stays as it was.
#[test]
fn walks_go_over_own_writes() {
    for layout in ordered_layouts() {
        let db = open();
        let table = open_ordered(&db, layout);
        (0..200).for_each(|n| commit(&db, &table, &format!("{n:03}"), n));
        let mut tx = db.begin();
        let mut before = tx.range(&table, "050".."060").unwrap();
        assert_eq!(before.next().unwrap().unwrap().0, b"050");
        tx.delete_range(&table, "051".."150");
        put(&mut tx, &table, "070x", 7);
        tx.delete_prefix(&table, "19");
        assert_eq!(keys(tx.range(&table, "049".."152").unwrap()), "049050070x150151", "{layout}");
        let backward: Vec<_> = tx.iter(&table).unwrap().rev().map(|entry| entry.unwrap().0).collect();
        let mut forward: Vec<_> = tx.iter(&table).unwrap().map(|entry| entry.unwrap().0).collect();
        forward.reverse();
        assert_eq!(backward, forward);
        assert_eq!(backward.len(), 200 - 99 - 10 + 1);
        let mut cursor = tx.cursor(&table).unwrap();
        cursor.seek_for_prev("149").unwrap();
        assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"070x"[..]));
        cursor.prev().unwrap();
        assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"050"[..]));
        put(&mut tx, &table, "049x", 1);
        cursor.prev().unwrap();
        assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"049"[..]), "written too late for it");
        assert_eq!(keys(before), "051052053054055056057058059", "begun before");
        tx.commit().unwrap();
        assert_eq!(table.iter().unwrap().count(), 200 - 99 - 10 + 2);
    }
}

/// Each write is read at once, through several of a draft's buffers.
#[test]
fn many_own_writes_are_read_one_by_one() {
    for layout in layouts() {
        let db = open();
        let table = open_table(&db, layout);
        let mut tx = db.begin();
        for n in 0..3000 {
            put(&mut tx, &table, &format!("key {}", n % 1000), n);
            assert_eq!(
                number(tx.get(&table, format!("key {}", n * 7 % 1000)).unwrap()),
                latest(n * 7 % 1000, n)
            );
        }
        assert_eq!(tx.iter(&table).unwrap().count(), 1000);
        tx.commit().unwrap();
        assert_eq!(number(table.get("key 999").unwrap()), 2999);
    }
}

/// The last of 0 to `n` that leaves this rest of 1000; 0 where there was none.
fn latest(rest: i64, n: i64) -> i64 {
    let last = n - (n - rest).rem_euclid(1000);
    last.max(0)
}

#[test]
fn own_merges_and_adds_are_seen_merged() {
    for layout in layouts() {
        let db = open();
        let table = db.table("t").layout(layout).node_bytes(8 << 10).merge_rule(Suffix).open().unwrap();
        let counts =
            db.aggregator("counts", Count).layout(layout).node_bytes(8 << 10).deletes(true).open().unwrap();
        table.merge("key", "a").unwrap();
        counts.add("key", ()).unwrap();
        let mut tx = db.begin();
        for n in 1..50 {
            tx.merge(&table, "key", "b");
            tx.add(&counts, "key", ());
            tx.add(&counts, "other", ());
            assert_eq!(tx.get(&table, "key").unwrap().unwrap().len(), 1 + n);
            let snapshot = tx.snapshot().unwrap();
            let seen = counts.at(&snapshot);
            assert_eq!(seen.multi_get(&["key", "other"]).unwrap(), [Some(1 + n as u64), Some(n as u64)]);
            assert_eq!(seen.iter().unwrap().count(), 2);
        }
        tx.delete_group(&counts, "other");
        tx.add(&counts, "other", ());
        assert_eq!(counts.at(&tx.snapshot().unwrap()).get("other").unwrap(), Some(1));
        tx.commit().unwrap();
        assert_eq!(counts.get("key").unwrap(), Some(50), "{layout}");
        assert_eq!(counts.get("other").unwrap(), Some(1));
        assert_eq!(table.get("key").unwrap().unwrap().len(), 50);
    }
}

#[test]
fn an_error_of_its_own_ends_a_transaction_and_writes_nothing() {
    let db = open();
    let table = open_table(&db, layouts()[0]);
    let mut calls = 0;
    let outcome: Result<()> = db.transaction(|tx| {
        calls += 1;
        put(tx, &table, "a", 1);
        // One that says that it is a conflict is its own, too.
        Err(Error::Conflict("so there".into()))
    });
    assert!(matches!(outcome, Err(Error::Conflict(reason)) if reason == "so there"));
    assert_eq!((calls, db.last_sequence()), (1, 0));
    let panicking = || {
        db.transaction(|tx| -> Result<()> {
            put(tx, &table, "a", 1);
            panic!("no luck")
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
    let outcome = db.transaction(|tx| {
        put(tx, &table, "a", 1);
        tx.clear();
        assert!(!tx.contains_key(&table, "a")?);
        Ok("nothing")
    });
    assert_eq!((outcome.unwrap(), db.last_sequence()), ("nothing", 0));
    assert_eq!(
        db.transaction(|tx| {
            put(tx, &table, "a", 7);
            Ok(3)
        })
        .unwrap(),
        3
    );
    assert_eq!((number(table.get("a").unwrap()), db.last_sequence()), (7, 1));
}

#[test]
fn a_transaction_is_begun_anew_until_it_does_not_conflict() {
    let db = open();
    let table = open_table(&db, layouts()[1]);
    let mut calls = 0;
    let seen = db.transaction(|tx| {
        let n = number(tx.get(&table, "n")?);
        calls += 1;
        if calls < 5 {
            commit(&db, &table, "n", calls);
        }
        put(tx, &table, "n", n + 100);
        Ok(n)
    });
    assert_eq!((seen.unwrap(), calls, number(table.get("n").unwrap())), (4, 5, 104));
}

#[test]
fn attempts_are_bounded() {
    for attempts in [1, 3] {
        let env = Env::memory(1);
        let db = Database::open("/db", options(&env).transaction_attempts(attempts)).unwrap();
        let table = open_table(&db, layouts()[0]);
        let mut calls = 0;
        let error = db
            .transaction(|tx| {
                calls += 1;
                commit(&db, &table, "n", number(tx.get(&table, "n")?) + 1);
                put(tx, &table, "m", 1);
                Ok(())
            })
            .unwrap_err();
        assert!(error.is_conflict() && calls == attempts, "{error}");
        let said = format!("it was tried {attempts} times, as Options::transaction_attempts says");
        assert!(error.to_string().ends_with(&said), "{error}");
    }
    let refused = Database::open("/db", options(&Env::memory(1)).transaction_attempts(0)).unwrap_err();
    assert!(refused.to_string().starts_with("transaction_attempts is 0"), "{refused}");
}

/// Single keys are counted; a walk is one range, however long, and so are two that meet.
#[test]
fn what_is_read_is_bounded() {
    for layout in ordered_layouts() {
        let env = Env::memory(1);
        let db = Database::open("/db", options(&env).transaction_reads(10 << 10)).unwrap();
        let table = open_ordered(&db, layout);
        (0..2000).for_each(|n| commit(&db, &table, &format!("key {n:04}"), n));
        let mut tx = db.begin();
        assert_eq!(tx.iter(&table).unwrap().map(Result::unwrap).count(), 2000);
        let mut cursor = tx.cursor(&table).unwrap();
        for n in (0..2000).rev() {
            cursor.seek(format!("key {n:04}")).unwrap();
        }
        put(&mut tx, &table, "n", 1);
        tx.commit().unwrap();
        let mut tx = db.begin();
        let read = (0..2000).map(|n| tx.get(&table, format!("key {n:04}"))).take_while(Result::is_ok).count();
        assert_eq!(read, (10 << 10) / (64 + 8), "{layout}");
        let error = tx.get(&table, "one more").unwrap_err();
        let said = "the transaction has read more keys, each by itself, than 10240 bytes can hold";
        assert!(error.to_string().starts_with(said), "{error}");
        assert!(tx.get(&table, "key 0000").is_err(), "it is over");
    }
}

/// It sees one moment, which could have been just when it began; others' writes since are no matter to it.
#[test]
fn who_only_reads_never_conflicts() {
    let db = open();
    let table = open_table(&db, layouts()[2]);
    commit(&db, &table, "n", 1);
    let mut tx = db.begin();
    assert_eq!(number(tx.get(&table, "n").unwrap()), 1);
    commit(&db, &table, "n", 2);
    assert_eq!(tx.commit().unwrap(), 2);
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    open_table(&db, layouts()[2]);
    db.close().unwrap();
    let db = Database::open("/db", options(&env).read_only(true)).unwrap();
    db.transaction(|tx| tx.get(&db.table("t").existing(true).open()?, "n")).unwrap();
    let mut tx = db.begin();
    put(&mut tx, &open_table(&db, layouts()[2]), "n", 1);
    tx.commit().unwrap_err();
}

#[test]
fn what_a_batch_refuses_a_transaction_refuses() {
    let (db, other) = (open(), open());
    let (table, foreign) = (open_table(&db, layouts()[0]), open_table(&other, layouts()[0]));
    let mut tx = db.begin();
    assert!(matches!(tx.get(&foreign, "a"), Err(Error::Invalid(_))));
    tx.put(&foreign, "a", "1");
    assert!(matches!(tx.get(&table, "a"), Err(Error::Invalid(_))), "it would see another table's");
    assert!(matches!(tx.commit(), Err(Error::Invalid(_))));
    let mut tx = db.begin();
    tx.put_with_ttl(&table, "a", "1", Duration::from_secs(1));
    assert!(tx.commit().unwrap_err().to_string().contains("time_to_live"));
    let mut tx = db.begin();
    put(&mut tx, &table, "a", 1);
    drop(db);
    assert!(tx.commit().unwrap_err().to_string().contains("the database is closed"));
    table.update("a", |_| Some(Vec::new())).unwrap_err();
}

/// A batch that was copied has what it has, and each its own reads.
#[test]
fn writes_can_be_taken_from_a_transaction_and_given_to_it() {
    let db = open();
    let table = open_table(&db, layouts()[0]);
    let mut tx = db.begin();
    put(&mut tx, &table, "a", 1);
    assert!(tx.contains_key(&table, "a").unwrap());
    let copy: Batch = tx.clone();
    let taken = std::mem::take(&mut *tx);
    assert!(!tx.contains_key(&table, "a").unwrap() && tx.is_empty());
    *tx = copy;
    put(&mut tx, &table, "b", 2);
    let got = tx.multi_get(&table, &["a", "b"]).unwrap();
    assert_eq!(got.into_iter().map(number).collect::<Vec<_>>(), [1, 2]);
    tx.commit().unwrap();
    db.commit(taken, Durability::Os).unwrap();
    assert_eq!(db.last_sequence(), 3);
}

/// It is a snapshot to whoever asks what is held, and wakes nobody where it held nothing.
#[test]
fn a_transaction_is_listed_as_a_snapshot() {
    let db = open();
    let table = open_table(&db, layouts()[0]);
    commit(&db, &table, "n", 1);
    let mut tx = db.begin();
    let kept = tx.snapshot().unwrap();
    put(&mut tx, &table, "m", 1);
    assert_eq!(db.stats().snapshots.len(), 1);
    assert_eq!(tx.snapshot().unwrap().number(), kept.number());
    tx.commit().unwrap();
    assert_eq!(db.stats().snapshots.len(), 1, "the snapshot is kept");
    drop(kept);
    assert!(db.stats().snapshots.is_empty());
}

/// Calls a database from the midst of a merge.
struct Asking(Database);

impl MergeRule for Asking {
    fn name(&self) -> &str {
        "asking/1"
    }
    fn merge(&self, _key: &[u8], newer: &[u8], _older: &[u8], out: &mut Vec<u8>) {
        let table = self.0.table("other").existing(true).open();
        assert!(self.0.transaction(|tx: &mut Transaction| tx.get(&table.clone()?, "a")).is_err());
        out.extend_from_slice(newer);
    }
}

#[test]
fn code_that_tables_ask_begins_no_transaction() {
    let asked = open();
    asked.table("other").open().unwrap();
    let db = Database::open("/db", Options::default().memory_limit(1 << 20).env(Env::memory(2))).unwrap();
    let table = db.table("t").merge_rule(Asking(asked)).open().unwrap();
    table.merge("key", "1").unwrap();
    table.merge("key", "2").unwrap();
    assert_eq!(table.get("key").unwrap().as_deref(), Some(&b"2"[..]));
}

/// What is acknowledged is as durable as was asked, by the transaction or by the options.
#[test]
fn durability_is_that_of_the_options_or_its_own() {
    for (usual, own) in
        [(Durability::Os, None), (Durability::Disk, None), (Durability::Memory, Some(Durability::Disk))]
    {
        let db = Database::open("/db", options(&Env::memory(1)).durability(usual)).unwrap();
        let table = open_table(&db, layouts()[0]);
        let mut tx = db.begin();
        put(&mut tx, &table, "a", 1);
        own.into_iter().for_each(|own| tx.set_durability(own));
        let last = tx.commit().unwrap();
        let is_durable = own.unwrap_or(usual) == Durability::Disk;
        assert_eq!(db.durable_sequence() == last, is_durable, "{usual:?}, {own:?}");
        db.sync().unwrap();
        table.update("a", |_| Some(b"2".to_vec())).unwrap();
        assert_eq!(db.durable_sequence() == last + 1, usual == Durability::Disk);
    }
}

/// One that has written nothing waits for no device, unless it is told to.
#[test]
fn who_only_reads_makes_nothing_durable() {
    let db = Database::open("/db", options(&Env::memory(1)).durability(Durability::Disk)).unwrap();
    let table = open_table(&db, layouts()[0]);
    let mut batch = Batch::new();
    put(&mut batch, &table, "a", 1);
    let last = db.commit(batch, Durability::Memory).unwrap();
    let mut tx = db.begin();
    tx.get(&table, "a").unwrap();
    assert_eq!(tx.commit().unwrap(), last);
    assert!(db.durable_sequence() < last);
    let mut tx = db.begin();
    tx.set_durability(Durability::Disk);
    assert_eq!(tx.commit().unwrap(), last);
    assert_eq!(db.durable_sequence(), last);
}

/// What a transaction has shown reads on, for nobody, once it is over.
#[test]
fn a_snapshot_outlives_its_transaction() {
    let db = Database::open("/db", options(&Env::memory(1)).transaction_reads(1 << 10)).unwrap();
    let table = open_ordered(&db, layouts()[1]);
    (0..100).for_each(|n| commit(&db, &table, &format!("key {n:02}"), n));
    for is_committed in [true, false] {
        let mut tx = db.begin();
        put(&mut tx, &table, "own", 1);
        let snapshot = tx.snapshot().unwrap();
        if is_committed {
            tx.commit().unwrap();
        } else {
            drop(tx);
        }
        for n in 0..100 {
            assert_eq!(number(snapshot.get(&table, format!("key {n:02}")).unwrap()), n);
        }
        assert_eq!(number(snapshot.get(&table, "own").unwrap()), 1);
    }
}

/// They are found by names of tables, which nobody notes.
#[test]
fn windows_are_not_read_by_transactions() {
    let db = open();
    let tiers = Tiers::new(Period::milliseconds(10), 3);
    let windows = db.windows("w", Count, tiers).open().unwrap();
    windows.add(1, "key", ()).unwrap();
    assert_eq!(windows.at(&db.snapshot()).get(.., "key").unwrap(), Some(1));
    let seen = windows.at(&db.begin().snapshot().unwrap());
    for error in [seen.get(.., "key").unwrap_err(), seen.metadata().unwrap_err()] {
        assert!(error.to_string().starts_with("windows cannot be read in a transaction"), "{error}");
    }
}
