//! A manifest whose last edits are damaged or cut off: the directory tells that they were there, and that something
//! was done because of them. Then nothing is taken for torn, and nothing is removed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Options, Table};
use forebay_env::Env;
use forebay_env::fs::MemoryFs;

const DIR: &str = "/db";
const KEYS: u8 = 30;

fn options(env: &Env) -> Options {
    // So that no frame tells of a sync.
    let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone());
    options.sync_interval(Duration::MAX)
}

fn start(fs: &Arc<MemoryFs>) -> (Env, Database, Table) {
    let env = Env::simulated(fs.clone(), 7);
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    (env, db, table)
}

fn fill(db: &Database, table: &Table, round: u8) {
    (0..KEYS).for_each(|key| {
        let mut batch = Batch::new();
        batch.put(table, [round, key], [7; 40]);
        db.commit(batch, Durability::Os).unwrap();
    });
}

/// The files as a process leaves them that is killed before it could tell that the last edit is durable.
fn killed(fs: &MemoryFs, open: (Env, Database, Table)) -> Arc<MemoryFs> {
    let left = sealed(fs, open);
    let (path, bytes) = manifest(&left);
    left.replace_file(&path, bytes[..*records(&bytes).last().unwrap()].to_vec());
    left
}

/// The files as a process leaves them that is killed.
fn sealed(fs: &MemoryFs, (env, db, table): (Env, Database, Table)) -> Arc<MemoryFs> {
    env.jobs.advance(Duration::from_secs(1));
    env.jobs.step_some(10_000);
    let left = fs.deep_clone();
    env.jobs.abandon();
    drop((db, table));
    left
}

fn manifest(fs: &MemoryFs) -> (PathBuf, Vec<u8>) {
    let files = fs.snapshot_files();
    files.into_iter().find(|(path, _)| path.extension().is_some_and(|kind| kind == "manifest")).unwrap()
}

/// Where the records of a manifest begin.
fn records(bytes: &[u8]) -> Vec<usize> {
    let mut places = vec![0];
    while let Some(at) = places.last().copied().filter(|&at| at < bytes.len()) {
        places.push(at + 8 + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize);
    }
    places.pop();
    places
}

/// Opening is refused for damage that is told in such words, and changes nothing.
fn assert_refused(fs: &Arc<MemoryFs>, words: &str, what: &str) {
    let before = fs.snapshot_files();
    for read_only in [true, false] {
        let env = Env::simulated(fs.clone(), 7);
        let refused = Database::open(DIR, options(&env).read_only(read_only)).unwrap_err();
        let text = refused.to_string();
        assert!(refused.is_corruption(), "{what}: {text}");
        assert!(text.contains("manifest") && text.contains(words), "{what}: {text}");
        assert!(fs.snapshot_files() == before, "{what}: a refused opening has changed something");
    }
}

/// A bit of the last edit, which was durable long ago, made it count as torn: it was cut off, and the list that only
/// it named removed. The lists that it had let go were gone already: no key could be found any more.
#[test]
fn a_merge_whose_edit_is_damaged_does_not_lose_its_result() {
    let fs = MemoryFs::new();
    let open = start(&fs);
    for round in 0..2 {
        fill(&open.1, &open.2, round);
        open.1.flush().unwrap();
    }
    open.2.compact().unwrap();
    let fs = killed(&fs, open);
    let (path, bytes) = manifest(&fs);
    let last = *records(&bytes).last().unwrap();
    for at in last..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        fs.replace_file(&path, damaged);
        assert_refused(&fs, &format!("offset {last}"), &format!("byte {at}"));
    }
    fs.replace_file(&path, bytes[..last].to_vec());
    assert_refused(&fs, &format!("offset {last}"), "cut between two edits");
}

/// Even where nothing was done because of it yet, the last edit is known to have been durable.
#[test]
fn an_edit_that_is_damaged_is_not_taken_for_torn() {
    let fs = MemoryFs::new();
    let open = start(&fs);
    open.1.table("made last").open().unwrap();
    let fs = sealed(&fs, open);
    let (path, bytes) = manifest(&fs);
    let [.., last, seal] = records(&bytes)[..] else { panic!("no edits") };
    for at in last..seal {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        fs.replace_file(&path, damaged);
        assert_refused(&fs, &format!("offset {last}"), &format!("byte {at}"));
    }
}

