//! Backups: each is what the database was, whatever became of it and of other backups since.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use forebay::{Backups, Database, Error, Layout, Options, OrderedTable};
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
use forebay_env::{Access, Env, Rng};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(8 << 10).env(env.clone())
}

/// Tables of every kind of file.
fn layouts() -> Vec<(&'static str, Layout)> {
    vec![
        ("tree", Layout::wb_tree_ordered()),
        ("jungle", "jungle:c=3".parse().unwrap()),
        ("leveling", "leveling:t=4".parse().unwrap()),
        ("resident", Layout::range_merge()),
    ]
}

fn open_tables(db: &Database) -> Vec<OrderedTable> {
    let open = |(name, layout): (&str, Layout)| {
        let table = db.table(name).layout(layout).node_bytes(8 << 10);
        let table = if name == "leveling" { table.values_apart(60) } else { table };
        table.open_ordered().unwrap()
    };
    layouts().into_iter().map(open).collect()
}

/// Puts and deletes, of which all tables get the same.
fn change(rng: &mut Rng, tables: &[OrderedTable], model: &mut Model, count: usize) {
    for _ in 0..count {
        let key = format!("key{:04}", rng.index(500)).into_bytes();
        if rng.chance(20) {
            tables.iter().for_each(|table| table.delete(&key).unwrap());
            model.remove(&key);
        } else {
            let value = vec![rng.next_u64() as u8; 10 + rng.index(100)];
            tables.iter().for_each(|table| table.put(&key, &value).unwrap());
            model.insert(key, value);
        }
    }
}

fn assert_is(env: &Env, dir: &str, model: &Model) {
    let db = Database::open(dir, options(env).read_only(true)).unwrap();
    for (name, _) in layouts() {
        let table = db.table(name).open_ordered().unwrap();
        let found: Model = table
            .iter()
            .unwrap()
            .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
            .collect();
        assert_eq!(&found, model, "{name} of {dir}");
    }
    assert!(db.verify(&mut |_, _| {}).unwrap().problems.is_empty());
}

#[test]
fn each_backup_is_what_the_database_was() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let env = Env::simulated(MemoryFs::new(), seed);
        let backups = Backups::open_in(&env, "/backups").unwrap();
        let mut db = Database::open("/db", options(&env)).unwrap();
        let mut tables = open_tables(&db);
        let (mut model, mut taken) = (Model::new(), Vec::new());
        for round in 0..8 {
            let count = 20 + rng.index(400);
            change(&mut rng, &tables, &mut model, count);
            match rng.index(4) {
                0 => db.flush().unwrap(),
                1 => db.wait_until_idle().unwrap(),
                _ => {}
            }
            let backup = backups.take(&db).unwrap();
            assert_eq!(backup.number, round + 1);
            assert_eq!(backup.last_sequence, db.last_sequence());
            taken.push((backup.number, model.clone()));
            if rng.chance(20) {
                // What happened since never did: ids of files are given again.
                let (number, back) = taken[rng.index(taken.len())].clone();
                drop(tables);
                db.close().unwrap();
                let dir = format!("/db-{round}");
                backups.restore(number, &dir).unwrap();
                db = Database::open(&dir, options(&env)).unwrap();
                (tables, model) = (open_tables(&db), back);
            }
        }
        backups.keep(4).unwrap();
        let numbers: Vec<u64> = backups.list().unwrap().iter().map(|backup| backup.number).collect();
        assert_eq!(numbers, [5, 6, 7, 8]);
        for (number, model) in &taken[4..] {
            assert!(backups.verify(*number).unwrap().is_empty());
            let dir = format!("/restored-{number}");
            backups.restore(*number, &dir).unwrap();
            assert_is(&env, &dir, model);
        }
        assert!(
            matches!(backups.restore(1, "/none"), Err(Error::NotFound(reason)) if reason.contains("backup 1"))
        );
    }
}

/// What an earlier backup has is not copied again: of lists all, of trees the front.
#[test]
fn a_backup_copies_what_is_new() {
    let env = Env::simulated(MemoryFs::new(), 3);
    let backups = Backups::open_in(&env, "/backups").unwrap();
    let db = Database::open("/db", options(&env)).unwrap();
    let tables = open_tables(&db);
    let mut rng = Rng::new(3);
    let mut model = Model::new();
    change(&mut rng, &tables, &mut model, 3000);
    db.flush().unwrap();
    let first = backups.take(&db).unwrap();
    assert_eq!(first.copied_bytes, first.bytes);
    let same = backups.take(&db).unwrap();
    assert!(same.copied_bytes * 5 < same.bytes, "{} of {} again", same.copied_bytes, same.bytes);
    let names = || env.fs.list(Path::new("/backups")).unwrap();
    let is_behind = |name: &String| name.contains(".tree-") && !name.contains("-0-");
    for _ in 0..40 {
        change(&mut rng, &tables[1..2], &mut model, 20);
        db.wait_until_idle().unwrap();
        backups.take(&db).unwrap();
        if names().iter().any(is_behind) {
            return;
        }
    }
    panic!("no tree goes on behind what was copied: {:?}", names());
}

