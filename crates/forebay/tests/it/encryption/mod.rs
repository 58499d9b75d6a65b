//! Encryption at rest: nothing of the user's is in any file, and nothing opens without the key.

mod adversary;
mod beside;
mod lost;
mod superblock;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::aggregate::functions::Count;
use forebay::aggregate::{Aggregator, AggregatorOptions, CompressedAggregator};
use forebay::encryption::{Key, OneKey};
use forebay::{
    Backups, Batch, Codec, Database, Durability, Error, GroupFiles, Layout, Options, Result, Rewrite, Table,
};
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, Env, FileSystem, Rng};

const DIR: &str = "/db";
const TABLES: [(&str, &str); 6] = [
    ("planted table", "wb-tree"),
    ("planted order", "leveling:t=3"),
    ("planted jungle", "jungle:c=1.5,t=3"),
    ("planted memory", "range-merge"),
    ("planted growth", "range-merge:c=1.5"),
    ("planted tree", "wb-tree:ordered"),
];

fn options(env: &Env, name: &str, key: u8) -> Options {
    plain(env).encryption(Arc::new(OneKey::new(name, Key::new([key; 32]))))
}

fn plain(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(8 << 10).write_buffers(3).env(env.clone())
}

fn tables(db: &Database) -> Result<Vec<Table>> {
    let open = |(name, layout): &(&str, &str)| {
        let layout: Layout = layout.parse()?;
        db.table(name).layout(layout).node_bytes(6 << 10).codec(Codec::Lz4).open()
    };
    TABLES.iter().map(open).collect()
}

/// Fills tables; returns what each has.
fn fill(db: &Database, rng: &mut Rng, puts: usize) -> Result<()> {
    let tables = tables(db)?;
    for number in 0..puts {
        let durability = [Durability::Memory, Durability::Os, Durability::Disk][rng.index(3)];
        let key = format!("planted key {}", rng.below(2000));
        // A value follows from its key.
        let mut batch = Batch::new();
        batch.put(&tables[number % tables.len()], key.as_bytes(), value_of(&key).as_bytes());
        db.commit(batch, durability)?;
    }
    Ok(())
}

/// A database by the key `one`, of this seed and with this many puts, and where it is.
fn filled(seed: u64, puts: usize) -> (Arc<MemoryFs>, Env, Database) {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), seed);
    let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
    fill(&db, &mut Rng::new(seed), puts).unwrap();
    (fs, env, db)
}

fn value_of(key: &str) -> String {
    format!("planted value of {key}; ").repeat(1 + key.len() % 5)
}

/// Every value that is there is the one that was put; returns how many there are.
fn count(db: &Database) -> Result<usize> {
    let mut found = 0;
    for table in tables(db)? {
        for number in 0..2000 {
            let key = format!("planted key {number}");
            if let Some(value) = table.get(key.as_bytes())? {
                assert_eq!(value, value_of(&key).as_bytes(), "{key}");
                found += 1;
            }
        }
    }
    Ok(found)
}

fn bytes_of(fs: &dyn FileSystem, path: &Path) -> Vec<u8> {
    let file = fs.open_read(path, Access::Buffered).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// No file of the directory has anything of what was planted.
fn has_no_text(fs: &dyn FileSystem, dir: &str) {
    let names = fs.list(Path::new(dir)).unwrap();
    assert!(names.len() > 4, "{dir}: {names:?}");
    for name in names {
        let bytes = bytes_of(fs, &Path::new(dir).join(&name));
        for word in [&b"planted"[..], b"value of", b"hidden"] {
            assert!(!bytes.windows(word.len()).any(|window| window == word), "{dir}/{name}");
        }
    }
}

/// Through flushes and merges, crashes, checkpoints, backups and restores nothing planted is in a file, and all of it is
/// read.
#[test]
fn no_file_has_anything_of_what_was_written() {
    for seed in 0..3 {
        let (fs, mut rng) = (MemoryFs::new(), Rng::new(seed));
        let open = |fs: &Arc<MemoryFs>, seed| {
            let env = Env::simulated(fs.clone(), seed);
            (Database::open(DIR, options(&env, "one", 1)).unwrap(), env)
        };
        let (db, env) = open(&fs, seed);
        fill(&db, &mut rng, 3000).unwrap();
        db.savepoint("hidden savepoint").unwrap();
        env.jobs.step_some(200);
        has_no_text(&*fs, DIR);
        db.checkpoint("/checkpoint").unwrap();
        let backups = Backups::open_in(&env, "/backups").unwrap();
        backups.take(&db).unwrap();
        fill(&db, &mut rng, 500).unwrap();
        let second = backups.take(&db).unwrap();
        let there = count(&db).unwrap();
        // As after a crash of the process, which everything that was told is safe from.
        db.sync().unwrap();
        let fs = {
            let left = fs.deep_clone();
            env.jobs.abandon();
            drop(db);
            left
        };
        has_no_text(&*fs, DIR);
        let (db, env) = open(&fs, seed + 100);
        let backups = Backups::open_in(&env, "/backups").unwrap();
        assert_eq!(count(&db).unwrap(), there, "seed {seed}");
        for table in tables(&db).unwrap() {
            table.compact().unwrap();
        }
        assert_eq!(count(&db).unwrap(), there);
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new());
        db.close().unwrap();
        assert_eq!(backups.verify(second.number).unwrap().len(), 0);
        backups.restore(second.number, "/restored").unwrap();
        for dir in [DIR, "/checkpoint", "/backups", "/restored"] {
            has_no_text(&*fs, dir);
        }
        for dir in ["/checkpoint", "/restored"] {
            let env = Env::simulated(fs.clone(), seed);
            let copy = Database::open(dir, options(&env, "one", 1)).unwrap();
            let found = count(&copy).unwrap();
            assert!(found == there || dir == "/checkpoint" && (1..there).contains(&found), "{dir}: {found}");
            fill(&copy, &mut rng, 300).unwrap();
            copy.close().unwrap();
            has_no_text(&*fs, dir);
        }
        let (db, _env) = open(&fs, seed + 200);
        assert_eq!(count(&db).unwrap(), there, "a copy that went its own way has changed nothing");
    }
}

