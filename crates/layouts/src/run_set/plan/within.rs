//! A round of a range of keys: what all runs have there gets into the oldest run that has something there, whatever
//! comes in front of it meanwhile. Nothing outside the range is read, so parts that reach over an end of it are cut.

use std::collections::BTreeSet;

use forebay_base::merge::Direction;
use forebay_base::{Bound, Range};
use forebay_buffer_tree::{Fragment, NodeId, Place};

use super::super::set::{Run, RunSet};

use super::slices::SLICE_FILES;
use super::{Act, Onto, Slice};

impl<F: Fragment> RunSet<F> {
    /// The next step of a round of a range from a place on, and where it goes on from then: `None` for the end. Merges
    /// that are under way go on as they are: whatever lies in the range is behind what they still have there.
    pub(in super::super) fn next_within(
        &self,
        busy: &BTreeSet<NodeId>,
        from: Option<&Place>,
        within: &Range,
    ) -> Option<(Slice, Option<Place>)> {
        let from = from.map_or(&within.low, |from| from.bound().max(&within.low));
        let ends = |high: &Bound| within.high.as_ref().is_some_and(|end| end <= high);
        let key_range = || self.policy.next_key_range(self, from, |id| self.is_free(id, busy));
        if let Some(range) = key_range().filter(|range| self.underway.is_empty() && !ends(&range.low)) {
            let slice = self.evict(range, Onto::Nothing);
            debug_assert_eq!(self.check_plan(&slice, busy), Ok(()), "what is planned can be done");
            let then = slice.range.high.clone().filter(|high| !ends(high));
            return Some((slice, then.map(|high| Place::at(high.max(from.clone())))));
        }
        let rest = Range { low: self.unmerged_from(from, within)?, high: within.high.clone() };
        let end = self.slice_end(&self.runs_in(&rest), &rest, SLICE_FILES);
        let range = rest.intersect(&Range { low: Bound::least(), high: end });
        let runs = self.runs_in(&range);
        if runs.iter().any(|run| run.is_resident || busy.contains(&run.id)) {
            return None;
        }
        let (into, level) = runs.last().map(|oldest| (oldest.id, oldest.level))?;
        let taken = runs.iter().map(|run| (run.id, range.clone())).collect();
        let then = range.high.clone().filter(|high| !ends(high)).map(Place::at);
        let act = Act::Merge { into: Some(into), goes_on: false };
        let slice = Slice { taken, act, range, level, is_bottom: true, breaks: self.breaks.count() };
        debug_assert_eq!(self.check_plan(&slice, busy), Ok(()), "what is planned can be done");
        Some((slice, then))
    }

    /// Whether a round of a range has something left from a place on.
    pub(in super::super) fn is_left_within(&self, from: Option<&Place>, within: &Range) -> bool {
        self.unmerged_from(from.map_or(&within.low, Place::bound), within).is_some()
    }

    /// Where in a range, from a bound on, something is that was not merged with everything older.
    fn unmerged_from(&self, from: &Bound, within: &Range) -> Option<Bound> {
        let mut low = from.max(&within.low).clone();
        loop {
            let stretch = self.stretch(Some(&low), within, Direction::Forward)?;
            let mut parts = self.runs.iter().flat_map(|run| &run.parts[run.overlapping(&stretch)]);
            let is_merged = parts.next().is_none_or(|part| part.is_bottom) && parts.next().is_none();
            if !is_merged {
                return Some(stretch.low);
            }
            low = stretch.high?;
        }
    }

    /// The runs that have something of a range, newest first.
    fn runs_in(&self, range: &Range) -> Vec<&Run<F>> {
        self.runs.iter().filter(|run| !run.overlapping(range).is_empty()).map(|run| &**run).collect()
    }
}
