//! Tables that are read in pieces: from positions, in parts, and counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use forebay::aggregate::functions::Count;
use forebay::{Database, Layout, Options, OrderedTable, Table};
use forebay_env::{Env, Rng};
use forebay_testkit::ordered_layouts;

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(4 << 20).write_buffer(64 << 10);
    Database::open(Path::new("/db"), options.env(env.clone())).unwrap()
}

fn keys_from(table: &Table, count: usize, mut between: impl FnMut()) -> Vec<Vec<u8>> {
    let (mut position, mut keys) = (Some(0), Vec::new());
    while let Some(from) = position {
        let scanned = table.scan_from(from, count).unwrap();
        assert!(scanned.next.is_none() || scanned.entries.len() >= count && scanned.next > position);
        keys.extend(scanned.entries.into_iter().map(|(key, _)| key));
        position = scanned.next;
        between();
    }
    keys
}

#[test]
fn keys_that_stay_come_once_whatever_is_written_between() {
    for seed in 0..6 {
        let (env, mut rng) = (Env::memory(seed), Rng::new(seed));
        let mut db = open(&env);
        let mut table = db.table("t").node_bytes(16 << 10).open().unwrap();
        for key in 0..3_000_u64 {
            table.put(key.to_le_bytes(), [7; 20]).unwrap();
        }
        let mut others = table.clone();
        let keys = keys_from(&table, 1 + rng.index(200), || {
            for _ in 0..50 {
                // Those of a multiple of three stay.
                let key = 3 * rng.below(1_500) + 1 + rng.below(2);
                match rng.below(3) {
                    0 => others.delete(key.to_le_bytes()).unwrap(),
                    _ => others.put(key.to_le_bytes(), [8; 30]).unwrap(),
                }
            }
            match rng.below(8) {
                0 => db.flush().unwrap(),
                1 => others.compact().unwrap(),
                2 => {
                    others.set_layout(Layout::leveling(4)).unwrap();
                    others.set_layout(Layout::wb_tree()).unwrap();
                }
                _ => env.jobs.step_some(20),
            }
        });
        let unique: BTreeSet<_> = keys.iter().collect();
        assert_eq!(unique.len(), keys.len(), "seed {seed}: a key came twice");
        let stays = |key: u64| key.is_multiple_of(3);
        assert!((0..3_000).filter(|&key| stays(key)).all(|key| unique.contains(&key.to_le_bytes().to_vec())));
        // A position is good for the next opening, too.
        let all = keys_from(&table, 100, || ());
        let first = table.scan_from(0, 100).unwrap();
        drop((table, others));
        db.close().unwrap();
        db = open(&env);
        table = db.table("t").open().unwrap();
        others = table.clone();
        let rest = others.scan_from(first.next.unwrap(), usize::MAX).unwrap();
        assert_eq!(rest.next, None);
        let both = first.entries.into_iter().chain(rest.entries).map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(both, all, "seed {seed}");
        drop(table);
    }
}

#[test]
fn positions_are_of_tables_in_hash_order() {
    let db = open(&Env::memory(1));
    let table = db.table("t").layout(Layout::wb_tree_ordered()).open().unwrap();
    let refused = table.scan_from(0, 10).unwrap_err().to_string();
    assert!(refused.contains("keeps keys in order"), "{refused}");
    let empty = db.table("empty").open().unwrap();
    assert_eq!(empty.scan_from(0, 0).unwrap().next, None);
    assert_eq!(empty.scan_from(u64::MAX, 7).unwrap(), forebay::Scanned::default());
    assert_eq!(empty.parts(0).unwrap().len(), 1);
}

/// Keys of these kinds: short, with a long common front, with bytes that grow evenly.
fn key(kind: usize, number: u32) -> Vec<u8> {
    match kind {
        0 => format!("{number}").into_bytes(),
        1 => format!("/var/lib/application/objects/{number:08}").into_bytes(),
        _ => number.wrapping_mul(0x9e37_79b9).to_be_bytes().to_vec(),
    }
}

#[test]
fn parts_are_all_there_is_and_about_even() {
    const KEYS: u32 = 20_000;
    for layout in ordered_layouts().into_iter().chain([Layout::wb_tree()]) {
        for kind in 0..3 {
            let env = Env::memory(3);
            let db = open(&env);
            let table = db.table("t").layout(layout).node_bytes(64 << 10).open().unwrap();
            for number in 0..KEYS {
                table.put(key(kind, number), [7; 20]).unwrap();
            }
            if kind == 1 {
                table.compact().unwrap();
            }
            let all: Vec<_> = table.iter().unwrap().map(Result::unwrap).collect();
            let snapshot = db.snapshot();
            for count in [1, 2, 3, 8] {
                let parts = table.parts(count).unwrap();
                let taken = snapshot.parts(&table, count).unwrap();
                assert_eq!(parts.len(), count, "{layout}, kind {kind}");
                let parts: Vec<Vec<_>> =
                    parts.into_iter().map(|part| part.map(Result::unwrap).collect()).collect();
                let largest = parts.iter().map(Vec::len).max().unwrap();
                assert!(
                    largest * count < all.len() * 3 / 2 + 1,
                    "{layout}, kind {kind}: {largest} of {} in one of {count}",
                    all.len()
                );
                assert_eq!(parts.concat(), all, "{layout}, kind {kind}");
                assert_eq!(taken.into_iter().flatten().map(Result::unwrap).collect::<Vec<_>>(), all);
            }
        }
    }
}

