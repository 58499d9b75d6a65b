//! A buffer's lookups and walks against a list of all that was appended.

use std::cell::RefCell;
use std::sync::Arc;

use forebay_base::combine::{Depth, Fold};
use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Combine, Kind, Order, Range, Record};
use forebay_env::{Appender, Arena};
use proptest::prelude::*;

use super::{ArenaPool, BufferCursor, Sorting, TableRows, WriteBuffer};
use crate::log::batch::Payload;
use crate::log::frame::{HEADER_BYTES, Header, Secret, frame_bytes};

fn append(
    appender: &mut Appender,
    noting: Option<&WriteBuffer>,
    order: Order,
    table: u32,
    records: &[(Vec<u8>, u8)],
    kinds: &[Kind],
) {
    let mut payload = Payload::default();
    for (key, value) in records {
        payload.push(9, order, &Record::put(b"of another table", b""));
        payload.push(table, order, &record(key, value, kinds));
    }
    append_payload(appender, noting, &payload);
}

fn append_payload(appender: &mut Appender, noting: Option<&WriteBuffer>, payload: &Payload) {
    let base = appender.len() + HEADER_BYTES;
    let header = Header {
        payload_sum: payload.sum(Secret::default()),
        is_encrypted: false,
        payload_bytes: payload.bytes().len() as u32,
        records: payload.records(),
        sequence: 1,
        watermark: 0,
    };
    let padded = frame_bytes(payload.bytes().len()) - HEADER_BYTES - payload.bytes().len();
    for piece in
        [&header.encode(Secret::default(), 1, appender.len())[..], payload.bytes(), &[0; 8][..padded]]
    {
        appender.append(piece).unwrap();
    }
    match noting {
        Some(buffer) => buffer.note(payload.notes(), base, || appender.publish()),
        None => appender.publish(),
    }
}

/// The kind follows from the value.
fn record<'a>(key: &'a [u8], value: &'a u8, kinds: &[Kind]) -> Record<'a> {
    match kinds[*value as usize % kinds.len()] {
        Kind::Delete => Record::delete(key),
        kind => Record { kind, key, value: std::slice::from_ref(value) },
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merging {
    /// Newer behind older: the order of merges shows.
    AppendOperands,
    /// The same of states.
    AppendStates,
    /// States of one byte, added up.
    Add,
}

impl Combine for Merging {
    fn fold(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Add => out.push(newer[0].wrapping_add(older[0])),
            _ => out.extend([older, newer].concat()),
        }
    }
    fn merges_puts(&self) -> bool {
        *self != Self::AppendOperands
    }
    fn keeps_length(&self) -> bool {
        *self == Self::Add
    }
    fn merge_in_place(&self, newer: &mut [u8], older: &[u8]) -> bool {
        let adds = *self == Self::Add;
        if adds {
            newer[0] = newer[0].wrapping_add(older[0]);
        }
        adds
    }
}

type Entry = (Vec<u8>, Option<Vec<u8>>);

/// What records of one key, newest first, come to.
fn fold<'a>(rule: &Merging, records: impl Iterator<Item = Record<'a>>) -> Option<Vec<u8>> {
    let mut fold = Fold::default();
    for record in records {
        if !fold.add(rule, &record) {
            break;
        }
    }
    fold.finish(b"", Depth::Bottom).map(|record| record.value.to_vec())
}

/// All keys of walks, newest first, with what they come to.
fn walk_merging(rule: &Merging, cursors: Vec<BufferCursor>, direction: Direction) -> Vec<Entry> {
    let mut merge = forebay_base::merge::LoserTree::new(cursors, direction);
    let (mut seen, mut versions): (Vec<Entry>, Vec<(Kind, Vec<u8>)>) = (Vec::new(), Vec::new());
    while merge.prefix().is_some() {
        let key = merge.record().key.to_vec();
        versions.clear();
        while merge.prefix().is_some() && merge.record().key == key {
            versions.push((merge.record().kind, merge.record().value.to_vec()));
            merge.advance().unwrap();
        }
        let records = versions.iter().map(|(kind, value)| Record { kind: *kind, key: &key, value });
        let value = fold(rule, records);
        seen.push((key.clone(), value));
    }
    seen
}

