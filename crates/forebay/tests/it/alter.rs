//! Options of tables that are changed in use.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use forebay::{Codec, Database, Error, Layout, Options, Table};
use forebay_env::fs::{CrashFs, MemoryFs};
use forebay_env::{Env, Rng};
use forebay_testkit::{Suffix, ordered_layouts};

fn open(env: &Env) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone());
    Database::open(Path::new("/db"), options).unwrap()
}

fn layouts() -> impl Iterator<Item = Layout> {
    [Layout::wb_tree()].into_iter().chain(ordered_layouts())
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Some puts and deletes, of values that compress.
fn write(table: &Table, model: &mut Model, rng: &mut Rng) {
    for _ in 0..1500 {
        let key = rng.below(2000).to_be_bytes().to_vec();
        if rng.chance(20) {
            table.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = format!("{:0>60}", rng.below(1000)).into_bytes();
            table.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

fn assert_same(table: &Table, model: &Model, what: &str) {
    for number in 0..2000_u64 {
        let key = number.to_be_bytes();
        assert_eq!(table.get(key).unwrap().as_ref(), model.get(&key[..]), "{what}, key {number}");
    }
}

#[test]
fn what_was_written_before_and_after_is_read_under_every_layout() {
    for (seed, layout) in layouts().enumerate() {
        let env = Env::simulated(CrashFs::new(seed as u64), seed as u64);
        let (mut rng, mut model) = (Rng::new(seed as u64), Model::new());
        let db = open(&env);
        let table = db.table("t").layout(layout).node_bytes(8 << 10).open().unwrap();
        write(&table, &mut model, &mut rng);
        for round in 0..6 {
            let what = format!("{layout}, seed {seed}, round {round}");
            let (codec, name) = [(Codec::Lz4, "lz4"), (Codec::None, "none")][round % 2];
            let mut asked = db.table("t").codec(codec).node_bytes(4 << 10 << rng.below(3));
            if !layout.grows_trees() {
                asked = asked.filter_bits_per_key([0, 12, 4][round % 3]);
            }
            asked.fan_out(4 + rng.index(12)).lists_max(2 + rng.index(20)).alter().unwrap();
            assert_eq!(db.describe().tables[0].codec, name, "{what}");
            write(&table, &mut model, &mut rng);
            assert_same(&table, &model, &what);
        }
        db.wait_until_idle().unwrap();
        assert_same(&table, &model, "at rest");
        drop(table);
        db.close().unwrap();
        let db = open(&env);
        db.table("t").codec(Codec::None).open().unwrap();
        let refused = db.table("t").codec(Codec::Lz4).open().unwrap_err().to_string();
        assert!(refused.contains("has codec None, not Lz4") && refused.contains("alter"), "{refused}");
        let table = db.table("t").open().unwrap();
        assert_same(&table, &model, "opened again");
        table.compact().unwrap();
        assert_same(&table, &model, "compacted");
        db.verify(&mut |_, _| ()).unwrap();
    }
}

#[test]
fn a_crash_leaves_the_old_options_or_the_new() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..30 {
        let fs = CrashFs::new(seed);
        let env = Env::simulated(fs.clone(), seed);
        let mut model = Model::new();
        let db = open(&env);
        let table = db.table("t").open().unwrap();
        write(&table, &mut model, &mut Rng::new(seed));
        db.sync().unwrap();
        fs.crash_at(fs.operations() + 1 + seed % 6);
        let outcome = db.table("t").codec(Codec::Lz4).max_space_amplification(2.0).alter();
        drop((table, db));
        let db = open(&Env::simulated(fs.power_cycle(), seed));
        let table = db.table("t").open().unwrap();
        assert_same(&table, &model, "after a crash");
        let found = &db.describe().tables[0];
        let is_new = found.codec == "lz4";
        assert_eq!(found.max_space_amplification, is_new.then_some(2.0), "seed {seed}: both or none");
        assert!(is_new || outcome.is_err(), "seed {seed}: what is acknowledged stays");
        *(if is_new { &mut new } else { &mut old }) += 1;
    }
    assert!(old > 0 && new > 0, "{old} with the old, {new} with the new");
}

#[test]
fn new_options_count_for_what_is_written_from_then_on() {
    let env = Env::simulated(MemoryFs::new(), 1);
    let db = open(&env);
    let table = db.table("t").node_bytes(64 << 10).filter_bits_per_key(0).open().unwrap();
    write(&table, &mut Model::new(), &mut Rng::new(1));
    table.compact().unwrap();
    let bytes = |db: &Database| db.stats().tables[0].space.live_file_bytes;
    let reads = |db: &Database| {
        let before = db.device_reads();
        (0..500_u64).for_each(|number| assert_eq!(table.get((number << 32).to_be_bytes()).unwrap(), None));
        db.device_reads() - before
    };
    let (long, many) = (bytes(&db), reads(&db));
    db.table("t").codec(Codec::Lz4).filter_bits_per_key(16).alter().unwrap();
    write(&table, &mut Model::new(), &mut Rng::new(1));
    table.compact().unwrap();
    assert!(bytes(&db) * 2 < long, "{} bytes were {long}", bytes(&db));
    let few = reads(&db);
    assert!(few * 10 < many, "{few} reads were {many}");
}

#[test]
fn a_bound_and_an_interval_come_and_go() {
    let db = open(&Env::simulated(MemoryFs::new(), 1));
    let _table = db.table("t").open().unwrap();
    let told = || {
        let table = &db.describe().tables[0];
        (table.max_space_amplification, table.reclaim_interval_seconds)
    };
    let minute = Duration::from_secs(60);
    db.table("t").max_space_amplification(1.5).reclaim_interval(minute).alter().unwrap();
    assert_eq!(told(), (Some(1.5), Some(60)));
    db.table("t").max_space_amplification(f64::INFINITY).alter().unwrap();
    assert_eq!(told(), (None, Some(60)));
    db.table("t").reclaim_interval(Duration::MAX).alter().unwrap();
    assert_eq!(told(), (None, None));
}

/// It was so large that it had become none at all, and writers waited for ever.
#[test]
fn a_bound_may_be_as_large_as_numbers_go() {
    let db = open(&Env::simulated(MemoryFs::new(), 1));
    let table = db.table("t").open().unwrap();
    let mut model = Model::new();
    write(&table, &mut model, &mut Rng::new(1));
    let _held = db.snapshot();
    db.table("t").max_space_amplification(f64::MAX).node_bytes(u64::MAX).alter().unwrap();
    write(&table, &mut model, &mut Rng::new(2));
    table.compact().unwrap();
    assert_same(&table, &model, "under a bound of all bytes");
}

/// What was deleted went with the next round of the old interval.
#[test]
fn a_shorter_interval_counts_at_once() {
    let env = Env::simulated(MemoryFs::new(), 1);
    let db = open(&env);
    // One that merges nothing by itself.
    let lazy = || db.table("t").layout(Layout::no_merge());
    let table = lazy().reclaim_interval(Duration::from_secs(1 << 20)).open().unwrap();
    write(&table, &mut Model::new(), &mut Rng::new(1));
    table.compact().unwrap();
    table.iter().unwrap().for_each(|entry| table.delete(entry.unwrap().0).unwrap());
    db.flush().unwrap();
    let pass_seconds = |seconds| {
        for _ in 0..seconds {
            env.jobs.advance(Duration::from_secs(1));
            env.jobs.step_some(3_000);
        }
    };
    pass_seconds(20);
    assert!(db.stats().list_records > 0, "the interval is long");
    lazy().reclaim_interval(Duration::from_secs(10)).alter().unwrap();
    pass_seconds(20);
    assert_eq!(db.stats().list_records, 0, "nothing is left of what was deleted");
}

#[test]
fn what_older_records_could_not_be_read_with_is_refused() {
    let db = open(&Env::simulated(MemoryFs::new(), 1));
    let _plain = db.table("plain").open().unwrap();
    let _dying = db.table("dying").time_to_live(Duration::from_secs(9)).open().unwrap();
    let _apart = db.table("apart").values_apart(100).open().unwrap();
    let _jungle = db.table("jungle").layout(Layout::jungle(3.0)).open_ordered().unwrap();
    let refused = |outcome: Result<(), Error>, words: &[&str]| {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
    };
    let second = Duration::from_secs(1);
    refused(db.table("plain").time_to_live(second).alter(), &["`plain`", "time_to_live"]);
    refused(db.table("plain").values_apart(100).alter(), &["`plain`", "values_apart"]);
    refused(db.table("apart").max_space_amplification(2.0).alter(), &["`apart`", "values_apart"]);
    refused(db.table("jungle").filter_bits_per_key(3).alter(), &["`jungle`", "filter_bits_per_key"]);
    refused(db.table("plain").layout(Layout::leveling(4)).alter(), &["`plain`", "set_layout"]);
    let merging = || db.table("merging").merge_rule(Suffix).time_to_live(second);
    let _merging = merging().open().unwrap();
    refused(db.table("merging").time_to_live(2 * second).alter(), &["`merging`", "time_to_live", "operands"]);
    merging().codec(Codec::Lz4).alter().unwrap();
    refused(db.table("plain").merge_rule(Suffix).alter(), &["`plain`", "rule"]);
    refused(db.table("plain").fan_out(0).alter(), &["`plain`", "fan_out"]);
    refused(db.table("plain").compaction_filter(|_, _| forebay::Keep::Keep).alter(), &["filter"]);
    refused(db.table("").codec(Codec::Lz4).alter(), &["name"]);
    assert!(matches!(db.table("none").codec(Codec::Lz4).alter(), Err(Error::NotFound(_))));
    db.table("dying").time_to_live(second).alter().unwrap();
    db.table("dying").time_to_live(second).open().unwrap();
    db.table("apart").values_apart(1000).alter().unwrap();
}
