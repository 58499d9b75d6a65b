//! Leveling: below level 0, which gathers write buffers, each level is one run, and has T times as much as the one
//! above. The last level is as large as it is; from it follows what the others may have. A level that has more gives a
//! part of its run to the next.
//!
//! How much a level has is counted with the values that its records point to. A pointer hides a record of the last
//! level as a value in its place does, and goes down as soon.

use forebay_buffer_tree::{Fragment, NodeId};

use super::super::set::{Run, RunSet, total};
use super::{Step, jungle, merge};

/// How levels grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    pub(super) ratio: u32,
    /// This many write buffers are gathered before they are merged.
    pub(super) gathered: usize,
    pub(super) measure: Measure,
}

/// What a level has, and how much that may be by its share.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    /// What lives, with the values that it points to.
    Live,
    /// Its files, this many times as long; values up to that length lie in leaves.
    Files { factor: f64, inline_bytes: u32 },
}

impl Levels {
    pub(super) fn new(ratio: u32) -> Self {
        Self { ratio, gathered: 4, measure: Measure::Live }
    }

    /// How much a level has, by what it may have.
    pub(super) fn fullness<F: Fragment>(self, set: &RunSet<F>, run: &Run<F>) -> f64 {
        let target = target_bytes(set, self.ratio, run.level);
        match self.measure {
            Measure::Live => run.whole_bytes() as f64 / target,
            Measure::Files { factor, inline_bytes } => {
                jungle::length_of(run, factor, inline_bytes) / (factor * target)
            }
        }
    }
}

pub(super) fn next<F: Fragment>(
    set: &RunSet<F>,
    levels: Levels,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    if let Some(step) = form(set) {
        return free(step, is_free);
    }
    let first = first(set, levels, &is_free);
    first.or_else(|| push(set, levels, &is_free, |run| cheapest_part(set, run)))
}

/// What comes before a level gives anything to the next.
pub(super) fn first<F: Fragment>(
    set: &RunSet<F>,
    levels: Levels,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    let mut steps = [grow(set, levels), gather(set, levels)].into_iter().flatten();
    let step = steps.find_map(|step| free(step, &is_free));
    step.or_else(|| shrink(set, levels, &is_free))
}

/// What comes before anything else: each level is to be one run.
pub(super) fn form<F: Fragment>(set: &RunSet<F>) -> Option<Step> {
    // Another organisation may have left several in one.
    let runs = set.levels().find(|runs| runs[0].level > 0 && runs.len() > 1)?;
    merge(runs, runs.last().map(|run| run.id), runs[0].level, |_| true)
}

/// What was gathered goes to level 1, once it is enough.
fn gather<F>(set: &RunSet<F>, levels: Levels) -> Option<Step> {
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
    let inner = set.runs[gathered(set)..].split_last().map_or(&[][..], |(_, inner)| inner);
    let mut full: Vec<_> = inner
        .iter()
        .map(|run| (levels.fullness(set, run), run))
        .filter(|(fullness, _)| *fullness > 1.0)
        .collect();
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
        Step::Merge { inputs, .. } | Step::Sink { inputs, .. } => inputs.iter().all(|&id| is_free(id)),
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
    let last = set.runs.last().filter(|run| run.level > 0)?;
    let is_full = target_bytes(set, levels.ratio, 1) > gathered_bytes(set, levels) * f64::from(levels.ratio);
    is_full.then(|| Step::Relabel { run: last.id, level: last.level.saturating_add(1) })
}

/// Each level goes one up where the first may have but half of what is gathered: what is in it goes to the second, and
/// then each run to where none is any more. Twice as much may come until the last level goes deeper again.
fn shrink<F: Fragment>(set: &RunSet<F>, levels: Levels, is_free: impl Fn(NodeId) -> bool) -> Option<Step> {
    set.runs.last().filter(|last| last.level > 1)?;
    if target_bytes(set, levels.ratio, 1) > gathered_bytes(set, levels) / 2.0 {
        return None;
    }
    let formed = &set.runs[gathered(set)..];
    let above = [0].into_iter().chain(formed.iter().map(|run| run.level));
    match formed.iter().zip(above).find(|(run, above)| run.level > above + 1) {
        Some((run, _)) => is_free(run.id).then(|| Step::Relabel { run: run.id, level: run.level - 1 }),
        None => {
            let [first, second, ..] = formed else { return None };
            let are_free = is_free(first.id) && is_free(second.id);
            are_free.then_some(Step::Push { run: first.id, part: 0 })
        }
    }
}

/// What level 0 gathers. Where no write buffer has come yet, one is taken to be as long as a file.
fn gathered_bytes<F>(set: &RunSet<F>, levels: Levels) -> f64 {
    let unit_bytes = if set.unit_bytes > 0 { set.unit_bytes } else { set.file_bytes };
    levels.gathered as f64 * unit_bytes.max(1) as f64
}

/// What may live of a level in leveling, with the values that it points to.
fn target_bytes<F: Fragment>(set: &RunSet<F>, ratio: u32, level: u32) -> f64 {
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
    let below = next.map_or(0, |next| {
        total(next.parts[next.overlapping(&part.range)].iter().map(|part| part.portion.bytes))
    });
    below as f64 / part.whole_bytes().max(1) as f64
}

pub(super) fn debt_bytes<F: Fragment>(set: &RunSet<F>, levels: Levels) -> u64 {
    let gathered = gathered(set);
    let waiting = &set.runs[..gathered.saturating_sub(levels.gathered)];
    let waiting = waiting.iter().map(|run| run.bytes());
    let inner = set.runs[gathered..].split_last().map_or(&[][..], |(_, inner)| inner);
    let excess = inner.iter().map(|run| {
        let share = 1.0 / levels.fullness(set, run).max(1.0);
        // What they point to stays where it is.
        (run.bytes() as f64 * (1.0 - share)) as u64
    });
    total(waiting.chain(excess))
}
