//! Encrypted databases beside others: readers of other processes, and followers. Two environments over one file system
//! in memory stand for two processes.

use std::time::Duration;

use forebay::encryption::KeyProvider;
use forebay::{Follower, OrderedTable};
use forebay_env::sync::Mutex;

use super::*;

/// Has the keys of several names, the last of which is current.
struct Ring(Mutex<Vec<(&'static str, u8)>>);

impl Ring {
    fn of(keys: &[(&'static str, u8)]) -> Arc<Self> {
        Arc::new(Self(Mutex::new(keys.to_vec())))
    }
}

impl KeyProvider for Ring {
    fn current(&self) -> Result<String> {
        Ok(self.0.lock().last().unwrap().0.into())
    }

    fn key(&self, name: &str) -> Result<Key> {
        let keys = self.0.lock();
        let known = keys.iter().find(|(known, _)| *known == name);
        let unknown = || Error::Invalid(format!("the ring has no key `{name}`; fetch it"));
        known.map(|&(_, byte)| Key::new([byte; 32])).ok_or_else(unknown)
    }
}

fn put_some(table: &OrderedTable, rng: &mut Rng, puts: usize) {
    for _ in 0..puts {
        let key = format!("planted key {}", rng.below(2000));
        table.put(&key, value_of(&key)).unwrap();
    }
}

/// All that is there, each of which is as it was put.
fn entries(table: &OrderedTable) -> Vec<Vec<u8>> {
    let entries: Result<Vec<_>> = table.range(..).unwrap().collect();
    let is_its = |(key, value): (Vec<u8>, Vec<u8>)| {
        assert_eq!(value, value_of(std::str::from_utf8(&key).unwrap()).into_bytes());
        key
    };
    entries.unwrap().into_iter().map(is_its).collect()
}

/// A reader sees what a writer has written since, in buffers and in lists, behind a manifest that was written anew, and by
/// data keys that were drawn meanwhile; without the key it sees nothing.
#[test]
fn a_reader_reads_beside_a_writer() {
    for seed in 0..4 {
        let (fs, mut rng) = (MemoryFs::new(), Rng::new(seed));
        let (env, other) = (Env::simulated(fs.clone(), seed), Env::simulated(fs.clone(), seed + 100));
        let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
        let layout: Layout =
            ["wb-tree:ordered", "leveling:t=3", "jungle:c=2,t=4"][seed as usize % 3].parse().unwrap();
        let table = db.table("planted").layout(layout).node_bytes(8 << 10).open_ordered().unwrap();
        put_some(&table, &mut rng, 50);
        let open = |options: Options| Database::open(DIR, options.read_only(true));
        assert!(refusal(open(plain(&other))).contains("Options::encryption"));
        assert!(refusal(open(options(&other, "one", 2))).contains("`one` is not the one"));
        let reader = open(options(&other, "one", 1)).unwrap();
        let seen = reader.table("planted").existing(true).open_ordered().unwrap();
        for round in 0..30 {
            if round % 5 == 2 {
                db.renew_data_key().unwrap();
            }
            let puts = [3, 40, 400][rng.index(3)];
            put_some(&table, &mut rng, puts);
            if rng.chance(30) {
                db.flush().unwrap();
            }
            reader.refresh().unwrap();
            assert_eq!(entries(&seen), entries(&table), "seed {seed}, round {round}");
        }
        let stats = reader.encryption_stats().unwrap();
        assert!(stats.data_keys > 1 && stats.bytes > 0, "{stats:?}");
        assert!(refused(reader.renew_data_key()).contains("read"), "it only reads");
        // Both are as they were for whoever comes later.
        db.close().unwrap();
        reader.refresh().unwrap();
        drop(reader);
        let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
        let table = db.table("planted").existing(true).open_ordered().unwrap();
        assert!(!entries(&table).is_empty());
        has_no_text(&*fs, DIR);
    }
}

fn refused<T>(outcome: Result<T>) -> String {
    outcome.err().map(|error| error.to_string()).unwrap()
}

/// A reader that has not the key by which a new data key is encrypted is told so, and goes on once it has it.
#[test]
fn a_reader_without_a_new_key_is_told() {
    let fs = MemoryFs::new();
    let (env, other) = (Env::simulated(fs.clone(), 1), Env::simulated(fs.clone(), 2));
    let (writers, readers) = (Ring::of(&[("one", 1)]), Ring::of(&[("one", 1)]));
    let db = Database::open(DIR, plain(&env).encryption(writers.clone())).unwrap();
    let table = db.table("planted").open_ordered().unwrap();
    table.put("a", "1").unwrap();
    let reader = Database::open(DIR, plain(&other).encryption(readers.clone()).read_only(true)).unwrap();
    let seen = reader.table("planted").existing(true).open_ordered().unwrap();
    writers.0.lock().push(("two", 2));
    db.renew_data_key().unwrap();
    table.put("b", "2").unwrap();
    let told = refused(reader.refresh());
    assert!(told.contains("`two`") && told.contains("fetch it"), "{told}");
    assert_eq!(seen.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    readers.0.lock().push(("two", 2));
    reader.refresh().unwrap();
    assert_eq!(seen.get("b").unwrap().as_deref(), Some(&b"2"[..]));
}

/// The stream of changes is plain text; a follower is encrypted or not as it was made, by a key of its own.
#[test]
fn followers_are_encrypted_for_themselves() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 3);
    let source = Database::open(DIR, options(&env, "one", 1).keep_changes(1 << 30)).unwrap();
    let mut rng = Rng::new(3);
    fill(&source, &mut rng, 300).unwrap();
    source.flush().unwrap();
    let follow = |name: &str, options: Options| {
        let mut follower = Follower::open(name, options.keep_changes(1 << 30)).unwrap();
        let mut stream = source.stream_changes(follower.position(), Vec::new()).unwrap();
        stream.advance().unwrap();
        let bytes = stream.finish().unwrap();
        follower.apply(&bytes[..]).unwrap();
        assert_eq!(follower.position(), source.last_sequence());
        let there = count(follower.database()).unwrap();
        drop(follower);
        (there, bytes)
    };
    source.checkpoint("/copy").unwrap();
    for round in 0..2 {
        let there = count(&source).unwrap();
        let (found, stream) = follow("/encrypted", options(&env, "of its own", 2));
        assert_eq!(found, there);
        assert!(stream.windows(11).any(|window| window == b"planted key"), "the stream is plain");
        assert_eq!(follow("/plain", plain(&env)).0, there);
        // One that begins as a copy has the keys of that.
        assert_eq!(follow("/copy", options(&env, "one", 1)).0, there);
        fill(&source, &mut rng, 300).unwrap();
        if round == 0 {
            source.renew_data_key().unwrap();
            source.flush().unwrap();
        }
    }
    has_no_text(&*fs, "/encrypted");
    has_no_text(&*fs, "/copy");
    let promoted = Database::open("/encrypted", options(&env, "of its own", 2)).unwrap();
    assert!(count(&promoted).unwrap() > 0);
}

/// An encrypted follower that has all of its source, and is promoted.
fn followed(env: &Env, source: &Database) -> Database {
    let encrypted = options(env, "of its own", 2).keep_changes(1 << 30);
    let mut follower = Follower::open("/follower", encrypted).unwrap();
    let mut stream = source.stream_changes(follower.position(), Vec::new()).unwrap();
    stream.advance().unwrap();
    follower.apply(&stream.finish().unwrap()[..]).unwrap();
    follower.promote().unwrap()
}

/// An encrypted follower keeps values with their keys, also where its source keeps them apart.
#[test]
fn an_encrypted_follower_keeps_no_values_apart() {
    let env = Env::simulated(MemoryFs::new(), 4);
    let source = Database::open(DIR, plain(&env).keep_changes(1 << 30)).unwrap();
    let table = source.table("planted").values_apart(100).open().unwrap();
    let value = |number: u32| format!("planted value {number}; ").repeat(20);
    for number in 0..300 {
        table.put(format!("{number}"), value(number)).unwrap();
    }
    let db = followed(&env, &source);
    db.flush().unwrap();
    let copy = db.table("planted").existing(true).open().unwrap();
    copy.compact().unwrap();
    for number in 0..300 {
        assert_eq!(copy.get(format!("{number}")).unwrap(), Some(value(number).into_bytes()));
    }
    assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new());
}

/// What a writer tells a reader of itself stood in a file as it is, with the names of tables.
#[test]
fn a_writers_numbers_are_encrypted() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 1);
    let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
    let table = db.table("planted").open().unwrap();
    table.put("key", "value").unwrap();
    let reader = Database::open(DIR, options(&env, "one", 1).read_only(true)).unwrap();
    let told = reader.writer_stats(Duration::from_secs(3)).unwrap().unwrap();
    assert_eq!((told.user_records, told.tables.len()), (1, 1));
    // Asked by hand, so that the answer stays.
    let readers = Path::new(DIR).join("readers");
    let lease = fs.list(&readers).unwrap().pop().unwrap();
    fs.create(&readers.join(lease.replace(".lease", ".ask")), Access::Buffered).unwrap();
    env.jobs.advance(Duration::from_secs(3));
    env.jobs.step_some(10_000);
    let answer = bytes_of(&*fs, &readers.join(lease.replace(".lease", ".stats")));
    assert!(answer.len() > 100 && !answer.windows(7).any(|window| window == b"planted"));
}

/// The frame of a batch is longer where it is encrypted: one about as long as the follower's write buffer, or longer, was
/// never written.
#[test]
fn an_encrypted_follower_takes_batches_as_long_as_its_write_buffer() {
    let env = Env::simulated(MemoryFs::new(), 5);
    let source = Database::open(DIR, plain(&env).keep_changes(1 << 30)).unwrap();
    let table = source.table("planted").open().unwrap();
    let lengths: Vec<usize> = (0..20).map(|step| (8 << 10) - 120 + 8 * step).chain([40_000]).collect();
    for &bytes in &lengths {
        table.put(format!("{bytes}"), "v".repeat(bytes)).unwrap();
    }
    let db = followed(&env, &source);
    let copy = db.table("planted").existing(true).open().unwrap();
    for bytes in lengths {
        assert_eq!(copy.get(format!("{bytes}")).unwrap(), Some("v".repeat(bytes).into_bytes()));
    }
}
