//! The manifest with its edits, `CURRENT` and the superblock.

use std::path::Path;
use std::sync::Arc;

use forebay_base::Result;
use forebay_base::checksum::{checksum, plain};
use forebay_base::wire::u32_at;
use forebay_env::encryption::{NONCE_BYTES, WRAPPED_BYTES, WrappedKey, WrappedKeys};
use forebay_env::fs::MemoryFs;
use forebay_env::{FileSystem, Rng};
use forebay_store::list::{FileKind, FileMeta};
use forebay_store::log::frame::Secret;
use forebay_store::manifest::{
    Change, Current, Edit, Feed, KeyFile, Lineage, LogMark, Manifest, Rollback, Savepoint, Snapshot,
    Superblock, TableEntry,
};
use forebay_store::names;
use forebay_store::values::ValueShare;

use crate::damage::{DIR, assert_named, bytes_of, damage};
use crate::draws::{one_of, shown};

const ID: u64 = 3;
/// Checksum and length of an edit.
const HEADER_BYTES: usize = 8;

pub(crate) fn fuzz(rng: &mut Rng) {
    let (fs, dir) = (MemoryFs::new(), Path::new(DIR));
    fs.create_dir_all(dir).expect("memory takes it");
    fuzz_small_files(rng, &fs);
    let shown = shown(rng, &fs);
    let shown = &*shown;
    let mut edits: Vec<Edit> = (0..1 + rng.below(8)).map(|_| edit(rng)).collect();
    edits.insert(0, Edit::Snapshot(snapshot(rng)));
    let mut manifest = Manifest::create(shown, dir, ID, &edits[0], Arc::default()).expect("memory takes it");
    let mut append = |edit| manifest.announce(shown, dir, edit).and_then(|()| manifest.append(edit));
    edits[1..].iter().try_for_each(&mut append).expect("memory takes it");
    manifest.finish().expect("memory takes it");
    let open = manifest.current(None);
    let closed = Current { closed: Some(manifest.closed(7)), ..open };
    // What told that the last was durable.
    edits.push(Edit::Change(Change::default()));
    let path = names::manifest(dir, ID);
    let intact = bytes_of(&fs, &path);
    assert_eq!(read(shown, closed).expect("it is intact"), edits);
    for _ in 0..30 {
        let mut bytes = intact.clone();
        damage(rng, &mut bytes);
        let is_whole = bytes == intact;
        fs.replace_file(&path, bytes);
        check(read(shown, closed), |found| is_whole && *found == edits);
        // For all that is known, a crash has torn the last edit.
        check(read(shown, open), |found| edits.starts_with(found));
        check(Manifest::salvage(shown, dir, ID), |(found, _)| edits.starts_with(found));
    }
    for _ in 0..30 {
        fs.replace_file(&path, reseal(rng, &intact));
        if let Ok(found) = read(shown, open) {
            // What is read is written again when the manifest is.
            found.iter().for_each(|edit| edit.encode(&mut Vec::new()));
        }
        let _ = Manifest::salvage(shown, dir, ID);
    }
}

/// An answer must be right, or an error that names the damage.
fn check<T>(read: Result<T>, is_right: impl FnOnce(&T) -> bool) {
    match read {
        Ok(found) => assert!(is_right(&found), "damage gave a wrong answer"),
        Err(error) => assert_named(&error),
    }
}

fn read(fs: &dyn FileSystem, current: Current) -> Result<Vec<Edit>> {
    let (mut manifest, edits) = Manifest::open(fs, Path::new(DIR), &current, true, Arc::default())?;
    manifest.truncate_tail()?;
    manifest.renew()?;
    Ok(edits)
}

/// Damages an edit, makes its checksum match, and ends the file there.
fn reseal(rng: &mut Rng, intact: &[u8]) -> Vec<u8> {
    let mut starts = vec![0];
    while let Some(&at) = starts.last()
        && at < intact.len()
    {
        starts.push(at + HEADER_BYTES + u32_at(intact, at + 4) as usize);
    }
    let number = rng.index(starts.len() - 1);
    let (start, end) = (starts[number], starts[number + 1]);
    let mut edit = intact[start + HEADER_BYTES..end].to_vec();
    damage(rng, &mut edit);
    let mut record = (edit.len() as u32).to_le_bytes().to_vec();
    record.extend(edit);
    let sum = checksum(ID, start as u64, &record);
    [&intact[..start], &sum.to_le_bytes(), &record].concat()
}

