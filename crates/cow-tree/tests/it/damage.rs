//! Every byte of a small file, damaged in turn: an error that names it, or the right answer.

use std::sync::Arc;

use forebay_base::codec::Codec;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Error, Order, Range, Result};
use forebay_cow_tree::{NodeCache, Reading, Tree, TreeCursor, TreeOptions, TreeStore, Version, last_root};
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{Access, FileSystem};

use crate::common::{Batch, Model, append, build, content, find, restarted, small, store};

fn numbered(numbers: impl Iterator<Item = u64>, value_bytes: usize) -> Batch {
    let record = |number: u64| (format!("key{number:04}").into_bytes(), vec![number as u8; value_bytes]);
    Batch::puts(Order::Lexical, numbers.map(record))
}

/// Walks backwards, as a user does.
fn backwards(tree: &Tree) -> Result<Model> {
    let mut cursor = TreeCursor::new(tree, &Range::all(), Direction::Backward, Reading::Scan)?;
    cursor.seek(None, Direction::Backward)?;
    let mut seen = Model::new();
    while let Some(prefix) = cursor.prefix() {
        let record = cursor.record();
        seen.insert((prefix, record.key.to_vec()), (record.kind, record.value.to_vec()));
        cursor.advance()?;
    }
    Ok(seen)
}

/// Asserts that a failure is damage in that file.
fn is_reported(error: &Error, store: &TreeStore) -> bool {
    matches!(error, Error::Corruption { file, .. } if file.starts_with(&store.dir))
}

#[test]
fn a_flipped_byte_is_an_error_or_makes_no_difference() {
    [Codec::None, Codec::Lz4].into_iter().for_each(flip_each_byte);
}

fn flip_each_byte(codec: Codec) {
    let fs = MemoryFs::new();
    let options = TreeOptions { node_bytes_max: 120, codec, ..TreeOptions::new(Order::Lexical) };
    let store = store(fs.clone(), options);
    let first = build(&store, &numbered(0..30, 20)).unwrap();
    let tree = append(&first, &numbered((0..40).step_by(5), 90)).unwrap();
    let versions = [(first.version(), content(&first).unwrap()), (tree.version(), content(&tree).unwrap())];
    let file = fs.open(tree.path(), Access::Buffered).unwrap();
    let mut bytes = vec![0; tree.total_bytes() as usize];
    file.read_at(0, &mut bytes).unwrap();
    let mut reported = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        file.write_at(at as u64, &[byte ^ 0x40]).unwrap();
        for (version, model) in &versions {
            let mut store = restarted(&store, fs.clone());
            store.cache = NodeCache::new(1 << 20).into();
            let walked = Tree::open(&store, *version).and_then(|tree| {
                for ((_, key), record) in model {
                    match find(&tree, key) {
                        Ok(found) => assert_eq!(found.as_ref(), Some(record), "byte {at}"),
                        Err(error) => assert!(is_reported(&error, &store), "{error}"),
                    }
                }
                match backwards(&tree) {
                    Ok(seen) => assert_eq!(&seen, model, "byte {at}"),
                    Err(error) => assert!(is_reported(&error, &store), "{error}"),
                }
                tree.verify()?;
                content(&tree)
            });
            match walked {
                Ok(seen) => assert_eq!(&seen, model, "byte {at}"),
                Err(error) => {
                    assert!(is_reported(&error, &store), "{error}");
                    reported += 1;
                }
            }
        }
        file.write_at(at as u64, &[byte]).unwrap();
    }
    let live = first.live_bytes() + tree.live_bytes();
    assert_eq!(reported, live, "what a version reaches, and nothing else");
}

#[test]
fn a_file_that_is_cut_is_an_error() {
    let fs = MemoryFs::new();
    let store = store(fs.clone(), TreeOptions::new(Order::Lexical));
    let tree = build(&store, &numbered(0..100, 100)).unwrap();
    let file = fs.open(tree.path(), Access::Buffered).unwrap();
    for cut in (0..tree.total_bytes()).rev().step_by(977) {
        file.set_len(cut).unwrap();
        let error = Tree::open(&restarted(&store, fs.clone()), tree.version()).unwrap_err();
        assert!(is_reported(&error, &store) && error.to_string().contains("offset"), "{error}");
    }
}

#[test]
fn a_damaged_root_leads_to_the_one_before_only_if_asked() {
    let fs = MemoryFs::new();
    let store = store(fs.clone(), TreeOptions::new(Order::Lexical));
    let first = build(&store, &numbered(0..100, 100)).unwrap();
    let tree = append(&first, &numbered(50..60, 50)).unwrap();
    assert_eq!(last_root(&store, 7, u64::MAX).unwrap(), Some(tree.version()));
    assert_eq!(last_root(&store, 7, tree.total_bytes() - 1).unwrap(), Some(first.version()));
    assert_eq!(last_root(&store, 7, first.total_bytes() - 1).unwrap(), None);
    let file = fs.open(tree.path(), Access::Buffered).unwrap();
    file.write_at(tree.version().root_at + 77, b"?").unwrap();
    let restarted = restarted(&store, fs.clone());
    let error = Tree::open(&restarted, tree.version()).unwrap_err();
    let stale = Version { digest: first.version().digest ^ 1, ..first.version() };
    assert!(Tree::open(&restarted, stale).is_err(), "a whole root, but another one");
    let place = format!("00000007.tree at offset {}", tree.version().root_at);
    assert!(error.to_string().contains(&place), "{error}");
    let before = last_root(&restarted, 7, tree.version().root_at).unwrap().unwrap();
    assert_eq!(before, first.version());
    assert_eq!(content(&Tree::open(&restarted, before).unwrap()).unwrap(), content(&first).unwrap());
}

