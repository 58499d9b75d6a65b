//! Damage to a closed database: every byte of every file flipped, one at a time; files cut, deleted,
//! swapped. Opening, reading or verifying says so, with file and offset; no answer is ever wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay::{Codec, Database, Durability, Error, Layout, Result, Table};
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, Env, FileSystem};
use forebay_testkit::Suffix;

type Files = BTreeMap<String, Vec<u8>>;

const DIR: &str = "/db";
/// Opening for writing makes it anew, where it is damaged or gone.
const SPARE: &str = "FOREBAY.spare";
const KEYS: u32 = 90;

fn key(number: u32) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

fn value(number: u32, round: u32) -> Vec<u8> {
    format!("value {round} of {number}").into_bytes()
}

fn env_of(files: &Files) -> Env {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    for (name, bytes) in files {
        fs.create(&Path::new(DIR).join(name), Access::Buffered).unwrap().write_at(0, bytes).unwrap();
    }
    Env::simulated(fs, 5)
}

fn files_of(fs: &dyn FileSystem) -> Files {
    let dir = Path::new(DIR);
    let read = |name: String| {
        let file = fs.open_read(&dir.join(&name), Access::Buffered).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        (name, bytes)
    };
    fs.list(dir).unwrap().into_iter().map(read).collect()
}

fn options(env: &Env) -> forebay::Options {
    forebay::Options::default().memory_limit(1 << 20).write_buffer(4 << 10).env(env.clone())
}

fn tables(db: &Database) -> Result<[Table; 2]> {
    let ordered = db.table("ordered").layout(Layout::wb_tree_ordered()).codec(Codec::Lz4);
    Ok([db.table("hashed").layout(Layout::wb_tree()).open()?, ordered.merge_rule(Suffix).open()?])
}

/// A closed database with every kind of file: lists of both orders, a sealed and an active log segment.
fn sample() -> Files {
    let env = Env::memory(5);
    let db = Database::open(DIR, options(&env)).unwrap();
    let tables = tables(&db).unwrap();
    for number in 0..KEYS {
        for table in &tables {
            table.put(key(number), value(number, 1)).unwrap();
        }
    }
    db.flush().unwrap();
    for number in (0..KEYS).step_by(2) {
        for table in &tables {
            let mut batch = forebay::Batch::new();
            match number % 6 {
                0 => batch.delete(table, key(number)),
                4 if table.name() == "ordered" => batch.merge(table, key(number), b", merged"),
                _ => batch.put(table, key(number), value(number, 2)),
            }
            db.commit(batch, Durability::Os).unwrap();
        }
    }
    drop(tables);
    db.close().unwrap();
    let files = files_of(&*env.fs);
    for kind in ["list", "log", "manifest"] {
        let count = files.keys().filter(|name| name.ends_with(kind)).count();
        assert!(count >= if kind == "manifest" { 1 } else { 2 }, "{count} files *.{kind}");
    }
    println!("{:?}", files.iter().map(|(name, bytes)| (name, bytes.len())).collect::<Vec<_>>());
    files
}

fn expected(table: &Table, number: u32) -> Option<Vec<u8>> {
    match number {
        _ if number.is_multiple_of(6) => None,
        _ if number % 6 == 4 && table.name() == "ordered" => {
            Some([&value(number, 1)[..], b", merged"].concat())
        }
        _ if number.is_multiple_of(2) => Some(value(number, 2)),
        _ => Some(value(number, 1)),
    }
}

