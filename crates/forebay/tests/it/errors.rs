//! Wrong calls and foreign files: one clear error each, which says what to do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::aggregate::functions::Count;
use forebay::{Batch, Database, Dumped, DumpedEntry, Durability, Error, Layout, Options, Rescue, limits};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Access, Env, FileSystem};

fn options(env: &Env) -> Options {
    Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(env.clone())
}

/// The error's text must say all of this.
#[track_caller]
fn assert_says<T>(outcome: forebay::Result<T>, words: &[&str]) -> Error {
    let error = outcome.err().expect("an error");
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text} is more than one line");
    words.iter().for_each(|word| assert!(text.contains(word), "`{text}` does not say `{word}`"));
    error
}

fn write(env: &Env, path: &str, bytes: &[u8]) {
    let path = Path::new(path);
    env.fs.create_dir_all(path.parent().unwrap()).unwrap();
    env.fs.create(path, Access::Buffered).unwrap().write_at(0, bytes).unwrap();
}

fn read(env: &Env, path: &str) -> Vec<u8> {
    let file = env.fs.open_read(Path::new(path), Access::Buffered).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_directory_that_is_no_database_is_left_alone() {
    let env = Env::memory(1);
    write(&env, "/letters/letter.txt", b"dear");
    let error =
        assert_says(Database::open("/letters", options(&env)), &["/letters", "not a forebay database"]);
    assert!(matches!(error, Error::NotFound(_)));
    assert_eq!(env.fs.list(Path::new("/letters")).unwrap(), ["letter.txt"]);
    assert_says(Database::open("/none", options(&env).create_if_missing(false)), &["/none", "no database"]);
    assert_says(Database::open("/none", options(&env).read_only(true)), &["/none", "no database"]);
    assert!(!env.fs.exists(Path::new("/none")).unwrap());
}

/// A missing superblock once made a new database over the old one.
#[test]
fn a_database_without_its_superblock_is_not_made_anew() {
    let env = Env::memory(1);
    Database::open("/db", options(&env)).unwrap().close().unwrap();
    let before = env.fs.list(Path::new("/db")).unwrap();
    env.fs.remove(Path::new("/db/FOREBAY")).unwrap();
    let error = assert_says(Database::open("/db", options(&env)), &["/db/FOREBAY", "missing"]);
    assert!(error.is_corruption());
    assert_eq!(env.fs.list(Path::new("/db")).unwrap().len(), before.len() - 1);
}

#[test]
fn a_newer_format_is_named_with_its_version() {
    for (file, version_at) in [("FOREBAY", 12), ("CURRENT", 12)] {
        let env = Env::memory(1);
        Database::open("/db", options(&env)).unwrap().close().unwrap();
        let path = format!("/db/{file}");
        let mut bytes = read(&env, &path);
        bytes[version_at] = 9;
        let sum = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        write(&env, &path, &bytes);
        for options in [options(&env), options(&env).read_only(true)] {
            let error = assert_says(Database::open("/db", options), &[file, "version 9", "newer forebay"]);
            assert!(matches!(error, Error::NewerFormat { version: 9, .. }));
        }
        // What is new would pass for damage, and be left out.
        let rescued = Rescue::new(options(&env)).run("/db", "/rescued", &mut |_, _| ());
        assert!(matches!(rescued.unwrap_err(), Error::NewerFormat { version: 9, .. }));
        // Nor are manifests called damaged that only a newer build understands.
        let mut dumped = Vec::new();
        let mut see = |entry: Dumped| {
            dumped.push(entry);
            Ok(())
        };
        Database::dump_in(&env, Path::new("/db"), &mut see).unwrap();
        let newer = |entry: &Dumped| matches!(entry.entry, DumpedEntry::Newer { version: 9, .. });
        assert_eq!(
            dumped.iter().filter(|entry| newer(entry)).map(|entry| &*entry.file).collect::<Vec<_>>(),
            [file]
        );
        assert!(!dumped.iter().any(|entry| entry.file.ends_with(".manifest")), "{dumped:?}");
    }
}

/// The checksum of small files, worked out anew from its definition.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

#[test]
fn an_open_database_is_locked() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    let error = assert_says(Database::open("/db", options(&env)), &["/db", "open in another process"]);
    assert!(matches!(error, Error::Locked { .. }));
    // To be read it can be opened as often as one likes, beside who writes it, and keeps nobody from that.
    let one = Database::open("/db", options(&env).read_only(true)).unwrap();
    db.close().unwrap();
    let other = Database::open("/db", options(&env).read_only(true)).unwrap();
    Database::open("/db", options(&env)).unwrap();
    drop((one, other));
}

