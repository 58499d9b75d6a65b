//! Rules: what they match, what they do, and that a wrong one is told so.

use std::io::ErrorKind;
use std::path::Path;

use forebay_base::Error;

use super::{put, read_all};
use crate::fs::{Access, FaultyFs, FileSystem, MemoryFs};
use crate::sync::Arc;

fn faulty() -> Arc<FaultyFs> {
    FaultyFs::new(MemoryFs::new())
}

#[test]
fn the_nth_match_fails_and_no_other() {
    let fs = faulty();
    fs.rule("write *.list #2 no-space").unwrap();
    let list = fs.create(Path::new("/3.list"), Access::Buffered).unwrap();
    let log = fs.create(Path::new("/3.log"), Access::Buffered).unwrap();
    let outcomes =
        [list.write_at(0, b"a"), log.write_at(0, b"a"), list.write_at(1, b"b"), list.write_at(1, b"c")];
    assert_eq!(outcomes.each_ref().map(Result::is_ok), [true, true, false, true]);
    assert!(outcomes[2].as_ref().unwrap_err().is_no_space());
    assert_eq!(read_all(&*fs, Path::new("/3.list")).unwrap(), b"ac");
    assert_eq!(fs.fired(), 1);
}

#[test]
fn a_short_write_does_half() {
    let fs = faulty();
    let file = put(&*fs, Path::new("/a.log"), b"........").unwrap();
    fs.rule("write *.log all short").unwrap();
    let error = file.write_at(0, b"XXXX").unwrap_err();
    assert!(matches!(error, Error::Io { operation: "write", .. }) && !error.is_no_space());
    assert_eq!(read_all(&*fs, Path::new("/a.log")).unwrap(), b"XX......");
}

#[test]
fn from_holds_until_cleared() {
    let fs = faulty();
    fs.rule("any * from:3 io-error").unwrap();
    let path = Path::new("/a");
    let file = fs.create(path, Access::Buffered).unwrap();
    file.write_at(0, b"a").unwrap();
    assert!(file.sync().is_err());
    assert!(fs.rename(path, Path::new("/b")).is_err());
    assert!(fs.list(Path::new("/")).is_err());
    fs.clear();
    assert!(fs.exists(path).unwrap(), "the failed rename did nothing");
    file.sync().unwrap();
    assert_eq!((fs.matched(), fs.fired()), (6, 3));
}

#[test]
fn a_rename_matches_by_either_name() {
    for rule in ["rename CURRENT #1 lost", "rename *.tmp #1 io-error", "rename C*R*T all no-space"] {
        let fs = faulty();
        put(&*fs, Path::new("/7.tmp"), b"").unwrap();
        fs.rule(rule).unwrap();
        let outcome = fs.rename(Path::new("/7.tmp"), Path::new("/CURRENT"));
        assert!(outcome.is_err(), "{rule}");
    }
}

#[test]
fn the_first_of_two_rules_wins_and_both_count() {
    let fs = faulty();
    fs.rule("sync a #1 no-space").unwrap();
    fs.rule("sync a #2 io-error").unwrap();
    let file = fs.create(Path::new("/a"), Access::Buffered).unwrap();
    assert!(file.sync().unwrap_err().is_no_space());
    assert!(matches!(file.sync().unwrap_err(), Error::Io { kind, .. } if kind != ErrorKind::StorageFull));
    file.sync().unwrap();
}

#[test]
fn wrong_rules_are_refused() {
    for text in ["", "write *", "fsync * all lost", "write * 3 short", "write * #0 short", "any * all fire"] {
        let refused = faulty().rule(text).unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{text}");
    }
}
