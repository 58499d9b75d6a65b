//! Batches of every kind against a map for each version, old ones included.

use std::sync::Arc;

use forebay_base::codec::Codec;
use forebay_base::combine::Depth;
use forebay_base::merge::Direction;
use forebay_base::{Kind, LastWriterWins, Order, Range, Record};
use forebay_cow_tree::{Tree, TreeCursor, TreeOptions, TreeStore, TreeWriter, last_root};
use forebay_env::fs::MemoryFs;
use forebay_env::{Access, FileSystem, Rng};
use forebay_store::Cause;

use crate::common::{
    Batch, Concatenate, Model, append, append_by, assert_same, build, build_by, content, find, key,
    long_reads, numbered, push_all, restarted, small, store, value,
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
            filter_bits_per_key: [0, 1, 10, 200][rng.index(4)],
            codec: [Codec::None, Codec::Lz4][seed as usize % 2],
        };
        let depth = [Depth::Bottom, Depth::Partial][rng.index(2)];
        let fs = MemoryFs::new();
        let mut store = store(fs.clone(), options);
        let mut versions: Vec<(Tree, Model)> = Vec::new();
        let mut model = Model::new();
        let first = batch(order, &mut rng);
        first.apply(&mut model, &Concatenate, depth);
        versions.push((build_by(&store, first, Concatenate, depth).unwrap(), model));
        for round in 0..12 {
            // Mostly the newest version; now and then something is appended to an old one.
            let back = if rng.chance(85) { 1 } else { 1 + rng.index(versions.len()) };
            let (tree, model) = &versions[versions.len() - back];
            let (tree, mut model) = (tree.clone(), model.clone());
            let next = if rng.chance(15) {
                let all = TreeCursor::new(&tree, &Range::all(), Direction::Forward, long_reads()).unwrap();
                let next = build_by(&store, all, Concatenate, Depth::Partial).unwrap();
                assert!(next.total_bytes() - next.live_bytes() < 4096, "only padding is not live");
                next
            } else {
                let batch = batch(order, &mut rng);
                batch.apply(&mut model, &Concatenate, depth);
                append_by(&tree, batch, Concatenate, depth).unwrap()
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
                    *tree = Tree::named(&store, tree.version(), &Default::default());
                }
            }
            if rng.chance(20) && round > 3 {
                versions.remove(0);
            }
        }
    }
}

#[test]
fn one_batch_at_a_time_is_applied_to_a_file() {
    let fs = MemoryFs::new();
    let store = small(fs.clone());
    let tree = build(&store, &numbered(0..100, 10)).unwrap();
    let writer = || TreeWriter::append(&tree, LastWriterWins, Depth::Bottom, Cause::Spill).unwrap();
    let push = |writer: &mut _| push_all(writer, numbered(0..50, 10), &LastWriterWins);
    let mut one = writer();
    push(&mut one).unwrap();
    let refused = push(&mut writer()).unwrap_err();
    assert!(refused.to_string().contains("one batch at a time"), "{refused}");
    drop(one);
    let next = append(&tree, &numbered(100..150, 10)).unwrap();
    assert_eq!(next.records(), 150);
    let nothing = append(&next, &Batch::default()).unwrap();
    assert_eq!(nothing.version(), next.version(), "an empty batch writes nothing");
    // A build that is given up leaves its file to the trash.
    let mut writer = TreeWriter::build(&store, LastWriterWins, Depth::Bottom, Cause::Merge).unwrap();
    push(&mut writer).unwrap();
    drop(writer);
    assert!(store.trash.empty(&*store.fs));
    assert_eq!(fs.list(&store.dir).unwrap(), ["00000007.tree"]);
}

#[test]
fn a_writer_takes_keys_in_order_and_goes_to_any_thread() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    let store = small(MemoryFs::new());
    let order = Order::Lexical;
    for second in ["b", "a"] {
        let writer = TreeWriter::build(&store, LastWriterWins, Depth::Bottom, Cause::Merge).unwrap();
        let mut writer = send(writer);
        let put = |writer: &mut TreeWriter<_>, key: &str| {
            let record = Record { kind: Kind::Put, key: key.as_bytes(), value: b"" };
            writer.push(order.prefix(key.as_bytes()), &record)
        };
        put(&mut writer, "b").unwrap();
        assert_eq!(writer.last_key(), b"b");
        assert!(put(&mut writer, second).unwrap_err().to_string().contains("in order"));
        assert!(put(&mut writer, "c").is_err() && writer.finish().is_err(), "it can only be dropped");
    }
    assert!(store.trash.empty(&*store.fs) && store.fs.list(&store.dir).unwrap().is_empty());
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
    let last = last_root(&store, 7, u64::MAX).unwrap();
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
