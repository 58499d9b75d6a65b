//! One limit for all memory: however much is written and read, what the engine says it holds stays under it.

use std::time::Duration;

use forebay::{Batch, Codec, Database, Durability, Layout, Options};
use forebay_env::{Env, Rng};
use forebay_testkit::{CountingHeap, Suffix};

/// All that counts against the limit, but for what work takes: of that some is free.
fn held(db: &Database) -> u64 {
    let memory = db.stats().memory;
    let work = memory.merging + memory.writing + memory.scanning;
    assert!(work <= 4 << 20, "{memory:?}");
    memory.total - work
}

#[test]
fn the_order_of_very_short_records_is_bounded_too() {
    let options = Options::default().memory_limit(1 << 20).env(Env::memory(6));
    let db = Database::open("/db", options).unwrap();
    let table = db.table("t").open().unwrap();
    let mut most = 0;
    for number in 0..5_000u32 {
        let mut batch = Batch::new();
        // Two bytes of lengths and three of key: a buffer holds 25,000 of them.
        (0..50).for_each(|i| batch.put(&table, &(number * 50 + i).to_le_bytes()[..3], b""));
        db.commit(batch, Durability::Memory).unwrap();
        if number % 100 == 0 {
            table.get(b"abc").unwrap();
            let memory = db.stats().memory;
            most = most.max(memory.buffer_indexes);
            assert!(memory.buffer_indexes * 2 <= memory.write_buffers + 4096, "{memory:?}");
        }
    }
    assert!(most > 0, "lookups have built an index");
}

#[test]
fn memory_stays_under_its_limit() {
    let limit = 2 << 20;
    for (layout, codec) in [
        (Layout::wb_tree(), Codec::None),
        (Layout::wb_tree_ordered(), Codec::None),
        (Layout::wb_tree_ordered(), Codec::Lz4),
    ] {
        let env = Env::memory(4);
        let options = Options::default().memory_limit(limit).env(env.clone());
        let db = Database::open("/db", options).unwrap();
        let table = db.table("t").layout(layout).codec(codec).open().unwrap();
        let (mut rng, mut most, mut bytes) = (Rng::new(8), 0, 0);
        while bytes < 8 * limit {
            let mut batch = Batch::new();
            for _ in 0..200 {
                let (key, value) = (rng.next_u64().to_le_bytes(), [rng.next_u64() as u8; 40]);
                batch.put(&table, key, &value[..rng.index(40)]);
            }
            bytes += batch.encoded_bytes() as u64;
            db.commit(batch, Durability::Os).unwrap();
            // Lookups build indexes and fill the cache.
            for _ in 0..5 {
                table.get(rng.next_u64().to_le_bytes()).unwrap();
            }
            most = most.max(held(&db));
        }
        table.iter().unwrap().take(50_000).for_each(|entry| drop(entry.unwrap()));
        most = most.max(held(&db));
        println!("{layout} {codec:?}: {most} of {limit} bytes; {:?}", db.stats().memory);
        assert!(most <= limit, "{most} bytes are held; the limit is {limit}");
        assert!(most > limit / 4, "the limit is not used");
    }
}

