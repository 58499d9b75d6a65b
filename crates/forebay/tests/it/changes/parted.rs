//! Who may follow whom: copies that have gone another way are refused, with what to do about it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use forebay::{
    Aggregator, Database, Error, Follower, Layout, MergeRule, Options, OrderedTable, Result, StreamEnd, Table,
};
use forebay_aggregate::functions::Count;
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, Env, FileSystem};

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

fn source(env: &Env) -> Database {
    Database::open("/source", options(env).keep_changes(1 << 30)).unwrap()
}

fn follower(env: &Env, dir: &str) -> Result<Follower> {
    Follower::open(dir, options(env))
}

fn told(db: &Database, since: u64) -> Result<Vec<u8>> {
    let mut stream = db.stream_changes(since, Vec::new())?;
    stream.advance()?;
    stream.finish()
}

fn table(db: &Database) -> Table {
    db.table("t").open().unwrap()
}

fn put(db: &Database, keys: std::ops::Range<u8>) {
    let table = table(db);
    keys.for_each(|key| table.put([key], [key]).unwrap());
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T>, words: &[&str]) {
    let Err(Error::Invalid(reason)) = &outcome else { panic!("{outcome:?}") };
    words.iter().for_each(|word| assert!(reason.contains(word), "{word:?} is not in {reason:?}"));
}

#[test]
fn a_follower_takes_nothing_but_what_its_source_has() {
    let env = Env::memory(1);
    let db = source(&env);
    put(&db, 0..5);
    let counts: Aggregator<Count> = db.aggregator("hits", Count).open().unwrap();
    counts.add("a", ()).unwrap();
    let _: OrderedTable = db.table("o").layout(Layout::leveling(3)).open_ordered().unwrap();
    let mut copy = follower(&env, "/copy").unwrap();
    copy.apply(&told(&db, 0).unwrap()[..]).unwrap();
    let read = copy.database();
    assert_eq!(table(read).get([3]).unwrap(), Some(vec![3]));
    assert_eq!(read.aggregator("hits", Count).open().unwrap().get("a").unwrap(), Some(1));
    read.savepoint("kept").unwrap();
    for outcome in [
        table(read).put("k", "v"),
        table(read).delete("k"),
        read.drop_table("t"),
        read.rollback("kept"),
        read.table("new").open().map(drop),
        read.table("o").open_ordered().unwrap().ingest([Ok((vec![1], vec![1]))].into_iter()).map(drop),
        read.transaction(|tx| {
            tx.put(table(read), "k", "v");
            Ok(())
        }),
        read.aggregator("hits", Count).open().unwrap().add("a", ()),
    ] {
        refused(outcome, &["follows another"]);
    }
    // What concerns its files alone is its own.
    table(read).compact().unwrap();
    read.flush().unwrap();
    read.checkpoint("/copy-of-copy").unwrap();
    put(&db, 5..9);
    let bytes = told(&db, copy.position()).unwrap();
    copy.apply(&bytes[..]).unwrap();
    assert_eq!(copy.position(), db.last_sequence());
    // A copy of it follows as well, from where it was.
    let mut second = follower(&env, "/copy-of-copy").unwrap();
    second.apply(&bytes[..]).unwrap();
    assert_eq!(second.position(), db.last_sequence());
}

#[test]
fn a_promoted_follower_goes_on_and_others_may_follow_it_while_the_old_source_is_left() {
    let env = Env::memory(2);
    let db = source(&env);
    put(&db, 0..10);
    let [mut one, mut two] = ["/one", "/two"].map(|dir| follower(&env, dir).unwrap());
    let bytes = told(&db, 0).unwrap();
    one.apply(&bytes[..]).unwrap();
    let mut three = follower(&env, "/three").unwrap();
    three.apply(&bytes[..]).unwrap();
    two.apply(&bytes[..bytes.len() / 2]).unwrap();
    assert!(two.position() < one.position());

    let promoted = one.promote().unwrap();
    promoted.keep_changes(1 << 30).unwrap();
    let at = promoted.last_sequence();
    put(&promoted, 100..110);
    put(&db, 10..12);

    // Who is behind, or where it was, follows the new one, and then the old one no more.
    two.apply(&told(&promoted, two.position()).unwrap()[..]).unwrap();
    assert_eq!(two.position(), promoted.last_sequence());
    three.apply(&told(&promoted, at).unwrap()[..]).unwrap();
    assert_eq!(three.position(), promoted.last_sequence());
    refused(three.apply(&told(&db, at).unwrap()[..]), &["another way", "10"]);
    // What it told before is history of both, and passed over.
    assert_eq!(three.apply(&bytes[..]).unwrap().batches, 0);
    drop(promoted);
    refused(follower(&env, "/one").map(drop), &["/one", "writes of its own", "checkpoint"]);
    db.close().unwrap();
    refused(follower(&env, "/source").map(drop), &["/source", "writes of its own"]);
}

