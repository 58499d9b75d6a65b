//! Tables that a follower is told of: whose rule the engine has itself, that go where the power goes, too, and of which
//! another follower has not heard yet.

use forebay::{Batch, ChangeStream, Database, Durability, Follower, Options, StoredRule, StreamEnd, Until};
use forebay_env::Env;
use forebay_env::fs::CrashFs;

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).keep_changes(1 << 30).env(env.clone())
}

fn source(env: &Env) -> Database {
    Database::open("/source", options(env)).unwrap()
}

fn follower(env: &Env, dir: &str) -> Follower {
    Follower::open(dir, options(env)).unwrap()
}

fn told(db: &Database, since: u64) -> Vec<u8> {
    let mut stream = db.stream_changes(since, Vec::new()).unwrap();
    stream.advance().unwrap();
    stream.finish().unwrap()
}

fn put(db: &Database, keys: std::ops::Range<u8>) {
    let table = db.table("t").open().unwrap();
    keys.for_each(|key| table.put([key], [key]).unwrap());
}

fn has(db: &Database, table: &str) -> bool {
    db.tables().iter().any(|(name, _)| name == table)
}

#[test]
fn rules_that_the_engine_has_need_no_code() {
    let env = Env::memory(1);
    let db = source(&env);
    let rules = [
        ("list", StoredRule::append(",").unwrap()),
        ("most", StoredRule::max()),
        ("least", StoredRule::min()),
        ("sum", StoredRule::add()),
    ];
    let merge = |value: &str| {
        for (name, rule) in &rules {
            let table = db.table(name).merge_rule(rule.clone()).open().unwrap();
            table.merge("k", value).unwrap();
        }
    };
    merge("1");
    merge("20");
    let mut copy = follower(&env, "/copy");
    copy.apply(&told(&db, 0)[..]).unwrap();
    copy.database().flush().unwrap();
    merge("3");
    let bytes = told(&db, copy.position());
    copy.apply(&bytes[..]).unwrap();
    for (name, _) in &rules {
        let [there, here] = [&db, copy.database()].map(|db| db.table(name).open().unwrap().get("k").unwrap());
        assert!(there.is_some() && there == here, "{name}: {there:?} {here:?}");
    }
    let list = copy.database().table("list").open().unwrap();
    assert_eq!(list.get("k").unwrap().as_deref(), Some(&b"1,20,3"[..]));
}

/// A power loss that takes back what came before a table's end does not leave it dropped.
#[test]
fn a_table_goes_once_what_came_before_is_durable() {
    for is_made_anew in [true, false] {
        let env = Env::memory(2);
        let db = source(&env);
        db.table("users").open().unwrap().put("ada", "1815").unwrap();
        let first = told(&db, 0);
        put(&db, 0..20);
        let before = db.last_sequence();
        db.drop_table("users").unwrap();
        if is_made_anew {
            db.table("users").open().unwrap().put("bob", "1").unwrap();
        }
        let second = told(&db, 1);
        let mut crashes = 0;
        for at in 1.. {
            let fs = CrashFs::new(at);
            let env = Env::simulated(fs.clone(), at);
            let mut copy = follower(&env, "/copy");
            copy.apply(&first[..]).unwrap();
            fs.crash_at(fs.operations() + at);
            let outcome = copy.apply(&second[..]);
            if !fs.is_off() {
                outcome.unwrap();
                break;
            }
            crashes += 1;
            let left = fs.power_cycle();
            env.jobs.abandon();
            drop(copy);
            let copy = follower(&Env::simulated(left, at), "/copy");
            let db = copy.database();
            let has_ada = has(db, "users") && db.table("users").open().unwrap().get("ada").unwrap().is_some();
            assert!(has_ada || copy.position() >= before, "crash {at}: up to {}", copy.position());
        }
        assert!(crashes > 2, "{crashes}");
    }
}