/// Beside a table that keeps records in memory write buffers are shorter, and without it
/// they are as long as ever.
#[test]
fn buffers_are_shorter_beside_records_in_memory() {
    let limit = 2 << 20;
    let env = Env::memory(4);
    let db = Database::open("/db", Options::default().memory_limit(limit).env(env.clone())).unwrap();
    let longest = |layout: Layout| {
        let table = db.table(&format!("{layout}")).layout(layout).open().unwrap();
        let (mut rng, mut buffers, mut most) = (Rng::new(8), 0, 0);
        for round in 0..2 {
            for _ in 0..2 * limit / (50 * 72) {
                let mut batch = Batch::new();
                (0..50).for_each(|_| batch.put(&table, rng.next_u64().to_le_bytes(), [7; 64]));
                db.commit(batch, Durability::Os).unwrap();
                most = most.max(held(&db));
                // Arenas that are longer are filled no further, and go first.
                if round > 0 {
                    buffers = buffers.max(db.stats().memory.write_buffers);
                }
            }
            db.flush().unwrap();
            env.jobs.advance(Duration::from_secs(1));
            env.jobs.step_some(1000);
        }
        // What is mostly needed no more may take some however little the limit is.
        assert!(most <= limit + (4 << 20), "{layout}: {most} bytes are held");
        drop(table);
        db.drop_table(&format!("{layout}")).unwrap();
        env.jobs.advance(Duration::from_secs(1));
        env.jobs.step_some(1000);
        buffers
    };
    assert_eq!(longest(Layout::wb_tree()), limit / 2);
    assert_eq!(longest(Layout::range_merge()), 3 * (limit * 3 / 40).next_multiple_of(4096));
    assert_eq!(longest(Layout::wb_tree()), limit / 2);
}

/// Of the write buffers only the active one is kept while nobody writes.
#[test]
fn idle_buffers_are_given_back() {
    let env = Env::memory(4);
    let db = Database::open("/db", Options::default().memory_limit(1 << 20).env(env.clone())).unwrap();
    let table = db.table("t").open().unwrap();
    let put = || (0..8000u32).for_each(|key| table.put(key.to_le_bytes(), [7; 64]).unwrap());
    for _ in 0..3 {
        put();
        assert_eq!(db.stats().memory.write_buffers, 512 << 10);
        env.jobs.advance(Duration::from_secs(2));
        env.jobs.step_some(1000);
        db.wait_until_idle().unwrap();
        env.jobs.advance(Duration::from_secs(2));
        env.jobs.step_some(1000);
        assert_eq!(db.stats().memory.write_buffers, 256 << 10);
    }
}

#[test]
fn buffers_that_only_snapshots_see_leave_memory() {
    let dir = std::env::temp_dir().join(format!("forebay-pinned-{}", std::process::id()));
    let limit = 2 << 20;
    let options = || Options::default().memory_limit(limit);
    let db = Database::open(&dir, options()).unwrap();
    let table = db.table("t").open().unwrap();
    let mut held = Vec::new();
    let value = [7; 1000];
    for number in 0..4000u32 {
        table.put(number.to_le_bytes(), value).unwrap();
        if number % 50 == 0 {
            held.push((number, db.snapshot()));
        }
    }
    db.flush().unwrap();
    // Sixteen buffers were filled; the housekeeper moves what is too much as soon as it gets a turn.
    let buffers = || db.stats().memory.write_buffers;
    let fit = (0..2000).any(|turn| {
        table.put(b"again", [turn as u8]).unwrap();
        buffers() <= limit / 2
    });
    assert!(fit, "{} bytes of {limit} are write buffers", buffers());
    for (number, snapshot) in &held {
        assert_eq!(snapshot.get(&table, number.to_le_bytes()).unwrap().as_deref(), Some(&value[..]));
        assert_eq!(snapshot.get(&table, (number + 1).to_le_bytes()).unwrap(), None);
        assert_eq!(snapshot.get(&table, b"again").unwrap(), None);
    }
    let (_, last) = held.last().unwrap();
    assert_eq!(last.iter(&table).unwrap().count(), 3951);
    drop(held);
    drop(table);
    db.close().unwrap();
    let names = Env::real().fs.list(&dir).unwrap();
    assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
    Database::destroy(&dir).unwrap();
}

