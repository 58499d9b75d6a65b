//! The C of each tree: that of the last level, or of those above it. What those may have costs a T-th of its C in space,
//! and what comes again while it is there goes down once.

use forebay_buffer_tree::Fragment;

use super::super::set::{Part, RunSet};
use super::jungle;

/// The C of each level.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Factors {
    last: f64,
    upper: f64,
    last_level: u32,
}

impl Factors {
    pub(super) fn new<F>(set: &RunSet<F>, last: f64, upper: f64) -> Self {
        Self { last, upper, last_level: set.runs().last().map_or(0, |run| run.level()) }
    }

    /// That of a level.
    pub(super) fn of(&self, level: u32) -> f64 {
        if level < self.last_level { self.upper } else { self.last }
    }

    /// Whether a part of a level is written anew with a batch, rather than appended to.
    pub(in super::super) fn rebuilds<F: Fragment>(
        &self,
        level: u32,
        part: &Part<F>,
        batch_bytes: u64,
    ) -> bool {
        jungle::rebuilds(part, batch_bytes, self.of(level))
    }
}
