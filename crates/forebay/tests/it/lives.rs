//! How long single entries live: asked and changed; entries that operands are merged into; and a wall clock that is set
//! back.

use std::path::Path;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Layout, Options, Table};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
use forebay_env::{Env, Rng};
use forebay_testkit::{Contents, Merging, Suffix, Wall, ordered_layouts};

const MINUTE: Duration = Duration::from_secs(60);
const MINUTE_MILLISECONDS: u64 = 60_000;

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(2 << 20).write_buffer(16 << 10);
    Database::open(Path::new("/db"), options.env(env.clone())).unwrap()
}

fn layouts() -> impl Iterator<Item = Layout> {
    ordered_layouts().into_iter().chain([Layout::wb_tree()])
}

fn merging(db: &Database, layout: Layout, life: Duration) -> Table {
    let table = db.table("m").layout(layout).node_bytes(4 << 10).merge_rule(Suffix);
    table.time_to_live(life).open().unwrap()
}

#[test]
fn an_entry_that_is_there_gets_another_expiry_and_keeps_its_value() {
    for layout in layouts() {
        let env = Env::memory(21);
        let db = open(&env);
        let table = db.table("t").layout(layout).time_to_live(MINUTE).open().unwrap();
        let now = db.unix_milliseconds();
        for flush in [false, true] {
            let look = || {
                if flush {
                    db.flush().unwrap();
                }
                table.get_with_expiry(b"k").unwrap()
            };
            table.put_until(b"k", b"v", now + 5).unwrap();
            assert_eq!(look(), Some((b"v".to_vec(), Some(now + 5))), "{layout}");
            assert!(table.persist(b"k").unwrap());
            assert_eq!(look(), Some((b"v".to_vec(), None)), "{layout}");
            assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
            let before = db.last_sequence();
            assert!(table.persist(b"k").unwrap());
            assert_eq!(db.last_sequence(), before, "what stays as it is is not written");
            assert!(table.expire(b"k", now + MINUTE_MILLISECONDS).unwrap());
            assert_eq!(look(), Some((b"v".to_vec(), Some(now + MINUTE_MILLISECONDS))), "{layout}");
            let seen = db.snapshot();
            assert!(table.expire(b"k", 0).unwrap(), "{layout}: an entry that ends at once was there");
            assert_eq!(look(), None, "{layout}");
            let then = seen.get_with_expiry(&table, b"k").unwrap();
            assert_eq!(then, Some((b"v".to_vec(), Some(now + MINUTE_MILLISECONDS))));
            assert!(!table.expire(b"k", now + 7).unwrap() && !table.persist(b"k").unwrap());
        }
    }
}

#[test]
fn transactions_and_batches_tell_when_entries_expire() {
    let env = Env::memory(22);
    let db = open(&env);
    let (table, other) =
        (db.table("t").time_to_live(MINUTE).open().unwrap(), merging(&db, Layout::wb_tree(), MINUTE));
    let now = db.unix_milliseconds();
    let mut batch = Batch::new();
    batch.put_until(&table, b"a", b"1", now + 100);
    batch.merge_until(&other, b"a", b"x", now + 100);
    batch.merge_until(&other, b"a", b"y", now + 100);
    db.commit(batch, Durability::Os).unwrap();
    assert_eq!(other.get_with_expiry(b"a").unwrap(), Some((b"xy".to_vec(), Some(now + 100))));
    db.transaction(|tx| {
        let found = tx.get_with_expiry(&table, b"a")?;
        assert_eq!(found, Some((b"1".to_vec(), Some(now + 100))));
        assert!(tx.expire(&table, b"a", now + 200)? && !tx.persist(&table, b"b")?);
        assert_eq!(tx.get_with_expiry(&table, b"a")?, Some((b"1".to_vec(), Some(now + 200))));
        tx.persist(&other, b"a").map(drop)
    })
    .unwrap();
    assert_eq!(table.get_with_expiry(b"a").unwrap(), Some((b"1".to_vec(), Some(now + 200))));
    assert_eq!(other.get_with_expiry(b"a").unwrap(), Some((b"xy".to_vec(), None)));
    // Who comes between is told of.
    let mut late = db.begin();
    assert!(late.persist(&table, b"a").unwrap());
    table.put(b"a", b"2").unwrap();
    assert!(matches!(late.commit(), Err(forebay::Error::Conflict(_))));
}

