//! Ways to read: what stays in the page cache, how many reads a walk makes, and which values it fetches.

use std::sync::Arc;

use forebay::aggregate::functions::Distinct;
use forebay::{Database, Layout, Options, OrderedTable, Period, ReadOptions, Tiers};
use forebay_env::Env;
use forebay_env::fs::{MemoryFs, TracedFs};

const RECORDS: u32 = 40_000;

struct Files(Arc<TracedFs>, Env);

impl Files {
    fn new() -> Self {
        let files = TracedFs::new(MemoryFs::new());
        Self(Arc::clone(&files), Env::simulated(files, 7))
    }

    fn open(&self) -> (Database, OrderedTable) {
        let options = Options::default().memory_limit(16 << 20).write_buffer(1 << 20);
        let db = Database::open("/db", options.read_compaction_ratio(0.0).env(self.1.clone())).unwrap();
        let table = db.table("t").open_ordered().unwrap();
        (db, table)
    }

    /// A table of one list for each range, from a cold cache.
    fn load(&self, layout: &str, value_bytes: usize, apart: Option<u32>) -> (Database, OrderedTable) {
        let layout: Layout = layout.parse().unwrap();
        let options = Options::default().memory_limit(16 << 20).write_buffer(1 << 20).env(self.1.clone());
        let db = Database::open("/db", options).unwrap();
        let table = db.table("t").layout(layout);
        let table = apart.into_iter().fold(table, |table, bytes| table.values_apart(bytes));
        let table = table.open_ordered().unwrap();
        (0..RECORDS).for_each(|number| table.put(number.to_be_bytes(), vec![7; value_bytes]).unwrap());
        table.compact().unwrap();
        db.close().unwrap();
        self.open()
    }

    /// Device reads meanwhile, of lists and trees, and of values that are kept apart.
    fn reads(&self, act: impl FnOnce()) -> [u64; 2] {
        let count = || {
            let [lists, trees, values] = ["list", "tree", "values"].map(|kind| self.0.reads_of(kind));
            [lists + trees, values]
        };
        let before = count();
        act();
        let after = count();
        [after[0] - before[0], after[1] - before[1]]
    }
}

#[test]
fn reads_that_do_not_fill_the_cache_leave_it_as_it_is() {
    for layout in ["wb-tree:ordered", "tiering:t=4", "jungle"] {
        let files = Files::new();
        let (db, table) = files.load(layout, 100, None);
        let cached = || db.stats().memory.page_cache;
        let some = || (0..200).map(|number: u32| (number * 237_861 % RECORDS).to_be_bytes());
        let passing = table.with(ReadOptions::default().fill_cache(false));
        let snapshot = db.snapshot().with(ReadOptions::default().fill_cache(false));
        let read = |table: &OrderedTable| {
            some().for_each(|key| assert_eq!(table.get(key).unwrap().map(|value| value.len()), Some(100)));
            table.multi_get(&some().collect::<Vec<_>>()).unwrap();
            some().for_each(|key| assert!(table.range(&key[..]..).unwrap().next().unwrap().is_ok()));
            let mut cursor = table.cursor().unwrap();
            some().for_each(|key| cursor.seek(key).unwrap());
        };
        // Of trees inner nodes are kept: these are there by now.
        read(&passing);
        let before = cached();
        let reads = files.reads(|| {
            read(&passing);
            some().for_each(|key| assert!(snapshot.get(&table, key).unwrap().is_some()));
        });
        assert_eq!(cached(), before, "{layout}: what passes by is not kept");
        assert!(reads[0] >= 700, "{layout}: {reads:?} reads");
        // Others' pages are used.
        read(&table);
        let (filled, again) = (cached(), files.reads(|| read(&passing)));
        assert!(filled > before + 100 * 4000, "{layout}: {before} bytes and then {filled}");
        assert!(again[0] <= 20, "{layout}: {again:?} reads of what is in the cache");
        println!(
            "{layout}: {before} bytes cached after {reads:?} reads that pass by, {filled} after the others"
        );
    }
}

#[test]
fn a_walk_that_is_told_to_read_ahead_makes_fewer_reads() {
    let files = Files::new();
    let (_db, table) = files.load("wb-tree:ordered", 100, None);
    let walk = |table: &OrderedTable| assert_eq!(table.range(..).unwrap().count(), RECORDS as usize);
    let reads = |reading| files.reads(|| walk(&table.with(reading)))[0];
    let usual = reads(ReadOptions::default());
    let [short, long] =
        [32 << 10, 1 << 20].map(|bytes| reads(ReadOptions::default().read_ahead_bytes(bytes)));
    println!("a walk over {RECORDS} records: {usual} reads, {short} at 32 KiB and {long} at 1 MiB");
    // 4.3 MB in pieces of 28 KiB, two pages being read at the ends of each; or in ones of about 1 MiB, a few for each leaf.
    assert!(
        short > 100 && long < usual && usual < short,
        "{usual} reads, {short} short ones, {long} long ones"
    );
    // Backward, too, and by a cursor.
    let ahead = table.with(ReadOptions::default().read_ahead_bytes(1 << 20));
    let back = files.reads(|| assert_eq!(ahead.range(..).unwrap().rev().count(), RECORDS as usize));
    assert!(back[0] <= long + 2, "{back:?} reads backward, {long} forward");
}