#[test]
fn lists_in_memory_that_only_snapshots_see_leave_memory() {
    let dir = std::env::temp_dir().join(format!("forebay-pinned-lists-{}", std::process::id()));
    let limit = 2 << 20;
    let db = Database::open(&dir, Options::default().memory_limit(limit)).unwrap();
    let table = db.table("t").layout("range-merge".parse().unwrap()).open().unwrap();
    let mut held = Vec::new();
    let value = [7; 1000];
    for number in 0..6000u32 {
        table.put(number.to_le_bytes(), value).unwrap();
        if number % 50 == 0 {
            held.push((number, db.snapshot()));
        }
    }
    db.flush().unwrap();
    // All came by memory and went to files, and snapshots see it still; the housekeeper moves it as soon as it gets a
    // turn.
    let memory = || db.stats().memory;
    let fit = (0..2000).any(|turn| {
        table.put(b"again", [turn as u8]).unwrap();
        memory().total <= limit
    });
    assert!(fit, "{:?}", memory());
    for (number, snapshot) in &held {
        assert_eq!(snapshot.get(&table, number.to_le_bytes()).unwrap().as_deref(), Some(&value[..]));
        assert_eq!(snapshot.get(&table, (number + 1).to_le_bytes()).unwrap(), None);
    }
    let (_, last) = held.last().unwrap();
    assert_eq!(last.iter(&table).unwrap().count(), 5951);
    drop(held);
    drop(table);
    db.close().unwrap();
    let names = Env::real().fs.list(&dir).unwrap();
    assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
    Database::destroy(&dir).unwrap();
}

/// Nobody claimed the page that a scan keeps of each list: 2.4 MiB of 600 lists, which filters and caches had, too.
#[test]
fn scans_claim_the_page_that_they_keep_of_each_list() {
    let options = Options::default().memory_limit(2 << 20).env(Env::memory(4));
    let db = Database::open("/db", options).unwrap();
    let table = db.table("t").layout("no-merge".parse().unwrap()).open_ordered().unwrap();
    let lists = 20;
    for list in 0..lists {
        (0..50u8).for_each(|number| table.put([number, list], [7; 100]).unwrap());
        db.flush().unwrap();
    }
    let mut scans: Vec<_> = (0..32).map(|_| table.range(&[1][..]..).unwrap()).collect();
    scans.iter_mut().for_each(|scan| drop(scan.next().unwrap().unwrap()));
    let scanning = || db.stats().memory.scanning;
    let pages_bytes = scans.len() as u64 * lists as u64 * 4096;
    assert!(scanning() >= pages_bytes, "{} of {pages_bytes} bytes are claimed", scanning());
    drop(scans);
    assert_eq!(scanning(), 0);
}

/// What each of very many snapshots sees was listed for all of them at once, and by whoever looked for what only they
/// see: the limit was broken by that alone.
#[test]
fn telling_what_very_many_snapshots_hold_lists_no_file_twice() {
    let options = Options::default().memory_limit(2 << 20).env(Env::memory(4));
    let db = Database::open("/db", options).unwrap();
    let table = db.table("t").layout("no-merge".parse().unwrap()).open().unwrap();
    let mut held = Vec::new();
    for number in 0..50u32 {
        table.put(number.to_le_bytes(), b"value").unwrap();
        db.flush().unwrap();
        held.extend((0..40).map(|_| db.snapshot()));
    }
    table.compact().unwrap();
    let (peak_bytes, stats) = CountingHeap::peak_bytes(|| db.stats());
    let snapshots = &stats.snapshots;
    assert_eq!((snapshots.len(), snapshots[0].own_bytes), (held.len(), 0));
    assert!(snapshots[1999].held_bytes == 50 * snapshots[0].held_bytes, "{:?}", snapshots[1999]);
    assert!(peak_bytes < 200 * held.len(), "{peak_bytes} bytes for {} snapshots", held.len());
}

