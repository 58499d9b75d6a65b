//! Range deletes: ranges of a table that were deleted as a whole. A buffer keeps them beside its records, each with
//! its place among them. A range delete hides the older records of its range: those before it in the same buffer, and
//! all of older buffers and of lists.
//!
//! **Invariant:** there are few. The log begins another segment before a buffer has more than some hundred, so that
//! lookups can go through all of them.

use forebay_base::wire::{get_varint, put_raw, put_varint};
use forebay_base::{Order, Range};

/// A range that was deleted. Tables that have such keep their keys in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeDelete {
    /// The table's id.
    pub table: u32,
    /// Where it stands in the buffer. Nothing stands at place 0.
    pub place: usize,
    /// What it hides.
    pub range: Range,
}

impl RangeDelete {
    /// Appends the range's bytes.
    pub(crate) fn encode(range: &Range, out: &mut Vec<u8>) {
        put_varint(out, range.low.key.len() as u64);
        put_raw(out, &range.low.key);
        let high = range.high.as_ref().map(|high| &high.key);
        put_varint(out, high.map_or(0, |key| key.len() as u64 + 1));
        high.into_iter().for_each(|key| put_raw(out, key));
    }

    /// The range at the start of `bytes`, and its length.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Range, usize)> {
        let (low_bytes, used) = get_varint(bytes)?;
        let low_end = used.checked_add(usize::try_from(low_bytes).ok()?)?;
        let low = Order::Lexical.bound(bytes.get(used..low_end)?);
        let (high_bytes, used) = get_varint(&bytes[low_end..])?;
        let high_at = low_end + used;
        let Some(high_bytes) = usize::try_from(high_bytes).ok()?.checked_sub(1) else {
            return Some((Range { low, high: None }, high_at));
        };
        let end = high_at.checked_add(high_bytes)?;
        let high = Some(Order::Lexical.bound(bytes.get(high_at..end)?));
        Some((Range { low, high }, end))
    }

    /// Whether it hides a record.
    #[inline]
    pub(super) fn hides(&self, table: u32, place: usize, prefix: u64, key: &[u8]) -> bool {
        self.table == table && self.place > place && self.range.contains(prefix, key)
    }
}

/// The place of the newest range delete of a table that was there at length `limit` and of which something holds; 0
/// where there is none. What is older is hidden.
#[inline]
pub(super) fn floor(
    range_deletes: &[RangeDelete],
    table: u32,
    limit: usize,
    holds: impl Fn(&Range) -> bool,
) -> usize {
    let seen = range_deletes.iter().rev().filter(|delete| delete.table == table && delete.place < limit);
    seen.filter(|delete| holds(&delete.range)).map(|delete| delete.place).next().unwrap_or(0)
}

/// Whether a range delete hides all of a range.
pub(super) fn covers(delete: &Range, range: &Range) -> bool {
    let ends_within = match (&delete.high, &range.high) {
        (None, _) => true,
        (Some(end), Some(high)) => high <= end,
        (Some(_), None) => false,
    };
    delete.low <= range.low && ends_within
}
