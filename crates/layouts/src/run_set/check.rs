//! Whether runs are what they must be. What comes from the manifest is refused where they are not, and so is an edit
//! that would leave them so.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::Result;
use forebay_buffer_tree::NodeId;

use super::key_ranges::KEY_RANGE_IDS;
use super::set::{Part, Run, RunSet};

impl<F> Run<F> {
    /// Says what is wrong with its parts, if anything is.
    pub(super) fn check(&self) -> Result<(), String> {
        let NodeId(id) = self.id;
        if self.parts.is_empty() || self.parts.iter().any(|part| part.range.is_empty()) {
            return Err(format!("run {id} has no parts, or one of nothing"));
        }
        let touches =
            |pair: &[Arc<Part<F>>]| pair[0].range.high.as_ref().is_none_or(|high| *high > pair[1].range.low);
        match self.parts.windows(2).any(touches) {
            true => Err(format!("parts of run {id} overlap")),
            false => Ok(()),
        }
    }
}

impl<F> RunSet<F> {
    /// Says what is wrong with its structure, if anything is.
    pub fn check(&self) -> Result<(), String> {
        self.runs.iter().try_for_each(|run| run.check())?;
        self.marks.check()?;
        self.check_runs()
    }

    /// The same but for what is within runs, of which there may be very much.
    pub(super) fn check_runs(&self) -> Result<(), String> {
        let mut ids = BTreeSet::new();
        let is_known = |id: u64| id < self.next_id && id < KEY_RANGE_IDS;
        if let Some(run) = self.runs.iter().find(|run| !is_known(run.id.0) || !ids.insert(run.id)) {
            let NodeId(id) = run.id;
            return Err(format!("run {id} has the id of another one, or one that is still to come"));
        }
        if self.runs.windows(2).any(|pair| pair[0].level > pair[1].level) {
            return Err("levels fall from a newer run to an older one".into());
        }
        let mut merged = BTreeSet::new();
        for merge in &self.underway {
            let NodeId(into) = merge.into;
            if !merge.inputs.iter().all(|input| ids.contains(input)) {
                return Err(format!("a merge into run {into} goes on with a run that is gone"));
            }
            if merge.inputs.iter().all(|input| *input == merge.into) {
                return Err(format!("a merge into run {into} goes on with nothing"));
            }
            let runs: BTreeSet<NodeId> = merge.inputs.iter().copied().chain([merge.into]).collect();
            if !is_known(into) || !runs.into_iter().all(|run| merged.insert(run)) {
                return Err(format!("run {into} or what is merged into it is part of another merge"));
            }
        }
        Ok(())
    }
}
