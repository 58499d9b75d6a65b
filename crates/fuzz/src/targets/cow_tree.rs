//! The copy-on-write tree against a map for each version: batches appended to new versions and old ones, files built
//! anew, lookups, walks, portions.

use std::sync::Arc;

use forebay_base::combine::{Depth, Fold};
use forebay_base::merge::{Collapse, Direction};
use forebay_base::{Order, Range, Record};
use forebay_cow_tree::{Reading, Tree, TreeCursor, TreeStore, TreeWriter};
use forebay_env::Rng;
use forebay_env::fs::MemoryFs;
use forebay_store::Cause;

use super::merge::{Append, List};
use super::tree_file::{find, store, walk};
use crate::draws::{self, Model, one_of};

const KEYS: u64 = 1500;

pub(crate) fn fuzz(rng: &mut Rng) {
    let fs = MemoryFs::new();
    let mut store = store(rng, &fs);
    let depth = one_of(rng, &[Depth::Bottom, Depth::Partial]);
    let mut versions: Vec<(Tree, Model)> = Vec::new();
    for _ in 0..10 {
        let batch = batch(rng, store.options.order);
        // Mostly the newest version; now and then something is appended to an old one.
        let from = if rng.chance(85) { versions.last() } else { versions.get(rng.index(versions.len())) };
        let (before, mut model) =
            from.map_or((None, Model::new()), |(tree, model)| (Some(tree), model.clone()));
        if rng.chance(15)
            && let Some(tree) = before
        {
            let all = TreeCursor::new(tree, &Range::all(), Direction::Forward, Reading::Scan);
            let mut all = all.expect("it is intact");
            all.seek(None, Direction::Forward).expect("it is intact");
            let tree = write(&store, None, all, Depth::Partial);
            versions.push((tree, model));
        } else {
            apply(&batch, &mut model, depth);
            versions.push((write(&store, before, List { entries: batch, at: 0 }, depth), model));
        }
        if rng.chance(10) {
            store = TreeStore { files: Arc::default(), ..store };
            versions.iter_mut().for_each(|(tree, _)| *tree = Tree::named(&store, tree.version()));
        }
        let (tree, model) = &versions[rng.index(versions.len())];
        check(rng, store.options.order, tree, model);
    }
    versions.iter().for_each(|(tree, model)| check(rng, store.options.order, tree, model));
}

type Batch = Vec<((u64, Vec<u8>), (forebay_base::Kind, Vec<u8>))>;

/// Records in order, the newest first among those of one key.
fn batch(rng: &mut Rng, order: Order) -> Batch {
    let count = one_of(rng, &[0, 1, 30, 300, 1000]);
    let record = |_| {
        let key = draws::key(rng, KEYS);
        ((order.prefix(&key), key), draws::change(rng))
    };
    let mut batch: Batch = (0..count).map(record).collect();
    batch.sort_by(|one, other| one.0.cmp(&other.0));
    batch
}

/// What becomes of a model.
fn apply(batch: &Batch, model: &mut Model, depth: Depth) {
    for versions in batch.chunk_by(|one, other| one.0 == other.0) {
        let place = &versions[0].0;
        let (older, mut fold) = (model.remove(place), Fold::default());
        for (kind, value) in versions.iter().map(|(_, change)| change).chain(&older) {
            if !fold.add(&Append, &Record { kind: *kind, key: &place.1, value }) {
                break;
            }
        }
        if let Some(left) = fold.finish(&place.1, depth) {
            model.insert(place.clone(), (left.kind, left.value.to_vec()));
        }
    }
}

fn write(
    store: &TreeStore,
    before: Option<&Tree>,
    input: impl forebay_base::merge::Cursor,
    depth: Depth,
) -> Tree {
    let write = || {
        let mut writer = match before {
            Some(tree) => TreeWriter::append(tree, Append, depth, Cause::Spill)?,
            None => TreeWriter::build(store, Append, depth, Cause::Merge)?,
        };
        let mut collapse = Collapse::new(input, Append, Depth::Partial);
        while !collapse.is_finished() {
            collapse.run(1000, |prefix, record| writer.push(prefix, record))?;
        }
        writer.finish()
    };
    write().expect("memory takes it")
}

fn check(rng: &mut Rng, order: Order, tree: &Tree, model: &Model) {
    let census = tree.verify().expect("it is intact");
    assert_eq!((census.records, census.live_bytes), (tree.records(), tree.live_bytes()));
    assert_eq!(census.records, model.len() as u64);
    for _ in 0..20 {
        let key = draws::key(rng, KEYS);
        let found = find(tree, order, &key).expect("it is intact");
        assert_eq!(found.as_ref(), model.get(&(order.prefix(&key), key)));
    }
    let range = draws::range(rng, order, KEYS);
    let (direction, reading) = (
        one_of(rng, &[Direction::Forward, Direction::Backward]),
        one_of(rng, &[Reading::Scan, Reading::Job { cause: Cause::Merge, memory_bytes: 1 << 16 }]),
    );
    let mut seen = Model::new();
    walk(tree, &range, direction, reading, &mut seen).expect("it is intact");
    assert!(seen.iter().eq(model.iter().filter(|((prefix, key), _)| range.contains(*prefix, key))));
    let (records, bytes) = tree.portion(&range).expect("it is intact");
    assert!(records <= tree.records() && bytes <= tree.live_bytes());
    assert_eq!(tree.portion(&Range::all()).expect("it is intact"), (tree.records(), tree.live_bytes()));
    if let Some(middle) = tree.middle(&range) {
        assert!(range.can_split_at(&middle) && (0.0..=1.0).contains(&tree.share_below(&range, &middle)));
    }
}
