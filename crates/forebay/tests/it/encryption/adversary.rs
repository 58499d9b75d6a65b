//! What an adversary, a mistake or a loss of power may do to files and keys: each is an error that names the file, or
//! nothing is lost.

use forebay::encryption::KeyProvider;
use forebay_env::fs::CrashFs;
use forebay_store::log::frame::{Header, Secret};
use forebay_store::names;

use super::*;

fn path_of(name: &str) -> std::path::PathBuf {
    Path::new(DIR).join(name)
}

fn tell(error: &Error, words: &[&str]) {
    let told = error.to_string();
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
}

/// Has keys `one` and `two`; the second is current.
struct Both;

impl KeyProvider for Both {
    fn current(&self) -> Result<String> {
        Ok("two".into())
    }

    fn key(&self, name: &str) -> Result<Key> {
        Ok(Key::new([if name == "one" { 1 } else { 2 }; 32]))
    }
}

/// Whenever power goes while a database is made, it is made anew at the next try, by whatever key that has, or without.
#[test]
fn power_goes_while_a_database_is_made() {
    for at in 1.. {
        let fs = CrashFs::new(at);
        fs.crash_at(at);
        let env = Env::simulated(fs.clone(), at);
        let made = Database::open(DIR, options(&env, "one", 1));
        let is_made = made.is_ok();
        drop(made);
        env.jobs.abandon();
        if fs.operations() < at {
            assert!(is_made && at > 10, "{at} operations");
            return;
        }
        let fs = fs.power_cycle();
        let env = Env::simulated(fs.clone(), at + 1000);
        let again = match at % 3 {
            0 => Database::open(DIR, plain(&env)),
            1 => Database::open(DIR, options(&env, "two", 2)),
            _ => Database::open(DIR, options(&env, "one", 1)),
        };
        // Once the superblock may be durable it is what it was made.
        let db = match again {
            Err(Error::Invalid(told)) if told.contains("is encrypted") => {
                Database::open(DIR, options(&env, "one", 1)).unwrap()
            }
            again => again.unwrap(),
        };
        fill(&db, &mut Rng::new(at), 20).unwrap();
        let there = count(&db).unwrap();
        db.close().unwrap();
        let is_encrypted = fs.exists(&path_of(names::KEYS)).unwrap();
        let key = if at % 3 == 1 { ("two", 2) } else { ("one", 1) };
        let reopen = |key: (&str, u8)| Database::open(DIR, options(&env, key.0, key.1));
        let db = match is_encrypted {
            true => reopen(key).or_else(|_| reopen(("one", 1))).unwrap(),
            false => Database::open(DIR, plain(&env)).unwrap(),
        };
        assert_eq!(count(&db).unwrap(), there);
    }
}

/// Whenever power goes while keys are changed, all that was durable is read, by the key from before or the new one.
#[test]
fn power_goes_while_keys_are_changed() {
    for at in 1.. {
        let fs = CrashFs::new(at);
        let env = Env::simulated(fs.clone(), at);
        let db = Database::open(DIR, options(&env, "one", 1).durability(Durability::Disk)).unwrap();
        fill(&db, &mut Rng::new(at), 30).unwrap();
        db.close().unwrap();
        let db = Database::open(DIR, plain(&env).encryption(Arc::new(Both))).unwrap();
        let there = count(&db).unwrap();
        let before = fs.operations();
        fs.crash_at(before + at);
        let changed = db.wrap_data_keys().and_then(|()| db.renew_data_key()).is_ok();
        if fs.operations() < before + at {
            assert!(changed && at > 10, "{at} operations");
            return;
        }
        let (fs, _) = (fs.power_cycle(), env.jobs.abandon());
        drop(db);
        let env = Env::simulated(fs, at + 1000);
        let db = Database::open(DIR, plain(&env).encryption(Arc::new(Both))).unwrap();
        assert_eq!(count(&db).unwrap(), there, "operation {at}");
        db.renew_data_key().unwrap();
        fill(&db, &mut Rng::new(at), 30).unwrap();
        db.close().unwrap();
        let db = Database::open(DIR, options(&env, "two", 2)).unwrap();
        assert!(count(&db).unwrap() >= there);
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new());
    }
}

/// The sync of the key file's name failed, and writing went on: the next sync of the directory said that all is well, and a
/// power loss took what was named before the failure.
#[test]
fn a_failed_sync_of_the_key_files_name_stops_all_writing() {
    for (seed, name) in (0..).zip([names::KEYS, names::KEYS_SPARE, names::KEYS, names::KEYS_SPARE]) {
        let fs = CrashFs::new(seed);
        let env = Env::simulated(fs.clone(), seed);
        let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
        fill(&db, &mut Rng::new(seed), 30).unwrap();
        let change = || if seed < 2 { db.renew_data_key() } else { db.wrap_data_keys() };
        fs.fail_next_sync_of_name(name);
        change().unwrap_err();
        for outcome in [fill(&db, &mut Rng::new(seed), 30), change()] {
            assert!(matches!(outcome, Err(Error::Poisoned(_))), "{name}: {outcome:?}");
        }
        let (fs, _) = (fs.power_cycle(), env.jobs.abandon());
        drop(db);
        let env = Env::simulated(fs, seed);
        let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
        fill(&db, &mut Rng::new(seed), 30).unwrap();
        db.renew_data_key().unwrap();
        db.close().unwrap();
    }
}

