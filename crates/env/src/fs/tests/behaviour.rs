//! One suite for every file system: the same calls get the same answers.

use std::path::Path;

use forebay_base::Error;

use super::{TempDir, answer, put, read_all};
use crate::AlignedBuf;
use crate::fs::{
    Access, BoundedFs, CachedFs, CrashFs, FaultyFs, FileSystem, LimitedFs, LockMode, MemoryFs, ReadRequest,
    RealFs, TracedFs,
};

/// Runs `test` in an empty directory of each file system.
fn everywhere(test: fn(&dyn FileSystem, &Path)) {
    let temp = TempDir::new();
    test(&*RealFs::new(), &temp.0);
    let temp = TempDir::new();
    test(&*BoundedFs::new(RealFs::new(), 1), &temp.0);
    let temp = TempDir::new();
    test(&*CachedFs::new(RealFs::new()), &temp.0);
    let simulated: [&dyn FileSystem; 7] = [
        &*CachedFs::new(MemoryFs::new()),
        &*MemoryFs::new(),
        &*CrashFs::new(1),
        &*FaultyFs::new(MemoryFs::new()),
        &*TracedFs::new(MemoryFs::new()),
        &*LimitedFs::new(MemoryFs::new(), 100),
        &*BoundedFs::new(MemoryFs::new(), 1),
    ];
    for fs in simulated {
        let dir = Path::new("/some/where");
        fs.create_dir_all(dir).unwrap();
        test(fs, dir);
    }
}

#[test]
fn reads_end_where_the_file_ends() {
    everywhere(|fs, dir| {
        let file = put(fs, &dir.join("a"), b"0123456789").unwrap();
        let mut into = [0; 8];
        assert_eq!(file.read_at(0, &mut into).unwrap(), 8);
        assert_eq!(file.read_at(6, &mut into).unwrap(), 4);
        assert_eq!(&into[..4], b"6789");
        assert_eq!(file.read_at(10, &mut into).unwrap(), 0);
        assert_eq!(file.read_at(1 << 40, &mut into).unwrap(), 0);
        assert_eq!(file.read_at(0, &mut []).unwrap(), 0);
    });
}

#[test]
fn many_reads_get_what_each_gets_by_itself() {
    everywhere(|fs, dir| {
        let bytes: Vec<u8> = (0..50_000u32).map(|at| (at * 7 % 251) as u8).collect();
        let files = ["a", "b"].map(|name| put(fs, &dir.join(name), &bytes).unwrap());
        for count in [0, 1, 2, 63, 300] {
            let wanted = |i: usize| (i % 2, (i * 977 % 51_000) as u64, [0, 1, 100, 4096][i % 4]);
            let mut buffers: Vec<Vec<u8>> = (0..count).map(|i| vec![0; wanted(i).2]).collect();
            let requests = buffers.iter_mut().enumerate().map(|(i, into)| {
                let (file, offset, _) = wanted(i);
                ReadRequest::new(&*files[file], offset, into)
            });
            let mut requests: Vec<_> = requests.collect();
            fs.read_many(&mut requests);
            let outcomes: Vec<_> = requests.into_iter().map(|request| request.outcome.unwrap()).collect();
            for (i, (outcome, buffer)) in outcomes.iter().zip(&buffers).enumerate() {
                let (file, offset, len) = wanted(i);
                let mut alone = vec![0; len];
                assert_eq!(*outcome, files[file].read_at(offset, &mut alone).unwrap(), "read {i} of {count}");
                assert_eq!(*buffer, alone, "read {i} of {count}");
            }
        }
    });
}

