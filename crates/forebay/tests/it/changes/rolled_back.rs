//! What a rollback to a savepoint is to those who follow the feed: the end of it, told by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forebay::{Batch, ChangeBatch, Database, Durability, Error, Layout, Operation, Options, Result, Table};
use forebay_env::fs::CrashFs;
use forebay_env::{Env, Rng};

use super::world::{DIR, assert_same};

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// The tables of before, and one that the other makes sure of: they are written at once.
const TABLES: [&str; 2] = ["t", "runs"];

fn open(dir: &str, env: &Env, keep: u64) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10);
    Database::open(dir, options.keep_changes(keep).env(env.clone())).unwrap()
}

fn tables(db: &Database) -> [Table; 2] {
    TABLES.map(|name| {
        let layout = if name == "t" { Layout::wb_tree() } else { Layout::leveling(3) };
        db.table(name).layout(layout).node_bytes(8 << 10).open().unwrap()
    })
}

fn write(db: &Database, rng: &mut Rng, batches: usize) -> Result<()> {
    let tables = tables(db);
    for _ in 0..batches {
        let mut batch = Batch::new();
        for table in &tables {
            let key = rng.below(200).to_be_bytes();
            match rng.chance(20) {
                true => batch.delete(table, key),
                false => batch.put(table, key, vec![rng.below(256) as u8; 1 + rng.index(40)]),
            };
        }
        db.commit(batch, Durability::Os)?;
    }
    Ok(())
}

fn contents(db: &Database) -> [Contents; 2] {
    tables(db).map(|table| table.iter().unwrap().map(Result::unwrap).collect())
}

fn manifests(env: &Env) -> Vec<String> {
    let names = env.fs.list(DIR.as_ref()).unwrap();
    names.into_iter().filter(|name| name.ends_with(".manifest")).collect()
}

/// A copy elsewhere.
#[derive(Default)]
struct Follower {
    seen: u64,
    copy: [Contents; 2],
    copied: usize,
}

impl Follower {
    fn follow(&mut self, db: &Database) {
        match db.changes(self.seen) {
            Ok(changes) => changes.for_each(|batch| self.apply(batch.unwrap())),
            Err(Error::ChangesGone { .. }) => {
                (self.copy, self.seen) = (contents(db), db.last_sequence());
                self.copied += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn apply(&mut self, batch: ChangeBatch) {
        for change in batch.changes {
            let number = TABLES.iter().position(|name| **name == *change.table).unwrap();
            match change.operation {
                Operation::Put { key, value, .. } => self.copy[number].insert(key, value),
                Operation::Delete { key } => self.copy[number].remove(&key),
                other => panic!("{other:?}"),
            };
        }
        self.seen = batch.last_sequence;
    }
}

/// Those who asked before get all of it; who asks again is told, also once the database was opened again or its
/// manifest rewritten, and so is who follows a copy of it. What comes behind can be followed.
#[test]
fn a_rollback_ends_the_feed_of_all_who_followed_it() {
    for keep in [1 << 30, 20_000, 0] {
        let env = Env::memory(keep);
        let mut rng = Rng::new(keep);
        let mut db = open(DIR, &env, keep);
        write(&db, &mut rng, 100).unwrap();
        let then = db.savepoint("then").unwrap();
        write(&db, &mut rng, 400).unwrap();
        let last = db.last_sequence();
        let all: Vec<_> = db.changes(0).unwrap().map(Result::unwrap).collect();
        let reading = db.changes(0).unwrap();
        db.rollback("then").unwrap();
        let number = last + 1;
        assert_eq!((db.last_sequence(), db.durable_sequence()), (number, number));
        assert_same(&reading.map(Result::unwrap).collect::<Vec<_>>(), &all);
        assert_eq!((db.changes(0).unwrap().count(), db.changes(number).unwrap().count()), (0, 0));
        write(&db, &mut rng, 3).unwrap();
        let after: Vec<_> = db.changes(number).unwrap().map(Result::unwrap).collect();
        assert_eq!((after.len(), after[0].last_sequence), (3, number + 2));
        for round in 0..4 {
            let what = format!("keep {keep}, round {round}");
            for since in [1, then, last - 2, last] {
                let gone = db.changes(since).unwrap_err();
                assert!(gone.to_string().contains(&format!("{number} is a rollback")), "{what}: {gone}");
                assert!(
                    matches!(gone, Error::ChangesGone { rolled_back: Some(told), .. } if told == number),
                    "{what}: {gone:?}"
                );
            }
            if keep == 1 << 30 && round < 3 {
                let told: Vec<_> = db.changes(number).unwrap().map(Result::unwrap).collect();
                assert_same(&told[..3], &after);
                assert_same(&db.changes(0).unwrap().map(Result::unwrap).collect::<Vec<_>>(), &told);
            }
            match round {
                0 => {}
                1 => {
                    let before = manifests(&env);
                    (0..120).for_each(|_| {
                        write(&db, &mut rng, 20).unwrap();
                        tables(&db).iter().for_each(|table| table.compact().unwrap());
                    });
                    env.jobs.advance(Duration::from_secs(1));
                    env.jobs.step_some(1000);
                    assert_ne!(manifests(&env), before, "{what}: it was to be rewritten");
                }
                _ => {
                    let copy = format!("/copy{round}");
                    db.checkpoint(&copy).unwrap();
                    let copied = db.last_sequence();
                    drop(db);
                    db = open(&copy, &env, keep);
                    assert_eq!(db.changes(copied).unwrap().count(), 0, "{what}");
                    continue;
                }
            }
            drop(db);
            db = open(DIR, &env, keep);
        }
    }
}

/// A history of savepoints, rollbacks, restarts and lost power, of which somebody has a copy who follows, and makes
/// another one where that is what the feed says.
#[test]
fn who_follows_over_rollbacks_and_crashes_has_what_the_database_has() {
    let mut copied = 0;
    for seed in 0..40 {
        let keep = [1 << 30, 30_000][seed as usize % 2];
        let (mut fs, mut rng) = (CrashFs::new(seed), Rng::new(seed));
        let mut env = Env::simulated(fs.clone(), seed);
        let mut db = open(DIR, &env, keep);
        let mut followers = [Follower::default(), Follower::default()];
        for step in 0..60 {
            if rng.chance(30) {
                fs.crash_at(fs.operations() + 1 + rng.below(120));
            }
            let outcome = match rng.below(8) {
                0 => db.savepoint("kept").map(drop),
                1 => db.rollback("kept"),
                2 => db.drop_savepoint("kept"),
                3 => db.flush(),
                _ => write(&db, &mut rng, 12),
            };
            let refused = matches!(outcome, Err(Error::Invalid(_) | Error::NotFound(_)));
            if rng.chance(10) || fs.is_off() || !refused && outcome.is_err() {
                fs = fs.power_cycle();
                env.jobs.abandon();
                drop(db);
                env = Env::simulated(Arc::clone(&fs) as _, rng.next_u64());
                db = open(DIR, &env, keep);
            }
            fs.crash_at(u64::MAX);
            env.jobs.step_some(rng.index(100));
            // What is followed is durable: a power loss takes nothing that was told.
            let Ok(()) = db.sync() else { continue };
            let follower = &mut followers[rng.index(2)];
            follower.follow(&db);
            assert!(follower.copy == contents(&db), "seed {seed}, step {step}");
        }
        copied += followers.iter().map(|follower| follower.copied).sum::<usize>();
    }
    assert!(copied > 100, "{copied}");
}
