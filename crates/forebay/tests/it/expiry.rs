//! Time to live: entries vanish on time whichever way they are read, wherever they lie; snapshots keep them; and what
//! has expired leaves the disk, whole files of it unread.

use std::path::Path;
use std::time::Duration;

use forebay::{Batch, Database, Layout, MergeRule, Nearest, Options, OrderedTable, Snapshot, Table};
use forebay_env::Env;
use forebay_testkit::ordered_layouts;

const MINUTE: Duration = Duration::from_secs(60);
const KEYS: u32 = 900;

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(2 << 20).write_buffer(64 << 10).read_compaction_ratio(0.0);
    Database::open(Path::new("/db"), options.env(env.clone())).unwrap()
}

fn layouts() -> impl Iterator<Item = Layout> {
    ordered_layouts().into_iter().chain([Layout::wb_tree()])
}

fn table(db: &Database, layout: Layout, life: Duration) -> Table {
    db.table("t").layout(layout).node_bytes(16 << 10).time_to_live(life).open().unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Of any length, the shortest and those of the expiry's own length included.
fn value(number: u32) -> Vec<u8> {
    vec![number as u8; number as usize % 23 * 4]
}

/// How many minutes the entry of a number lives: a third for one, a third for two, a third forever.
fn minutes(number: u32) -> u32 {
    [1, 2, u32::MAX][number as usize % 3]
}

fn put_all(table: &Table, numbers: impl Iterator<Item = u32>) {
    for number in numbers {
        match minutes(number) {
            1 => table.put(key(number), value(number)).unwrap(),
            2 => table.put_with_ttl(key(number), value(number), 2 * MINUTE).unwrap(),
            _ => table.put_with_ttl(key(number), value(number), Duration::MAX).unwrap(),
        }
    }
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// What is left after this many minutes, and a bit.
fn left(passed: u32) -> Entries {
    let alive = (0..KEYS).filter(|number| minutes(*number) > passed);
    alive.map(|number| (key(number).to_vec(), value(number))).collect()
}

fn sorted(entries: impl Iterator<Item = forebay::Result<(Vec<u8>, Vec<u8>)>>) -> Entries {
    let mut entries: Entries = entries.map(Result::unwrap).collect();
    entries.sort();
    entries
}

/// Reads in every way there is.
fn check(table: &Table, ordered: Option<&OrderedTable>, passed: u32, what: &str) {
    let expected = left(passed);
    let of = |number: u32| (minutes(number) > passed).then(|| value(number));
    let all: Vec<[u8; 4]> = (0..KEYS).map(key).collect();
    let gets: Vec<_> = all.iter().map(|key| table.get(key).unwrap()).collect();
    assert_eq!(gets, (0..KEYS).map(of).collect::<Vec<_>>(), "{what}");
    assert_eq!(table.multi_get(&all).unwrap(), gets, "{what}");
    assert_eq!(sorted(table.iter().unwrap()), expected, "{what}");
    let Some(table) = ordered else { return };
    let forward: Entries = table.range(..).unwrap().map(Result::unwrap).collect();
    assert_eq!(forward, expected, "{what}");
    let mut backward: Entries = table.range(..).unwrap().rev().map(Result::unwrap).collect();
    backward.reverse();
    assert_eq!(backward, expected, "{what}");
    assert_eq!(
        sorted(table.prefix([0, 0, 1]).unwrap()).len(),
        expected.iter().filter(|(key, _)| key[2] == 1).count()
    );
    assert_eq!(table.first().unwrap().as_ref(), expected.first(), "{what}");
    assert_eq!(table.last().unwrap().as_ref(), expected.last(), "{what}");
    for number in (0..KEYS).step_by(71) {
        let at = |entry: &&(Vec<u8>, Vec<u8>)| entry.0 >= key(number).to_vec();
        let above = table.nearest(key(number), Nearest::AtOrAbove).unwrap();
        assert_eq!(above.as_ref(), expected.iter().find(at), "{what}");
        let below = table.nearest(key(number), Nearest::Below).unwrap();
        assert_eq!(below.as_ref(), expected.iter().rfind(|entry| !at(entry)), "{what}");
        // To and fro.
        let mut cursor = table.cursor().unwrap();
        cursor.seek(key(number)).unwrap();
        let here = cursor.entry().map(|(key, value)| (key.to_vec(), value.to_vec()));
        cursor.prev().unwrap();
        cursor.next().unwrap();
        assert_eq!(cursor.entry().map(|(key, value)| (key.to_vec(), value.to_vec())), here, "{what}");
    }
}

fn check_snapshot(snapshot: &Snapshot, table: &Table, passed: u32, what: &str) {
    assert_eq!(sorted(snapshot.iter(table).unwrap()), left(passed), "{what}: a snapshot");
    for number in (0..KEYS).step_by(13) {
        let expected = (minutes(number) > passed).then(|| value(number));
        assert_eq!(snapshot.get(table, key(number)).unwrap(), expected, "{what}: a snapshot");
    }
}

fn pass(env: &Env, time: Duration) {
    env.jobs.advance(time);
    env.jobs.step_some(2_000);
}

#[test]
fn entries_vanish_on_time_wherever_they_lie_and_however_they_are_read() {
    for layout in layouts() {
        for place in ["buffered", "flushed", "merged", "reopened"] {
            vanish_on_time(layout, place, None);
        }
    }
}

/// All but empty values stand apart. Who has only the way to one still knows when it is over.
#[test]
fn entries_whose_values_stand_apart_vanish_on_time_too() {
    for layout in layouts() {
        for place in ["flushed", "merged"] {
            vanish_on_time(layout, place, Some(9));
        }
    }
}

fn vanish_on_time(layout: Layout, place: &str, apart_bytes_min: Option<u32>) {
    let what = format!("{layout}, {place}, apart from {apart_bytes_min:?} bytes on");
    let env = Env::memory(11);
    let mut db = open(&env);
    let builder = db.table("t").layout(layout).node_bytes(16 << 10).time_to_live(MINUTE);
    let builder = apart_bytes_min.into_iter().fold(builder, |builder, bytes| builder.values_apart(bytes));
    let mut table = builder.open().unwrap();
    put_all(&table, (0..KEYS).rev());
    match place {
        "flushed" => db.flush().unwrap(),
        "merged" => table.compact().unwrap(),
        "reopened" => {
            drop(table);
            db.close().unwrap();
            db = open(&env);
            table = db.table("t").open().unwrap();
        }
        _ => {}
    }
    let stands_apart = apart_bytes_min.is_some() && !layout.keeps_in_memory();
    assert_eq!(db.stats().values.live_bytes > 0, stands_apart, "{what}");
    let ordered = || layout.is_ordered().then(|| db.table("t").open_ordered().unwrap());
    let before = db.snapshot();
    check(&table, ordered().as_ref(), 0, &what);
    for passed in 1..=2 {
        pass(&env, MINUTE);
        check(&table, ordered().as_ref(), passed, &what);
        check_snapshot(&before, &table, 0, &what);
        if place == "merged" {
            table.compact().unwrap();
            check(&table, ordered().as_ref(), passed, &what);
            check_snapshot(&before, &table, 0, &what);
        }
    }
    drop((before, table));
    db.close().unwrap();
    let db = open(&env);
    assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, [""; 0], "{what}");
    let table = db.table("t").open().unwrap();
    let ordered = layout.is_ordered().then(|| db.table("t").open_ordered().unwrap());
    check(&table, ordered.as_ref(), 2, &what);
    if place == "merged" {
        let kept_bytes: u64 = (0..KEYS)
            .filter(|&number| minutes(number) > 2)
            .map(|number| value(number).len() as u64 + 8)
            .sum();
        assert!(
            db.stats().values.live_bytes <= kept_bytes,
            "{what}: nobody has ways to values that are over"
        );
    }
}

#[test]
fn the_newest_put_says_how_long_a_key_lives() {
    for layout in layouts() {
        let env = Env::memory(12);
        let db = open(&env);
        let table = table(&db, layout, MINUTE);
        for flush in [false, true] {
            let put = |key: &[u8], value: &[u8], minutes: u32| {
                table.put_with_ttl(key, value, minutes * MINUTE).unwrap();
                if flush {
                    db.flush().unwrap();
                }
            };
            put(b"longer", b"old", 1);
            put(b"longer", b"new", 3);
            put(b"shorter", b"old", 3);
            put(b"shorter", b"new", 1);
            pass(&env, MINUTE * 2);
            for _ in 0..2 {
                assert_eq!(table.get(b"longer").unwrap().as_deref(), Some(&b"new"[..]), "{layout}");
                assert_eq!(table.get(b"shorter").unwrap(), None, "{layout}: an old value came back");
                table.compact().unwrap();
            }
            pass(&env, MINUTE);
            assert_eq!(table.get(b"longer").unwrap(), None, "{layout}");
            put(b"longer", b"again", 1);
            assert_eq!(table.get(b"longer").unwrap().as_deref(), Some(&b"again"[..]), "{layout}");
            pass(&env, MINUTE);
        }
    }
}

/// Bytes that background work has read of lists.
fn read_bytes(db: &Database) -> u64 {
    db.stats().list_bytes_read.values().sum()
}

#[test]
fn files_that_are_over_go_without_being_read() {
    for layout in layouts() {
        let env = Env::memory(13);
        let db = open(&env);
        let table = table(&db, layout, MINUTE);
        for number in 0..6_000_u32 {
            table.put(key(number.wrapping_mul(0x9e37_79b9)), [7; 24]).unwrap();
        }
        table.compact().unwrap();
        let (full, before) = (db.stats().tables[0].space, read_bytes(&db));
        // Of a tree that short values stand beside, a compaction leaves a tenth.
        let dead_bytes_max = if layout.inline_bytes() < 24 { full.live_bytes / 10 } else { 0 };
        let is_whole = full.live_file_bytes > 200_000 && full.dead_bytes <= dead_bytes_max;
        assert!(is_whole, "{layout}: {full:?}");
        env.jobs.advance(MINUTE);
        let over = db.stats().tables[0].space;
        // But for what rounding takes.
        assert!(over.dead_bytes + 100 > over.live_file_bytes && over.live_bytes == 0, "{layout}: {over:?}");
        env.jobs.advance(Duration::from_secs(1));
        env.jobs.step_some(2_000);
        let none = db.stats().tables[0].space;
        assert_eq!((none.live_file_bytes, read_bytes(&db)), (0, before), "{layout}");
        assert_eq!(table.iter().unwrap().count(), 0, "{layout}");
        drop(table);
        db.close().unwrap();
        let db = open(&env);
        let table = db.table("t").open().unwrap();
        table.put(b"k", b"v").unwrap();
        assert_eq!(table.iter().unwrap().count(), 1, "{layout}");
    }
}

#[test]
fn what_has_expired_leaves_the_disk_although_nobody_writes() {
    for layout in layouts() {
        let env = Env::memory(14);
        let db = open(&env);
        let table =
            db.table("t").layout(layout).node_bytes(64 << 10).time_to_live(Duration::MAX).open().unwrap();
        // Two of three for a minute each, one after the other; so every file has some of all.
        for number in 0..9_000_u32 {
            let life = if number % 3 == 2 { Duration::MAX } else { MINUTE };
            table.put_with_ttl(key(number.wrapping_mul(0x9e37_79b9)), [7; 24], life).unwrap();
        }
        table.compact().unwrap();
        let full = db.stats().tables[0].space.live_file_bytes;
        pass(&env, MINUTE + Duration::from_secs(1));
        env.jobs.step_some(5_000);
        let rest = db.stats().tables[0].space;
        // Files are short, and each has a footer.
        assert!(rest.live_file_bytes < full / 5 * 4, "{layout}: {rest:?} of {full}");
        assert_eq!(db.stats().list_records, 3_000, "{layout}");
        assert_eq!(table.iter().unwrap().count(), 3_000, "{layout}");
    }
}

#[test]
fn ingested_entries_expire_and_another_order_keeps_the_time() {
    let env = Env::memory(15);
    let db = open(&env);
    let table = db.table("t").layout(Layout::leveling(4)).time_to_live(MINUTE).open_ordered().unwrap();
    table.ingest((0..KEYS).map(|number| Ok((key(number).to_vec(), value(number))))).unwrap();
    pass(&env, MINUTE / 2);
    for layout in [Layout::wb_tree(), Layout::no_merge(), Layout::wb_tree_ordered()] {
        table.set_layout(layout).unwrap();
        let values: Vec<_> = (0..KEYS).map(|number| table.get(key(number)).unwrap().unwrap()).collect();
        assert_eq!(values, (0..KEYS).map(value).collect::<Vec<_>>(), "{layout}");
    }
    pass(&env, MINUTE / 2);
    assert_eq!(table.iter().unwrap().count(), 0);
}

#[test]
fn what_cannot_be_is_refused() {
    struct Newest;
    impl MergeRule for Newest {
        fn name(&self) -> &str {
            "newest"
        }
        fn merge(&self, _key: &[u8], newer: &[u8], _older: &[u8], out: &mut Vec<u8>) {
            out.extend_from_slice(newer);
        }
    }
    let env = Env::memory(16);
    let db = open(&env);
    let says = |refused: forebay::Result<()>, what: &str| {
        let text = refused.expect_err("it was taken").to_string();
        assert!(text.contains(what), "{text}");
    };
    let plain = db.table("plain").open().unwrap();
    says(plain.put_with_ttl(b"k", b"v", MINUTE), "time_to_live");
    let mut batch = Batch::new();
    batch.put_with_ttl(&plain, b"k", b"v", MINUTE);
    says(db.commit(batch, forebay::Durability::Os).map(drop), "time_to_live");
    let merging = db.table("m").merge_rule(Newest).open().unwrap();
    says(merging.merge_until(b"k", b"v", 7), "time_to_live");
    says(merging.merge_with_ttl(b"k", b"v", MINUTE).map(drop), "time_to_live");
    says(plain.expire(b"k", 7).map(drop), "time_to_live");
    says(plain.persist(b"k").map(drop), "time_to_live");
    says(db.begin().expire(&plain, b"k", 7).map(drop), "time_to_live");
    assert_eq!(plain.get_with_expiry(b"k").unwrap(), None);
    says(plain.put_until(b"k", b"v", 7), "time_to_live");
    let expiring = db.table("e").time_to_live(MINUTE).open().unwrap();
    says(expiring.merge_until(b"k", b"v", 7), "merge rule");
    says(expiring.merge_with_ttl(b"k", b"v", MINUTE).map(drop), "merge rule");
    says(
        db.aggregator("a", forebay::aggregate::functions::Count).time_to_live(MINUTE).open().map(drop),
        "time_to_live",
    );
    says(db.table("z").time_to_live(Duration::ZERO).open().map(drop), "time_to_live");
    says(db.table("z").time_to_live(Duration::from_nanos(1)).open().map(drop), "time_to_live");
    drop(table(&db, Layout::wb_tree(), MINUTE));
    says(db.table("t").time_to_live(2 * MINUTE).open().map(drop), "time_to_live");
    says(db.table("plain").time_to_live(MINUTE).open().map(drop), "time_to_live");
    assert!(db.describe().to_string().contains("entries live 1m"));
}
