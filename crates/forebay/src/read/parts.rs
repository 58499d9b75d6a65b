//! Parts of a table that hold about as much each, one behind the other.
//!
//! 1. In hash order records are even over all prefixes, so prefixes are divided.
//! 2. In key order a bound is searched for, between the first key and the last: one below which about so many records
//!    lie, as [`approximate`] counts them. What the two have in common at the front, all keys have, so it is the sixteen
//!    bytes behind that which are divided.
//!
//! **Invariant:** each key is in one part, wherever the bounds are.

use std::sync::Arc;

use forebay_base::merge::Direction;
use forebay_base::{Bound, Order, Range, Result};

use crate::read::{Cursor, approximate};
use crate::versions::{Versions, View};

/// Nobody has more threads than this.
const PARTS_MAX: usize = 1024;
/// A part may hold this much more or less, as a share of what it should.
const SLACK_PART: u64 = 64;

/// Up to `count` parts, which are all of the table. Device reads: those of two seeks in key order, else none.
pub(crate) fn parts(versions: &Arc<Versions>, view: &View, table: u32, count: usize) -> Result<Vec<Range>> {
    let order = view.table(table)?.order;
    let count = count.clamp(1, PARTS_MAX);
    let prefix = |number: usize| (((number as u128) << 64) / count as u128) as u64;
    let mut bounds: Vec<Bound> = match order.is_lexical() {
        false => (1..count).map(|number| Bound::at_prefix(prefix(number))).collect(),
        true => Search::new(versions, view, table)?.map_or(Ok(Vec::new()), |search| search.bounds(count))?,
    };
    bounds.dedup();
    debug_assert!(bounds.is_sorted_by(|one, next| one < next), "each part is behind the one before");
    let lows = std::iter::once(Bound::least()).chain(bounds.iter().cloned());
    let highs = bounds.iter().cloned().map(Some).chain([None]);
    Ok(lows.zip(highs).map(|(low, high)| Range { low, high }).collect())
}

/// Looks for bounds in key order.
struct Search<'a> {
    view: &'a View,
    table: u32,
    /// What all keys begin with.
    shared: Vec<u8>,
    records: u64,
}

impl<'a> Search<'a> {
    /// `None` where there is nothing to divide.
    fn new(versions: &Arc<Versions>, view: &'a View, table: u32) -> Result<Option<Self>> {
        let end =
            |direction| Cursor::new(versions, view.clone(), table, Range::all(), direction)?.end(direction);
        let (Some((first, _)), Some((last, _))) = (end(Direction::Forward)?, end(Direction::Backward)?)
        else {
            return Ok(None);
        };
        let same = first.iter().zip(&last).take_while(|(one, other)| one == other).count();
        let records = approximate(view, table, &Range::all())?.records;
        Ok((same < last.len()).then(|| Self { view, table, shared: first[..same].to_vec(), records }))
    }

    /// Between `count` parts.
    fn bounds(&self, count: usize) -> Result<Vec<Bound>> {
        let slack = self.records / (count as u64).saturating_mul(SLACK_PART).max(1);
        let mut bounds: Vec<Bound> = Vec::new();
        debug_assert!(count > 0, "all of it is in some part");
        for number in 1..count {
            let wanted = (u128::from(self.records) * number as u128 / count as u128) as u64;
            let bound = self.bound(wanted, slack)?;
            if bounds.last().is_none_or(|last| *last < bound) {
                bounds.push(bound);
            }
        }
        Ok(bounds)
    }

    /// A bound below which about this many records lie.
    fn bound(&self, wanted: u64, slack: u64) -> Result<Bound> {
        let (mut low, mut high) = (0_u128, u128::MAX);
        loop {
            let middle = low + (high - low) / 2;
            let bound = Order::Lexical.bound(&[&self.shared, &middle.to_be_bytes()[..]].concat());
            let below = Range { low: Bound::least(), high: Some(bound.clone()) };
            let below = approximate(self.view, self.table, &below)?.records;
            if low >= high || below.abs_diff(wanted) <= slack {
                return Ok(bound);
            }
            if below < wanted { low = middle + 1 } else { high = middle }
        }
    }
}
