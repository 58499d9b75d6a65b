//! What goes wrong when programs read a snapshot and then write a batch, each by its name. First it is seen to go wrong;
//! with transactions it does not, whether what others wrote is in write buffers or in files.

use forebay::{Database, Layout, OrderedTable, Snapshot, Table, Transaction};

use super::{
    assert_conflict, commit, flush, layouts, number, open, open_ordered, open_table, ordered_layouts,
};

/// Somebody who reads and then writes: by a snapshot and batches, or by a transaction.
enum User<'a> {
    Batches(&'a Database, Snapshot),
    Transaction(Box<Transaction>),
}

impl<'a> User<'a> {
    /// One who sees what there is now.
    fn new(db: &'a Database, is_transaction: bool) -> Self {
        match is_transaction {
            true => Self::Transaction(Box::new(db.begin())),
            false => Self::Batches(db, db.snapshot()),
        }
    }

    fn get(&mut self, table: &Table, key: &str) -> i64 {
        number(match self {
            Self::Batches(_, snapshot) => snapshot.get(table, key).unwrap(),
            Self::Transaction(transaction) => transaction.get(table, key).unwrap(),
        })
    }

    fn count(&mut self, table: &OrderedTable, prefix: &str) -> i64 {
        let scan = match self {
            Self::Batches(_, snapshot) => snapshot.prefix(table, prefix).unwrap(),
            Self::Transaction(transaction) => transaction.prefix(table, prefix).unwrap(),
        };
        scan.map(Result::unwrap).count() as i64
    }

    /// Writes, and is done. Says whether it was written.
    fn put(self, table: &Table, key: &str, value: i64) -> bool {
        match self {
            Self::Batches(db, _) => {
                commit(db, table, key, value);
                true
            }
            Self::Transaction(mut transaction) => {
                super::put(&mut transaction, table, key, value);
                transaction.commit().is_ok()
            }
        }
    }
}

/// Every layout, with batches and with transactions, with what the others write in buffers and in files.
fn for_all(
    layouts: impl IntoIterator<Item = Layout>,
    mut story: impl FnMut(&Database, Layout, bool, &dyn Fn()),
) {
    for layout in layouts {
        for is_transaction in [false, true] {
            for is_flushed in [false, true] {
                println!("{layout}, by a transaction: {is_transaction}, flushed: {is_flushed}");
                let db = open();
                let later = || {
                    if is_flushed {
                        flush(&db);
                    }
                };
                story(&db, layout, is_transaction, &later);
            }
        }
    }
}

/// Two read the same number and add to it: one of them had never been there.
#[test]
fn lost_update() {
    for_all(layouts(), |db, layout, is_transaction, later| {
        let table = open_table(db, layout);
        commit(db, &table, "n", 5);
        let [mut one, mut other] = [0; 2].map(|_| User::new(db, is_transaction));
        let (seen_by_one, seen_by_other) = (one.get(&table, "n"), other.get(&table, "n"));
        assert!(one.put(&table, "n", seen_by_one + 1));
        later();
        assert_eq!(other.put(&table, "n", seen_by_other + 1), !is_transaction);
        // Both have added 1, so without transactions it should be 7.
        assert_eq!(number(table.get("n").unwrap()), 6);
    });
}

/// Two doctors are on call, each sees the other one and goes home: nobody is left.
#[test]
fn write_skew() {
    for_all(layouts(), |db, layout, is_transaction, later| {
        let table = open_table(db, layout);
        commit(db, &table, "ada", 1);
        commit(db, &table, "eve", 1);
        let [mut one, mut other] = [0; 2].map(|_| User::new(db, is_transaction));
        for user in [&mut one, &mut other] {
            assert_eq!(user.get(&table, "ada") + user.get(&table, "eve"), 2);
        }
        assert!(one.put(&table, "ada", 0));
        later();
        assert_eq!(other.put(&table, "eve", 0), !is_transaction);
        let on_call = number(table.get("ada").unwrap()) + number(table.get("eve").unwrap());
        assert_eq!(on_call, i64::from(is_transaction));
    });
}

/// Two book one room for the same hour under keys of their own: each has seen that nobody had.
#[test]
fn phantom() {
    for_all(ordered_layouts(), |db, layout, is_transaction, later| {
        let table = open_ordered(db, layout);
        commit(db, &table, "room 1, 9:00", 1);
        commit(db, &table, "room 3, 9:00", 1);
        let [mut one, mut other] = [0; 2].map(|_| User::new(db, is_transaction));
        for user in [&mut one, &mut other] {
            assert_eq!(user.count(&table, "room 2"), 0);
        }
        assert!(one.put(&table, "room 2, 9:00 for ada", 1));
        later();
        assert_eq!(other.put(&table, "room 2, 9:00 for eve", 1), !is_transaction);
        let booked = table.prefix("room 2").unwrap().count();
        assert_eq!(booked, if is_transaction { 1 } else { 2 });
    });
}

/// The same by a key that neither finds.
#[test]
fn phantom_of_a_single_key() {
    for_all(layouts(), |db, layout, is_transaction, later| {
        let table = open_table(db, layout);
        let [mut one, mut other] = [0; 2].map(|_| User::new(db, is_transaction));
        for user in [&mut one, &mut other] {
            assert_eq!(user.get(&table, "name"), 0);
        }
        assert!(one.put(&table, "name", 1));
        later();
        assert_eq!(other.put(&table, "name", 2), !is_transaction);
        assert_eq!(number(table.get("name").unwrap()), if is_transaction { 1 } else { 2 });
    });
}

/// Two accounts of one owner, both empty. Who withdraws 10 pays 1 more if that overdraws both together. A deposit of 20 is
/// made, and a statement shows it, before a withdrawal that has not seen it: the statement shows no debt that could have
/// been fined, and a fine.
#[test]
fn read_only_anomaly() {
    for_all(layouts(), |db, layout, is_transaction, later| {
        let table = open_table(db, layout);
        let [mut withdrawal, mut deposit] = [0; 2].map(|_| User::new(db, is_transaction));
        let overdrawn = withdrawal.get(&table, "checking") + withdrawal.get(&table, "savings") < 10;
        assert_eq!(deposit.get(&table, "savings"), 0);
        assert!(deposit.put(&table, "savings", 20));
        later();
        let mut statement = User::new(db, is_transaction);
        let shown = (statement.get(&table, "checking"), statement.get(&table, "savings"));
        assert_eq!(shown, (0, 20));
        let is_written = withdrawal.put(&table, "checking", if overdrawn { -11 } else { -10 });
        // After the deposit, as the statement says, no fine was due.
        assert_eq!(is_written, !is_transaction);
        if let User::Transaction(statement) = statement {
            statement.commit().unwrap();
        }
    });
}

/// It is no use to anomalies that they come by in one long transaction: what was read first counts, too.
#[test]
fn what_was_read_first_and_last_both_count() {
    for layout in layouts() {
        for changed in ["key 000", "key 150", "key 299"] {
            let db = open();
            let table = open_table(&db, layout);
            (0..300).for_each(|n| commit(&db, &table, &format!("key {n:03}"), n));
            let mut transaction = db.begin();
            for n in 0..300 {
                assert_eq!(number(transaction.get(&table, format!("key {n:03}")).unwrap()), n);
            }
            super::put(&mut transaction, &table, "sum", 1);
            commit(&db, &table, changed, 0);
            assert_conflict(transaction);
            assert!(!table.contains_key("sum").unwrap());
        }
    }
}
