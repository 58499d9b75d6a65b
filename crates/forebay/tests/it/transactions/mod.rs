//! Transactions: what they see, what they conflict with, and that those that are committed could have come one after the
//! other.

mod anomalies;
mod conflicts;
mod crash;
mod single_keys;
mod suite;
mod surface;
mod together;

use forebay::{Batch, Database, Durability, Error, Layout, Options, OrderedTable, Table, Transaction};
use forebay_env::Env;

/// Layouts of each kind: of hash order, of key order with lists, with runs, and with a tree in a file.
fn layouts() -> [Layout; 5] {
    [
        Layout::wb_tree(),
        Layout::wb_tree_ordered(),
        Layout::leveling(4),
        Layout::jungle(3.0),
        Layout::range_merge(),
    ]
}

fn ordered_layouts() -> impl Iterator<Item = Layout> {
    layouts().into_iter().filter(|layout| layout.is_ordered())
}

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

fn open() -> Database {
    open_in(&Env::memory(1))
}

fn open_in(env: &Env) -> Database {
    Database::open("/db", options(env)).unwrap()
}

fn open_table(db: &Database, layout: Layout) -> Table {
    db.table("t").layout(layout).node_bytes(8 << 10).open().unwrap()
}

fn open_ordered(db: &Database, layout: Layout) -> OrderedTable {
    db.table("t").layout(layout).node_bytes(8 << 10).open_ordered().unwrap()
}

fn number(value: Option<Vec<u8>>) -> i64 {
    value.map_or(0, |value| i64::from_le_bytes(value.try_into().unwrap()))
}

fn put(batch: &mut Batch, table: &Table, key: &str, value: i64) {
    batch.put(table, key, value.to_le_bytes());
}

fn commit(db: &Database, table: &Table, key: &str, value: i64) {
    let mut batch = Batch::new();
    put(&mut batch, table, key, value);
    db.commit(batch, Durability::Os).unwrap();
}

/// Makes the records that were written so far leave the write buffers.
fn flush(db: &Database) {
    db.flush().unwrap();
}

#[track_caller]
fn assert_conflict(transaction: Transaction) {
    let outcome = transaction.commit();
    let Err(Error::Conflict(reason)) = &outcome else { panic!("no conflict but {outcome:?}") };
    assert!(reason.starts_with("table `t`") && reason.ends_with("begin it anew"), "{reason}");
}
