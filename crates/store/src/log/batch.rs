//! The payload of a frame: records of one batch in the order they were given. A record's tag with kind 3 stands for
//! "the records that follow are of table *n*". There is no table 0: as a tag it stands for a range delete of the same
//! table.

use forebay_base::expiry::EXPIRY_BYTES;
use forebay_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay_base::wire::{get_varint, put_varint};
use forebay_base::{Kind, Order, Range, Record};

use super::frame::Secret;
use crate::buffer::{Notes, RangeDelete};

const SWITCH: u64 = 3;
/// The tag of a range delete, which takes a byte.
const RANGE_DELETE: u8 = 3;

const _: () =
    assert!(SWITCH == Kind::Merge as u64 + 1 && RANGE_DELETE as u64 == SWITCH, "no record has this tag");

/// Builds a payload.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    bytes: Vec<u8>,
    notes: Notes,
    table: Option<u32>,
    records: u32,
    recent: Recent,
}

impl Payload {
    /// Adds a record of a table of this order.
    #[inline]
    pub fn push(&mut self, table: u32, order: Order, record: &Record<'_>) {
        self.append(table, order, order.prefix(record.key), record);
    }

    /// Deletes a state. What is added behind this is a record of its own.
    pub fn delete_state(&mut self, table: u32, order: Order, key: &[u8]) {
        self.recent.forget();
        self.push(table, order, &Record::delete(key));
    }

    /// Deletes what a table has of a range by now. It counts as a record.
    pub fn delete_range(&mut self, table: u32, range: Range) {
        self.recent.forget();
        self.switch_to(table);
        let place = self.bytes.len();
        self.bytes.push(RANGE_DELETE);
        RangeDelete::encode(&range, &mut self.bytes);
        debug_assert_eq!(
            RangeDelete::decode(&self.bytes[place + 1..]).map(|(read, _)| read).as_ref(),
            Some(&range)
        );
        self.notes.add_range_delete(RangeDelete { table, place, range });
        self.records += 1;
    }

    /// Adds a state to a table in which those of a key have one length and merge. Where the key came a short while ago,
    /// `merge` puts the state into that record's instead.
    #[inline]
    pub fn push_state(
        &mut self,
        table: u32,
        order: Order,
        record: &Record<'_>,
        merge: impl FnOnce(&mut [u8], &[u8]),
    ) {
        debug_assert_eq!(record.kind, Kind::Put, "states are puts");
        let prefix = order.prefix(record.key);
        self.switch_to(table);
        let of = (self.recent.batch, table, prefix as u32);
        if let Some(slot) = self.recent.slot(table, prefix, self.records) {
            if slot.of == of
                && let Some(state) = state_at(&mut self.bytes, slot.place as usize, record)
            {
                return merge(state, record.value);
            }
            *slot = Slot { of, place: self.bytes.len() as u32 };
        }
        self.append(table, order, prefix, record);
    }

    #[inline]
    fn append(&mut self, table: u32, order: Order, prefix: u64, record: &Record<'_>) {
        self.switch_to(table);
        self.notes.add(table, order, prefix, self.bytes.len(), record);
        record.encode(&mut self.bytes);
        self.records += 1;
    }

    #[inline]
    fn switch_to(&mut self, table: u32) {
        debug_assert!(table > 0, "the tag of table 0 is that of a range delete");
        if self.table != Some(table) {
            put_varint(&mut self.bytes, (table as u64) << 2 | SWITCH);
            self.table = Some(table);
        }
    }

    /// The same, noted for tables that have got other orders since.
    pub fn in_orders(&self, order_of: impl Fn(u32) -> Option<Order>) -> Self {
        let mut noted = self.clone();
        noted.note_in(order_of);
        noted
    }

    /// A batch of its bytes, for which tables need not be known: noted for those that are. `None` where they are
    /// malformed.
    pub fn read(bytes: Vec<u8>, order_of: impl Fn(u32) -> Option<Order>) -> Option<Self> {
        let mut read = Self { bytes, ..Self::default() };
        let mut records = Records::new(&read.bytes);
        let is_short = records.by_ref().all(|(_, _, record)| {
            record.key.len() <= KEY_BYTES_MAX && record.value.len() <= VALUE_BYTES_MAX + EXPIRY_BYTES
        });
        let is_whole = is_short && records.is_at_end();
        is_whole.then(|| {
            read.note_in(order_of);
            read
        })
    }

    /// Where it ends. From here on nothing changes what is before that.
    pub fn mark(&mut self) -> Mark {
        self.recent.forget();
        Mark { place: self.bytes.len(), table: self.table }
    }

    /// What was added behind a mark, noted for tables of these orders.
    pub fn behind(&self, mark: Mark, order_of: impl Fn(u32) -> Option<Order>) -> Self {
        let mut behind = Self::default();
        if let Some(added) = self.bytes.get(mark.place..).filter(|added| !added.is_empty()) {
            mark.table.into_iter().for_each(|table| behind.switch_to(table));
            behind.bytes.extend_from_slice(added);
            behind.note_in(order_of);
        }
        behind
    }

