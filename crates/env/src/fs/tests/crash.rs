//! What a power cut leaves, checked against histories kept apart from the file system's own books.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{put, read_all};
use crate::fs::{Access, CrashFs, File, FileSystem, LockMode};
use crate::rng::Rng;
use crate::sync::Arc;

const SECTOR: usize = 512;
const ROOT: &str = "/";

/// Every content a file had since its last sync, the synced one first.
struct History {
    versions: Vec<Vec<u8>>,
}

impl History {
    fn sector(version: &[u8], index: usize, cut: usize) -> Vec<u8> {
        let mut sector = vec![0; SECTOR];
        let bytes = version.get(index * SECTOR..).unwrap_or_default();
        let count = bytes.len().min(SECTOR).min(cut.saturating_sub(index * SECTOR));
        sector[..count].copy_from_slice(&bytes[..count]);
        sector
    }

    /// Each sector is one the file had, perhaps cut by a later truncation; the length is one it had.
    fn check(&self, left: &[u8], context: &str) {
        let lens: BTreeSet<usize> = self.versions.iter().map(Vec::len).collect();
        assert!(lens.contains(&left.len()), "{context}: length {} is none of {lens:?}", left.len());
        for index in 0..left.len().div_ceil(SECTOR) {
            let found = Self::sector(left, index, usize::MAX);
            let possible = self.versions.iter().any(|version| {
                let mut cuts = lens.iter().copied().chain([usize::MAX]);
                cuts.any(|cut| {
                    let mut sector = Self::sector(version, index, cut);
                    sector[left.len().saturating_sub(index * SECTOR).min(SECTOR)..].fill(0);
                    sector == found
                })
            });
            assert!(possible, "{context}: sector {index} is neither old nor new");
        }
    }
}

/// A random change of the file, noted in its history. `round` marks its bytes.
fn change(rng: &mut Rng, file: &Arc<dyn File>, history: &mut History, round: u8) {
    let mut now = history.versions.last().unwrap().clone();
    match rng.below(8) {
        0 => {
            let len = rng.index(20_000);
            file.set_len(len as u64).unwrap();
            now.resize(len, 0);
        }
        1 => {
            file.sync().unwrap();
            history.versions.clear();
        }
        2 => {
            let len = now.len().max(rng.index(20_000) + 1);
            file.reserve(len as u64).unwrap();
            now.resize(len, 0);
        }
        _ => {
            let (offset, len) = (rng.index(16_000), rng.index(9_000) + 1);
            file.write_at(offset as u64, &vec![round; len]).unwrap();
            now.resize(now.len().max(offset + len), 0);
            now[offset..offset + len].fill(round);
        }
    }
    history.versions.push(now);
}

#[test]
fn surviving_data_are_sectors_the_file_had() {
    let path = Path::new("/a");
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let fs = CrashFs::new(rng.next_u64());
        let file = put(&*fs, path, b"").unwrap();
        fs.sync_dir(Path::new(ROOT)).unwrap();
        let mut history = History { versions: vec![Vec::new()] };
        for round in 1..=rng.range(2..12) {
            change(&mut rng, &file, &mut history, round as u8);
        }
        for draw in 0..4 {
            let left = read_all(&*fs.power_cycle(), path).unwrap();
            history.check(&left, &format!("seed {seed} draw {draw}"));
        }
        assert!(file.len().is_err() && fs.list(Path::new(ROOT)).is_err(), "no answer without power");
    }
}

#[test]
fn every_kind_of_loss_is_drawn() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let fs = CrashFs::new(seed);
        let path = Path::new("/a");
        let file = put(&*fs, path, &[1; 4096]).unwrap();
        fs.sync_dir(Path::new(ROOT)).unwrap();
        file.write_at(0, &[2; 8192]).unwrap();
        file.write_at(8192, &[3; 4096]).unwrap();
        let left = read_all(&*fs.power_cycle(), path).unwrap();
        let first = &left[..4096];
        let torn = first.contains(&1) && first.contains(&2);
        let reordered = left.len() > 8192 && left[8192] == 3 && first.contains(&1);
        let zeros = left[4096..].contains(&0);
        seen.extend([(left.len(), "length")]);
        seen.extend(torn.then_some((0, "torn")));
        seen.extend(reordered.then_some((0, "reordered")));
        seen.extend(zeros.then_some((0, "length without data")));
        seen.extend(left.iter().all(|byte| *byte == 1).then_some((0, "nothing")));
        seen.extend((left.len() == 12288 && !zeros && !first.contains(&1)).then_some((0, "all")));
    }
    let expected = [
        (0, "all"), (0, "length without data"), (0, "nothing"), (0, "reordered"), (0, "torn"),
        (4096, "length"), (8192, "length"), (12288, "length"),
    ];
    assert_eq!(seen, BTreeSet::from(expected));
}

