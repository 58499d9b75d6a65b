//! Values apart from their keys: each is written once, found by every road, and gone when nobody needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use forebay::{Batch, Database, Durability, Layout, Options, Rescue, Table, ValueStats};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Access, Env, FileSystem, Rng};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const LONG: usize = 300;

/// All; of them range-merge and its like bring values back to their keys.
fn layouts() -> Vec<Layout> {
    let names = [
        "wb-tree",
        "wb-tree:ordered",
        "leveling:t=3",
        "tiering:t=2",
        "no-merge",
        "immediate",
        "jungle",
        "jungle:c=10,t=2",
        "range-merge",
        "range-merge:c=2",
    ];
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone())
}

fn open(env: &Env) -> Database {
    Database::open("/db", options(env)).unwrap()
}

/// Files that fail as they are told to.
fn faulty(seed: u64) -> (Arc<FaultyFs>, Env) {
    let fs = FaultyFs::new(MemoryFs::new());
    (fs.clone(), Env { fs, ..Env::memory(seed) })
}

/// Whether some file has what was deleted.
fn has_secret(fs: &MemoryFs) -> bool {
    let is_secret = |bytes: &[u8]| bytes.windows(14).any(|at| at == b"the-secret-key");
    fs.snapshot_files().iter().any(|(_, bytes)| is_secret(bytes))
}

fn table(db: &Database, layout: Layout) -> Table {
    db.table("t").layout(layout).node_bytes(4 << 10).lists_max(4).values_apart(100).open().unwrap()
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let mut value = vec![0; [0, 7, LONG, LONG, LONG, 3 * LONG][rng.index(6)]];
    rng.fill(&mut value);
    value
}

/// Puts and deletes by batches.
fn fill(db: &Database, table: &Table, model: &mut Model, rng: &mut Rng, batches: usize) {
    for _ in 0..batches {
        let mut batch = Batch::new();
        for _ in 0..20 {
            let key = rng.below(400).to_be_bytes().to_vec();
            if rng.chance(10) {
                batch.delete(table, &key);
                model.remove(&key);
            } else {
                let value = value(rng);
                batch.put(table, &key, &value);
                model.insert(key, value);
            }
        }
        db.commit(batch, Durability::Os).unwrap();
    }
}

/// Puts of one shape, so that lists are of pointers alone.
fn fill_even(db: &Database, table: &Table, model: &mut Model, rng: &mut Rng, batches: usize) {
    for _ in 0..batches {
        let mut batch = Batch::new();
        for _ in 0..20 {
            let (key, mut value) = (rng.below(400).to_be_bytes().to_vec(), vec![0; LONG]);
            rng.fill(&mut value);
            batch.put(table, &key, &value);
            model.insert(key, value);
        }
        db.commit(batch, Durability::Os).unwrap();
    }
}

/// The versions that footers of lists tell.
fn list_versions(fs: &MemoryFs) -> BTreeSet<u32> {
    let files = fs.snapshot_files();
    let lists = files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "list"));
    // One that is just being made is empty.
    let footers = lists.filter_map(|(_, bytes)| bytes.last_chunk::<4084>());
    footers.map(|footer| u32::from_le_bytes(*footer.first_chunk().unwrap())).collect()
}

fn check(table: &Table, model: &Model) {
    let keys: Vec<_> = (0..400u64).map(|number| number.to_be_bytes().to_vec()).collect();
    for key in &keys {
        assert_eq!(table.get(key).unwrap().as_ref(), model.get(key));
    }
    let together = table.multi_get(&keys).unwrap();
    keys.iter().zip(together).for_each(|(key, found)| assert_eq!(found.as_ref(), model.get(key)));
    let mut walked: Vec<_> = table.iter().unwrap().map(|entry| entry.unwrap()).collect();
    walked.sort();
    assert!(walked.into_iter().eq(model.clone()), "a scan has all of it");
}

/// Time for files to be collected and removed.
fn rest(env: &Env) {
    env.jobs.advance(std::time::Duration::from_secs(2));
    env.jobs.step_some(2000);
}

fn value_files(env: &Env) -> Vec<String> {
    let mut names = env.fs.list("/db".as_ref()).unwrap();
    names.retain(|name| name.ends_with(".values"));
    names
}