#[test]
fn a_root_whose_append_is_torn_does_not_count() {
    let fs = MemoryFs::new();
    let store = store(fs.clone(), TreeOptions::new(Order::Lexical));
    let first = build(&store, &numbered(0..100, 100)).unwrap();
    let tree = append(&first, &numbered(50..60, 50)).unwrap();
    let file = fs.open(tree.path(), Access::Buffered).unwrap();
    for at in first.total_bytes()..tree.version().root_at {
        let mut byte = [0];
        file.read_at(at, &mut byte).unwrap();
        file.write_at(at, &[byte[0] ^ 1]).unwrap();
        assert_eq!(last_root(&store, 7, u64::MAX).unwrap(), Some(first.version()), "byte {at}");
        file.write_at(at, &byte).unwrap();
    }
}

/// Walks forwards from a record on, up to where it fails.
fn forwards(tree: &Tree, from: &str) -> (Vec<Vec<u8>>, Option<Error>) {
    let mut seen = Vec::new();
    let mut walk = || {
        let mut cursor = TreeCursor::new(tree, &Range::all(), Direction::Forward, Reading::Scan)?;
        cursor.seek(Some((Order::Lexical.prefix(from.as_bytes()), from.as_bytes())), Direction::Forward)?;
        while cursor.prefix().is_some() {
            seen.push(cursor.record().key.to_vec());
            cursor.advance()?;
        }
        Ok(())
    };
    let failed = walk().err();
    (seen, failed)
}

/// It is read together with others: those before it are answered, and in salvage those behind it.
#[test]
fn a_damaged_value_is_told_of_at_its_turn() {
    for codec in [Codec::None, Codec::Lz4] {
        let fs = MemoryFs::new();
        let options = TreeOptions { codec, ..TreeOptions::new(Order::Lexical) };
        let store = store(fs.clone(), options);
        let uneven = |number: u64| -> Vec<u8> {
            let rest = (0..900_u64).map(|at| (at * at + number * 77 + at * number) as u8);
            format!("value {number:04}").into_bytes().into_iter().chain(rest).collect()
        };
        let keyed = |number: u64| (format!("key{number:04}").into_bytes(), uneven(number));
        let tree = build(&store, &Batch::puts(Order::Lexical, (0..100).map(keyed))).unwrap();
        let file = fs.open(tree.path(), Access::Buffered).unwrap();
        let mut bytes = vec![0; tree.total_bytes() as usize];
        file.read_at(0, &mut bytes).unwrap();
        let at = bytes.windows(10).position(|some| some == b"value 0050").unwrap();
        file.write_at(at as u64 + 9, b"damaged").unwrap();
        let is_fifty = |key: &Vec<u8>| key == b"key0050";
        let (seen, failed) = forwards(&tree, "key0041");
        assert_eq!(seen.last().map(|key| &key[..]), Some(&b"key0049"[..]), "{codec:?}");
        assert!(is_reported(&failed.unwrap(), &store));
        let salvaging = TreeStore { salvage: Some(Arc::default()), ..restarted(&store, fs.clone()) };
        let (seen, failed) = forwards(&Tree::open(&salvaging, tree.version()).unwrap(), "key0041");
        assert!(failed.is_none() && seen.len() == 58 && !seen.iter().any(is_fifty), "{codec:?}: {failed:?}");
        let gaps = salvaging.salvage.as_ref().map(|gaps| gaps.all()).unwrap();
        assert_eq!(gaps.len(), 1, "{gaps:?}");
    }
}

/// What stands beside the piece that was wanted is read by itself.
#[test]
fn a_window_that_cannot_be_read_takes_nothing_with_it() {
    let faulty = FaultyFs::new(MemoryFs::new());
    let store = small(faulty.clone());
    let tree = build(&store, &crate::common::numbered(0..20_000, 20)).unwrap();
    let salvaging = TreeStore { salvage: Some(Arc::default()), ..store.clone() };
    let mut harmless = 0;
    for number in 1..60 {
        let tree = Tree::open(&restarted(&salvaging, faulty.clone()), tree.version()).unwrap();
        faulty.rule(&format!("read *.tree #{number} io-error")).unwrap();
        let (seen, failed) = forwards(&tree, "");
        assert!(failed.is_none() && faulty.fired() == number, "{number}: {failed:?}");
        harmless += u32::from(seen.len() == 20_000);
        faulty.clear();
    }
    assert!(harmless > 3, "{harmless} of the failed reads were of windows");
}