#[test]
fn parts_are_of_one_moment() {
    let env = Env::memory(4);
    let db = open(&env);
    let table = db.table("t").time_to_live(Duration::from_secs(1)).open().unwrap();
    for number in 0..1_000 {
        table.put(key(0, number), "v").unwrap();
    }
    let mut parts = table.parts(4).unwrap().into_iter();
    let first = parts.next().unwrap().count();
    env.jobs.advance(Duration::from_secs(2));
    for number in 0..1_000 {
        table.put(key(0, number + 5_000), "v").unwrap();
    }
    assert_eq!(first + parts.map(Iterator::count).sum::<usize>(), 1_000);
}

#[test]
fn keys_are_counted_as_they_are() {
    for layout in ordered_layouts().into_iter().chain([Layout::wb_tree()]) {
        let (env, mut rng) = (Env::memory(5), Rng::new(5));
        let db = open(&env);
        let table = db.table("t").layout(layout).node_bytes(16 << 10).values_apart(30).open().unwrap();
        let timed = db.table("timed").layout(layout).time_to_live(Duration::from_millis(400)).open().unwrap();
        let (mut model, mut ends) = (BTreeSet::new(), BTreeMap::new());
        for step in 0..4_000 {
            let key = rng.below(900).to_be_bytes();
            match rng.below(40) {
                0..8 => {
                    table.delete(key).unwrap();
                    model.remove(&key);
                }
                8 => db.flush().unwrap(),
                9 if step % 3 == 0 => table.compact().unwrap(),
                10..20 => {
                    ends.insert(key, db.unix_milliseconds() + 400);
                    timed.put(key, [7; 10]).unwrap();
                }
                20..22 => env.jobs.advance(Duration::from_millis(rng.below(9))),
                _ => {
                    table.put(key, vec![7; rng.index(60)]).unwrap();
                    model.insert(key);
                }
            }
            if step % 50 == 0 {
                let (keys, now) = (model.len() as u64, db.unix_milliseconds());
                assert_eq!(
                    (table.count().unwrap(), table.count().unwrap()),
                    (keys, keys),
                    "{layout}, step {step}"
                );
                let alive = ends.values().filter(|end| **end > now).count() as u64;
                assert_eq!(timed.count().unwrap(), alive, "{layout}, step {step}");
            }
        }
        let snapshot = db.snapshot();
        if let Ok(ordered) = db.table("t").open_ordered() {
            ordered.delete_prefix(b"").unwrap();
            assert_eq!(ordered.count().unwrap(), 0, "{layout}");
        }
        assert_eq!(snapshot.count(&table).unwrap(), model.len() as u64, "{layout}");
    }
}

#[test]
fn what_is_counted_again_is_not_read_again() {
    let env = Env::memory(6);
    let db = open(&env);
    let table: OrderedTable = db.table("t").layout(Layout::wb_tree_ordered()).open_ordered().unwrap();
    for number in 0..9_000 {
        table.put(key(2, number), [7; 40]).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(table.count().unwrap(), 9_000);
    let (before, hits) = (db.device_reads(), db.stats().cache_hits);
    assert_eq!(table.count().unwrap(), 9_000);
    assert_eq!((db.device_reads(), db.stats().cache_hits), (before, hits));
    table.delete(key(2, 7)).unwrap();
    assert_eq!(table.count().unwrap(), 8_999);
    // Lists that are whole, and lie side by side, tell by themselves.
    table.compact().unwrap();
    let (before, hits) = (db.device_reads(), db.stats().cache_hits);
    assert_eq!(table.count().unwrap(), 8_999);
    assert_eq!((db.device_reads(), db.stats().cache_hits), (before, hits));
    // Groups are counted, too.
    let counts = db.aggregator("counts", Count).open().unwrap();
    (0..500_u64).for_each(|number| counts.add((number % 77).to_le_bytes(), ()).unwrap());
    let states = db.snapshot().table("counts").unwrap();
    assert_eq!(states.count().unwrap(), 77);
}

/// On real threads, and real files.
#[test]
fn threads_count_side_by_side() {
    let dir = std::env::temp_dir().join(format!("forebay-test-count-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(32 << 20)).unwrap();
    let table = db.table("t").open().unwrap();
    for number in 0..50_000_u64 {
        table.put(number.to_le_bytes(), [7; 8]).unwrap();
    }
    assert_eq!(table.count().unwrap(), 50_000);
    let counted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> =
            table.parts(3).unwrap().into_iter().map(|part| scope.spawn(move || part.count())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(counted, 50_000);
    drop(table);
    db.close().unwrap();
    Database::destroy(&dir).unwrap();
}
