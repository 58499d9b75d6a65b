//! Compaction filters: what merges drop is gone, and nothing older comes back; flushes and snapshots keep all.

use std::path::Path;

use forebay::{Database, Keep, Layout, Options, Table};
use forebay_env::Env;
use forebay_testkit::ordered_layouts;

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone());
    Database::open(Path::new("/db"), options).unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Even numbers were old news in the second round.
fn put_round(table: &Table, round: u8) {
    for number in 0..3_000 {
        let is_old = round == 2 && number % 2 == 0;
        table.put(key(number), [if is_old { b'o' } else { b'n' }, round]).unwrap();
    }
}

#[test]
fn merges_drop_what_the_filter_does_not_keep() {
    for layout in ordered_layouts().into_iter().chain([Layout::wb_tree()]) {
        let env = Env::memory(16);
        let db = open(&env);
        let keep = |_: &[u8], value: &[u8]| if value[0] == b'o' { Keep::Drop } else { Keep::Keep };
        let table = db.table("t").layout(layout).node_bytes(8 << 10).compaction_filter(keep).open().unwrap();
        put_round(&table, 1);
        db.flush().unwrap();
        put_round(&table, 2);
        db.flush().unwrap();
        let snapshot = db.snapshot();
        // More runs, so that there is something to be merged under every layout.
        table.put(key(0), b"o2").unwrap();
        table.put(key(2_999), [b'n', 2]).unwrap();
        table.compact().unwrap();
        for number in 0..3_000 {
            let found = table.get(key(number)).unwrap();
            // Rather than what was there before.
            let expected = (number % 2 == 1).then(|| vec![b'n', 2]);
            assert_eq!(found, expected, "{layout}, {number}");
        }
        let seen = snapshot.get(&table, key(1)).unwrap();
        assert_eq!(seen, Some(vec![b'n', 2]), "{layout}");
        assert_eq!(table.iter().unwrap().count(), 1_500, "{layout}");
        // What is flushed by itself is not asked about.
        let other = db.table("u").layout(layout).compaction_filter(keep).open().unwrap();
        other.put(b"k", b"o").unwrap();
        db.flush().unwrap();
        assert_eq!(other.get(b"k").unwrap().as_deref(), Some(&b"o"[..]), "{layout}");
    }
}

/// Trees that are appended to, and not written anew for long.
#[test]
fn appends_to_trees_drop_what_the_filter_does_not_keep() {
    let env = Env::memory(4);
    let db = open(&env);
    let keep = |_: &[u8], value: &[u8]| if value[0] == b'o' { Keep::Drop } else { Keep::Keep };
    let layout = Layout::jungle(1_000.0);
    let table = db.table("t").layout(layout).node_bytes(160 << 10).compaction_filter(keep).open().unwrap();
    for number in 0..1_000 {
        table.put(key(number), [b'n'; 300]).unwrap();
    }
    table.compact().unwrap();
    for number in 0..1_000 {
        table.put(key(number), [if number % 2 == 0 { b'o' } else { b'n' }; 300]).unwrap();
    }
    db.wait_until_idle().unwrap();
    // Level 0 has eight write buffers at most.
    let old = table.iter().unwrap().filter(|entry| entry.as_ref().unwrap().1[0] == b'o').count();
    assert!(old < 250, "{old} of 500 entries were kept");
}

#[test]
fn merged_operands_are_judged_as_values() {
    struct Append;
    impl forebay::MergeRule for Append {
        fn name(&self) -> &str {
            "append"
        }
        fn merge(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
            out.extend_from_slice(older);
            out.extend_from_slice(newer);
        }
    }
    let env = Env::memory(17);
    let db = open(&env);
    let keep = |_: &[u8], value: &[u8]| if value == b"ab" { Keep::Drop } else { Keep::Keep };
    let table = db.table("t").merge_rule(Append).compaction_filter(keep).open().unwrap();
    for (key, operand) in [(b"x", b"a"), (b"y", b"a"), (b"x", b"b"), (b"y", b"c")] {
        table.merge(key, operand).unwrap();
        db.flush().unwrap();
    }
    assert_eq!(table.get(b"x").unwrap().as_deref(), Some(&b"ab"[..]));
    table.compact().unwrap();
    assert_eq!(table.get(b"x").unwrap(), None);
    assert_eq!(table.get(b"y").unwrap().as_deref(), Some(&b"ac"[..]));
}
