//! The superblock is plain text, and the key file vouches for it.

use std::sync::atomic::{AtomicUsize, Ordering};

use forebay::Rescue;
use forebay::encryption::KeyProvider;
use forebay_base::checksum::plain as checksum;
use forebay_env::encryption::DataKeys;
use forebay_store::manifest::KeyFile;
use forebay_store::names;

use super::*;

/// Writes both copies of the superblock with one bit of them changed, and a checksum that matches.
fn flip(fs: &MemoryFs, intact: &[u8], at: usize, bit: u8) {
    let mut bytes = intact.to_vec();
    bytes[at] ^= 1 << bit;
    let sum = checksum(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    replace(fs, [names::SUPERBLOCK, names::SUPERBLOCK_SPARE], &bytes);
}

fn replace(fs: &MemoryFs, both: [&str; 2], bytes: &[u8]) {
    both.into_iter().for_each(|name| fs.replace_file(&Path::new(DIR).join(name), bytes.to_vec()));
}

/// Whoever has no key can change nothing of the superblock, whatever checksum he gives it: opening is refused, names the
/// file, and changes nothing.
#[test]
fn each_field_of_the_superblock_is_vouched_for() {
    let (fs, env, db) = filled(21, 200);
    let there = count(&db).unwrap();
    db.close().unwrap();
    let intact = bytes_of(&*fs, &Path::new(DIR).join(names::SUPERBLOCK));
    let mut vouched = 0;
    for at in 4..intact.len() {
        flip(&fs, &intact, at, (at % 8) as u8);
        let before = fs.snapshot_files();
        for read_only in [true, false] {
            let env = Env::simulated(fs.clone(), 22);
            let told = Database::open(DIR, options(&env, "one", 1).read_only(read_only)).map(drop);
            let told = told.unwrap_err().to_string();
            assert!(told.contains("FOREBAY") || told.contains("without encryption"), "byte {at}: {told}");
            vouched += usize::from(told.contains("FOREBAY.keys vouches"));
        }
        let after = fs.snapshot_files();
        let is_same = |path: &std::path::PathBuf| after[path] == before[path];
        assert!(before.keys().filter(|path| !path.ends_with(names::LOCK)).all(is_same), "byte {at}");
    }
    assert_eq!(vouched, 2 * 3 * 8, "database id, hash seed and log secret");
    replace(&fs, [names::SUPERBLOCK, names::SUPERBLOCK_SPARE], &intact);
    assert_eq!(count(&Database::open(DIR, options(&env, "one", 1)).unwrap()).unwrap(), there);
}

/// A key file of an older build vouches for nothing. The next opening to write mends that, and nobody can take it back.
#[test]
fn a_key_file_of_an_older_build_vouches_once_it_was_opened() {
    let (fs, env, db) = filled(23, 200);
    let there = count(&db).unwrap();
    db.close().unwrap();
    let superblock = bytes_of(&*fs, &Path::new(DIR).join(names::SUPERBLOCK));
    let provider: Arc<dyn KeyProvider> = Arc::new(OneKey::new("one", Key::new([1; 32])));
    let keys = KeyFile::read(&*fs, Path::new(DIR)).unwrap();
    assert_eq!(keys.wrapped.vouched, superblock);
    let data_keys = DataKeys::unwrap(&env, &keys.wrapped, &provider, None).unwrap();
    let older = KeyFile { wrapped: data_keys.wrap(&*provider, &[]).unwrap() };
    older.write(&*fs, Path::new(DIR)).unwrap();
    let open = |read_only| Database::open(DIR, options(&env, "one", 1).read_only(read_only));
    assert_eq!(count(&open(true).unwrap()).unwrap(), there);
    assert_eq!(KeyFile::read(&*fs, Path::new(DIR)).unwrap(), older, "a reader changes nothing");
    let db = open(false).unwrap();
    assert_eq!(count(&db).unwrap(), there);
    db.close().unwrap();
    let mut newer = KeyFile::read(&*fs, Path::new(DIR)).unwrap();
    assert_eq!(newer.wrapped.vouched, superblock);
    KeyFile::check(&*fs, Path::new(DIR)).unwrap();
    flip(&fs, &superblock, 30, 0);
    assert!(open(true).map(drop).unwrap_err().to_string().contains("FOREBAY.keys vouches"));
    // As if it were of an older build.
    newer.wrapped.vouched.clear();
    newer.write(&*fs, Path::new(DIR)).unwrap();
    assert!(refusal(open(true)).contains("FOREBAY.keys"));
}

/// It was not opened to be rescued either.
#[test]
fn a_rescue_passes_over_a_superblock_that_was_changed() {
    let (fs, env, db) = filled(25, 200);
    let there = count(&db).unwrap();
    db.close().unwrap();
    let intact = bytes_of(&*fs, &Path::new(DIR).join(names::SUPERBLOCK));
    // A bit of the database's id.
    flip(&fs, &intact, 21, 0);
    assert!(Database::open(DIR, options(&env, "one", 1)).is_err());
    let report = Rescue::new(options(&env, "one", 1)).run(DIR, "/rescued", &mut |_, _| ()).unwrap();
    assert!(!report.damage.is_empty(), "it is told");
    let found = count(&Database::open("/rescued", options(&env, "one", 1)).unwrap()).unwrap();
    assert!(found > 0 && found <= there, "{found} of {there}");
}

/// A provider that has both keys, but tells of no current one, and refuses once it was asked so often.
struct Both(AtomicUsize);

impl KeyProvider for Both {
    fn current(&self) -> Result<String> {
        Err(Error::Invalid("it may only decrypt".into()))
    }

    fn key(&self, name: &str) -> Result<Key> {
        let left = self.0.load(Ordering::SeqCst);
        self.0.store(left.saturating_sub(1), Ordering::SeqCst);
        if left == 0 {
            return Err(Error::Invalid("not again".into()));
        }
        Ok(Key::new([if name == "one" { 1 } else { 2 }; 32]))
    }
}

/// Opening by a provider that has another current key locked out who had only the one before, and one that may only
/// decrypt could not open any more.
#[test]
fn an_older_key_file_is_mended_by_the_keys_that_it_has() {
    let (fs, env, db) = filled(24, 200);
    let there = count(&db).unwrap();
    db.close().unwrap();
    let provider: Arc<dyn KeyProvider> = Arc::new(OneKey::new("one", Key::new([1; 32])));
    let read = || KeyFile::read(&*fs, Path::new(DIR)).unwrap();
    let data_keys = DataKeys::unwrap(&env, &read().wrapped, &provider, None).unwrap();
    let older = KeyFile { wrapped: data_keys.wrap(&*provider, &[]).unwrap() };
    older.write(&*fs, Path::new(DIR)).unwrap();
    let open = |asked| {
        let both = Arc::new(Both(AtomicUsize::new(asked)));
        let db = Database::open(DIR, plain(&env).encryption(both)).unwrap();
        assert_eq!(count(&db).unwrap(), there);
        db.close().unwrap();
    };
    open(1);
    assert_eq!(read(), older, "it could not be mended, and opens all the same");
    open(10);
    let newer = read();
    assert!(newer.wrapped.keys.iter().all(|key| key.name == "one") && !newer.wrapped.vouched.is_empty());
    assert_eq!(count(&Database::open(DIR, options(&env, "one", 1)).unwrap()).unwrap(), there);
}
