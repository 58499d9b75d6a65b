//! Counts and the ordered log.

use std::path::Path;

use super::{put, read_all};
use crate::fs::{Access, Counts, FileSystem, MemoryFs, TracedFs};

#[test]
fn the_log_keeps_the_order_of_changes() {
    let fs = TracedFs::new(MemoryFs::new());
    let dir = Path::new("/db");
    fs.create_dir_all(dir).unwrap();
    fs.start_log(dir);
    put(&*fs, &dir.join("3.list"), &[7; 4096]).unwrap();
    read_all(&*fs, &dir.join("3.list")).unwrap();
    fs.rename(&dir.join("3.list"), &dir.join("4.list")).unwrap();
    fs.sync_dir(dir).unwrap();
    assert!(fs.remove(&dir.join("5.list")).is_err(), "failures are not logged");
    let log = fs.take_log();
    assert_eq!(
        log,
        ["create 3.list", "write 3.list 0+4096", "sync 3.list", "rename 3.list 4.list", "sync_dir ."]
    );
    fs.hard_link(&dir.join("4.list"), &dir.join("5.list")).unwrap();
    fs.open(&dir.join("5.list"), Access::Direct).unwrap().set_len(9).unwrap();
    assert_eq!(fs.take_log(), ["link 4.list 5.list", "set_len 5.list 9"]);
}

#[test]
fn counts_are_kept_by_extension() {
    let fs = TracedFs::new(MemoryFs::new());
    put(&*fs, Path::new("/1.log"), &[1; 10]).unwrap();
    put(&*fs, Path::new("/2.list"), &[1; 100]).unwrap();
    read_all(&*fs, Path::new("/2.list")).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!((fs.reads_of("list"), fs.reads_of("log")), (1, 0));
    let expected = Counts { writes: 1, write_bytes: 10, syncs: 1, creates: 1, ..Counts::default() };
    assert_eq!(fs.counts_of("log"), expected);
    let all = fs.counts();
    assert_eq!((all.writes, all.write_bytes, all.reads, all.read_bytes), (2, 110, 1, 100));
    assert_eq!((all.syncs, all.dir_syncs, all.opens), (2, 1, 1));
    fs.reset_counts();
    assert_eq!(fs.counts(), Counts::default());
}
