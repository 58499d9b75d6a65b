//! Who may follow whom: copies that have gone another way are refused, with what to do about it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use forebay::{
    Aggregator, Batch, Database, Durability, Error, Follower, Layout, MergeRule, Options, OrderedTable,
    Result, StreamEnd, Table, requested_position,
};
use forebay_aggregate::functions::Count;
use forebay_env::fs::{CrashFs, FaultyFs, MemoryFs};
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
    let _: OrderedTable =
        db.table("o").layout(Layout::leveling(3)).node_bytes(8 << 10).open_ordered().unwrap();
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

    let runs = db.table("runs").layout(Layout::leveling(3)).node_bytes(8 << 10).open_ordered().unwrap();
    runs.ingest((0..9u8).map(|key| Ok((vec![key], vec![key])))).unwrap();
    open.advance().unwrap();
    refused(copy.apply(&open.finish().unwrap()[..]), &["no line in common", "ingested", "checkpoint"]);
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

/// An ingest takes no number. Where it is the first that comes, numbers alone do not tell that something is missing.
#[test]
fn who_is_blank_cannot_begin_behind_an_ingest_that_came_first() {
    let env = Env::memory(10);
    let ingest = |db: &Database| {
        let runs = db.table("runs").layout(Layout::leveling(3)).node_bytes(8 << 10).open_ordered().unwrap();
        runs.ingest((0..9u8).map(|key| Ok((vec![key], vec![key])))).unwrap();
    };
    let refuse = |db: &Database, dir: &str| {
        let mut blank = follower(&env, dir).unwrap();
        refused(blank.apply(&told(db, 0).unwrap()[..]), &["do not reach back", "checkpoint"]);
        put(db, 0..3);
        refused(blank.apply(&told(db, 0).unwrap()[..]), &["do not reach back", "checkpoint"]);
        let checkpoint = format!("{dir}-checkpoint");
        db.checkpoint(&checkpoint).unwrap();
        put(db, 3..5);
        let mut copy = follower(&env, &checkpoint).unwrap();
        copy.apply(&told(db, 3).unwrap()[..]).unwrap();
        assert_eq!(copy.database().table("runs").open().unwrap().iter().unwrap().count(), 9);
        assert_eq!(table(copy.database()).iter().unwrap().count(), 5);
    };
    // Lines begin with the opening, in use, and with a later opening.
    let db = source(&env);
    ingest(&db);
    refuse(&db, "/one");
    let db = Database::open("/second", options(&env)).unwrap();
    ingest(&db);
    db.keep_changes(1 << 30).unwrap();
    refuse(&db, "/two");
    let db = Database::open("/third", options(&env)).unwrap();
    ingest(&db);
    drop(db);
    let db = Database::open("/third", options(&env).keep_changes(1 << 30)).unwrap();
    refuse(&db, "/three");
}

/// Tables come and go without a number. A follower that has heard of it cannot go on with another one that has not, once
/// that is the source.
#[test]
fn a_follower_that_heard_of_more_than_the_next_source_is_refused() {
    for is_dropped in [true, false] {
        let env = Env::memory(11);
        let db = source(&env);
        put(&db, 0..5);
        let other = db.table("other").open().unwrap();
        other.put("k", "v").unwrap();
        let [mut one, mut two] = ["/one", "/two"].map(|dir| follower(&env, dir).unwrap());
        let bytes = told(&db, 0).unwrap();
        for copy in [&mut one, &mut two] {
            copy.apply(&bytes[..]).unwrap();
        }
        match is_dropped {
            true => db.drop_table("other").unwrap(),
            false => drop(db.table("later").open().unwrap()),
        }
        one.apply(&told(&db, 6).unwrap()[..]).unwrap();
        let next = two.promote().unwrap();
        next.keep_changes(1 << 30).unwrap();
        // Nothing was committed since, so nothing is missing.
        one.apply(&told(&next, 6).unwrap()[..]).unwrap();
        put(&next, 5..7);
        let words: &[&str] = if is_dropped { &["`other`", "was dropped"] } else { &["never had"] };
        refused(one.apply(&told(&next, 6).unwrap()[..]), &[words, &["anew"]].concat());
        assert_eq!(one.position(), 6);
    }
}