#[test]
fn long_values_are_found_by_every_road() {
    for (seed, layout) in (1..).zip(layouts()) {
        let (env, mut rng) = (Env::memory(seed), Rng::new(seed));
        let mut model = Model::new();
        let db = open(&env);
        let written = table(&db, layout);
        fill(&db, &written, &mut model, &mut rng, 60);
        check(&written, &model);
        let seen = (db.snapshot(), model.clone());
        db.flush().unwrap();
        check(&written, &model);
        let brings_back = layout.keeps_in_memory();
        assert_eq!(value_files(&env).is_empty(), brings_back, "{layout}");
        fill(&db, &written, &mut model, &mut rng, 60);
        db.savepoint("then").unwrap();
        let then = model.clone();
        written.compact().unwrap();
        check(&written, &model);
        let (snapshot, before) = seen;
        for (key, value) in &before {
            assert_eq!(snapshot.get(&written, key).unwrap().as_ref(), Some(value), "{layout}");
        }
        drop(snapshot);
        fill(&db, &written, &mut model, &mut rng, 30);
        db.flush().unwrap();
        let report = db.verify(&mut |_, _| {}).unwrap();
        assert_eq!(report.problems, [""; 0], "{layout}");
        db.checkpoint("/copy").unwrap();
        drop(written);
        db.close().unwrap();
        let copy = Database::open("/copy", options(&env)).unwrap();
        check(&table(&copy, layout), &model);
        assert_eq!(copy.verify(&mut |_, _| {}).unwrap().problems, [""; 0], "{layout}");
        copy.close().unwrap();
        let db = open(&env);
        let written = table(&db, layout);
        check(&written, &model);
        db.rollback("then").unwrap();
        check(&table(&db, layout), &then);
        db.close().unwrap();
    }
}

/// Of one length, and then others among them: those make lists of another version.
#[test]
fn records_of_one_shape_have_pointers_of_one_length() {
    for (seed, layout) in (20..).zip(layouts()) {
        let fs = MemoryFs::new();
        let (env, mut rng) = (Env { fs: fs.clone(), ..Env::memory(seed) }, Rng::new(seed));
        let mut model = Model::new();
        let db = open(&env);
        let written = table(&db, layout);
        let brings_back = layout.keeps_in_memory();
        for _ in 0..3 {
            fill_even(&db, &written, &mut model, &mut rng, 60);
            db.flush().unwrap();
            check(&written, &model);
            assert_eq!(db.verify(&mut |_, _| {}).unwrap().problems, [""; 0], "{layout}");
        }
        let seen = (db.snapshot(), model.clone());
        written.compact().unwrap();
        rest(&env);
        check(&written, &model);
        if !brings_back {
            // A snapshot has them, also where they are in trees by now.
            assert_eq!(list_versions(&fs), BTreeSet::from([4]), "{layout}");
        }
        // Collection moves values of blocks.
        for _ in 0..4 {
            fill_even(&db, &written, &mut model, &mut rng, 60);
            written.compact().unwrap();
            (0..4).for_each(|_| rest(&env));
            check(&written, &model);
        }
        let (snapshot, before) = seen;
        for (key, value) in &before {
            assert_eq!(snapshot.get(&written, key).unwrap().as_ref(), Some(value), "{layout}");
        }
        drop(snapshot);
        fill(&db, &written, &mut model, &mut rng, 60);
        db.flush().unwrap();
        check(&written, &model);
        assert_eq!(list_versions(&fs).contains(&3), !brings_back, "{layout}");
        written.compact().unwrap();
        check(&written, &model);
        assert_eq!(db.verify(&mut |_, _| {}).unwrap().problems, [""; 0], "{layout}");
        drop(written);
        db.close().unwrap();
        let db = open(&env);
        check(&table(&db, layout), &model);
        db.close().unwrap();
    }
}

/// What lists have in value files is counted to the byte, by blocks and by records, as it is flushed, merged and moved.
#[test]
fn what_lives_is_counted_to_the_byte() {
    for (is_even, layout) in [true, false]
        .into_iter()
        .flat_map(|is_even| [Layout::wb_tree(), "jungle".parse().unwrap()].map(|layout| (is_even, layout)))
    {
        let (env, mut rng) = (Env::memory(40), Rng::new(40));
        let db = Database::open("/db", options(&env).memory_limit(8 << 20)).unwrap();
        let written = db.table("t").layout(layout).values_apart(100).open().unwrap();
        let put = |number: u64, value: &mut Vec<u8>| {
            value.resize(if is_even { LONG } else { 100 + number as usize }, 0);
            written.put(number.to_be_bytes(), &*value).unwrap();
        };
        let mut value = vec![0; LONG];
        rng.fill(&mut value);
        let mut live = 0;
        for number in 0..600u64 {
            put(number, &mut value);
            live += value.len() as u64;
        }
        db.flush().unwrap();
        assert_eq!(db.stats().values.live_bytes, live);
        // Nearly all is put anew, and the rest is moved.
        for _ in 0..3 {
            (0..600).filter(|number| number % 10 > 0).for_each(|number| put(number, &mut value));
            db.flush().unwrap();
            written.compact().unwrap();
            (0..6).for_each(|_| rest(&env));
        }
        let ValueStats { file_bytes, live_bytes, .. } = db.stats().values;
        assert_eq!(live_bytes, live, "{file_bytes} in files");
        assert!(db.stats().values.moved_bytes > 0, "{is_even}");
        assert_eq!(db.verify(&mut |_, _| {}).unwrap().problems, [""; 0]);
    }
}