/// It named the process's own number, as if that were another.
#[test]
fn a_database_that_this_process_has_open_is_told_as_that() {
    let dir = std::env::temp_dir().join(format!("forebay-twice-{}", std::process::id()));
    let db = Database::open(&dir, Options::default().memory_limit(1 << 20)).unwrap();
    let number = std::process::id().to_string();
    assert_says(Database::open(&dir, Options::default()), &["LOCK", &number, "this one", "open already"]);
    db.take_back().unwrap();
}

/// That `FOREBAY` cannot be looked for below a file told nobody what to do.
#[test]
fn a_file_is_no_database() {
    let file = std::env::temp_dir().join(format!("forebay-file-{}", std::process::id()));
    let fs = Env::real().fs;
    fs.create(&file, Access::Buffered).unwrap().write_at(0, b"key,value\n").unwrap();
    let below = file.join("db");
    let is_a_file = ["is a file", "a database is a directory"];
    let shown = file.display().to_string();
    assert_says(Database::open(&file, Options::default()), &[&shown, is_a_file[0], is_a_file[1]]);
    assert_says(Database::open(&file, Options::default().read_only(true)), &is_a_file);
    assert_says(Database::destroy(&file), &is_a_file);
    assert_says(Database::dump(&file, &mut |_| Ok(())), &is_a_file);
    assert_says(Database::open(&below, Options::default()), &[&shown, "has a file among its directories"]);
    fs.remove(&file).unwrap();
    assert_says(Database::destroy(&file), &["there is no database at", &shown]);
    assert_says(Database::dump(&file, &mut |_| Ok(())), &["there is no database at", &shown]);
    assert_says(Database::dump("/", &mut |_| Ok(())), &["/ is not a forebay database"]);
}

#[test]
fn a_dropped_table_is_named_to_who_still_has_it() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    let before = db.snapshot();
    let table = db.table("gone").open().unwrap();
    db.drop_table("gone").unwrap();
    let after = db.snapshot();
    let own = assert_says(table.get(b"k"), &["table `gone` was dropped"]);
    assert!(own.is_not_found() && !own.to_string().contains("snapshot"), "{own}");
    assert_says(table.put(b"k", b"v"), &["table `gone` was dropped", "nothing of the batch"]);
    assert_says(table.set_layout(Layout::leveling(4)), &["table `gone` was dropped"]);
    assert_says(after.get(&table, b"k"), &["table `gone` was dropped before this snapshot"]);
    assert_says(before.get(&table, b"k"), &["or made after it"]);
}

#[test]
fn a_number_that_no_record_has_is_not_waited_for() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    assert_says(db.wait_durable(1), &["record 1 was never written", "number 0", "sync"]);
    db.table("t").open().unwrap().put(b"k", b"v").unwrap();
    db.wait_durable(1).unwrap();
    assert_eq!(db.durable_sequence(), 1);
    assert_says(db.wait_durable(2), &["record 2", "number 1"]);
    db.sync().unwrap();
}

#[test]
fn options_that_contradict_each_other_are_named() {
    let env = Env::memory(1);
    let open = |options: Options| Database::open("/db", options);
    assert_says(open(options(&env).memory_limit(1000)), &["memory_limit", "1000"]);
    assert_says(open(options(&env).write_buffer(1 << 20)), &["write_buffer", "memory_limit"]);
    assert_says(open(options(&env).write_buffer(0)), &["write_buffer", "between"]);
    assert_says(open(options(&env).write_buffers(1)), &["write_buffers", "at least 2"]);
    assert_says(
        open(options(&env).read_only(true).create_if_missing(true)),
        &["read_only", "create_if_missing"],
    );
    assert!(!env.fs.exists(Path::new("/db")).unwrap(), "a refused call left something behind");
    let db = open(options(&env)).unwrap();
    assert_says(db.table("t").node_bytes(0).open(), &["node_bytes"]);
    assert_says(db.table("t").fan_out(1).open(), &["fan_out"]);
    assert_says(db.table("t").lists_max(0).open(), &["lists_max"]);
    assert_says(db.table("t").repeats_max(1.0).open(), &["repeats_max"]);
    assert_says(db.table("t").filter_bits_per_key(1000).open(), &["filter_bits_per_key"]);
    let lives = |ttl| db.table("lives").time_to_live(ttl);
    assert_says(
        lives(Duration::from_micros(1500)).open(),
        &["table `lives`", "time_to_live is 1.5ms", "whole"],
    );
    assert_says(
        db.aggregator("lives", Count).time_to_live(Duration::from_secs(1)).open(),
        &["table `lives`", "aggregation rule `count/1`", "time_to_live", "windows"],
    );
    assert_says(db.table("").open(), &["name"]);
    assert_says(db.table(&"x".repeat(256)).open(), &["name", "256"]);
    assert_eq!(db.tables(), []);
}

