//! Whatever is damaged of a database, what is intact is copied to a new one, and what is not is told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use forebay::aggregate::functions::Count;
use forebay::limits::VALUE_BYTES_MAX;
use forebay::{Batch, Codec, Database, Durability, Layout, MergeRule, Options, Rescue, RescueReport};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Env, FileSystem, Rng};
use forebay_testkit::{Suffix, ordered_layouts};

type Files = BTreeMap<PathBuf, Vec<u8>>;

const KEYS: u32 = 300;

fn key(number: u32) -> Vec<u8> {
    format!("key {number:05}").into_bytes()
}

fn value(number: u32, round: u32) -> Vec<u8> {
    format!("value {number} of round {round} {:32}", "").into_bytes()
}

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone())
}

/// Each key twice, the first time in files, the second time partly in the log. No key is ever deleted, so each value
/// that is found is one of two.
fn sample(layout: Layout) -> Files {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 3);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").layout(layout).node_bytes(4 << 10).codec(Codec::None).open().unwrap();
    let suffixes = db.table("suffixes").merge_rule(Suffix).open().unwrap();
    let hits = db.aggregator("hits", Count).open().unwrap();
    for round in 0..2 {
        for number in (0..KEYS).filter(|number| round == 0 || number.is_multiple_of(3)) {
            let mut batch = Batch::new();
            batch.put(&table, key(number), value(number, round));
            if number < 20 {
                batch.merge(&suffixes, key(number), b"x");
                batch.add(&hits, key(number), ());
            }
            hits.commit(batch, Durability::Os, b"so far").unwrap();
        }
        if round == 0 {
            table.compact().unwrap();
        }
    }
    drop((table, suffixes, hits));
    db.close().unwrap();
    fs.snapshot_files()
}

fn env_of(files: &Files) -> (Env, std::sync::Arc<MemoryFs>) {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("/db")).unwrap();
    files.iter().for_each(|(path, bytes)| fs.replace_file(path, bytes.clone()));
    (Env::simulated(fs.clone(), 4), fs)
}

/// Rescues, and gives the report, how many keys are there, and how many with their newest value. No value may be one
/// that was never written.
fn rescue(files: &Files) -> forebay::Result<(RescueReport, usize, usize)> {
    let (env, fs) = env_of(files);
    let rescued = Rescue::new(options(&env)).merge_rule(Suffix).run("/db", "/new", &mut |_, _| ());
    let unchanged = fs.snapshot_files();
    assert!(
        files.iter().all(|(path, bytes)| unchanged.get(path) == Some(bytes)),
        "the damaged one was changed"
    );
    let report = rescued?;
    let db = Database::open("/new", options(&env)).unwrap();
    let report_of_new = db.verify(&mut |_, _| ()).unwrap();
    assert_eq!(report_of_new.problems, Vec::<String>::new());
    let (mut there, mut newest) = (0, 0);
    if let Ok(table) = db.table("t").existing(true).open() {
        for number in 0..KEYS {
            let Some(found) = table.get(key(number)).unwrap() else { continue };
            let last = u32::from(number.is_multiple_of(3));
            assert!((0..=last).any(|round| found == value(number, round)), "key {number} has {found:?}");
            there += 1;
            newest += usize::from(found == value(number, last));
        }
        assert_eq!(table.iter().unwrap().count(), there);
    }
    Ok((report, there, newest))
}

fn layouts() -> Vec<Layout> {
    [vec![Layout::wb_tree()], ordered_layouts()].concat()
}

#[test]
fn what_is_whole_is_rescued_whole() {
    for layout in layouts() {
        let (report, there, newest) = rescue(&sample(layout)).unwrap();
        assert_eq!((there, newest), (KEYS as usize, KEYS as usize), "{layout}");
        assert!(report.damage.is_empty(), "{layout}: {:?}", report.damage);
        assert!(report.tables.iter().all(|table| table.left_out.is_none()));
    }
}

#[test]
fn states_operands_and_metadata_are_rescued_with_their_tables() {
    let (env, _) = env_of(&sample(Layout::leveling(10)));
    Rescue::new(options(&env)).merge_rule(Suffix).run("/db", "/new", &mut |_, _| ()).unwrap();
    let db = Database::open("/new", options(&env)).unwrap();
    let suffixes = db.table("suffixes").merge_rule(Suffix).open().unwrap();
    assert_eq!(suffixes.get(key(3)).unwrap().as_deref(), Some(&b"xx"[..]));
    let hits = db.aggregator("hits", Count).open().unwrap();
    assert_eq!((hits.get(key(3)).unwrap(), hits.get(key(4)).unwrap()), (Some(2), Some(1)));
    assert_eq!(hits.metadata().unwrap().as_deref(), Some(&b"so far"[..]));
}