/// All cursors where a walk begins.
fn sought(mut cursors: Vec<BufferCursor>, direction: Direction) -> Vec<BufferCursor> {
    cursors.iter_mut().for_each(|cursor| cursor.seek(None, direction));
    cursors
}

fn walk(mut cursor: BufferCursor) -> Vec<(Vec<u8>, u8)> {
    let mut seen = Vec::new();
    while cursor.prefix().is_some() {
        seen.push((cursor.record().key.to_vec(), cursor.record().value[0]));
        cursor.advance().unwrap();
    }
    seen
}

proptest! {
    #[test]
    fn finds_and_walks_equal_a_list(
        batches in prop::collection::vec(prop::collection::vec((prop::collection::vec(0..3u8, 0..10), 0..255u8), 0..20), 1..8),
        order in prop_oneof![Just(Order::Lexical), Just(Order::Hashed { seed: 2 }), Just(Order::Colliding { bits: 2 })],
        looks in prop::collection::vec(any::<bool>(), 8),
        low in prop::collection::vec(0..3u8, 0..10),
        high in prop::collection::vec(0..3u8, 0..10),
        sealed: bool,
        noted: bool,
    ) {
        let rows = TableRows { table: 4, order, rule: None };
        let (arena, mut appender) = Arena::new(1 << 16);
        let pool = ArenaPool::new(1 << 16, 2);
        pool.put_back_words(vec![7; 3]);
        let buffer = Arc::new(WriteBuffer::new(1, arena, Some(pool)));
        let mut marks = Vec::new();
        let mut written: Vec<(Vec<u8>, u8)> = Vec::new();
        for (batch, look) in batches.iter().zip(&looks) {
            append(&mut appender, noted.then_some(&*buffer), order, 4, batch, &[Kind::Put]);
            written.extend(batch.iter().cloned());
            marks.push((buffer.len(), written.len()));
            if *look {
                buffer.find(&rows, order.prefix(b""), b"", buffer.len(), |_| false);
            }
        }
        if sealed {
            for notes in buffer.take_notes(|_| Some(order)) {
                prop_assert_eq!(notes.contents.records, written.len() as u64);
                let mut sorting = Sorting::new(&buffer, notes, order);
                while sorting.step().is_none() {}
            }
        }
        let range = Range { low: order.bound(&low), high: Some(order.bound(&high)) };
        for (limit, count) in marks {
            for (key, _) in &written {
                let mut versions = Vec::new();
                buffer.find(&rows, order.prefix(key), key, limit, |record| { versions.push(record.value[0]); true });
                let expected: Vec<u8> = written[..count].iter().rev().filter(|(k, _)| k == key).map(|(_, v)| *v).collect();
                prop_assert_eq!(versions, expected);
            }
            for range in [&range, &Range::all()] {
                let mut expected: Vec<(usize, (Vec<u8>, u8))> = written[..count].iter().cloned().enumerate()
                    .filter(|(_, (key, _))| range.contains(order.prefix(key), key)).collect();
                expected.sort_by_key(|(age, (key, _))| (order.prefix(key), key.clone(), usize::MAX - age));
                let mut forward: Vec<_> = sought(buffer.cursors(&rows, range, limit), Direction::Forward).into_iter().flat_map(walk).collect();
                forward.sort_by_key(|(key, _)| (order.prefix(key), key.clone()));
                let mut expected: Vec<(Vec<u8>, u8)> = expected.into_iter().map(|(_, entry)| entry).collect();
                let by_key = |entries: &mut Vec<(Vec<u8>, u8)>| entries.sort();
                let (mut a, mut b) = (forward.clone(), expected.clone());
                by_key(&mut a); by_key(&mut b);
                prop_assert_eq!(a, b);
                // Backward: the newest of each run first; the newest of all must be among them and first by run.
                let back = sought(buffer.cursors(&rows, range, limit), Direction::Backward);
                expected.dedup_by(|later, first| later.0 == first.0);
                let mut newest: std::collections::BTreeMap<Vec<u8>, u8> = Default::default();
                for cursor in back {
                    let walked = walk(cursor);
                    prop_assert!(walked.windows(2).all(|pair| (order.prefix(&pair[0].0), &pair[0].0) >= (order.prefix(&pair[1].0), &pair[1].0)));
                    for (key, value) in walked { newest.entry(key).or_insert(value); }
                }
                prop_assert_eq!(newest.into_iter().collect::<Vec<_>>(), { expected.sort(); expected });
            }
        }
    }

    /// What is passed over for a table has none of its records, wherever walks begin and end.
    #[test]
    fn a_walk_near_a_table_shows_all_it_has(
        batches in prop::collection::vec(prop::collection::vec((1..4u32, 0..3000usize), 0..12), 1..12),
        steps in prop::collection::vec(1..20_000usize, 1..4),
        order in prop_oneof![Just(Order::Lexical), Just(Order::Hashed { seed: 2 })],
        noted: bool,
    ) {
        let (arena, mut appender) = Arena::new(1 << 19);
        let buffer = WriteBuffer::new(1, arena, None);
        let mut ends = vec![0];
        for batch in &batches {
            let mut payload = Payload::default();
            for &(table, bytes) in batch {
                payload.push(table, order, &Record::put(&table.to_le_bytes(), &vec![7; bytes]));
            }
            append_payload(&mut appender, noted.then_some(&buffer), &payload);
            ends.push(buffer.len());
        }
        for table in 1..5 {
            let own = |found: &RefCell<Vec<(u32, usize)>>| {
                let found = found.take().into_iter();
                found.filter(|(owner, _)| *owner == table).map(|(_, place)| place).collect::<Vec<_>>()
            };
            let (all, near) = (RefCell::default(), RefCell::default());
            let add = |to: &RefCell<Vec<_>>, table, place| to.borrow_mut().push((table, place));
            for from in &ends {
                for to in &ends {
                    buffer.for_each(*from, *to, |table, place, _| add(&all, table, place));
                    buffer.for_each_near(table, *from, *to, |table, place, _| add(&near, table, place));
                    prop_assert_eq!(own(&near), own(&all));
                }
            }
            buffer.for_each(0, buffer.len(), |table, place, _| add(&all, table, place));
            let (mut at, mut steps) = (0, steps.iter().cycle());
            while at < buffer.len() {
                let to = at + steps.next().expect("one at least");
                at = buffer.for_each_near(table, at, to, |table, place, _| add(&near, table, place));
            }
            prop_assert_eq!(own(&near), own(&all));
        }
    }

    #[test]
    fn what_merges_comes_to_the_same_however_it_is_looked_at(
        batches in prop::collection::vec(prop::collection::vec((prop::collection::vec(0..3u8, 0..3), any::<u8>()), 0..20), 1..8),
        order in prop_oneof![Just(Order::Lexical), Just(Order::Hashed { seed: 2 }), Just(Order::Colliding { bits: 2 })],
        looks in prop::collection::vec(prop::option::of(0..8usize), 8),
        rule in prop_oneof![Just(Merging::AppendOperands), Just(Merging::AppendStates), Just(Merging::Add)],
        sealed: bool,
        noted: bool,
    ) {
        let kinds: &[Kind] = if rule.merges_puts() { &[Kind::Put] } else { &[Kind::Put, Kind::Merge, Kind::Merge, Kind::Delete] };
        let rows = TableRows { table: 4, order, rule: Some(&rule) };
        let (arena, mut appender) = Arena::new(1 << 16);
        let buffer = Arc::new(WriteBuffer::new(1, arena, None));
        let (mut marks, mut written) = (Vec::new(), Vec::new());
        let check = |marks: &[(usize, usize)], written: &[(Vec<u8>, u8)], mark: usize| -> Result<(), TestCaseError> {
            let Some(&(limit, count)) = marks.get(mark) else { return Ok(()) };
            let mut keys: Vec<&Vec<u8>> = written[..count].iter().map(|(key, _)| key).collect();
            keys.sort_by_key(|key| (order.prefix(key), (*key).clone()));
            keys.dedup();
            let mut expected = Vec::new();
            for key in keys {
                let versions = written[..count].iter().rev().filter(|(k, _)| k == key);
                let wanted = fold(&rule, versions.map(|(key, value)| record(key, value, kinds)));
                let mut found = Vec::new();
                let limits = if count == written.len() { vec![limit, usize::MAX] } else { vec![limit] };
                for limit in limits {
                    found.clear();
                    buffer.find(&rows, order.prefix(key), key, limit, |record| {
                        found.push((record.kind, record.value.to_vec()));
                        true
                    });
                    let records = found.iter().map(|(kind, value)| Record { kind: *kind, key, value });
                    prop_assert_eq!(fold(&rule, records), wanted.clone());
                }
                expected.push((key.clone(), wanted));
            }
            let keys: Vec<(u64, &[u8])> = expected.iter().map(|(key, _)| (order.prefix(key), &key[..])).collect();
            let mut found = vec![Vec::new(); keys.len()];
            buffer.find_many(&rows, &keys, limit, |at, record| {
                found[at].push((record.kind, record.value.to_vec()));
                true
            });
            for (found, (key, wanted)) in found.iter().zip(&expected) {
                let records = found.iter().map(|(kind, value)| Record { kind: *kind, key, value });
                prop_assert_eq!(&fold(&rule, records), wanted);
            }
            for direction in [Direction::Forward, Direction::Backward] {
                let cursors = sought(buffer.cursors(&rows, &Range::all(), limit), direction);
                prop_assert_eq!(walk_merging(&rule, cursors, direction), expected.clone());
                expected.reverse();
            }
            Ok(())
        };
        for (batch, look) in batches.iter().zip(&looks) {
            append(&mut appender, noted.then_some(&*buffer), order, 4, batch, kinds);
            written.extend(batch.iter().cloned());
            marks.push((buffer.len(), written.len()));
            if let Some(mark) = look {
                check(&marks, &written, *mark)?;
            }
        }
        if sealed {
            for notes in buffer.take_notes(|_| Some(order)) {
                prop_assert_eq!(notes.contents.records, written.len() as u64);
                let mut sorting = Sorting::new(&buffer, notes, order);
                let run = loop {
                    if let Some(run) = sorting.step() {
                        break run;
                    }
                };
                prop_assert_eq!(run.len(), written.len());
            }
        }
        (0..marks.len()).try_for_each(|mark| check(&marks, &written, mark))?;
    }

    /// However often a key was written, a lookup sees it a few times.
    #[test]
    fn a_lookup_of_a_key_that_was_written_often_sees_a_few_records(
        looks in 1..50usize,
        keys in 1..8u8,
        rule in prop_oneof![Just(Merging::AppendStates), Just(Merging::Add)],
    ) {
        let order = Order::Hashed { seed: 2 };
        let rows = TableRows { table: 4, order, rule: Some(&rule) };
        let (arena, mut appender) = Arena::new(1 << 18);
        let buffer = Arc::new(WriteBuffer::new(1, arena, None));
        for _ in 0..looks {
            let batch: Vec<(Vec<u8>, u8)> = (0..50).map(|number| (vec![number % keys], number)).collect();
            append(&mut appender, Some(&buffer), order, 4, &batch, &[Kind::Put]);
            let mut seen = 0;
            buffer.find(&rows, order.prefix(&[0]), &[0], usize::MAX, |_| {
                seen += 1;
                true
            });
            prop_assert!((1..=4).contains(&seen), "{seen} records of one key");
        }
    }
}

