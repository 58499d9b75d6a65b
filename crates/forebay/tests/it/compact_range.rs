//! Compactions of a range: what was deleted or overwritten in it is gone from files, nothing else changes, and what lies
//! elsewhere is left alone as far as that goes.

use std::collections::BTreeMap;
use std::path::Path;

use forebay::{Codec, Database, Error, Layout, Options, OrderedTable};
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, Env, Rng};
use forebay_testkit::ordered_layouts;

const KEYS: u32 = 3000;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone())
}

fn open(db: &Database, layout: Layout) -> OrderedTable {
    let builder = db.table("t").layout(layout).codec(Codec::None).node_bytes(8 << 10).fan_out(4);
    builder.open_ordered().unwrap()
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn value(n: u32, round: u32) -> Vec<u8> {
    format!("<{n:06} of round {round}>{:30}", "").into_bytes()
}

/// How many of the range's keys have a value of a round in a file of lists.
fn found(env: &Env, keys: std::ops::Range<u32>, round: u32) -> usize {
    let dir = Path::new("/db");
    let is_of_lists = |name: &String| name.ends_with(".list") || name.ends_with(".tree");
    let mut files = Vec::new();
    for name in env.fs.list(dir).unwrap().into_iter().filter(is_of_lists) {
        let file = env.fs.open_read(&dir.join(name), Access::Buffered).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        let read = file.read_at(0, &mut bytes).unwrap();
        assert_eq!(read, bytes.len());
        files.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    let is_there = |n: &u32| {
        let value = format!("<{n:06} of round {round}>");
        files.iter().any(|bytes| bytes.contains(&value))
    };
    keys.filter(is_there).count()
}

fn rest(env: &Env) {
    // Files that nothing refers to are removed a few at a time.
    for _ in 0..20 {
        env.jobs.advance(std::time::Duration::from_millis(200));
        env.jobs.step_some(2000);
    }
}

#[test]
fn what_is_old_in_a_range_is_gone_from_files() {
    for (seed, layout) in ordered_layouts().into_iter().enumerate() {
        let env = Env::memory(seed as u64);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = open(&db, layout);
        let mut model = BTreeMap::new();
        let mut rng = Rng::new(seed as u64);
        for round in 0..3 {
            for n in 0..KEYS {
                if round == 0 || rng.chance(30) {
                    table.put(key(n), value(n, round)).unwrap();
                    model.insert(key(n), value(n, round));
                }
            }
            db.flush().unwrap();
        }
        for n in (1000..1500).step_by(3) {
            table.delete(key(n)).unwrap();
            model.remove(&key(n));
        }
        table.compact_range(key(1000)..key(1500)).unwrap();
        rest(&env);
        for round in 0..3 {
            let live = (1000..1500).filter(|&n| model.get(&key(n)) == Some(&value(n, round))).count();
            let files = db.describe();
            assert_eq!(found(&env, 1000..1500, round), live, "{layout}: round {round}: {files}");
        }
        let all: Vec<_> = table.iter().unwrap().map(|entry| entry.unwrap()).collect();
        let expected: Vec<_> = model.iter().map(|(key, value)| (key.to_vec(), value.clone())).collect();
        assert_eq!(all, expected, "{layout}");
        drop(table);
        db.close().unwrap();
    }
}

/// Where keys begin alike, for longer than the 8 bytes that files are known by, and less than a page is deleted.
#[test]
fn what_is_deleted_is_gone_where_keys_begin_alike() {
    let long = |n: u32| [b"tenant/0001/user/".as_slice(), &key(n)].concat();
    for (seed, layout) in ordered_layouts().into_iter().enumerate() {
        let env = Env::memory(seed as u64);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = open(&db, layout);
        (0..KEYS).for_each(|n| table.put(long(n), value(n, 0)).unwrap());
        table.compact().unwrap();
        for (first, by_range) in [(0, true), (1000, false), (2000, true), (KEYS - 5, false)] {
            let range = long(first)..long(first + 5);
            match by_range {
                true => table.delete_range(range.clone()).unwrap(),
                false => (first..first + 5).for_each(|n| table.delete(long(n)).unwrap()),
            }
            table.compact_range(range).unwrap();
            rest(&env);
            assert_eq!(found(&env, first..first + 5, 0), 0, "{layout}: {}", db.describe());
        }
        assert_eq!(found(&env, 1005..1100, 0), 95, "{layout}");
        assert_eq!(table.iter().unwrap().count(), KEYS as usize - 20, "{layout}");
        drop(table);
        db.close().unwrap();
    }
}

/// Elsewhere nothing is read: it costs a part of what all of the table would.
#[test]
fn the_rest_of_a_table_is_left_alone() {
    for layout in [Layout::leveling(4), Layout::wb_tree_ordered(), "range-merge".parse().unwrap()] {
        let mut written = [0, 0];
        for (of_all, written) in [false, true].into_iter().zip(&mut written) {
            let env = Env::memory(3);
            let db = Database::open("/db", options(&env)).unwrap();
            let table = open(&db, layout);
            for round in 0..3 {
                (0..3 * KEYS).for_each(|n| table.put(key(n), value(n, round)).unwrap());
            }
            db.wait_until_idle().unwrap();
            let list_bytes = || db.stats().list_bytes_written.values().sum::<u64>();
            let before = list_bytes();
            match of_all {
                true => table.compact().unwrap(),
                false => table.compact_range(key(1000)..key(1100)).unwrap(),
            }
            *written = list_bytes() - before;
        }
        assert!(written[0] <= written[1] / 2, "{layout}: {written:?}");
    }
}

#[test]
fn ranges_that_several_ask_for_are_all_done_while_others_write() {
    for seed in 0..20 {
        let env = Env::memory(seed);
        env.jobs.interleave(seed);
        let layouts = ordered_layouts();
        let db = Database::open("/db", options(&env)).unwrap();
        let table = open(&db, layouts[seed as usize % layouts.len()]);
        let users = [0, 1, 2].map(|user: u32| {
            let table = table.clone();
            env.jobs.fork("user", move || {
                for round in 0..3 {
                    (user..600).step_by(3).for_each(|n| table.put(key(n), value(n, round)).unwrap());
                    match user {
                        0 => table.compact_range(key(100)..key(300)).unwrap(),
                        1 => table.compact_range(..key(200)).unwrap(),
                        _ => table.compact().unwrap(),
                    }
                }
            })
        });
        users.into_iter().for_each(forebay_env::Handle::join);
        let values = (0..600).map(|n| (key(n).to_vec(), value(n, 2)));
        assert!(table.iter().unwrap().map(|entry| entry.unwrap()).eq(values), "seed {seed}");
        drop(table);
        db.close().unwrap();
    }
}

#[test]
fn a_range_of_nothing_and_of_a_table_without_order() {
    let env = Env::simulated(MemoryFs::new(), 1);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = open(&db, Layout::leveling(4));
    table.put("k", "v").unwrap();
    table.compact_range("b".."a").unwrap();
    table.compact_prefix("k").unwrap();
    table.compact_prefix("").unwrap();
    table.set_layout(Layout::wb_tree()).unwrap();
    let refused = table.compact_range("a".."b");
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert_eq!(table.get("k").unwrap().as_deref(), Some(&b"v"[..]));
}
