//! How much a range holds, from what is in memory anyway: the nodes' sizes, the lists' page searches, the order over
//! buffers.

use forebay_base::{Range, Result};

use crate::versions::View;

/// About how much of a table lies in a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Approximation {
    /// Records in lists and buffers, every version and every tombstone counted.
    pub records: u64,
    /// Their bytes: in lists those that they take in the file, in buffers those of keys and values.
    pub bytes: u64,
}

pub(crate) fn approximate(view: &View, table: u32, range: &Range) -> Result<Approximation> {
    let table = view.table(table)?;
    table.rule()?;
    if range.is_empty() {
        return Ok(Approximation::default());
    }
    let held = table.version.portion(range);
    let mut sum = Approximation { records: held.records, bytes: held.bytes };
    for (buffer, limit) in view.buffers() {
        for cursor in buffer.cursors(&table.rows(), range, limit) {
            let (records, bytes) = cursor.extent();
            sum.records += records;
            sum.bytes += bytes;
        }
    }
    Ok(sum)
}
