//! What trees look like after one thing or another.

use forebay_base::combine::Depth;
use forebay_base::merge::Direction;
use forebay_base::{Kind, LastWriterWins, Order, Range};
use forebay_cow_tree::TreeCursor;
use forebay_env::Rng;
use forebay_env::fs::MemoryFs;

use crate::common::{Batch, append, build, build_by, content, long_reads, numbered, small};

#[test]
fn keys_that_only_grow_leave_full_leaves() {
    let store = small(MemoryFs::new());
    let mut tree = build(&store, &numbered(0..10, 10)).unwrap();
    for batch in 1..100 {
        tree = append(&tree, &numbered(batch * 10..batch * 10 + 10, 10)).unwrap();
    }
    let packed = build(&store, &numbered(0..1000, 10)).unwrap();
    let (grown, packed) = (tree.verify().unwrap(), packed.verify().unwrap());
    assert!(grown.leaves <= packed.leaves + 2, "{grown:?}, {packed:?}");
}

#[test]
fn what_is_left_of_many_deletes_shrinks() {
    let store = small(MemoryFs::new());
    let tree = build(&store, &numbered(0..2000, 10)).unwrap();
    assert!(tree.height() > 2);
    let gone = |number: &u64| !number.is_multiple_of(100);
    let deletes =
        (0..2000).filter(gone).map(|number| (Kind::Delete, format!("{number:010}").into_bytes(), Vec::new()));
    let tree = append(&tree, &Batch::new(Order::Lexical, deletes.collect())).unwrap();
    assert_eq!((tree.records(), tree.height()), (20, 2));
    assert!(tree.verify().unwrap().leaves <= 3, "{:?}", tree.verify());
    let rest = (0..2000).map(|number| (Kind::Delete, format!("{number:010}").into_bytes(), Vec::new()));
    let tree = append(&tree, &Batch::new(Order::Lexical, rest.collect())).unwrap();
    assert_eq!((tree.records(), tree.height()), (0, 0));
    assert_eq!(tree.live_bytes(), 4096 + tree.verify().unwrap().filter_bytes, "root and filter");
    let tree = append(&tree, &numbered(5..6, 10)).unwrap();
    assert_eq!(content(&tree).unwrap().len(), 1);
}

#[test]
fn a_rebuilt_tree_is_the_same_and_smaller() {
    let fs = MemoryFs::new();
    let store = small(fs.clone());
    let mut tree = build(&store, &numbered(0..1000, 100)).unwrap();
    for round in 0..5 {
        tree = append(&tree, &numbered((0..1000).skip(round).step_by(3), 100)).unwrap();
    }
    assert!(tree.total_bytes() > 2 * tree.live_bytes());
    let all = TreeCursor::new(&tree, &Range::all(), Direction::Forward, long_reads()).unwrap();
    let rebuilt = build_by(&store, all, LastWriterWins, Depth::Bottom).unwrap();
    assert_eq!(content(&rebuilt).unwrap(), content(&tree).unwrap());
    assert!(rebuilt.total_bytes() - rebuilt.live_bytes() < 4096);
    assert!(rebuilt.live_bytes() <= tree.live_bytes());
    let path = tree.path().to_path_buf();
    tree.retire();
    assert!(!store.trash.empty(&*store.fs), "it is still open");
    drop(tree);
    assert!(store.trash.empty(&*store.fs) && !store.fs.exists(&path).unwrap());
}

#[test]
fn leaves_that_lose_records_here_and_there_are_joined() {
    let store = small(MemoryFs::new());
    let mut tree = build(&store, &numbered(0..2000, 10)).unwrap();
    let mut numbers: Vec<u64> = (0..2000).collect();
    Rng::new(1).shuffle(&mut numbers);
    for some in numbers[..1800].chunks(3) {
        let gone = some.iter().map(|number| (Kind::Delete, format!("{number:010}").into_bytes(), Vec::new()));
        tree = append(&tree, &Batch::new(Order::Lexical, gone.collect())).unwrap();
    }
    let census = tree.verify().unwrap();
    assert!(census.leaves < 60, "some 16 records fit a leaf: {census:?}");
}

#[test]
fn a_leaf_that_falls_in_two_leaves_room_in_both() {
    let store = small(MemoryFs::new());
    let even = |first: u64| numbered((first..20_000).step_by(800), 10);
    let mut tree = build(&store, &numbered((0..20_000).step_by(10), 10)).unwrap();
    let built = tree.verify().unwrap().leaves;
    // A record here and there: the first ones divide leaves, those behind them find room.
    tree = append(&tree, &even(1)).unwrap();
    let divided = tree.verify().unwrap().leaves;
    for first in 2..5 {
        tree = append(&tree, &even(first)).unwrap();
    }
    assert!(divided > built + 20, "{built} leaves became {divided}");
    assert_eq!(tree.verify().unwrap().leaves, divided);
}