/// A commit of a round has records of a table that is dropped by its end, and of one that was made and dropped within it,
/// such as a count and what it counts. Of a round that is cut off there neither is left; of a moment in it the first is.
#[test]
fn no_half_of_a_commit_is_left_of_what_a_round_no_longer_tells() {
    let env = Env::memory(4);
    let db = source(&env);
    let put_both = |count: &str| {
        let (counts, counted) = (db.table("counts").open().unwrap(), db.table("counted").open().unwrap());
        let mut batch = Batch::new();
        batch.put(&counts, "k", count);
        batch.put(&counted, ["k", count].concat(), "v");
        db.write(&mut batch, Durability::Memory).unwrap();
    };
    db.table("counts").open().unwrap().put("k", "0").unwrap();
    put(&db, 0..1);
    let first = told(&db, 0);
    put_both("1");
    put(&db, 1..2);
    put_both("2");
    let before = db.last_sequence();
    put(&db, 2..3);
    db.drop_table("counts").unwrap();
    db.drop_table("counted").unwrap();
    let second = told(&db, 2);

    let mut copies = ["/cut", "/moment"].map(|dir| follower(&env, dir));
    for copy in &mut copies {
        copy.apply(&first[..]).unwrap();
    }
    let [mut cut, mut moment] = copies;
    // Behind the last commit come its round's mark and the end of the stream.
    let applied = cut.apply(&second[..second.len() - 60]).unwrap();
    assert!(applied.end == StreamEnd::CutOff && applied.position > 2, "{applied:?}");
    assert!(!has(cut.database(), "counts") && !has(cut.database(), "counted"));
    let promoted = cut.promote().unwrap();
    assert_eq!(promoted.table("t").open().unwrap().get([1]).unwrap().as_deref(), Some(&[1][..]));

    moment.apply_until(&second[..], Until::Sequence(before)).unwrap();
    let counts = moment.database().table("counts").existing(true).open().unwrap();
    assert_eq!(counts.get("k").unwrap().as_deref(), Some(&b"2"[..]));
    moment.apply(&second[..]).unwrap();
    assert!(!has(moment.database(), "counts"));
}

/// A follower hears of a table that was dropped as soon as of a commit.
#[test]
fn a_stream_waits_for_tables_that_come_and_go_too() {
    let env = Env::memory(5);
    let db = source(&env);
    put(&db, 0..1);
    let mut stream = db.stream_changes(0, Vec::new()).unwrap();
    stream.advance().unwrap();
    let waited = |stream: &ChangeStream<Vec<u8>>| {
        let began = env.clock.now();
        assert!(stream.wait());
        env.clock.now() - began
    };
    let heartbeat = waited(&stream);
    db.drop_table("t").unwrap();
    assert!(waited(&stream) < heartbeat / 10, "a table went");
    stream.advance().unwrap();
    drop(db.table("t").open().unwrap());
    assert!(waited(&stream) < heartbeat / 10, "a table came");
    stream.advance().unwrap();
    assert!(stream.advance_if_new().is_ok_and(|is_new| !is_new));
    assert_eq!(waited(&stream), heartbeat);
}

/// A follower of followers comes to one that is amid a round, by whose end the table is dropped that it does not have any
/// more itself.
#[test]
fn a_source_that_follows_and_has_not_heard_of_it_yet_is_behind() {
    let env = Env::memory(3);
    let db = source(&env);
    put(&db, 0..5);
    db.table("other").open().unwrap().put("k", "v").unwrap();
    let [mut one, mut two] = ["/one", "/two"].map(|dir| follower(&env, dir));
    let bytes = told(&db, 0);
    for copy in [&mut one, &mut two] {
        copy.apply(&bytes[..]).unwrap();
    }
    db.drop_table("other").unwrap();
    one.apply(&told(&db, 6)[..]).unwrap();
    put(&db, 5..7);
    let applied = two.apply_until(&told(&db, 6)[..], Until::Sequence(7)).unwrap();
    assert_eq!((applied.position, applied.end), (7, StreamEnd::Reached));
    assert!(has(two.database(), "other") && !has(one.database(), "other"));

    let applied = one.apply(&told(two.database(), 6)[..]).unwrap();
    assert_eq!((applied.position, applied.end), (6, StreamEnd::Behind));
    two.apply(&told(&db, 7)[..]).unwrap();
    let applied = one.apply(&told(two.database(), 6)[..]).unwrap();
    assert_eq!((applied.position, applied.end), (8, StreamEnd::Finished));
    assert!(!has(one.database(), "other"));
}
