//! How much is read for what.

use std::sync::Arc;

use forebay_base::combine::Depth;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::{LastWriterWins, Order, Range};
use forebay_cow_tree::{NodeCache, Reading, Tree, TreeCursor, TreeOptions, TreeStore, TreeWriter};
use forebay_env::fs::{MemoryFs, TracedFs};
use forebay_store::{Cause, Owner};

use crate::common::{append, build, content, find, numbered, small, store};

#[test]
fn a_get_reads_what_its_writer_did_not_leave_in_the_cache() {
    let mut store = small(MemoryFs::new());
    // Room for all nodes.
    store.cache = Arc::new(NodeCache::new(16 << 20));
    let inline = build(&store, &numbered(0..3000, 10)).unwrap();
    let apart = build(&store, &numbered(0..3000, 1000)).unwrap();
    let reads_of = |tree: &Tree| {
        let before = store.metrics.page_reads.get();
        assert!(find(tree, b"0000000100").unwrap().is_some());
        store.metrics.page_reads.get() - before
    };
    assert_eq!([reads_of(&inline), reads_of(&inline)], [1, 0], "a leaf that has its values is read once");
    assert_eq!([reads_of(&apart), reads_of(&apart)], [1, 1], "one that leads to them is there, each is read");
    let newer = append(&apart, &numbered((0..3000).step_by(50), 1000)).unwrap();
    assert_eq!(reads_of(&newer), 1, "an append leaves such nodes in the cache");
    let elsewhere = TreeStore { cache: Arc::new(NodeCache::new(16 << 20)), ..store.clone() };
    let cold = Tree::open(&elsewhere, newer.version()).unwrap();
    let height = newer.height() as u64;
    assert_eq!([reads_of(&cold), reads_of(&cold)], [height + 1, 1], "nodes from the top down, and the value");
}

#[test]
fn a_merge_reads_each_window_about_once() {
    let fs = TracedFs::new(MemoryFs::new());
    let mut store = small(fs.clone());
    store.cache = Arc::new(NodeCache::new(16 << 20));
    let mut tree = build(&store, &numbered(0..20_000, 100)).unwrap();
    for round in 0..3 {
        tree = append(&tree, &numbered((0..20_000).skip(round).step_by(7), 100)).unwrap();
    }
    let before = store.metrics.list_bytes_read[Cause::Merge as usize].get();
    fs.reset_counts();
    assert_eq!(content(&tree).unwrap().len(), 20_000);
    let read = store.metrics.list_bytes_read[Cause::Merge as usize].get() - before;
    assert!(read < tree.total_bytes() * 5 / 4, "{read} of {}", tree.total_bytes());
    let reads = fs.counts().reads;
    assert!(reads < tree.total_bytes() / (64 << 10) * 3 / 2, "{reads} of {}", tree.total_bytes());
}

#[test]
fn a_scan_does_not_read_beyond_its_range() {
    let store = small(MemoryFs::new());
    let tree = build(&store, &numbered(0..3000, 10)).unwrap();
    let order = Order::Lexical;
    // The bounds above the leaves tell that no record of the range is in the leaf beside.
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
            assert_eq!(nodes, tree.height() as u64, "{number}: one leaf");
        }
    }
}

/// One by one each would be a wait for the device.
#[test]
fn a_scan_that_goes_on_reads_the_next_values_together() {
    let (store, order) = (store(MemoryFs::new(), TreeOptions::new(Order::Lexical)), Order::Lexical);
    let mut tree = build(&store, &numbered(0..400, 1000)).unwrap();
    // No value lies beside that of the next key.
    for round in 0..8 {
        tree = append(&tree, &numbered((round..400).step_by(8), 1000)).unwrap();
    }
    let bound = |number: u64| order.bound(format!("{number:010}").as_bytes());
    let reads_of = |range: &Range, place: u64, direction: Direction, advances: usize| {
        let (reads, place) = (|| store.metrics.page_reads.get(), bound(place));
        let mut cursor = TreeCursor::new(&tree, range, direction, Reading::Scan).unwrap();
        cursor.seek(Some((place.prefix, &place.key)), direction).unwrap();
        let reads_of_one = |_| {
            let before = reads();
            cursor.advance().unwrap();
            reads() - before
        };
        (0..advances).map(reads_of_one).collect::<Vec<u64>>()
    };
    for (place, direction) in [(20, Direction::Forward), (60, Direction::Backward)] {
        let reads = reads_of(&Range::all(), place, direction, 13);
        // Of twelve, four lie beside one other, and of twice as many there are eight places.
        assert_eq!(reads, [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8], "{direction:?}");
    }
    let short = Range { low: bound(20), high: Some(bound(23)) };
    assert_eq!(reads_of(&short, 20, Direction::Forward, 3), [2, 0, 0], "none beyond the range");
    assert_eq!(store.metrics.memory.now(Owner::Scanning), 0, "what was read is given back");
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
fn a_writer_tells_what_its_pushes_move() {
    let store = small(MemoryFs::new());
    let tree = build(&store, &numbered(0..20_000, 10)).unwrap();
    // Each record of the batch lies in a leaf of its own: it moves many times its own bytes.
    let mut batch = numbered((0..20_000).step_by(40), 10);
    let mut writer = TreeWriter::append(&tree, LastWriterWins, Depth::Bottom, Cause::Spill).unwrap();
    let (mut steps, mut told) = (0, 0);
    while let Some(prefix) = batch.prefix() {
        writer.push(prefix, &batch.record()).unwrap();
        let bytes = writer.bytes();
        assert!(bytes >= told && bytes - told < 4096, "a push writes some nodes at most: {told} to {bytes}");
        steps += bytes / 2048 - told / 2048;
        told = bytes;
        batch.advance().unwrap();
    }
    assert!(steps > 40, "{steps}");
    assert_eq!(writer.last_key(), b"0000019960");
    let written = writer.finish().unwrap().total_bytes() - tree.total_bytes();
    assert!(
        (told..told + 2 * 4096 + 2 * 256 * tree.height() as u64).contains(&written),
        "{written} bytes were written, {told} told of"
    );
}
