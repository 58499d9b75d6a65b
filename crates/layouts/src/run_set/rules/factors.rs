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
    /// A tree that would get longer by a batch is written anew with it, as several.
    live_bytes_max: f64,
    inline_bytes: u32,
}

/// A key range is divided when more of it lives than this, in files' lengths. What is written to divide it is this much
/// for one less that has come to it: 1.5 bytes a byte of what is new, where 1.5 lengths would be 3.
const KEY_RANGE_FILES_MAX: f64 = 3.0;

impl Factors {
    pub(super) fn new<F>(set: &RunSet<F>, last: f64, upper: f64) -> Self {
        let last_level = set.runs().last().map_or(0, |run| run.level());
        Self {
            last,
            upper,
            last_level,
            live_bytes_max: f64::INFINITY,
            inline_bytes: set.policy.inline_bytes(),
        }
    }

    /// Of trees that are key ranges.
    pub(super) fn of_key_ranges(self, file_bytes: u64) -> Self {
        Self { live_bytes_max: KEY_RANGE_FILES_MAX * file_bytes as f64, ..self }
    }

    /// See the field.
    pub(super) fn live_bytes_max(&self) -> f64 {
        self.live_bytes_max
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
        let live_bytes = part.portion.bytes as f64 + batch_bytes as f64;
        live_bytes > self.live_bytes_max
            || jungle::rebuilds(part, batch_bytes, self.of(level), self.inline_bytes)
    }
}
