//! What is left where a key file or a header cannot be read.

use forebay::Rescue;
use forebay_env::fs::FaultyFs;
use forebay_store::names;

use super::*;

/// With a key file from before the last renewal a rescue saves what is by the keys that it has, up to the first edit of the
/// manifest that is not.
#[test]
fn what_is_by_older_keys_is_rescued() {
    let (fs, env, db) = filled(12, 300);
    db.flush().unwrap();
    let there = count(&db).unwrap();
    let older = bytes_of(&*fs, &Path::new(DIR).join(names::KEYS));
    db.renew_data_key().unwrap();
    let table = db.table("fresh").open().unwrap();
    table.put("a", "1").unwrap();
    env.jobs.abandon();
    let fs = fs.deep_clone();
    drop((table, db));
    for name in [names::KEYS, names::KEYS_SPARE] {
        fs.replace_file(&Path::new(DIR).join(name), older.clone());
    }
    let env = Env::simulated(fs, 13);
    let report = Rescue::new(options(&env, "one", 1)).run(DIR, "/rescued", &mut |_, _| ()).unwrap();
    assert!(!report.damage.is_empty(), "the manifest goes on");
    let found = count(&Database::open("/rescued", options(&env, "one", 1)).unwrap()).unwrap();
    assert!(found > 0 && found <= there, "{found} of {there}");
}

/// A disk that cannot read a sector gives an error: the key file has a spare for that, too.
#[test]
fn the_spare_is_read_where_the_disk_cannot_read_the_key_file() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::simulated(fs.clone(), 14);
    let db = Database::open(DIR, options(&env, "one", 1)).unwrap();
    fill(&db, &mut Rng::new(14), 100).unwrap();
    let there = count(&db).unwrap();
    db.close().unwrap();
    fs.rule("read FOREBAY.keys all io-error").unwrap();
    let open = || Database::open(DIR, options(&env, "one", 1).read_only(true));
    assert_eq!(count(&open().unwrap()).unwrap(), there);
    fs.rule("read FOREBAY.keys.spare all io-error").unwrap();
    assert!(open().is_err());
}

/// A list whose header is damaged, and its spare, ends no checkpoint: it is copied as it is.
#[test]
fn a_damaged_header_ends_no_checkpoint() {
    let (fs, _, db) = filled(15, 300);
    db.flush().unwrap();
    let names = fs.list(Path::new(DIR)).unwrap();
    let lists: Vec<_> = names.into_iter().filter(|name| name.ends_with(".list")).collect();
    assert!(!lists.is_empty());
    for name in lists {
        let file = fs.open(&Path::new(DIR).join(name), Access::Buffered).unwrap();
        file.write_at(0, &[7; 8192]).unwrap();
    }
    db.checkpoint("/checkpoint").unwrap();
}