#[test]
fn damage_is_told_and_nothing_of_it_restored() {
    let env = Env::simulated(MemoryFs::new(), 5);
    let backups = Backups::open_in(&env, "/backups").unwrap();
    let db = Database::open("/db", options(&env)).unwrap();
    let (tables, mut model) = (open_tables(&db), Model::new());
    change(&mut Rng::new(5), &tables, &mut model, 1000);
    db.flush().unwrap();
    backups.take(&db).unwrap();
    for name in env.fs.list(Path::new("/backups")).unwrap().iter().filter(|name| *name != "LOCK") {
        let path = Path::new("/backups").join(name);
        let file = env.fs.open(&path, Access::Buffered).unwrap();
        let at = file.len().unwrap() / 2;
        let mut byte = [0];
        file.read_at(at, &mut byte).unwrap();
        file.write_at(at, &[byte[0] ^ 1]).unwrap();
        let error = backups.restore(1, "/restored").expect_err("damage");
        assert!(error.to_string().contains(name.as_str()), "{name}: {error}");
        assert!(env.fs.list(Path::new("/restored")).unwrap_or_default().is_empty(), "{name}");
        if name.ends_with(".backup") {
            assert!(backups.list().is_err());
        } else {
            assert_eq!(backups.verify(1).unwrap().len(), 1, "{name}");
        }
        file.write_at(at, &byte).unwrap();
    }
    backups.restore(1, "/restored").unwrap();
    assert_is(&env, "/restored", &model);
}

/// Wherever the power goes while one is taken, earlier ones are whole, and the next one is.
#[test]
fn a_backup_that_a_crash_ends_takes_none_along() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let fs = CrashFs::new(seed);
        let mut model = Model::new();
        let before = {
            let env = Env::simulated(fs.clone(), seed);
            let backups = Backups::open_in(&env, "/backups").unwrap();
            let db = Database::open("/db", options(&env)).unwrap();
            let tables = open_tables(&db);
            change(&mut rng, &tables, &mut model, 300);
            db.sync().unwrap();
            backups.take(&db).unwrap();
            let before = model.clone();
            change(&mut rng, &tables, &mut model, 300);
            db.sync().unwrap();
            fs.crash_at(fs.operations() + 1 + rng.below(120));
            let _ = backups.take(&db).and_then(|_| backups.keep(1));
            std::mem::forget(db);
            before
        };
        let env = Env::simulated(fs.power_cycle(), seed);
        let backups = Backups::open_in(&env, "/backups").unwrap();
        let there = backups.list().unwrap();
        assert!(!there.is_empty());
        for backup in there {
            let dir = format!("/restored-{}", backup.number);
            backups.restore(backup.number, &dir).unwrap();
            assert_is(&env, &dir, if backup.number == 1 { &before } else { &model });
        }
        let db = Database::open("/db", options(&env)).unwrap();
        let next = backups.take(&db).unwrap();
        backups.restore(next.number, "/next").unwrap();
        assert_is(&env, "/next", &model);
    }
}

/// The sync of the directory failed as old ones were removed, and the next try heard that all is well: after a power loss
/// they were there again, without their files.
#[test]
fn what_a_failed_sync_brings_back_is_whole() {
    for (seed, goes_on) in (0..8).flat_map(|seed| [(seed, false), (seed, true)]) {
        let fs = CrashFs::new(seed);
        let env = Env::simulated(fs.clone(), seed);
        let backups = Backups::open_in(&env, "/backups").unwrap();
        let db = Database::open("/db", options(&env)).unwrap();
        let (tables, mut models, mut model) = (open_tables(&db), Vec::new(), Model::new());
        let mut rng = Rng::new(seed);
        for _ in 0..3 {
            change(&mut rng, &tables, &mut model, 200);
            tables.iter().for_each(|table| table.compact().unwrap());
            backups.take(&db).unwrap();
            models.push(model.clone());
        }
        drop(tables);
        db.close().unwrap();
        fs.fail_next_sync_of_name("");
        backups.keep(1).unwrap_err();
        if goes_on {
            backups.keep(1).unwrap();
        }
        let env = Env::simulated(fs.power_cycle(), seed);
        let backups = Backups::open_in(&env, "/backups").unwrap();
        let there = backups.list().unwrap();
        assert!(there.last().is_some_and(|newest| newest.number == 3) && (!goes_on || there.len() == 1));
        for backup in there {
            let dir = format!("/restored-{}", backup.number);
            backups.restore(backup.number, &dir).unwrap();
            assert_is(&env, &dir, &models[backup.number as usize - 1]);
        }
    }
}

/// One whose name may be lost is not what the others go for.
#[test]
fn a_backup_whose_name_was_not_synced_is_none() {
    for seed in 0..8 {
        let fs = CrashFs::new(seed);
        let env = Env::simulated(fs.clone(), seed);
        let backups = Backups::open_in(&env, "/backups").unwrap();
        let db = Database::open("/db", options(&env)).unwrap();
        let (tables, mut model) = (open_tables(&db), Model::new());
        change(&mut Rng::new(seed), &tables, &mut model, 200);
        backups.take(&db).unwrap();
        fs.fail_next_sync_of_name(".backup");
        backups.take(&db).unwrap_err();
        backups.keep(1).unwrap();
        drop(tables);
        db.close().unwrap();
        let env = Env::simulated(fs.power_cycle(), seed);
        let backups = Backups::open_in(&env, "/backups").unwrap();
        let newest = backups.list().unwrap().last().unwrap().number;
        backups.restore(newest, "/restored").unwrap();
        assert_is(&env, "/restored", &model);
    }
}

