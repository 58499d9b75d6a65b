//! What users of Rust's own maps try first.

use std::ops::Bound;
use std::sync::Arc;

use forebay::{Batch, Database, Durability, Layout, Options, Result};
use forebay_env::{Env, Rng};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn open() -> Database {
    Database::open("/db", Options::default().memory_limit(1 << 20).env(Env::memory(1))).unwrap()
}

#[test]
fn keys_are_anything_that_is_bytes() {
    let db = open();
    let table = db.table("t").layout(Layout::wb_tree_ordered()).open_ordered().unwrap();
    table.put("text", String::from("owned")).unwrap();
    table.put(b"array", vec![1, 2, 3]).unwrap();
    table.put(7_u64.to_be_bytes(), &[0; 4][..]).unwrap();
    assert_eq!(table.get("text").unwrap().as_deref(), Some(&b"owned"[..]));
    assert!(table.contains_key(b"array").unwrap() && !table.contains_key(String::from("none")).unwrap());
    table.delete(b"array").unwrap();
    let snapshot = db.snapshot();
    assert!(
        snapshot.contains_key(&table, "text").unwrap() && !snapshot.contains_key(&table, b"array").unwrap()
    );
    let mut cursor = table.cursor().unwrap();
    cursor.seek("t").unwrap();
    assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"text"[..]));
}

#[test]
fn ranges_are_written_as_of_a_map() {
    let db = open();
    let table = db.table("t").layout(Layout::leveling(10)).open_ordered().unwrap();
    assert!(table.is_empty().unwrap());
    let mut batch = Batch::new();
    batch.extend(["a", "b", "c", "d"].map(|key| (&table, key, "")));
    db.commit(batch, Durability::Os).unwrap();
    assert!(!table.is_empty().unwrap());
    let keys = |scan: Result<forebay::Scan>| -> String {
        scan.unwrap().map(|entry| String::from_utf8(entry.unwrap().0).unwrap()).collect()
    };
    assert_eq!(keys(table.range(..)), "abcd");
    assert_eq!(keys(table.range(b"b"..b"d")), "bc");
    assert_eq!(keys(table.range("b"..="d")), "bcd");
    assert_eq!(keys(table.range(String::from("c")..)), "cd");
    assert_eq!(keys(table.range(..vec![b'c'])), "ab");
    assert_eq!(keys(table.range((Bound::Excluded("a"), Bound::Included("c")))), "bc");
    assert_eq!(keys(db.snapshot().range(&table, "b".."c")), "b");
    table.delete_range("a".."c").unwrap();
    assert_eq!(keys(table.range(..)), "cd");
    assert!(table.approximate("a"..).unwrap().records > 0);
    table.delete_prefix("c").unwrap();
    assert_eq!(keys(table.range(..)), "d");
}

#[test]
fn tables_that_threads_share_go_into_batches() {
    let db = open();
    let plain = Arc::new(db.table("p").open().unwrap());
    let ordered = Arc::new(db.table("o").open_ordered().unwrap());
    let mut batch = Batch::new();
    batch.put(&plain, "a", "1");
    batch.put(&ordered, "a", "1");
    batch.delete(&ordered, "b");
    batch.delete_prefix(&ordered, "b");
    db.commit(batch, Durability::Os).unwrap();
    assert_eq!(ordered.get("a").unwrap(), plain.get("a").unwrap());
    assert!(db.snapshot().contains_key(&ordered, "a").unwrap());
}

/// The walk from the front and the walk from the back share no entry and leave none out, whichever goes when, also where
/// they meet within one list, between lists, or in the order of hashes.
#[test]
fn both_ends_of_a_scan_meet() {
    for layout in [Layout::wb_tree(), Layout::wb_tree_ordered(), Layout::jungle(2.0), Layout::range_merge()] {
        let db = open();
        let table = db.table("t").layout(layout).open().unwrap();
        for n in 0..3000_u32 {
            table.put((n % 1000).to_be_bytes(), n.to_le_bytes()).unwrap();
            if n == 1500 {
                db.flush().unwrap();
            }
        }
        (0..1000_u32).step_by(7).for_each(|n| table.delete(n.to_be_bytes()).unwrap());
        let forward: Entries = table.iter().unwrap().collect::<Result<_>>().unwrap();
        assert_eq!(forward.len(), 857);
        for seed in 0..8 {
            let (mut scan, mut rng) = (table.iter().unwrap(), Rng::new(seed));
            let (mut front, mut back) = (Vec::new(), Vec::new());
            loop {
                let from_front = rng.chance([0, 1, 50, 99, 100][seed as usize % 5]);
                match if from_front { scan.next() } else { scan.next_back() } {
                    Some(entry) if from_front => front.push(entry.unwrap()),
                    Some(entry) => back.push(entry.unwrap()),
                    None => break,
                }
            }
            assert!(scan.next().is_none() && scan.next_back().is_none(), "it stays over");
            front.extend(back.into_iter().rev());
            assert!(front == forward, "{layout}, seed {seed}: {} of {}", front.len(), forward.len());
        }
    }
}
