//! Segments of the log: how they are made, shared, recycled and given up, and what is kept going when the disk is full.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Error, Layout, Options};
use forebay_env::Env;
use forebay_env::fs::{FaultyFs, MemoryFs};

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

fn faulty() -> (Arc<FaultyFs>, Env) {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::simulated(fs.clone(), 1);
    (fs, env)
}

/// How many files of a kind a database has.
fn count(env: &Env, dir: &str, kind: &str) -> u64 {
    let names = env.fs.list(Path::new(dir)).unwrap();
    names.iter().filter(|name| name.ends_with(kind)).count() as u64
}

fn rest(env: &Env, seconds: u64) {
    env.jobs.advance(Duration::from_secs(seconds));
    env.jobs.step_some(100_000);
}

/// The next segment could not be made, and for as long as that was so the housekeeper neither synced the log nor
/// removed files: the disk stayed full, though most of it may have waited for its removal.
#[test]
fn a_full_disk_that_is_freed_heals_without_reopening() {
    let (fs, env) = faulty();
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    (0..600u32).for_each(|n| table.put(n.to_be_bytes(), [7; 30]).unwrap());
    db.flush().unwrap();
    fs.rule("reserve *.log all no-space").unwrap();
    // Until the segment that was ready is used up.
    while db.flush().is_ok() {
        table.put(b"x", b"y").unwrap();
    }
    let _ = table.compact();
    let mut batch = Batch::new();
    batch.put(&table, b"acknowledged", b"1");
    db.commit(batch, Durability::Os).unwrap();
    rest(&env, 60);
    assert_eq!(db.durable_sequence(), db.last_sequence(), "it was not synced for a minute");
    assert_eq!(count(&env, "/db", ".list"), db.stats().list_files, "files that nobody needs stay");
    fs.clear();
    rest(&env, 1);
    db.flush().unwrap();
    (0..600u32).for_each(|n| table.put(n.to_be_bytes(), [8; 30]).unwrap());
    table.compact().unwrap();
    rest(&env, 10);
    assert_eq!(count(&env, "/db", ".list"), db.stats().list_files);
}

/// There was no room for the 4 KiB that name a new manifest: nothing was renamed, and yet all writing stopped.
#[test]
fn a_manifest_that_cannot_be_named_for_want_of_space_stops_nothing() {
    for rule in
        ["create CURRENT.tmp all no-space", "write CURRENT.tmp all no-space", "sync CURRENT.tmp all no-space"]
    {
        let (fs, env) = faulty();
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").open().unwrap();
        fs.rule(rule).unwrap();
        for round in 0..120u32 {
            (0..20u32).for_each(|n| table.put(n.to_be_bytes(), round.to_be_bytes()).unwrap());
            db.flush().unwrap();
            rest(&env, 1);
        }
        assert!(fs.fired() > 0, "{rule}: no new manifest was wanted");
        assert_eq!(count(&env, "/db", ".manifest"), 1, "{rule}: each try left one");
        fs.clear();
        rest(&env, 10);
        table.put(b"after", b"").unwrap();
        drop(table);
        db.close().unwrap();
        let db = Database::open("/db", options(&env)).unwrap();
        assert_eq!(db.table("t").open().unwrap().iter().unwrap().count(), 21);
    }
}

/// A directory that could not be synced was synced again, and what that said was believed. The kernel tells of a
/// failure once: names made before it may be lost all the same.
#[test]
fn a_directory_that_could_not_be_synced_stops_all_writing() {
    let (fs, env) = faulty();
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    table.put(b"kept", b"1").unwrap();
    rest(&env, 1);
    fs.rule("sync_dir * #1 io-error").unwrap();
    let failed = db.flush().and_then(|()| {
        rest(&env, 1);
        db.flush()
    });
    assert!(failed.is_err());
    assert!(matches!(table.put(b"key", b"1"), Err(Error::Poisoned(_))));
    assert_eq!(table.get(b"kept").unwrap().as_deref(), Some(&b"1"[..]));
    drop(table);
    assert!(db.close().is_err());
    let db = Database::open("/db", options(&env)).unwrap();
    assert_eq!(db.table("t").open().unwrap().get(b"kept").unwrap().as_deref(), Some(&b"1"[..]));
}