/// For each path, what it may show after a cut: `None` for no file. The last is the present state.
type NameHistory = BTreeMap<PathBuf, Vec<Option<u8>>>;

fn present(names: &NameHistory, path: &Path) -> Option<u8> {
    names[path].last().copied().flatten()
}

fn change_names(rng: &mut Rng, fs: &CrashFs, names: &mut NameHistory, tag: u8) {
    let paths: Vec<PathBuf> = names.keys().cloned().collect();
    let (path, other) = (&paths[rng.index(paths.len())], &paths[rng.index(paths.len())]);
    let mut become_ = |path: &Path, tag: Option<u8>| names.get_mut(path).unwrap().push(tag);
    match rng.below(6) {
        0 | 1 => {
            // A new file each time, by rename, so that every content is its file's own.
            let fresh = path.with_extension("tmp");
            put(fs, &fresh, &[tag]).unwrap();
            fs.rename(&fresh, path).unwrap();
            become_(path, Some(tag));
        }
        2 => {
            if fs.remove(path).is_ok() {
                become_(path, None);
            }
        }
        3 => {
            let moved = present(names, path);
            if moved != present(names, other) && fs.rename(path, other).is_ok() {
                names.get_mut(path).unwrap().push(None);
                names.get_mut(other).unwrap().push(moved);
            }
        }
        4 => {
            let linked = present(names, path);
            if fs.hard_link(path, other).is_ok() {
                names.get_mut(other).unwrap().push(linked);
            }
        }
        _ => {
            for dir in ["/d", "/e"].map(Path::new) {
                fs.sync_dir(dir).unwrap();
            }
            // Again, for moves between the two.
            for dir in ["/d", "/e"].map(Path::new) {
                fs.sync_dir(dir).unwrap();
            }
            names.values_mut().for_each(|history| drop(history.drain(..history.len() - 1)));
        }
    }
}

#[test]
fn surviving_names_are_ones_the_directory_had() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let fs = CrashFs::new(rng.next_u64());
        for dir in ["/d", "/e"].map(Path::new) {
            fs.create_dir_all(dir).unwrap();
        }
        fs.sync_dir(Path::new(ROOT)).unwrap();
        let paths = ["/d/a", "/d/b", "/e/a"].map(PathBuf::from);
        let mut names: NameHistory = paths.into_iter().map(|path| (path, vec![None])).collect();
        for tag in 1..=rng.range(3..25) {
            change_names(&mut rng, &fs, &mut names, tag as u8);
        }
        for draw in 0..4 {
            let left = fs.power_cycle();
            for (path, history) in &names {
                let found = read_all(&*left, path).ok().map(|bytes| bytes[0]);
                assert!(history.contains(&found), "seed {seed} draw {draw}: {path:?} {found:?} not in {history:?}");
            }
        }
    }
}

/// Replaces `/d/CURRENT` the safe way; the flags leave one step out.
fn replace_current(fs: &dyn FileSystem, tag: u8, sync_file: bool, sync_dir: bool) -> forebay_base::Result<()> {
    let dir = Path::new("/d");
    let fresh = dir.join("CURRENT.tmp");
    let file = fs.create(&fresh, Access::Buffered)?;
    file.write_at(0, &[tag; 700])?;
    if sync_file {
        file.sync()?;
    }
    fs.rename(&fresh, &dir.join("CURRENT"))?;
    if sync_dir { fs.sync_dir(dir) } else { Ok(()) }
}

