//! Values in value files: counted to the byte from version to version, moved out of files that are emptied, and there as
//! long as any version may be read.

use std::path::Path;
use std::sync::Arc;

use forebay_base::combine::Depth;
use forebay_base::{Kind, LastWriterWins, Record, Result, ValuePointer};
use forebay_cow_tree::{Tree, TreeStore, TreeWriter};
use forebay_env::Access;
use forebay_env::fs::MemoryFs;
use forebay_store::{Cause, ValueFile, names};

use crate::common::{find, small};

const VALUE: usize = 100;

/// A value file of the values of keys 0 to 255.
fn value_file(store: &TreeStore, id: u64) -> Arc<ValueFile> {
    let file = store.fs.create(&names::values(Path::new("/db"), id), Access::Buffered).unwrap();
    (0..=255u8).for_each(|key| file.write_at(u64::from(key) * VALUE as u64, &[key; VALUE]).unwrap());
    store.values.named(id, 256 * VALUE as u64)
}

/// What a batch does with a key.
#[derive(Clone, Copy)]
enum Change {
    Point(u64),
    Put,
    Delete,
}

fn write(
    mut writer: TreeWriter<LastWriterWins>,
    changes: impl Iterator<Item = (u8, Change)>,
) -> Result<Tree> {
    for (key, change) in changes {
        let mut pointer = Vec::new();
        let (kind, value) = match change {
            Change::Point(file) => {
                let place = u64::from(key) * VALUE as u64;
                ValuePointer::new(file, place, &[key], &[key; VALUE]).encode(&mut pointer);
                (Kind::Pointer, &pointer[..])
            }
            Change::Put => (Kind::Put, &b"short"[..]),
            Change::Delete => (Kind::Delete, &b""[..]),
        };
        writer.push(u64::from(key) << 56, &Record { kind, key: &[key], value })?;
    }
    writer.finish()
}

fn build(store: &TreeStore, changes: impl Iterator<Item = (u8, Change)>) -> Tree {
    let writer = TreeWriter::build(store, LastWriterWins, Depth::Partial, Cause::Merge).unwrap();
    write(writer, changes).unwrap()
}

fn append(tree: &Tree, changes: impl Iterator<Item = (u8, Change)>) -> Tree {
    let writer = TreeWriter::append(tree, LastWriterWins, Depth::Partial, Cause::Merge).unwrap();
    write(writer, changes).unwrap()
}

/// How many values a version has in which file.
fn counts(tree: &Tree) -> Vec<(u64, u64)> {
    tree.value_shares().iter().map(|share| (share.file, share.bytes / VALUE as u64)).collect()
}

fn check(store: &TreeStore, tree: &Tree, key: u8) {
    let (kind, value) = find(tree, &[key]).unwrap().unwrap();
    assert_eq!((kind, store.values.load(&[key], &value).unwrap()), (Kind::Pointer, vec![key; VALUE]));
}

/// The value files that are there once what was given up is gone.
fn value_files(store: &TreeStore) -> Vec<u64> {
    store.trash.empty(&*store.fs);
    let names = store.fs.list(&store.dir).unwrap();
    let ids = names.iter().filter_map(|name| names::parse(name)).filter(|(_, end)| *end == "values");
    ids.map(|(id, _)| id).collect()
}

#[test]
fn what_a_version_has_in_which_file_is_counted_to_the_byte() {
    let store = small(MemoryFs::new());
    let files = [1, 2, 3].map(|id| value_file(&store, id));
    let first = build(&store, (0..200).map(|key| (key, Change::Point(1))));
    assert_eq!(counts(&first), [(1, 200)]);
    let second = append(&first, (0..200).step_by(2).map(|key| (key, Change::Point(2))));
    assert_eq!(counts(&second), [(1, 100), (2, 100)]);
    let changes = [(0, Change::Delete), (1, Change::Put), (2, Change::Point(1)), (3, Change::Point(3))];
    let third = append(&second, changes.into_iter());
    assert_eq!(counts(&third), [(1, 99), (2, 98), (3, 1)]);
    let fourth = append(&third, [(0, Change::Point(3)), (1, Change::Point(3))].into_iter());
    assert_eq!(counts(&fourth), [(1, 99), (2, 98), (3, 3)]);
    for tree in [&first, &second, &third, &fourth] {
        tree.verify().unwrap();
        (4..200).for_each(|key| check(&store, tree, key));
    }
    drop(files);
}

