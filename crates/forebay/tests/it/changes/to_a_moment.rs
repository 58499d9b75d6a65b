//! Point in time: a backup, and streams that were kept in files behind it, applied up to a moment.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay::{Backups, Database, Error, Follower, Layout, Options, Result, StreamEnd, Until};
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

fn keys_of(db: &Database, name: &str) -> Vec<u8> {
    let Ok(table) = db.table(name).existing(true).open() else { return Vec::new() };
    let mut keys: Vec<u8> = table.iter().unwrap().map(|entry| entry.unwrap().0[0]).collect();
    keys.sort_unstable();
    keys
}

/// In one round a table is dropped, and made again under its name: at each record there is what was at the source.
#[test]
fn each_record_of_a_round_is_a_moment_whatever_becomes_of_tables_in_it() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env).keep_changes(1 << 30)).unwrap();
    let backups = Backups::open_in(&env, "/backups").unwrap();
    let put = |name: &str, key: u8| db.table(name).open().unwrap().put([key], [key]).unwrap();
    (1..=2).for_each(|key| put("users", key));
    let backup = backups.take(&db).unwrap().number;
    (3..=4).for_each(|key| put("users", key));
    put("other", 5);
    db.drop_table("users").unwrap();
    (6..=8).for_each(|key| put("users", key));
    put("other", 9);
    drop(db.table("empty").open().unwrap());
    let mut stream = db.stream_changes(0, Vec::new()).unwrap();
    stream.advance().unwrap();
    let archive = stream.finish().unwrap();
    for until in 2..=9u8 {
        let dir = format!("/restored-{until}");
        backups.restore(backup, &dir).unwrap();
        let mut copy = Follower::open(&dir, options(&env)).unwrap();
        let applied = copy.apply_until(&archive[..], Until::Sequence(until.into())).unwrap();
        assert_eq!((applied.position, applied.end), (until.into(), StreamEnd::Reached));
        let users: Vec<u8> =
            if until < 6 { (1..=until.min(4)).collect() } else { (6..=until.min(8)).collect() };
        let others: Vec<u8> = [5, 9].into_iter().filter(|key| *key <= until).collect();
        let found = ["users", "other"].map(|name| keys_of(copy.database(), name));
        assert_eq!(found, [users, others], "until {until}");
        let tables = copy.database().tables().into_iter().map(|(name, _)| name);
        assert_eq!(tables.filter(|name| name == "empty").count(), usize::from(until == 9), "until {until}");
        // It goes on from there, and by what is cut off in the midst of the round.
        drop(copy);
        let mut copy = Follower::open(&dir, options(&env)).unwrap();
        copy.apply(&archive[..archive.len() - 60]).unwrap();
        copy.apply(&archive[..]).unwrap();
        assert_eq!(contents(copy.database()), contents(&db));
    }
}

/// What is newer than the moment that is asked for is not passed off as that.
#[test]
fn a_copy_that_is_newer_than_the_moment_is_told() {
    let env = Env::memory(2);
    let db = Database::open("/db", options(&env).keep_changes(1 << 30)).unwrap();
    let table = db.table("t").open().unwrap();
    let mut stream = db.stream_changes(0, Vec::new()).unwrap();
    let mut moments = Vec::new();
    for round in 0..3u8 {
        (0..3).for_each(|key| table.put([round, key], "v").unwrap());
        env.jobs.advance(Duration::from_secs(60));
        stream.advance().unwrap();
        moments.push(env.clock.unix_milliseconds());
        db.checkpoint(format!("/copy-{round}")).unwrap();
    }
    let archive = stream.finish().unwrap();
    let mut copy = Follower::open("/copy-1", options(&env)).unwrap();
    let error = copy.apply_until(&archive[..], Until::Sequence(5)).unwrap_err().to_string();
    assert!(error.contains("up to 6") && error.contains("back to 5"), "{error}");
    let mut end = |stream: &[u8], time| {
        let applied = copy.apply_until(stream, Until::Time(time)).unwrap();
        assert_eq!(applied.position, 6);
        applied.end
    };
    assert_eq!(end(&archive, moments[0]), StreamEnd::Passed);
    assert_eq!(end(&archive, moments[0] - 1), StreamEnd::Passed);
    assert_eq!(end(&archive, moments[1]), StreamEnd::Reached);
    // It is known by now when the last record was committed, though a later stream tells it once more.
    let mut late = db.stream_changes(4, Vec::new()).unwrap();
    late.advance().unwrap();
    let late = late.finish().unwrap();
    assert_eq!(end(&late, moments[1]), StreamEnd::Reached);
    assert_eq!(end(&late, moments[0]), StreamEnd::Passed);
    let mut begin = db.stream_changes(6, Vec::new()).unwrap();
    begin.advance().unwrap();
    assert_eq!(end(&begin.finish().unwrap(), moments[1]), StreamEnd::Reached);
}

/// An archive that was begun before an ingest was refused by each backup behind that, with all that it had of later.
#[test]
fn an_archive_that_began_before_an_ingest_goes_on_from_a_backup_behind_it() {
    let env = Env::memory(3);
    let db = Database::open("/db", options(&env).keep_changes(1 << 30)).unwrap();
    let backups = Backups::open_in(&env, "/backups").unwrap();
    let put = |db: &Database, keys: std::ops::Range<u8>| {
        let table = db.table("t").open().unwrap();
        keys.for_each(|key| table.put([key], [key]).unwrap());
    };
    let told = |db: &Database| {
        let mut stream = db.stream_changes(0, Vec::new()).unwrap();
        stream.advance().unwrap();
        stream.finish().unwrap()
    };
    put(&db, 0..5);
    let before = told(&db);
    db.checkpoint("/before").unwrap();
    let mut stream = db.stream_changes(0, Vec::new()).unwrap();
    stream.advance().unwrap();
    let runs = db.table("runs").layout(Layout::leveling(3)).node_bytes(8 << 10).open_ordered().unwrap();
    runs.ingest((0..9u8).map(|key| Ok((vec![key], vec![key])))).unwrap();
    put(&db, 5..8);
    stream.advance().unwrap();
    let backup = backups.take(&db).unwrap().number;
    put(&db, 8..12);
    stream.advance().unwrap();
    let archive = stream.finish().unwrap();

    backups.restore(backup, "/restored").unwrap();
    let mut copy = Follower::open("/restored", options(&env)).unwrap();
    assert_eq!(copy.apply(&before[..]).unwrap().batches, 0);
    let applied = copy.apply(&archive[..]).unwrap();
    assert_eq!((applied.position, applied.batches, applied.end), (12, 4, StreamEnd::Finished));
    assert_eq!(contents(copy.database()), contents(&db));
    // A copy of before the ingest that has gone another way is refused where it goes beyond the follower.
    let other = Database::open("/before", options(&env)).unwrap();
    put(&other, 100..120);
    let refused = copy.apply(&told(&other)[..]).unwrap_err();
    let Error::Invalid(reason) = &refused else { panic!("{refused}") };
    assert!(reason.contains("after record 12") && reason.contains("ingested"), "{reason}");
    assert_eq!(contents(copy.database()), contents(&db));
}
