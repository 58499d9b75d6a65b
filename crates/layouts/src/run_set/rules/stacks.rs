//! Tiering by key ranges (Jungle paper, section 2.1). Each range of keys of a level is a *stack*: pieces of the level's
//! runs, one upon the other. A stack that is full is merged, and what comes of it is divided among the stacks below.
//! So a merge is as long as a stack and not as a level, and stacks fill one after the other, not all at once.
//!
//! Nobody writes down where stacks begin: files end where those of the oldest run below do, and a piece goes as deep into
//! the level as it can, into the oldest run with nothing newer in front of it there.
//!
//! **Lazy leveling** (Dostoevsky): the last level is one run, with which is merged what comes down.

use std::sync::Arc;

use forebay_base::{Bound, Range};
use forebay_buffer_tree::{Fragment, NodeId};

use super::super::set::{Run, RunSet, total};
use super::{Step, merge};

/// What the stacks are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stacks {
    /// A stack is full with this many pieces.
    pub(super) pieces_max: usize,
    /// Whether the last level is one run.
    pub(super) is_lazy: bool,
}

/// A stack of no more than so many files is merged at once, and of a longer one a slice of this many.
const WHOLE_FILES: u64 = 16;
const SLICE_FILES: u64 = 4;

/// The runs of a level, newest first.
type Level<'a, F> = &'a [Arc<Run<F>>];

pub(super) fn next<F: Fragment>(
    set: &RunSet<F>,
    stacks: Stacks,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    debug_assert!(stacks.pieces_max >= 2, "a piece by itself is not merged from level to level");
    let last = set.runs.last().filter(|last| stacks.is_lazy && last.level > 0);
    if let Some(last) = last {
        let runs = set.levels().last()?;
        // Another organisation has left several, or they are being merged: what is above goes on meanwhile.
        let several = (runs.len() > 1).then(|| merge(runs, Some(last.id), last.level, &is_free)).flatten();
        if several.is_some() {
            return several;
        }
        let relabel = |level| Some(Step::Relabel { run: last.id, level });
        let is_one = runs.len() == 1 && is_free(last.id);
        if is_one && last.bytes() as f64 > full_bytes(set, stacks, last.level) {
            return relabel(last.level.saturating_add(1));
        }
        // Of a last level that is far too deep nothing that comes would be merged with it.
        let above = last.level - 1;
        let is_short = is_one && above > 0 && (last.bytes() as f64) < full_bytes(set, stacks, above) / 2.0;
        if is_short && set.levels().all(|runs| runs[0].level != above) {
            return relabel(above);
        }
    }
    let upper = set.levels().filter(|runs| last.is_none_or(|last| runs[0].level < last.level));
    upper.filter_map(|runs| sink(set, stacks, runs, &is_free)).next()
}

/// How much the last level may have before it is the next one.
fn full_bytes<F>(set: &RunSet<F>, stacks: Stacks, level: u32) -> f64 {
    let unit_bytes = if set.unit_bytes > 0 { set.unit_bytes } else { set.file_bytes };
    unit_bytes.max(1) as f64 * (stacks.pieces_max as f64).powi(level.saturating_add(1) as i32)
}

/// The fullest stack of a level goes to the next.
fn sink<F: Fragment>(
    set: &RunSet<F>,
    stacks: Stacks,
    runs: Level<'_, F>,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    if runs.len() < stacks.pieces_max || !runs.iter().all(|run| is_free(run.id)) {
        return None;
    }
    let (_, at) = fullest(runs).filter(|(pieces, _)| *pieces >= stacks.pieces_max)?;
    let mut range = hull(runs, &at);
    if bytes_in(runs, &range) > WHOLE_FILES.saturating_mul(set.file_bytes) {
        let whole: Vec<&Run<F>> = runs.iter().map(|run| &**run).collect();
        let end = set.slice_end(&whole, &Range { low: range.low.clone(), high: None }, SLICE_FILES);
        range = range.intersect(&Range { low: Bound::least(), high: end });
    }
    let level = runs[0].level + 1;
    let below = set.levels().find(|runs| runs[0].level == level).unwrap_or_default();
    let mut inputs: Vec<NodeId> = runs.iter().map(|run| run.id).collect();
    let is_last = below.last().is_some_and(|run| set.runs.last().is_some_and(|last| last.id == run.id));
    let into = if stacks.is_lazy && is_last {
        if below.len() > 1 {
            // Nothing comes between those that become one.
            return None;
        }
        let target = below.last()?;
        for part in &target.parts[target.overlapping(&range)] {
            range.low = range.low.min(part.range.low.clone());
            range.high = range.high.zip(part.range.high.clone()).map(|(one, other)| one.max(other));
        }
        inputs.push(target.id);
        Some(target.id)
    } else {
        below.iter().take_while(|run| run.overlapping(&range).is_empty()).last().map(|run| run.id)
    };
    into.is_none_or(is_free).then_some(Step::Sink { inputs, range, into, level })
}

/// Where a level has the most pieces one upon the other, and how many.
fn fullest<F>(runs: Level<'_, F>) -> Option<(usize, Bound)> {
    let mut ends: Vec<(&Bound, bool)> = Vec::new();
    for part in runs.iter().flat_map(|run| &run.parts) {
        ends.push((&part.range.low, true));
        ends.extend(part.range.high.as_ref().map(|high| (high, false)));
    }
    // At one place, what ends goes first.
    ends.sort_unstable();
    let (mut pieces, mut most) = (0, None);
    for (bound, begins) in ends {
        pieces = if begins { pieces + 1 } else { pieces - 1 };
        if most.is_none_or(|(most, _)| pieces > most) {
            most = Some((pieces, bound));
        }
    }
    most.map(|(pieces, bound)| (pieces, bound.clone()))
}

/// The range of the pieces at a place.
fn hull<F>(runs: Level<'_, F>, at: &Bound) -> Range {
    let there = |run: &'_ Arc<Run<F>>| {
        let part = run.parts.get(run.first_behind(at))?;
        (part.range.low <= *at).then(|| part.range.clone())
    };
    let here = Range { low: at.clone(), high: Some(at.clone()) };
    runs.iter().filter_map(there).fold(here, |hull, range| Range {
        low: hull.low.min(range.low),
        high: hull.high.zip(range.high).map(|(one, other)| one.max(other)),
    })
}

fn bytes_in<F>(runs: Level<'_, F>, range: &Range) -> u64 {
    let parts = runs.iter().flat_map(|run| &run.parts[run.overlapping(range)]);
    total(parts.map(|part| part.portion.bytes))
}

/// What full stacks have above their limit: of level 0 whole runs, of the others about a file for each piece.
pub(super) fn debt_bytes<F: Fragment>(set: &RunSet<F>, stacks: Stacks) -> u64 {
    let owed = |runs: Level<'_, F>| {
        if runs.len() <= stacks.pieces_max {
            return 0;
        }
        // Runs that lie side by side fill no stack, and nothing is merged for them.
        let pieces = fullest(runs).map_or(0, |(pieces, _)| pieces).saturating_sub(stacks.pieces_max);
        match runs[0].level {
            0 => total(runs[..pieces].iter().map(|run| run.bytes().min(set.unit_bytes))),
            _ => pieces as u64 * set.file_bytes.min(set.unit_bytes),
        }
    };
    total(set.levels().map(owed))
}