#[test]
fn a_table_keeps_its_options() {
    let env = Env::memory(1);
    {
        let db = Database::open("/db", options(&env)).unwrap();
        db.table("t").layout(Layout::wb_tree()).node_bytes(5000).fan_out(7).open().unwrap();
        db.close().unwrap();
    }
    let db = Database::open("/db", options(&env)).unwrap();
    assert_says(db.table("t").layout(Layout::wb_tree_ordered()).open(), &["`t`", "layout", "wb-tree"]);
    assert_says(db.table("t").open_ordered(), &["`t`", "keeps no order"]);
    assert_says(db.table("t").node_bytes(6000).open(), &["node_bytes 5000", "6000"]);
    assert_says(db.table("t").fan_out(8).open(), &["fan_out 7", "8"]);
    assert_says(db.table("u").existing(true).open(), &["`u`"]);
    db.table("t").node_bytes(5000).fan_out(7).open().unwrap();
}

#[test]
fn keys_and_values_have_limits_and_a_batch_with_one_too_long_writes_nothing() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    let longest = vec![1; limits::KEY_BYTES_MAX];
    table.put(&longest, b"v").unwrap();
    assert_eq!(table.get(&longest).unwrap().as_deref(), Some(&b"v"[..]));
    let too_long = vec![1; limits::KEY_BYTES_MAX + 1];
    assert_says(table.put(&too_long, b"v"), &["key has 65537 bytes; at most 65536 are allowed"]);
    assert_eq!(table.get(&too_long).unwrap(), None);
    assert_says(table.put(&too_long, b"v"), &["table `t`", "Table::key_bytes_max"]);
    assert_eq!(
        (table.key_bytes_max(), table.value_bytes_max()),
        (limits::KEY_BYTES_MAX, limits::VALUE_BYTES_MAX)
    );
    let brief = db.table("brief").time_to_live(Duration::MAX).open().unwrap();
    assert_eq!(brief.value_bytes_max(), limits::VALUE_BYTES_MAX - 8);
    for table in [&table, &brief] {
        let most = table.value_bytes_max();
        let said =
            format!("value has {} bytes; at most {most} are allowed in table `{}`", most + 1, table.name());
        assert_says(table.put(b"k", vec![0; most + 1]), &[&said[..], "Table::value_bytes_max"]);
    }
    assert_eq!(Batch::bytes_max(), limits::BATCH_BYTES_MAX);
    let mut batch = Batch::new();
    batch.put(&table, b"good", b"v");
    batch.put(&table, &too_long, b"v");
    batch.put(&table, b"better", b"v");
    assert_says(db.commit(batch, Durability::Disk), &["key"]);
    assert_eq!((table.get(b"good").unwrap(), table.get(b"better").unwrap()), (None, None));
}

