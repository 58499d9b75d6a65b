//! What a power cut leaves of data, checked against a history kept apart from the file system's own books.

use std::collections::BTreeSet;
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
        (0, "all"),
        (0, "length without data"),
        (0, "nothing"),
        (0, "reordered"),
        (0, "torn"),
        (4096, "length"),
        (8192, "length"),
        (12288, "length"),
    ];
    assert_eq!(seen, BTreeSet::from(expected));
}

#[test]
fn what_was_cut_off_does_not_come_back_by_growing() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let fs = CrashFs::new(seed);
        let file = put(&*fs, Path::new("/a"), &[1; 4]).unwrap();
        fs.sync_dir(Path::new(ROOT)).unwrap();
        file.set_len(2).unwrap();
        file.set_len(3).unwrap();
        seen.insert(read_all(&*fs.power_cycle(), Path::new("/a")).unwrap());
    }
    // The last keeps the growth without the cut: then it is a cut from 4 to 3.
    let expected: [&[u8]; 4] = [&[1; 4], &[1; 2], &[1, 1, 0], &[1; 3]];
    assert_eq!(seen, expected.into_iter().map(<[u8]>::to_vec).collect());
}

#[test]
fn a_disk_lives_through_many_cuts() {
    let mut fs = CrashFs::new(1);
    for round in 0..50 {
        let path = PathBuf::from(format!("/{round}"));
        put(&*fs, &path, &[round; 600]).unwrap();
        fs.sync_dir(Path::new(ROOT)).unwrap();
        put(&*fs, Path::new("/unsynced"), &[round]).unwrap();
        fs = fs.power_cycle();
        let mut files = fs.snapshot_files();
        files.remove(Path::new("/unsynced"));
        assert_eq!(files.len(), usize::from(round) + 1);
        assert!((0..=round).all(|old| files[Path::new(&format!("/{old}"))] == [old; 600]));
    }
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
