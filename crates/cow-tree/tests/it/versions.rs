//! Batches of every kind against a map for each version, old ones included.

use std::sync::Arc;

use forebay_base::combine::Depth;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Kind, LastWriterWins, Order, Range};
use forebay_cow_tree::{NodeCache, Reading, Tree, TreeCursor, TreeJob, TreeOptions, TreeStore};
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, FileSystem, Rng};
use forebay_store::Cause;

use crate::common::{
    Batch, Concatenate, Model, append, assert_same, build, content, find, key, long_reads, restarted, run,
    store, value,
};

fn batch(order: Order, rng: &mut Rng) -> Batch {
    let records = [0, 1, 3, 30, 300, 1200][rng.index(6)];
    // Some batches delete nearly everything, so that nodes become scant and levels go.
    let deleted_percent = [0, 20, 95][rng.index(3)];
    let record = |rng: &mut Rng| {
        let kind = match rng.chance(deleted_percent) {
            true => Kind::Delete,
            false if rng.chance(30) => Kind::Merge,
            false => Kind::Put,
        };
        let value = if kind == Kind::Delete { Vec::new() } else { value(rng) };
        (kind, key(rng), value)
    };
    Batch::new(order, (0..records).map(|_| record(rng)).collect())
}

#[test]
fn every_version_is_what_a_map_says() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let order = [Order::Lexical, Order::Hashed { seed }, Order::Colliding { bits: 3 }][rng.index(3)];
        let options = TreeOptions {
            order,
            node_bytes_max: [64, 200, 1000, 4096][rng.index(4)],
            inline_value_bytes_max: [0, 16, 64, 5000][rng.index(4)],
        };
        let depth = [Depth::Bottom, Depth::Partial][rng.index(2)];
        let fs = MemoryFs::new();
        let mut store = store(fs.clone(), options);
        let mut versions: Vec<(Tree, Model)> = Vec::new();
        let mut model = Model::new();
        let first = batch(order, &mut rng);
        first.apply(&mut model, &Concatenate, depth);
        let job = TreeJob::build(&store, first, Concatenate, depth, Cause::Merge).unwrap();
        versions.push((run(job, 1 << 12).unwrap(), model));
        for round in 0..12 {
            // Mostly the newest version; now and then something is appended to an old one.
            let back = if rng.chance(85) { 1 } else { 1 + rng.index(versions.len()) };
            let (tree, model) = &versions[versions.len() - back];
            let (tree, mut model) = (tree.clone(), model.clone());
            let next = if rng.chance(15) {
                let all = TreeCursor::new(&tree, &Range::all(), Direction::Forward, long_reads()).unwrap();
                let job = TreeJob::build(&store, all, Concatenate, Depth::Partial, Cause::Merge).unwrap();
                let next = run(job, 1 << 14).unwrap();
                assert!(next.total_bytes() - next.live_bytes() < 4096, "only padding is not live");
                next
            } else {
                let batch = batch(order, &mut rng);
                batch.apply(&mut model, &Concatenate, depth);
                let job = TreeJob::append(&tree, batch, Concatenate, depth, Cause::Spill);
                run(job, [1, 1 << 12, 1 << 20][rng.index(3)]).unwrap()
            };
            let file = fs.open_read(next.path(), Access::Random).unwrap();
            let is_new = next.version() != tree.version();
            assert!(!is_new || file.len().unwrap() == next.total_bytes(), "nothing is behind the root");
            assert_same(&next, &model, order, &mut rng);
            versions.push((next, model));
            let old = &versions[rng.index(versions.len())];
            assert_same(&old.0, &old.1, order, &mut rng);
            if rng.chance(10) {
                store = restarted(&store, fs.clone());
                for (tree, _) in &mut versions {
                    *tree = Tree::open(&store, tree.version()).unwrap();
                }
            }
            if rng.chance(20) && round > 3 {
                versions.remove(0);
            }
        }
    }
}

fn small(fs: Arc<dyn FileSystem>) -> TreeStore {
    store(fs, TreeOptions { node_bytes_max: 256, ..TreeOptions::new(Order::Lexical) })
}