#[test]
fn a_full_disk_ends_a_backup_and_leaves_those_that_are_there() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::simulated(Arc::clone(&fs) as _, 9);
    let backups = Backups::open_in(&env, "/backups").unwrap();
    let db = Database::open("/db", options(&env)).unwrap();
    let (tables, mut model) = (open_tables(&db), Model::new());
    let mut rng = Rng::new(9);
    change(&mut rng, &tables, &mut model, 300);
    backups.take(&db).unwrap();
    let before = model.clone();
    change(&mut rng, &tables, &mut model, 300);
    for rule in ["write *.tmp all no-space", "sync *.tmp all io-error", "rename *.backup.tmp all no-space"] {
        fs.rule(rule).unwrap();
        assert!(backups.take(&db).is_err(), "{rule}");
        fs.clear();
    }
    assert_eq!(backups.list().unwrap().len(), 1);
    assert_eq!(backups.take(&db).unwrap().number, 2);
    for (number, model) in [(1, &before), (2, &model)] {
        let dir = format!("/restored-{number}");
        backups.restore(number, &dir).unwrap();
        assert_is(&env, &dir, model);
    }
}

/// A tool that copies what is missing goes by names. What was left of a backup that failed had those of the next one, with
/// other bytes: the copy elsewhere could not be restored.
#[test]
fn a_name_never_stands_for_other_bytes() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::simulated(Arc::clone(&fs) as _, 13);
    let backups = Backups::open_in(&env, "/backups").unwrap();
    let db = Database::open("/db", options(&env)).unwrap();
    let (tables, mut model) = (open_tables(&db), Model::new());
    let mut rng = Rng::new(13);
    let mut elsewhere: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut copy = || {
        for name in env.fs.list(Path::new("/backups")).unwrap() {
            if name == "LOCK" || name.ends_with(".tmp") {
                continue;
            }
            let file = env.fs.open_read(&Path::new("/backups").join(&name), Access::Buffered).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(0, &mut bytes).unwrap();
            let known = elsewhere.entry(name.clone()).or_insert_with(|| bytes.clone());
            assert!(*known == bytes, "{name} has other bytes than before");
        }
    };
    for _ in 0..3 {
        change(&mut rng, &tables, &mut model, 100);
        fs.rule("rename *.backup.tmp all no-space").unwrap();
        assert!(backups.take(&db).is_err());
        fs.clear();
        copy();
    }
    let number = backups.take(&db).unwrap().number;
    copy();
    env.fs.create_dir_all(Path::new("/elsewhere")).unwrap();
    for (name, bytes) in &elsewhere {
        let file = env.fs.create(&Path::new("/elsewhere").join(name), Access::Buffered).unwrap();
        file.write_at(0, bytes).unwrap();
    }
    Backups::open_in(&env, "/elsewhere").unwrap().restore(number, "/restored").unwrap();
    assert_is(&env, "/restored", &model);
    // Numbers would begin anew.
    assert!(matches!(backups.keep(0), Err(Error::Invalid(reason)) if reason.contains("at least one")));
    assert_eq!(backups.newest().unwrap(), number);
}

/// Names, lengths and digests tell who copies checkpoints what an earlier one had.
#[test]
fn a_checkpoint_tells_its_files() {
    let env = Env::simulated(MemoryFs::new(), 11);
    let db = Database::open("/db", options(&env)).unwrap();
    let (tables, mut model) = (open_tables(&db), Model::new());
    change(&mut Rng::new(11), &tables, &mut model, 2000);
    db.flush().unwrap();
    let bytes_of = |dir: &str, name: &str| {
        let file = env.fs.open_read(&Path::new(dir).join(name), Access::Buffered).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        let got = file.read_at(0, &mut bytes).unwrap();
        bytes.truncate(got);
        bytes
    };
    let one = db.checkpoint("/one").unwrap();
    change(&mut Rng::new(12), &tables[..1], &mut model, 200);
    db.flush().unwrap();
    let two = db.checkpoint("/two").unwrap();
    let mut shared = 0;
    for (dir, checkpoint) in [("/one", &one), ("/two", &two)] {
        let mut told: Vec<&str> = checkpoint.files.iter().map(|file| &*file.name).collect();
        told.extend(["LOCK"]);
        told.sort_unstable();
        assert_eq!(env.fs.list(Path::new(dir)).unwrap(), told);
    }
    for file in two.files.iter().filter(|file| file.digest.is_some() && one.files.contains(file)) {
        assert_eq!(bytes_of("/one", &file.name), bytes_of("/two", &file.name));
        shared += 1;
    }
    assert!(shared > 0);
}