/// One that nothing of is left in a version is named all the same: earlier versions may be read as long as their file is
/// there.
#[test]
fn a_version_names_the_value_files_of_those_before_it() {
    let store = small(MemoryFs::new());
    drop([1, 2, 3].map(|id| value_file(&store, id)));
    let files: Vec<_> = [1, 2].iter().map(|&id| store.values.named(id, 256 * VALUE as u64)).collect();
    let first = build(&store, (0..200).map(|key| (key, Change::Point(1))));
    let second = append(&first, (0..200).map(|key| (key, Change::Point(2))));
    drop(files);
    assert_eq!(counts(&second), [(1, 0), (2, 200)]);
    second.verify().unwrap();
    // As after a restart, by the newest version alone.
    let again = TreeStore { files: Arc::default(), ..store.clone() };
    let newest = Tree::named(&again, second.version(), second.value_shares());
    newest.found();
    drop((second, newest, again));
    assert_eq!(value_files(&store), [1, 2, 3]);
    (0..200).for_each(|key| check(&store, &first, key));
    first.retire();
    assert_eq!(value_files(&store), [1, 2, 3], "somebody reads it");
    (0..200).for_each(|key| check(&store, &first, key));
}

#[test]
fn value_files_go_with_the_file_of_the_tree_and_its_readers() {
    let store = small(MemoryFs::new());
    let files = [1, 2].map(|id| value_file(&store, id));
    let first = build(&store, (0..200).map(|key| (key, Change::Point(1))));
    let second = append(&first, (0..200).map(|key| (key, Change::Point(2))));
    drop(files);
    drop(first);
    assert_eq!(value_files(&store), [1, 2], "a version that nobody has any more may be named by a manifest");
    second.retire();
    assert_eq!(value_files(&store), [1, 2], "somebody reads it");
    drop(second);
    assert_eq!(value_files(&store), [0; 0]);
}

/// What came with an append that nobody takes goes with it, and what was there before stays.
#[test]
fn what_comes_with_an_append_that_is_given_up_goes() {
    let store = small(MemoryFs::new());
    let files = [1, 2].map(|id| value_file(&store, id));
    let first = build(&store, (0..200).map(|key| (key, Change::Point(1))));
    let second = append(&first, (0..100).map(|key| (key, Change::Point(2))));
    drop(files);
    second.discard();
    assert_eq!(value_files(&store), [1, 2], "somebody has it");
    drop(second);
    assert_eq!(value_files(&store), [1]);
    (0..200).for_each(|key| check(&store, &first, key));
    // One that is broken off.
    let file = value_file(&store, 3);
    let mut writer = TreeWriter::append(&first, LastWriterWins, Depth::Partial, Cause::Merge).unwrap();
    let pointer = |key: u8| ValuePointer::new(3, u64::from(key) * VALUE as u64, &[key], &[key; VALUE]);
    let mut bytes = Vec::new();
    pointer(7).encode(&mut bytes);
    writer.push(7 << 56, &Record { kind: Kind::Pointer, key: &[7], value: &bytes }).unwrap();
    drop((writer, file));
    check(&store, &first, 7);
    first.verify().unwrap();
}

#[test]
fn values_are_moved_out_of_files_that_are_emptied() {
    let store = small(MemoryFs::new());
    let files = [1, 2].map(|id| value_file(&store, id));
    let first = build(&store, (0..200).map(|key| (key, Change::Point(1))));
    files[0].collect(files[0].bytes());
    store.values.set_collecting(true);
    // Of the tree's own what is copied is moved, and of the batch all.
    let second = append(&first, (0..20).map(|key| (key, Change::Point(1 + u64::from(key) % 2))));
    let moved: u64 = counts(&second).iter().filter(|(id, _)| *id > 2).map(|(_, values)| values).sum();
    assert!((11..200).contains(&moved), "{moved}");
    assert_eq!(counts(&second)[..2], [(1, 190 - moved), (2, 10)]);
    for tree in [&first, &second] {
        tree.verify().unwrap();
        (0..200).for_each(|key| check(&store, tree, key));
    }
    let third = append(&second, (0..200).step_by(2).map(|key| (key, Change::Point(2))));
    assert_eq!(counts(&third)[0], (1, 0), "all leaves are copied");
    third.verify().unwrap();
    (0..200).for_each(|key| check(&store, &third, key));
    // Where the value cannot be read it stays, and its file is given up.
    let torn = store.fs.open(&names::values(&store.dir, 2), Access::Buffered).unwrap();
    torn.set_len(50 * VALUE as u64).unwrap();
    files[1].collect(files[1].bytes());
    let fourth = append(&third, (0..200).step_by(10).map(|key| (key, Change::Put)));
    assert!(files[1].is_stuck() && !files[1].is_collected());
    let mut faults = Vec::new();
    fourth.check(&mut faults).unwrap();
    assert!(!faults.is_empty() && faults.iter().all(|fault| fault.is_corruption()), "{faults:?}");
}

#[test]
fn a_version_is_held_against_what_the_manifest_has_of_it() {
    let store = small(MemoryFs::new());
    let _files = [1, 2].map(|id| value_file(&store, id));
    let tree = build(&store, (0..200).map(|key| (key, Change::Point(1 + u64::from(key % 2)))));
    let mut shares = tree.value_shares().to_vec();
    shares[1].bytes -= VALUE as u64;
    let told = Tree::named(&store, tree.version(), &shares.into()).verify().unwrap_err();
    assert!(told.is_corruption() && told.to_string().contains("the manifest"), "{told}");
}