#[test]
fn an_ingest_or_a_rollback_ends_it_for_all_who_have_not_got_it() {
    let env = Env::memory(3);
    let db = source(&env);
    put(&db, 0..10);
    db.savepoint("then").unwrap();
    let mut copy = follower(&env, "/copy").unwrap();
    copy.apply(&told(&db, 0).unwrap()[..]).unwrap();
    let mut open = db.stream_changes(copy.position(), Vec::new()).unwrap();
    open.advance().unwrap();

    let runs = db.table("runs").layout(Layout::leveling(3)).open_ordered().unwrap();
    runs.ingest((0..9u8).map(|key| Ok((vec![key], vec![key])))).unwrap();
    refused(open.advance(), &["another line", "ingested"]);
    let told_now = told(&db, copy.position()).unwrap();
    refused(copy.apply(&told_now[..]), &["no line in common", "ingested", "checkpoint"]);
    // Nor does a new one begin with nothing.
    let mut blank = follower(&env, "/blank").unwrap();
    refused(blank.apply(&told(&db, 0).unwrap()[..]), &["do not reach back", "checkpoint"]);
    db.checkpoint("/anew").unwrap();
    put(&db, 10..12);
    let mut anew = follower(&env, "/anew").unwrap();
    anew.apply(&told(&db, anew.position()).unwrap()[..]).unwrap();
    let ingested = anew.database().table("runs").open_ordered().unwrap();
    assert_eq!((anew.position(), ingested.iter().unwrap().count()), (12, 9));

    drop(ingested);
    let mut open = db.stream_changes(anew.position(), Vec::new()).unwrap();
    open.advance().unwrap();
    db.rollback("then").unwrap();
    let gone = open.advance().unwrap_err();
    assert!(matches!(gone, Error::ChangesGone { since: 12, rolled_back: Some(13), .. }), "{gone}");
    // Who follows is told, too.
    let mut bytes = Vec::new();
    let mut open = db.stream_changes(12, &mut bytes).unwrap();
    assert!(open.advance().is_err());
    drop(open);
    let gone = anew.apply(&bytes[..]).unwrap_err();
    assert!(matches!(gone, Error::ChangesGone { since: 12, rolled_back: Some(13), .. }), "{gone}");
}

#[test]
fn a_gap_and_another_database_are_told_with_what_to_do() {
    let env = Env::memory(4);
    let db = source(&env);
    put(&db, 0..10);
    let mut copy = follower(&env, "/copy").unwrap();
    copy.apply(&told(&db, 0).unwrap()[..]).unwrap();
    put(&db, 10..20);
    refused(copy.apply(&told(&db, 15).unwrap()[..]), &["after record 15", "up to 10", "--since 10"]);

    let other = Database::open("/other", options(&env).keep_changes(1 << 30)).unwrap();
    put(&other, 0..30);
    refused(copy.apply(&told(&other, 0).unwrap()[..]), &["is of database", "is a copy of"]);
    assert_eq!(copy.position(), 10);

    // What is not kept any more.
    let brief = Database::open("/brief", options(&env).keep_changes(12 << 10)).unwrap();
    let mut behind = follower(&env, "/behind").unwrap();
    put(&brief, 0..10);
    behind.apply(&told(&brief, 0).unwrap()[..]).unwrap();
    (0..40).for_each(|_| put(&brief, 0..250));
    brief.flush().unwrap();
    let gone = told(&brief, behind.position()).unwrap_err();
    assert!(matches!(gone, Error::ChangesGone { since: 10, oldest: 11.., rolled_back: None }), "{gone}");
    let mut blank = follower(&env, "/blank").unwrap();
    let mut bytes = Vec::new();
    assert!(brief.stream_changes(0, &mut bytes).unwrap().advance().is_err());
    assert!(matches!(blank.apply(&bytes[..]).unwrap_err(), Error::ChangesGone { since: 0, .. }));
    assert!(db.stream_changes(21, Vec::new()).unwrap().advance().is_err(), "nobody is ahead of it");
}