/// Cuts the power at every operation of a second replacement, many times. Counts cuts after which
/// CURRENT is neither the acknowledged nor the unfinished content.
fn broken_replacements(sync_file: bool, sync_dir: bool) -> usize {
    let mut broken = 0;
    for seed in 0..60 {
        for cut in 1..=8 {
            let fs = CrashFs::new(seed);
            fs.create_dir_all(Path::new("/d")).unwrap();
            fs.sync_dir(Path::new(ROOT)).unwrap();
            replace_current(&*fs, 1, true, true).unwrap();
            fs.crash_at(fs.operations() + cut);
            let acknowledged = replace_current(&*fs, 2, sync_file, sync_dir).is_ok();
            let left = fs.power_cycle();
            // Once more on what is left: two cuts in a row.
            let left = if seed % 2 == 0 { left.power_cycle() } else { left };
            let current = read_all(&*left, Path::new("/d/CURRENT")).unwrap();
            let new = current == [2; 700];
            let old = current == [1; 700] && !acknowledged;
            broken += usize::from(!new && !old);
        }
    }
    broken
}

#[test]
fn a_synced_rename_is_atomic_and_durable() {
    assert_eq!(broken_replacements(true, true), 0);
    assert!(broken_replacements(false, true) > 0, "forgetting to sync the file must show");
    assert!(broken_replacements(true, false) > 0, "forgetting to sync the directory must show");
}

#[test]
fn both_names_of_a_rename_may_survive() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let fs = CrashFs::new(seed);
        put(&*fs, Path::new("/a"), b"a").unwrap();
        fs.sync_dir(Path::new(ROOT)).unwrap();
        fs.rename(Path::new("/a"), Path::new("/b")).unwrap();
        seen.insert(fs.power_cycle().list(Path::new(ROOT)).unwrap().concat());
    }
    assert_eq!(seen, BTreeSet::from(["a", "b", "ab"].map(str::to_owned)));
}

#[test]
fn unsynced_directories_and_names_may_go() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let fs = CrashFs::new(seed);
        fs.create_dir_all(Path::new("/d")).unwrap();
        put(&*fs, Path::new("/d/a"), b"a").unwrap();
        fs.sync_dir(Path::new("/d")).unwrap();
        put(&*fs, Path::new("/d/b"), b"b").unwrap();
        let left = fs.power_cycle();
        seen.insert(left.list(Path::new("/d")).map(|names| names.concat()).unwrap_or_default());
    }
    assert_eq!(seen, BTreeSet::from(["", "a", "ab"].map(str::to_owned)));
}

#[test]
fn a_removed_file_may_come_back_as_it_was_synced() {
    let mut came_back = 0;
    for seed in 0..100 {
        let fs = CrashFs::new(seed);
        put(&*fs, Path::new("/a"), b"synced").unwrap();
        fs.sync_dir(Path::new(ROOT)).unwrap();
        fs.remove(Path::new("/a")).unwrap();
        if let Ok(bytes) = read_all(&*fs.power_cycle(), Path::new("/a")) {
            assert_eq!(bytes, b"synced");
            came_back += 1;
        }
        fs.power_cycle();
    }
    assert!((20..80).contains(&came_back), "{came_back}");
}

#[test]
fn nothing_happens_after_the_cut_and_locks_are_gone() {
    let fs = CrashFs::new(7);
    let path = Path::new("/LOCK");
    let _held = fs.lock(path, LockMode::Exclusive).unwrap();
    fs.sync_dir(Path::new(ROOT)).unwrap();
    assert_eq!(fs.operations(), 2, "making the lock file is a mutation");
    fs.crash_at(3);
    let error = fs.create(Path::new("/a"), Access::Buffered).map(drop).unwrap_err();
    assert!(error.to_string().contains("power is off"));
    assert!(fs.is_off());
    assert!(fs.create(Path::new("/b"), Access::Buffered).is_err() && fs.exists(path).is_err());
    assert_eq!(fs.operations(), 3);
    let left = fs.power_cycle();
    assert!(!left.exists(Path::new("/b")).unwrap() && !left.is_off());
    left.lock(path, LockMode::Exclusive).unwrap();
}

#[test]
fn the_same_seed_loses_the_same() {
    let run = |seed| {
        let fs = CrashFs::new(seed);
        for name in ["/a", "/b", "/c"].map(Path::new) {
            let file = put(&*fs, name, &[9; 5000]).unwrap();
            file.write_at(3000, &[8; 5000]).unwrap();
        }
        fs.power_cycle().snapshot_files()
    };
    assert_eq!(run(3), run(3));
    assert!((4..30).any(|seed| run(seed) != run(3)));
}
