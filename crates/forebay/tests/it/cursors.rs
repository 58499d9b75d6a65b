//! Cursors beside what the suite draws: what they read, what is approximate, and what becomes of an error.

use std::path::Path;
use std::sync::Arc;

use forebay::{Approximation, Batch, Cursor, Database, Durability, Layout, Nearest, Options, OrderedTable};
use forebay_env::fs::MemoryFs;
use forebay_env::{Env, FileSystem};

const RECORDS: u64 = 100_000;
/// Of a key and a value of eight bytes each.
const PAGE_RECORDS: u64 = 4080 / 16;

/// The key of this rank: there is room beside each.
fn key(rank: u64) -> [u8; 8] {
    (16 * rank).to_be_bytes()
}

/// In no order.
fn scattered(i: u64) -> u64 {
    i * 23_767 % RECORDS
}

fn open(env: &Env) -> (Database, OrderedTable) {
    let options = Options::default().memory_limit(4 << 20).write_buffer(128 << 10).read_compaction_ratio(0.0);
    let db = Database::open("/db", options.env(env.clone())).unwrap();
    let table = db.table("t").layout(Layout::wb_tree_ordered()).node_bytes(128 << 10).open_ordered().unwrap();
    (db, table)
}

/// Every key once, in no order, so that every list has some of every stretch.
fn load(env: &Env) -> (Database, OrderedTable) {
    let (db, table) = open(env);
    let mut batch = Batch::new();
    for number in 0..RECORDS {
        let rank = scattered(number);
        batch.put(&table, key(rank), rank.to_le_bytes());
        if batch.len() == 1000 {
            db.write(&mut batch, Durability::Os).unwrap();
        }
    }
    db.flush().unwrap();
    (db, table)
}

/// The most lists on a path.
fn lists(db: &Database) -> u64 {
    db.stats().tables[0].levels.iter().map(|level| level.lists_max as u64).sum()
}

fn rank_here(cursor: &Cursor) -> Option<u64> {
    let (key, value) = cursor.entry()?;
    let rank = u64::from_le_bytes(value.try_into().unwrap());
    assert_eq!(key, self::key(rank));
    Some(rank)
}

#[test]
fn a_cold_short_range_reads_at_most_one_page_of_each_list() {
    let env = Env::memory(1);
    load(&env).0.close().unwrap();
    let (db, table) = open(&env);
    let lists = lists(&db);
    assert!(lists >= 5, "{lists} lists on a path prove little");
    let (mut seeks, mut turns, mut ranges) = (0, 0, 0);
    for i in 0..300 {
        let rank = scattered(7 * i);
        let before = db.device_reads();
        let mut cursor = table.cursor().unwrap();
        assert_eq!(db.device_reads(), before, "a new cursor has read nothing");
        cursor.seek(key(rank)).unwrap();
        let taken = db.device_reads() - before;
        assert!(taken <= lists, "{taken} reads for the first entry, {lists} lists");
        seeks += taken;
        // Going back and forth takes place in the pages that the sources have.
        let before_turns = db.device_reads();
        cursor.next().unwrap();
        cursor.prev().unwrap();
        cursor.seek(key(rank)).unwrap();
        turns += db.device_reads() - before_turns;
        for rank in (rank..RECORDS).take(10) {
            assert_eq!(rank_here(&cursor), Some(rank));
            cursor.next().unwrap();
        }
        ranges += db.device_reads() - before;
    }
    assert!(turns <= 10, "{turns} reads of 300 turns");
    assert!(seeks > 300, "{seeks} reads of 300 seeks: they were not cold");
    // Ten entries of a page of 255 seldom reach the next page.
    assert!(ranges <= seeks + seeks / 4, "{ranges} reads of ranges, {seeks} of seeks");
    let before = db.device_reads();
    assert_eq!(table.iter().unwrap().count() as u64, RECORDS);
    let taken = db.device_reads() - before;
    let pages = RECORDS / PAGE_RECORDS;
    assert!(taken < pages / 2, "{taken} reads for {pages} pages: a long walk reads ahead");
}

#[test]
fn nothing_is_read_of_lists_that_end_before() {
    let env = Env::memory(2);
    let (db, table) = open(&env);
    // Each list has a stretch of its own.
    for rank in 0..RECORDS / 2 {
        table.put(key(rank), rank.to_le_bytes()).unwrap();
        if rank % 10_000 == 9_999 {
            db.flush().unwrap();
        }
    }
    drop(table);
    db.close().unwrap();
    let (db, table) = open(&env);
    assert!(lists(&db) > 1);
    let before = db.device_reads();
    assert_eq!(table.last().unwrap().unwrap().0, key(RECORDS / 2 - 1));
    assert_eq!(table.nearest(key(RECORDS), Nearest::AtOrAbove).unwrap(), None);
    let mut cursor = table.cursor().unwrap();
    cursor.seek(key(25_000)).unwrap();
    assert_eq!(rank_here(&cursor), Some(25_000));
    let taken = db.device_reads() - before;
    assert!(taken <= 2 * lists(&db), "{taken} reads");
}