/// Pages of pointers tell how long keys are, in either order; those of puts do not.
#[test]
fn lists_of_pointers_are_rescued_without_their_footers() {
    for layout in [Layout::wb_tree(), Layout::wb_tree_ordered()] {
        let fs = MemoryFs::new();
        let env = Env { fs: fs.clone(), ..Env::memory(41) };
        let (mut rng, mut model) = (Rng::new(41), Model::new());
        let db = open(&env);
        let written = table(&db, layout);
        fill_even(&db, &written, &mut model, &mut rng, 200);
        written.compact().unwrap();
        drop(written);
        db.close().unwrap();
        for (path, mut bytes) in fs.snapshot_files() {
            if path.extension().is_some_and(|end| end == "list") {
                let footer_at = bytes.len() - 4096;
                // One of its bits, or all of it.
                match rng.index(2) {
                    0 => bytes[footer_at + 30] ^= 4,
                    _ => bytes[footer_at..].fill(0),
                }
                fs.replace_file(&path, bytes);
            }
        }
        let report = Rescue::new(options(&env)).run("/db", "/rescued", &mut |_, _| ()).unwrap();
        assert_eq!(report.tables[0].records as usize, model.len(), "{layout}: {:?}", report.damage);
        let rescued = Database::open("/rescued", options(&env)).unwrap();
        check(&table(&rescued, layout), &model);
        rescued.close().unwrap();
    }
}

#[test]
fn a_value_is_written_once_and_keys_move_alone() {
    let (env, mut rng) = (Env::memory(3), Rng::new(3));
    let db = Database::open("/db", options(&env).memory_limit(32 << 20).write_buffer(1 << 20)).unwrap();
    let apart = db.table("apart").node_bytes(64 << 10).lists_max(4).values_apart(100).open().unwrap();
    let (mut bytes, mut long) = (0, vec![0; 1000]);
    for number in 0..20_000u64 {
        let mut batch = Batch::new();
        rng.fill(&mut long);
        batch.put(&apart, number.to_be_bytes(), &long);
        db.commit(batch, Durability::Memory).unwrap();
        bytes += 1008;
    }
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    let written = stats.log_bytes + stats.list_bytes_written.values().sum::<u64>();
    assert!(written < bytes * 6 / 5, "{written} of {bytes}");
    assert_eq!(apart.get(77u64.to_be_bytes()).unwrap().map(|value| value.len()), Some(1000));
}

#[test]
fn value_files_go_once_nothing_in_them_is_needed() {
    for layout in [Layout::wb_tree(), Layout::leveling(3), "jungle".parse().unwrap()] {
        let (env, mut rng) = (Env::memory(4), Rng::new(4));
        let mut model = Model::new();
        let db = open(&env);
        let written = table(&db, layout);
        fill(&db, &written, &mut model, &mut rng, 100);
        db.flush().unwrap();
        let before = value_files(&env);
        assert!(before.len() > 5, "{before:?}");
        // All is put anew, and merged.
        for _ in 0..2 {
            fill(&db, &written, &mut model, &mut rng, 200);
            written.compact().unwrap();
            rest(&env);
        }
        for _ in 0..4 {
            rest(&env);
            db.wait_until_idle().unwrap();
        }
        let after = value_files(&env);
        assert!(before.iter().all(|name| !after.contains(name)), "{before:?} and then {after:?}");
        check(&written, &model);
        let live: usize = model.values().map(Vec::len).filter(|&bytes| bytes >= 100).sum();
        let on_disk: u64 = after
            .iter()
            .map(|name| {
                let path = Path::new("/db").join(name);
                env.fs.open_read(&path, Access::Buffered).unwrap().len().unwrap()
            })
            .sum();
        assert!(on_disk < 4 * live as u64, "{on_disk} bytes for {live}");
        db.drop_table("t").unwrap();
        drop(written);
        rest(&env);
        assert_eq!(value_files(&env), [""; 0]);
        db.close().unwrap();
    }
}

/// The log's next segment is a new file, not the one that has become a value file.
#[test]
fn a_segment_that_has_values_is_not_used_again() {
    let (env, mut rng) = (Env::memory(5), Rng::new(5));
    let mut model = Model::new();
    let db = open(&env);
    let written = table(&db, Layout::wb_tree());
    for _ in 0..5 {
        fill(&db, &written, &mut model, &mut rng, 40);
        db.flush().unwrap();
        check(&written, &model);
    }
    drop(written);
    db.close().unwrap();
    let db = open(&env);
    check(&table(&db, Layout::wb_tree()), &model);
    assert_eq!(db.verify(&mut |_, _| {}).unwrap().problems, [""; 0]);
}

