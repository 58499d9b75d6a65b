//! Every engine behind the seam, held against a sorted map: what it is asked, it must answer like the map.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test's helpers fail loudly, and look at the engines' own files"
)]

mod script;

use std::collections::BTreeMap;
use std::fs::read_dir;
use std::path::Path;
use std::time::Duration;

use forebay_bench::{Adds, Batch, Durability, Engine, Kind, LeveledOptions, Setup, TableOptions};
use forebay_bench_rivals::KINDS;
use script::{KEY_BYTES, Script, VALUE_BYTES, put};

const MIB: u64 = 1 << 20;

/// The kinds that take any workload.
fn kinds() -> impl Iterator<Item = &'static dyn Kind> {
    KINDS.into_iter().filter(|kind| kind.adds() != Adds::Only)
}

fn setup(durability: Durability) -> Setup {
    Setup {
        memory_bytes: 16 * MIB,
        durability,
        sync_interval: Duration::from_millis(5),
        ordered: true,
        adds: false,
        transacts: false,
        key_bytes: KEY_BYTES,
        value_bytes: VALUE_BYTES,
        records_expected: 100_000,
        background_threads: 2,
        filter_bits_per_key: None,
        direct_io: false,
        writers: 1,
        forebay: TableOptions::default(),
        leveled: LeveledOptions::default(),
    }
}

fn kind(name: &str) -> &'static dyn Kind {
    KINDS.into_iter().find(|kind| kind.name() == name).unwrap()
}

fn open(kind: &dyn Kind, dir: &Path, setup: &Setup) -> Box<dyn Engine> {
    kind.open(dir, setup).unwrap_or_else(|reason| panic!("{}: {reason}", kind.name()))
}

fn run_scripts(setup: &Setup, acts: usize) {
    for (seed, kind) in kinds().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut script = Script::new(kind, dir.path(), setup, seed as u64 + 1);
        for _ in 0..acts {
            script.act();
        }
        script.finish();
    }
}

#[test]
fn answers_like_a_map_with_the_log_in_the_kernel() {
    run_scripts(&setup(Durability::Os), 400);
}

#[test]
fn answers_like_a_map_without_a_log() {
    run_scripts(&setup(Durability::Memory), 400);
}

#[test]
fn answers_like_a_map_with_every_write_synced() {
    run_scripts(&setup(Durability::Disk), 60);
}

#[test]
fn answers_like_a_map_with_other_filters_and_direct_io() {
    let setup = Setup { filter_bits_per_key: Some(14), direct_io: true, ..setup(Durability::Os) };
    run_scripts(&setup, 60);
}

#[test]
fn answers_like_a_map_where_filters_do_not_fit() {
    run_scripts(&Setup { records_expected: 1 << 30, ..setup(Durability::Os) }, 60);
}

/// Enough for several tables on several levels of all engines that have them.
#[test]
fn a_drained_load_is_all_there() {
    let setup = Setup { sync_interval: Duration::from_secs(1), ..setup(Durability::Os) };
    for kind in kinds() {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(kind, dir.path(), &setup);
        let mut model = BTreeMap::new();
        let mut random = script::Random(99);
        for _ in 0..400 {
            let batch: Vec<(u64, u64)> = (0..1000).map(|_| (random.below(300_000), random.next())).collect();
            put(engine.as_mut(), &batch);
            model.extend(batch);
        }
        engine.drain().unwrap();
        script::check_all(kind, engine.as_mut(), &model);
        engine.close().unwrap();
        let mut engine = open(kind, dir.path(), &setup);
        script::check_all(kind, engine.as_mut(), &model);
        engine.close().unwrap();
    }
}

/// Two threads that write at the same time: all of it is there.
#[test]
fn several_writers_write_what_one_would() {
    let setup = Setup { writers: 2, ..setup(Durability::Disk) };
    for name in ["rocksdb-leveled", "rocksdb-universal", "leveldb", "fjall"] {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(kind(name), dir.path(), &setup);
        let batches: Vec<Vec<(u64, u64)>> =
            (0..40).map(|batch| (0..50).map(|number| (50 * batch + number, batch)).collect()).collect();
        std::thread::scope(|scope| {
            for half in batches.chunks(20) {
                let mut writer = engine.writer().unwrap();
                scope.spawn(move || half.iter().for_each(|batch| script::put_by(writer.as_mut(), batch)));
            }
        });
        let model: BTreeMap<u64, u64> = batches.into_iter().flatten().collect();
        script::check_all(kind(name), engine.as_mut(), &model);
        engine.close().unwrap();
    }
}