fn numbered(numbers: impl Iterator<Item = u64>, value_bytes: usize) -> Batch {
    let record = |number: u64| (format!("{number:010}").into_bytes(), vec![number as u8; value_bytes]);
    Batch::puts(Order::Lexical, numbers.map(record))
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
    let job = TreeJob::build(&store, all, LastWriterWins, Depth::Bottom, Cause::Merge).unwrap();
    let rebuilt = run(job, 1 << 20).unwrap();
    assert_eq!(content(&rebuilt).unwrap(), content(&tree).unwrap());
    assert!(rebuilt.total_bytes() - rebuilt.live_bytes() < 4096);
    assert!(rebuilt.live_bytes() <= tree.live_bytes());
    let path = tree.path().to_path_buf();
    tree.retire();
    assert_eq!(store.trash.take(), Vec::<std::path::PathBuf>::new(), "it is still open");
    drop(tree);
    assert_eq!(store.trash.take(), [path]);
}

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
    assert_eq!(tree.records(), 20);
    assert!(tree.verify().unwrap().leaves <= 3, "{:?}", tree.verify());
    let rest = (0..2000).map(|number| (Kind::Delete, format!("{number:010}").into_bytes(), Vec::new()));
    let tree = append(&tree, &Batch::new(Order::Lexical, rest.collect())).unwrap();
    assert_eq!((tree.records(), tree.height(), tree.live_bytes()), (0, 0, 4096));
    let tree = append(&tree, &numbered(5..6, 10)).unwrap();
    assert_eq!(content(&tree).unwrap().len(), 1);
}

#[test]
fn a_get_reads_a_leaf_and_a_value_apart() {
    let mut store = small(MemoryFs::new());
    // Room for all inner nodes, so that only leaves are read.
    store.cache = Arc::new(NodeCache::new(16 << 20));
    let inline = build(&store, &numbered(0..3000, 10)).unwrap();
    let apart = build(&store, &numbered(0..3000, 1000)).unwrap();
    for (tree, reads) in [(&inline, 1), (&apart, 2)] {
        let before = store.metrics.page_reads.get();
        assert!(find(tree, b"0000000100").unwrap().is_some());
        assert_eq!(store.metrics.page_reads.get() - before, reads);
        assert!(find(tree, b"0000000100").unwrap().is_some());
        assert_eq!(store.metrics.page_reads.get() - before, 2 * reads - 1, "the leaf is in the cache");
    }
    let newer = append(&apart, &numbered((0..3000).step_by(50), 1000)).unwrap();
    let before = store.metrics.page_reads.get();
    assert!(find(&newer, b"0000000100").unwrap().is_some());
    assert_eq!(store.metrics.page_reads.get() - before, 2, "an append leaves inner nodes in the cache");
}

#[test]
fn a_scan_does_not_read_beyond_its_range() {
    let store = small(MemoryFs::new());
    let tree = build(&store, &numbered(0..3000, 10)).unwrap();
    let order = Order::Lexical;
    // The bounds above the leaves tell that no record of the range is in the leaf beside.
    let mut leaves = 0;
    for number in 1000..1020u64 {
        let (low, high) = (format!("{number:010}"), format!("{:010}", number + 1));
        let range = Range { low: order.bound(low.as_bytes()), high: Some(order.bound(high.as_bytes())) };
        for direction in [Direction::Forward, Direction::Backward] {
            let mut cursor = TreeCursor::new(&tree, &range, direction, Reading::Scan).unwrap();
            let before = store.metrics.page_reads.get() + store.metrics.cache_hits.get();
            cursor.seek(None, direction).unwrap();
            cursor.advance().unwrap();
            assert_eq!(cursor.prefix(), None);
            let nodes = store.metrics.page_reads.get() + store.metrics.cache_hits.get() - before;
            leaves += nodes - (tree.height() as u64 - 1);
        }
    }
    assert!((40..46).contains(&leaves), "{leaves} leaves for 40 walks over one record");
}

#[test]
fn a_merge_reads_each_window_about_once() {
    let store = small(MemoryFs::new());
    let mut tree = build(&store, &numbered(0..20_000, 100)).unwrap();
    for round in 0..3 {
        tree = append(&tree, &numbered((0..20_000).skip(round).step_by(7), 100)).unwrap();
    }
    let before = store.metrics.list_bytes_read[Cause::Merge as usize].get();
    assert_eq!(content(&tree).unwrap().len(), 20_000);
    let read = store.metrics.list_bytes_read[Cause::Merge as usize].get() - before;
    assert!(read < tree.total_bytes() * 5 / 4, "{read} of {}", tree.total_bytes());
}