/// Its changes begin to be kept when somebody first asks; what was before is in copies that are made from then on.
#[test]
fn a_database_that_was_there_before_is_followed_from_a_checkpoint_of_now() {
    let env = Env::memory(5);
    let db = Database::open("/source", options(&env)).unwrap();
    put(&db, 0..10);
    db.checkpoint("/early").unwrap();
    db.flush().unwrap();
    put(&db, 10..12);
    assert_eq!(db.kept_changes_bytes(), 0);
    db.keep_changes(1 << 20).unwrap();
    put(&db, 12..14);
    let mut blank = follower(&env, "/blank").unwrap();
    let all = told(&db, db.last_sequence()).unwrap();
    refused(blank.apply(&all[..]), &["do not reach back"]);
    drop(blank);
    // A copy of before is a database like any other.
    refused(follower(&env, "/early").map(drop), &["writes of its own"]);
    db.checkpoint("/now").unwrap();
    put(&db, 14..16);
    let mut now = follower(&env, "/now").unwrap();
    now.apply(&told(&db, 14).unwrap()[..]).unwrap();
    assert_eq!((now.position(), table(now.database()).iter().unwrap().count()), (16, 16));
    // Where nothing is in lists yet, the log has all there ever was.
    let young = Database::open("/young", options(&env)).unwrap();
    put(&young, 0..3);
    let mut blank = follower(&env, "/blank").unwrap();
    blank.apply(&told(&young, 0).unwrap()[..]).unwrap();
    assert_eq!(blank.position(), 3);
}

fn copy_dir(from: &dyn FileSystem, to: &dyn FileSystem, dir: &str) {
    to.create_dir_all(Path::new(dir)).unwrap();
    for name in from.list(Path::new(dir)).unwrap() {
        let path = Path::new(dir).join(name);
        let file = from.open_read(&path, Access::Buffered).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        to.create(&path, Access::Buffered).unwrap().write_at(0, &bytes).unwrap();
    }
}

/// A disk that lied lost what was told to a follower: numbers are given again, and the follower is not taken along.
#[test]
fn a_source_that_lost_what_it_told_is_found_out() {
    let env = Env::memory(6);
    let db = source(&env);
    put(&db, 0..10);
    db.sync().unwrap();
    let lost = MemoryFs::new();
    copy_dir(&*env.fs, &*lost, "/source");
    put(&db, 10..20);
    let mut copy = follower(&env, "/copy").unwrap();
    copy.apply(&told(&db, 0).unwrap()[..]).unwrap();
    drop(db);
    let back = Env::simulated(lost, 7);
    let db = source(&back);
    assert_eq!(db.last_sequence(), 10);
    put(&db, 50..70);
    refused(copy.apply(&told(&db, 20).unwrap()[..]), &["up to 20", "another way after 10", "crash"]);
    assert_eq!(copy.position(), 20);
}

#[derive(Debug)]
struct Longest;

impl MergeRule for Longest {
    fn name(&self) -> &str {
        "longest/1"
    }

    fn merge(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(if newer.len() > older.len() { newer } else { older });
    }
}

