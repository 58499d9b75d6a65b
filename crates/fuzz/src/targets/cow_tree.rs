//! The copy-on-write tree against a map for each version: batches appended to new versions and old ones, files built
//! anew, lookups, walks, portions. Values may stand in value files, and are moved out of those that are emptied.

use std::path::Path;
use std::sync::Arc;

use forebay_base::combine::{Depth, Fold};
use forebay_base::merge::{Collapse, Direction};
use forebay_base::{Kind, Order, Range, Record, ValuePointer};
use forebay_cow_tree::{Reading, Tree, TreeCursor, TreeStore, TreeWriter};
use forebay_env::fs::MemoryFs;
use forebay_env::sync::atomic::Ordering;
use forebay_env::{Access, File, Rng};
use forebay_store::{Cause, ValueFile, names};

use super::merge::{Append, List};
use super::tree_file::{find, store, walk};
use crate::draws::{self, Model, one_of};

const KEYS: u64 = 1500;

pub(crate) fn fuzz(rng: &mut Rng) {
    let fs = MemoryFs::new();
    let mut store = store(rng, &fs);
    let depth = one_of(rng, &[Depth::Bottom, Depth::Partial]);
    let mut versions: Vec<(Tree, Model)> = Vec::new();
    // Of such tables no records are operands.
    let points = rng.chance(50);
    for _ in 0..10 {
        let mut batch = batch(rng, store.options.order);
        let operands = batch.iter_mut().map(|(_, change)| change).filter(|(kind, _)| *kind == Kind::Merge);
        operands.filter(|_| points).for_each(|(kind, _)| *kind = Kind::Put);
        let values = points.then(|| Values::new(&store));
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
            values.iter().for_each(|values| values.take(rng, &mut batch));
            versions.push((write(&store, before, List { entries: batch, at: 0 }, depth), model));
        }
        if rng.chance(10) {
            store = TreeStore { files: Arc::default(), ..store };
            let anew = |tree: &Tree| Tree::named(&store, tree.version(), tree.value_shares());
            versions.iter_mut().for_each(|(tree, _)| *tree = anew(tree));
        }
        if rng.chance(30) {
            let some = store.values.all().into_iter().filter(|_| rng.chance(50));
            some.for_each(|file| file.collect(file.bytes()));
            store.values.set_collecting(true);
        }
        let (tree, model) = &versions[rng.index(versions.len())];
        check(rng, &store, tree, model);
    }
    versions.iter().for_each(|(tree, model)| check(rng, &store, tree, model));
}

/// Values of a batch that stand in a file of their own.
struct Values {
    file: Arc<dyn File>,
    id: u64,
    named: Arc<ValueFile>,
}

impl Values {
    const BYTES_MAX: u64 = 1 << 20;

    fn new(store: &TreeStore) -> Self {
        let id = store.next_id.fetch_add(1, Ordering::Relaxed);
        let path = names::values(Path::new(&store.dir), id);
        let file = store.fs.create(&path, Access::Buffered).expect("memory takes it");
        Self { file, id, named: store.values.named(id, Self::BYTES_MAX) }
    }

    /// Takes some of a batch's values, and leaves pointers.
    fn take(&self, rng: &mut Rng, batch: &mut Batch) {
        let mut at = 0;
        for ((_, key), (kind, value)) in batch {
            let is_long =
                *kind == Kind::Put && !value.is_empty() && at + value.len() as u64 <= self.named.bytes();
            if is_long && rng.chance(70) {
                self.file.write_at(at, value).expect("memory takes it");
                let pointer = ValuePointer::new(self.id, at, key, value);
                at += value.len() as u64;
                value.clear();
                pointer.encode(value);
                *kind = Kind::Pointer;
            }
        }
    }
}

/// A record as users see it.
fn fetched(store: &TreeStore, key: &[u8], (kind, value): (Kind, Vec<u8>)) -> (Kind, Vec<u8>) {
    match kind {
        Kind::Pointer => (Kind::Put, store.values.load(key, &value).expect("it is intact")),
        _ => (kind, value),
    }
}

type Batch = Vec<((u64, Vec<u8>), (Kind, Vec<u8>))>;

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

fn check(rng: &mut Rng, store: &TreeStore, tree: &Tree, model: &Model) {
    let order = store.options.order;
    let census = tree.verify().expect("it is intact");
    assert_eq!((census.records, census.live_bytes), (tree.records(), tree.live_bytes()));
    assert_eq!(census.records, model.len() as u64);
    for _ in 0..20 {
        let key = draws::key(rng, KEYS);
        let found = find(tree, order, &key).expect("it is intact");
        let found = found.map(|found| fetched(store, &key, found));
        assert_eq!(found.as_ref(), model.get(&(order.prefix(&key), key)));
    }
    let range = draws::range(rng, order, KEYS);
    let (direction, reading) = (
        one_of(rng, &[Direction::Forward, Direction::Backward]),
        one_of(rng, &[Reading::Scan, Reading::Job { cause: Cause::Merge, memory_bytes: 1 << 16 }]),
    );
    let mut seen = Model::new();
    walk(tree, &range, direction, reading, &mut seen).expect("it is intact");
    let seen: Model =
        seen.into_iter().map(|(place, found)| (place.clone(), fetched(store, &place.1, found))).collect();
    assert!(seen.iter().eq(model.iter().filter(|((prefix, key), _)| range.contains(*prefix, key))));
    let (records, bytes) = tree.portion(&range).expect("it is intact");
    assert!(records <= tree.records() && bytes <= tree.live_bytes());
    assert_eq!(tree.portion(&Range::all()).expect("it is intact"), (tree.records(), tree.live_bytes()));
    if let Some(middle) = tree.middle(&range) {
        assert!(range.can_split_at(&middle) && (0.0..=1.0).contains(&tree.share_below(&range, &middle)));
    }
}
