//! The two merges against each other and against sorting everything.

use proptest::prelude::*;

use super::{BlockCut, Collapse, Cursor, CutMerge, Direction, LoserTree, Progress};
use crate::combine::{Combine, Depth, LastWriterWins};
use crate::record::Shape;
use crate::{Block, Kind, Order, Record, Result};

/// A sorted list in memory.
#[derive(Clone)]
struct List {
    entries: Vec<(u64, Kind, Vec<u8>, Vec<u8>)>,
    at: usize,
}

impl List {
    fn new(order: Order, records: &[(u8, u8)], age: usize) -> Self {
        let mut entries: Vec<_> = records
            .iter()
            .map(|&(key, kind)| {
                let key = vec![key % 40; 1 + (key % 3) as usize * 5];
                let kind = [Kind::Put, Kind::Put, Kind::Delete, Kind::Merge][kind as usize % 4];
                let value = if kind == Kind::Delete { vec![] } else { vec![age as u8] };
                (order.prefix(&key), kind, key, value)
            })
            .collect();
        entries.sort_by(|a, b| (a.0, &a.2).cmp(&(b.0, &b.2)));
        entries.dedup_by(|a, b| a.2 == b.2);
        Self { entries, at: 0 }
    }
}

impl Cursor for List {
    fn prefix(&self) -> Option<u64> {
        self.entries.get(self.at).map(|entry| entry.0)
    }
    fn record(&self) -> Record<'_> {
        let (_, kind, key, value) = &self.entries[self.at];
        Record { kind: *kind, key, value }
    }
    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
}

type Entry = (u64, Kind, Vec<u8>, Vec<u8>);

fn drain(mut cursor: impl Cursor) -> Vec<Entry> {
    let mut out = Vec::new();
    while let Some(prefix) = cursor.prefix() {
        let record = cursor.record();
        out.push((prefix, record.kind, record.key.to_vec(), record.value.to_vec()));
        cursor.advance().unwrap();
    }
    out
}

/// Appends operands, so that order and completeness of a fold show.
struct Append;
impl Combine for Append {
    fn fold(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(newer);
        out.extend_from_slice(older);
    }
}

fn collapse(input: impl Cursor, rule: impl Combine, depth: Depth, bytes_max: usize) -> Vec<Entry> {
    let mut out = Vec::new();
    let mut collapse = Collapse::new(input, rule, depth);
    let mut total = Progress::default();
    while !collapse.is_finished() {
        let step = collapse
            .run(bytes_max, |prefix, record| {
                out.push((prefix, record.kind, record.key.to_vec(), record.value.to_vec()));
                Ok(())
            })
            .unwrap();
        assert_eq!(step.consumed, step.produced + step.dropped);
        total.produced += step.produced;
    }
    assert_eq!(total.produced, out.len() as u64);
    out
}

/// The naive collapse: group by key, fold by the definition.
fn expected(lists: &[List], depth: Depth) -> Vec<Entry> {
    let mut all = Vec::new();
    for (age, list) in lists.iter().enumerate() {
        all.extend(
            list.entries.iter().map(|(p, kind, key, value)| (*p, key.clone(), age, *kind, value.clone())),
        );
    }
    all.sort();
    let mut out = Vec::new();
    for group in all.chunk_by(|a, b| a.1 == b.1) {
        let operands = group.iter().take_while(|entry| entry.3 == Kind::Merge).count();
        let mut value: Vec<u8> = group[..operands].iter().flat_map(|entry| entry.4.clone()).collect();
        let kind = match group.get(operands).map(|entry| entry.3) {
            Some(Kind::Delete) if operands == 0 => Kind::Delete,
            Some(base) => {
                if base == Kind::Put {
                    value.extend(&group[operands].4);
                }
                Kind::Put
            }
            None => Kind::Merge,
        };
        let kind = match (kind, depth) {
            (Kind::Delete, Depth::Bottom) => continue,
            (Kind::Merge, Depth::Bottom) => Kind::Put,
            (kind, _) => kind,
        };
        out.push((group[0].0, kind, group[0].1.clone(), value));
    }
    out
}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Kind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (*self as u8).cmp(&(*other as u8))
    }
}

