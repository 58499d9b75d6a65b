//! Edits come back, torn tails are cut, damage is named.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use forebay_base::wire::put_varint;
use forebay_env::fs::{FaultyFs, MemoryFs, RealFs};
use forebay_env::{Access, FileSystem};

use super::{
    Change, Current, Edit, Feed, Line, Lineage, LogMark, Manifest, Rollback, Savepoint, Snapshot, TAIL_BYTES,
    TableEntry,
};
use crate::list::{FileKind, FileMeta};
use crate::names;
use crate::values::ValueShare;

const DIR: &str = "/db";

fn edits() -> Vec<Edit> {
    let plain = FileMeta { id: 300, bytes: 1 << 40, digest: 7, kind: FileKind::List, values: Arc::default() };
    let shares = [(290, 1 << 30, 5), (299, 7, 7)];
    let shares = shares.map(|(file, file_bytes, bytes)| ValueShare { file, file_bytes, bytes });
    let file = FileMeta { values: shares.into(), ..plain.clone() };
    let tree = FileMeta { id: 301, kind: FileKind::Tree, ..plain };
    let grown = FileMeta { id: 302, kind: FileKind::Tree, ..file.clone() };
    let table = TableEntry {
        id: 1,
        name: "events".into(),
        options: vec![1, 2],
        version: vec![3; 200],
        files: vec![file.clone(), tree, grown],
    };
    let mark = LogMark { kept: (3, 4), low: (3, 4), flushed: (5, 5000), vouched: 0 };
    let change = Change { files: vec![(1, file)], edits: vec![(1, vec![9, 9])], log: Some(mark) };
    let keeping = LogMark { kept: (1, 0), ..mark };
    let vouching = LogMark { vouched: 5007, ..mark };
    let tables = vec![table.clone()];
    let savepoint = Savepoint {
        name: "monday".into(),
        sequence: 77,
        taken_at_milliseconds: 1 << 40,
        tables: tables.clone(),
    };
    let savepoints = vec![savepoint.clone()];
    let snapshot = Snapshot {
        next_id: 9,
        next_table: 2,
        log: keeping,
        rolled_back: 0,
        clock_milliseconds: 0,
        feed: Feed::default(),
        tables: tables.clone(),
        savepoints,
    };
    let rolled_back = Snapshot { rolled_back: 4999, ..snapshot.clone() };
    let lines = vec![Line { id: u64::MAX, from: 0 }, Line { id: 3, from: 700 }];
    let feed =
        Feed { keep_bytes: 1 << 30, lineage: Lineage { database: 9, is_copy: true, is_whole: false, lines } };
    let keeping_none = Feed { keep_bytes: 7, ..Feed::default() };
    vec![
        Edit::Snapshot(snapshot.clone()),
        Edit::Snapshot(Snapshot { log: mark, ..rolled_back.clone() }),
        Edit::Snapshot(Snapshot { log: vouching, ..rolled_back.clone() }),
        Edit::Snapshot(Snapshot { clock_milliseconds: 1 << 41, ..rolled_back.clone() }),
        Edit::Snapshot(Snapshot { feed: feed.clone(), clock_milliseconds: 1 << 41, ..rolled_back.clone() }),
        Edit::Snapshot(Snapshot { feed: keeping_none, log: mark, ..snapshot }),
        Edit::Snapshot(rolled_back),
        Edit::Clock(1 << 41),
        Edit::Feed(feed, 12),
        Edit::Savepoint(savepoint),
        Edit::Rollback(Rollback { log: keeping, tables }),
        Edit::DropSavepoint("monday".into()),
        Edit::CreateTable(table),
        Edit::Change(Change { log: Some(keeping), ..change.clone() }),
        Edit::Change(Change { log: Some(vouching), ..change.clone() }),
        Edit::Change(change),
        Edit::DropTable(1),
    ]
}

fn written() -> (Arc<MemoryFs>, Manifest) {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let all = edits();
    let mut manifest = Manifest::create(&*fs, Path::new(DIR), 1, &all[0], Arc::default()).unwrap();
    for edit in &all[1..] {
        manifest.announce(&*fs, Path::new(DIR), edit).unwrap();
        manifest.append(edit).unwrap();
    }
    (fs, manifest)
}

/// With what tells that the last was durable.
fn sealed() -> Vec<Edit> {
    edits().into_iter().chain([Edit::Change(Change::default())]).collect()
}

