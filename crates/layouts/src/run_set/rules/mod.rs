//! The organisations of key-ordered runs. Each is a pure rule over a [`RunSet`]: what a write buffer is merged with as
//! it is written, and what is merged after that.

mod factors;
mod geometric;
mod jungle;
mod leveling;
mod range_merge;
mod stacks;
mod tiering;

use std::sync::Arc;

use forebay_base::{Bound, Range};
use forebay_buffer_tree::{Fragment, NodeId};

use super::policy::{FACTOR_PERCENT_MIN, Policy, factor_of};
use super::set::{Part, Run, RunSet};
use crate::files::ResidentBudget;
pub(super) use factors::Factors;
use geometric::Shape;
#[cfg(test)]
pub(super) use jungle::length_of;
use leveling::Levels;
use stacks::Stacks;

/// A write buffer's way into the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flush {
    /// With how many of the newest runs it is merged.
    pub(super) runs: usize,
    /// The level of the run that this makes.
    pub(super) level: u32,
}

/// What a policy wants done next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// These runs become one, slice by slice: one that is there, or a new one.
    Merge { inputs: Vec<NodeId>, into: Option<NodeId>, level: u32 },
    /// A run's part of this number goes to the next level.
    Push { run: NodeId, part: usize },
    /// A run goes to another level as it is.
    Relabel { run: NodeId, level: u32 },
    /// What a run has of a range is written anew where it is.
    Rewrite { run: NodeId, range: Range },
    /// All that runs have of a range becomes part of the oldest.
    Evict(Range),
    /// What runs have of a range becomes part of one that is there, or of a new one.
    Sink { inputs: Vec<NodeId>, range: Range, into: Option<NodeId>, level: u32 },
}

impl Policy {
    /// How a write buffer of this many bytes is written; at least this many runs in front are resident and go with it.
    pub(super) fn flush<F: Fragment>(self, set: &RunSet<F>, bytes: u64, residents: usize) -> Flush {
        match self {
            Self::NoMerge
            | Self::RangeMerge { .. }
            | Self::Leveling { .. }
            | Self::Tiering { .. }
            | Self::Stacks { .. }
            | Self::Jungle { .. } => Flush { runs: residents, level: 0 },
            Self::Immediate => Flush { runs: set.runs.len(), level: 0 },
            Self::Geometric { ratio } => geometric::flush(set, bytes, residents, Shape::Ratio(ratio)),
            Self::Partitions { runs_max } => geometric::flush(set, bytes, residents, Shape::Runs(runs_max)),
        }
    }

    /// Whether no write buffer can be taken into memory.
    pub(super) fn is_full<F: Fragment>(self, set: &RunSet<F>, room: ResidentBudget) -> bool {
        self.keeps_new_records_resident() && range_merge::is_full(set, room)
    }

    /// Of a policy that [merges key ranges](Self::merges_key_ranges), the next one that ends behind a bound and of which
    /// any run but the oldest has something.
    pub(super) fn next_key_range<F: Fragment>(
        self,
        set: &RunSet<F>,
        after: &Bound,
        is_free: impl Fn(NodeId) -> bool,
    ) -> Option<Range> {
        match self {
            Self::RangeMerge { .. } => range_merge::any(set, after, is_free),
            _ => None,
        }
    }

    /// What should be done next with runs that `is_free` says yes to.
    pub(super) fn next<F: Fragment>(
        self,
        set: &RunSet<F>,
        room: ResidentBudget,
        is_free: impl Fn(NodeId) -> bool,
    ) -> Option<Step> {
        match self {
            Self::NoMerge => None,
            Self::Immediate => merge_into_one(set, is_free),
            Self::Geometric { ratio } => geometric::next(set, Shape::Ratio(ratio), is_free),
            Self::Partitions { runs_max } => geometric::next(set, Shape::Runs(runs_max), is_free),
            Self::RangeMerge { .. } => {
                let trees = self.grows_trees().then(|| self.factors(set));
                range_merge::next(set, room, trees.as_ref(), is_free)
            }
            Self::Leveling { .. } => leveling::next(set, self.levels(), is_free),
            Self::Tiering { runs_max } => tiering::next(set, runs_max as usize, is_free),
            Self::Stacks { pieces_max, is_lazy } => {
                stacks::next(set, Stacks { pieces_max: pieces_max as usize, is_lazy }, is_free)
            }
            Self::Jungle { .. } => jungle::next(set, self.levels(), &self.factors(set), is_free),
        }
    }

