//! Options at their extremes, and paths.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use forebay::{Database, Error, Layout, Options};
use forebay_env::Env;

/// "Never" is what who syncs by himself asks for. The housekeeper added it to the time, panicked, and all writing
/// stopped.
#[test]
fn the_background_sync_may_be_never() {
    for interval in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(1 << 40)] {
        let env = Env::memory(1);
        let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone());
        let db = Database::open("/db", options.sync_interval(interval)).unwrap();
        let table = db.table("t").open().unwrap();
        for round in 0..4u32 {
            (0..200u32).for_each(|n| table.put(n.to_be_bytes(), round.to_be_bytes()).unwrap());
            env.jobs.advance(Duration::from_secs(3));
            env.jobs.step_some(1000);
        }
        db.flush().unwrap();
        table.compact().unwrap();
        table.put(b"not synced", b"").unwrap();
        env.jobs.advance(Duration::from_secs(60));
        env.jobs.step_some(1000);
        assert!(db.durable_sequence() < db.last_sequence(), "nobody asked for it");
        let lists = env.fs.list(Path::new("/db")).unwrap();
        let lists = lists.iter().filter(|name| name.ends_with(".list")).count();
        assert_eq!(lists as u64, db.stats().list_files, "retired files are removed all the same");
        db.sync().unwrap();
        assert_eq!(db.durable_sequence(), db.last_sequence());
    }
}

/// Three of the usual size of two were refused, or four where the limit divides by as many.
#[test]
fn more_write_buffers_are_shorter() {
    let bytes = |limit: u64, count: usize| {
        let options = Options::default().memory_limit(limit).write_buffers(count);
        drop(Database::open("/db", options.clone().env(Env::memory(4))).unwrap());
        options.buffer_bytes(Layout::wb_tree())
    };
    assert_eq!([2, 4, 8].map(|count| bytes(256 << 20, count)), [64 << 20, 32 << 20, 16 << 20]);
    for (limit, count) in [(100_000_000, 3), (1 << 20, 4), (64 << 20, 100)] {
        assert!(bytes(limit, count) * count as u64 <= limit / 4 * 3);
    }
}

/// Each is taken, or is an error that names the option; none panics.
#[test]
fn options_at_their_extremes_are_taken_or_refused() {
    let base = || Options::default().env(Env::memory(1)).memory_limit(4 << 20).write_buffer(64 << 10);
    type Change = fn(Options) -> Options;
    let cases: &[(&str, bool, Change)] = &[
        ("memory_limit", false, |options| options.memory_limit(0)),
        ("write_buffer", false, |options| options.write_buffer(u64::MAX)),
        ("write_buffer", false, |options| options.write_buffer(u64::MAX - 5000)),
        ("write_buffer", false, |options| options.write_buffer(0)),
        ("write_buffers", false, |options| options.write_buffers(usize::MAX)),
        ("write_buffers", false, |options| options.write_buffers(1 << 50)),
        ("write_buffers", false, |options| options.write_buffers(0)),
        ("resident_percent", false, |options| options.resident_percent(0)),
        ("resident_percent", false, |options| options.resident_percent(61)),
        ("resident_percent", false, |options| options.resident_percent(3)),
        ("resident_percent", false, |options| options.resident_percent(60).write_buffer(1 << 20)),
        ("resident_percent", true, |options| options.resident_percent(60)),
        ("background_threads", false, |options| options.background_threads(0)),
        ("background_threads", false, |options| options.background_threads(65)),
        ("background_threads", true, |options| options.background_threads(64)),
        ("sync_interval", false, |options| options.sync_interval(Duration::ZERO)),
        ("read_compaction_ratio", false, |options| options.read_compaction_ratio(f64::NAN)),
        ("read_compaction_ratio", false, |options| options.read_compaction_ratio(-1.0)),
        ("read_compaction_ratio", true, |options| options.read_compaction_ratio(f64::INFINITY)),
        ("keep_changes", true, |options| options.keep_changes(u64::MAX)),
        ("memory_limit", true, |options| options.memory_limit(u64::MAX)),
    ];
    for (name, taken, change) in cases {
        let opened = Database::open("/db", change(base()));
        match opened {
            Ok(db) => {
                assert!(taken, "{name}");
                let table = db.table("t").open().unwrap();
                (0..500u32).for_each(|n| table.put(n.to_be_bytes(), b"value").unwrap());
                db.flush().unwrap();
                table.compact().unwrap();
                assert_eq!(table.get(7u32.to_be_bytes()).unwrap().as_deref(), Some(&b"value"[..]));
                db.wait_until_idle().unwrap();
            }
            Err(Error::Invalid(why)) => assert!(!taken && why.contains(name), "{name}: {why}"),
            Err(other) => panic!("{name}: {other}"),
        }
    }
}

/// Lengths of time of a table: at their extremes they are taken, or refused with their names.
#[test]
fn times_of_a_table_may_be_for_ever() {
    let env = Env::memory(1);
    let db = Database::open("/db", Options::default().memory_limit(1 << 20).env(env.clone())).unwrap();
    let times = [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(u64::MAX), Duration::MAX];
    for (number, time) in times.into_iter().enumerate() {
        for (kind, table) in [("l", 0), ("r", 1)] {
            let builder = db.table(&format!("{kind}{number}"));
            let opened = match table {
                0 => builder.time_to_live(time).open(),
                _ => builder.reclaim_interval(time).open(),
            };
            let Ok(table) = opened else { continue };
            table.put(b"k", b"v").unwrap();
            let _ = table.put_with_ttl(b"k", b"v", Duration::MAX);
            env.jobs.advance(Duration::from_secs(5));
            env.jobs.step_some(100);
            table.compact().unwrap();
        }
    }
    db.close().unwrap();
}

const CHILD: &str = "FOREBAY_TEST_RELATIVE";

/// A database that was opened by a relative path looked for its files in whatever was the working directory by then.
/// In a process of its own, since there is only one such directory.
#[test]
fn a_relative_path_stays_what_it_was() {
    if let Some(dir) = std::env::var_os(CHILD) {
        std::env::set_current_dir(dir).unwrap();
        let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10);
        let db = Database::open("db", options).unwrap();
        let table = db.table("t").open().unwrap();
        std::env::set_current_dir("/").unwrap();
        (0..500u32).for_each(|n| table.put(n.to_be_bytes(), [1; 100]).unwrap());
        db.flush().unwrap();
        table.compact().unwrap();
        drop(table);
        return db.close().unwrap();
    }
    let dir = std::env::temp_dir().join(format!("forebay-relative-{}", std::process::id()));
    let env = Env::real();
    env.fs.create_dir_all(&dir).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "options::a_relative_path_stays_what_it_was", "--nocapture"])
        .env(CHILD, &dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}");
    let db = Database::open(dir.join("db"), Options::default()).unwrap();
    assert_eq!(db.table("t").open().unwrap().iter().unwrap().count(), 500);
    drop(db);
    Database::destroy(dir.join("db")).unwrap();
    env.fs.remove_dir(&dir).unwrap();
}