#[test]
fn a_table_whose_rule_nobody_knows_is_left_out_and_told() {
    let (env, _) = env_of(&sample(Layout::leveling(10)));
    let report = Rescue::new(options(&env)).run("/db", "/new", &mut |_, _| ()).unwrap();
    let left: Vec<_> = report.tables.iter().filter(|table| table.left_out.is_some()).collect();
    assert!(left.iter().any(|table| table.name == "suffixes"), "{:?}", report.tables);
    assert!(report.tables.iter().any(|table| table.name == "t" && table.records == u64::from(KEYS)));
}

/// A page has about fifty records, a node of a tree as many; a frame has one batch. What is next to the damage stays.
#[test]
fn one_byte_anywhere_takes_little_else_with_it_and_is_told() {
    let mut rng = Rng::new(11);
    for layout in layouts() {
        let whole = sample(layout);
        for (path, bytes) in &whole {
            let name = path.file_name().unwrap().to_str().unwrap();
            for _ in 0..6 {
                let mut files = whole.clone();
                let at = rng.index(bytes.len().max(1));
                let Some(byte) = files.get_mut(path).unwrap().get_mut(at) else { continue };
                *byte ^= 1 << rng.index(8);
                let rescued = rescue(&files);
                if name.ends_with(".manifest") && rescued.is_err() {
                    continue;
                }
                let (report, there, newest) =
                    rescued.unwrap_or_else(|error| panic!("{layout} {name} {at}: {error}"));
                if name.ends_with(".manifest") {
                    assert!(!report.damage.is_empty(), "{layout} {name} {at}");
                    continue;
                }
                let lost = KEYS as usize - newest;
                assert!(
                    lost < 120,
                    "{layout}: byte {at} of {name} took {lost} records; {there} are there: {report:?}"
                );
                assert!(
                    lost == 0 || !report.damage.is_empty(),
                    "{layout}: byte {at} of {name} took {lost} in silence"
                );
            }
        }
    }
}

#[test]
fn a_file_that_is_gone_takes_its_own_records_only() {
    ["tiering:t=4", "jungle:c=2,t=3", "range-merge:c=1.5"].into_iter().for_each(lose_each_file);
}

/// A walk of a tree whose file is gone ended in an error at each place, each a byte longer than the last, without end.
fn lose_each_file(layout: &str) {
    let whole = sample(layout.parse().unwrap());
    for path in whole.keys() {
        let mut files = whole.clone();
        files.remove(path);
        let name = path.file_name().unwrap().to_str().unwrap();
        match rescue(&files) {
            Ok((report, there, newest)) => {
                let is_told = report.damage.iter().any(|place| place.file.as_ref() == Some(path));
                assert!(newest == KEYS as usize || is_told || name.ends_with(".log"), "{name}: {report:?}");
                assert!(there > 0 || name.ends_with(".list") || name.ends_with(".tree"), "{name}");
            }
            Err(error) => assert!(name.ends_with(".manifest"), "{name}: {error}"),
        }
    }
}

#[test]
fn damage_names_file_offset_table_and_keys() {
    let layout: Layout = "leveling".parse().unwrap();
    let mut files = sample(layout);
    let lists: BTreeSet<PathBuf> =
        files.keys().filter(|path| path.extension().is_some_and(|e| e == "list")).cloned().collect();
    lists.iter().for_each(|path| files.get_mut(path).unwrap()[100] ^= 1);
    let (report, ..) = rescue(&files).unwrap();
    let place = report.damage.iter().find(|place| place.table.as_deref() == Some("t") && place.low.is_some());
    let place = place.unwrap_or_else(|| panic!("{:?}", report.damage));
    assert_eq!(place.offset, 0);
    assert!(place.to_string().contains("table `t`, keys from key "), "{place}");
}

/// Panics at some keys, and makes of another one more than any batch takes.
struct Fussy;

impl MergeRule for Fussy {
    fn name(&self) -> &str {
        "fussy/1"
    }
    fn merge(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        assert!(!key.starts_with(b"bad"), "no such key");
        if key == b"long" {
            out.resize(VALUE_BYTES_MAX + 1, b'x');
            return;
        }
        out.extend_from_slice(older);
        out.extend_from_slice(newer);
    }
}