fn refusal(opened: Result<Database>) -> String {
    match opened {
        Err(Error::Invalid(reason)) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it opens"),
    }
}

/// An encrypted database opens by its own key only, and one that is not only without; each refusal says what to do.
#[test]
fn what_does_not_fit_is_refused() {
    let env = Env::memory(1);
    let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
    let refused = db.table("apart").values_apart(100).open().unwrap_err().to_string();
    assert!(refused.contains("values_apart"), "{refused}");
    fill(&db, &mut Rng::new(1), 100).unwrap();
    db.close().unwrap();
    let refused = |options| refusal(Database::open(DIR, options));
    assert!(refused(plain(&env)).contains("Options::encryption"));
    assert!(refused(options(&env, "one", 2)).contains("`one` is not the one"));
    assert!(refused(options(&env, "two", 1)).contains("by key `one`"));
    assert!(refused(options(&env, "two", 1).read_only(true)).contains("by key `one`"));
    let mut seen = Vec::new();
    let mut dump = |options: Options| {
        seen.clear();
        Database::dump_with(&options, DIR, &mut |entry| {
            seen.push(entry.to_string());
            Ok(())
        })
        .unwrap();
        seen.clone()
    };
    for options in [plain(&env), options(&env, "two", 1)] {
        let seen = dump(options);
        assert!(seen.len() == 3 && seen[2].contains("encrypted"), "{seen:?}");
    }
    let shown = dump(options(&env, "one", 1));
    assert!(shown.iter().any(|line| line.contains("planted order")), "{shown:?}");
    Database::open("/plain", plain(&env)).unwrap().close().unwrap();
    let told = refusal(Database::open("/plain", options(&env, "one", 1)));
    assert!(told.contains("without encryption"), "{told}");
    assert!(Database::open("/plain", plain(&env)).is_ok());
    let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
    assert!(count(&db).unwrap() > 0);
}

