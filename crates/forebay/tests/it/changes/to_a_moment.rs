//! Point in time: a backup, and streams that were kept in files behind it, applied up to a moment.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay::{Backups, Database, Follower, Options, Result, StreamEnd, Until};
use forebay_env::{Env, Rng};

type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

fn contents(db: &Database) -> Contents {
    let entries = |name: &str| db.table(name).open().unwrap().iter().unwrap().map(Result::unwrap).collect();
    db.tables().into_iter().map(|(name, _)| (name.clone(), entries(&name))).collect()
}

/// What the database was at the end of a round.
struct Moment {
    at_milliseconds: u64,
    sequence: u64,
    contents: Contents,
}

/// A day's writes: some of them to a table that is dropped and made again now and then.
fn write(db: &Database, rng: &mut Rng) {
    for _ in 0..1 + rng.below(12) {
        let name = ["a", "b", "spare"][rng.index(3)];
        let table = db.table(name).open().unwrap();
        let key = rng.below(30).to_be_bytes();
        match rng.chance(20) {
            true => table.delete(key).unwrap(),
            false => table.put(key, rng.next_u64().to_le_bytes()).unwrap(),
        }
    }
    if rng.chance(20) && db.tables().iter().any(|(name, _)| name == "spare") {
        db.drop_table("spare").unwrap();
    }
}

#[test]
fn a_backup_and_an_archive_give_back_each_moment() {
    for seed in 0..12 {
        let (env, mut rng) = (Env::memory(seed), Rng::new(seed));
        let db = Database::open("/db", options(&env).keep_changes(1 << 30)).unwrap();
        let backups = Backups::open_in(&env, "/backups").unwrap();
        let (mut files, mut moments, mut taken) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..4 {
            let since = db
                .last_sequence()
                .saturating_sub(rng.below(5))
                .min(moments.last().map_or(0, |moment: &Moment| moment.sequence));
            let mut stream = db.stream_changes(since, Vec::new()).unwrap();
            for _ in 0..4 {
                write(&db, &mut rng);
                env.jobs.advance(Duration::from_secs(60));
                stream.advance().unwrap();
                moments.push(Moment {
                    at_milliseconds: env.clock.unix_milliseconds(),
                    sequence: db.last_sequence(),
                    contents: contents(&db),
                });
                if rng.chance(30) {
                    taken.push((backups.take(&db).unwrap().number, db.last_sequence()));
                }
            }
            files.push(stream.finish().unwrap());
        }
        for (number, moment) in moments.iter().enumerate() {
            let earlier = taken.iter().rfind(|(_, sequence)| *sequence <= moment.sequence);
            let dir = format!("/restored-{number}");
            if let Some((backup, _)) = earlier {
                backups.restore(*backup, &dir).unwrap();
            }
            let mut copy = Follower::open(&dir, options(&env)).unwrap();
            let until = match rng.chance(50) {
                // It is as exact as rounds are.
                true => Until::Time(moment.at_milliseconds + rng.below(59_000)),
                false => Until::Sequence(moment.sequence),
            };
            for file in &files {
                let applied = copy.apply_until(&file[..], until).unwrap();
                if applied.end == StreamEnd::Reached {
                    break;
                }
            }
            assert_eq!(copy.position(), moment.sequence, "seed {seed}, moment {number}, {until:?}");
            // Tables that were dropped since may be there yet where the moment is told by a number.
            let (mut found, mut wanted) = (contents(copy.database()), moment.contents.clone());
            if matches!(until, Until::Sequence(_)) {
                [&mut found, &mut wanted].into_iter().for_each(|contents| drop(contents.remove("spare")));
            }
            assert_eq!(found, wanted, "seed {seed}, moment {number}, {until:?}");
            drop(copy);
            let db = Database::open(&dir, options(&env)).unwrap();
            db.table("a").open().unwrap().put("goes", "on").unwrap();
        }
    }
}
