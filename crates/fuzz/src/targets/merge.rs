//! The merges against one another and against sorting everything, and collapsing against folding key by key.

use std::collections::BTreeMap;

use forebay_base::combine::{Depth, Fold};
use forebay_base::merge::{BlockCut, Collapse, Cursor, CutMerge, Direction, Extent, LoserTree, Merge};
use forebay_base::record::Shape;
use forebay_base::{Block, Combine, Kind, Order, Record, Result};
use forebay_env::Rng;

use crate::draws::{self, Model, one_of};

type Entry = ((u64, Vec<u8>), (Kind, Vec<u8>));

/// Sorted records.
#[derive(Clone)]
pub(crate) struct List {
    pub(crate) entries: Vec<Entry>,
    pub(crate) at: usize,
}

impl Cursor for List {
    fn prefix(&self) -> Option<u64> {
        self.entries.get(self.at).map(|(place, _)| place.0)
    }
    fn record(&self) -> Record<'_> {
        let ((_, key), (kind, value)) = &self.entries[self.at];
        Record { kind: *kind, key, value }
    }
    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
}

/// Older behind newer: the order of folds shows.
#[derive(Clone, Copy)]
pub(crate) struct Append;

impl Combine for Append {
    fn fold(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(newer);
        out.extend_from_slice(older);
    }
}

pub(crate) fn fuzz(rng: &mut Rng) {
    let order = draws::order(rng);
    let puts = rng.chance(30);
    let lists: Vec<List> = (0..rng.below(9)).map(|_| list(rng, order, puts)).collect();
    let mut all: Vec<(usize, Entry)> = Vec::new();
    lists
        .iter()
        .enumerate()
        .for_each(|(age, list)| all.extend(list.entries.iter().map(|entry| (age, entry.clone()))));
    all.sort_by(|(age, one), (other_age, other)| (&one.0, age).cmp(&(&other.0, other_age)));
    let all: Vec<Entry> = all.into_iter().map(|(_, entry)| entry).collect();
    let bytes = one_of(rng, &[1, 1 << 20, 1 << 40]);
    let tree = || LoserTree::new(lists.clone(), Direction::Forward);
    let cut = || CutMerge::new(lists.clone(), bytes, (0, u64::MAX)).expect("memory is read");
    let shape = if puts { Shape::Puts } else { Shape::Variable };
    let extent = Extent { bytes, records: all.len() as u64, uniform: Some((0, u64::MAX)), shape };
    assert_eq!(drain(tree()), all);
    assert_eq!(drain(cut()), all);
    assert_eq!(drain(Merge::new(lists.clone(), extent).expect("memory is read")), all);
    let mut backwards = tree();
    let turn = |lists: &mut [List]| {
        lists.iter_mut().for_each(|list| list.entries.reverse());
        Ok(())
    };
    backwards.restart(Direction::Backward, turn).expect("memory is read");
    let mut keys: Vec<_> = drain(backwards).into_iter().map(|(place, _)| place).collect();
    keys.reverse();
    assert!(keys.iter().eq(all.iter().map(|(place, _)| place)));
    let depth = one_of(rng, &[Depth::Partial, Depth::Bottom]);
    let step = one_of(rng, &[1, 100, 1 << 20]);
    let wanted = folded(&all, depth);
    assert_eq!(collapsed(tree(), depth, step), wanted);
    assert_eq!(collapsed(cut(), depth, step), wanted);
    if puts {
        assert_eq!(collapsed_by_blocks(&lists, bytes, depth, step), wanted);
    }
}

fn list(rng: &mut Rng, order: Order, puts: bool) -> List {
    let count = one_of(rng, &[0, 1, 30, 200]);
    let mut records: Model = (0..count)
        .map(|_| {
            let key = draws::key(rng, 150);
            ((order.prefix(&key), key), (Kind::Put, draws::value(rng)))
        })
        .collect();
    if !puts {
        records.values_mut().for_each(|change| *change = draws::change(rng));
    }
    List { entries: records.into_iter().collect(), at: 0 }
}

fn drain(mut cursor: impl Cursor) -> Vec<Entry> {
    let mut seen = Vec::new();
    while let Some(prefix) = cursor.prefix() {
        let record = cursor.record();
        seen.push(((prefix, record.key.to_vec()), (record.kind, record.value.to_vec())));
        cursor.advance().expect("memory is read");
    }
    seen
}

/// The collapse by its definition.
fn folded(all: &[Entry], depth: Depth) -> Model {
    let mut folds: BTreeMap<&(u64, Vec<u8>), (Fold, bool)> = BTreeMap::new();
    for (place, (kind, value)) in all {
        let (fold, is_open) = folds.entry(place).or_insert((Fold::default(), true));
        *is_open = *is_open && fold.add(&Append, &Record { kind: *kind, key: &place.1, value });
    }
    let left = |(place, (fold, _)): (&(u64, Vec<u8>), (Fold, bool))| {
        let record = fold.finish(&place.1, depth)?;
        Some((place.clone(), (record.kind, record.value.to_vec())))
    };
    folds.into_iter().filter_map(left).collect()
}

fn collapsed(input: impl Cursor, depth: Depth, step: usize) -> Model {
    let (mut collapse, mut out) = (Collapse::new(input, Append, depth), Model::new());
    while !collapse.is_finished() {
        let sink = |prefix, record: &Record<'_>| {
            let again = out.insert((prefix, record.key.to_vec()), (record.kind, record.value.to_vec()));
            assert_eq!(again, None, "each key once");
            Ok(())
        };
        collapse.run(step, sink).expect("memory is read");
    }
    out
}

fn collapsed_by_blocks(lists: &[List], bytes: u64, depth: Depth, step: usize) -> Model {
    let block = || Block::new(Shape::Puts).expect("puts go by blocks");
    let merge = BlockCut::new(lists.to_vec(), bytes, (0, u64::MAX), block()).expect("memory is read");
    let (mut collapse, mut block, mut out) = (Collapse::new(merge, Append, depth), block(), Model::new());
    while !collapse.is_finished() {
        let sink = |block: &Block| {
            let record =
                |at| ((block.prefixes()[at], block.key(at).to_vec()), (Kind::Put, block.value(at).to_vec()));
            out.extend((0..block.len()).map(record));
            Ok(())
        };
        collapse.run_blocks(step, &mut block, sink).expect("memory is read");
    }
    out
}