/// A changed byte, wherever it is, is an error that names the file, or is in what nobody needs; never another answer.
#[test]
fn a_changed_byte_is_no_answer() {
    let (intact, mut rng) = (MemoryFs::new(), Rng::new(7));
    let env = Env::simulated(intact.clone(), 7);
    let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
    fill(&db, &mut rng, 1500).unwrap();
    let there = count(&db).unwrap();
    db.close().unwrap();
    let (mut refused, mut unharmed) = (0, 0);
    for name in intact.list(Path::new(DIR)).unwrap() {
        let path = Path::new(DIR).join(&name);
        let length = bytes_of(&*intact, &path).len();
        for _ in 0..if length == 0 { 0 } else { 6 } {
            let fs = MemoryFs::new();
            fs.create_dir_all(Path::new(DIR)).unwrap();
            for name in intact.list(Path::new(DIR)).unwrap() {
                let path = Path::new(DIR).join(&name);
                let file = fs.create(&path, Access::Buffered).unwrap();
                file.write_at(0, &bytes_of(&*intact, &path)).unwrap();
            }
            let (mut bytes, at) = (bytes_of(&*fs, &path), rng.index(length));
            bytes[at] ^= 1 << rng.index(8);
            fs.open(&path, Access::Buffered).unwrap().write_at(0, &bytes).unwrap();
            let env = Env::simulated(fs, 8);
            let outcome = Database::open(DIR, options(&env, "one", 1).read_only(true))
                .and_then(|db| count(&db).map(|found| assert_eq!(found, there, "{name} at {at}")));
            match outcome {
                Ok(()) => unharmed += 1,
                Err(error) => {
                    let (told, named) = (error.to_string(), &name[..name.len().min(8)]);
                    assert!(told.contains(named), "{name} at {at}: {told}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 20 && unharmed < refused, "{refused} refused, {unharmed} unharmed");
}

/// Lists and trees, once what nobody needs is removed.
fn files(env: &Env) -> Vec<String> {
    for _ in 0..20 {
        env.jobs.advance(Duration::from_millis(200));
        env.jobs.step_some(2000);
    }
    let names = env.fs.list(Path::new(DIR)).unwrap().into_iter();
    names.filter(|name| name.ends_with(".list") || name.ends_with(".tree")).collect()
}

/// The provider's key is changed by writing one short file; a new data key is for what is written from then on, and
/// compactions write the rest anew.
#[test]
fn keys_are_changed() {
    let (fs, mut rng) = (MemoryFs::new(), Rng::new(9));
    let env = Env::simulated(fs.clone(), 9);
    let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
    fill(&db, &mut rng, 2000).unwrap();
    // What comes with commits stands in a table that none of these is.
    let counts = db.aggregator("planted counts", Count).open().unwrap();
    counts.commit(Batch::new(), Durability::Os, b"planted offset").unwrap();
    db.flush().unwrap();
    let before = db.encryption_stats().unwrap();
    assert!(before.data_keys == 1 && before.bytes > 0 && before.older_bytes == 0, "{before:?}");
    db.renew_data_key().unwrap();
    let renewed = db.encryption_stats().unwrap();
    assert!(renewed.data_keys == 2 && renewed.older_bytes == renewed.bytes, "{renewed:?}");
    fill(&db, &mut rng, 500).unwrap();
    db.checkpoint("/checkpoint").unwrap();
    for table in tables(&db).unwrap() {
        table.compact().unwrap();
    }
    let compacted = db.encryption_stats().unwrap();
    assert!(compacted.older_bytes < renewed.older_bytes / 2, "{compacted:?}");
    let rewrite = || {
        for table in tables(&db).unwrap() {
            table.rewrite(Rewrite::OlderKeys).unwrap();
        }
        let rewritten = db.encryption_stats().unwrap();
        assert!(rewritten.older_bytes == 0 && rewritten.bytes > 0, "{rewritten:?}");
    };
    rewrite();
    let newest = files(&env);
    rewrite();
    assert_eq!(files(&env), newest, "what is by the newest key is left alone");
    assert_eq!(counts.metadata().unwrap().as_deref(), Some(&b"planted offset"[..]));
    drop(counts);
    let there = count(&db).unwrap();
    db.close().unwrap();
    // A provider that has both keys, and of which the second one is current.
    struct Both;
    impl forebay::encryption::KeyProvider for Both {
        fn current(&self) -> Result<String> {
            Ok("two".into())
        }
        fn key(&self, name: &str) -> Result<Key> {
            Ok(Key::new([if name == "one" { 1 } else { 2 }; 32]))
        }
    }
    let both = || plain(&env).encryption(Arc::new(Both));
    let db = Database::open(DIR, both().read_only(true)).unwrap();
    assert!(db.wrap_data_keys().is_err(), "it is opened to be read");
    drop(db);
    let db = Database::open(DIR, both()).unwrap();
    db.wrap_data_keys().unwrap();
    db.close().unwrap();
    assert!(refusal(Database::open(DIR, options(&env, "one", 1))).contains("by key `two`"));
    let db = Database::open(DIR, options(&env, "two", 2)).unwrap();
    assert_eq!(count(&db).unwrap(), there);
    let copy = Database::open("/checkpoint", options(&env, "one", 1)).unwrap();
    assert_eq!(count(&copy).unwrap(), there);
    Database::open("/plain", plain(&env)).unwrap().encryption_stats().unwrap_err();
}

/// What an aggregator has no memory for is encrypted by a key that goes with it.
#[test]
fn groups_in_files_are_encrypted() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 3);
    let files = GroupFiles::in_env(env.clone(), "/spilled").encrypted();
    let options = AggregatorOptions::default().memory_limit(2 << 20).spill_to(files);
    let counts = CompressedAggregator::new(Count, options).unwrap();
    for number in 0..150_000 {
        counts.add(format!("hidden group {number}").as_bytes(), ()).unwrap();
    }
    has_no_text(&*fs, "/spilled/groups");
    let names = fs.list(Path::new("/spilled/groups")).unwrap();
    assert!(names.iter().any(|name| name.ends_with(".list")), "{names:?}");
    assert!(counts.get(b"hidden group 77").unwrap().is_some());
}
