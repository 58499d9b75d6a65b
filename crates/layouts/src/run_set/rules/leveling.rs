//! Leveling: below level 0, which gathers write buffers, each level is one run, and has T times as much as the one
//! above. The last level is as large as it is; from it follows what the others may have. A level that has more gives a
//! part of its run to the next.
//!
//! How much a level has is counted with the values that its records point to. A pointer hides a record of the last
//! level as a value in its place does, and goes down as soon.

use forebay_buffer_tree::{Fragment, NodeId};

use super::super::set::{Run, RunSet};
use super::{Step, merge};

/// How levels grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    pub(super) ratio: u32,
    /// This many write buffers are gathered before they are merged.
    pub(super) gathered: usize,
}

impl Levels {
    pub(super) fn new(ratio: u32) -> Self {
        Self { ratio, gathered: 4 }
    }
}

pub(super) fn next<F: Fragment>(
    set: &RunSet<F>,
    levels: Levels,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    if let Some(step) = form(set, levels) {
        return free(step, is_free);
    }
    let gathered = gather(set, levels).and_then(|step| free(step, &is_free));
    gathered.or_else(|| push(set, levels, &is_free, |run| cheapest_part(set, run)))
}

/// What comes before anything else: each level is to be one run, and there are to be enough of them.
pub(super) fn form<F: Fragment>(set: &RunSet<F>, levels: Levels) -> Option<Step> {
    // Another organisation may have left several runs in a level.
    match set.levels().find(|runs| runs[0].level > 0 && runs.len() > 1) {
        Some(runs) => merge(runs, runs.last().map(|run| run.id), runs[0].level, |_| true),
        None => grow(set, levels),
    }
}

/// What was gathered goes to level 1, once it is enough.
pub(super) fn gather<F>(set: &RunSet<F>, levels: Levels) -> Option<Step> {
    let gathered = gathered(set);
    let first = set.runs.get(gathered).filter(|run| run.level == 1);
    let end = gathered + usize::from(first.is_some());
    let inputs = set.runs[..end].iter().map(|run| run.id).collect();
    (gathered >= levels.gathered).then(|| Step::Merge { inputs, into: first.map(|run| run.id), level: 1 })
}

/// The level that is furthest above its share gives this part of its run to the next.
pub(super) fn push<F: Fragment>(
    set: &RunSet<F>,
    levels: Levels,
    is_free: impl Fn(NodeId) -> bool,
    victim: impl Fn(&Run<F>) -> Option<usize>,
) -> Option<Step> {
    let excess = |run: &Run<F>| run.whole_bytes() as f64 / target_bytes(set, levels.ratio, run.level);
    let inner = set.runs[gathered(set)..].split_last().map_or(&[][..], |(_, inner)| inner);
    let mut full: Vec<_> =
        inner.iter().map(|run| (excess(run), run)).filter(|(excess, _)| *excess > 1.0).collect();
    full.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let next_is_free = |run: &Run<F>| {
        let next = set.runs.iter().find(|other| other.level == run.level + 1);
        is_free(run.id) && next.is_none_or(|next| is_free(next.id))
    };
    let (_, run) = full.into_iter().find(|(_, run)| next_is_free(run))?;
    Some(Step::Push { run: run.id, part: victim(run)? })
}

/// A step whose runs are free.
pub(super) fn free(step: Step, is_free: impl Fn(NodeId) -> bool) -> Option<Step> {
    let free = match &step {
        Step::Merge { inputs, .. } => inputs.iter().all(|&id| is_free(id)),
        Step::Push { run, .. } | Step::Relabel { run, .. } | Step::Rewrite { run, .. } => is_free(*run),
        Step::Evict(_) => true,
    };
    free.then_some(step)
}

/// How many runs are in level 0.
fn gathered<F>(set: &RunSet<F>) -> usize {
    set.runs.partition_point(|run| run.level == 0)
}

/// The last level goes one deeper where the first would otherwise become too large.
fn grow<F: Fragment>(set: &RunSet<F>, levels: Levels) -> Option<Step> {
    let Levels { ratio, gathered } = levels;
    let last = set.runs.last().filter(|run| run.level > 0)?;
    let first_bytes_max = (gathered as u64 * set.unit_bytes.max(1)) as f64 * f64::from(ratio);
    let is_full = target_bytes(set, ratio, 1) > first_bytes_max;
    is_full.then(|| Step::Relabel { run: last.id, level: last.level + 1 })
}

/// What a level may have, with the values that it points to.
pub(super) fn target_bytes<F: Fragment>(set: &RunSet<F>, ratio: u32, level: u32) -> f64 {
    let Some(last) = set.runs.last() else { return f64::INFINITY };
    debug_assert!(level <= last.level, "no level is below the last");
    (last.whole_bytes() as f64 / f64::from(ratio).powi(last.level.saturating_sub(level) as i32)).max(1.0)
}

/// The part that overlaps the least of the next level, for its size.
fn cheapest_part<F: Fragment>(set: &RunSet<F>, run: &Run<F>) -> Option<usize> {
    let cost = |number: &usize| cost_below(set, run, *number);
    (0..run.parts.len()).min_by(|left, right| cost(left).total_cmp(&cost(right)))
}

/// How much of the next level a part overlaps, for its size.
pub(super) fn cost_below<F: Fragment>(set: &RunSet<F>, run: &Run<F>, number: usize) -> f64 {
    let part = &run.parts[number];
    let next = set.runs.iter().find(|other| other.level == run.level + 1);
    let below: u64 = next.map_or(0, |next| {
        next.parts[next.overlapping(&part.range)].iter().map(|part| part.portion.bytes).sum()
    });
    below as f64 / part.whole_bytes().max(1) as f64
}

pub(super) fn debt_bytes<F: Fragment>(set: &RunSet<F>, levels: Levels) -> u64 {
    let gathered = gathered(set);
    let waiting = &set.runs[..gathered.saturating_sub(levels.gathered)];
    let waiting: u64 = waiting.iter().map(|run| run.bytes()).sum();
    let inner = set.runs[gathered..].split_last().map_or(&[][..], |(_, inner)| inner);
    let excess = inner.iter().map(|run| {
        let share = target_bytes(set, levels.ratio, run.level) / run.whole_bytes().max(1) as f64;
        // What they point to stays where it is.
        (run.bytes() as f64 * (1.0 - share).max(0.0)) as u64
    });
    waiting + excess.sum::<u64>()
}