/// Who looks at each of many tables sees about what they have, and not all of it once a table.
#[test]
fn a_look_at_one_of_many_tables_passes_over_the_others() {
    const TABLES: u32 = 100;
    let (arena, mut appender) = Arena::new(1 << 24);
    let buffer = WriteBuffer::new(1, arena, None);
    for batch in 0..10u32 {
        let mut payload = Payload::default();
        for table in 1..=TABLES {
            for number in 0..100u32 {
                let key = (batch * 100 + number).to_be_bytes();
                payload.push(table, Order::Lexical, &Record::put(&key, &[7; 60]));
            }
        }
        append_payload(&mut appender, Some(&buffer), &payload);
    }
    for table in 1..=TABLES {
        let (mut own, mut visited) = (0, 0);
        buffer.for_each_near(table, 0, buffer.len(), |owner, _, _| {
            own += u32::from(owner == table);
            visited += 1;
        });
        assert_eq!((own, visited), (1000, 1000), "table {table}");
    }
}

/// More than a lookup takes in: the next ones go on with it, and all of them see everything.
#[test]
fn lookups_behind_many_records_see_them_all() {
    let (order, rule) = (Order::Hashed { seed: 2 }, Merging::Add);
    let rows = TableRows { table: 4, order, rule: Some(&rule) };
    let (arena, mut appender) = Arena::new(1 << 20);
    let buffer = Arc::new(WriteBuffer::new(1, arena, None));
    for round in 1..=3u8 {
        let batch: Vec<(Vec<u8>, u8)> =
            (0..9000u16).map(|number| ((number % 3000).to_le_bytes().into(), 1)).collect();
        append(&mut appender, Some(&buffer), order, 4, &batch, &[Kind::Put]);
        for key in (0..3000u16).step_by(500).map(u16::to_le_bytes) {
            let mut sum = 0;
            buffer.find(&rows, order.prefix(&key), &key, usize::MAX, |record| {
                sum += record.value[0];
                true
            });
            assert_eq!(sum, 3 * round);
        }
    }
}

