//! The order of file operations, which durability rests on: a list is whole and has its name before the
//! manifest says so, and what the manifest no longer names goes only after that is durable.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::{Batch, Database, Durability, Options};
use forebay_env::fs::{MemoryFs, TracedFs};
use forebay_env::{Access, Env, FileSystem, Jobs};

struct Traced {
    files: Arc<TracedFs>,
    jobs: Jobs,
    db: Database,
}

impl Traced {
    fn open() -> Self {
        let files = TracedFs::new(MemoryFs::new());
        files.start_log(Path::new("/dir/db"));
        let env = Env::simulated(Arc::clone(&files) as Arc<dyn FileSystem>, 3);
        let jobs = env.jobs.clone();
        let options = Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env);
        Self { files, jobs, db: Database::open("/dir/db", options).unwrap() }
    }

    /// What was done since the last call, without lengths.
    fn log(&self) -> Vec<String> {
        self.files.take_log().iter().map(|line| without_extent(line)).collect()
    }
}

/// `write 00000003.list 0+4096` as `write 00000003.list`.
fn without_extent(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["write" | "reserve" | "set_len", file, ..] => format!("{} {file}", words[0]),
        _ => line.to_owned(),
    }
}

#[test]
fn making_a_database_ends_with_its_superblock() {
    let traced = Traced::open();
    let log = traced.log();
    let expected = [
        "create_dir .",
        "sync_dir /dir",
        "sync_dir /",
        "create 00000001.manifest",
        "write 00000001.manifest",
        "sync 00000001.manifest",
        "sync_dir .",
        "create CURRENT.tmp",
        "write CURRENT.tmp",
        "sync CURRENT.tmp",
        "rename CURRENT.tmp CURRENT",
        "sync_dir .",
        "create FOREBAY.spare.tmp",
        "write FOREBAY.spare.tmp",
        "sync FOREBAY.spare.tmp",
        "rename FOREBAY.spare.tmp FOREBAY.spare",
        "sync_dir .",
        "create FOREBAY.tmp",
        "write FOREBAY.tmp",
        "sync FOREBAY.tmp",
        "rename FOREBAY.tmp FOREBAY",
        "sync_dir .",
    ];
    println!("{log:#?}");
    let wanted: Vec<&str> = expected.into_iter().filter(|line| !line.starts_with("create_dir")).collect();
    let seen: Vec<&String> = log.iter().filter(|line| !line.starts_with("create_dir")).collect();
    assert_eq!(seen[..wanted.len()], wanted);
}

#[test]
fn a_flush_syncs_the_list_and_its_name_before_the_manifest_names_it() {
    let traced = Traced::open();
    let table = traced.db.table("t").open().unwrap();
    traced.log();
    table.put(b"key", b"value").unwrap();
    assert_eq!(traced.log(), ["write 00000002.log"]);
    traced.db.flush().unwrap();
    let mut log = traced.log();
    assert!(log.iter().any(|line| line == "write 00000002.log"));
    // The background sync, and the next segment with its name, may come at any point.
    log.retain(|line| !line.ends_with(".log"));
    let position = |start: &str, end: &str| {
        let is_it = |line: &String| line.starts_with(start) && line.ends_with(end);
        log.iter().position(is_it).unwrap_or_else(|| panic!("no {start} {end} in {log:#?}"))
    };
    let (synced, named) = (position("sync ", ".list"), position("write ", ".manifest"));
    assert!(position("create ", ".list") < position("write ", ".list"));
    assert!(position("write ", ".list") < synced);
    assert!(log[synced..named].iter().any(|line| line == "sync_dir ."));
    assert!(named < position("sync ", ".manifest"));
}

