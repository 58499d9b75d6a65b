//! The examples of `docs/format`, against the engine: it writes these bytes, and a database that is made of them alone
//! holds their records.
//!
//! A test that fails prints what is written now. Where that is meant to change, so do the document and the golden
//! databases.

mod document;
mod encrypted;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay::{Database, Layout, Options, Table};
use forebay_env::fs::MemoryFs;
use forebay_env::{Env, FileSystem};

use document::{examples, print};

const DIR: &str = "/db";
const BUFFER_BYTES: usize = 128 << 10;
const LIST_BYTES: usize = 12 << 10;
/// The manifest's bytes once the table is made.
const TABLE_MADE: usize = 0x45;

/// An environment whose random numbers are the database's id, this seed of hashes, and the log's secret.
fn env(fs: &Arc<MemoryFs>, hash_seed: u64) -> Env {
    let drawn = AtomicUsize::new(0);
    let numbers = [0x393e_caf8_1146_4711, hash_seed, 0x5f1d_36f8_a0c4_4e27];
    let entropy = move || numbers[drawn.fetch_add(1, Ordering::Relaxed)];
    Env { entropy: Arc::new(entropy), ..Env::simulated(fs.clone(), 1) }
}

fn open(env: Env) -> Database {
    let options = Options::default().memory_limit(1 << 20).write_buffer(BUFFER_BYTES as u64).env(env);
    Database::open(DIR, options).unwrap()
}

fn put(table: &Table, records: &[(&str, &str)]) {
    records.iter().for_each(|(key, value)| table.put(key.as_bytes(), value.as_bytes()).unwrap());
}

/// The examples' files as a process leaves them that is killed after two records, and those of the closed database.
fn write() -> [Arc<MemoryFs>; 2] {
    let fs = MemoryFs::new();
    let db = open(env(&fs, 0x6291_c986_744d_e256));
    let people = db.table("people").layout(Layout::wb_tree_ordered()).node_bytes(128 << 10).open().unwrap();
    put(&people, &[("ada", "1815"), ("alan", "1912")]);
    let killed = fs.deep_clone();
    put(&people, &[("ada", "1816")]);
    db.flush().unwrap();
    people.compact().unwrap();
    drop(people);
    db.close().unwrap();
    [killed, fs]
}

/// Compares a file with an example, behind which all is zeros up to this length.
fn assert_written(fs: &MemoryFs, name: &str, length: usize, example: &[u8]) {
    let mut expected = example.to_vec();
    expected.resize(length, 0);
    let written = &fs.snapshot_files()[&Path::new(DIR).join(name)];
    assert!(*written == expected, "{name} has {} bytes:\n{}", written.len(), print(written));
}

/// The records of the first table of a database that has these files and no others.
fn read(files: &[(&str, &[u8])]) -> Vec<(String, String)> {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    files.iter().for_each(|(name, bytes)| fs.replace_file(&Path::new(DIR).join(name), bytes.to_vec()));
    let table = open(Env::simulated(fs, 1)).table("people").open().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let entries = table.iter().unwrap().map(Result::unwrap);
    entries.map(|(key, value)| (text(key), text(value))).collect()
}

fn people(records: &[(&str, &str)]) -> Vec<(String, String)> {
    records.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

#[test]
fn the_examples_are_what_is_written_and_can_be_read() {
    let [superblock, log, manifest] =
        ["superblock.md", "log.md", "manifest.md"].map(|document| examples(document).remove(0));
    let [current, closed_current] = examples("current.md").try_into().unwrap();
    let mut list = examples("list_file.md").remove(0);

    let [killed, closed] = write();
    assert_written(&killed, "FOREBAY", superblock.len(), &superblock);
    assert_written(&killed, "FOREBAY.spare", superblock.len(), &superblock);
    assert_written(&killed, "CURRENT", current.len(), &current);
    assert_written(&killed, "00000002.log", BUFFER_BYTES, &log);
    assert_written(&closed, "CURRENT", closed_current.len(), &closed_current);
    assert_written(&closed, "00000001.manifest", manifest.len(), &manifest);
    assert_written(&closed, "00000006.list", LIST_BYTES, &list);

    let made = [
        ("FOREBAY", &superblock[..]),
        ("CURRENT", &current),
        ("00000001.manifest", &manifest[..TABLE_MADE]),
        ("00000002.log", &log),
    ];
    assert_eq!(read(&made), people(&[("ada", "1815"), ("alan", "1912")]));
    list.resize(LIST_BYTES, 0);
    let made = [
        ("FOREBAY", &superblock[..]),
        ("CURRENT", &closed_current),
        ("00000001.manifest", &manifest),
        ("00000006.list", &list),
    ];
    assert_eq!(read(&made), people(&[("ada", "1816"), ("alan", "1912")]));
}

#[test]
fn the_list_in_hash_order_is_what_is_written_and_can_be_read() {
    let fs = MemoryFs::new();
    let records = [("ada", "1815"), ("kay", "1921"), ("mae", "1920")];
    let db = open(env(&fs, 0x45ee_44f8_8e09_4d15));
    let table = db.table("people").filter_bits_per_key(12).open().unwrap();
    put(&table, &records);
    table.compact().unwrap();
    drop(table);
    db.close().unwrap();
    assert_written(&fs, "00000006.list", LIST_BYTES, &examples("list_file.md")[1]);
    let files = fs.snapshot_files();
    let files: Vec<_> =
        files.iter().map(|(path, bytes)| (path.file_name().unwrap().to_str().unwrap(), &bytes[..])).collect();
    let [ada, kay, mae] = records;
    assert_eq!(read(&files), people(&[mae, ada, kay]), "in the order of their hashes");
}