fn open(fs: &Arc<MemoryFs>, current: Current) -> forebay_base::Result<Vec<Edit>> {
    let (mut manifest, edits) = Manifest::open(&**fs, Path::new(DIR), &current, true, Arc::default())?;
    manifest.truncate_tail()?;
    Ok(edits)
}

#[test]
fn edits_come_back_and_a_torn_tail_is_cut() {
    let (fs, manifest) = written();
    let path = names::manifest(Path::new(DIR), 1);
    let intact = fs.snapshot_files()[&path].clone();
    let current = Current { manifest: 1, version: 1, closed: None };
    assert_eq!(open(&fs, current).unwrap(), sealed());
    let end = manifest.end as usize;
    fs.replace_file(&path, intact[..end].to_vec());
    assert_eq!(open(&fs, current).unwrap(), edits());
    let last = end - 10;
    for cut in last + 1..end {
        fs.replace_file(&path, intact[..cut].to_vec());
        assert_eq!(open(&fs, current).unwrap(), edits()[..edits().len() - 1]);
        assert_eq!(fs.snapshot_files()[&path].len(), last, "the torn record is gone");
    }
}

#[test]
fn every_flipped_byte_of_a_closed_database_is_noticed() {
    let (fs, mut manifest) = written();
    let end = manifest.end as usize;
    manifest.finish().unwrap();
    let path = names::manifest(Path::new(DIR), 1);
    let intact = fs.snapshot_files()[&path].clone();
    let open_current = Current { manifest: 1, version: 1, closed: None };
    let closed = manifest.current(Some(manifest.closed(77)));
    closed.write(&*fs, Path::new(DIR)).unwrap();
    assert_eq!(Current::read(&*fs, Path::new(DIR)).unwrap(), closed);
    assert_eq!(open(&fs, closed).unwrap(), sealed());
    for at in 0..intact.len() {
        let mut damaged = intact.clone();
        damaged[at] ^= 0x10;
        fs.replace_file(&path, damaged.clone());
        assert!(open(&fs, closed).unwrap_err().is_corruption(), "byte {at}");
        if at < end {
            fs.replace_file(&path, damaged);
            assert!(open(&fs, open_current).unwrap_err().is_corruption(), "byte {at} of what was durable");
        }
    }
    let current = Path::new(DIR).join(names::CURRENT);
    let intact = fs.snapshot_files()[&current].clone();
    for at in 0..intact.len() {
        let mut damaged = intact.clone();
        damaged[at] ^= 1;
        fs.replace_file(&current, damaged);
        assert!(Current::read(&*fs, Path::new(DIR)).is_err(), "byte {at} of CURRENT");
    }
}

/// It was read, and who wrote the manifest anew with it panicked.
#[test]
fn a_log_mark_out_of_its_order_is_malformed() {
    let in_order = LogMark { kept: (1, 0), low: (3, 4), flushed: (5, 5000), vouched: 0 };
    for (mark, is_read) in [
        (in_order, true),
        (LogMark { kept: (4, 4), ..in_order }, false),
        (LogMark { low: (3, 5001), flushed: (3, 5000), ..in_order }, false),
    ] {
        // As the writer would, which asserts that it does not.
        let numbers = [mark.low.0, mark.low.1, mark.flushed.0, mark.flushed.1, mark.kept.0, mark.kept.1];
        let mut bytes = vec![4, 0, 0, 1];
        numbers.iter().for_each(|&number| put_varint(&mut bytes, number));
        let wanted = Edit::Change(Change { log: Some(mark), ..Change::default() });
        assert_eq!(Edit::decode(&bytes), Some(wanted).filter(|_| is_read));
    }
}

/// A crash amid a rename may leave both names, and the next one amid the writing of what comes after.
#[test]
fn current_stands_where_a_crash_left_its_temporary_name_beside_it() {
    let (memory, dir) = (MemoryFs::new(), Path::new(DIR));
    memory.create_dir_all(dir).unwrap();
    let current = |manifest| Current { manifest, version: 1, closed: None };
    assert!(current(1).write(&*memory, dir).is_ok());
    let [name, temporary] = ["CURRENT", "CURRENT.tmp"].map(|name| dir.join(name));
    memory.hard_link(&name, &temporary).unwrap();
    let faulty = FaultyFs::new(Arc::clone(&memory) as Arc<dyn FileSystem>);
    faulty.rule("write CURRENT.tmp #1 io-error").unwrap();
    assert!(current(2).write(&*faulty, dir).is_err());
    assert_eq!(Current::read(&*memory, dir).unwrap(), current(1));
}