/// A stream of before is history of a follower that has gone on. What it tells of tables at the border, too.
#[test]
fn an_earlier_stream_takes_no_table_of_the_line_that_follows() {
    let env = Env::memory(12);
    let db = source(&env);
    put(&db, 0..5);
    let mut one = follower(&env, "/one").unwrap();
    one.apply(&told(&db, 0).unwrap()[..]).unwrap();
    // Its number is used at the old source, and then given anew.
    drop(db.table("brief").open().unwrap());
    db.drop_table("brief").unwrap();
    let archive = told(&db, 0).unwrap();
    let next = one.promote().unwrap();
    next.keep_changes(1 << 30).unwrap();
    drop(next.table("own").open().unwrap());
    next.checkpoint("/two").unwrap();
    next.table("own").open().unwrap().put("k", "v").unwrap();
    let mut two = follower(&env, "/two").unwrap();
    assert_eq!(two.apply(&archive[..]).unwrap().batches, 0);
    two.apply(&told(&next, 5).unwrap()[..]).unwrap();
    assert_eq!(two.database().table("own").open().unwrap().get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

/// Behind a crash a line begins before anything is committed, however full the disk was at the opening.
#[test]
fn a_full_disk_keeps_nobody_from_opening_and_parts_histories_all_the_same() {
    let env = Env::memory(13);
    let db = source(&env);
    put(&db, 0..10);
    db.sync().unwrap();
    let lost = MemoryFs::new();
    copy_dir(&*env.fs, &*lost, "/source");
    put(&db, 10..20);
    let mut copy = follower(&env, "/copy").unwrap();
    copy.apply(&told(&db, 0).unwrap()[..]).unwrap();
    let mut owed = 0;
    for number in 1..100 {
        let disk = MemoryFs::new();
        copy_dir(&*lost, &*disk, "/source");
        let full = FaultyFs::new(disk);
        let back = Env::simulated(full.clone(), number);
        full.rule(&format!("write *.manifest from:{} no-space", number.div_ceil(2))).unwrap();
        let db = Database::open("/source", options(&back));
        if full.fired() == 0 {
            break;
        }
        let Ok(mut db) = db else { continue };
        if number % 2 == 0 {
            if let Err(error) = table_of(&db).and_then(|table| table.put([1], [1])) {
                assert!(error.is_no_space(), "{number}: {error}");
                owed += 1;
            }
            full.clear();
        } else {
            // Nor is it forgotten where nothing was committed.
            let _ = db.close();
            full.clear();
            db = Database::open("/source", options(&back)).unwrap();
        }
        put(&db, 50..70);
        refused(copy.apply(&told(&db, 20).unwrap()[..]), &["up to 20", "another way after 10", "crash"]);
    }
    assert!(owed > 0, "an opening has no room for the line");
}

fn table_of(db: &Database) -> Result<Table> {
    db.table("t").open()
}

/// Whoever reads beside the writer makes durable what it tells, though the writer has not.
#[test]
fn what_a_reader_tells_is_found_after_a_crash() {
    for seed in 0..20 {
        let fs = CrashFs::new(seed);
        let env = Env::simulated(fs.clone(), seed);
        let db = source(&env);
        let table = table(&db);
        for key in 0..10u8 {
            let mut batch = Batch::new();
            batch.put(&table, [key], vec![key; 300]);
            db.commit(batch, Durability::Os).unwrap();
        }
        let reader = Database::open("/source", options(&env).read_only(true)).unwrap();
        let bytes = told(&reader, 0).unwrap();
        let fs = fs.power_cycle();
        env.jobs.abandon();
        drop((reader, table, db));
        let env = Env::simulated(fs, seed);
        let db = source(&env);
        let mut copy = follower(&env, "/copy").unwrap();
        copy.apply(&bytes[..]).unwrap();
        assert!(
            db.last_sequence() >= copy.position(),
            "seed {seed}: {} {}",
            db.last_sequence(),
            copy.position()
        );
        put(&db, 100..105);
        copy.apply(&told(&db, copy.position()).unwrap()[..]).unwrap();
        assert_eq!(copy.position(), db.last_sequence());
    }
}

/// By one stream, over an ingest that ends it for whoever has not got that, and new lines of the source.
#[test]
fn a_stream_beside_the_writer_goes_on_over_openings() {
    let env = Env::memory(14);
    let db = source(&env);
    put(&db, 0..5);
    db.close().unwrap();
    let reader = Database::open("/source", options(&env).read_only(true)).unwrap();
    let mut stream = reader.stream_changes(0, Vec::new()).unwrap();
    stream.advance().unwrap();
    assert!(!stream.advance_if_new().unwrap());
    for round in 1..4u8 {
        let db = source(&env);
        put(&db, 5 * round..5 * round + 5);
        db.flush().unwrap();
        assert!(!stream.advance_if_new().unwrap(), "nothing is seen before it is looked for");
        reader.refresh().unwrap();
        assert!(stream.advance_if_new().unwrap());
        assert_eq!(stream.position(), db.last_sequence());
        // A table that comes is news, too.
        drop(db.table(&format!("empty {round}")).open().unwrap());
        reader.refresh().unwrap();
        assert!(stream.advance_if_new().unwrap());
        drop(db);
    }
    let mut copy = follower(&env, "/copy").unwrap();
    let applied = copy.apply(&stream.finish().unwrap()[..]).unwrap();
    assert_eq!((applied.position, copy.database().tables().len()), (20, 4));
}

#[test]
fn a_source_that_is_behind_says_so() {
    let env = Env::memory(15);
    let db = source(&env);
    put(&db, 0..5);
    let mut copy = follower(&env, "/copy").unwrap();
    copy.apply(&told(&db, 0).unwrap()[..]).unwrap();
    let mut bytes = Vec::new();
    let mut stream = db.stream_changes(9, &mut bytes).unwrap();
    refused(stream.advance(), &["after 9", "number 5", "anew"]);
    drop(stream);
    let mut ahead = bytes;
    put(&db, 5..12);
    copy.apply(&told(&db, 5).unwrap()[..]).unwrap();
    assert_eq!(copy.apply(&ahead[..]).unwrap().end, StreamEnd::Behind);
    // Behind it another may stand.
    ahead.extend(told(&db, 12).unwrap());
    assert_eq!(copy.apply(&ahead[..]).unwrap().end, StreamEnd::Finished);
}

/// What is asked may come from anybody: no more of it is read than a request has.
#[test]
fn a_request_without_end_is_not_read_to_its_end() {
    struct Endless(Vec<u8>, usize);
    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            for byte in into.iter_mut() {
                *byte = self.0.get(self.1).copied().unwrap_or(0);
                self.1 += 1;
            }
            Ok(into.len())
        }
    }
    // The head of a commit of four gibibytes.
    let mut bytes = b"FBCHANGE\0\0\0\0\0\0\0\0\xff\xff\xff\xff\x03\0\0\0".to_vec();
    let sum = forebay_base::checksum::checksum(u64::from_le_bytes(*b"FBCHANGE"), 8, &bytes[12..]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    let mut endless = Endless(bytes, 0);
    assert!(requested_position(&mut endless).unwrap_err().is_corruption());
    assert!(endless.1 < 200, "{} bytes were read", endless.1);
}

/// A time to live decides what is written, so a follower has its source's; all else is its own affair.
#[test]
fn a_follower_has_the_time_to_live_of_its_source_and_other_options_of_its_own() {
    let (env, hour) = (Env::memory(16), std::time::Duration::from_secs(3600));
    let db = source(&env);
    db.table("brief").time_to_live(hour).open().unwrap().put("a", "1").unwrap();
    let mut copy = follower(&env, "/copy").unwrap();
    copy.apply(&told(&db, 0).unwrap()[..]).unwrap();
    copy.database().table("brief").filter_bits_per_key(20).alter().unwrap();
    refused(copy.database().table("brief").time_to_live(2 * hour).alter(), &["follows another"]);
    db.table("brief").time_to_live(3 * hour).filter_bits_per_key(8).alter().unwrap();
    copy.apply(&told(&db, 1).unwrap()[..]).unwrap();
    let promoted = copy.promote().unwrap();
    promoted.table("brief").time_to_live(3 * hour).filter_bits_per_key(20).open().unwrap();
}