#[test]
fn a_walk_gives_up_reading_ahead_where_others_take_the_memory() {
    let files = Files::new();
    let (_db, table) = files.load("wb-tree:ordered", 100, None);
    let begin = |bytes| {
        let mut walk = table.with(ReadOptions::default().read_ahead_bytes(bytes)).range(..).unwrap();
        walk.next().unwrap().unwrap();
        walk
    };
    let walk = begin(64 << 10);
    let alone = files.reads(|| assert_eq!(walk.count(), RECORDS as usize - 1))[0];
    let walk = begin(64 << 10);
    // Together more than the sixteenth of 16 MiB.
    let _others: Vec<_> = (0..8).map(|_| begin(400 << 10)).collect();
    let beside = files.reads(|| assert_eq!(walk.count(), RECORDS as usize - 1))[0];
    println!("a walk at 64 KiB: {alone} reads alone, {beside} beside others");
    // From its second leaf on it reads page by page.
    assert!(beside > 3 * alone, "{alone} reads alone, {beside} beside others");
}

#[test]
fn walks_over_keys_read_no_values_that_are_kept_apart() {
    for layout in ["wb-tree:ordered", "tiering:t=4", "jungle"] {
        let files = Files::new();
        let (_db, table) = files.load(layout, 300, Some(100));
        let keys = table.with(ReadOptions::default().keys_only(true));
        let range = || 100u32.to_be_bytes()..300u32.to_be_bytes();
        let seen = |table: &OrderedTable, value_bytes| {
            let entries: Vec<_> = table.range(range()).unwrap().map(Result::unwrap).collect();
            let expected = (100..300u32).map(|number| (number.to_be_bytes().to_vec(), vec![7; value_bytes]));
            assert!(entries.into_iter().eq(expected), "{layout}");
        };
        let with = files.reads(|| seen(&table, 300));
        let without = files.reads(|| seen(&keys, 0));
        println!("{layout}: {with:?} reads for entries, {without:?} for keys");
        assert!(with[1] > 0 && without[1] == 0, "{layout}: {with:?} reads for entries, {without:?} for keys");
        let mut cursor = keys.cursor().unwrap();
        cursor.seek(7u32.to_be_bytes()).unwrap();
        assert_eq!(cursor.entry(), Some((&7u32.to_be_bytes()[..], &b""[..])));
        // Single keys have their values.
        assert_eq!(keys.get(7u32.to_be_bytes()).unwrap(), Some(vec![7; 300]));
    }
}

/// What aggregators show is made of states, which are the values of their tables.
#[test]
fn aggregators_have_states_whatever_a_snapshot_shows() {
    let files = Files::new();
    let (db, _) = files.open();
    let distinct = db.aggregator("distinct", Distinct).layout(Layout::wb_tree_ordered()).open().unwrap();
    let tiers = Tiers::new(Period::milliseconds(10), 3);
    let windows = db.windows("windows", Distinct, tiers).open().unwrap();
    for value in [b"a", b"b"] {
        distinct.add(b"key", value).unwrap();
    }
    // A key in two windows, whose states are merged.
    for (time, value) in [(5, b"a"), (15, b"b")] {
        windows.add(time, b"key", value).unwrap();
    }
    let check = || {
        let keys = db.snapshot().with(ReadOptions::default().keys_only(true));
        let expected = (b"key".to_vec(), 2);
        let distinct = distinct.at(&keys);
        assert_eq!(distinct.iter().unwrap().next().unwrap().unwrap(), expected);
        assert_eq!(distinct.range(..).unwrap().next_back().unwrap().unwrap(), expected);
        assert_eq!(distinct.get(b"key").unwrap(), Some(2));
        let mut cursor = distinct.cursor().unwrap();
        cursor.next().unwrap();
        assert!(cursor.entry().is_some_and(|(_, state)| !state.is_empty()));
        let windows = windows.at(&keys);
        assert_eq!(windows.iter(0..20).unwrap().next().unwrap().unwrap(), expected);
        assert_eq!(windows.get(0..20, b"key").unwrap(), Some(2));
    };
    check();
    db.flush().unwrap();
    check();
}
