//! Parts that keep a file although most of it is of no use any more: once the policy wants nothing, they are written
//! anew by themselves, and the file goes. And parts that have values in value files which are to be emptied.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::Range;
use forebay_buffer_tree::NodeId;

use super::plan::Slice;
use super::{Part, RunSetTable};
use crate::files::DataFile;
use crate::seam::{by_file, is_wasteful};

impl RunSetTable {
    /// A part that keeps a file from going. It is written anew where it is.
    pub(super) fn next_rewrite(&self, busy: &BTreeSet<NodeId>) -> Option<Slice> {
        self.next_wasteful(busy).or_else(|| self.next_collection(busy))
    }

    /// The part of the file with the largest dead share.
    fn next_wasteful(&self, busy: &BTreeSet<NodeId>) -> Option<Slice> {
        let wasteful = self.wasteful.get_or_init(|| self.find_wasteful());
        let (id, range) = wasteful.iter().find(|(id, _)| self.set.is_free(*id, busy))?;
        let run = self.set.run(*id)?;
        Some(self.set.in_place(run, range))
    }

    /// A part that has values in a value file that is to be emptied.
    fn next_collection(&self, busy: &BTreeSet<NodeId>) -> Option<Slice> {
        if !self.context.store.lists.values.is_collecting() {
            return None;
        }
        let free = self.set.runs().iter().filter(|run| !run.is_resident() && self.set.is_free(run.id, busy));
        let mut parts = free.flat_map(|run| run.parts().iter().map(move |part| (run, part)));
        let (run, part) = parts.find(|(_, part)| part.fragment.is_collected())?;
        Some(self.set.in_place(run, &part.range))
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