/// A full disk had no room for the edit that drops a table, and so there was never room again.
#[test]
fn a_manifest_has_blocks_for_edits_to_come() {
    let dir = std::env::temp_dir().join(format!("forebay-tail-{}", std::process::id()));
    let fs = RealFs::new();
    fs.create_dir_all(&dir).unwrap();
    let path = names::manifest(&dir, 1);
    let spare_bytes = || {
        let found = std::fs::metadata(&path).unwrap();
        (found.blocks() * 512).saturating_sub(found.len())
    };
    let mut manifest = Manifest::create(&*fs, &dir, 1, &edits()[0], Arc::default()).unwrap();
    if !manifest.file.reserve_tail(1) {
        // No file system for that.
        return;
    }
    assert!(spare_bytes() >= TAIL_BYTES, "{}", spare_bytes());
    for number in 0..200 {
        let edit = Edit::DropSavepoint("name ".repeat(number));
        manifest.append(&edit).unwrap();
        assert!(spare_bytes() >= TAIL_BYTES, "{} after {number}", spare_bytes());
    }
    drop(manifest);
    let current = Current { manifest: 1, version: 1, closed: None };
    fs.open(&path, Access::Buffered).unwrap().set_len(std::fs::metadata(&path).unwrap().len()).unwrap();
    let (mut manifest, edits) = Manifest::open(&*fs, &dir, &current, true, Arc::default()).unwrap();
    assert_eq!(edits.len(), 202);
    manifest.keep_tail();
    assert!(spare_bytes() >= TAIL_BYTES, "{} once opened", spare_bytes());
    drop(manifest);
    fs.remove(&path).unwrap();
    fs.remove_dir(&dir).unwrap();
}

/// An older build is told that a manifest is newer before it reads on, and only where it is.
#[test]
fn current_says_what_a_reader_must_know() {
    let (fs, dir) = (MemoryFs::new(), Path::new(DIR));
    fs.create_dir_all(dir).unwrap();
    let first = Edit::Snapshot(Snapshot::default());
    let mut manifest = Manifest::create(&*fs, dir, 1, &first, Arc::default()).unwrap();
    assert_eq!(manifest.current(None).version, 1);
    manifest.announce(&*fs, dir, &Edit::DropTable(1)).unwrap();
    assert!(!fs.exists(&dir.join(names::CURRENT)).unwrap(), "nothing was to be told");
    let all = edits();
    let named: Vec<_> = all.iter().map(Edit::version).collect();
    assert_eq!(named, [2, 2, 2, 3, 4, 4, 2, 3, 4, 2, 2, 1, 2, 2, 2, 2, 1]);
    // Where it cannot be told the edit is not to follow, and the next try tells it.
    let faulty = FaultyFs::new(Arc::clone(&fs) as Arc<dyn FileSystem>);
    faulty.rule("write CURRENT.tmp #1 io-error").unwrap();
    assert!(manifest.announce(&*faulty, dir, &all[9]).is_err());
    assert_eq!(manifest.current(None).version, 1);
    manifest.announce(&*faulty, dir, &all[9]).unwrap();
    manifest.append(&all[9]).unwrap();
    assert_eq!(Current::read(&*fs, dir).unwrap(), manifest.current(None));
    // Builds that had no number for it have written such edits, too.
    let older = Current { version: 1, ..manifest.current(None) };
    older.write(&*fs, dir).unwrap();
    let (mut opened, _) = Manifest::open(&*fs, dir, &older, true, Arc::default()).unwrap();
    assert_eq!(opened.current(None).version, 2);
    // Where the disk was full as they were read it is told later, and no edit waits for that.
    faulty.rule("write CURRENT.tmp all no-space").unwrap();
    assert!(opened.tell(&*faulty, dir).is_err());
    opened.announce(&*faulty, dir, &Edit::DropTable(1)).unwrap();
    assert_eq!(Current::read(&*fs, dir).unwrap(), older);
    faulty.clear();
    opened.announce(&*faulty, dir, &Edit::DropTable(1)).unwrap();
    assert_eq!(Current::read(&*fs, dir).unwrap(), opened.current(None));
}