/// A lookup took in as many as ever, however many it had to look through.
#[test]
fn few_lookups_meet_many_records_that_wait() {
    let (order, rule) = (Order::Hashed { seed: 2 }, Merging::Add);
    let rows = TableRows { table: 4, order, rule: Some(&rule) };
    let (arena, mut appender) = Arena::new(16 << 20);
    let buffer = Arc::new(WriteBuffer::new(1, arena, None));
    let batch: Vec<(Vec<u8>, u8)> = (0..300_000u32).map(|number| (number.to_le_bytes().into(), 1)).collect();
    append(&mut appender, Some(&buffer), order, 4, &batch, &[Kind::Put]);
    let is_taken_in = || buffer.index.read().tables[&4].states_at(buffer.len()).is_some();
    let look = |key: &[u8]| buffer.find(&rows, order.prefix(key), key, usize::MAX, |_| true);
    let lookups = (0..).take_while(|_| !is_taken_in()).map(|_| look(&[0; 4])).count();
    assert!((50..100).contains(&lookups), "{lookups} lookups");
}

/// Each key took a part of what waits in, and looked the rest through.
#[test]
fn keys_that_are_looked_up_together_look_once() {
    let (order, rule) = (Order::Hashed { seed: 2 }, Merging::Add);
    let rows = TableRows { table: 4, order, rule: Some(&rule) };
    let (arena, mut appender) = Arena::new(16 << 20);
    let buffer = Arc::new(WriteBuffer::new(1, arena, None));
    let batch: Vec<(Vec<u8>, u8)> =
        (0..300_000u32).map(|number| ((number % 100_000).to_le_bytes().into(), 1)).collect();
    append(&mut appender, Some(&buffer), order, 4, &batch, &[Kind::Put]);
    // Every other one is not there.
    let mut keys: Vec<[u8; 4]> = (0..20_000u32).map(|number| (number * 10).to_le_bytes()).collect();
    // One is there many times.
    let often = keys[7];
    keys[9_000..10_000].fill(often);
    let sought: Vec<(u64, &[u8])> = keys.iter().map(|key| (order.prefix(key), &key[..])).collect();
    let mut sums = vec![0; keys.len()];
    buffer.find_many(&rows, &sought, usize::MAX, |at, record| {
        sums[at] += record.value[0];
        true
    });
    let (there, absent) = sums.split_at(10_000);
    assert!(there.iter().all(|sum| *sum == 3) && absent.iter().all(|sum| *sum == 0));
    assert!(buffer.index.read().tables[&4].states_at(buffer.len()).is_none(), "most still wait");
}
