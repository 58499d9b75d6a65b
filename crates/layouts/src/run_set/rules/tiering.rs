//! Tiering: a level gathers runs as they come; once there are T, they are merged into one run of the next level.

use forebay_buffer_tree::NodeId;

use super::super::set::{RunSet, total};
use super::{Step, merge};

pub(super) fn next<F>(set: &RunSet<F>, runs_max: usize, is_free: impl Fn(NodeId) -> bool) -> Option<Step> {
    debug_assert!(runs_max >= 2, "a run by itself is not merged from level to level");
    let full = set.levels().filter(|runs| runs.len() >= runs_max);
    full.filter_map(|runs| merge(runs, None, runs[0].level + 1, &is_free)).next()
}

pub(super) fn debt_bytes<F>(set: &RunSet<F>, runs_max: usize) -> u64 {
    // The newest are too many. A long one counts as little as a short one: what is merged meanwhile is as long.
    let surplus = set.levels().map(|runs| &runs[..runs.len().saturating_sub(runs_max)]);
    total(surplus.flatten().map(|run| run.bytes().min(set.unit_bytes)))
}
