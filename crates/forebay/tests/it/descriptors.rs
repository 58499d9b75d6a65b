//! How many files are open, and that few suffice.

use std::sync::Arc;
use std::time::Duration;

use forebay::{Database, Layout, Options};
use forebay_env::Env;
use forebay_env::fs::{FileSystem, LimitedFs, MemoryFs, TracedFs};

const TABLES: usize = 100;
/// What a process may have open, and what the database is told.
const PROCESS: usize = 64;
const KEPT: usize = 32;

fn options(fs: Arc<dyn FileSystem>) -> Options {
    Options::default().memory_limit(4 << 20).env(Env::simulated(fs, 1)).open_files_max(KEPT)
}

fn layout(number: usize) -> Layout {
    match number % 4 {
        0 => Layout::wb_tree(),
        1 => Layout::wb_tree_ordered(),
        2 => Layout::jungle(2.0),
        _ => Layout::leveling(4),
    }
}

#[test]
fn many_files_are_written_and_read_where_a_process_may_open_few() {
    let memory = MemoryFs::new();
    let limited = LimitedFs::new(Arc::<MemoryFs>::clone(&memory), PROCESS);
    let name = |number| format!("table {number}");
    let open = |fs| Database::open("/db", options(fs)).unwrap();
    let db = open(Arc::<LimitedFs>::clone(&limited));
    let tables: Vec<_> =
        (0..TABLES).map(|number| db.table(&name(number)).layout(layout(number)).open().unwrap()).collect();
    for round in 0..3u8 {
        for table in &tables {
            table.put([round], b"value").unwrap();
        }
        db.flush().unwrap();
    }
    let snapshot = db.snapshot();
    for table in &tables {
        table.delete([0]).unwrap();
        table.compact().unwrap();
        // What is not synced of the log stays open, and the clock does not move.
        db.sync().unwrap();
    }
    let present =
        |table: &forebay::Table| (0..3u8).filter(|key| table.get([*key]).unwrap().is_some()).count();
    assert!(tables.iter().all(|table| present(table) == 2));
    for (number, table) in tables.iter().enumerate() {
        let seen = snapshot.get(table, [0]).unwrap();
        assert_eq!(
            seen.as_deref(),
            Some(&b"value"[..]),
            "what a snapshot holds is read again, too: table {number}"
        );
    }
    drop(snapshot);
    assert!(db.verify(&mut |_, _| {}).unwrap().problems.is_empty());
    drop(tables);
    db.close().unwrap();
    // The lock, the directory and what is locked beside what is kept.
    assert!(limited.open_files_most() <= KEPT + 3, "{} open", limited.open_files_most());
    assert_eq!(limited.open_files(), 0);

    let traced = TracedFs::new(limited);
    let db = open(Arc::<TracedFs>::clone(&traced));
    assert_eq!(
        traced.counts_of("list").opens + traced.counts_of("tree").opens,
        0,
        "none is opened before it is read"
    );
    for number in 0..TABLES {
        let table = db.table(&name(number)).layout(layout(number)).open().unwrap();
        assert_eq!(present(&table), 2);
    }
    assert!(traced.counts_of("list").opens + traced.counts_of("tree").opens > 0);
    db.close().unwrap();
}