#[test]
fn what_is_stored_reads_as_if_it_was_written() {
    everywhere(|fs, dir| {
        let path = dir.join("a");
        let file = fs.create(&path, Access::Buffered).unwrap();
        file.reserve(300_000).unwrap();
        let mut wanted = vec![0; 300_000];
        // Across windows and back, to the last byte, around what is written by calls, and before and after a sync.
        for (at, len, by) in [(0, 10, 1), (65_000, 3000, 2), (299_999, 1, 3), (5, 200, 4), (150_000, 0, 5)] {
            let bytes = vec![by; len];
            if !file.store_at(at as u64, &bytes).unwrap() {
                file.write_at(at as u64, &bytes).unwrap();
            }
            file.write_at(at as u64 / 2, &[by]).unwrap();
            wanted[at..at + len].fill(by);
            wanted[at / 2] = by;
            assert_eq!(read_all(fs, &path).unwrap(), wanted, "at {at}");
            file.sync().unwrap();
        }
        file.set_len(1000).unwrap();
        assert_eq!(read_all(fs, &path).unwrap(), wanted[..1000]);
    });
}

#[test]
fn nothing_that_was_written_lies_in_a_hole() {
    everywhere(|fs, dir| {
        let file = fs.create(&dir.join("a"), Access::Buffered).unwrap();
        file.reserve(1 << 20).unwrap();
        assert!(file.written_from(10) >= 10 && file.written_from(1 << 30) >= 1 << 30);
        for at in [700_000, 300_000, 5_000] {
            file.write_at(at, &[1]).unwrap();
            for offset in [0, 1, at - 1, at] {
                assert!((offset..=at).contains(&file.written_from(offset)), "{at} from {offset}");
            }
            file.sync().unwrap();
            assert!(file.written_from(at - 4000) <= at);
        }
        assert!(file.written_from(300_001) <= 700_000);
    });
}

#[test]
fn a_real_file_is_stored_into_only_where_it_has_its_blocks() {
    let temp = TempDir::new();
    let file = RealFs::new().create(&temp.0.join("a"), Access::Buffered).unwrap();
    assert!(!file.store_at(0, b"a").unwrap(), "nothing is reserved");
    file.reserve(10_000).unwrap();
    if !file.store_at(9_000, &[1; 1000]).unwrap() {
        // A file system that is none of those.
        return;
    }
    assert!(!file.store_at(9_001, &[1; 1000]).unwrap(), "it ends there");
    assert!(!file.store_at(u64::MAX, &[1]).unwrap(), "nothing is there");
    file.set_len(5_000).unwrap();
    assert!(!file.store_at(5_000, &[1]).unwrap(), "it was cut");
    file.set_len(10_000).unwrap();
    assert!(!file.store_at(9_000, &[1]).unwrap(), "it was grown without blocks");
    assert!(file.store_at(4_999, &[1]).unwrap());
    assert_eq!(file.len().unwrap(), 10_000);
}

#[test]
fn gaps_and_growth_read_as_zeros() {
    everywhere(|fs, dir| {
        let path = dir.join("a");
        let file = put(fs, &path, b"abc").unwrap();
        file.write_at(6, b"xyz").unwrap();
        assert_eq!(read_all(fs, &path).unwrap(), b"abc\0\0\0xyz");
        file.set_len(2).unwrap();
        file.set_len(4).unwrap();
        assert_eq!(read_all(fs, &path).unwrap(), b"ab\0\0");
        file.write_at(9, b"").unwrap();
        assert_eq!(file.len().unwrap(), 4, "writing nothing does not grow a file");
        file.reserve(6).unwrap();
        file.reserve(0).unwrap();
        file.reserve(1).unwrap();
        assert_eq!(read_all(fs, &path).unwrap(), b"ab\0\0\0\0");
    });
}

#[test]
fn creating_again_cuts_the_file_under_open_handles() {
    everywhere(|fs, dir| {
        let path = dir.join("a");
        let old = put(fs, &path, b"old").unwrap();
        let new = fs.create(&path, Access::Buffered).unwrap();
        assert_eq!(old.len().unwrap(), 0);
        new.write_at(0, b"newer").unwrap();
        assert_eq!(old.len().unwrap(), 5);
        assert_eq!(new.path(), path);
    });
}

