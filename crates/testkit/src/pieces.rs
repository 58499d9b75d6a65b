//! Tables that are read in pieces, and counted, held against the model.

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray};
use forebay::{Batch, Result, Table};

use crate::Write;
use crate::check::{Entries, View, certain, compare};
use crate::seen::Shown;
use crate::tables::keeps_order;

impl View<'_> {
    /// From a position on, again and again: each key once. Tables in key order have no positions.
    pub(crate) fn check_pieces(&self, table: usize, shown: &Shown<'_>, count: usize) -> Result<()> {
        let Some(plain) = self.tables.plain(table) else { return Ok(()) };
        let (mut position, mut got) = (Some(0), Entries::new());
        while let Some(from) = position {
            let scanned = match self.snapshot {
                Some(snapshot) => snapshot.scan_from(plain, from, count),
                None => plain.scan_from(from, count),
            };
            if keeps_order(self.config, table) {
                assert!(scanned.is_err(), "a table in key order went on from a position");
                return self.check_columns(plain, shown, count);
            }
            let scanned = scanned?;
            assert!(scanned.next.is_none() || scanned.entries.len() >= count, "it goes on, and gives less");
            got.extend(scanned.entries);
            position = scanned.next;
        }
        got.sort();
        let (got, wanted) = certain(got, shown, |_| true);
        compare("pieces", &got, &wanted);
        Ok(())
    }

    /// Record batches, each of so many rows but the last.
    fn check_columns(&self, plain: &Table, shown: &Shown<'_>, count: usize) -> Result<()> {
        let scan = match self.snapshot {
            Some(snapshot) => snapshot.iter_columns(plain, count),
            None => plain.iter_columns(count),
        }?;
        let is_backward = count.is_multiple_of(2);
        let mut got = Entries::new();
        for batch in if is_backward { scan.backward() } else { scan } {
            assert!(got.len().is_multiple_of(count), "a batch that is not full is the last");
            let batch = batch?;
            let [keys, values] = [0, 1].map(|column| batch.column(column).as_binary::<i32>());
            let rows = keys.iter().flatten().zip(values.iter().flatten());
            got.extend(rows.map(|(key, value)| (key.to_vec(), value.to_vec())));
        }
        let keys = BinaryArray::from_iter_values(got.iter().map(|(key, _)| key));
        let looked_up = match self.snapshot {
            Some(snapshot) => snapshot.get_columns(plain, &keys),
            None => plain.get_columns(&keys),
        }?;
        if self.snapshot.is_some() {
            let values = got.iter().map(|(_, value)| Some(&value[..]));
            assert!(looked_up.iter().eq(values), "a key's value is that of its row");
        }
        assert_eq!(looked_up.len(), got.len());
        if is_backward {
            got.reverse();
        }
        let (got, wanted) = certain(got, shown, |_| true);
        compare("columns", &got, &wanted);
        Ok(())
    }

    /// Part after part, which come to all there is.
    pub(crate) fn check_parts(&self, table: usize, shown: &Shown<'_>, count: usize) -> Result<()> {
        let Some(plain) = self.tables.plain(table) else { return Ok(()) };
        let parts = match self.snapshot {
            Some(snapshot) => snapshot.parts(plain, count),
            None => plain.parts(count),
        }?;
        assert!((1..=count).contains(&parts.len()), "{} parts of {count}", parts.len());
        let mut got = parts.into_iter().flatten().collect::<Result<Entries>>()?;
        if !keeps_order(self.config, table) {
            got.sort();
        }
        let (got, wanted) = certain(got, shown, |_| true);
        compare("parts", &got, &wanted);
        Ok(())
    }

    /// As many keys as there are.
    pub(crate) fn check_count(&self, table: usize, shown: &Shown<'_>) -> Result<()> {
        let Some(plain) = self.tables.plain(table) else { return Ok(()) };
        let count = match self.snapshot {
            Some(snapshot) => snapshot.count(plain),
            None => plain.count(),
        }?;
        let most = shown.contents.len() as u64;
        let least = most - shown.doubtful.len() as u64;
        assert!((least..=most).contains(&count), "{count} keys of table {table}, of {least} to {most}");
        Ok(())
    }
}

/// A put or a delete as columns of one row.
pub(crate) fn put_columns(batch: &mut Batch, table: &Table, key: &[u8], write: &Write) {
    let value = match write {
        Write::Put(value) => Some(value.as_slice()),
        _ if key.len() % 8 == 3 => return batch.delete_columns(table, &BinaryArray::from(vec![key])),
        _ => None,
    };
    batch.put_columns(table, &BinaryArray::from(vec![key]), &BinaryArray::from(vec![value]));
}