/// What opening, reading everything and verifying had to complain of. Panics at a wrong answer.
fn complaints_of(files: &Files, read_only: bool) -> Vec<String> {
    let env = env_of(files);
    let options = if read_only { options(&env).read_only(true) } else { options(&env) };
    let mut complaints = Vec::new();
    let mut note = |error: Error| complaints.push(error.to_string());
    let opened = Database::open(DIR, options).and_then(|db| Ok((tables(&db)?, db)));
    match opened {
        Err(error) => note(error),
        Ok((tables, db)) => {
            for table in &tables {
                for number in 0..KEYS {
                    match table.get(key(number)) {
                        Ok(found) => assert_eq!(found, expected(table, number), "a wrong answer"),
                        Err(error) => note(error),
                    }
                }
                match table.iter().and_then(|scan| scan.collect::<Result<Vec<_>>>()) {
                    Ok(mut entries) => {
                        entries.sort();
                        let wanted =
                            (0..KEYS).filter_map(|number| Some((key(number), expected(table, number)?)));
                        assert!(entries.into_iter().eq(wanted), "a wrong scan");
                    }
                    Err(error) => note(error),
                }
            }
            match db.verify(&mut |_, _| ()) {
                Ok(report) => complaints.extend(report.problems),
                Err(error) => note(error),
            }
        }
    }
    complaints
}

/// The damage to `name` must be seen, and named.
fn assert_seen(files: &Files, name: &str, what: &str) {
    for &read_only in ways(name) {
        let complaints = complaints_of(files, read_only);
        assert!(!complaints.is_empty(), "{what} was not noticed (read-only: {read_only})");
        let named = complaints.iter().any(|text| text.contains(name) && text.contains("offset"));
        assert!(named, "{what}: {complaints:?} do not name file and offset");
    }
}

/// How a database is opened to see damage to a file: for reading only, or not.
fn ways(name: &str) -> &'static [bool] {
    if name == SPARE { &[true] } else { &[true, false] }
}

fn flip_every_byte(of: impl Fn(&str) -> bool) {
    let intact = sample();
    assert_eq!(complaints_of(&intact, true), Vec::<String>::new());
    assert_eq!(complaints_of(&intact, false), Vec::<String>::new());
    let mut files = intact.clone();
    for (name, bytes) in intact.iter().filter(|(name, _)| of(name)) {
        for at in 0..bytes.len() {
            files.get_mut(name).unwrap()[at] ^= 0xff;
            assert_seen(&files, name, &format!("byte {at} of {} in {name}", bytes.len()));
            files.get_mut(name).unwrap()[at] ^= 0xff;
        }
    }
}

#[test]
fn every_flipped_byte_of_a_list_is_seen() {
    flip_every_byte(|name| name.ends_with(".list"));
}

#[test]
fn every_flipped_byte_of_any_other_file_is_seen() {
    flip_every_byte(|name| !name.ends_with(".list"));
}

/// Whatever is left, it is reported or harmless.
#[test]
fn cut_and_lengthened_files_are_seen_or_harmless() {
    let intact = sample();
    for (name, bytes) in intact.iter().filter(|(name, _)| *name != "LOCK") {
        let mut lengths: Vec<usize> = (0..bytes.len()).step_by(1 + bytes.len() / 150).collect();
        lengths.extend([bytes.len() - 1, bytes.len() - 4, bytes.len() - 8]);
        for length in lengths {
            let mut files = intact.clone();
            files.get_mut(name).unwrap().truncate(length);
            for &read_only in ways(name) {
                assert!(
                    !complaints_of(&files, read_only).is_empty(),
                    "{name} cut to {length} bytes was not noticed"
                );
            }
        }
        for more in [vec![0; 4096], vec![0x5a; 100]] {
            let mut files = intact.clone();
            files.get_mut(name).unwrap().extend(more);
            complaints_of(&files, true);
            complaints_of(&files, false);
        }
    }
}

#[test]
fn a_missing_file_is_seen_and_nothing_else_is_removed() {
    let intact = sample();
    for name in intact.keys().filter(|name| *name != "LOCK") {
        let mut files = intact.clone();
        files.remove(name);
        for read_only in [true, false] {
            let complaints = complaints_of(&files, read_only);
            assert!(
                !complaints.is_empty() || name == SPARE && !read_only,
                "{name} is missing, and nobody noticed"
            );
        }
        // Put back, all is there again: opening a database with a file missing must not tidy up the others.
        let env = env_of(&files);
        drop(Database::open(DIR, options(&env)));
        let mut left = files_of(&*env.fs);
        left.insert(name.clone(), intact[name].clone());
        assert_eq!(complaints_of(&left, false), Vec::<String>::new(), "without {name}, opening did harm");
    }
}

