//! A buffer's lookups and walks against a list of all that was appended.

use std::sync::Arc;

use forebay_base::merge::{Cursor, Direction};
use forebay_base::{Order, Range, Record};
use forebay_env::{Appender, Arena};
use proptest::prelude::*;

use super::{ArenaPool, BufferCursor, Sorting, WriteBuffer};
use crate::log::batch::Payload;
use crate::log::frame::{HEADER_BYTES, Header, frame_bytes};

fn append(
    appender: &mut Appender,
    noting: Option<&WriteBuffer>,
    order: Order,
    table: u32,
    records: &[(Vec<u8>, u8)],
) {
    let mut payload = Payload::default();
    for (key, value) in records {
        payload.push(9, order, &Record::put(b"of another table", b""));
        payload.push(table, order, &Record::put(key, std::slice::from_ref(value)));
    }
    let base = appender.len() + HEADER_BYTES;
    let header = Header {
        payload_sum: payload.sum(),
        payload_bytes: payload.bytes().len() as u32,
        records: payload.records(),
        sequence: 1,
        watermark: 0,
    };
    let padded = frame_bytes(payload.bytes().len()) - HEADER_BYTES - payload.bytes().len();
    for piece in [&header.encode(1, appender.len())[..], payload.bytes(), &[0; 8][..padded]] {
        appender.append(piece).unwrap();
    }
    match noting {
        Some(buffer) => buffer.note(payload.notes(), base, || appender.publish()),
        None => appender.publish(),
    }
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
        let (arena, mut appender) = Arena::new(1 << 16);
        let pool = ArenaPool::new(1 << 16, 2);
        pool.put_back_words(vec![7; 3]);
        let buffer = Arc::new(WriteBuffer::new(1, arena, Some(pool)));
        let mut marks = Vec::new();
        let mut written: Vec<(Vec<u8>, u8)> = Vec::new();
        for (batch, look) in batches.iter().zip(&looks) {
            append(&mut appender, noted.then_some(&*buffer), order, 4, batch);
            written.extend(batch.iter().cloned());
            marks.push((buffer.len(), written.len()));
            if *look {
                buffer.find(4, order, order.prefix(b""), b"", buffer.len(), |_| false);
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
                buffer.find(4, order, order.prefix(key), key, limit, |record| { versions.push(record.value[0]); true });
                let expected: Vec<u8> = written[..count].iter().rev().filter(|(k, _)| k == key).map(|(_, v)| *v).collect();
                prop_assert_eq!(versions, expected);
            }
            for range in [&range, &Range::all()] {
                let mut expected: Vec<(usize, (Vec<u8>, u8))> = written[..count].iter().cloned().enumerate()
                    .filter(|(_, (key, _))| range.contains(order.prefix(key), key)).collect();
                expected.sort_by_key(|(age, (key, _))| (order.prefix(key), key.clone(), usize::MAX - age));
                let mut forward: Vec<_> = buffer.cursors(4, order, range, Direction::Forward, limit).into_iter().flat_map(walk).collect();
                forward.sort_by_key(|(key, _)| (order.prefix(key), key.clone()));
                let mut expected: Vec<(Vec<u8>, u8)> = expected.into_iter().map(|(_, entry)| entry).collect();
                let by_key = |entries: &mut Vec<(Vec<u8>, u8)>| entries.sort();
                let (mut a, mut b) = (forward.clone(), expected.clone());
                by_key(&mut a); by_key(&mut b);
                prop_assert_eq!(a, b);
                // Backward: the newest of each run; the newest of all must be among them and first by run.
                let back = buffer.cursors(4, order, range, Direction::Backward, limit);
                expected.dedup_by(|later, first| later.0 == first.0);
                let mut newest: std::collections::BTreeMap<Vec<u8>, u8> = Default::default();
                for cursor in back {
                    let walked = walk(cursor);
                    prop_assert!(walked.windows(2).all(|pair| (order.prefix(&pair[0].0), &pair[0].0) > (order.prefix(&pair[1].0), &pair[1].0)));
                    for (key, value) in walked { newest.entry(key).or_insert(value); }
                }
                prop_assert_eq!(newest.into_iter().collect::<Vec<_>>(), { expected.sort(); expected });
            }
        }
    }
}