/// Where it has to be read again, as here, the expiry is part of what was read.
#[test]
fn an_expiry_that_others_have_changed_is_a_conflict_once_flushed() {
    for layout in layouts() {
        let db = open(&Env::memory(29));
        let plain = db.table("t").layout(layout).time_to_live(MINUTE).open().unwrap();
        let end = db.unix_milliseconds() + MINUTE_MILLISECONDS;
        for table in [plain, merging(&db, layout, MINUTE)] {
            table.put_until(b"k", b"v", end).unwrap();
            for is_changed in [true, false] {
                let mut late = db.begin();
                late.get_with_expiry(&table, b"k").unwrap();
                late.put(&table, b"other", b"v");
                if is_changed {
                    assert!(table.persist(b"k").unwrap());
                }
                table.put(b"beside", b"v").unwrap();
                db.flush().unwrap();
                let outcome = late.commit();
                let is_conflict = matches!(outcome, Err(forebay::Error::Conflict(_)));
                assert_eq!(is_conflict, is_changed, "{layout}: {outcome:?}");
            }
        }
    }
}

#[test]
fn an_operand_goes_into_the_entry_that_expires_when_it_does() {
    for layout in layouts() {
        let env = Env::memory(23);
        let db = open(&env);
        let table = merging(&db, layout, Duration::MAX);
        let end = db.unix_milliseconds() + MINUTE_MILLISECONDS;
        table.merge_until(b"k", b"a", end).unwrap();
        db.flush().unwrap();
        table.merge_until(b"k", b"b", end).unwrap();
        assert_eq!(table.get_with_expiry(b"k").unwrap(), Some((b"ab".to_vec(), Some(end))), "{layout}");
        assert_eq!(table.merge_with_ttl(b"k", b"c", MINUTE * 9).unwrap(), Some(end), "its time goes on");
        assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"abc"[..]), "{layout}");
        table.compact().unwrap();
        // Another end is another entry.
        table.merge(b"k", b"d").unwrap();
        assert_eq!(table.get_with_expiry(b"k").unwrap(), Some((b"d".to_vec(), None)), "{layout}");
        table.merge_until(b"k", b"e", end).unwrap();
        table.merge_until(b"k", b"f", end).unwrap();
        env.jobs.advance(MINUTE / 2);
        table.compact().unwrap();
        assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"ef"[..]), "{layout}");
        env.jobs.advance(MINUTE / 2);
        assert_eq!(table.get(b"k").unwrap(), None, "{layout}");
        assert_eq!(table.iter().unwrap().count(), 0, "{layout}");
        let next = table.merge_with_ttl(b"k", b"g", MINUTE).unwrap();
        assert_eq!(next, Some(db.unix_milliseconds() + MINUTE_MILLISECONDS));
        table.compact().unwrap();
        assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"g"[..]), "{layout}: what was over came back");
    }
}

#[test]
fn what_is_merged_without_more_lives_to_the_end_of_its_window() {
    let env = Env::memory(24);
    let db = open(&env);
    let table = merging(&db, Layout::wb_tree(), MINUTE);
    let end = (db.unix_milliseconds() / MINUTE_MILLISECONDS + 1) * MINUTE_MILLISECONDS;
    table.put(b"k", b"a").unwrap();
    env.jobs.advance(Duration::from_millis(1));
    table.merge(b"k", b"b").unwrap();
    assert_eq!(table.get_with_expiry(b"k").unwrap(), Some((b"ab".to_vec(), Some(end))));
    env.jobs.advance(MINUTE);
    assert_eq!(table.get(b"k").unwrap(), None);
    table.merge(b"k", b"c").unwrap();
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"c"[..]));
}

/// However lists are merged, and whenever: entries are what the model has, which merges nothing but in order.
#[test]
fn the_order_of_merges_of_lists_makes_no_difference() {
    for (number, layout) in layouts().enumerate() {
        let seed = 100 + number as u64;
        let (env, mut rng) = (Env::memory(seed), Rng::new(seed));
        let db = open(&env);
        let table = merging(&db, layout, Duration::MAX);
        let mut model = Contents::new();
        for step in 0..2_000_u32 {
            let (key, value) = (vec![rng.below(40) as u8], step.to_le_bytes());
            let now = db.unix_milliseconds();
            let end = [u64::MAX, now / 50 * 50 + 50, now + rng.below(80)][rng.index(3)];
            let stored = [&value[..], &end.to_le_bytes()].concat();
            match rng.below(30) {
                0..3 => {
                    table.put_until(&key, value, end).unwrap();
                    model.insert(key, stored);
                }
                3 => {
                    table.delete(&key).unwrap();
                    model.remove(&key);
                }
                4 => table.compact().unwrap(),
                5 => db.flush().unwrap(),
                6 => env.jobs.step_some(rng.index(200)),
                7 => env.jobs.advance(Duration::from_millis(rng.below(20))),
                _ => {
                    table.merge_until(&key, value, end).unwrap();
                    let merged = Merging::Lives.merged(&stored, model.get(&key).map(Vec::as_slice));
                    model.insert(key, merged);
                }
            }
            let (key, now) = (vec![rng.below(40) as u8], db.unix_milliseconds());
            let wanted = model.get(&key).and_then(|stored| {
                let (value, end) = stored.split_last_chunk().unwrap();
                let end = u64::from_le_bytes(*end);
                (end > now).then(|| (value.to_vec(), (end != u64::MAX).then_some(end)))
            });
            let found = table.get_with_expiry(&key).unwrap();
            assert_eq!(found, wanted, "seed {seed}, {layout}, step {step}");
            if step % 100 == 0 {
                let now = db.unix_milliseconds();
                let mut all: Vec<_> = table.iter().unwrap().map(Result::unwrap).collect();
                all.sort();
                let wanted: Vec<_> = model
                    .iter()
                    .filter_map(|(key, stored)| {
                        let (value, end) = stored.split_last_chunk().unwrap();
                        (u64::from_le_bytes(*end) > now).then(|| (key.clone(), value.to_vec()))
                    })
                    .collect();
                assert_eq!(all, wanted, "seed {seed}, {layout}, step {step}");
            }
        }
    }
}

