//! What a slice promises, held against the runs that it is for: when it is planned, and again when its outcome is
//! fitted to the runs as they are by then.

use std::collections::BTreeSet;

use forebay_base::Range;
use forebay_buffer_tree::{Fragment, NodeId};

use super::super::set::{Edit, Part, RunSet};
use super::{Next, Slice};

impl<F: Fragment> RunSet<F> {
    /// Says what is wrong with a slice, if anything is.
    pub(in super::super) fn check_slice(&self, slice: &Slice) -> Result<(), String> {
        let ids: Vec<NodeId> = slice.taken.iter().map(|(run, _)| *run).collect();
        let places: Option<Vec<usize>> =
            ids.iter().map(|id| self.runs.iter().position(|run| run.id == *id)).collect();
        let Some(places) = places else { return Err(format!("a run that is gone is taken: {ids:?}")) };
        if !places.is_sorted_by(|newer, older| newer < older) {
            return Err(format!("runs are not taken once and newest first: {ids:?}"));
        }
        if slice.range.is_empty() || slice.taken.iter().any(|(_, range)| range.is_empty()) {
            return Err(format!("nothing can lie in what is merged of {ids:?}"));
        }
        let target = slice.act.target().and_then(|id| self.run(id));
        if target.is_some_and(|run| run.level != slice.level || run.is_resident) {
            return Err(format!("what is merged of {ids:?} goes to a run of another level"));
        }
        let residents = ids.iter().filter_map(|id| self.run(*id)).filter(|run| run.is_resident);
        if residents.map(|run| run.below).max().is_some_and(|below| below > slice.act.below()) {
            return Err(format!("what is merged of {ids:?} would stay in memory"));
        }
        // Its tombstones go: whatever they hide would come back.
        match slice.is_bottom && !self.is_bottom(&ids, &slice.range) {
            true => Err(format!("something older lies beneath what is merged of {ids:?}")),
            false => Ok(()),
        }
    }

    /// As [`check_slice`](Self::check_slice), of one that is just planned beside those who are at work.
    pub(super) fn check_plan(&self, slice: &Slice, busy: &BTreeSet<NodeId>) -> Result<(), String> {
        match slice.nodes().iter().find(|node| busy.contains(node)) {
            Some(node) => Err(format!("somebody is at work on {}", node.0)),
            None => self.check_slice(slice),
        }
    }

    /// The same of whatever is to be done next.
    pub(super) fn check_next(&self, next: &Next<F>, busy: &BTreeSet<NodeId>) -> Result<(), String> {
        let runs: Vec<NodeId> = match next {
            Next::Merge(slice) => return self.check_plan(slice, busy),
            Next::Edit(Edit::Relabel { run, .. }) => vec![*run],
            Next::Edit(Edit::Replace(replace)) => replace.taken.iter().map(|taken| taken.run).collect(),
            Next::Edit(_) => return Err("no plan is an edit of this kind".into()),
        };
        match runs.iter().find(|run| busy.contains(run)) {
            Some(run) => Err(format!("somebody is at work on {}", run.0)),
            None => Ok(()),
        }
    }
}

/// Says whether parts lie side by side, in order and inside a range.
pub(in super::super) fn lie_inside<F>(parts: &[Part<F>], range: &Range) -> bool {
    let is_inside = |part: &Part<F>| !part.range.is_empty() && part.range.intersect(range) == part.range;
    parts.iter().all(is_inside)
        && parts.windows(2).all(|pair| {
            let [part, next] = pair else { return false };
            part.range.high.as_ref().is_some_and(|high| *high <= next.range.low)
        })
}
