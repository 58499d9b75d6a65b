//! Databases as a build of some format wrote them, which every later build must open.
//!
//! [`write()`] makes two of them, always with the same bytes for the same build: one that was closed, and one as a crash
//! of the process leaves it. They are kept under `crates/forebay/tests/golden`, a folder for each format. [`check`] is
//! what any build must find in either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay::encryption::{KEY_BYTES, Key, OneKey};
use forebay::{Batch, Codec, Database, Durability, Layout, Options, PrefixFilter, Result};
use forebay_aggregate::functions::Count;
use forebay_env::Env;
use forebay_env::fs::MemoryFs;

use crate::{Suffix, ordered_layouts};

const DIR: &str = "/golden";
const KEYS: u32 = 240;
/// What a later build adds.
const LATER: &[u8] = b"key-later";
/// Of trees with values in value files: from the third format on.
const APART: &str = "apart";
const APART_KEYS: u32 = 60;
/// Of entries that expire, into which operands are merged: from the fifth format on.
const LIVES: &str = "lives";
/// Of filters that know key prefixes: from the sixth format on.
const PREFIXED: &str = "prefixed";
/// That of the layouts that is written now, besides the others of this file; earlier formats have all that there were.
const WRITTEN: &str = "leveling:t=3";

/// Whether they are encrypted, by a key of 32 bytes that are seven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// They are not.
    Plain,
    /// They are.
    Encrypted,
}

fn options(env: &Env, files: Files) -> Options {
    let options = Options::default().memory_limit(1 << 20).write_buffer(64 << 10).keep_changes(64 << 10);
    let options = options.env(env.clone());
    match files {
        Files::Plain => options,
        Files::Encrypted => options.encryption(Arc::new(OneKey::new("golden", Key::new([7; KEY_BYTES])))),
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("key-{number:03}").into_bytes()
}

fn value(number: u32, round: u32) -> Vec<u8> {
    format!("value {number} of round {round}").into_bytes()
}

fn long_value(number: u32, round: u32) -> Vec<u8> {
    value(number, round).repeat(40)
}

/// The name of a layout's table: what the layout was called when the first of these databases were written.
fn table_name(layout: &Layout) -> String {
    layout.to_string().replace("wb-tree", "write-buffer")
}

/// Writes the records: two rounds, the first of which is in files; between them a savepoint.
fn fill(db: &Database, files: Files) -> Result<()> {
    let plain = db.table("hashed").layout(Layout::wb_tree()).codec(Codec::Lz4).open()?;
    let lives = db.table(LIVES).merge_rule(Suffix).time_to_live(Duration::MAX).open()?;
    let suffixes = db.table("suffixes").merge_rule(Suffix).open()?;
    let hits = db.aggregator("hits", Count).open()?;
    let layout: Layout = WRITTEN.parse()?;
    let ordered = db.table(&table_name(&layout)).layout(layout).open_ordered()?;
    let apart = db.table(APART).layout("jungle".parse()?);
    let apart = match files {
        Files::Plain => apart.values_apart(100).open_ordered()?,
        Files::Encrypted => apart.open_ordered()?,
    };
    let prefixed = db.table(PREFIXED).prefix_filter(PrefixFilter::Bytes(6)).open_ordered()?;
    for round in 0..2 {
        for number in (0..KEYS).filter(|number| round == 0 || number.is_multiple_of(3)) {
            let (key, value) = (key(number), value(number, round));
            let mut batch = Batch::new();
            batch.put(&plain, &key, &value);
            batch.merge(&suffixes, &key, &value);
            batch.merge(&lives, &key, &value);
            batch.add(&hits, &key, ());
            batch.put(&ordered, &key, &value);
            batch.put(&prefixed, &key, &value);
            hits.commit(batch, Durability::Os, number.to_le_bytes())?;
        }
        if round == 0 && files == Files::Encrypted {
            // Some of it is encrypted by another data key.
            db.renew_data_key()?;
        }
        if round == 0 {
            // By themselves: a segment stays for its values where they are most of it.
            db.flush()?;
        }
        for number in (0..APART_KEYS).filter(|number| round == 0 || number.is_multiple_of(3)) {
            apart.put(key(number), long_value(number, round))?;
        }
        if round == 0 {
            db.flush()?;
            // What this layout keeps in memory, savepoints cannot hold.
            for table in [&ordered, &apart] {
                table.compact()?;
            }
            db.savepoint("monday")?;
        }
    }
    ordered.delete_range(&key(10)[..]..&key(20)[..])?;
    ordered.delete(key(30))?;
    plain.delete(key(30))?;
    db.sync()
}

/// What the tables must hold: all of them, or those that lost a range.
fn expected(loses_range: bool) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let is_there = |number: &u32| *number != 30 && !(loses_range && (10..20).contains(number));
    (0..KEYS).filter(is_there).map(|number| (key(number), value(number, last_round(number)))).collect()
}