fn fuzz_small_files(rng: &mut Rng, fs: &MemoryFs) {
    let dir = Path::new(DIR);
    let current = Current { manifest: rng.next_u64(), version: 1 + rng.below(2) as u32, closed: None };
    current.write(fs, dir).expect("memory takes it");
    let (database_id, hash_seed, log_secret) = (rng.next_u64(), rng.next_u64(), Secret(rng.below(2) * 77));
    let is_encrypted = log_secret != Secret::default() && rng.chance(30);
    let superblock = Superblock { database_id, hash_seed, log_secret, is_encrypted };
    superblock.write(fs, dir).expect("memory takes it");
    let wrapped = |number: u32| WrappedKey {
        number,
        name: "name ".repeat(number as usize),
        nonce: [number as u8; NONCE_BYTES],
        bytes: [7; WRAPPED_BYTES],
    };
    let vouched = if rng.chance(50) { superblock.encode() } else { Vec::new() };
    let wrapped = WrappedKeys { keys: (1..2 + rng.below(4) as u32).map(wrapped).collect(), vouched };
    let keys = KeyFile { wrapped };
    keys.write(fs, dir).expect("memory takes it");
    for name in [names::CURRENT, names::SUPERBLOCK, names::KEYS] {
        let path = dir.join(name);
        let intact = bytes_of(fs, &path);
        for is_resealed in [false, true].repeat(10) {
            let mut bytes = intact.clone();
            damage(rng, &mut bytes);
            if is_resealed && bytes.len() >= 4 {
                let sum = plain(&bytes[4..]);
                bytes[..4].copy_from_slice(&sum.to_le_bytes());
            }
            fs.replace_file(&path, bytes);
            check(Current::read(fs, dir), |found| is_resealed || *found == current);
            check(Superblock::read(fs, dir), |found| is_resealed || *found == superblock);
            check(KeyFile::read(fs, dir), |found| is_resealed || *found == keys);
        }
        fs.replace_file(&path, intact);
    }
}

fn bytes(rng: &mut Rng, longest: u64) -> Vec<u8> {
    let mut bytes = vec![0; rng.below(longest) as usize];
    rng.fill(&mut bytes);
    bytes
}

fn mark(rng: &mut Rng) -> LogMark {
    let mut places: Vec<_> = (0..3).map(|_| (rng.below(9), rng.below(1 << 20))).collect();
    places.sort_unstable();
    let kept = one_of(rng, &places[..2]);
    LogMark { kept, low: places[1], flushed: places[2], vouched: rng.below(3) * 1000 }
}

fn file(rng: &mut Rng) -> FileMeta {
    let kind = one_of(rng, &[FileKind::List, FileKind::Tree]);
    let count = one_of(rng, &[0, 0, 1, 3]);
    let share = |rng: &mut Rng| ValueShare {
        file: rng.below(1 << 30),
        file_bytes: rng.below(1 << 40),
        bytes: rng.below(1 << 40),
    };
    let values = (0..count).map(|_| share(rng)).collect();
    FileMeta {
        id: rng.below(1 << 30),
        bytes: rng.below(1 << 50),
        digest: rng.next_u64() as u32,
        kind,
        values,
    }
}

fn table(rng: &mut Rng) -> TableEntry {
    TableEntry {
        id: rng.below(99) as u32,
        name: format!("table {}", rng.below(9)),
        options: bytes(rng, 20),
        version: bytes(rng, 80),
        files: (0..rng.below(5)).map(|_| file(rng)).collect(),
    }
}

fn tables(rng: &mut Rng) -> Vec<TableEntry> {
    (0..rng.below(3)).map(|_| table(rng)).collect()
}

fn savepoint(rng: &mut Rng) -> Savepoint {
    let (sequence, taken_at_milliseconds) = (rng.below(1 << 40), rng.below(1 << 40));
    Savepoint { name: format!("day {}", rng.below(9)), sequence, taken_at_milliseconds, tables: tables(rng) }
}

fn snapshot(rng: &mut Rng) -> Snapshot {
    Snapshot {
        next_id: rng.below(1 << 30),
        next_table: rng.below(100) as u32,
        log: mark(rng),
        rolled_back: rng.below(3) * 500,
        clock_milliseconds: rng.below(3) * (1 << 40),
        feed: feed(rng),
        tables: tables(rng),
        savepoints: (0..rng.below(2)).map(|_| savepoint(rng)).collect(),
    }
}

fn feed(rng: &mut Rng) -> Feed {
    let (is_copy, is_whole) = (rng.chance(50), rng.chance(50));
    let mut lineage = Lineage { database: rng.below(3), is_copy, is_whole, lines: Vec::new() };
    (0..rng.below(4)).for_each(|id| lineage.begin(id, rng.below(1000)));
    Feed { keep_bytes: rng.below(3) << 20, lineage }
}

fn edit(rng: &mut Rng) -> Edit {
    match rng.index(10) {
        9 => Edit::Clock(rng.below(1 << 41)),
        0 => Edit::CreateTable(table(rng)),
        1 => Edit::DropTable(rng.below(99) as u32),
        2 => Edit::AlterTable(table(rng)),
        3 => Edit::Savepoint(savepoint(rng)),
        4 => Edit::DropSavepoint("day 1".into()),
        6 => Edit::Feed(feed(rng), rng.below(99) as u32),
        5 => Edit::Rollback(Rollback { log: mark(rng), tables: tables(rng) }),
        _ => Edit::Change(Change {
            files: (0..rng.below(4)).map(|_| (rng.below(9) as u32, file(rng))).collect(),
            edits: (0..rng.below(4)).map(|_| (rng.below(9) as u32, bytes(rng, 60))).collect(),
            log: rng.chance(50).then(|| mark(rng)),
        }),
    }
}
