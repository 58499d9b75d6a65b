//! A tree beside a sorted map of what it must hold.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use forebay_base::combine::{Depth, Fold};
use forebay_base::merge::{Collapse, Cursor, Direction};
use forebay_base::{Combine, Kind, LastWriterWins, Order, Range, Record, Result};
use forebay_cow_tree::{NodeCache, Reading, Tree, TreeCursor, TreeOptions, TreeStore, TreeWriter};
use forebay_env::{FileSystem, Rng};
use forebay_store::list::{FilterLevel, Lookup};
use forebay_store::{Cause, ValueFiles};

/// What a tree holds, by prefix and key.
pub(crate) type Model = BTreeMap<(u64, Vec<u8>), (Kind, Vec<u8>)>;

/// One of its records.
pub(crate) type Entry = ((u64, Vec<u8>), (Kind, Vec<u8>));

/// A batch: records in order, the newest first among those of one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    records: Vec<(u64, Kind, Vec<u8>, Vec<u8>)>,
    at: usize,
}

/// Operands are appended to what is older.
#[derive(Clone, Copy)]
pub(crate) struct Concatenate;

impl Combine for Concatenate {
    fn fold(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(older);
        out.extend_from_slice(newer);
    }
}

impl Cursor for Batch {
    fn prefix(&self) -> Option<u64> {
        self.records.get(self.at).map(|record| record.0)
    }
    fn record(&self) -> Record<'_> {
        let (_, kind, key, value) = &self.records[self.at];
        Record { kind: *kind, key, value }
    }
    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
}

impl Batch {
    /// Puts these records in order; the first of one key is the newest.
    pub(crate) fn new(order: Order, records: Vec<(Kind, Vec<u8>, Vec<u8>)>) -> Self {
        let mut records: Vec<_> =
            records.into_iter().map(|(kind, key, value)| (order.prefix(&key), kind, key, value)).collect();
        records.sort_by(|one, other| (one.0, &one.2).cmp(&(other.0, &other.2)));
        Self { records, at: 0 }
    }

    pub(crate) fn puts(order: Order, records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        Self::new(order, records.into_iter().map(|(key, value)| (Kind::Put, key, value)).collect())
    }

    /// What becomes of a model.
    pub(crate) fn apply(&self, model: &mut Model, rule: &impl Combine, depth: Depth) {
        let same =
            |one: &(u64, Kind, Vec<u8>, Vec<u8>), other: &(u64, Kind, Vec<u8>, Vec<u8>)| one.2 == other.2;
        for versions in self.records.chunk_by(same) {
            let (prefix, _, key, _) = &versions[0];
            let older = model.remove(&(*prefix, key.clone()));
            let mut fold = Fold::default();
            let newer = versions.iter().map(|(_, kind, _, value)| (*kind, value));
            let all: Vec<_> = newer.chain(older.iter().map(|(kind, value)| (*kind, value))).collect();
            for (kind, value) in all {
                if !fold.add(rule, &Record { kind, key, value }) {
                    break;
                }
            }
            if let Some(left) = fold.finish(key, depth) {
                model.insert((*prefix, key.clone()), (left.kind, left.value.to_vec()));
            }
        }
    }
}

pub(crate) fn store(fs: Arc<dyn FileSystem>, options: TreeOptions) -> TreeStore {
    fs.create_dir_all(Path::new("/db")).unwrap();
    let (dir, trash, metrics) = (Path::new("/db"), Arc::default(), Arc::default());
    TreeStore {
        values: ValueFiles::new(&fs, dir, &trash, &metrics),
        fs,
        dir: dir.into(),
        next_id: Arc::new(7.into()),
        cache: Arc::new(NodeCache::new(64 << 10)),
        metrics,
        trash,
        disk: Arc::default(),
        files: Arc::default(),
        options,
        expiry: None,
        salvage: None,
        filter_level: Arc::new(FilterLevel::new(None)),
    }
}

/// A store whose nodes are small, so that trees of some thousand records have levels.
pub(crate) fn small(fs: Arc<dyn FileSystem>) -> TreeStore {
    store(fs, TreeOptions { node_bytes_max: 256, ..TreeOptions::new(Order::Lexical) })
}

/// Records of these numbers as keys of ten digits.
pub(crate) fn numbered(numbers: impl Iterator<Item = u64>, value_bytes: usize) -> Batch {
    let record = |number: u64| (format!("{number:010}").into_bytes(), vec![number as u8; value_bytes]);
    Batch::puts(Order::Lexical, numbers.map(record))
}

/// As after a restart: the same files, and nothing in memory.
pub(crate) fn restarted(store: &TreeStore, fs: Arc<dyn FileSystem>) -> TreeStore {
    TreeStore { files: Arc::default(), cache: Arc::new(NodeCache::new(64 << 10)), fs, ..store.clone() }
}

/// Pushes what the records of each key come to.
pub(crate) fn push_all<R: Combine + Clone>(
    writer: &mut TreeWriter<R>,
    batch: impl Cursor,
    rule: &R,
) -> Result<()> {
    let mut collapse = Collapse::new(batch, rule.clone(), Depth::Partial);
    while !collapse.is_finished() {
        collapse.run(100, |prefix, record| writer.push(prefix, record))?;
    }
    Ok(())
}

pub(crate) fn append_by<R: Combine + Clone>(
    tree: &Tree,
    batch: impl Cursor,
    rule: R,
    depth: Depth,
) -> Result<Tree> {
    let mut writer = TreeWriter::append(tree, rule.clone(), depth, Cause::Spill)?;
    push_all(&mut writer, batch, &rule)?;
    writer.finish()
}

