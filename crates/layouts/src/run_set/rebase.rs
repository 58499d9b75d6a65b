//! Rebasing: fits what a job made to the runs as they are by then. The outcome is an edit, and so is a range that goes
//! without a job.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::{Error, Range, Result};
use forebay_buffer_tree::{Fragment, NodeId};

use super::plan::{Act, Made, Slice, lie_inside};
use super::set::{Edit, Part, RangeDrop, Replace, Reside, Run, RunSet, Taken};
use crate::files::DataFile;
use crate::seam::{Produced, Work};

impl Work for Slice {}

impl Produced for Made<DataFile> {
    fn records(&self) -> u64 {
        self.parts.iter().map(|part| part.portion.records).sum()
    }

    fn files(&self) -> Vec<DataFile> {
        let files = self.parts.iter().map(|part| &part.fragment);
        files.filter(|file| !self.kept.contains(&file.version())).cloned().collect()
    }
}

impl<F: Fragment> RunSet<F> {
    /// Whether an outcome may come in: what was merged with runs may not if something has broken in meanwhile, nor what
    /// was written as if nothing were beneath.
    pub(super) fn takes(&self, made: &Made<F>) -> bool {
        let Slice { taken, range, is_bottom, breaks, .. } = &made.slice;
        // What another job has put there meanwhile may reach over a gap that this one lies in.
        let inputs: Vec<_> = taken.iter().map(|(run, _)| *run).collect();
        if *is_bottom && !self.is_bottom(&inputs, range) {
            return false;
        }
        // What has come in front of it meanwhile would be left for the next slice, and that ends where this one lies.
        let comes_first = |run: &Run<F>| run.parts.first().is_some_and(|part| part.range.low < range.low);
        let mut others = inputs.iter().filter(|&&id| Some(id) != made.slice.act.target());
        if made.slice.act.goes_on() && others.any(|&id| self.run(id).is_some_and(|run| comes_first(run))) {
            return false;
        }
        // Of a key range all counts, also what this leaves there: where it begins and ends others have been told by.
        // And another one's eviction may have taken the rest of a run that only reaches over it.
        let key_range = made.slice.act.key_range();
        if (taken.is_empty() && !is_bottom) || (key_range.is_none() && *breaks == self.breaks.count()) {
            return true;
        }
        // What meets none of it may still have taken away a run of which nothing lies there.
        let ranges = taken.iter().map(|(_, range)| range).chain([range]).chain(key_range);
        !self.breaks.meet(*breaks, ranges) && self.check_slice(&made.slice).is_ok()
    }

    /// The edit that takes a range out of all runs.
    pub(super) fn drop_range(&self, range: &Range) -> Edit<F> {
        let below = self.residents().next().map_or(0, |run| run.below);
        let has_some = |run: &&Arc<Run<F>>| !run.is_resident && !run.overlapping(range).is_empty();
        let taken = self.runs.iter().filter(has_some).map(|run| self.taken(run.id, range)).collect();
        Edit::RangeDrop(RangeDrop { range: range.clone(), below, taken })
    }

    /// Whether no run has anything where these parts lie.
    fn has_nothing_at(&self, parts: &[Part<F>]) -> bool {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
        let hull = Range { low: first.range.low.clone(), high: last.range.high.clone() };
        self.runs.iter().all(|run| run.overlapping(&hull).is_empty())
    }

    /// Fits what a job made to the runs as they are.
    pub(super) fn rebase(&self, made: Made<F>) -> Result<Edit<F>> {
        let contradiction =
            |reason| Error::bug(format!("what a merge made does not fit its table: {reason}"));
        self.check_slice(&made.slice).map_err(contradiction)?;
        let Made { slice: Slice { taken, act, range, level, .. }, parts, .. } = made;
        if !lie_inside(&parts, &range) {
            return Err(contradiction("it lies elsewhere, or not in order".into()));
        }
        if let Act::KeepInMemory { buffer, .. } = act {
            return Ok(Edit::Reside(Reside { below: buffer.below, parts }));
        }
        let is_ingest = act == Act::Ingest;
        // Resident runs are not the manifest's business: they let go of what files have.
        let on_disk = taken.iter().filter(|(run, _)| self.run(*run).is_some_and(|run| !run.is_resident));
        let taken: Vec<Taken> = on_disk.map(|(run, range)| self.taken(*run, range)).collect();
        let below = if is_ingest { self.residents().next().map_or(0, |run| run.below) } else { act.below() };
        let (into, level) = match self.last_on_disk() {
            // What has a range of its own needs no run of its own. Where a merge goes on it would lie in its way.
            Some(last)
                if is_ingest && self.is_free(last.id, &BTreeSet::new()) && self.has_nothing_at(&parts) =>
            {
                (last.id, last.level)
            }
            _ => (act.target().unwrap_or(NodeId(self.next_id)), level),
        };
        let (flushed_bytes, goes_on) = (act.buffer().map_or(0, |buffer| buffer.bytes), act.goes_on());
        let replace = Replace { flushed_bytes, is_ingest, below, range, taken, into, level, parts, goes_on };
        let edit = Edit::Replace(replace);
        debug_assert!(self.apply(&edit).is_ok(), "it fits the runs");
        Ok(edit)
    }
}