#[test]
fn where_no_file_can_be_opened_the_error_says_so_and_passes() {
    let limited = LimitedFs::new(MemoryFs::new(), PROCESS);
    let db = Database::open("/db", options(Arc::<LimitedFs>::clone(&limited))).unwrap();
    let table = db.table("t").open().unwrap();
    table.put(b"key", b"value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = Database::open("/db", options(Arc::<LimitedFs>::clone(&limited))).unwrap();
    let table = db.table("t").open().unwrap();
    // Somebody else takes all that there is.
    let current = std::path::Path::new("/db/CURRENT");
    let mut taken = Vec::new();
    while let Ok(file) = limited.open_read(current, forebay_env::Access::Buffered) {
        taken.push(file);
    }
    let error = table.get(b"key").unwrap_err();
    assert!(error.is_too_many_files() && error.to_string().contains("32 (open_files_max)"), "{error}");
    drop(taken);
    assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    db.close().unwrap();
}

/// That took the last descriptor for a segment's file had none left to sync the directory by, and nothing could be
/// written until the database was opened again.
#[test]
fn a_lack_of_files_at_any_moment_stops_writing_for_as_long_as_it_lasts() {
    for left in 0..4 {
        let limited = LimitedFs::new(MemoryFs::new(), PROCESS);
        let env = Env::simulated(Arc::<LimitedFs>::clone(&limited), 1);
        let options = options(Arc::<LimitedFs>::clone(&limited)).write_buffer(16 << 10).env(env.clone());
        let db = Database::open("/db", options).unwrap();
        let table = db.table("t").open().unwrap();
        let current = std::path::Path::new("/db/CURRENT");
        let mut taken = Vec::new();
        while let Ok(file) = limited.open_read(current, forebay_env::Access::Buffered) {
            taken.push(file);
        }
        taken.truncate(taken.len() - left);
        let write = |from: u32| {
            let write = |number: u32| table.put(number.to_be_bytes(), [7; 100]);
            (from..from + 2000).try_for_each(write)
        };
        let failed = write(0).and_then(|()| db.flush()).and_then(|()| db.table("u").open().map(drop));
        drop(taken);
        env.jobs.advance(Duration::from_secs(1));
        env.jobs.step_some(100);
        write(10_000).unwrap_or_else(|error| panic!("{left} left, after {failed:?}: {error}"));
        db.flush().unwrap();
        db.close().unwrap();
    }
}

#[test]
fn too_few_files_are_refused() {
    let error = Database::open("/db", options(MemoryFs::new()).open_files_max(15)).unwrap_err();
    assert!(error.to_string().contains("open_files_max is 15"), "{error}");
}

#[test]
fn what_outlives_its_database_reads_files_that_the_next_one_removes() {
    let fs = MemoryFs::new();
    let open = || Database::open("/db", options(Arc::<MemoryFs>::clone(&fs))).unwrap();
    // Files of the one that is closed last are not opened before that.
    let db = open();
    let old = db.table("t").layout(Layout::leveling(4)).open().unwrap();
    old.put(b"key", b"value").unwrap();
    db.flush().unwrap();
    drop(old);
    db.close().unwrap();
    let db = open();
    let old = db.table("t").layout(Layout::leveling(4)).open().unwrap();
    let snapshot = db.snapshot();
    db.close().unwrap();
    let db = open();
    db.drop_table("t").unwrap();
    db.close().unwrap();
    let names = fs.list(std::path::Path::new("/db")).unwrap();
    assert!(!names.iter().any(|name| name.ends_with(".list")), "{names:?}");
    assert_eq!(snapshot.get(&old, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(old.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// Closing read every filter that there was, whatever the memory limit, for handles that might never be used again.
#[test]
fn closing_reads_nothing_for_those_who_may_read_on() {
    let traced = TracedFs::new(MemoryFs::new());
    let open = || Database::open("/db", options(Arc::<TracedFs>::clone(&traced))).unwrap();
    let db = open();
    for number in 0..20 {
        db.table(&format!("table {number}")).layout(layout(number)).open().unwrap().put(b"k", b"v").unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let db = open();
    let held = db.table("table 1").layout(layout(1)).open().unwrap();
    let reads = || ["list", "tree"].map(|kind| traced.counts_of(kind).read_bytes);
    let before = reads();
    db.close().unwrap();
    assert_eq!(reads(), before);
    let db = open();
    db.drop_table("table 1").unwrap();
    db.close().unwrap();
    assert_eq!(held.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    assert!(reads() != before);
}

/// A copy that went its own way has lists of the same names as its original. Put in that one's place under the open
/// database, and after it was closed, they were read for it.
#[test]
fn a_directory_that_is_swapped_under_open_handles_gives_no_wrong_answer() {
    const LISTS: u8 = 60;
    let fs = MemoryFs::new();
    let name = |number: u8| format!("table {number}");
    // More than pages are kept of in memory.
    let value = |of: &str| of.as_bytes().repeat(3000);
    let write = |db: &Database, of: &str| {
        for number in 0..LISTS {
            db.table(&name(number)).open().unwrap().put(b"key", value(of)).unwrap();
        }
        db.flush().unwrap();
    };
    let open = |dir: &str| {
        Database::open(dir, options(Arc::<MemoryFs>::clone(&fs)).memory_limit(1 << 20).open_files_max(16))
            .unwrap()
    };
    let db = open("/db");
    write(&db, "before");
    db.checkpoint("/copy").unwrap();
    let copy = open("/copy");
    write(&db, "original");
    write(&copy, "imposter");
    copy.close().unwrap();
    let tables: Vec<_> = (0..LISTS).map(|number| db.table(&name(number)).open().unwrap()).collect();
    let read = || tables.iter().map(|table| table.get(b"key")).collect::<Vec<_>>();
    read().into_iter().for_each(|read| assert!(read.unwrap().unwrap() == value("original")));
    let place = |name: &str, dir: &str| std::path::Path::new(dir).join(name);
    fs.create_dir_all("/away".as_ref()).unwrap();
    for name in fs.list("/db".as_ref()).unwrap().iter().filter(|name| name.ends_with(".list")) {
        if fs.exists(&place(name, "/copy")).unwrap() {
            fs.rename(&place(name, "/db"), &place(name, "/away")).unwrap();
            fs.hard_link(&place(name, "/copy"), &place(name, "/db")).unwrap();
        }
    }
    let mut db = Some(db);
    for is_closed in [false, true] {
        if is_closed {
            let _ = db.take().map(Database::close);
        }
        let (mut right, mut refused) = (0, 0);
        for read in read() {
            match read {
                Ok(read) => {
                    assert!(read.unwrap() == value("original"), "closed {is_closed}");
                    right += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("is another file than"), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 30, "closed {is_closed}: {right} right, {refused} refused");
    }
}