/// A retired segment that could not be renamed was forgotten, and its file stayed until the next opening.
#[test]
fn a_segment_that_cannot_be_renamed_is_not_forgotten() {
    let (fs, env) = faulty();
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    for round in 0..12u32 {
        if round == 4 {
            fs.rule("rename *.log #1 io-error").unwrap();
        }
        table.put(b"key", round.to_be_bytes()).unwrap();
        let _ = db.flush();
        rest(&env, 1);
    }
    db.flush().unwrap();
    rest(&env, 10);
    assert_eq!(fs.fired(), 1);
    assert!(count(&env, "/db", ".log") <= 3, "{:?}", env.fs.list(Path::new("/db")));
}

/// A copy that failed midway left its directory, so that every further try was told that it is not empty; of a database
/// that is open for reading only it always failed, at its end.
#[test]
fn a_checkpoint_that_fails_leaves_nothing() {
    let (fs, env) = faulty();
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    (0..300u32).for_each(|n| table.put(n.to_be_bytes(), [7; 30]).unwrap());
    for rule in ["link *.list #1 io-error", "create *.manifest #1 no-space", "sync CURRENT.tmp #1 io-error"] {
        fs.rule(rule).unwrap();
        assert!(db.checkpoint("/copy").is_err(), "{rule}");
        fs.clear();
        assert!(!env.fs.exists(Path::new("/copy")).unwrap(), "{rule}");
    }
    db.checkpoint("/copy").unwrap();
    drop(table);
    db.close().unwrap();
    let db = Database::open("/db", options(&env).read_only(true)).unwrap();
    assert!(db.checkpoint("/other").is_err());
    assert!(!env.fs.exists(Path::new("/other")).unwrap());
}

/// What a table keeps in memory alone is in segments that a checkpoint shares. Once the original, or the copy, had been
/// opened anew it wrote into them what came next, and the other could not be opened any more.
#[test]
fn what_a_checkpoint_shares_is_written_to_by_nobody() {
    for (goes_on, stays) in [("/db", "/copy"), ("/copy", "/db")] {
        let env = Env::memory(1);
        let db = Database::open("/db", options(&env)).unwrap();
        let table = db.table("t").layout(Layout::range_merge()).node_bytes(8 << 10).open_ordered().unwrap();
        table.put(b"key", b"value").unwrap();
        db.flush().unwrap();
        db.checkpoint("/copy").unwrap();
        drop(table);
        db.close().unwrap();
        let db = Database::open(goes_on, options(&env)).unwrap();
        let (table, other) = (db.table("t").open_ordered().unwrap(), db.table("other").open().unwrap());
        // What is in memory goes to files, and the segment is not needed any more.
        table.compact().unwrap();
        for round in 0..12u8 {
            (0..40u32).for_each(|n| other.put(n.to_be_bytes(), [round; 60]).unwrap());
            db.flush().unwrap();
            rest(&env, 1);
        }
        drop((table, other));
        db.close().unwrap();
        let db = Database::open(stays, options(&env)).unwrap();
        let table = db.table("t").open_ordered().unwrap();
        assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]), "{stays}");
    }
}