#[test]
fn handles_outlive_names() {
    everywhere(|fs, dir| {
        let (a, b) = (dir.join("a"), dir.join("b"));
        let first = put(fs, &a, b"first").unwrap();
        let second = put(fs, &b, b"second").unwrap();
        fs.rename(&a, &b).unwrap();
        assert_eq!(read_all(fs, &b).unwrap(), b"first");
        assert!(!fs.exists(&a).unwrap());
        let mut into = [0; 6];
        assert_eq!(second.read_at(0, &mut into).unwrap(), 6);
        fs.remove(&b).unwrap();
        first.write_at(0, b"still").unwrap();
        first.sync().unwrap();
        assert_eq!(first.len().unwrap(), 5);
    });
}

#[test]
fn hard_links_share_bytes() {
    everywhere(|fs, dir| {
        let (a, b) = (dir.join("a"), dir.join("b"));
        let file = put(fs, &a, b"one").unwrap();
        fs.hard_link(&a, &b).unwrap();
        file.write_at(0, b"two").unwrap();
        assert_eq!(read_all(fs, &b).unwrap(), b"two");
        fs.rename(&a, &b).unwrap();
        assert!(fs.exists(&a).unwrap(), "renaming a file to its other name does nothing");
        fs.remove(&a).unwrap();
        assert_eq!(read_all(fs, &b).unwrap(), b"two");
    });
}

#[test]
fn directories() {
    everywhere(|fs, dir| {
        let sub = dir.join("x/y");
        fs.create_dir_all(&sub).unwrap();
        fs.create_dir_all(&sub).unwrap();
        put(fs, &sub.join("b"), b"").unwrap();
        put(fs, &sub.join("a"), b"").unwrap();
        assert_eq!(fs.list(&sub).unwrap(), ["a", "b"]);
        assert_eq!(fs.list(dir).unwrap(), [""; 0], "directories are not listed");
        assert!(fs.exists(&sub).unwrap());
        assert_eq!(answer(fs.remove_dir(&sub)).unwrap_err(), "DirectoryNotEmpty");
        fs.remove(&sub.join("a")).unwrap();
        fs.remove(&sub.join("b")).unwrap();
        fs.remove_dir(&sub).unwrap();
        fs.sync_dir(&dir.join("x")).unwrap();
        assert!(!fs.exists(&sub).unwrap());
        assert!(fs.free_bytes(dir).unwrap() > 0);
    });
}

#[test]
fn failures_say_what_is_wrong() {
    everywhere(|fs, dir| {
        let (no, a) = (dir.join("no"), dir.join("a"));
        let missing = "NotFound";
        assert_eq!(answer(fs.open(&no, Access::Buffered).map(drop)).unwrap_err(), missing);
        assert_eq!(answer(fs.open_read(&no, Access::Random).map(drop)).unwrap_err(), missing);
        assert_eq!(answer(fs.create(&no.join("a"), Access::Buffered).map(drop)).unwrap_err(), missing);
        assert_eq!(answer(fs.remove(&no)).unwrap_err(), missing);
        assert_eq!(answer(fs.rename(&no, &a)).unwrap_err(), missing);
        assert_eq!(answer(fs.hard_link(&no, &a)).unwrap_err(), missing);
        assert_eq!(answer(fs.list(&no)).unwrap_err(), missing);
        assert_eq!(answer(fs.sync_dir(&no)).unwrap_err(), missing);
        assert_eq!(answer(fs.remove_dir(&no)).unwrap_err(), missing);
        put(fs, &a, b"a").unwrap();
        assert_eq!(answer(fs.hard_link(&a, &a)).unwrap_err(), "AlreadyExists");
        assert_eq!(answer(fs.create(dir, Access::Buffered).map(drop)).unwrap_err(), "IsADirectory");
        let read_only = fs.open_read(&a, Access::Buffered).unwrap();
        assert!(read_only.write_at(0, b"x").is_err());
        assert_eq!(read_all(fs, &a).unwrap(), b"a");
    });
}

#[test]
fn locks_exclude() {
    everywhere(|fs, dir| {
        let path = dir.join("LOCK");
        assert_eq!(answer(fs.lock(&path, LockMode::Shared).map(drop)).unwrap_err(), "NotFound");
        let alone = fs.lock(&path, LockMode::Exclusive).unwrap();
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let refused = fs.lock(&path, mode).unwrap_err();
            assert!(matches!(refused, Error::Locked { path: locked, .. } if locked == path));
        }
        drop(alone);
        let shared = [fs.lock(&path, LockMode::Shared).unwrap(), fs.lock(&path, LockMode::Shared).unwrap()];
        assert!(fs.lock(&path, LockMode::Exclusive).is_err());
        drop(shared);
        fs.lock(&path, LockMode::Exclusive).unwrap();
    });
}

