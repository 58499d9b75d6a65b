//! What only the memory file system has: looking at and damaging files from outside.

use std::path::Path;

use super::{put, read_all};
use crate::fs::{Access, FileSystem, LockMode, MemoryFs};

#[test]
fn paths_have_one_spelling() {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("db/x/")).unwrap();
    put(&*fs, Path::new("./db//x/./a"), b"1").unwrap();
    assert_eq!(fs.list(Path::new("db/x")).unwrap(), ["a"]);
    put(&*fs, Path::new("top"), b"2").unwrap();
    assert_eq!(fs.list(Path::new(".")).unwrap(), ["top"]);
}

#[test]
fn snapshots_and_damage() {
    let fs = MemoryFs::new();
    let path = Path::new("/a");
    let file = put(&*fs, path, b"right").unwrap();
    let before = fs.snapshot_files();
    fs.replace_file(path, b"wrong!".to_vec());
    assert_eq!(file.len().unwrap(), 6, "open handles see the damage");
    assert_eq!(before[path], b"right");
    fs.replace_file(Path::new("/new"), b"n".to_vec());
    assert_eq!(read_all(&*fs, Path::new("/new")).unwrap(), b"n");
}

#[test]
fn a_clone_shares_nothing_but_keeps_links() {
    let fs = MemoryFs::new();
    let (a, b) = (Path::new("/a"), Path::new("/b"));
    let file = put(&*fs, a, b"one").unwrap();
    fs.hard_link(a, b).unwrap();
    let _held = fs.lock(a, LockMode::Exclusive).unwrap();
    let copy = fs.deep_clone();
    file.write_at(0, b"two").unwrap();
    assert_eq!(read_all(&*copy, a).unwrap(), b"one");
    copy.open(a, Access::Buffered).unwrap().write_at(0, b"six").unwrap();
    assert_eq!(read_all(&*copy, b).unwrap(), b"six");
    copy.lock(a, LockMode::Exclusive).unwrap();
}