/// Until the next sync the log kept the files of segments open that were in lists already: with a long interval
/// thousands.
#[cfg(target_os = "linux")]
#[test]
fn segments_that_are_in_lists_are_let_go_of() {
    let dir = std::env::temp_dir().join(format!("forebay-handles-{}", std::process::id()));
    let open = Options::default().memory_limit(1 << 20).write_buffer(4 << 10);
    let open = open.sync_interval(Duration::from_secs(3600)).durability(Durability::Memory);
    let db = Database::open(&dir, open).unwrap();
    let table = db.table("t").open().unwrap();
    let is_log = |path: &Path| {
        path.starts_with(&dir) && path.to_string_lossy().trim_end_matches(" (deleted)").ends_with(".log")
    };
    for round in 0..20u32 {
        table.put(b"key", round.to_be_bytes()).unwrap();
        db.flush().unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "the process's own handles are no files of the database"
        )]
        let handles = std::fs::read_dir("/proc/self/fd").unwrap();
        let paths = handles.filter_map(|handle| handle.ok()?.path().read_link().ok());
        let logs = paths.filter(|path| is_log(path)).count();
        assert!(logs <= 5, "{logs} segments are open after {round} rounds");
    }
    drop(table);
    db.close().unwrap();
    Database::destroy(&dir).unwrap();
}

/// Which of two manifests is the current one was not known any more, and edits of tables and savepoints went on into
/// the one that was found to be the old one at the next opening.
#[test]
fn a_database_that_stopped_writing_edits_no_manifest() {
    let mut stopped = 0;
    for number in 1..40 {
        let (fs, env) = faulty();
        let db = Database::open("/db", options(&env)).unwrap();
        db.table("dropped").open().unwrap();
        let table = db.table("t").open().unwrap();
        fs.rule(&format!("sync_dir * #{number} io-error")).unwrap();
        for round in 0..60u32 {
            if table.put(round.to_be_bytes(), b"1").and_then(|()| db.flush()).is_err() {
                break;
            }
            rest(&env, 1);
        }
        fs.clear();
        let is_stopped = matches!(table.put(b"k", b"v"), Err(Error::Poisoned(_)));
        stopped += u32::from(is_stopped);
        let edits = [
            db.drop_table("dropped"),
            db.table("new").open().map(drop),
            db.savepoint("s").map(drop),
            table.set_layout(Layout::wb_tree_ordered()),
        ];
        let refused = edits.iter().filter(|edit| matches!(edit, Err(Error::Poisoned(_)))).count();
        assert_eq!(refused, if is_stopped { 4 } else { 0 }, "at {number}: {edits:?}");
        drop(table);
        let _ = db.close();
        let db = Database::open("/db", options(&env)).unwrap();
        let has = |name: &str| db.tables().iter().any(|(table, _)| table == name);
        assert_eq!(has("dropped"), is_stopped, "at {number}");
        assert_eq!(has("new"), !is_stopped, "at {number}");
        assert_eq!(db.savepoints().len(), usize::from(!is_stopped), "at {number}");
    }
    assert!(stopped > 20, "{stopped}");
}

/// On a full disk the next segment was tried without a rest, by whoever woke the machine that makes it, itself too.
#[test]
fn a_segment_that_cannot_be_made_is_not_tried_without_rest() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env { fs: fs.clone(), ..Env::memory(6) };
    let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).write_buffers(2);
    let db = Database::open("/db", options.env(env.clone())).unwrap();
    let table = db.table("t").open().unwrap();
    // It is ready, and taken by the first rotation.
    env.jobs.step_some(100);
    fs.rule("reserve *.log all no-space").unwrap();
    let mut key = 0u64;
    while db.stats().unlisted_bytes < 20 << 10 && key < 1000 {
        key += 1;
        table.put(key.to_be_bytes(), [7; 100]).unwrap();
    }
    env.jobs.step_some(1000);
    let asked = fs.fired();
    for _ in 0..200 {
        env.jobs.wake();
        env.jobs.step_some(20);
    }
    assert!(fs.fired() - asked <= 2, "{} tries", fs.fired() - asked);
    env.jobs.advance(Duration::from_secs(1));
    env.jobs.step_some(100);
    assert!(fs.fired() > asked, "it is tried again");
    fs.clear();
    env.jobs.advance(Duration::from_secs(1));
    (0..2000u64).for_each(|key| table.put(key.to_be_bytes(), [8; 100]).unwrap());
    db.flush().unwrap();
}
