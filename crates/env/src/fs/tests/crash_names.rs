//! What a power cut leaves of names, checked against a history kept apart from the file system's own books.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{put, read_all};
use crate::fs::{Access, CrashFs, FileSystem};
use crate::rng::Rng;

const ROOT: &str = "/";

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
                assert!(
                    history.contains(&found),
                    "seed {seed} draw {draw}: {path:?} {found:?} not in {history:?}"
                );
            }
        }
    }
}

/// Replaces `/d/CURRENT` the safe way; the flags leave one step out.
fn replace_current(
    fs: &dyn FileSystem,
    tag: u8,
    sync_file: bool,
    sync_dir: bool,
) -> forebay_base::Result<()> {
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
        let whole = left.exists(Path::new("/d")).unwrap() || left.snapshot_files().is_empty();
        assert!(whole, "seed {seed}: files without their directory");
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
        fs.create_dir_all(Path::new("/other")).unwrap();
        fs.remove(Path::new("/a")).unwrap();
        fs.sync_dir(Path::new("/other")).unwrap();
        if let Ok(bytes) = read_all(&*fs.power_cycle(), Path::new("/a")) {
            assert_eq!(bytes, b"synced");
            came_back += 1;
        }
    }
    assert!((20..80).contains(&came_back), "{came_back}");
}

/// Of a directory in which something was removed and nothing else, too.
#[test]
fn a_removal_whose_sync_fails_comes_to_nothing() {
    let (fs, root, path) = (CrashFs::new(1), Path::new(ROOT), Path::new("/a"));
    put(&*fs, path, b"a").unwrap();
    fs.sync_dir(root).unwrap();
    fs.remove(path).unwrap();
    fs.fail_next_sync_of_name("a");
    fs.sync_dir(root).unwrap_err();
    assert_eq!(fs.take_failed_dir().as_deref(), Some(root));
    fs.sync_dir(root).unwrap();
    assert!(!fs.exists(path).unwrap() && fs.power_cycle().exists(path).unwrap());
    assert_eq!(fs.take_failed_dir(), None);
}