/// Either ended the rescue of the whole database: nothing behind it was saved, and no other try could use the
/// directory.
#[test]
fn a_key_whose_records_do_not_merge_is_told_and_all_others_are_rescued() {
    let keys: [&[u8]; 7] = [b"a", b"bad", b"bad\0", b"c", b"long", b"m", b"z"];
    let damaged_by_code: [&[u8]; 3] = [b"bad", b"bad\0", b"long"];
    for layout in [Layout::wb_tree(), Layout::wb_tree_ordered(), Layout::leveling(10)] {
        let fs = MemoryFs::new();
        let env = Env::simulated(fs, 3);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").layout(layout).merge_rule(Fussy).open().unwrap();
        for _ in 0..2 {
            keys.iter().for_each(|key| table.merge(key, b"x").unwrap());
        }
        drop(table);
        db.close().unwrap();

        let rescue = Rescue::new(options(&env)).merge_rule(Fussy);
        let report = rescue.run("/db", "/new", &mut |_, _| ()).unwrap();
        let mut told: Vec<_> = report.damage.iter().map(|place| place.low.clone().unwrap()).collect();
        told.sort();
        assert_eq!(told, damaged_by_code, "{layout}: {:?}", report.damage);
        for place in &report.damage {
            let (text, key) = (place.to_string(), place.low.as_deref().unwrap().escape_ascii());
            assert_eq!((place.table.as_deref(), &place.file), (Some("t"), &None), "{text}");
            assert!(text.contains(&format!("key {key} of table `t` is not copied: ")), "{text}");
        }
        let db = Database::open("/new", options(&env)).unwrap();
        let table = db.table("t").merge_rule(Fussy).open().unwrap();
        let found: Vec<_> = keys.iter().map(|key| table.get(key).unwrap()).collect();
        let saved = Some(b"xx".to_vec());
        assert_eq!(found, [saved.clone(), None, None, saved.clone(), None, saved.clone(), saved], "{layout}");
        assert_eq!(report.tables[0].records, 4, "{layout}");
    }
}

/// What was half made stood in the way of the next try.
#[test]
fn a_rescue_that_fails_leaves_nothing_behind() {
    let files = sample(Layout::leveling(10));
    for rule in ["write *.log from:3 io-error", "create *.log all no-space", "create *.manifest all io-error"]
    {
        let (_, fs) = env_of(&files);
        let faulty = FaultyFs::new(fs.clone());
        let env = Env::simulated(faulty.clone(), 4);
        let rescue = Rescue::new(options(&env)).merge_rule(Suffix);
        faulty.rule(rule).unwrap();
        rescue.run("/db", "/new", &mut |_, _| ()).expect_err(rule);
        let left: Vec<_> = fs.snapshot_files().into_keys().filter(|path| path.starts_with("/new")).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "{rule}");
        faulty.clear();
        assert_eq!(rescue.run("/db", "/new", &mut |_, _| ()).unwrap().damage, [], "{rule}");
    }
}

/// A progress callback that panicked left the half-made copy, and the next try said that it is there already.
#[test]
fn a_panic_in_a_progress_callback_leaves_nothing_behind() {
    let env = Env::memory(5);
    let options = Options::default().memory_limit(1 << 20).env(env.clone());
    let db = Database::open("/db", options.clone()).unwrap();
    db.table("t").open().unwrap().put(b"key", b"value").unwrap();
    db.close().unwrap();
    let rescue = Rescue::new(options);
    let panics = std::panic::AssertUnwindSafe(|| {
        rescue.run("/db", "/copy", &mut |_, _| panic!("the user's own")).map(drop)
    });
    std::panic::catch_unwind(panics).unwrap_err();
    let report = rescue.run("/db", "/copy", &mut |_, _| ()).unwrap();
    assert_eq!(report.tables[0].records, 1);
}

/// The damaged one stays as it is.
#[test]
fn nothing_is_rescued_to_a_directory_inside_the_database() {
    let (env, fs) = env_of(&sample(Layout::wb_tree()));
    let before = fs.snapshot_files();
    for target in ["/db", "/db/new", "/db/deep/new"] {
        let error = Rescue::new(options(&env)).run("/db", target, &mut |_, _| ()).unwrap_err();
        assert!(error.to_string().contains("inside the database"), "{error}");
    }
    assert_eq!(fs.snapshot_files().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
}