/// The pages of all keys were read before the first was looked at: with long values that is many times the limit.
#[test]
fn keys_that_are_looked_up_together_are_not_all_in_memory_at_once() {
    const VALUE_BYTES: usize = 1 << 20;
    let keys: Vec<[u8; 1]> = (0..40).map(|number| [number]).collect();
    let layouts = ["wb-tree", "leveling", "no-merge", "jungle"].into_iter();
    let tables = layouts.flat_map(|layout| {
        [(layout, false, Codec::None), (layout, true, Codec::None), (layout, false, Codec::Lz4)]
    });
    for (layout, is_apart, codec) in tables {
        let options = Options::default().memory_limit(16 << 20).env(Env::memory(5));
        let db = Database::open("/db", options).unwrap();
        let table = db.table("t").layout(layout.parse().unwrap()).codec(codec).time_to_live(Duration::MAX);
        let table = if is_apart { table.values_apart(1000) } else { table }.open().unwrap();
        for key in &keys {
            table.put(key, vec![key[0]; VALUE_BYTES]).unwrap();
        }
        db.flush().unwrap();
        assert_eq!(db.stats().values.files > 0, is_apart, "{layout}");
        for bytes_max in [0, 3 * VALUE_BYTES, usize::MAX] {
            let look = || table.multi_get_with_expiry_within(&keys, bytes_max).unwrap();
            let (peak_bytes, found) = CountingHeap::peak_bytes(look);
            let held_bytes: usize =
                found.iter().map(|(_, value)| value.as_ref().map_or(0, |(value, _)| value.len())).sum();
            assert_eq!(found.len(), (bytes_max / VALUE_BYTES).clamp(1, keys.len()), "{layout}");
            assert_eq!(held_bytes, found.len() * VALUE_BYTES, "{layout}: all that were looked up are there");
            assert!(
                peak_bytes < held_bytes + 4 * VALUE_BYTES,
                "{layout}: {peak_bytes} bytes for {held_bytes}"
            );
        }
    }
}

/// Pages that are in the cache were all shown, whatever the bound.
#[test]
fn keys_whose_pages_are_cached_keep_the_bound_too() {
    let options = Options::default().memory_limit(16 << 20).env(Env::memory(6));
    let db = Database::open("/db", options).unwrap();
    let table = db.table("t").open().unwrap();
    let keys: Vec<[u8; 2]> = (0..2000u16).map(u16::to_be_bytes).collect();
    keys.iter().for_each(|key| table.put(key, [7; 1000]).unwrap());
    db.flush().unwrap();
    for _ in 0..3 {
        assert!(table.multi_get(&keys).unwrap().iter().all(Option::is_some));
    }
    let before = db.stats().device_reads;
    for bytes_max in [0, 10_500] {
        let found = table.multi_get_with_expiry_within(&keys, bytes_max).unwrap();
        assert_eq!(found.len(), bytes_max / 1000 + 1);
        assert!(found.iter().all(|(_, value)| value.is_some()));
    }
    assert_eq!(db.stats().device_reads, before, "all of it is in the cache");
}

/// Of a key that has much in several places, what is newest was more than the bound by itself, so it was left out for ever.
#[test]
fn bounded_lookups_take_a_key_that_they_have_begun_to_its_end() {
    let db = Database::open("/db", Options::default().memory_limit(16 << 20).env(Env::memory(7))).unwrap();
    for layout in ["wb-tree", "no-merge", "jungle"] {
        let table = db.table(layout).layout(layout.parse().unwrap()).merge_rule(Suffix).open().unwrap();
        let keys: Vec<[u8; 1]> = (0..9).map(|number| [number]).collect();
        for round in 0..3u8 {
            keys.iter().for_each(|key| table.merge(key, [round; 10]).unwrap());
            if round < 2 {
                db.flush().unwrap();
            }
        }
        let mut left: Vec<[u8; 1]> = keys.clone();
        while !left.is_empty() {
            let found = table.multi_get_with_expiry_within(&left, 5).unwrap();
            assert!(!found.is_empty(), "{layout}");
            for (number, value) in &found {
                let value = value.as_ref().map(|(value, _)| &value[..]);
                assert_eq!(value, table.get(left[*number]).unwrap().as_deref(), "{layout}");
            }
            let answered: Vec<[u8; 1]> = found.iter().map(|(number, _)| left[*number]).collect();
            left.retain(|key| !answered.contains(key));
        }
    }
}