/// An older build, to which edits that name value files are malformed, is told by `CURRENT` that they are new.
#[test]
fn current_has_its_new_version_before_the_manifest_names_a_value_file() {
    let traced = Traced::open();
    let version = || {
        let bytes = traced.files.open_read(Path::new("/dir/db/CURRENT"), Access::Buffered).unwrap();
        let mut version = [0; 4];
        bytes.read_at(12, &mut version).unwrap();
        u32::from_le_bytes(version)
    };
    let table = traced.db.table("t").values_apart(100).open().unwrap();
    for (key, bytes) in [(b"a", 10), (b"b", 2000), (b"c", 2000)] {
        table.put(key, vec![7; bytes]).unwrap();
        traced.log();
        let before = version();
        traced.db.flush().unwrap();
        let log = traced.log();
        let position = |start: &str, end: &str| {
            log.iter().position(|line| line.starts_with(start) && line.ends_with(end))
        };
        let told = position("rename ", "CURRENT");
        // At the first of them, and at no other.
        assert_eq!(
            (told.is_some(), before, version()),
            match key {
                b"a" => (false, 1, 1),
                b"b" => (true, 1, 2),
                _ => (false, 2, 2),
            }
        );
        if let Some(told) = told {
            assert_eq!(log[told + 1], "sync_dir .");
            assert!(Some(told + 1) < position("write ", ".manifest"), "{log:#?}");
        }
    }
    traced.db.checkpoint("/copy").unwrap();
    drop(table);
    traced.db.close().unwrap();
    assert_eq!(version(), 2);
}

#[test]
fn durable_writes_sync_and_others_do_not() {
    let traced = Traced::open();
    let table = traced.db.table("t").open().unwrap();
    let write = |durability| {
        traced.log();
        let mut batch = Batch::new();
        batch.put(&table, b"key", b"value");
        traced.db.commit(batch, durability).unwrap();
        traced.log()
    };
    assert_eq!(write(Durability::Memory), Vec::<String>::new());
    assert_eq!(write(Durability::Os), ["write 00000002.log"]);
    assert_eq!(write(Durability::Disk), ["write 00000002.log", "sync 00000002.log"]);
}

/// Over a longer script: every list the manifest may name was synced, and so was its name; no file goes
/// before an edit that drops it has been synced.
#[test]
fn nothing_is_named_before_it_is_durable_or_removed_before_it_is_dropped() {
    let traced = Traced::open();
    let table = traced.db.table("t").node_bytes(6 << 10).fan_out(3).open().unwrap();
    traced.log();
    for number in 0..3000u32 {
        table.put((number % 700).to_be_bytes(), number.to_le_bytes()).unwrap();
        if number % 50 == 0 {
            traced.jobs.advance(Duration::from_millis(100));
        }
    }
    table.compact().unwrap();
    let log = traced.log();
    let is = |line: &str, operation: &str, kind: &str| line.starts_with(operation) && line.ends_with(kind);
    let (mut unsynced, mut unnamed, mut removed) = (Vec::new(), Vec::new(), 0);
    let (mut manifest_written, mut manifest_synced, mut edits) = (false, false, 0);
    for line in &log {
        let file = line.split(' ').nth(1).unwrap_or_default();
        if is(line, "create ", ".list") {
            unsynced.push(file);
            unnamed.push(file);
        } else if is(line, "write ", ".list") {
            assert!(unsynced.contains(&file), "{file} is written after it was synced");
        } else if is(line, "sync ", ".list") {
            unsynced.retain(|other| *other != file);
        } else if line == "sync_dir ." {
            unnamed.clear();
        } else if is(line, "write ", ".manifest") && std::mem::take(&mut manifest_synced) {
            // What tells that the edit was durable: nobody waits for it.
        } else if is(line, "write ", ".manifest") {
            // Two machines make lists, so one may be unfinished; a list that is whole must be named.
            let whole: Vec<_> = unnamed.iter().filter(|file| !unsynced.contains(file)).collect();
            assert!(whole.len() <= 1, "{whole:?} may be named before their names are durable");
            (manifest_written, edits) = (true, edits + 1);
        } else if is(line, "sync ", ".manifest") {
            (manifest_written, manifest_synced) = (false, true);
        } else if is(line, "remove ", ".list") {
            assert!(!manifest_written, "{file} is removed before the manifest is synced");
            removed += 1;
        }
    }
    assert!(edits > 40 && removed > 5, "{edits} edits, {removed} files removed");
}