#[test]
fn swapped_files_and_pages_are_seen() {
    let intact = sample();
    let names: Vec<&String> = intact.keys().filter(|name| name.ends_with(".list")).collect();
    let logs: Vec<&String> = intact.keys().filter(|name| name.ends_with(".log")).collect();
    for (one, other) in [(names[0], names[1]), (logs[0], logs[1])] {
        let mut files = intact.clone();
        files.insert(one.clone(), intact[other].clone());
        files.insert(other.clone(), intact[one].clone());
        assert_seen(&files, one, &format!("{one} swapped with {other}"));
    }
    // The same page of another list, in its place.
    for block in 0..intact[names[0]].len().min(intact[names[1]].len()) / 4096 {
        let place = block * 4096..(block + 1) * 4096;
        let mut files = intact.clone();
        files.get_mut(names[0]).unwrap()[place.clone()].copy_from_slice(&intact[names[1]][place]);
        assert_seen(&files, names[0], &format!("block {block} of another list"));
    }
}

/// A database of a table `t` whose list has many pages, the third of them damaged, and that list's file.
fn with_a_damaged_page(layout: Layout, count: u32) -> (Database, PathBuf) {
    let env = Env::memory(5);
    {
        let db = Database::open(DIR, options(&env).memory_limit(4 << 20).write_buffer(1 << 20)).unwrap();
        let table = db.table("t").layout(layout).open().unwrap();
        (0..count).for_each(|number| table.put(number.to_be_bytes(), value(number, 1)).unwrap());
        db.flush().unwrap();
        drop(table);
        db.close().unwrap();
    }
    let mut files = files_of(&*env.fs);
    let list = files.keys().find(|name| name.ends_with(".list")).unwrap().clone();
    files.get_mut(&list).unwrap()[2 * 4096 + 100] ^= 1;
    let env = env_of(&files);
    let db = Database::open(DIR, options(&env).memory_limit(4 << 20).write_buffer(1 << 20)).unwrap();
    (db, PathBuf::from(DIR).join(list))
}

/// A file and an offset tell nobody whose data they are.
#[test]
fn damage_met_by_a_read_is_told_with_its_table_and_in_key_order_its_keys() {
    let keys: Vec<[u8; 4]> = (0..2000u32).map(u32::to_be_bytes).collect();
    for (layout, told) in [
        (Layout::wb_tree_ordered(), "table `t`, keys from \\x00\\x00\\x0"),
        (Layout::wb_tree(), "table `t`: the page"),
    ] {
        let (db, list) = with_a_damaged_page(layout, 2000);
        let table = db.table("t").open().unwrap();
        let errors = [
            keys.iter().find_map(|key| table.get(key).err()).unwrap(),
            table.multi_get(&keys).unwrap_err(),
            table.iter().unwrap().find_map(Result::err).unwrap(),
        ];
        for said in errors.map(|error| error.to_string()) {
            let begins = format!("corruption in {} at offset ", list.display());
            assert!(said.starts_with(&begins) && said.contains("`forebay rescue`"), "{said}");
            assert!(said.contains(told), "{said}");
        }
    }
}

