//! Trees of a table in use: what snapshots and copies see while they grow, are written anew, split and joined; C
//! changed in use; damage.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use forebay::{Database, Layout, Options, OrderedTable};
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, Env, FileSystem, Rng};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 3_000;

fn open_at(env: &Env, dir: &str) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone());
    Database::open(Path::new(dir), options).unwrap()
}

fn open(env: &Env) -> Database {
    open_at(env, "/db")
}

fn table(db: &Database, factor: f64) -> OrderedTable {
    db.table("t").layout(Layout::jungle(factor)).node_bytes(48 << 10).open_ordered().unwrap()
}

/// Writes some records of any keys, and tells the model.
fn write(table: &OrderedTable, model: &mut Model, rng: &mut Rng, records: u64) {
    for _ in 0..records {
        let (key, byte) = (rng.below(KEYS).to_be_bytes().to_vec(), rng.below(256) as u8);
        if rng.chance(5) {
            table.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = vec![byte; 20 + rng.index(300)];
            table.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

fn contents(entries: forebay::Result<forebay::Scan>) -> Model {
    entries.unwrap().map(Result::unwrap).collect()
}

/// What is left once files that nobody needs are gone.
fn tree_bytes(env: &Env) -> u64 {
    env.jobs.advance(Duration::from_secs(1));
    env.jobs.step_some(1_000);
    files(env, "/db", ".tree").iter().map(|(_, bytes)| bytes.len() as u64).sum()
}

fn files(env: &Env, dir: &str, kind: &str) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| {
        let file = env.fs.open_read(&Path::new(dir).join(&name), Access::Buffered).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        (name, bytes)
    };
    let names = env.fs.list(Path::new(dir)).unwrap().into_iter();
    names.filter(|name| name.ends_with(kind)).map(read).collect()
}

/// Snapshots are taken all along, so that some lie across each kind of merge; each is looked at again at the end.
#[test]
fn snapshots_see_what_was_there_across_every_kind_of_merge() {
    let env = Env::memory(1);
    let db = open(&env);
    let table = table(&db, 1.6);
    let (mut model, mut rng, mut held) = (Model::new(), Rng::new(11), Vec::new());
    for round in 0..60_u64 {
        write(&table, &mut model, &mut rng, 400);
        if round % 6 == 0 {
            held.push((db.snapshot(), model.clone()));
        }
        if round % 10 == 9 {
            let (low, high) = ((round * 40).to_be_bytes(), (round * 40 + 300).to_be_bytes());
            let (low, high): (&[u8], &[u8]) = (&low, &high);
            table.delete_range(low..high).unwrap();
            model.retain(|key, _| !(low..high).contains(&&key[..]));
        }
        db.wait_until_idle().unwrap();
    }
    let jobs = db.stats().jobs_done;
    assert!(jobs["merge"] > 50, "{jobs:?}");
    for (snapshot, seen) in &held {
        assert!(contents(snapshot.iter(&table)) == *seen);
    }
    assert!(contents(table.iter()) == model);
    drop(held);
    drop(table);
    db.close().unwrap();
    let db = open(&env);
    assert!(contents(db.table("t").open_ordered().unwrap().iter()) == model);
    assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new());
}

/// A range that is deleted leaves two parts of one tree. Both are written to, and come back.
#[test]
fn parts_of_one_tree_that_was_cut_come_back_whole() {
    let env = Env::memory(9);
    let (mut model, mut rng) = (Model::new(), Rng::new(21));
    for round in 0..40_u64 {
        let db = open(&env);
        let table = table(&db, 3.0);
        write(&table, &mut model, &mut rng, 250);
        let low = rng.below(KEYS).to_be_bytes();
        let high = (u64::from_be_bytes(low) + 1 + round % 20).to_be_bytes();
        let (low, high): (&[u8], &[u8]) = (&low, &high);
        table.delete_range(low..high).unwrap();
        model.retain(|key, _| !(low..high).contains(&&key[..]));
        write(&table, &mut model, &mut rng, 250);
        if round % 3 == 0 {
            db.wait_until_idle().unwrap();
        }
        assert!(contents(table.iter()) == model, "round {round}");
        drop(table);
        db.close().unwrap();
    }
}

/// Both go on growing trees that had the same beginning.
#[test]
fn a_checkpoint_and_its_original_part_ways() {
    let env = Env::memory(2);
    let db = open(&env);
    let first = table(&db, 4.0);
    let (mut model, mut rng) = (Model::new(), Rng::new(5));
    write(&first, &mut model, &mut rng, 8_000);
    db.wait_until_idle().unwrap();
    write(&first, &mut model, &mut rng, 100);
    db.checkpoint("/copy").unwrap();
    assert!(!files(&env, "/copy", ".tree").is_empty());
    let copy = open_at(&env, "/copy");
    let second = table(&copy, 4.0);
    let mut copied = model.clone();
    for _ in 0..4 {
        write(&first, &mut model, &mut rng, 3_000);
        write(&second, &mut copied, &mut rng, 3_000);
        db.wait_until_idle().unwrap();
        copy.wait_until_idle().unwrap();
    }
    assert!(contents(first.iter()) == model);
    assert!(contents(second.iter()) == copied);
    for db in [&db, &copy] {
        assert_eq!(db.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new());
    }
}

/// After a range was deleted, the parts on its two sides are in one file. One goes on growing, the other has the
/// version that there was.
#[test]
fn a_checkpoint_has_the_longest_version_of_a_tree_that_was_cut() {
    for seed in [3, 4, 8] {
        let env = Env::memory(seed);
        let mut rng = Rng::new(seed + 20);
        let db = open(&env);
        let table = db.table("t").layout("jungle:c=3,t=2".parse().unwrap());
        let table = table.node_bytes(48 << 10).open_ordered().unwrap();
        for round in 0..10_u8 {
            for _ in 0..200 {
                let (key, value) = (rng.below(4_000).to_be_bytes(), vec![round; 100 + rng.index(300)]);
                table.put(key, &value).unwrap();
            }
            let low = rng.below(4_000);
            table.delete_range(&low.to_be_bytes()[..]..&(low + 20).to_be_bytes()[..]).unwrap();
            db.wait_until_idle().unwrap();
            if round % 3 == 0 {
                let name = format!("/copy-{round}");
                db.checkpoint(&name).unwrap();
                let copy = open_at(&env, &name);
                assert_eq!(copy.verify(&mut |_, _| ()).unwrap().problems, Vec::<String>::new(), "{name}");
                let copied = copy.table("t").open_ordered().unwrap();
                assert!(contents(copied.iter()) == contents(table.iter()), "seed {seed}, {name}");
            }
        }
    }
}

/// The next owner of the directory took the version that the table had gone back to for the last of its file, and
/// wrote over what the snapshot read.
#[test]
fn a_snapshot_of_before_a_rollback_reads_on_while_the_next_owner_grows_the_tree() {
    let env = Env::memory(0);
    let open_table = |db: &Database| {
        db.table("t").layout(Layout::jungle(100.0)).node_bytes(160 << 10).open_ordered().unwrap()
    };
    let put = |table: &OrderedTable, rounds: std::ops::Range<u8>| {
        for byte in rounds {
            (0..300_u64).for_each(|key| table.put(key.to_be_bytes(), [byte; 300]).unwrap());
        }
    };
    let db = open(&env);
    let old = open_table(&db);
    put(&old, 0..4);
    old.compact().unwrap();
    db.savepoint("before").unwrap();
    put(&old, 4..16);
    db.wait_until_idle().unwrap();
    let (snapshot, grown) = (db.snapshot(), contents(old.iter()));
    db.rollback("before").unwrap();
    db.close().unwrap();
    for byte in 16..20 {
        let db = open(&env);
        let table = open_table(&db);
        put(&table, byte..byte + 1);
        (0..4).for_each(|_| put(&table, byte..byte + 1));
        db.wait_until_idle().unwrap();
        db.close().unwrap();
        assert!(contents(snapshot.iter(&old)) == grown, "round {byte}");
    }
}

#[test]
fn a_lower_factor_gives_space_back_on_a_table_in_use() {
    let env = Env::memory(3);
    let db = open(&env);
    let table = table(&db, 10.0);
    let (mut model, mut rng) = (Model::new(), Rng::new(7));
    for _ in 0..40 {
        write(&table, &mut model, &mut rng, 1_000);
        db.wait_until_idle().unwrap();
    }
    let live: u64 = model.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
    let before = tree_bytes(&env);
    assert!(before > 3 * live, "{before} of {live}");
    table.set_layout(Layout::jungle(1.5)).unwrap();
    write(&table, &mut model, &mut rng, 100);
    db.wait_until_idle().unwrap();
    let after = tree_bytes(&env);
    assert!(after < 2 * live, "{after} of {live}");
    assert!(contents(table.iter()) == model);
    table.compact().unwrap();
    let compact = tree_bytes(&env);
    assert!(compact < live * 13 / 10, "{compact} of {live}");
    assert!(contents(table.iter()) == model);
}

/// A WB tree has no use for files that grow: its records are sorted anew.
#[test]
fn trees_become_a_wb_tree_by_a_reorder() {
    let env = Env::memory(4);
    let db = open(&env);
    let table = table(&db, 2.0);
    let (mut model, mut rng) = (Model::new(), Rng::new(13));
    write(&table, &mut model, &mut rng, 6_000);
    db.wait_until_idle().unwrap();
    assert!(tree_bytes(&env) > 0);
    table.set_layout(Layout::wb_tree_ordered()).unwrap();
    assert!(contents(table.iter()) == model);
    db.wait_until_idle().unwrap();
    assert_eq!(tree_bytes(&env), 0);
    table.set_layout(Layout::jungle(2.0)).unwrap();
    write(&table, &mut model, &mut rng, 3_000);
    db.wait_until_idle().unwrap();
    assert!(tree_bytes(&env) > 0);
    assert!(contents(table.iter()) == model);
}

/// Flips bytes of the trees all over. What is of use answers with an error that names file and offset; what is not, or
/// lies elsewhere, answers as before.
#[test]
fn damage_to_a_tree_is_seen_or_harmless() {
    let env = Env::memory(5);
    let db = open(&env);
    let grown = table(&db, 3.0);
    let (mut model, mut rng) = (Model::new(), Rng::new(17));
    write(&grown, &mut model, &mut rng, 5_000);
    db.wait_until_idle().unwrap();
    drop(grown);
    db.close().unwrap();
    let trees = files(&env, "/db", ".tree");
    let all = files(&env, "/db", "");
    assert!(!trees.is_empty());
    let mut seen = 0;
    for (name, bytes) in &trees {
        for at in (0..bytes.len()).step_by(977).chain([bytes.len() - 1, bytes.len() - 4096]) {
            let fs = MemoryFs::new();
            fs.create_dir_all(Path::new("/db")).unwrap();
            for (other, bytes) in &all {
                let mut bytes = bytes.clone();
                if other == name {
                    bytes[at] ^= 0x40;
                }
                let file = fs.create(&Path::new("/db").join(other), Access::Buffered).unwrap();
                file.write_at(0, &bytes).unwrap();
            }
            let db = open(&Env::simulated(fs, 1));
            let table = db.table("t").open_ordered().unwrap();
            let mut faults: Vec<String> = db.verify(&mut |_, _| ()).unwrap().problems;
            for (key, value) in model.iter().step_by(7) {
                match table.get(key) {
                    Ok(found) => assert!(found.as_ref() == Some(value), "a wrong answer"),
                    Err(error) => faults.push(error.to_string()),
                }
            }
            assert!(faults.iter().all(|text| text.contains(name) && text.contains("offset")), "{faults:?}");
            let in_root = at >= bytes.len() - 4096;
            assert!(!in_root || !faults.is_empty(), "byte {at} of {name}");
            seen += usize::from(!faults.is_empty());
        }
    }
    assert!(seen > 20, "{seen}");
}