    /// What the fullest key range in memory takes there.
    pub(super) fn fullest_bytes<F: Fragment>(self, set: &RunSet<F>) -> u64 {
        match self {
            Self::RangeMerge { .. } => range_merge::fullest_bytes(set),
            _ => 0,
        }
    }

    /// Bytes above the policy's limits.
    pub(super) fn debt_bytes<F: Fragment>(self, set: &RunSet<F>, room: ResidentBudget) -> u64 {
        match self {
            Self::RangeMerge { .. } => range_merge::debt_bytes(set, room),
            Self::Geometric { ratio } => geometric::debt_bytes(set, Shape::Ratio(ratio)),
            Self::Partitions { runs_max } => geometric::debt_bytes(set, Shape::Runs(runs_max)),
            Self::Leveling { .. } | Self::Jungle { .. } => leveling::debt_bytes(set, self.levels()),
            Self::Tiering { runs_max } => tiering::debt_bytes(set, runs_max as usize),
            Self::Stacks { pieces_max, is_lazy } => {
                stacks::debt_bytes(set, Stacks { pieces_max: pieces_max as usize, is_lazy })
            }
            _ => 0,
        }
    }

    /// Whether the runs of a level are made of trees, to which records can be appended.
    pub(super) fn grows(self, level: u32) -> bool {
        self.grows_trees() && level > 0
    }

    /// The C of each level, where there are trees.
    pub(super) fn factors<F>(self, set: &RunSet<F>) -> Factors {
        match self {
            Self::Jungle { factor_percent, upper_percent, .. } => {
                Factors::new(set, factor_of(factor_percent), factor_of(upper_percent))
            }
            Self::RangeMerge { trees: Some(trees) } => {
                let factor = factor_of(trees.factor_percent);
                Factors::new(set, factor, factor).of_key_ranges(set.file_bytes)
            }
            _ => Factors::new(set, 1.0, 1.0),
        }
    }

    fn levels(self) -> Levels {
        match self {
            Self::Jungle { ratio, upper_percent, levels, inline_bytes, .. } => {
                jungle::levels(ratio, factor_of(upper_percent), levels, inline_bytes)
            }
            Self::Leveling { ratio } => Levels::new(ratio),
            _ => Levels::new(1),
        }
    }

    /// How long the files of a level are at most that this much is written to, where a file is to have this many bytes.
    pub(super) fn file_bytes(self, level: u32, bytes: u64, file_bytes: u64) -> u64 {
        if self.grows(level) { jungle::tree_bytes(bytes, file_bytes) } else { file_bytes }
    }

    /// Whether a part's file is much longer than what lives of it, for one that nobody writes to any more.
    pub(super) fn is_sparse<F: Fragment>(part: &Part<F>) -> bool {
        jungle::is_over(part, COMPACT_FACTOR)
    }
}

/// How much longer than what lives of it a tree is that a compaction leaves alone.
const COMPACT_FACTOR: f64 = 1.1;

const _: () = assert!(
    COMPACT_FACTOR * 100.0 <= FACTOR_PERCENT_MIN as f64 + 1e-9,
    "a compaction leaves no tree that the policy would write anew"
);

/// Merges what another organisation left behind.
fn merge_into_one<F>(set: &RunSet<F>, is_free: impl Fn(NodeId) -> bool) -> Option<Step> {
    let oldest = set.runs.last().filter(|_| set.runs.len() > 1)?;
    merge(&set.runs, None, oldest.level, is_free)
}

/// The merge of some runs, if all of them are free.
fn merge<F>(
    runs: &[Arc<Run<F>>],
    into: Option<NodeId>,
    level: u32,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    debug_assert!(
        runs.len() > 1 && runs.iter().all(|run| run.level <= level),
        "several runs become one, which is no higher up"
    );
    let inputs: Vec<NodeId> = runs.iter().map(|run| run.id).collect();
    inputs.iter().all(|&id| is_free(id)).then_some(Step::Merge { inputs, into, level })
}
