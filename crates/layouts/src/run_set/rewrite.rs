//! Parts that keep a file although most of it is of no use any more: once the policy wants nothing, they are written
//! anew by themselves, and the file goes.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::Range;
use forebay_buffer_tree::NodeId;

use super::plan::Slice;
use super::{Part, RunSetTable};
use crate::files::DataFile;
use crate::seam::{by_file, is_wasteful};

impl RunSetTable {
    /// The part of the file with the largest dead share. It is written anew where it is.
    pub(super) fn next_rewrite(&self, busy: &BTreeSet<NodeId>) -> Option<Slice> {
        let wasteful = self.wasteful.get_or_init(|| self.find_wasteful());
        let (id, range) = wasteful.iter().find(|(id, _)| self.set.is_free(*id, busy))?;
        let run = self.set.run(*id)?;
        Some(self.set.in_place(run, range))
    }

    fn find_wasteful(&self) -> Vec<(NodeId, Range)> {
        let files = by_file(self);
        let mut found = Vec::new();
        for run in self.set.runs() {
            // When a tree is written anew is its policy's business, where that makes trees.
            let is_mine = |part: &&Arc<Part<DataFile>>| {
                part.fragment.list().is_some() || !self.set.policy.grows(run.level())
            };
            for part in run.parts().iter().filter(is_mine) {
                let file = files.get(&part.fragment.id());
                if let Some(file) = file.filter(|file| is_wasteful(file, self.set.file_bytes)) {
                    found.push((file.dead_share(), run.id, part.range.clone()));
                }
            }
        }
        found.sort_by(|(left, ..), (right, ..)| right.total_cmp(left));
        found.into_iter().map(|(_, id, range)| (id, range)).collect()
    }
}