#[test]
fn a_database_open_for_reading_refuses_writes() {
    let env = Env::memory(1);
    {
        let db = Database::open("/db", options(&env)).unwrap();
        db.table("t").open().unwrap().put(b"k", b"v").unwrap();
        db.close().unwrap();
    }
    let db = Database::open("/db", options(&env).read_only(true)).unwrap();
    let table = db.table("t").open().unwrap();
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    for outcome in [
        table.put(b"k", b"w"),
        table.delete(b"k"),
        table.compact(),
        db.flush(),
        db.sync(),
        db.drop_table("t"),
        db.table("other").open().map(drop),
    ] {
        assert_says(outcome, &["reading only"]);
    }
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_batch_is_for_one_database() {
    let env = Env::memory(1);
    let one = Database::open("/one", options(&env)).unwrap();
    let other = Database::open("/other", options(&env)).unwrap();
    let tables = [one.table("t").open().unwrap(), other.table("t").open().unwrap()];
    let mut batch = Batch::new();
    batch.put(&tables[0], b"k", b"v");
    assert_says(other.commit(batch.clone(), Durability::Os), &["another database"]);
    batch.put(&tables[1], b"k", b"v");
    assert_says(one.commit(batch, Durability::Os), &["two databases"]);
    assert_eq!((tables[0].get(b"k").unwrap(), tables[1].get(b"k").unwrap()), (None, None));
}

#[test]
fn a_table_outlives_its_database_for_reading() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    table.put(b"k", b"v").unwrap();
    let snapshot = db.snapshot();
    db.close().unwrap();
    assert_says(table.put(b"k", b"w"), &["closed"]);
    assert_says(table.compact(), &["closed"]);
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(snapshot.get(&table, b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_dropped_table_is_gone_but_for_snapshots() {
    let env = Env::memory(1);
    let db = Database::open("/db", options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    (0..2000u32).for_each(|number| table.put(number.to_le_bytes(), b"value").unwrap());
    db.flush().unwrap();
    let snapshot = db.snapshot();
    db.drop_table("t").unwrap();
    assert_says(table.get(b"k"), &["dropped"]);
    assert_says(db.drop_table("t"), &["`t`"]);
    assert_eq!(snapshot.iter(&table).unwrap().map(Result::unwrap).count(), 2000);
    // One of the same name is another table; what is still in the log of the first is not its own.
    let again = db.table("t").open().unwrap();
    assert_eq!(again.get(7u32.to_le_bytes()).unwrap(), None);
    drop((snapshot, table, again));
    db.close().unwrap();
    let db = Database::open("/db", options(&env)).unwrap();
    assert_eq!(db.table("t").open().unwrap().iter().unwrap().count(), 0);
    let fs: &Arc<dyn FileSystem> = &env.fs;
    assert!(fs.list(Path::new("/db")).unwrap().iter().all(|name| !name.ends_with(".list")));
}

#[test]
fn a_checkpoint_wants_a_directory_of_its_own() {
    let env = Env::simulated(MemoryFs::new(), 1);
    let db = Database::open("/db", options(&env)).unwrap();
    write(&env, "/taken/file", b"");
    assert_says(db.checkpoint("/taken"), &["/taken", "not empty"]);
    db.checkpoint("/free").unwrap();
    assert_says(db.checkpoint("/free"), &["/free", "not empty"]);
}

/// A copy that failed left files behind that could not be removed either, and the next try said no more than that the
/// directory was not empty.
#[test]
fn a_copy_that_cannot_be_cleared_away_says_so() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::simulated(fs.clone(), 1);
    let db = Database::open("/db", options(&env)).unwrap();
    db.table("t").open().unwrap().put(b"k", b"v").unwrap();
    db.flush().unwrap();
    fs.rule("create *.manifest #1 no-space").unwrap();
    fs.rule("remove *.list all io-error").unwrap();
    assert_says(db.checkpoint("/copy"), &["create", "/copy", "the unfinished copy is in", "remove it"]);
    fs.clear();
    assert_says(db.checkpoint("/copy"), &["/copy is not empty"]);
    db.checkpoint("/other").unwrap();
}

/// Tables are known by numbers, so a table of this database stood in for one of another.
#[test]
fn a_snapshot_is_not_asked_for_tables_of_another_database() {
    let env = Env::memory(1);
    let make = |path: &str, name: &str, value: &[u8]| {
        let db = Database::open(path, options(&env)).unwrap();
        let table = db.table(name).layout(Layout::leveling(4)).open_ordered().unwrap();
        table.put(b"k", value).unwrap();
        let hits = db.aggregator("hits", Count).open().unwrap();
        hits.add(b"k", ()).unwrap();
        (db, table, hits)
    };
    let (a, orders, hits) = make("/a", "orders", b"order");
    let (b, ..) = make("/b", "secrets", b"secret");
    let refused = |now: &forebay::Snapshot| {
        let words = &["another database"];
        assert_says(now.get(&orders, b"k"), words);
        assert_says(now.multi_get(&orders, &[b"k"]), words);
        assert_says(now.cursor(&orders), words);
        assert_says(now.first(&orders), words);
        assert_says(now.last(&orders), words);
        assert_says(now.nearest(&orders, b"k", forebay::Nearest::AtOrAbove), words);
        assert_says(now.iter(&orders), words);
        assert_says(now.range(&orders, ..), words);
        assert_says(now.prefix(&orders, b"k"), words);
        let hits = hits.at(now);
        assert_says(hits.get(b"k"), words);
        assert_says(hits.get_state(b"k"), words);
        assert_says(hits.multi_get(&[b"k"]), words);
        assert_says(hits.iter(), words);
        assert_says(hits.metadata(), words);
    };
    refused(&b.snapshot());
    let own = a.snapshot();
    assert_eq!(own.get(&orders, b"k").unwrap().as_deref(), Some(&b"order"[..]));
    assert_eq!(hits.at(&own).get(b"k").unwrap(), Some(1));
    // A handle of before, asked of what the directory is now.
    drop(own);
    a.close().unwrap();
    refused(&Database::open("/a", options(&env)).unwrap().snapshot());
}
