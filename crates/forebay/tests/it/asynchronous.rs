//! Calls that are awaited, on real threads and under a stepper.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use forebay::{Batch, Database, Durability, Error, Options, Pending, Result};
use forebay_env::Env;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(pending: Pending<T>) -> Result<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut pending = pin!(pending);
    loop {
        match pending.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => thread::park(),
        }
    }
}

/// A directory of the machine's that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("forebay-test-{name}-{}", std::process::id())))
    }

    fn open(&self) -> Database {
        Database::open(&self.0, Options::default().memory_limit(16 << 20)).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = Database::destroy(&self.0);
    }
}

#[test]
fn commits_that_are_awaited_are_as_durable_as_they_want() {
    const COMMITS: u64 = 300;
    let directory = Directory::new("async-commits");
    let db = directory.open();
    let table = db.table("t").open().unwrap();
    let pending: Vec<_> = (0..COMMITS)
        .map(|number| {
            let mut batch = Batch::new();
            batch.put(&table, number.to_be_bytes(), b"v");
            let durability = [Durability::Disk, Durability::Os, Durability::Memory][number as usize % 3];
            db.commit_async(batch, durability)
        })
        .collect();
    let numbers: Vec<u64> = pending.into_iter().map(|pending| block_on(pending).unwrap()).collect();
    assert_eq!(numbers, (1..=COMMITS).collect::<Vec<_>>(), "in the order of the calls");
    assert!(db.durable_sequence() >= COMMITS - 2, "the last at `Disk` is the last but two");
    assert_eq!(block_on(db.sync_async()).unwrap(), COMMITS);
    assert_eq!(db.durable_sequence(), COMMITS);
    assert_eq!(table.count().unwrap(), COMMITS);
}

#[test]
fn lookups_that_are_awaited_find_what_a_get_finds() {
    let directory = Directory::new("async-lookups");
    let db = directory.open();
    let table = db.table("t").open().unwrap();
    for number in 0..3_000_u32 {
        table.put(number.to_be_bytes(), number.to_le_bytes()).unwrap();
    }
    db.flush().unwrap();
    table.put("buffered", "v").unwrap();
    table.delete(7_u32.to_be_bytes()).unwrap();
    assert_eq!(block_on(table.get_async("buffered")).unwrap().as_deref(), Some(&b"v"[..]));
    let pending: Vec<_> = (0..3_100_u32).map(|number| table.get_async(number.to_be_bytes())).collect();
    for (number, pending) in pending.into_iter().enumerate() {
        let wanted = (number < 3_000 && number != 7).then(|| (number as u32).to_le_bytes().to_vec());
        assert_eq!(block_on(pending).unwrap(), wanted, "{number}");
    }
}

#[test]
fn transactions_that_are_awaited_conflict_as_others_do() {
    let directory = Directory::new("async-transactions");
    let db = directory.open();
    let table = db.table("t").open().unwrap();
    let mut first = db.begin();
    assert!(!first.contains_key(&table, "k").unwrap());
    first.put(&table, "k", "1");
    assert_eq!(block_on(first.commit_async(Durability::Disk)).unwrap(), 1);
    let mut late = db.begin();
    late.get(&table, "k").unwrap();
    late.put(&table, "other", "2");
    table.put("k", "3").unwrap();
    assert!(matches!(block_on(late.commit_async(Durability::Disk)), Err(Error::Conflict(_))));
    assert!(!table.contains_key("other").unwrap());
}

/// Where a database is opened to be read its commits were awaited for a log, unless they were to be in memory.
#[test]
fn transactions_that_only_read_are_over_whatever_durability_they_want() {
    let env = Env::memory(1);
    let open =
        |read_only| Database::open("/db", Options::default().env(env.clone()).read_only(read_only)).unwrap();
    let db = open(false);
    db.table("t").open().unwrap().put("k", "v").unwrap();
    db.close().unwrap();
    let db = open(true);
    let table = db.table("t").existing(true).open().unwrap();
    for durability in [Durability::Memory, Durability::Os, Durability::Disk] {
        let mut transaction = db.begin();
        assert!(transaction.contains_key(&table, "k").unwrap());
        assert_eq!(block_on(transaction.commit_async(durability)).unwrap(), 0, "{durability:?}");
    }
    let mut writing = db.begin();
    writing.put(&table, "k", "w");
    assert!(block_on(writing.commit_async(Durability::Disk)).is_err());
    assert!(block_on(db.sync_async()).is_err());
}

#[test]
fn what_is_awaited_when_the_database_is_closed_is_told() {
    let directory = Directory::new("async-close");
    let db = directory.open();
    let table = db.table("t").open().unwrap();
    let mut batch = Batch::new();
    batch.put(&table, "k", "v");
    let pending = db.commit_async(batch, Durability::Disk);
    db.close().unwrap();
    block_on(pending).unwrap();
    assert!(block_on(table.get_async("none")).unwrap_err().to_string().contains("closed"));
    let db = directory.open();
    assert_eq!(db.table("t").open().unwrap().get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn what_is_wrong_is_told_at_once() {
    let env = Env::memory(1);
    let open = |path: &str| Database::open(Path::new(path), Options::default().env(env.clone())).unwrap();
    let (db, other) = (open("/db"), open("/other"));
    let table = other.table("t").open().unwrap();
    let mut batch = Batch::new();
    batch.put(&table, "k", "v");
    assert!(block_on(db.commit_async(batch.clone(), Durability::Os)).is_err(), "another database's table");
    // Under a stepper all is done when the call returns.
    let pending = other.commit_async(batch, Durability::Disk);
    assert_eq!((format!("{pending:?}"), other.durable_sequence()), ("complete".into(), 1));
    assert_eq!(block_on(table.get_async("k")).unwrap().as_deref(), Some(&b"v"[..]));
}
