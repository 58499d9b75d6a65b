//! Versions that are named and not yet open.

use forebay_base::Range;
use forebay_cow_tree::{Tree, Version};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Access, FileSystem};

use crate::common::{append, build, content, find, numbered, restarted, small};

#[test]
fn what_needs_no_root_does_not_open() {
    let faulty = FaultyFs::new(MemoryFs::new());
    let store = small(faulty.clone());
    let tree = build(&store, &numbered(0..100, 10)).unwrap();
    faulty.rule("open *.tree all io-error").unwrap();
    faulty.rule("read *.tree all io-error").unwrap();
    let store = restarted(&store, faulty.clone());
    let named = Tree::named(&store, tree.version(), &Default::default());
    assert_eq!((named.version(), named.path()), (tree.version(), tree.path()));
    assert_eq!(named.total_bytes(), tree.version().bytes());
    named.found();
    assert!(!named.is_retired());
    named.retire();
    assert!(named.is_retired());
    assert_eq!(faulty.fired(), 0);
    assert_eq!((named.records(), named.height()), (0, 0));
    assert_eq!(named.live_bytes(), named.total_bytes(), "nothing says that rebuilding would gain");
    assert!(faulty.fired() > 0);
}

#[test]
fn a_failure_passes_and_damage_stays() {
    let faulty = FaultyFs::new(MemoryFs::new());
    let store = small(faulty.clone());
    let tree = build(&store, &numbered(0..100, 10)).unwrap();
    let (store, version, path) =
        (restarted(&store, faulty.clone()), tree.version(), tree.path().to_path_buf());
    let named = Tree::named(&store, version, &Default::default());
    for rule in ["open *.tree all io-error", "read *.tree all io-error"] {
        faulty.rule(rule).unwrap();
        assert!(!find(&named, b"0000000042").unwrap_err().is_corruption(), "{rule}");
        assert_eq!(named.records(), 0);
        faulty.clear();
    }
    assert!(find(&named, b"0000000042").unwrap().is_some());
    assert_eq!((named.records(), named.live_bytes()), (tree.records(), tree.live_bytes()));

    let file = faulty.open(&path, Access::Buffered).unwrap();
    file.write_at(version.root_at + 77, b"?").unwrap();
    let damaged = Tree::named(&store, version, &Default::default());
    assert!(find(&damaged, b"0000000042").unwrap_err().is_corruption());
    file.write_at(version.root_at + 77, &[0]).unwrap();
    assert!(damaged.portion(&Range::all()).unwrap_err().is_corruption(), "it is remembered");
    assert!(
        damaged.verify().is_err() && (damaged.records(), damaged.live_bytes()) == (0, damaged.total_bytes())
    );
    assert!(Tree::open(&store, version).is_ok(), "by that handle alone");
}

#[test]
fn an_append_to_an_old_version_leaves_newer_ones_that_are_only_named() {
    let fs = MemoryFs::new();
    let store = small(fs.clone());
    let old = build(&store, &numbered(0..100, 10)).unwrap();
    let newer = append(&old, &numbered(100..200, 10)).unwrap().version();
    let store = restarted(&store, fs.clone());
    let (newer, old) = (
        Tree::named(&store, newer, &Default::default()),
        Tree::named(&store, old.version(), &Default::default()),
    );
    let other = append(&old, &numbered(500..510, 10)).unwrap();
    assert_eq!((content(&newer).unwrap().len(), content(&other).unwrap().len()), (200, 110));
    // A version that lies behind the file's end is damage, and nothing is written there.
    let beyond = Version { root_at: other.version().root_at + (1 << 20), ..other.version() };
    let _beyond = Tree::named(&store, beyond, &Default::default());
    assert!(append(&other, &numbered(0..1, 10)).unwrap_err().is_corruption());
    let length = fs.open_read(old.path(), Access::Random).unwrap().len().unwrap();
    assert_eq!(length, other.total_bytes());
}
