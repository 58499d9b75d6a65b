//! Whether what was appended to a buffer since somebody read changes what they have read.

use std::ops::Range as Places;

use forebay_base::Record;

use super::{RangeDelete, WriteBuffer};
use crate::log::batch::Records;
use crate::log::frame;

/// What somebody has read, of any tables, and may add to from other threads.
pub trait HasRead {
    /// [`WriteBuffer::changed`] of all of it, which nobody adds to meanwhile.
    fn changed(&self, buffer: &WriteBuffer, places: Places<usize>) -> Option<u32>;
}

/// The same while nobody adds to it.
pub trait ReadSet {
    /// Whether a record is of a key among it, which may have had no value.
    fn has(&self, table: u32, record: &Record<'_>) -> bool;

    /// Whether a deleted range meets any of it.
    fn meets(&self, delete: &RangeDelete) -> bool;
}

impl WriteBuffer {
    /// The table of the first record that changes what was read, of those between two places at which batches end. All
    /// records there are walked, oldest first.
    pub fn changed(&self, places: Places<usize>, read: &dyn ReadSet) -> Option<u32> {
        let bytes = self.bytes();
        debug_assert!(places.start <= bytes.len(), "what is seen of a buffer was published");
        let seen = &bytes[..places.end.min(bytes.len())];
        frame::walk(seen, places.start).find_map(|(_, payload)| {
            let mut records = Records::new(payload);
            let found = records.find(|(table, _, record)| read.has(*table, record));
            found.map(|(table, ..)| table).or_else(|| {
                debug_assert!(records.is_at_end(), "a batch is walked to its end");
                let deletes = records.into_range_deletes();
                deletes.iter().find(|delete| read.meets(delete)).map(|delete| delete.table)
            })
        })
    }
}