proptest! {
    #[test]
    fn both_merges_and_the_collapse_equal_the_naive_ones(
        records in prop::collection::vec(prop::collection::vec((0..40u8, 0..4u8), 0..60), 0..9),
        order in prop_oneof![Just(Order::Lexical), Just(Order::Hashed { seed: 3 }), Just(Order::Colliding { bits: 2 })],
        bottom: bool,
        bytes_max in 1..200usize,
    ) {
        let lists: Vec<List> = records.iter().enumerate().map(|(age, list)| List::new(order, list, age)).collect();
        let tree = || LoserTree::new(lists.clone(), Direction::Forward);
        let cut = || CutMerge::new(lists.clone(), 1 << 20, (0, u64::MAX)).unwrap();
        prop_assert_eq!(drain(tree()), drain(cut()));
        let mut again = tree();
        drain(&mut again);
        again.restart(Direction::Forward, |lists| {
            lists.iter_mut().for_each(|list| list.at = 0);
            Ok(())
        }).unwrap();
        prop_assert_eq!(drain(again), drain(tree()));

        let depth = if bottom { Depth::Bottom } else { Depth::Partial };
        let wanted = expected(&lists, depth);
        prop_assert_eq!(&collapse(tree(), Append, depth, bytes_max), &wanted);
        prop_assert_eq!(&collapse(cut(), Append, depth, bytes_max), &wanted);
    }

    #[test]
    fn merging_by_blocks_equals_merging_by_record(
        records in prop::collection::vec(prop::collection::vec(0..60u8, 0..60), 0..9),
        order in prop_oneof![Just(Order::Lexical), Just(Order::Hashed { seed: 3 }), Just(Order::Colliding { bits: 2 })],
        bytes_max in 1..200usize,
    ) {
        // Puts of keys and values of one byte.
        let lists: Vec<List> = records
            .iter()
            .enumerate()
            .map(|(age, list)| List::new(order, &list.iter().map(|key| (key / 3 * 3, 0)).collect::<Vec<_>>(), age))
            .collect();
        let block = || Block::new(Shape::Fixed { key_bytes: 1, value_bytes: 1 }).unwrap_or_default();
        let cut = || BlockCut::new(lists.clone(), 1 << 20, (0, u64::MAX), block()).unwrap();
        let tree = || LoserTree::new(lists.clone(), Direction::Forward);
        prop_assert_eq!(drain(cut()), drain(tree()));

        let wanted = collapse(tree(), LastWriterWins, Depth::Partial, bytes_max);
        let (mut collapse, mut out, mut block) = (Collapse::new(cut(), LastWriterWins, Depth::Partial), vec![], block());
        while !collapse.is_finished() {
            collapse
                .run_blocks(bytes_max, &mut block, |block| {
                    out.extend((0..block.len()).map(|at| (block.prefixes()[at], block.key(at).to_vec(), block.record(at).value.to_vec())));
                    Ok(())
                })
                .unwrap();
        }
        let wanted: Vec<_> = wanted.into_iter().map(|(prefix, _, key, value)| (prefix, key, value)).collect();
        prop_assert_eq!(out, wanted);
    }

    #[test]
    fn backward_is_forward_reversed_but_for_ties(
        records in prop::collection::vec(prop::collection::vec((0..40u8, 0..2u8), 0..40), 0..6),
    ) {
        let lists: Vec<List> = records.iter().enumerate().map(|(age, list)| List::new(Order::Lexical, list, age)).collect();
        let mut reversed = lists.clone();
        reversed.iter_mut().for_each(|list| list.entries.reverse());
        let mut back = collapse(LoserTree::new(reversed, Direction::Backward), LastWriterWins, Depth::Partial, 64);
        back.reverse();
        let forth = collapse(LoserTree::new(lists, Direction::Forward), LastWriterWins, Depth::Partial, 64);
        prop_assert_eq!(back, forth);
    }
}
