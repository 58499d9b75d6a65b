//! The payload of a frame: records of one batch in the order they were given. A record's tag with kind 3
//! stands for "the records that follow are of table *n*".

use forebay_base::wire::{get_varint, put_varint};
use forebay_base::{Order, Record, checksum};

use crate::buffer::Notes;

const SWITCH: u64 = 3;

/// Builds a payload.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    bytes: Vec<u8>,
    notes: Notes,
    table: Option<u32>,
    records: u32,
}

impl Payload {
    /// Adds a record of a table of this order.
    #[inline]
    pub fn push(&mut self, table: u32, order: Order, record: &Record<'_>) {
        if self.table != Some(table) {
            put_varint(&mut self.bytes, (table as u64) << 2 | SWITCH);
            self.table = Some(table);
        }
        self.notes.add(table, order, self.bytes.len(), record);
        record.encode(&mut self.bytes);
        self.records += 1;
    }

    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.notes.clear();
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
    pub fn sum(&self) -> u32 {
        checksum::plain(&self.bytes)
    }
}

/// Walks a payload: yields each record with its table and its place in the payload.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    payload: &'a [u8],
    at: usize,
    table: u32,
}

impl<'a> Records<'a> {
    /// Walks from the start.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { payload, at: 0, table: 0 }
    }

    /// Whether the walk reached the end without meeting a malformed record.
    pub fn is_at_end(&self) -> bool {
        self.at == self.payload.len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u32, usize, Record<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.payload.get(self.at..)?;
            let &first = rest.first()?;
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
    use super::*;

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