#[test]
fn a_clock_that_is_set_back_brings_no_entry_back() {
    for layout in layouts() {
        let (fs, wall) = (MemoryFs::new(), Wall::new());
        let env = wall.env(fs.clone(), 25, None);
        let db = open(&env);
        let table = db.table("t").layout(layout).time_to_live(Duration::MAX).open().unwrap();
        table.put(b"k", b"beneath").unwrap();
        db.flush().unwrap();
        table.put_with_ttl(b"k", b"above", MINUTE).unwrap();
        table.put_with_ttl(b"alone", b"v", MINUTE).unwrap();
        wall.jump(2 * MINUTE_MILLISECONDS as i64);
        assert_eq!(table.get(b"k").unwrap(), None, "{layout}");
        let late = db.unix_milliseconds();
        wall.jump(-90_000_000);
        let gone = |table: &Table, what: &str| {
            for key in [&b"k"[..], b"alone"] {
                assert_eq!(table.get(key).unwrap(), None, "{layout}, {what}");
            }
            assert_eq!(table.iter().unwrap().count(), 0, "{layout}, {what}");
        };
        gone(&table, "set back");
        assert!(db.unix_milliseconds() >= late);
        // What is put now lives as long as it should.
        table.put_with_ttl(b"new", b"v", MINUTE).unwrap();
        env.jobs.advance(MINUTE - Duration::from_millis(1));
        assert!(table.contains_key(b"new").unwrap(), "{layout}");
        env.jobs.advance(Duration::from_millis(1));
        gone(&table, "a minute later");
        drop(table);
        db.close().unwrap();
        let env = wall.env(fs.clone(), 26, Some(&env));
        assert!(env.clock.unix_milliseconds() < late, "the machine's clock is behind");
        let db = open(&env);
        let table = db.table("t").open().unwrap();
        assert!(db.unix_milliseconds() >= late, "{layout}");
        gone(&table, "opened again");
        table.compact().unwrap();
        gone(&table, "merged");
    }
}

/// The sync of the time at closing failed, and `CURRENT` said that the manifest was closed without it: it did not open.
#[test]
fn a_disk_that_is_full_as_the_time_is_told_at_closing_leaves_what_opens() {
    for rule in ["sync *.manifest all no-space", "write *.manifest all no-space"] {
        let (inner, wall) = (MemoryFs::new(), Wall::new());
        let fs = FaultyFs::new(inner.clone());
        let env = wall.env(fs.clone(), 30, None);
        let db = open(&env);
        let table = db.table("t").time_to_live(MINUTE).open().unwrap();
        table.put(b"k", b"v").unwrap();
        wall.jump(1);
        fs.rule(rule).unwrap();
        let closed = db.close();
        assert!(fs.fired() > 0 && closed.is_ok() != rule.starts_with("sync"), "{rule}: {closed:?}");
        drop(table);
        let env = wall.env(inner, 31, Some(&env));
        let db = open(&env);
        assert_eq!(db.table("t").open().unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]), "{rule}");
    }
}

#[test]
fn after_a_crash_it_is_as_late_as_it_was_a_minute_before() {
    let (fs, wall) = (CrashFs::new(27), Wall::new());
    let env = wall.env(fs.clone(), 27, None);
    let db = open(&env);
    let table = db.table("t").time_to_live(Duration::MAX).open().unwrap();
    table.put_with_ttl(b"k", b"v", MINUTE).unwrap();
    db.sync().unwrap();
    env.jobs.advance(2 * MINUTE);
    env.jobs.step_some(1_000);
    let late = db.unix_milliseconds();
    let left = fs.power_cycle();
    env.jobs.abandon();
    drop((table, db));
    wall.jump(-90_000_000);
    let env = wall.env(left, 28, Some(&env));
    let db = open(&env);
    assert!(db.unix_milliseconds() + MINUTE_MILLISECONDS >= late);
    assert_eq!(db.table("t").open().unwrap().get(b"k").unwrap(), None);
}