/// The same where nothing was deleted.
fn expected_all() -> BTreeMap<Vec<u8>, Vec<u8>> {
    (0..KEYS).map(|number| (key(number), value(number, last_round(number)))).collect()
}

fn last_round(number: u32) -> u32 {
    u32::from(number.is_multiple_of(3))
}

/// The files of both databases, by path: `closed/…` and `crashed/…`.
pub fn write(form: Files) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 1);
    let db = Database::open(DIR, options(&env, form))?;
    fill(&db, form)?;
    let mut files = under("crashed", &fs);
    db.close()?;
    files.append(&mut under("closed", &fs));
    Ok(files)
}

fn under(name: &str, fs: &MemoryFs) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs.snapshot_files().into_iter();
    files
        .filter_map(|(path, bytes)| Some((Path::new(name).join(path.strip_prefix(DIR).ok()?), bytes)))
        .collect()
}

/// Opens such a database from its files, reads all of it, writes to it, and opens it again.
pub fn check(files: &BTreeMap<PathBuf, Vec<u8>>, form: Files) -> Result<()> {
    let fs = MemoryFs::new();
    let env = Env::simulated(fs.clone(), 2);
    env.fs.create_dir_all(Path::new(DIR))?;
    for (path, bytes) in files {
        fs.replace_file(&Path::new(DIR).join(path), bytes.clone());
    }
    for round in 0..2 {
        let db = Database::open(DIR, options(&env, form).create_if_missing(false))?;
        let plain = db.table("hashed").open()?;
        check_table(plain.iter()?, &expected(false));
        let suffixes = db.table("suffixes").merge_rule(Suffix).open()?;
        let both = [value(0, 0), value(0, 1)].concat();
        assert_eq!(suffixes.get(key(0))?.as_ref(), Some(&both));
        let tables = db.describe().tables;
        let is_there = |name: &str| tables.iter().any(|table| table.name == name);
        if is_there(LIVES) {
            assert_eq!(db.table(LIVES).merge_rule(Suffix).open()?.get(key(0))?, Some(both));
        }
        let hits = db.aggregator("hits", Count).open()?;
        assert_eq!((hits.get(key(3))?, hits.get(key(4))?), (Some(2), Some(1)));
        assert_eq!(hits.metadata()?, Some((KEYS - 3).to_le_bytes().to_vec()));
        let monday = db.open_savepoint("monday")?;
        for layout in ordered_layouts().into_iter().filter(|layout| is_there(&table_name(layout))) {
            let table = db.table(&table_name(&layout)).open_ordered()?;
            check_table(table.iter()?, &expected(true));
            assert_eq!(monday.get(&table, key(12))?, Some(value(12, 0)), "{layout} as it was");
        }
        if is_there(PREFIXED) {
            let table = db.table(PREFIXED).prefix_filter(PrefixFilter::Bytes(6)).open_ordered()?;
            check_table(table.iter()?, &expected_all());
            let counts =
                ["key-11", "key-24", "key-1", "other"].map(|prefix| Ok(table.prefix(prefix)?.count()));
            let counts: Result<Vec<usize>> = counts.into_iter().collect();
            assert_eq!(counts?, [10, 0, 100, 0]);
        }
        if is_there(APART) {
            let table = db.table(APART).open_ordered()?;
            let expected =
                (0..APART_KEYS).map(|number| (key(number), long_value(number, last_round(number))));
            check_table(table.iter()?, &expected.collect());
            assert_eq!(monday.get(&table, key(12))?, Some(long_value(12, 0)));
        }
        let report = db.verify(&mut |_, _| ())?;
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert_eq!(plain.get(LATER)?.is_some(), round > 0);
        plain.put(LATER, b"by a later build")?;
        drop(monday);
        db.close()?;
    }
    Ok(())
}

fn check_table(scan: forebay::Scan, expected: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let found: Result<BTreeMap<Vec<u8>, Vec<u8>>> = scan.collect();
    let mut found = found.expect("every record can be read");
    found.remove(LATER);
    assert!(found == *expected, "{} records; {} were written", found.len(), expected.len());
}
