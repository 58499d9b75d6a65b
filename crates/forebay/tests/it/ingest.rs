//! Sorted entries brought in at one go: what they hide, what hides them, where they go, and what is refused.

use std::path::Path;

use forebay::{Database, Durability, Error, Layout, Options, OrderedTable, Result};
use forebay_env::Env;

type Entry = (Vec<u8>, Vec<u8>);

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone());
    Database::open(Path::new("/db"), options).unwrap()
}

fn entries(range: std::ops::Range<u32>, value: &'static str) -> impl Iterator<Item = Result<Entry>> + Send {
    range.map(move |number| Ok((number.to_be_bytes().to_vec(), value.as_bytes().to_vec())))
}

fn all(table: &OrderedTable) -> Vec<(u32, String)> {
    let number = |key: &[u8]| u32::from_be_bytes(key.try_into().unwrap());
    table
        .range(..)
        .unwrap()
        .map(|entry| entry.map(|(key, value)| (number(&key), String::from_utf8(value).unwrap())).unwrap())
        .collect()
}

#[test]
fn what_is_ingested_is_newer_than_what_was_written_before_and_older_than_what_comes_after() {
    for layout in [
        "no-merge",
        "immediate",
        "geometric:p=2",
        "range-merge",
        "range-merge:c=2",
        "leveling",
        "tiering:t=2",
        "jungle:c=2",
    ] {
        let env = Env::memory(1);
        let db = open(&env);
        let table = db.table("t").layout(layout.parse().unwrap()).node_bytes(8 << 10).open_ordered().unwrap();
        for number in 0..3000_u32 {
            table.put(number.to_be_bytes(), b"before").unwrap();
        }
        table.delete(7_u32.to_be_bytes()).unwrap();
        assert_eq!(table.ingest(entries(5..2000, "ingested")).unwrap(), 1995);
        table.delete(9_u32.to_be_bytes()).unwrap();
        table.put(11_u32.to_be_bytes(), b"after").unwrap();
        let expected: Vec<(u32, String)> = (0..3000)
            .filter(|number| *number != 9)
            .map(|number| {
                let value = match number {
                    11 => "after",
                    5..2000 => "ingested",
                    _ => "before",
                };
                (number, value.to_string())
            })
            .collect();
        assert_eq!(all(&table), expected, "{layout}");
        table.compact().unwrap();
        assert_eq!(all(&table), expected, "{layout}");
        db.commit(forebay::Batch::new(), Durability::Disk).unwrap();
        drop(table);
        db.close().unwrap();
        let db = open(&env);
        assert_eq!(all(&db.table("t").open_ordered().unwrap()), expected, "{layout}");
        assert!(db.verify(&mut |_, _| ()).unwrap().problems.is_empty());
    }
}

#[test]
fn ranges_of_their_own_become_one_run_and_are_written_once() {
    let db = open(&Env::memory(2));
    let table = db.table("t").layout(Layout::leveling(10)).node_bytes(8 << 10).open_ordered().unwrap();
    for part in [3_u32, 0, 2, 1] {
        table.ingest(entries(part * 1000..(part + 1) * 1000, "v")).unwrap();
    }
    assert_eq!(all(&table).len(), 4000);
    let stats = db.stats();
    assert_eq!(stats.tables[0].levels.len(), 1, "{:?}", stats.tables[0].levels);
    assert_eq!(stats.tables[0].levels[0].lists_max, 1, "{:?}", stats.tables[0].levels);
    assert_eq!(stats.list_bytes_written["merge"], 0);
}

#[test]
fn entries_out_of_order_are_refused_and_leave_nothing() {
    let env = Env::memory(3);
    let db = open(&env);
    let table = db.table("t").layout(Layout::tiering(4)).open_ordered().unwrap();
    for bad in [vec![1_u8, 3, 2], vec![1, 1]] {
        let entries = bad.into_iter().map(|key| Ok((vec![key], vec![0; 3000])));
        let error = table.ingest(entries).unwrap_err();
        assert!(error.to_string().contains("entries must come sorted"), "{error}");
    }
    let failing = [Ok((vec![1], vec![])), Err(Error::Invalid("no more".into()))];
    assert!(table.ingest(failing.into_iter()).unwrap_err().to_string().contains("no more"));
    assert_eq!(table.ingest(std::iter::empty()).unwrap(), 0);
    assert_eq!(all(&table).len(), 0);
    assert_eq!(db.stats().list_files, 0);
    let tree = db.table("tree").layout(Layout::wb_tree_ordered()).open_ordered().unwrap();
    let error = tree.ingest(entries(0..2, "v")).unwrap_err();
    assert!(error.to_string().contains("wb-tree:ordered"), "{error}");
}