#[test]
fn a_drained_memtable_is_a_table() {
    for (name, extension) in [("rocksdb-leveled", "sst"), ("rocksdb-universal", "sst"), ("leveldb", "ldb")] {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(kind(name), dir.path(), &setup(Durability::Os));
        put(engine.as_mut(), &[(1, 1), (2, 2)]);
        assert_eq!(files(dir.path(), extension), 0, "{name}");
        engine.drain().unwrap();
        assert_eq!(files(dir.path(), extension), 1, "{name}");
        engine.close().unwrap();
    }
}

fn files(dir: &Path, extension: &str) -> usize {
    let names = read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|found| found == extension)).count()
}

#[test]
fn rocksdb_is_opened_with_the_options_that_are_told() {
    let setup = setup(Durability::Os);
    for name in ["rocksdb-leveled", "rocksdb-universal", "rocksdb-blob"] {
        let dir = tempfile::tempdir().unwrap();
        open(kind(name), dir.path(), &setup).close().unwrap();
        let newest = read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let newest = newest.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
        let kept = std::fs::read_to_string(newest).unwrap();
        for line in kind(name).options(&setup).lines() {
            let (name, value) = line.split_once(" = ").unwrap();
            let name = name.rsplit('.').next().unwrap();
            let is_kept = kept
                .lines()
                .filter_map(|line| line.trim().split_once('='))
                .any(|(kept_name, kept_value)| kept_name == name && holds(kept_value, value));
            // Parts of a cache are not kept, universal options are kept in one line, and opening is no option.
            let is_part = kept.contains(&format!("{name}={value};"));
            let is_told_only = ["capacity", "num_shard_bits", "high_pri_pool_ratio"].contains(&name);
            assert!(is_kept || is_part || is_told_only, "{line} is not in:\n{kept}");
        }
    }
}

/// Whether RocksDB's way to write a value means ours.
fn holds(kept: &str, told: &str) -> bool {
    match (kept.parse::<f64>(), told.parse::<f64>()) {
        (Ok(kept), Ok(told)) => (kept - told).abs() < 1e-9,
        _ => kept == told,
    }
}

#[test]
fn options_are_sorted_lines() {
    for kind in KINDS {
        let text = kind.options(&setup(Durability::Os));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.is_sorted(), "{text}");
        assert!(lines.iter().all(|line| line.contains(" = ")), "{text}");
        assert!(kind.version().starts_with(|first: char| first.is_ascii_digit()), "{}", kind.version());
    }
}

#[test]
fn a_refusal_is_in_the_engine_s_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::copy("Cargo.toml", &file).unwrap();
    for kind in kinds() {
        let reason = kind.open(&file, &setup(Durability::Os)).err().map(|reason| reason.to_string());
        assert!(reason.is_some_and(|reason| reason.len() > 5), "{}", kind.name());
    }
}

#[test]
fn a_batch_of_none_is_none() {
    for kind in kinds() {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(kind, dir.path(), &setup(Durability::Os));
        engine.put(Batch { bytes: &[], key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES }).unwrap();
        engine.delete(&[], KEY_BYTES).unwrap();
        engine.multi_get(&[], KEY_BYTES, &mut |_, _| panic!("nobody asked")).unwrap();
        script::check_all(kind, engine.as_mut(), &BTreeMap::new());
        engine.close().unwrap();
    }
}

/// Keys are digits, so that they are lines; each comes several times in a batch.
#[test]
fn counts_are_added_up() {
    let setup = Setup { adds: true, ordered: false, key_bytes: 4, value_bytes: 8, ..setup(Durability::Os) };
    for kind in KINDS.into_iter().filter(|kind| kind.adds() != Adds::No) {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(kind, dir.path(), &setup);
        let mut model: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        let mut random = script::Random(7);
        for _ in 0..200 {
            let keys: Vec<Vec<u8>> =
                (0..50).map(|_| format!("{:04}", random.below(900)).into_bytes()).collect();
            let bytes: Vec<u8> =
                keys.iter().flat_map(|key| [&key[..], &1u64.to_le_bytes()].concat()).collect();
            engine.add(Batch { bytes: &bytes, key_bytes: 4, value_bytes: 8 }).unwrap();
            keys.into_iter().for_each(|key| *model.entry(key).or_default() += 1);
            // A sort is read at the end only.
            let mut value = Vec::new();
            let asked = b"0007";
            if let Ok(found) = engine.get(asked, &mut value) {
                let expected = model.get(&asked[..]).map(|count| count.to_le_bytes().to_vec());
                assert_eq!(found.then_some(value), expected, "{}", kind.name());
            }
        }
        let mut found = BTreeMap::new();
        let mut each = |key: &[u8], value: &[u8]| {
            let count = u64::from_le_bytes(value.try_into().unwrap());
            assert!(found.insert(key.to_vec(), count).is_none());
        };
        engine.for_each(&mut each).unwrap();
        assert_eq!(found, model, "{}", kind.name());
        engine.close().unwrap();
    }
}
