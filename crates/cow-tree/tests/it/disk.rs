//! What is counted of the disk, against the files that are there.

use forebay_base::LastWriterWins;
use forebay_base::combine::Depth;
use forebay_cow_tree::{Tree, TreeStore, TreeWriter};
use forebay_env::Access;
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_store::Cause;

use crate::common::{append, build, numbered, push_all, restarted, small};

/// What all files come to.
fn length(store: &TreeStore) -> u64 {
    let names = store.fs.list(&store.dir).unwrap();
    let file = |name: &String| store.fs.open_read(&store.dir.join(name), Access::Random).unwrap();
    names.iter().map(|name| file(name).len().unwrap()).sum()
}

/// Asserts that all bytes are counted, and this many of them as being written, held and leaving.
fn assert_counted(store: &TreeStore, writing: u64, held: u64, leaving: u64) {
    let disk = &store.disk;
    assert_eq!((disk.writing_bytes(), disk.held_bytes(), disk.leaving_bytes()), (writing, held, leaving));
    assert_eq!(disk.bytes(), length(store));
}

#[test]
fn bytes_are_counted_from_the_first_write_to_the_removal() {
    let store = small(MemoryFs::new());
    let one = build(&store, &numbered(0..1000, 100)).unwrap();
    assert_counted(&store, 0, 0, 0);
    let two = append(&one, &numbered((0..1000).step_by(10), 100)).unwrap();
    assert_counted(&store, 0, 0, 0);
    assert_eq!(store.disk.bytes(), two.total_bytes());
    // More than one long write.
    let mut writer = TreeWriter::append(&two, LastWriterWins, Depth::Bottom, Cause::Spill).unwrap();
    push_all(&mut writer, numbered(0..30_000, 100), &LastWriterWins).unwrap();
    assert!(store.disk.writing_bytes() >= 1 << 20);
    assert_counted(&store, store.disk.writing_bytes(), 0, 0);
    drop(writer);
    assert_counted(&store, 0, 0, 0);
    assert_eq!(store.disk.bytes(), two.total_bytes(), "what was written is cut off");

    let mut writer = TreeWriter::build(&store, LastWriterWins, Depth::Bottom, Cause::Merge).unwrap();
    push_all(&mut writer, numbered(0..30_000, 100), &LastWriterWins).unwrap();
    let written = store.disk.writing_bytes();
    assert!(written >= 1 << 20);
    drop(writer);
    assert_counted(&store, 0, 0, written);
    assert!(store.trash.empty(&*store.fs));
    assert_counted(&store, 0, 0, 0);

    two.retire();
    one.retire();
    assert_counted(&store, 0, two.total_bytes(), 0);
    let total = two.total_bytes();
    drop(two);
    assert_counted(&store, 0, total, 0);
    drop(one);
    assert_counted(&store, 0, 0, total);
    assert!(store.trash.empty(&*store.fs));
    assert_counted(&store, 0, 0, 0);
    assert_eq!(store.disk.bytes(), 0);
}

#[test]
fn an_append_to_a_file_that_is_retired_meanwhile_goes_with_it() {
    let store = small(MemoryFs::new());
    let one = build(&store, &numbered(0..1000, 100)).unwrap();
    let mut writer = TreeWriter::append(&one, LastWriterWins, Depth::Bottom, Cause::Spill).unwrap();
    push_all(&mut writer, numbered(0..100, 100), &LastWriterWins).unwrap();
    one.retire();
    assert_counted(&store, 0, one.total_bytes(), 0);
    let two = writer.finish().unwrap();
    assert_counted(&store, 0, two.total_bytes(), 0);
    let total = two.total_bytes();
    drop((one, two));
    assert_counted(&store, 0, 0, total);
    assert!(store.trash.empty(&*store.fs));
    assert_counted(&store, 0, 0, 0);
}

#[test]
fn a_version_that_is_given_up_takes_its_file_along_only_if_that_began_with_it() {
    let store = small(MemoryFs::new());
    let one = build(&store, &numbered(0..1000, 100)).unwrap();
    let two = append(&one, &numbered(0..10, 100)).unwrap();
    two.discard();
    assert!(!two.is_retired() && !one.is_retired());
    assert_counted(&store, 0, 0, 0);
    // By a handle that is only named, too.
    let named = Tree::named(
        &TreeStore { files: std::sync::Arc::default(), ..store.clone() },
        one.version(),
        &Default::default(),
    );
    named.discard();
    assert!(named.is_retired());
    let other = build(&store, &numbered(0..10, 100)).unwrap();
    other.discard();
    assert!(other.is_retired());
    let path = other.path().to_path_buf();
    drop(other);
    assert!(store.trash.empty(&*store.fs) && !store.fs.exists(&path).unwrap());
}

#[test]
fn files_that_are_found_count_once() {
    let fs = MemoryFs::new();
    let before = small(fs.clone());
    let one = build(&before, &numbered(0..1000, 100)).unwrap();
    let two = append(&one, &numbered(0..10, 100)).unwrap();
    let store = TreeStore { disk: std::sync::Arc::default(), ..restarted(&before, fs) };
    let (one, two) = (
        Tree::named(&store, one.version(), &Default::default()),
        Tree::named(&store, two.version(), &Default::default()),
    );
    one.found();
    two.found();
    two.found();
    assert_counted(&store, 0, 0, 0);
    let three = append(&two, &numbered(10..20, 100)).unwrap();
    three.found();
    assert_counted(&store, 0, 0, 0);
    three.retire();
    assert_counted(&store, 0, three.total_bytes(), 0);
    drop((one, two, three));
    assert!(store.trash.empty(&*store.fs));
    assert_counted(&store, 0, 0, 0);
}

#[test]
fn a_failed_append_counts_nothing_that_is_not_there() {
    for (number, kind) in (1..4).flat_map(|number| ["write", "sync"].map(|kind| (number, kind))) {
        for cut_fails in [false, true] {
            let faulty = FaultyFs::new(MemoryFs::new());
            let store = small(faulty.clone());
            let tree = build(&store, &numbered(0..1000, 100)).unwrap();
            faulty.rule(&format!("{kind} *.tree #{number} no-space")).unwrap();
            if cut_fails {
                faulty.rule("set_len *.tree #1 io-error").unwrap();
            }
            let failed = append(&tree, &numbered(0..25_000, 100)).is_err();
            assert_eq!(failed, faulty.fired() > 0);
            let left = store.disk.writing_bytes();
            assert!(left == 0 || failed && cut_fails, "{kind} {number}: {left}");
            assert_counted(&store, left, 0, 0);
            faulty.clear();
            if failed && number == 2 {
                // What could not be cut off goes with the file.
                tree.retire();
                drop(tree);
                assert!(store.trash.empty(&*store.fs));
            } else {
                append(&tree, &numbered(0..10, 100)).unwrap();
            }
            assert_counted(&store, 0, 0, 0);
        }
    }
}