pub(crate) fn build_by<R: Combine + Clone>(
    store: &TreeStore,
    batch: impl Cursor,
    rule: R,
    depth: Depth,
) -> Result<Tree> {
    let mut writer = TreeWriter::build(store, rule.clone(), depth, Cause::Merge)?;
    push_all(&mut writer, batch, &rule)?;
    writer.finish()
}

/// Puts, with nothing beneath.
pub(crate) fn append(tree: &Tree, batch: &Batch) -> Result<Tree> {
    append_by(tree, batch.clone(), LastWriterWins, Depth::Bottom)
}

pub(crate) fn build(store: &TreeStore, batch: &Batch) -> Result<Tree> {
    build_by(store, batch.clone(), LastWriterWins, Depth::Bottom)
}

pub(crate) fn long_reads() -> Reading {
    Reading::Job { cause: Cause::Merge, memory_bytes: 1 << 20 }
}

/// All that a cursor still has to show, read as its reading wants.
pub(crate) fn rest(mut cursor: TreeCursor) -> Result<Vec<Entry>> {
    let mut seen = Vec::new();
    while let Some(prefix) = cursor.prefix() {
        let key = cursor.record().key.to_vec();
        seen.push(((prefix, key), (cursor.kind(), cursor.value()?.into_owned())));
        cursor.advance()?;
    }
    Ok(seen)
}

/// Walks the whole tree.
pub(crate) fn content(tree: &Tree) -> Result<Model> {
    let cursor = TreeCursor::new(tree, &Range::all(), Direction::Forward, long_reads())?;
    Ok(rest(cursor)?.into_iter().collect())
}

/// Looks a key up in a tree in key order.
pub(crate) fn find(tree: &Tree, key: &[u8]) -> Result<Option<(Kind, Vec<u8>)>> {
    find_in(Order::Lexical, tree, key)
}

pub(crate) fn find_in(order: Order, tree: &Tree, key: &[u8]) -> Result<Option<(Kind, Vec<u8>)>> {
    tree.find(&Lookup::new(order, key), |record| (record.kind, record.value.to_vec()))
}

/// Asserts that a tree has what the model has: counters, some lookups, and walks from random places.
pub(crate) fn assert_same(tree: &Tree, model: &Model, order: Order, rng: &mut Rng) {
    let census = tree.verify().unwrap();
    assert_eq!(census.records, model.len() as u64);
    assert_eq!((census.records, census.live_bytes), (tree.records(), tree.live_bytes()));
    for (_, key) in model.keys() {
        assert!(find_in(order, tree, key).unwrap().is_some(), "no key is ever denied: {key:?}");
    }
    assert_eq!(tree.portion(&Range::all()).unwrap(), (tree.records(), tree.live_bytes()));
    assert_eq!(&content(tree).unwrap(), model);
    for _ in 0..20 {
        let key = key(rng);
        let wanted = model.get(&(order.prefix(&key), key.clone())).cloned();
        assert_eq!(find_in(order, tree, &key).unwrap(), wanted, "{key:?}");
    }
    for _ in 0..4 {
        let mut places: Vec<_> = (0..3).map(|_| key(rng)).map(|key| (order.prefix(&key), key)).collect();
        let place = places.remove(0);
        places.sort();
        let (low, high) = (places[0].clone(), places[1].clone());
        let range = Range { low: order.bound(&low.1), high: Some(order.bound(&high.1)) };
        let range = if rng.chance(20) { Range::all() } else { range };
        let inside = |at: &&(u64, Vec<u8>)| range.contains(at.0, &at.1);
        let reading = [Reading::Scan, Reading::Keys, long_reads()][rng.index(3)];
        let mut cursor = TreeCursor::new(tree, &range, Direction::Forward, reading).unwrap();
        cursor.seek(Some((place.0, &place.1)), Direction::Forward).unwrap();
        let wanted: Vec<_> = model.keys().filter(inside).filter(|at| **at >= place).cloned().collect();
        let seen = rest(cursor).unwrap();
        assert_eq!(seen.iter().map(|(at, _)| at.clone()).collect::<Vec<_>>(), wanted);
        assert!(seen.iter().all(|(at, record)| model.get(at) == Some(record)));

        let mut cursor = TreeCursor::new(tree, &range, Direction::Forward, reading).unwrap();
        cursor.seek(Some((place.0, &place.1)), Direction::Backward).unwrap();
        let wanted: Vec<_> = model.keys().rev().filter(inside).filter(|at| **at < place).cloned().collect();
        let seen = rest(cursor).unwrap();
        assert_eq!(seen.iter().map(|(at, _)| at.clone()).collect::<Vec<_>>(), wanted);
        assert!(seen.iter().all(|(at, record)| model.get(at) == Some(record)));

        let mut cursor = TreeCursor::new(tree, &range, Direction::Forward, reading).unwrap();
        cursor.seek(None, Direction::Backward).unwrap();
        assert_eq!(cursor.prefix(), model.keys().rev().find(inside).map(|at| at.0));
    }
}

/// One of some thousand keys, of any length, many of which begin alike.
pub(crate) fn key(rng: &mut Rng) -> Vec<u8> {
    let number = rng.below(1500);
    match number % 5 {
        0 => number.to_be_bytes()[6..].to_vec(),
        1 => format!("user{number:06}").into_bytes(),
        2 => format!("user{number}/a-rather-long-key-that-others-begin-with/{number}").into_bytes(),
        3 => vec![0; number as usize % 40],
        _ => number.to_le_bytes().to_vec(),
    }
}

/// Short, middling and long ones.
pub(crate) fn value(rng: &mut Rng) -> Vec<u8> {
    let length = [0, 8, 40, 200, 3000][rng.index(5)];
    let mut value = vec![0; length];
    rng.fill(&mut value);
    value
}
