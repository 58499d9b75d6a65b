//! Values that are lent, or go into memory that is there.

use std::path::Path;
use std::time::Duration;

use forebay::{Database, Layout, Options};
use forebay_env::{Env, Rng};
use forebay_testkit::{CountingHeap, Suffix, ordered_layouts};

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(8 << 20).write_buffer(64 << 10);
    Database::open(Path::new("/db"), options.env(env.clone())).unwrap()
}

#[test]
fn what_is_lent_is_what_a_get_gives() {
    let layouts = ordered_layouts().into_iter().chain([Layout::wb_tree()]);
    for (number, layout) in layouts.enumerate() {
        let (env, mut rng) = (Env::memory(number as u64), Rng::new(number as u64));
        let db = open(&env);
        let plain = db.table("plain").layout(layout).node_bytes(8 << 10).open().unwrap();
        let apart = db.table("apart").layout(layout).node_bytes(8 << 10).values_apart(40).open().unwrap();
        let timed = db
            .table("timed")
            .layout(layout)
            .node_bytes(8 << 10)
            .time_to_live(Duration::from_secs(1))
            .open()
            .unwrap();
        let merging =
            db.table("merging").layout(layout).node_bytes(8 << 10).merge_rule(Suffix).open().unwrap();
        for step in 0..3_000_u32 {
            let key = rng.below(300).to_le_bytes();
            let value = vec![step as u8; rng.index(100)];
            match rng.below(6) {
                0 => plain.put(key, &value).unwrap(),
                1 => apart.put(key, &value).unwrap(),
                2 => timed.put(key, &value).unwrap(),
                3 => merging.merge(key, &value).unwrap(),
                4 => [&plain, &apart, &timed, &merging][rng.index(4)].delete(key).unwrap(),
                _ => env.jobs.advance(Duration::from_millis(1)),
            }
        }
        let snapshot = db.snapshot();
        for table in [&plain, &apart, &timed, &merging] {
            let keys: Vec<_> = (0..320_u64).map(u64::to_le_bytes).collect();
            let (mut bytes, mut places) = (b"before".to_vec(), vec![Some(3..5)]);
            for _ in 0..2 {
                table.multi_get_into(&keys, &mut bytes, &mut places).unwrap();
            }
            let wanted = table.multi_get(&keys).unwrap();
            let found: Vec<_> =
                places.iter().map(|place| place.clone().map(|place| bytes[place].to_vec())).collect();
            assert_eq!(found, wanted, "{layout}, {}", table.name());
            assert!(bytes.starts_with(b"before"), "what was there stays");
            snapshot.multi_get_into(table, &keys, &mut bytes, &mut places).unwrap();
            for ((key, wanted), place) in keys.iter().zip(wanted).zip(places) {
                assert_eq!(place.map(|place| bytes[place].to_vec()), wanted);
                assert_eq!(
                    table.get_with(key, <[u8]>::to_vec).unwrap(),
                    wanted,
                    "{layout}, {}",
                    table.name()
                );
                assert_eq!(snapshot.get_with(table, key, <[u8]>::to_vec).unwrap(), wanted);
            }
        }
    }
}

#[test]
fn who_sees_a_value_may_look_others_up() {
    let db = open(&Env::memory(1));
    let table = db.table("t").open().unwrap();
    table.put("a", "b").unwrap();
    table.put("b", "c").unwrap();
    let seen = table.get_with("a", |next| {
        table.put("d", "e").unwrap();
        (next.to_vec(), table.get_with(next, <[u8]>::to_vec).unwrap())
    });
    assert_eq!(seen.unwrap(), Some((b"b".to_vec(), Some(b"c".to_vec()))));
    assert_eq!(table.get("d").unwrap().as_deref(), Some(&b"e"[..]));
    assert_eq!(table.get_with("none", |_| panic!("there is nothing to see")).unwrap(), None::<()>);
}

#[test]
fn a_value_that_is_lent_takes_no_memory_again() {
    const BYTES: usize = 200_000;
    let db = open(&Env::memory(2));
    let table = db.table("t").open().unwrap();
    table.put("k", vec![7; BYTES]).unwrap();
    db.flush().unwrap();
    let see = || table.get_with("k", <[u8]>::len).unwrap();
    assert_eq!((see(), see()), (Some(BYTES), Some(BYTES)));
    let (lent, seen) = CountingHeap::peak_bytes(see);
    let (copied, value) = CountingHeap::peak_bytes(|| table.get("k").unwrap());
    assert_eq!((seen, value.map(|value| value.len())), (Some(BYTES), Some(BYTES)));
    assert!(lent < BYTES / 2 && copied >= BYTES, "{lent} bytes are taken to lend, {copied} to copy");
    let keys = vec!["k"; 8];
    let (mut bytes, mut places) = (Vec::with_capacity(9 * BYTES), Vec::with_capacity(8));
    table.multi_get_into(&keys, &mut bytes, &mut places).unwrap();
    assert_eq!(places.iter().flatten().count(), 8);
}
