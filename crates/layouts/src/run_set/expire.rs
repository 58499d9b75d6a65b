//! Parts of which much has expired. One that is over as a whole goes by an edit, unread; another is written anew where
//! it is. Both only where no older run has anything beneath, which would come back.

use std::collections::BTreeSet;

use forebay_buffer_tree::NodeId;

use super::plan::Made;
use super::{RunSetTable, encode};
use crate::files::DataFile;
use crate::seam::Planned;

impl RunSetTable {
    /// What to do about the oldest part of which about this much has expired.
    pub(super) fn next_expired(&self, busy: &BTreeSet<NodeId>, share: f64) -> Option<Planned> {
        let now = self.context.now()?;
        // There, jobs hold key ranges rather than runs.
        if self.set.policy.merges_key_ranges() && !busy.is_empty() {
            return None;
        }
        let is_over = |file: &DataFile, share| file.over_at(share).is_some_and(|at| at <= now);
        for run in self.set.runs().iter().rev() {
            if run.is_resident() || !self.set.is_free(run.id(), busy) {
                continue;
            }
            let mut due = run.parts().iter().filter(|part| is_over(&part.fragment, share));
            if let Some(part) = due.find(|part| self.set.is_bottom(&[run.id()], &part.range)) {
                let slice = self.set.in_place(run, &part.range);
                debug_assert!(slice.is_bottom, "what it hides does not come back");
                if !is_over(&part.fragment, 1.0) {
                    return Some(Planned::Job(self.planned(slice)));
                }
                let edit = self.set.rebase(Made::new(slice, Vec::new())).ok()?;
                return Some(Planned::Edit(encode(&edit)));
            }
        }
        None
    }
}