#[test]
fn a_range_is_approximated_without_reading() {
    let env = Env::memory(3);
    let (db, table) = load(&env);
    let bound = |ends: u64| lists(&db) * ends * PAGE_RECORDS + RECORDS / 100;
    let before = db.device_reads();
    for i in 0..200 {
        let (one, other) = (scattered(11 * i), scattered(13 * i + 1));
        let (low, high) = (one.min(other), one.max(other));
        let found = table.approximate(&key(low)[..]..&key(high)[..]).unwrap();
        let error = found.records.abs_diff(high - low);
        assert!(error <= bound(2), "{found:?} where there are {}", high - low);
        // A record takes 16 bytes and a share of its page's head and end.
        assert!(found.bytes.abs_diff(found.records * 33 / 2) <= found.records, "{found:?}");
    }
    let all = table.approximate(..).unwrap();
    assert_eq!(all.records, RECORDS);
    assert_eq!(table.approximate(&key(9)[..]..&key(9)[..]).unwrap(), Approximation::default());
    // Where keys lie evenly, much less is off.
    let low = &key(20_000)[..];
    let found = table.approximate(low..&key(30_000)[..]).unwrap().records;
    assert!((9_500..10_500).contains(&found), "{found}");
    // Every version counts, and what is buffered is counted one by one.
    let before_versions = table.approximate(low..).unwrap();
    for rank in 50_000..50_300 {
        table.put(key(rank), rank.to_le_bytes()).unwrap();
    }
    table.delete(key(60_000)).unwrap();
    let with_versions = table.approximate(low..).unwrap();
    assert_eq!(with_versions.records, before_versions.records + 301);
    assert_eq!(db.device_reads(), before);
}

#[test]
fn dense_tombstones_are_passed_both_ways() {
    let env = Env::memory(4);
    let (db, table) = load(&env);
    let mut batch = Batch::new();
    for rank in (0..RECORDS).filter(|rank| rank % 20_000 != 3) {
        batch.delete(&table, key(rank));
    }
    db.write(&mut batch, Durability::Os).unwrap();
    let kept: Vec<u64> = (0..5).map(|part| 20_000 * part + 3).collect();
    let mut cursor = table.cursor().unwrap();
    for rank in &kept {
        cursor.next().unwrap();
        assert_eq!(rank_here(&cursor), Some(*rank));
    }
    cursor.next().unwrap();
    assert_eq!(cursor.entry(), None);
    for rank in kept.iter().rev() {
        cursor.prev().unwrap();
        assert_eq!(rank_here(&cursor), Some(*rank));
    }
}

/// Turns a byte in the middle of the longest list.
fn damage(fs: &MemoryFs) {
    let files = fs.snapshot_files();
    let lists = files.iter().filter(|(name, _)| name.extension().is_some_and(|end| end == "list"));
    let (name, mut bytes) =
        lists.max_by_key(|(_, bytes)| bytes.len()).map(|(n, b)| (n.clone(), b.clone())).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs.replace_file(&name, bytes);
}

#[test]
fn an_error_is_said_again_until_the_cursor_is_sought_anew() {
    let fs = MemoryFs::new();
    let env = Env::simulated(Arc::clone(&fs) as Arc<dyn FileSystem>, 5);
    assert!(!fs.exists(Path::new("/db")).unwrap());
    let (db, table) = load(&env);
    table.compact().unwrap();
    drop(table);
    db.close().unwrap();
    damage(&fs);
    let (_db, table) = open(&env);
    let mut cursor = table.cursor().unwrap();
    let (mut met, mut error) = (0, None);
    while error.is_none() {
        error = cursor.next().err();
        met += u64::from(cursor.entry().is_some());
    }
    let error = error.unwrap();
    assert!(error.is_corruption() && (1000..RECORDS).contains(&met), "{error} behind {met} entries");
    for _ in 0..2 {
        assert_eq!(cursor.entry(), None);
        assert_eq!(cursor.next().unwrap_err().to_string(), error.to_string());
        assert_eq!(cursor.prev().unwrap_err().to_string(), error.to_string());
    }
    cursor.seek_to_first().unwrap();
    assert_eq!(rank_here(&cursor), Some(0));
    cursor.next().unwrap();
    assert_eq!(rank_here(&cursor), Some(1));
    // Intact entries on the other side can be read; a scan ends where it meets the damage.
    cursor.seek_to_last().unwrap();
    assert_eq!(rank_here(&cursor), Some(RECORDS - 1));
    let mut scan = table.iter().unwrap();
    assert!(scan.by_ref().any(|entry| entry.is_err()));
    assert!(scan.next().is_none());
}
