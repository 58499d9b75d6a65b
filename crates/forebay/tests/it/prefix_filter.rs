//! Prefix filters: what a scan of a key prefix costs with and without, counted where it happens, and that it finds the same
//! whatever its lists' filters know.

use std::sync::Arc;

use forebay::{Codec, Database, Layout, Options, OrderedTable, PrefixFilter};
use forebay_env::Env;
use forebay_env::fs::{MemoryFs, TracedFs};
use forebay_testkit::ordered_layouts;

const USERS: u32 = 4000;
const FLUSHES: u32 = 40;
const EVENTS: u32 = 5;

fn key(user: u32, event: u32) -> Vec<u8> {
    format!("user{user:05}/{event:03}").into_bytes()
}

fn prefix(user: u32) -> String {
    format!("user{user:05}/")
}

struct Files(Arc<TracedFs>, Env);

impl Files {
    fn new() -> Self {
        let files = TracedFs::new(MemoryFs::new());
        Self(Arc::clone(&files), Env::simulated(files, 7))
    }

    fn open(&self) -> Database {
        // A cache too small to help.
        let options = Options::default().memory_limit(4 << 20).write_buffer(512 << 10);
        Database::open("/db", options.read_compaction_ratio(0.0).env(self.1.clone())).unwrap()
    }

    /// Of each second user all events in one flush, so that each list has users from all over and few of them.
    fn load(
        &self,
        layout: Layout,
        prefixes: Option<PrefixFilter>,
        value_bytes: usize,
    ) -> (Database, OrderedTable) {
        let db = self.open();
        let table = db.table("events").layout(layout).prefix_filter(prefixes).open_ordered().unwrap();
        for flush in 0..FLUSHES {
            for user in (0..USERS).step_by(2).filter(|user| user / 2 % FLUSHES == flush) {
                (0..EVENTS).for_each(|event| table.put(key(user, event), vec![7; value_bytes]).unwrap());
            }
            db.flush().unwrap();
        }
        db.close().unwrap();
        let db = self.open();
        let table = db.table("events").open_ordered().unwrap();
        (db, table)
    }

    /// Device reads for each scan of a user who is there, or of one who is not.
    fn reads(&self, table: &OrderedTable, is_there: bool) -> f64 {
        let before = self.0.reads_of("list");
        let users = (0..200).map(|number| number * 237_860 % USERS + u32::from(!is_there));
        for user in users {
            let found: Vec<_> = table.prefix(prefix(user)).unwrap().map(|entry| entry.unwrap().0).collect();
            let events = if is_there { EVENTS } else { 0 };
            let expected: Vec<_> = (0..events).map(|event| key(user, event)).collect();
            assert_eq!(found, expected, "user {user}");
        }
        (self.0.reads_of("list") - before) as f64 / 200.0
    }
}

#[test]
fn scans_of_absent_and_rare_key_prefixes_read_few_of_many_lists() {
    for layout in ["no-merge", "tiering:t=10", "wb-tree:ordered"] {
        let layout: Layout = layout.parse().unwrap();
        let [without, until, bytes] = [None, Some(PrefixFilter::Until(b'/')), Some(PrefixFilter::Bytes(9))]
            .map(|prefixes| {
                let files = Files::new();
                let (_db, table) = files.load(layout, prefixes, 1000);
                // Opening reads page search and filter of each list.
                files.reads(&table, false);
                [files.reads(&table, false), files.reads(&table, true)]
            });
        println!(
            "{layout}: absent and rare {without:.2?} reads, {until:.2?} until `/`, {bytes:.2?} by 9 bytes"
        );
        assert!(without[0] >= 4.0, "{layout}: {} lists prove little", without[0]);
        for with in [until, bytes] {
            assert!(with[0] <= without[0] / 5.0, "{layout}: {} reads for an absent key prefix", with[0]);
            assert!(with[1] <= 3.0 && with[1] <= without[1] / 2.0, "{layout}: {} for a rare one", with[1]);
        }
    }
}

/// Lists that were written by other rules, or by none, are read by their own.
#[test]
fn a_prefix_filter_comes_and_goes_and_scans_find_the_same() {
    let layouts = ordered_layouts().into_iter().filter(|layout| !layout.keeps_in_memory());
    for layout in layouts {
        let files = Files::new();
        let (mut db, _) = files.load(layout, None, 60);
        let rules = [Some(PrefixFilter::Bytes(6)), Some(PrefixFilter::Until(b'/')), None];
        for (round, prefixes) in rules.into_iter().enumerate() {
            db.table("events").prefix_filter(prefixes).codec(Codec::Lz4).alter().unwrap();
            assert_eq!(db.describe().tables[0].prefix_filter, prefixes.map(|some| some.to_string()));
            let table = db.table("events").prefix_filter(prefixes).open_ordered().unwrap();
            (0..USERS).step_by(round + 2).for_each(|user| table.put(key(user, 9), b"new").unwrap());
            db.flush().unwrap();
            for user in (0..USERS).step_by(17) {
                let (prefix, old) = (prefix(user), if user % 2 == 0 { EVENTS } else { 0 });
                let new = (0..=round).any(|round| (user as usize).is_multiple_of(round + 2));
                let expected = old as usize + usize::from(new);
                assert_eq!(table.prefix(&prefix).unwrap().count(), expected, "{layout}: {prefix}");
                assert_eq!(table.prefix(&prefix).unwrap().rev().count(), expected, "{layout}: {prefix}");
                // More and less than a key prefix, and a range that ends with the last of one.
                assert_eq!(table.prefix(key(user, 9)).unwrap().count(), usize::from(new));
                assert!(table.prefix(&prefix[..8]).unwrap().count() >= expected);
                let range = table.range(prefix.as_bytes()..=&key(user, 999)[..]).unwrap();
                assert_eq!(range.count(), expected, "{layout}: {prefix}");
            }
            if round == 1 {
                table.compact().unwrap();
            }
            assert!(db.verify(&mut |_, _| ()).unwrap().problems.is_empty());
            drop(table);
            db.close().unwrap();
            db = files.open();
        }
        assert_eq!(db.describe().tables[0].prefix_filter, None, "{layout}");
    }
}

#[test]
fn tables_that_can_have_no_prefix_filter_say_so() {
    let db = Files::new().open();
    let refused = |outcome: forebay::Result<()>, said: &str| {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("prefix_filter") && error.contains(said), "{error}");
    };
    let asked = |name| db.table(name).prefix_filter(PrefixFilter::Bytes(4));
    refused(asked("hashed").open().map(drop), "order");
    refused(asked("bare").filter_bits_per_key(0).open_ordered().map(drop), "filter_bits_per_key is 0");
    refused(asked("none").prefix_filter(PrefixFilter::Bytes(0)).open_ordered().map(drop), "at least one");
    let table = asked("fine").open_ordered().unwrap();
    refused(db.table("fine").prefix_filter(None).open().map(drop), "has prefix_filter 4, not none");
    refused(table.set_layout(Layout::wb_tree()), "take it away");
    refused(db.table("fine").filter_bits_per_key(0).alter(), "filter_bits_per_key is 0");
    db.table("fine").prefix_filter(None).filter_bits_per_key(0).alter().unwrap();
    table.set_layout(Layout::wb_tree()).unwrap();
}