    fn note_in(&mut self, order_of: impl Fn(u32) -> Option<Order>) {
        let Self { bytes, notes, .. } = self;
        notes.clear();
        let (mut records, mut count) = (Records::new(bytes), 0);
        for (table, place, record) in records.by_ref() {
            count += 1;
            if let Some(order) = order_of(table) {
                notes.add(table, order, order.prefix(record.key), place, &record);
            }
        }
        debug_assert!(records.is_at_end(), "a batch is walked to its end");
        let deletes = records.into_range_deletes();
        self.records = count + deletes.len() as u32;
        deletes.into_iter().for_each(|delete| notes.add_range_delete(delete));
    }

    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.notes.clear();
        self.recent.forget();
        (self.table, self.records) = (None, 0);
    }

    /// What is noted of its records.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// How many records.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Bytes of keys and values.
    pub fn user_bytes(&self) -> u64 {
        self.notes.tables().map(|notes| notes.contents.bytes).sum()
    }

    /// The payload's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Their checksum, so that it can be computed before any lock is taken.
    pub fn sum(&self, secret: Secret) -> u32 {
        secret.payload_sum(&self.bytes)
    }
}

/// The end of a payload at some time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    place: usize,
    /// Of the record before it.
    table: Option<u32>,
}

/// The value of the record at a place, if it has the key of this one and a value as long.
#[inline]
fn state_at<'a>(bytes: &'a mut [u8], place: usize, like: &Record<'_>) -> Option<&'a mut [u8]> {
    let (record, length) = Record::decode(bytes.get(place..)?)?;
    let value_bytes = record.value.len();
    let is_like = record.key == like.key && value_bytes == like.value.len();
    is_like.then(|| &mut bytes[place + length - value_bytes..place + length])
}

/// Where keys came a short while ago, by their prefixes: one that another has replaced is forgotten.
#[derive(Clone, Debug)]
struct Recent {
    slots: Vec<Slot>,
    /// Tells the batch from those before it; never 0, which fresh slots have.
    batch: u32,
}

impl Default for Recent {
    fn default() -> Self {
        Self { slots: Vec::new(), batch: 1 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Batch, table, and a piece of prefix.
    of: (u32, u32, u32),
    place: u32,
}

impl Recent {
    /// As many as a batch that a caller would make by hand; they stay in a core's first cache.
    const SLOTS: usize = 1024;
    /// Shorter batches do without.
    const RECORDS_MIN: u32 = 16;
    const IS_A_MASK: () = assert!(Self::SLOTS.is_power_of_two());

    /// What stands where this prefix would of this table, once there are this many records.
    #[inline]
    fn slot(&mut self, table: u32, prefix: u64, records: u32) -> Option<&mut Slot> {
        const { Self::IS_A_MASK };
        if records < Self::RECORDS_MIN {
            return None;
        }
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); Self::SLOTS];
        }
        // The same key of two tables has two places.
        self.slots.get_mut(((prefix >> 32) as usize ^ (table as usize * 37)) & (Self::SLOTS - 1))
    }

    fn forget(&mut self) {
        // After this many batches that numbers begin again, a new table.
        match self.batch.checked_add(1) {
            Some(next) => self.batch = next,
            None => *self = Self::default(),
        }
    }
}

/// Walks a payload: yields each record with its table and its place in the payload, and gathers range deletes.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    payload: &'a [u8],
    at: usize,
    table: u32,
    range_deletes: Vec<RangeDelete>,
}

impl<'a> Records<'a> {
    /// Walks from the start.
    pub fn new(payload: &'a [u8]) -> Self {
        Self::behind(payload, 0, 0)
    }

    /// Walks from a record of a table on.
    pub(crate) fn behind(payload: &'a [u8], at: usize, table: u32) -> Self {
        Self { payload, at, table, range_deletes: Vec::new() }
    }

    /// Whether the walk reached the end without meeting a malformed record.
    pub fn is_at_end(&self) -> bool {
        self.at == self.payload.len()
    }

    /// The range deletes that the walk has met.
    pub fn into_range_deletes(self) -> Vec<RangeDelete> {
        self.range_deletes
    }