/// A list of many pages, one of them damaged: only its own keys answer with an error.
#[test]
fn a_damaged_page_leaves_the_other_keys_readable() {
    let count = 2000u32;
    let (db, list) = with_a_damaged_page(Layout::wb_tree_ordered(), count);
    let table = db.table("t").open().unwrap();
    let mut lost = 0;
    for number in 0..count {
        match table.get(number.to_be_bytes()) {
            Ok(found) => assert_eq!(found, Some(value(number, 1))),
            Err(Error::Corruption { file, offset, .. }) => {
                assert_eq!((&file, offset), (&list, 2 * 4096));
                lost += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!((10..400).contains(&lost), "{lost} keys of {count} are lost with one page");
}

/// Damage met by background work stops that work, and nothing else: writers once waited for it forever.
#[test]
fn writing_goes_on_over_a_damaged_list() {
    let mut files = sample();
    let lists: Vec<String> = files.keys().filter(|name| name.ends_with(".list")).cloned().collect();
    lists.iter().for_each(|list| files.get_mut(list).unwrap()[50] ^= 1);
    let env = env_of(&files);
    let db = Database::open(DIR, options(&env)).unwrap();
    let tables = tables(&db).unwrap();
    for number in 0..20_000u32 {
        tables[number as usize % 2].put(number.to_be_bytes(), value(number, 3)).unwrap();
    }
    db.flush().unwrap();
    for number in 0..20_000u32 {
        let found = tables[number as usize % 2].get(number.to_be_bytes());
        match found {
            Ok(found) => assert_eq!(found, Some(value(number, 3))),
            Err(error) => assert!(error.is_corruption(), "{error}"),
        }
    }
    assert!(tables[0].compact().is_err_and(|error| error.is_corruption()));
    assert!(!db.verify(&mut |_, _| ()).unwrap().problems.is_empty());
}

/// The range could not be read, so its deletion could not be flushed: nor could anything after it, of any table, also
/// after opening again.
#[test]
fn a_range_that_is_deleted_over_a_damaged_page_stops_no_table() {
    for at in [0.5, 0.999] {
        let env = Env::memory(7);
        let open_table = |db: &Database| {
            db.table("t").layout(Layout::wb_tree_ordered()).node_bytes(1 << 20).open_ordered()
        };
        let db = Database::open(DIR, options(&env)).unwrap();
        let table = open_table(&db).unwrap();
        (0..600).for_each(|number| table.put(key(number), [number as u8; 100]).unwrap());
        table.compact().unwrap();
        drop(table);
        db.close().unwrap();
        let names = env.fs.list(Path::new(DIR)).unwrap();
        let list = Path::new(DIR).join(names.iter().find(|name| name.ends_with(".list")).unwrap());
        let file = env.fs.open(&list, Access::Buffered).unwrap();
        let (mut byte, place) = ([0], (file.len().unwrap() as f64 * at) as u64);
        file.read_at(place, &mut byte).unwrap();
        file.write_at(place, &[byte[0] ^ 1]).unwrap();
        for _ in 0..2 {
            let db = Database::open(DIR, options(&env)).unwrap();
            let (table, other) = (open_table(&db).unwrap(), db.table("other").open().unwrap());
            table.delete_range(&key(100)[..]..&key(500)[..]).unwrap();
            for number in 0..10 * KEYS {
                other.put(key(number), [3; 100]).unwrap();
            }
            db.flush().unwrap();
            let found: Vec<_> = (0..600).map(|number| table.get(key(number))).collect();
            let damaged = found.iter().filter(|found| found.is_err()).count();
            assert!(if at < 0.9 { damaged < 100 } else { damaged == 600 }, "{damaged} of 600");
            for (number, found) in found.into_iter().enumerate().filter(|(_, found)| found.is_ok()) {
                assert_eq!(found.unwrap().is_none(), (100..500).contains(&number), "{number}");
            }
            assert!(table.compact().unwrap_err().is_corruption());
            drop((table, other));
            db.close().unwrap();
        }
    }
}

/// It was called missing until the database was opened again.
#[test]
fn a_list_that_is_brought_back_is_read() {
    let env = Env::memory(5);
    let db = Database::open(DIR, options(&env)).unwrap();
    db.table("t").open().unwrap().put(b"key", b"value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let names = env.fs.list(Path::new(DIR)).unwrap();
    let list = Path::new(DIR).join(names.iter().find(|name| name.ends_with(".list")).unwrap());
    let db = Database::open(DIR, options(&env)).unwrap();
    let table = db.table("t").open().unwrap();
    env.fs.rename(&list, Path::new("/aside")).unwrap();
    for told in [table.get(b"key").unwrap_err(), table.compact().unwrap_err()] {
        assert!(told.is_corruption() && told.to_string().contains("missing"), "{told}");
    }
    env.fs.rename(Path::new("/aside"), &list).unwrap();
    assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    table.compact().unwrap();
}
