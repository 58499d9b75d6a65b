//! What is compacted of a table: all that meets a range, or what it has of some files, which is written anew although
//! there is nothing to merge it with.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::{Range, Result};
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{DataFile, NodeKey, Plan, TableVersion};

use crate::background::Background;
use crate::versions::TableState;

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    Range(Range),
    /// By their ids.
    Files(Arc<BTreeSet<u64>>),
}

impl Default for Scope {
    fn default() -> Self {
        Self::Range(Range::all())
    }
}

impl Scope {
    pub(super) fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Plans what is left of it where one compactor after the other has come round.
    pub(super) fn next_left(&self, version: &dyn TableVersion, busy: &BTreeSet<NodeKey>) -> Option<Plan> {
        match self {
            Self::Range(range) => version.next_reclaim(busy, None, range).map(|(plan, _)| plan),
            Self::Files(files) => version.next_rewrite_of(busy, files),
        }
    }
}

/// Those of these files that a version has still something of.
pub(super) fn left_of(version: &dyn TableVersion, files: &BTreeSet<u64>) -> BTreeSet<u64> {
    let there = version.files().into_iter().filter(|file| !file.is_resident());
    there.map(|file| file.id()).filter(|id| files.contains(id)).collect()
}

impl Background {
    /// Compacts a table, and then writes anew what it has in files that are wanted so; whether they are is asked with the
    /// id below which files were there at the beginning. Others that come meanwhile are none of these. What cannot be
    /// merged keeps no other files from that: it is told of in the end.
    pub(crate) fn rewrite(&self, table: u32, is_wanted: impl Fn(&DataFile, u64) -> bool) -> Result<()> {
        let below = self.versions.lists.next_id.load(Ordering::Relaxed);
        // Who was at work on it is done then, and what was merged is new.
        let merged = self.compact(table, &Scope::default());
        let is_there = || self.versions.state().tables.contains_key(&table);
        if merged.is_err() && (self.context.check_open().is_err() || !is_there()) {
            return merged;
        }
        let state: Arc<TableState> = Arc::clone(self.versions.view().table(table)?);
        let files = state.version.files().into_iter().filter(|file| !file.is_resident());
        let files: BTreeSet<u64> =
            files.filter(|file| is_wanted(file, below)).map(|file| file.id()).collect();
        // Or those files would be held while their room is wanted.
        drop(state);
        if files.is_empty() {
            return merged;
        }
        let rewritten = self.compact(table, &Scope::Files(Arc::new(files)));
        merged.and(rewritten)
    }
}
