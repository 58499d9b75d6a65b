//! Collecting what the sorter needs of a sealed buffer, in short steps. Of one that was filled by writers it was noted
//! meanwhile; one that was read back from the log is walked for it.

use std::collections::BTreeMap;

use forebay_base::Order;
use forebay_base::limits::STEP_BYTES;

use super::{Notes, TableNotes, WriteBuffer};

/// A walk over a buffer on its way.
#[derive(Default)]
pub struct Noting {
    notes: Notes,
    walked_bytes: usize,
    /// The orders of the tables that it met, as they were then: a table is noted once, whatever becomes of its order.
    orders: BTreeMap<u32, Option<Order>>,
}

impl Noting {
    /// Goes on for about 1 MiB. Gives what there is of each table once all of the buffer was walked. Where a table has
    /// no order, its records are passed over.
    pub fn step(
        &mut self,
        buffer: &WriteBuffer,
        order_of: impl Fn(u32) -> Option<Order>,
    ) -> Option<Vec<TableNotes>> {
        if self.walked_bytes == 0
            && let Some(noted) = buffer.take_noted()
        {
            return Some(noted);
        }
        let Self { notes, walked_bytes, orders } = self;
        let mut latest = None;
        *walked_bytes = buffer.for_each(*walked_bytes, *walked_bytes + STEP_BYTES, |table, place, record| {
            let order = match latest {
                Some((of, order)) if of == table => order,
                _ => *orders.entry(table).or_insert_with(|| order_of(table)),
            };
            latest = Some((table, order));
            if let Some(order) = order {
                notes.add(table, order, order.prefix(record.key), place, record);
            }
        });
        debug_assert!(*walked_bytes <= buffer.len(), "no record is noted that is not there");
        (*walked_bytes == buffer.len()).then(|| std::mem::take(notes).into_tables().collect())
    }
}

impl WriteBuffer {
    /// What is noted of a sealed buffer, for the sorter. One that was read back from the log is walked for it.
    pub fn take_notes(&self, order_of: impl Fn(u32) -> Option<Order>) -> Vec<TableNotes> {
        let mut noting = Noting::default();
        loop {
            if let Some(notes) = noting.step(self, &order_of) {
                return notes;
            }
        }
    }

    /// The same, if it was noted as the buffer was filled.
    fn take_noted(&self) -> Option<Vec<TableNotes>> {
        // Whoever sorts has words that are not in the index meanwhile.
        let _nobody_sorts = self.sorting.lock();
        let mut index = self.index.write();
        index.noted.then(|| {
            let noted = index.tables.iter_mut().map(|(&table, index)| index.take_notes(table));
            noted.filter(|notes| notes.contents.records > 0).collect()
        })
    }
}