#[test]
fn direct_access_takes_any_offset_and_length() {
    everywhere(|fs, dir| {
        let path = dir.join("a");
        let file = fs.create(&path, Access::Direct).unwrap();
        let mut buffer = AlignedBuf::zeroed(3 * 4096);
        for (index, byte) in buffer.iter_mut().enumerate() {
            *byte = (index / 7) as u8;
        }
        file.write_at(0, &buffer).unwrap();
        file.write_at(3 * 4096, b"tail").unwrap();
        file.write_at(5, b"inside").unwrap();
        buffer[5..11].copy_from_slice(b"inside");
        file.sync().unwrap();
        let file = fs.open_read(&path, Access::Direct).unwrap();
        let mut into = AlignedBuf::zeroed(4 * 4096);
        assert_eq!(file.read_at(0, &mut into).unwrap(), 3 * 4096 + 4);
        assert_eq!(into[..3 * 4096], buffer[..]);
        assert_eq!(&into[3 * 4096..][..4], b"tail");
        assert_eq!(file.read_at(4097, &mut into[1..600]).unwrap(), 599);
        assert_eq!(into[1..600], buffer[4097..4097 + 599]);
    });
}

#[test]
fn a_foreign_file_is_made_once() {
    everywhere(|fs, dir| {
        let path = dir.join("a");
        fs.create(&path, Access::Foreign).unwrap().write_at(0, b"mine").unwrap();
        assert!(fs.create(&path, Access::Foreign).is_err());
        let mut bytes = [0; 4];
        assert_eq!(fs.open_read(&path, Access::Foreign).unwrap().read_at(0, &mut bytes).unwrap(), 4);
        assert_eq!(&bytes, b"mine");
        fs.remove(&path).unwrap();
        assert!(fs.open(&path, Access::Foreign).is_err_and(|error| error.is_not_found()));
    });
}

/// Who may put names into a folder of leases had the writer cut a file of its own, and wait for ever.
#[test]
fn links_and_pipes_of_others_are_neither_followed_nor_waited_for() {
    let (temp, fs) = (TempDir::new(), RealFs::new());
    let (own, link, pipe) = (temp.0.join("own"), temp.0.join("link"), temp.0.join("pipe"));
    put(&*fs, &own, b"precious").unwrap();
    std::os::unix::fs::symlink(&own, &link).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for path in [&link, &pipe] {
        assert!(fs.create(path, Access::Foreign).is_err());
        assert!(fs.open(path, Access::Foreign).is_err());
        assert!(fs.open_read(path, Access::Foreign).is_err());
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let refused = fs.lock(path, mode).unwrap_err();
            assert!(matches!(refused, Error::Io { .. }), "{refused}");
        }
    }
    assert_eq!(read_all(&*fs, &own).unwrap(), b"precious");
}

/// A folder that root made, whose files have to be its own, could be read by nobody else.
#[test]
fn what_is_made_for_others_is_theirs_as_well() {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    let (temp, fs) = (TempDir::new(), RealFs::new());
    let mode = |path: &Path| metadata(path).unwrap().permissions().mode() & 0o7777;
    let folder = temp.0.join("folder");
    set_permissions(&temp.0, Permissions::from_mode(0o1777)).unwrap();
    fs.create_dir(&folder).unwrap();
    fs.create_dir(&folder).unwrap();
    assert_eq!(mode(&folder), 0o1777);
    assert!(fs.create_dir(&temp.0.join("no/folder")).unwrap_err().is_not_found());
    let file = fs.create(&folder.join("file"), Access::Foreign).unwrap();
    set_permissions(folder.join("file"), Permissions::from_mode(0o600)).unwrap();
    file.share().unwrap();
    assert_eq!(mode(&folder.join("file")), 0o644);
}
