//! Ranges that were deleted, on their way to lists: before a buffer is flushed, what lists have of its range deletes'
//! ranges goes. All older buffers are in lists by then.
//!
//! **Invariant:** lists lose nothing before the log has the deletion durably, with all that was written before it, and
//! no later than the manifest says so: where the log is damaged, that is told from a torn tail.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use forebay_base::limits::STEP_BYTES;
use forebay_base::{Error, Range, Result};
use forebay_layouts::Job;
use forebay_store::WriteBuffer;
use forebay_store::salvage::Gaps;

use crate::background::Background;
use crate::versions::{Commit, Finished, Pending};

/// The range deletes of one buffer.
pub(super) struct RangeDeletes {
    waiting: VecDeque<(u32, Vec<Range>)>,
    /// Generation and job, of the first that waits.
    writing: Option<(u64, Box<dyn Job>)>,
    /// What that could not read: nobody can, and all other tables wait for it.
    gaps: Arc<Gaps>,
}

impl RangeDeletes {
    pub(super) fn of(buffer: &WriteBuffer) -> Self {
        let mut tables: BTreeMap<u32, Vec<Range>> = BTreeMap::new();
        for delete in buffer.range_deletes(usize::MAX) {
            tables.entry(delete.table).or_default().push(delete.range);
        }
        let waiting = tables.into_iter().map(|(table, ranges)| (table, joined(ranges))).collect();
        Self { waiting, writing: None, gaps: Arc::default() }
    }

    /// Goes on for about 1 MiB. `last_sequence` is that of the buffer. `false` when nothing is left to do.
    pub(super) fn advance(&mut self, background: &Background, last_sequence: u64) -> Result<bool> {
        let Some((table, ranges)) = self.waiting.front() else { return Ok(false) };
        let table = *table;
        if let Some((generation, mut job)) = self.writing.take() {
            match job.step(STEP_BYTES)? {
                None => self.writing = Some((generation, job)),
                Some(outcome) => {
                    if let Some(gap) = std::mem::take(&mut self.gaps).all().first() {
                        // Nothing is left undone for it; but it must be said.
                        let error = Error::corruption(&gap.file, gap.offset, &*gap.reason);
                        background.versions.lock().set_aside(table, generation, &[], &error);
                    }
                    // Where another layout has come in between, it is done anew.
                    if background.commit(Commit::Finished(Finished { table, generation, outcome }))? {
                        self.waiting.pop_front();
                    }
                }
            }
            return Ok(true);
        }
        background.versions.vouch(last_sequence)?;
        let Some(entry) = background.versions.state().tables.get(&table).cloned() else {
            self.waiting.pop_front();
            return Ok(true);
        };
        match entry.version.delete_by_tombstones(ranges, &self.gaps)? {
            Some(job) => self.writing = Some((entry.generation, job)),
            None => {
                // One that has become a tree meanwhile cannot be cut, and is asked again.
                if background.drop_range(table, ranges)? {
                    self.waiting.pop_front();
                }
            }
        }
        Ok(true)
    }
}

impl Background {
    /// Drops all that lists have of some ranges of a table, at once. `false`, and nothing is done, where its layout
    /// cannot.
    fn drop_range(&self, table: u32, ranges: &[Range]) -> Result<bool> {
        let mut version_set = self.versions.lock();
        let state = self.versions.state();
        let Some(entry) = state.tables.get(&table) else { return Ok(false) };
        let (mut version, mut edits) = (Arc::clone(&entry.version), Vec::with_capacity(ranges.len()));
        for range in ranges {
            let Some(edit) = version.drop_range(range) else { return Ok(false) };
            // A range delete names no file.
            version = version.apply(&edit, &|_| None)?.version;
            edits.push((table, edit));
        }
        version_set.record(&state, &mut Pending::edits(edits))?;
        Ok(true)
    }
}

/// The same in order and side by side.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_by(|left, right| left.low.cmp(&right.low));
    let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.high.as_ref().is_none_or(|high| range.low <= *high) => {
                last.high = match (last.high.take(), range.high) {
                    (Some(one), Some(other)) => Some(one.max(other)),
                    _ => None,
                };
            }
            _ => joined.push(range),
        }
    }
    debug_assert!(
        joined.is_sorted_by(|one, next| one.high.as_ref().is_some_and(|high| *high < next.low)),
        "ranges that are joined lie apart, in order"
    );
    joined
}

#[cfg(test)]
mod tests {
    use forebay_base::Order;

    use super::*;

    #[test]
    fn ranges_that_meet_become_one() {
        let range = |low: u8, high: Option<u8>| Range {
            low: Order::Lexical.bound(&[low]),
            high: high.map(|high| Order::Lexical.bound(&[high])),
        };
        let given = vec![range(5, Some(7)), range(1, Some(3)), range(2, Some(4)), range(4, Some(5))];
        assert_eq!(joined(given), [range(1, Some(7))]);
        let given = vec![range(9, None), range(1, Some(3)), range(2, Some(3)), range(10, Some(11))];
        assert_eq!(joined(given), [range(1, Some(3)), range(9, None)]);
    }
}