    #[cold]
    fn take_range_delete(&mut self) -> Option<()> {
        let (range, used) = RangeDelete::decode(&self.payload[self.at + 1..])?;
        self.range_deletes.push(RangeDelete { table: self.table, place: self.at, range });
        self.at += 1 + used;
        Some(())
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u32, usize, Record<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.payload.get(self.at..)?;
            let &first = rest.first()?;
            if first == RANGE_DELETE {
                self.take_range_delete()?;
                continue;
            }
            if first as u64 & 3 == SWITCH {
                let (tag, used) = get_varint(rest)?;
                self.table = u32::try_from(tag >> 2).ok()?;
                self.at += used;
                continue;
            }
            let (record, used) = Record::decode(rest)?;
            let place = self.at;
            self.at += used;
            return Some((self.table, place, record));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A key that comes again is merged with itself, of its own table and batch, and else stays.
    #[test]
    fn states_of_recent_keys_merge() {
        let mut payload = Payload::default();
        let order = Order::Hashed { seed: 3 };
        let mut model: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for batch in 0..3u32 {
            payload.clear();
            model.clear();
            for number in 0..3000u32 {
                let (table, key) = (1 + number / 7 % 2, number % (20 + 2000 * batch));
                *model.entry((table, key)).or_default() += u64::from(number);
                let (key, state) = (key.to_le_bytes(), u64::from(number).to_le_bytes());
                payload.push_state(table, order, &Record::put(&key, &state), |state, other| {
                    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
                    let sum = number(state) + number(other);
                    state.copy_from_slice(&sum.to_le_bytes());
                });
            }
            let mut found: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            for (table, _, record) in Records::new(payload.bytes()) {
                let key = u32::from_le_bytes(record.key.try_into().unwrap());
                *found.entry((table, key)).or_default() +=
                    u64::from_le_bytes(record.value.try_into().unwrap());
            }
            assert_eq!(found, model);
            let noted: u64 = payload.notes().tables().map(|notes| notes.contents.records).sum();
            assert_eq!(noted, u64::from(payload.records()));
            assert_eq!(payload.records() < 700, batch == 0, "{}", payload.records());
        }
    }

    #[test]
    fn cuts_come_back_between_records() {
        let mut payload = Payload::default();
        let range = |low: &[u8], high: Option<&[u8]>| Range {
            low: Order::Lexical.bound(low),
            high: high.map(|high| Order::Lexical.bound(high)),
        };
        let ranges = [range(b"", None), range(b"a", Some(b"")), range(&[7; 300], Some(&[8; 200]))];
        payload.push(4, Order::Lexical, &Record::put(b"a", b"1"));
        for (number, range) in ranges.iter().enumerate() {
            payload.delete_range(4 + number as u32 / 2, range.clone());
            payload.push(4, Order::Lexical, &Record::delete(b"b"));
        }
        assert_eq!(payload.records(), 7);
        let mut walk = Records::new(payload.bytes());
        assert_eq!(walk.by_ref().filter(|(table, ..)| *table == 4).count(), 4);
        assert!(walk.is_at_end());
        let range_deletes = walk.into_range_deletes();
        assert_eq!(range_deletes, payload.notes().range_deletes());
        assert!(range_deletes.iter().map(|delete| &delete.range).eq(&ranges));
        assert_eq!(range_deletes.iter().map(|delete| delete.table).collect::<Vec<_>>(), [4, 4, 5]);
        for end in 0..payload.bytes().len() {
            let mut walk = Records::new(&payload.bytes()[..end]);
            let records = walk.by_ref().count();
            let is_whole = walk.is_at_end();
            assert!(!is_whole || records + walk.into_range_deletes().len() < 7, "cut at {end}");
        }
    }

    /// As who follows another database reads it: of tables that are not known the records are counted, and no more.
    #[test]
    fn a_batch_is_read_from_its_bytes_or_malformed() {
        let mut payload = Payload::default();
        payload.push(1, Order::Lexical, &Record::put(b"a", b"1"));
        payload.push(7, Order::Lexical, &Record::delete(b"b"));
        payload.delete_range(1, Range { low: Order::Lexical.bound(b"a"), high: None });
        let order_of = |table| (table == 1).then_some(Order::Lexical);
        let read = Payload::read(payload.bytes().to_vec(), order_of).unwrap();
        assert_eq!((read.bytes(), read.records()), (payload.bytes(), 3));
        assert_eq!(read.notes().tables().map(|notes| notes.table).collect::<Vec<_>>(), [1]);
        assert_eq!(read.notes().range_deletes().len(), 1);
        let cut = payload.bytes()[..payload.bytes().len() - 1].to_vec();
        assert!(Payload::read(cut, order_of).is_none());
        let mut long = Payload::default();
        long.push(1, Order::Lexical, &Record::put(&vec![0; KEY_BYTES_MAX + 1], b""));
        assert!(Payload::read(long.bytes().to_vec(), order_of).is_none());
    }

    #[test]
    fn records_come_back_with_their_tables_and_a_cut_is_noticed() {
        let mut payload = Payload::default();
        let records = [(1, Record::put(b"a", b"1")), (1, Record::delete(b"b")), (900, Record::put(b"", b""))];
        records.iter().for_each(|(table, record)| payload.push(*table, Order::Lexical, record));
        let mut walk = Records::new(payload.bytes());
        let seen: Vec<_> = walk.by_ref().map(|(table, _, record)| (table, record)).collect();
        assert_eq!(seen, records);
        assert!(walk.is_at_end());
        let mut cut = Records::new(&payload.bytes()[..payload.bytes().len() - 1]);
        assert_eq!(cut.by_ref().count(), 2);
        assert!(!cut.is_at_end());
    }
}