#[test]
fn a_rule_of_the_users_own_is_asked_for() {
    let env = Env::memory(8);
    let db = source(&env);
    let longest = db.table("longest").merge_rule(Longest).open().unwrap();
    put(&db, 0..2);
    longest.merge("k", "a").unwrap();
    let bytes = told(&db, 0).unwrap();
    let mut copy = follower(&env, "/copy").unwrap();
    refused(copy.apply(&bytes[..]), &["`longest`", "`longest/1`", "Follower::merge_rule"]);
    assert_eq!(copy.position(), 0);
    let mut copy = copy.merge_rule(Longest);
    copy.apply(&bytes[..]).unwrap();
    copy.close().unwrap();
    longest.merge("k", "abc").unwrap();
    let bytes = told(&db, 3).unwrap();
    let mut copy = follower(&env, "/copy").unwrap();
    refused(copy.apply(&bytes[..]), &["`longest`", "Follower::merge_rule"]);
    let mut copy = copy.merge_rule(Longest);
    copy.apply(&bytes[..]).unwrap();
    let read = copy.database().table("longest").merge_rule(Longest).open().unwrap();
    assert_eq!(read.get("k").unwrap().as_deref(), Some(&b"abc"[..]));
}

/// The number that the database keeps of itself: an opening that says none leaves it.
#[test]
fn what_is_kept_stays_so_until_somebody_says_otherwise() {
    let env = Env::memory(9);
    let open = |options: Options| Database::open("/source", options).unwrap();
    let db = open(options(&env).keep_changes(1 << 20));
    put(&db, 0..200);
    db.flush().unwrap();
    drop(db);
    let db = open(options(&env));
    assert_eq!((db.kept_changes_bytes(), db.changes(0).unwrap().count()), (1 << 20, 200));
    put(&db, 0..200);
    db.flush().unwrap();
    drop(db);
    let db = open(options(&env).read_only(true));
    assert_eq!(db.changes(0).unwrap().count(), 400);
    let reading = db.keep_changes(0).unwrap_err().to_string();
    assert!(reading.contains("reading only"), "{reading}");
    drop(db);
    let db = open(options(&env));
    db.keep_changes(5 << 10).unwrap();
    let left = db.changes(0).unwrap().count();
    assert!(0 < left && left < 200, "{left}");
    db.keep_changes(0).unwrap();
    assert_eq!(db.changes(0).unwrap().count(), 0);
    put(&db, 0..200);
    db.flush().unwrap();
    assert_eq!(db.changes(0).unwrap().count(), 0);
    drop(db);
    assert_eq!(open(options(&env)).kept_changes_bytes(), 0);
}

/// Over a socket, while commits come; the source is closed and opened again, and the follower goes on where it was.
#[test]
fn a_follower_at_a_socket_goes_on_where_it_was() {
    let dir = std::env::temp_dir().join(format!("forebay-follow-{}", std::process::id()));
    let [here, there] = ["source", "copy"].map(|name| dir.join(name));
    let mut copy = Follower::open(&there, Options::default().memory_limit(1 << 20)).unwrap();
    for round in 0..3u8 {
        let db =
            Database::open(&here, Options::default().memory_limit(1 << 20).keep_changes(1 << 20)).unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let server = db.change_server();
        std::thread::scope(|scope| {
            let serving = scope.spawn(move || server.serve(theirs));
            let following = scope.spawn(|| copy.follow(&mut ours).unwrap());
            put(&db, 40 * round..40 * round + 40);
            let last = db.last_sequence();
            db.close().unwrap();
            serving.join().unwrap().unwrap();
            let applied = following.join().unwrap();
            // What was committed just before the close may be told with the next round.
            assert!(applied.end == StreamEnd::Finished && applied.position <= last, "{applied:?}");
        });
    }
    let db = Database::open(&here, Options::default().memory_limit(1 << 20)).unwrap();
    copy.apply(&told(&db, copy.position()).unwrap()[..]).unwrap();
    assert_eq!((copy.position(), table(copy.database()).iter().unwrap().count()), (120, 120));
    // Whoever asks for something else is told so, and a source that goes away leaves what was whole.
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(db.change_server().serve(theirs).unwrap_err().is_corruption());
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut request = [0; 30];
            theirs.read_exact(&mut request).unwrap();
        });
        assert_eq!(copy.follow(ours).unwrap().end, StreamEnd::CutOff);
    });
    drop((db, copy));
    std::fs::remove_dir_all(&dir).unwrap();
}