/// What an opening makes durable again are the bytes that stand there: torn in the midst of that, they are what they were.
#[test]
fn what_was_durable_is_not_torn_by_an_opening() {
    let make = |seed: u64| {
        let fs = CrashFs::new(seed);
        let env = Env::simulated(fs.clone(), seed);
        let db = Database::open(DIR, options(&env, "one", 1).write_buffer(64 << 10)).unwrap();
        let table = db.table("planted").open().unwrap();
        for number in 0..40 {
            let key = format!("planted key {number}");
            let mut batch = Batch::new();
            batch.put(&table, key.as_bytes(), value_of(&key).as_bytes());
            db.commit(batch, Durability::Disk).unwrap();
        }
        env.jobs.abandon();
        fs.process_cycle()
    };
    let open = |fs: &Arc<CrashFs>, seed| {
        let env = Env::simulated(fs.clone(), seed);
        let db = Database::open(DIR, options(&env, "one", 1).write_buffer(64 << 10));
        (env, db)
    };
    let mut same = 0;
    for at in 1.. {
        let fs = make(at);
        let (before, begun) = (fs.snapshot_files(), fs.operations());
        fs.crash_at(begun + at);
        let (env, opened) = open(&fs, at + 500);
        if opened.is_ok() && fs.operations() < begun + at {
            for (path, bytes) in fs.snapshot_files() {
                let was = before.get(&path).filter(|_| path.extension().is_some_and(|kind| kind == "log"));
                if let Some(was) = was {
                    assert!(was.starts_with(&bytes), "{} was written otherwise", path.display());
                    same += bytes.len();
                }
            }
            assert!(same > 2000 && at > 5, "{same} bytes, {at} operations");
            return;
        }
        env.jobs.abandon();
        drop(opened);
        let (_env, opened) = open(&fs.power_cycle(), at + 1000);
        let table = opened.unwrap().table("planted").existing(true).open().unwrap();
        for number in 0..40 {
            let key = format!("planted key {number}");
            assert!(table.get(&key).unwrap().is_some(), "{key}, operation {at}");
        }
    }
}

fn written(fs: &Arc<MemoryFs>, dir: &str, options: Options, seed: u64) -> usize {
    let db = Database::open(dir, options).unwrap();
    fill(&db, &mut Rng::new(seed), 400).unwrap();
    let there = count(&db).unwrap();
    db.close().unwrap();
    assert!(!fs.list(Path::new(dir)).unwrap().is_empty());
    there
}

/// Files of a plain database, or of another encrypted one, in the place of this one's are errors: nothing that is not
/// encrypted by its keys is taken for its own.
#[test]
fn files_of_others_are_refused() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 5);
    let encrypted = || options(&env, "one", 1);
    let there = written(&fs, DIR, encrypted(), 5);
    written(&fs, "/plain", plain(&env), 5);
    written(&fs, "/other", encrypted(), 5);
    let intact = fs.snapshot_files();
    let read = |options: Options| Database::open(DIR, options.read_only(true)).and_then(|db| count(&db));
    for from in ["/plain", "/other"] {
        for name in fs.list(Path::new(from)).unwrap() {
            let (path, bytes) = (path_of(&name), bytes_of(&*fs, &Path::new(from).join(&name)));
            if !intact.contains_key(&path) || bytes.is_empty() || name == names::LOCK {
                continue;
            }
            fs.replace_file(&path, bytes);
            match read(encrypted()) {
                // What is not needed is not looked at.
                Ok(found) => {
                    let is_spare = name.ends_with(".log") || name == names::KEYS_SPARE;
                    assert!(found == there && is_spare, "{from}/{name}: {found}");
                }
                Err(error) => tell(&error, &[DIR]),
            }
            fs.replace_file(&path, intact[&path].clone());
        }
        // All of them: a database that opens, but never by whoever has a key, or has another one's.
        let fs = MemoryFs::new();
        fs.create_dir_all(Path::new(DIR)).unwrap();
        for (path, bytes) in intact.iter().filter(|(path, _)| path.starts_with(from)) {
            fs.replace_file(&path_of(path.file_name().unwrap().to_str().unwrap()), bytes.clone());
        }
        let env = Env::simulated(fs, 6);
        let opened = Database::open(DIR, options(&env, "one", 1));
        match from {
            "/plain" => assert!(refusal(opened).contains("without encryption")),
            _ => assert!(opened.is_ok(), "it is another one by the same key"),
        }
    }
    // A superblock that says that nothing is encrypted does not make it so.
    fs.replace_file(
        &path_of(names::SUPERBLOCK),
        bytes_of(&*fs, &Path::new("/plain").join(names::SUPERBLOCK)),
    );
    fs.replace_file(
        &path_of(names::SUPERBLOCK_SPARE),
        bytes_of(&*fs, &Path::new("/plain").join(names::SUPERBLOCK_SPARE)),
    );
    tell(&read(encrypted()).unwrap_err(), &["without encryption"]);
    tell(&read(plain(&env)).unwrap_err(), &[".manifest"]);
    fs.replace_file(&path_of(names::SUPERBLOCK), intact[&path_of(names::SUPERBLOCK)].clone());
    fs.replace_file(&path_of(names::SUPERBLOCK_SPARE), intact[&path_of(names::SUPERBLOCK_SPARE)].clone());
    assert_eq!(read(encrypted()).unwrap(), there);
}

