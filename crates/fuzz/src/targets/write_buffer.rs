//! The write buffer against a list of all that was appended: lookups and walks at any moment, before and after it is
//! sorted, of tables that merge and of those that do not, with ranges deleted.

use std::path::Path;
use std::sync::Arc;

use forebay_base::combine::{Depth, Fold};
use forebay_base::merge::{Cursor, Direction, LoserTree};
use forebay_base::{Combine, Kind, Order, Range, Record};
use forebay_env::fs::MemoryFs;
use forebay_env::{FileSystem, Rng};
use forebay_store::WriteBuffer;
use forebay_store::buffer::{ArenaPool, Sorting, TableRows};
use forebay_store::log::batch::Payload;
use forebay_store::log::frame::Secret;
use forebay_store::log::{Appended, Durability, Log, PreparedSegment, Writes};

use super::merge::Append;
use crate::damage::DIR;
use crate::draws::{self, one_of};

const KEYS: u64 = 80;
const TABLE: u32 = 4;

/// What was appended, oldest first.
enum Written {
    Record(Vec<u8>, Kind, Vec<u8>),
    Gone(Range),
}

/// States of eight bytes, added up.
struct Add;

impl Combine for Add {
    fn fold(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(newer);
        let start = out.len() - newer.len();
        self.merge_in_place(&mut out[start..], older);
    }
    fn merges_puts(&self) -> bool {
        true
    }
    fn deletes_states(&self) -> bool {
        true
    }
    fn keeps_length(&self) -> bool {
        true
    }
    fn merge_in_place(&self, newer: &mut [u8], older: &[u8]) -> bool {
        newer.iter_mut().zip(older).for_each(|(one, other)| *one = one.wrapping_add(*other));
        true
    }
}

pub(crate) fn fuzz(rng: &mut Rng) {
    let (fs, dir, secret) = (MemoryFs::new(), Path::new(DIR), Secret(9));
    fs.create_dir_all(dir).expect("memory takes it");
    let pool = ArenaPool::new(1 << 20, 2);
    let first = PreparedSegment::first(&*fs, dir, 1, &pool).expect("memory takes it");
    let buffer = Arc::clone(first.buffer());
    let log = Log::new(first, 0, Writes::Always, secret, Arc::default());
    let rule = one_of::<Option<&dyn Combine>>(rng, &[None, Some(&Append), Some(&Add)]);
    let adds = rule.is_some_and(Combine::merges_puts);
    let rows = TableRows { table: TABLE, order: draws::order(rng), rule };
    let (mut written, mut moments) = (Vec::new(), Vec::new());
    for _ in 0..one_of(rng, &[1, 5, 25]) {
        let payload = batch(rng, rows.order, adds, rule.is_some(), &mut written);
        let appended = log.commit(&payload, payload.sum(secret), 0, None, Durability::Memory);
        assert!(matches!(appended, Ok(Appended::Done(_))));
        moments.push((buffer.len(), written.len()));
        if rng.chance(40) {
            let moment = one_of(rng, &moments);
            check(rng, &buffer, &rows, &written, moment);
        }
    }
    if rng.chance(50) {
        for notes in buffer.take_notes(|_| Some(rows.order)) {
            let mut sorting = Sorting::new(&buffer, notes, rows.order);
            while sorting.step().is_none() {}
        }
    }
    moments.iter().for_each(|moment| check(rng, &buffer, &rows, &written, *moment));
}

fn batch(rng: &mut Rng, order: Order, adds: bool, merges: bool, written: &mut Vec<Written>) -> Payload {
    let mut payload = Payload::default();
    for _ in 0..=rng.below(40) {
        payload.push(9, Order::Lexical, &Record::put(b"of another table", b""));
        let key = draws::key(rng, KEYS);
        if order == Order::Lexical && !merges && rng.chance(2) {
            let range = draws::range(rng, order, KEYS);
            payload.delete_range(TABLE, range.clone());
            written.push(Written::Gone(range));
            continue;
        }
        let (kind, value) = match draws::change(rng) {
            _ if adds && rng.chance(5) => (Kind::Delete, Vec::new()),
            _ if adds => (Kind::Put, rng.next_u64().to_le_bytes().to_vec()),
            (Kind::Merge, value) if !merges => (Kind::Put, value),
            change => change,
        };
        payload.push(TABLE, order, &Record { kind, key: &key, value: &value });
        written.push(Written::Record(key, kind, value));
    }
    payload
}

/// What a key comes to.
fn model(rule: &dyn Combine, written: &[Written], order: Order, key: &[u8]) -> Option<Vec<u8>> {
    let mut fold = Fold::default();
    for change in written.iter().rev() {
        let record = match change {
            Written::Record(other, kind, value) if other == key => Record { kind: *kind, key, value },
            Written::Gone(range) if range.contains(order.prefix(key), key) => Record::delete(key),
            _ => continue,
        };
        if !fold.add(rule, &record) {
            break;
        }
    }
    fold.finish(key, Depth::Bottom).map(|record| record.value.to_vec())
}

/// Holds what the buffer had at a moment against what had been written by then.
fn check(
    rng: &mut Rng,
    buffer: &Arc<WriteBuffer>,
    rows: &TableRows<'_>,
    written: &[Written],
    moment: (usize, usize),
) {
    let (limit, count) = moment;
    let (order, rule) = (rows.order, rows.rule.unwrap_or(&Append));
    for _ in 0..20 {
        let key = draws::key(rng, KEYS);
        let mut fold = Fold::default();
        buffer.find(rows, order.prefix(&key), &key, limit, |record| fold.add(rule, record));
        let found = fold.finish(&key, Depth::Bottom).map(|record| record.value.to_vec());
        assert_eq!(found, model(rule, &written[..count], order, &key), "{key:?} of {count} records");
    }
    if written[..count].iter().any(|change| matches!(change, Written::Gone(_))) {
        // Who walks hides what range deletes hide.
        return;
    }
    let range = draws::range(rng, order, KEYS);
    let direction = one_of(rng, &[Direction::Forward, Direction::Backward]);
    let mut cursors = buffer.cursors(rows, &range, limit);
    cursors.iter_mut().for_each(|cursor| cursor.seek(None, direction));
    let mut merge = LoserTree::new(cursors, direction);
    let mut last = None;
    while let Some(prefix) = merge.prefix() {
        let key = merge.record().key.to_vec();
        assert!(range.contains(prefix, &key) && last.as_ref() != Some(&key));
        let (mut fold, mut is_open) = (Fold::default(), true);
        while merge.prefix().is_some() && merge.record().key == key {
            is_open = is_open && fold.add(rule, &merge.record());
            merge.advance().expect("memory is read");
        }
        let found = fold.finish(&key, Depth::Bottom).map(|record| record.value.to_vec());
        assert_eq!(found, model(rule, &written[..count], order, &key));
        last = Some(key);
    }
}