#[test]
fn keys_are_walked_without_reading_values() {
    let store = store(MemoryFs::new(), TreeOptions::new(Order::Lexical));
    let tree = build(&store, &numbered(0..1000, 1000)).unwrap();
    let before = store.metrics.page_read_bytes.get();
    let mut cursor = TreeCursor::new(&tree, &Range::all(), Direction::Forward, Reading::Keys).unwrap();
    cursor.seek(None, Direction::Forward).unwrap();
    let mut seen = 0;
    while cursor.prefix().is_some() {
        assert!(cursor.record().value.is_empty());
        seen += 1;
        cursor.advance().unwrap();
    }
    assert_eq!(seen, 1000);
    let read = store.metrics.page_read_bytes.get() - before;
    assert!(read < 1000 * 100, "{read}");
}

#[test]
fn one_batch_at_a_time_is_applied_to_a_file() {
    let fs = MemoryFs::new();
    let store = small(fs.clone());
    let tree = build(&store, &numbered(0..100, 10)).unwrap();
    let job = |batch| TreeJob::append(&tree, batch, LastWriterWins, Depth::Bottom, Cause::Spill);
    let mut one = job(numbered(0..50, 10));
    assert!(one.step(1).unwrap().is_none());
    let refused = job(numbered(0..50, 10)).step(1).unwrap_err();
    assert!(refused.to_string().contains("one batch at a time"), "{refused}");
    drop(one);
    let next = run(job(numbered(100..150, 10)), 1 << 20).unwrap();
    assert_eq!(next.records(), 150);
    let nothing =
        run(TreeJob::append(&next, Batch::default(), LastWriterWins, Depth::Bottom, Cause::Spill), 1)
            .unwrap();
    assert_eq!(nothing.version(), next.version(), "an empty batch writes nothing");
    // A build that is given up leaves its file to the trash.
    let mut job =
        TreeJob::build(&store, numbered(0..50, 10), LastWriterWins, Depth::Bottom, Cause::Merge).unwrap();
    assert!(job.step(1).unwrap().is_none());
    drop(job);
    assert_eq!(store.trash.take().len(), 1);
}

#[test]
fn steps_are_bounded_by_what_they_move() {
    let store = small(MemoryFs::new());
    let tree = build(&store, &numbered(0..20_000, 10)).unwrap();
    // Each record of the batch lies in a leaf of its own: it moves many times its own bytes.
    let batch = numbered((0..20_000).step_by(40), 10);
    let mut job = TreeJob::append(&tree, batch, LastWriterWins, Depth::Bottom, Cause::Spill);
    let mut steps = 0;
    while job.step(4096).unwrap().is_none() {
        steps += 1;
    }
    assert!(steps > 40, "{steps}");
}

#[test]
fn a_tail_that_was_left_behind_never_comes_back() {
    let fs = MemoryFs::new();
    let store = small(fs.clone());
    let tree = build(&store, &numbered(0..100, 10)).unwrap();
    // The manifest never hears of this one.
    let lost = append(&tree, &numbered(0..3000, 10)).unwrap().version();
    let store = restarted(&store, fs.clone());
    let tree = Tree::open(&store, tree.version()).unwrap();
    let next = append(&tree, &numbered(100..110, 10)).unwrap();
    assert!(next.version().root_at < lost.root_at);
    let last = forebay_cow_tree::last_root(&store, 7, u64::MAX).unwrap();
    assert_eq!(last, Some(next.version()), "not the root that was cut off");
    assert_eq!(content(&next).unwrap().len(), 110);
    assert!(Tree::open(&store, lost).is_err());
}

#[test]
fn nodes_of_a_tail_that_was_cut_off_are_not_remembered() {
    let store = small(MemoryFs::new());
    let version = build(&store, &numbered(0..100, 10)).unwrap().version();
    let puts = |value: u8| {
        let record = |number: u64| (format!("{number:010}").into_bytes(), vec![value; 10]);
        Batch::puts(Order::Lexical, (0..100).map(record))
    };
    let reopened = || Tree::open(&TreeStore { files: Arc::default(), ..store.clone() }, version).unwrap();
    for value in [1, 2] {
        // All nodes of the second append stand where those of the first one stood, which were read.
        let tree = append(&reopened(), &puts(value)).unwrap();
        let found = find(&tree, b"0000000042").unwrap();
        assert_eq!(found, Some((Kind::Put, vec![value; 10])));
    }
}