/// Damage to a value is told with its file, by `get` and by `verify`; all other keys are rescued.
#[test]
fn a_damaged_value_is_told_and_no_other_is_lost() {
    let fs = MemoryFs::new();
    let env = Env { fs: fs.clone(), ..Env::memory(6) };
    let (mut rng, mut model) = (Rng::new(6), Model::new());
    let db = open(&env);
    let written = table(&db, Layout::wb_tree_ordered());
    fill(&db, &written, &mut model, &mut rng, 60);
    db.flush().unwrap();
    drop(written);
    db.close().unwrap();
    let name = value_files(&env)[0].clone();
    let path = Path::new("/db").join(&name);
    let file = fs.open(&path, Access::Buffered).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    // All of it: whichever value stands there is damaged.
    file.write_at(0, &bytes.iter().map(|byte| byte ^ 0x55).collect::<Vec<_>>()).unwrap();
    let db = open(&env);
    let written = table(&db, Layout::wb_tree_ordered());
    let mut damaged = 0;
    for (key, value) in &model {
        match written.get(key) {
            Ok(found) => assert_eq!(found.as_ref(), Some(value)),
            Err(error) => {
                assert!(error.is_corruption() && error.to_string().contains(&name), "{error}");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0 && damaged < model.len(), "{damaged} of {}", model.len());
    let problems = db.verify(&mut |_, _| {}).unwrap().problems;
    assert!(problems.iter().any(|problem| problem.contains(&name)), "{problems:?}");
    drop(written);
    db.close().unwrap();
    let report = Rescue::new(options(&env)).run("/db", "/rescued", &mut |_, _| ()).unwrap();
    assert_eq!(report.tables[0].records as usize, model.len() - damaged);
    assert_eq!(report.damage.len(), damaged, "{:?}", report.damage);
    let rescued = Database::open("/rescued", options(&env)).unwrap();
    for entry in rescued.table("t").open().unwrap().iter().unwrap() {
        let (key, value) = entry.unwrap();
        assert_eq!(model.get(&key), Some(&value));
    }
    // A file that is gone is told, too.
    fs.remove(&path).unwrap();
    let db = open(&env);
    let written = table(&db, Layout::wb_tree_ordered());
    let said = model.keys().find_map(|key| written.get(key).err()).expect("some value was there");
    assert!(said.is_corruption() && said.to_string().contains(&name), "{said}");
}

#[test]
fn a_filter_sees_values_that_stand_apart() {
    let env = Env::memory(7);
    let db = open(&env);
    let seen = Arc::new(forebay_env::sync::Mutex::new(Vec::new()));
    let asked = Arc::clone(&seen);
    let kept = db
        .table("t")
        .layout(Layout::wb_tree())
        .values_apart(10)
        .compaction_filter(move |_, value| {
            asked.lock().push(value.len());
            if value[0] % 2 == 0 { forebay::Keep::Keep } else { forebay::Keep::Drop }
        })
        .open()
        .unwrap();
    for number in 0..200u8 {
        kept.put([number], [number; 200]).unwrap();
    }
    kept.compact().unwrap();
    assert!(seen.lock().iter().all(|&bytes| bytes == 200), "values, and no pointers");
    assert_eq!((0..200u8).filter(|&number| kept.get([number]).unwrap().is_some()).count(), 100);
}

#[test]
fn tables_that_look_at_values_refuse_to_keep_them_apart() {
    let env = Env::memory(8);
    let db = open(&env);
    let says = |outcome: forebay::Result<Table>, words: &[&str]| {
        let said = outcome.map(drop).unwrap_err().to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };
    let apart = || db.table("t").values_apart(100);
    says(apart().max_space_amplification(2.0).open(), &["values_apart", "max_space_amplification"]);
    says(db.table("t").values_apart(0).open(), &["values_apart is 0"]);
    says(apart().merge_rule(forebay_testkit::Suffix).open(), &["`t`", "values_apart"]);
    apart().open().unwrap();
    says(db.table("t").values_apart(101).open(), &["values_apart 100, not 101"]);
    db.table("t").open().unwrap();
}

/// What merges move was padded to a block, which counted as dead: lists of few long values were written for ever.
#[test]
fn collection_ends_where_little_is_left_in_each_list() {
    let (env, mut rng) = (Env::memory(11), Rng::new(11));
    let db = open(&env);
    let written = table(&db, Layout::wb_tree());
    for is_long in [true, false] {
        for from in (0..6000u64).step_by(20) {
            let mut batch = Batch::new();
            for key in from..from + 20 {
                let mut value = vec![0; LONG];
                rng.fill(&mut value);
                match is_long {
                    true => batch.put(&written, key.to_be_bytes(), &value),
                    false if key % 60 != 0 => batch.put(&written, key.to_be_bytes(), b"short"),
                    false => {}
                }
            }
            db.commit(batch, Durability::Os).unwrap();
        }
    }
    db.flush().unwrap();
    written.compact().unwrap();
    (0..20).for_each(|_| rest(&env));
    let lists_written = || db.stats().list_bytes_written.values().sum::<u64>();
    let before = lists_written();
    (0..20).for_each(|_| rest(&env));
    assert_eq!(lists_written(), before, "nobody writes, and lists are written for ever");
    let ValueStats { file_bytes, live_bytes, .. } = db.stats().values;
    assert!(file_bytes < 2 * live_bytes + (100 << 10), "{file_bytes} for {live_bytes}");
}

/// No flush ever succeeded.
#[test]
fn values_go_with_their_keys_where_files_have_one_name() {
    let (fs, env) = faulty(12);
    let db = open(&env);
    let written = table(&db, Layout::wb_tree());
    fs.rule("link * all io-error").unwrap();
    (0..200u64).for_each(|key| written.put(key.to_be_bytes(), [7; LONG]).unwrap());
    db.flush().unwrap();
    assert_eq!(value_files(&env), [""; 0]);
    assert_eq!(written.get(77u64.to_be_bytes()).unwrap().as_deref(), Some(&[7; LONG][..]));
}

/// The secret stood in a value file for as long as a neighbour's value there lived.
#[test]
fn what_is_reclaimed_does_not_stay_beside_long_values() {
    let fs = MemoryFs::new();
    let env = Env { fs: fs.clone(), ..Env::memory(13) };
    let db = open(&env);
    let apart = table(&db, Layout::wb_tree());
    let secret = db.table("s").reclaim_interval(std::time::Duration::from_secs(3600)).open().unwrap();
    secret.put(b"key", b"the-secret-key").unwrap();
    (0..200u64).for_each(|key| apart.put(key.to_be_bytes(), [7; LONG]).unwrap());
    db.flush().unwrap();
    assert!(has_secret(&fs));
    secret.delete(b"key").unwrap();
    (200..400u64).for_each(|key| apart.put(key.to_be_bytes(), [7; LONG]).unwrap());
    db.flush().unwrap();
    for _ in 0..40 {
        env.jobs.advance(std::time::Duration::from_secs(600));
        env.jobs.step_some(5000);
    }
    assert!(!has_secret(&fs));
}

#[test]
fn rescue_passes_over_values_that_cannot_be_read() {
    let (fs, env) = faulty(15);
    let (mut rng, mut model) = (Rng::new(15), Model::new());
    let db = open(&env);
    let written = table(&db, Layout::wb_tree_ordered());
    fill(&db, &written, &mut model, &mut rng, 60);
    db.flush().unwrap();
    drop(written);
    db.close().unwrap();
    fs.rule("read *.values all io-error").unwrap();
    let report = Rescue::new(options(&env)).run("/db", "/rescued", &mut |_, _| ()).unwrap();
    let short = model.values().filter(|value| value.len() < 100).count();
    assert_eq!((report.tables[0].records as usize, report.damage.len()), (short, model.len() - short));
}

/// They had been chosen before, and nobody was told that there was something to do again: so they were taken for stuck.
#[test]
fn values_that_a_rollback_brings_back_are_collected() {
    let (env, mut rng) = (Env::memory(80), Rng::new(80));
    let mut model = Model::new();
    let db = open(&env);
    let written = table(&db, Layout::wb_tree());
    fill(&db, &written, &mut model, &mut rng, 100);
    written.compact().unwrap();
    db.savepoint("then").unwrap();
    let file_bytes = || db.stats().values.file_bytes;
    let before = file_bytes();
    (0..8).for_each(|_| rest(&env));
    assert!(file_bytes() > before, "values were moved that stay where they are, too");
    db.rollback("then").unwrap();
    db.drop_savepoint("then").unwrap();
    // Until nothing of what that leaves is removed any more, which would wake all.
    for _ in 0..9 {
        env.jobs.advance(std::time::Duration::from_millis(100));
        env.jobs.step_some(2000);
    }
    (0..8).for_each(|_| rest(&env));
    let live: usize = model.values().map(Vec::len).filter(|&bytes| bytes >= 100).sum();
    assert!(file_bytes() < 2 * live as u64 + (64 << 10), "{} for {live}, {before} before", file_bytes());
    check(&written, &model);
}

/// All files of which not most was alive were emptied at a time. With keys in random order none of them goes before the
/// last list was written anew, so that files took three times what lives.
#[test]
fn collection_takes_little_room_of_its_own() {
    const KEYS: u64 = 2000;
    let (env, mut rng) = (Env::memory(82), Rng::new(82));
    let db = open(&env);
    let written = table(&db, Layout::wb_tree());
    for from in (0..KEYS).step_by(20) {
        let mut batch = Batch::new();
        for key in from..from + 20 {
            let mut value = vec![0; LONG];
            rng.fill(&mut value);
            batch.put(&written, key.to_be_bytes(), &value);
        }
        db.commit(batch, Durability::Os).unwrap();
    }
    db.flush().unwrap();
    let file_bytes = || db.stats().values.file_bytes;
    let before = file_bytes();
    let mut most = before;
    // Two fifths of each file live.
    for from in (0..KEYS).step_by(20) {
        let mut batch = Batch::new();
        let keys = (from..from + 20).filter(|key| key % 5 < 3);
        keys.for_each(|key| batch.put(&written, key.to_be_bytes(), b"short"));
        db.commit(batch, Durability::Os).unwrap();
        most = most.max(file_bytes());
    }
    written.compact().unwrap();
    for _ in 0..20 {
        env.jobs.advance(std::time::Duration::from_secs(2));
        for _ in 0..100 {
            env.jobs.step_some(10);
            most = most.max(file_bytes());
        }
    }
    let live_bytes = KEYS * 2 / 5 * LONG as u64;
    assert!(most < before + live_bytes / 4, "{most} after {before} for {live_bytes}");
    assert!(file_bytes() < 2 * live_bytes + (64 << 10), "{} for {live_bytes}", file_bytes());
}

/// Each merge that met a file which was to be emptied failed, and was tried again for ever.
#[test]
fn merges_go_on_where_there_is_no_room_to_move_values() {
    let (fs, env) = faulty(80);
    let (mut rng, mut model) = (Rng::new(80), Model::new());
    let db = open(&env);
    let written = table(&db, Layout::wb_tree());
    fill(&db, &written, &mut model, &mut rng, 100);
    written.compact().unwrap();
    // Segments have other names while they are written.
    fs.rule("write *.values all no-space").unwrap();
    let goes_on = (0..30).any(|_| {
        rest(&env);
        fs.fired() > 0 && db.wait_until_idle().is_ok()
    });
    assert!(goes_on, "{} writes failed", fs.fired());
    check(&written, &model);
    fs.clear();
    (0..12).for_each(|_| rest(&env));
    let live: usize = model.values().map(Vec::len).filter(|&bytes| bytes >= 100).sum();
    let ValueStats { file_bytes, .. } = db.stats().values;
    assert!(file_bytes < 2 * live as u64 + (64 << 10), "{file_bytes} for {live}");
    check(&written, &model);
}

/// As above, where the interval came once the value file was there: nobody looked again.
#[test]
fn an_interval_that_comes_later_has_value_files_emptied() {
    for is_reopened in [false, true] {
        let fs = MemoryFs::new();
        let env = Env { fs: fs.clone(), ..Env::memory(81) };
        let mut db = open(&env);
        let mut apart = table(&db, Layout::wb_tree());
        let secret = db.table("s").open().unwrap();
        secret.put(b"key", b"the-secret-key").unwrap();
        (0..200u64).for_each(|key| apart.put(key.to_be_bytes(), [7; LONG]).unwrap());
        db.flush().unwrap();
        assert!(has_secret(&fs));
        db.table("s").reclaim_interval(std::time::Duration::from_secs(3600)).alter().unwrap();
        secret.delete(b"key").unwrap();
        if is_reopened {
            drop((apart, secret));
            db.close().unwrap();
            db = open(&env);
            apart = table(&db, Layout::wb_tree());
        }
        (200..400u64).for_each(|key| apart.put(key.to_be_bytes(), [7; LONG]).unwrap());
        db.flush().unwrap();
        for _ in 0..40 {
            env.jobs.advance(std::time::Duration::from_secs(600));
            env.jobs.step_some(5000);
        }
        assert!(!has_secret(&fs), "opened again: {is_reopened}");
        for key in 0..400u64 {
            assert_eq!(apart.get(key.to_be_bytes()).unwrap().as_deref(), Some(&[7; LONG][..]));
        }
    }
}

/// They were said to hold what their lists take, without the values that those point to.
#[test]
fn what_savepoints_and_snapshots_hold_has_their_values() {
    const KEYS: u64 = 400;
    let (env, mut rng) = (Env::memory(83), Rng::new(83));
    let db = open(&env);
    let written = table(&db, Layout::wb_tree());
    let mut put_all = || {
        for key in 0..KEYS {
            let mut value = vec![0; LONG];
            rng.fill(&mut value);
            written.put(key.to_be_bytes(), &value).unwrap();
        }
        written.compact().unwrap();
    };
    put_all();
    db.savepoint("then").unwrap();
    let snapshot = db.snapshot();
    let values = db.stats().values;
    assert_eq!(values.live_bytes, KEYS * LONG as u64);
    put_all();
    (0..4).for_each(|_| rest(&env));
    let stats = db.stats();
    let savepoint = &stats.savepoints[0];
    assert!(savepoint.held_bytes >= values.file_bytes, "{savepoint:?} of {values:?}");
    assert_eq!(savepoint.own_bytes, savepoint.held_bytes);
    assert_eq!(stats.snapshots[0].held_bytes, 0, "it is a savepoint that keeps them");
    db.drop_savepoint("then").unwrap();
    let held = db.stats().snapshots[0].clone();
    assert!(held.held_bytes >= values.file_bytes, "{held:?} of {values:?}");
    assert_eq!(held.own_bytes, held.held_bytes);
    drop(snapshot);
    (0..4).for_each(|_| rest(&env));
    let left = db.stats().values.file_bytes;
    assert!(left < 2 * values.file_bytes, "{left} bytes of files");
}

/// Lists that nobody can merge kept a round of collection going, and all other value files from being emptied.
#[test]
fn damage_elsewhere_keeps_no_values_from_being_collected() {
    let fs = MemoryFs::new();
    let env = Env { fs: fs.clone(), ..Env::memory(16) };
    let (mut rng, mut model) = (Rng::new(16), Model::new());
    let db = open(&env);
    let written = table(&db, Layout::wb_tree());
    let bad = db.table("bad").node_bytes(4 << 10).values_apart(100).open().unwrap();
    for round in 0..5u64 {
        bad.put(round.to_be_bytes(), [9; 200]).unwrap();
        fill(&db, &written, &mut model, &mut rng, 8);
        db.flush().unwrap();
    }
    let described = db.describe();
    let of_bad = described.tables.iter().filter(|table| table.name == "bad");
    let lists: Vec<u64> = of_bad.flat_map(|table| &table.nodes).flat_map(|node| node.files.clone()).collect();
    drop((bad, written));
    db.close().unwrap();
    for id in lists {
        let path = Path::new("/db").join(format!("{id:08}.list"));
        let mut bytes = fs.snapshot_files().into_iter().find(|(found, _)| *found == path).unwrap().1;
        bytes[40] ^= 0xff;
        fs.replace_file(&path, bytes);
    }
    let db = open(&env);
    let written = table(&db, Layout::wb_tree());
    for _ in 0..8 {
        fill(&db, &written, &mut model, &mut rng, 200);
        let _ = written.compact();
        (0..6).for_each(|_| rest(&env));
    }
    let live: usize = model.values().map(Vec::len).filter(|&bytes| bytes >= 100).sum();
    let ValueStats { file_bytes, .. } = db.stats().values;
    assert!(file_bytes < 4 * live as u64 + (200 << 10), "{file_bytes} bytes for {live}");
    for (key, value) in &model {
        assert_eq!(written.get(key).unwrap().as_ref(), Some(value));
    }
}

/// How many steps of background work it takes until a buffer of 32 MiB is a list.
fn steps_of_flush(value_bytes: usize, apart_bytes_min: u32) -> usize {
    let env = Env::memory(17);
    let options = Options::default().memory_limit(256 << 20).write_buffer(32 << 20).env(env.clone());
    let db = Database::open("/db", options).unwrap();
    let table = db.table("t").values_apart(apart_bytes_min).open().unwrap();
    let flushes = || db.stats().jobs_done.get("flush").copied().unwrap_or_default();
    // A bit more than a buffer.
    let value = vec![7; value_bytes];
    (0..33 << 20).step_by(value_bytes).for_each(|key: u64| table.put(key.to_be_bytes(), &value).unwrap());
    let mut steps = 0;
    while flushes() == 0 {
        env.jobs.step_some(1);
        steps += 1;
    }
    steps
}

/// What a flush of pointers hands on is little: it took 40 MiB of long values in a step, for which writers waited in one
/// piece. Nor are there many more where a table keeps only longer values apart: then each step is told for more than it
/// did.
#[test]
fn a_flush_takes_a_step_for_each_mebibyte() {
    let (pointers, values) = (steps_of_flush(1 << 10, 100), steps_of_flush(1 << 10, 4 << 10));
    assert!(pointers >= 32 && (32..200).contains(&values), "{pointers} and {values} steps");
}

fn jungle() -> Layout {
    "jungle:c=10,t=2".parse().unwrap()
}

/// Appends move values that others, who read an older version of the tree, have where they were.
#[test]
fn older_versions_of_trees_have_their_values() {
    let (env, mut rng) = (Env::memory(50), Rng::new(50));
    let mut model = Model::new();
    let db = open(&env);
    let written = table(&db, jungle());
    let read = |db: &Database, name: &str, then: &Model| {
        let saved = db.open_savepoint(name).unwrap();
        let written = table(db, jungle());
        then.iter()
            .for_each(|(key, value)| assert_eq!(saved.get(&written, key).unwrap().as_ref(), Some(value)));
    };
    let mut kept = Vec::new();
    for round in 0..6 {
        fill(&db, &written, &mut model, &mut rng, 50);
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
        (0..3).for_each(|_| rest(&env));
        let name = format!("{round}");
        db.savepoint(&name).unwrap();
        kept.push((name, db.snapshot(), model.clone()));
        for (name, snapshot, then) in &kept {
            read(&db, name, then);
            then.iter().for_each(|(key, value)| {
                assert_eq!(snapshot.get(&written, key).unwrap().as_ref(), Some(value));
            });
        }
        assert_eq!(db.verify(&mut |_, _| {}).unwrap().problems, [""; 0]);
    }
    let kept: Vec<_> = kept.into_iter().map(|(name, _, then)| (name, then)).collect();
    drop(written);
    db.close().unwrap();
    let db = open(&env);
    kept.iter().for_each(|(name, then)| read(&db, name, then));
    assert_eq!(db.verify(&mut |_, _| {}).unwrap().problems, [""; 0]);
    db.rollback("2").unwrap();
    let written = table(&db, jungle());
    model.clone_from(&kept[2].1);
    check(&written, &model);
    fill(&db, &written, &mut model, &mut rng, 100);
    written.compact().unwrap();
    (0..6).for_each(|_| rest(&env));
    check(&written, &model);
    kept.iter().for_each(|(name, then)| read(&db, name, then));
    drop(written);
    db.close().unwrap();
    let db = open(&env);
    check(&table(&db, jungle()), &model);
    kept.iter().for_each(|(name, then)| read(&db, name, then));
    kept.iter().for_each(|(name, _)| db.drop_savepoint(name).unwrap());
    drop(kept);
    for _ in 0..10 {
        rest(&env);
        db.wait_until_idle().unwrap();
    }
    let live: usize = model.values().map(Vec::len).filter(|&bytes| bytes >= 100).sum();
    let ValueStats { file_bytes, .. } = db.stats().values;
    assert!(file_bytes < 4 * live as u64 + (200 << 10), "{file_bytes} bytes for {live}");
    assert_eq!(db.verify(&mut |_, _| {}).unwrap().problems, [""; 0]);
}

/// Two parts of a table that have one tree: one is appended to, and what it brings is moved; the other one gets that
/// version by the next opening.
#[test]
fn parts_that_share_a_tree_have_their_values() {
    for seed in 60..64 {
        let (env, mut rng) = (Env::memory(seed), Rng::new(seed));
        let mut model = Model::new();
        let mut db = open(&env);
        fill(&db, &table(&db, jungle()), &mut model, &mut rng, 100);
        for round in 0..8u64 {
            let written = db.table("t").open_ordered().unwrap();
            written.compact().unwrap();
            let (low, high) = (150 + round * 5, 160 + round * 5);
            let range = low.to_be_bytes().to_vec()..high.to_be_bytes().to_vec();
            written.delete_range(&range.start[..]..&range.end[..]).unwrap();
            model.retain(|key, _| !range.contains(key));
            // To one side of the gap, or to both.
            for _ in 0..20 {
                let mut batch = Batch::new();
                for _ in 0..20 {
                    let key = rng.below([100, 400][round as usize % 2]).to_be_bytes().to_vec();
                    let value = value(&mut rng);
                    batch.put(&written, &key, &value);
                    model.insert(key, value);
                }
                db.commit(batch, Durability::Os).unwrap();
            }
            db.flush().unwrap();
            db.wait_until_idle().unwrap();
            (0..3).for_each(|_| rest(&env));
            drop(written);
            check(&table(&db, jungle()), &model);
            if rng.chance(60) {
                db.close().unwrap();
                db = open(&env);
                check(&table(&db, jungle()), &model);
            }
            assert_eq!(db.verify(&mut |_, _| {}).unwrap().problems, [""; 0], "{seed}");
        }
        db.checkpoint(format!("/copy-{seed}")).unwrap();
        db.close().unwrap();
        let copy = Database::open(format!("/copy-{seed}"), options(&env)).unwrap();
        check(&table(&copy, jungle()), &model);
        assert_eq!(copy.verify(&mut |_, _| {}).unwrap().problems, [""; 0], "{seed}");
        copy.close().unwrap();
    }
}

/// To trees and away from them, in the same order and in another one.
#[test]
fn values_stay_apart_from_layout_to_layout() {
    let (env, mut rng) = (Env::memory(70), Rng::new(70));
    let mut model = Model::new();
    let db = open(&env);
    let written = table(&db, Layout::leveling(3));
    for name in ["jungle", "tiering:t=2", "jungle:c=10,t=2", "wb-tree:ordered", "jungle", "wb-tree", "jungle"]
    {
        fill(&db, &written, &mut model, &mut rng, 60);
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
        written.set_layout(name.parse().unwrap()).unwrap();
        check(&written, &model);
        fill(&db, &written, &mut model, &mut rng, 60);
        written.compact().unwrap();
        (0..4).for_each(|_| rest(&env));
        check(&written, &model);
        assert_eq!(db.verify(&mut |_, _| {}).unwrap().problems, [""; 0], "{name}");
    }
    drop(written);
    db.close().unwrap();
    let db = open(&env);
    check(&db.table("t").open().unwrap(), &model);
}