/// A frame that is not encrypted is none of this database's, though whoever can read the superblock can make its
/// checksums.
#[test]
fn a_plain_frame_is_not_read() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 7);
    let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
    let table = db.table("planted").open().unwrap();
    table.put("a", "1").unwrap();
    let last = db.last_sequence();
    env.jobs.abandon();
    let fs = fs.deep_clone();
    drop(db);
    // Its log's secret.
    let secret =
        Secret(u64::from_le_bytes(bytes_of(&*fs, &path_of(names::SUPERBLOCK))[36..44].try_into().unwrap()));
    let logs: Vec<String> =
        fs.list(Path::new(DIR)).unwrap().into_iter().filter(|name| name.ends_with(".log")).collect();
    let forge = |is_encrypted: bool| {
        let mut forged = 0;
        for name in &logs {
            let (segment, mut bytes) = (name[..8].parse().unwrap(), bytes_of(&*fs, &path_of(name)));
            let mut at = 0;
            while let Some(header) = bytes.get(at..).and_then(|rest| Header::at(rest, secret, segment, at)) {
                at = header.end(at);
                if header.sequence + u64::from(header.records) == last + 1 {
                    let payload = [0u8; 40];
                    let forgery = Header {
                        payload_sum: secret.payload_sum(&payload),
                        is_encrypted,
                        payload_bytes: if is_encrypted { 8 } else { 40 },
                        records: 1,
                        sequence: last + 1,
                        watermark: 0,
                    };
                    bytes[at..at + 32].copy_from_slice(&forgery.encode(secret, segment, at));
                    bytes[at + 32..at + 72].copy_from_slice(&payload);
                    forged += 1;
                    break;
                }
            }
            fs.replace_file(&path_of(name), bytes);
        }
        assert_eq!(forged, 1);
        let env = Env::simulated(fs.deep_clone(), 8);
        Database::open(DIR, options(&env, "one", 1))
    };
    let db = forge(false).unwrap();
    assert_eq!(db.last_sequence(), last, "it is a torn tail");
    tell(&forge(true).map(drop).unwrap_err(), &[".log", "not what was written"]);
}

/// With an older key file, or that of another database, nothing is cut off or passed over: it is an error, and with the
/// right one all is there.
#[test]
fn the_key_file_must_be_its_own() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 9);
    let encrypted = |env: &Env| options(env, "one", 1);
    let db = Database::open(DIR, encrypted(&env)).unwrap();
    fill(&db, &mut Rng::new(9), 300).unwrap();
    db.flush().unwrap();
    let older = bytes_of(&*fs, &path_of(names::KEYS));
    db.renew_data_key().unwrap();
    let table = db.table("fresh").open().unwrap();
    // A segment is begun by the newest key.
    for number in 0..200 {
        table.put(format!("{number}"), "value ".repeat(30)).unwrap();
    }
    env.jobs.abandon();
    let fs = fs.deep_clone();
    drop((table, db));
    let newest = bytes_of(&*fs, &path_of(names::KEYS));
    let other = Env::simulated(fs.clone(), 10);
    written(&fs, "/other", encrypted(&other), 10);
    let others = bytes_of(&*fs, &Path::new("/other").join(names::KEYS));
    let open = |keys: Option<&[u8]>, spare: Option<&[u8]>| {
        let fs = fs.deep_clone();
        for (name, bytes) in [(names::KEYS, keys), (names::KEYS_SPARE, spare)] {
            match bytes {
                Some(bytes) => fs.replace_file(&path_of(name), bytes.to_vec()),
                None => fs.remove(&path_of(name)).unwrap(),
            }
        }
        let env = Env::simulated(fs, 11);
        Database::open(DIR, encrypted(&env)).and_then(|db| {
            let fresh = db.table("fresh").existing(true).open()?;
            assert!((0..200).all(|number| fresh.get(format!("{number}")).unwrap().is_some()));
            count(&db)
        })
    };
    let there = open(Some(&newest), Some(&newest)).unwrap();
    for (keys, words) in [(&older, "FOREBAY.keys is older"), (&others, "of another")] {
        tell(&open(Some(keys), Some(keys)).unwrap_err(), &[DIR, words]);
    }
    // One of the two is enough.
    let mut torn = newest.clone();
    torn.truncate(newest.len() / 2);
    for spoilt in [None, Some(&torn[..]), Some(&[])] {
        assert_eq!(open(spoilt, Some(&newest)).unwrap(), there);
        assert_eq!(open(Some(&newest), spoilt).unwrap(), there);
        tell(&open(spoilt, spoilt).unwrap_err(), &["FOREBAY.keys"]);
    }
}