/// A crash had taken what tells that the last edit was durable, and the opening that followed, which built on that
/// edit, told nobody anew: what damaged it then was taken for that crash, and the savepoint was gone without a word.
#[test]
fn an_opening_vouches_for_the_last_edit_that_it_read() {
    let fs = MemoryFs::new();
    let (env, db, table) = start(&fs);
    table.put(b"key", b"value").unwrap();
    db.savepoint("monday").unwrap();
    let left = killed(&fs, (env, db, table));
    let (path, bytes) = manifest(&left);
    let last = records(&bytes).pop().unwrap();
    let again = sealed(&left, start(&left));
    let mut damaged = again.snapshot_files().remove(&path).unwrap();
    assert!(damaged.starts_with(&bytes));
    damaged[last + 12] ^= 1;
    again.replace_file(&path, damaged);
    assert_refused(&again, "an edit is damaged", "the edit of a savepoint");
}

/// Each opening after a crash put one more edit that changes nothing behind the last one.
#[test]
fn openings_that_are_killed_do_not_lengthen_the_manifest() {
    let fs = MemoryFs::new();
    let (env, db, table) = start(&fs);
    table.put(b"key", b"value").unwrap();
    db.savepoint("monday").unwrap();
    let mut left = sealed(&fs, (env, db, table));
    let (_, bytes) = manifest(&left);
    for _ in 0..4 {
        left = sealed(&left, start(&left));
        assert!(manifest(&left).1 == bytes);
    }
}

/// Edits of flushes were lost: the log began with later records, which were thrown away, and nobody knew that they
/// followed others. Or there was no word of the table, and its list went.
#[test]
fn a_manifest_that_was_cut_off_is_refused_or_nothing_is_lost() {
    for rounds in 0..6 {
        for rest in [0, 1] {
            let fs = MemoryFs::new();
            let open = start(&fs);
            for round in 0..rounds {
                fill(&open.1, &open.2, round);
                open.1.flush().unwrap();
            }
            (0..rest).for_each(|_| fill(&open.1, &open.2, rounds));
            let left = killed(&fs, open);
            let (path, bytes) = manifest(&left);
            let places = records(&bytes);
            for cut in places[1]..bytes.len() {
                let fs = left.deep_clone();
                fs.replace_file(&path, bytes[..cut].to_vec());
                let (env, before) = (Env::simulated(fs.clone(), 7), fs.snapshot_files());
                let what = format!("{rounds} and {rest} rounds, cut at {cut} of {places:?}");
                match Database::open(DIR, options(&env)) {
                    Err(error) => {
                        assert!(error.is_corruption(), "{what}: {error}");
                        assert!(error.to_string().contains("manifest"), "{what}: {error}");
                        assert!(
                            fs.snapshot_files() == before,
                            "{what}: a refused opening has changed something"
                        );
                    }
                    Ok(db) => {
                        assert!(db.tables().len() == 1 || rounds + rest == 0, "{what}");
                        let found = db.table("t").open().unwrap().iter().unwrap().count();
                        assert_eq!(found, usize::from(rounds + rest) * usize::from(KEYS), "{what}");
                    }
                }
            }
        }
    }
}

/// A table was made, a buffer flushed and its segment removed, and nothing written since: without its edits the
/// manifest was that of a new database, which opened, empty.
#[test]
fn a_list_of_a_table_that_was_never_made_is_not_removed() {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 7);
    let db = Database::open(DIR, options(&env)).unwrap();
    // So that no segment stays, to be renamed.
    let table = db.table("t").reclaim_interval(Duration::from_secs(3600)).open().unwrap();
    fill(&db, &table, 0);
    db.flush().unwrap();
    let fs = killed(&fs, (env, db, table));
    let (path, bytes) = manifest(&fs);
    let made = records(&bytes)[1];
    fs.replace_file(&path, bytes[..made + 30].to_vec());
    assert_refused(&fs, &format!("offset {made}"), "cut in the edit that made the table");
}
