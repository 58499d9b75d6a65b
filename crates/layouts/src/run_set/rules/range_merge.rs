//! Rangemerge (Rangemerge paper, section IV). Write buffers are kept in memory as resident runs. Once they take too
//! much, the key range that has the most of it is merged with what files have of it, and split where that grows too
//! long. So each range is at one place on disk, and memory holds what is worth the most to wait.
//!
//! Where key ranges are trees, what is evicted is appended to its range's tree, which is written anew only once its file
//! is over C, as in [Jungle](super::jungle), or too much lives of it.

use std::sync::Arc;

use forebay_base::{Bound, Range};
use forebay_buffer_tree::{Fragment, NodeId};
use forebay_store::list::Kept;

use super::super::key_ranges::{node_of, node_of_tree};
use super::super::set::{Part, Run, RunSet, total};
use super::factors::Factors;
use super::{Step, jungle};
use crate::files::ResidentBudget;

/// How much waits for a key range.
#[derive(Clone, Copy, Default, Debug)]
struct Weight {
    resident_bytes: u64,
    /// The memory that comes back with it: of each fragment in memory, its share among the ranges that still need it.
    /// So one that is half gone goes before one of which nothing is.
    held_bytes: u64,
    /// In all runs but the oldest.
    bytes: u64,
    on_disk: bool,
}

/// How much waits for each: those of the oldest run's parts, whose keys are looked at where they are.
struct Weights<'a, F> {
    parts: &'a [Arc<Part<F>>],
    weights: Vec<Weight>,
}

/// Whether no write buffer can be taken into memory.
pub(super) fn is_full<F: Fragment>(set: &RunSet<F>, budget: ResidentBudget) -> bool {
    budget.room.excess_bytes(all(set, budget)) > 0
}

/// What all tables keep in memory.
fn all<F: Fragment>(set: &RunSet<F>, budget: ResidentBudget) -> Kept {
    set.kept().plus(budget.elsewhere)
}

/// Bytes that wait above their limit: of what is in memory a share, so that the table that has the most owes the most.
pub(super) fn debt_bytes<F: Fragment>(set: &RunSet<F>, budget: ResidentBudget) -> u64 {
    let own = set.kept();
    if budget.resides || own.record_bytes > 0 {
        let all = all(set, budget);
        let excess = budget.room.excess_bytes(all).min(all.memory_bytes);
        return share(excess, own.memory_bytes, all.memory_bytes);
    }
    let upper = total(set.runs().iter().rev().skip(1).map(|run| run.bytes()));
    upper.saturating_sub(budget.room.bytes / 2)
}

/// So much of the whole as a part is of all.
fn share(whole: u64, part: u64, all: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(all.max(1))) as u64
}

/// What is to be done next: a key range is evicted, or, where nothing has to be, a tree of one is written anew.
pub(super) fn next<F: Fragment>(
    set: &RunSet<F>,
    budget: ResidentBudget,
    trees: Option<&Factors>,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    // Of level 0 there are no trees. What was ingested may have write buffers in memory behind it, of level 0 for good.
    let last = set.runs.last().filter(|run| trees.is_some() && !run.is_resident && is_free(run.id));
    if let Some(run) = last.filter(|run| run.level == 0) {
        return Some(Step::Relabel { run: run.id, level: 1 });
    }
    let evicted = victim(set, budget, &is_free).map(Step::Evict);
    let rewritten = || {
        let factors = trees?;
        jungle::rewrite(&[&**last?], factors.live_bytes_max(), set.file_bytes, factors, |_| true)
    };
    evicted.or_else(rewritten)
}

/// The range to be merged next, of those that `is_free` says yes to.
pub(super) fn victim<F: Fragment>(
    set: &RunSet<F>,
    budget: ResidentBudget,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Range> {
    let (all, room) = (all(set, budget), budget.room);
    let oldest = set.residents().next_back();
    if oldest.is_some() && room.excess_bytes(all) > 0 {
        let weights = Weights::of(set);
        let kept = if budget.is_beside { all.without(weights.leaving(&is_free)) } else { all };
        if room.memory_excess_bytes(kept) > 0 {
            return weights.heaviest(|weight| weight.held_bytes, is_free);
        }
        if room.excess_bytes(kept) > 0 {
            return weights.heaviest(|weight| weight.resident_bytes, is_free);
        }
    }
    let upper = || set.runs().iter().take(set.runs().len().saturating_sub(1));
    let is_due = oldest.is_some_and(|run| run.below <= budget.due_below);
    if is_due || upper().count() as u64 > room.buffers_max {
        // The log goes back to the oldest of them. What is left of it may be set aside.
        let oldest = Weights::of_runs(set, oldest.or_else(|| upper().next_back()));
        if let Some(range) = oldest.first(&Bound::least(), &is_free) {
            return Some(range);
        }
    }
    if budget.resides {
        let waits_on_disk = |weight: &Weight| if weight.on_disk { weight.bytes } else { 0 };
        let waits = upper().any(|run| !run.is_resident());
        return waits.then(|| Weights::of(set).heaviest(waits_on_disk, is_free))?;
    }
    let is_long = total(upper().map(|run| run.bytes())) > room.bytes / 2;
    is_long.then(|| Weights::of(set).heaviest(|weight| weight.bytes, is_free))?
}

/// The next range, of those that end behind a bound, of which any run but the oldest has something.
pub(super) fn any<F: Fragment>(
    set: &RunSet<F>,
    after: &Bound,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Range> {
    Weights::of(set).first(after, is_free)
}

/// What comes back with the range that has the most memory.
pub(super) fn fullest_bytes<F: Fragment>(set: &RunSet<F>) -> u64 {
    Weights::of(set).weights.iter().map(|weight| weight.held_bytes).max().unwrap_or(0)
}

impl<'a, F: Fragment> Weights<'a, F> {
    fn of(set: &'a RunSet<F>) -> Self {
        let oldest = set.last_on_disk().map(|run| run.id());
        Self::of_runs(set, set.runs().iter().filter(|run| Some(run.id()) != oldest))
    }

    /// How much of these runs does.
    fn of_runs<'r>(set: &'a RunSet<F>, runs: impl IntoIterator<Item = &'r Arc<Run<F>>>) -> Self
    where
        F: 'r,
    {
        let parts = set.last_on_disk().map_or(&[][..], |run| run.parts());
        let mut weights = Self { parts, weights: vec![Weight::default(); parts.len().max(1)] };
        runs.into_iter().for_each(|run| weights.add(run));
        debug_assert!(weights.weights.len() == parts.len().max(1), "each range has a weight");
        weights
    }

    /// Adds what a run has of each.
    fn add(&mut self, run: &Run<F>) {
        for parts in run.fragments() {
            let found: Vec<(usize, u64)> = parts.iter().flat_map(|part| self.bytes_of(part)).collect();
            // A range that a part's bounds touch, and in which it has nothing, gives no memory back.
            let needing = found.iter().filter(|(_, bytes)| *bytes > 0).count() as u64;
            let share = parts[0].fragment.held_bytes().map_or(0, |bytes| bytes.div_ceil(needing.max(1)));
            for (number, bytes) in found {
                let weight = &mut self.weights[number];
                weight.bytes = weight.bytes.saturating_add(bytes);
                weight.resident_bytes += if run.is_resident() { bytes } else { 0 };
                weight.held_bytes += if bytes > 0 { share } else { 0 };
                weight.on_disk |= !run.is_resident();
            }
        }
    }

    /// What a part has of each range.
    fn bytes_of(&self, part: &Part<F>) -> impl Iterator<Item = (usize, u64)> {
        let ranges = self.ranges_of(part);
        let whole = ranges.len() == 1;
        ranges.map(move |number| match whole {
            true => (number, part.portion.bytes.max(1)),
            false => (number, bytes_in(part, &self.range(number))),
        })
    }

    /// The numbers of the ranges that a part has something of, or might have.
    fn ranges_of(&self, part: &Part<F>) -> std::ops::Range<usize> {
        let ends = self.parts.get(1..).unwrap_or_default();
        let first = ends.partition_point(|next| next.range.low <= part.range.low);
        let count = ends[first..]
            .partition_point(|next| part.range.high.as_ref().is_none_or(|high| next.range.low < *high));
        first..first + count + 1
    }

    /// The range of this number: from where its part of the oldest run begins to where the next one does.
    fn range(&self, number: usize) -> Range {
        let low = self.parts.get(number).filter(|_| number > 0).map(|part| part.range.low.clone());
        let high = self.parts.get(number + 1).map(|part| part.range.low.clone());
        Range { low: low.unwrap_or_else(Bound::least), high }
    }

    /// Whether nobody is at work on one. The first begins before all keys, and so is known by that; it may have been
    /// another one's neighbour when work on it began.
    fn is_free(&self, number: usize, is_free: impl Fn(NodeId) -> bool) -> bool {
        let part = self.parts.get(number);
        let first = part.filter(|_| number == 0);
        // What is left of a tree that was cut may be several ranges.
        let tree = part.filter(|part| part.fragment.grown_bytes().is_some());
        is_free(node_of(&self.range(number)))
            && first.is_none_or(|part| is_free(node_of(&part.range)))
            && tree.is_none_or(|part| is_free(node_of_tree(part.fragment.id())))
    }

    /// What comes back with the ranges that somebody is at work on. Those that are set aside count as if they did: then a
    /// table may have one eviction at a time.
    fn leaving(&self, is_free: impl Fn(NodeId) -> bool) -> Kept {
        let busy = self.weights.iter().enumerate().filter(|(number, _)| !self.is_free(*number, &is_free));
        busy.fold(Kept::default(), |sum, (_, weight)| {
            sum.plus(Kept { record_bytes: weight.resident_bytes, memory_bytes: weight.held_bytes })
        })
    }

    /// Of those that are free and for which anything waits, the one that weighs the most.
    fn heaviest(
        mut self,
        weighs: impl Fn(&Weight) -> u64,
        is_free: impl Fn(NodeId) -> bool,
    ) -> Option<Range> {
        loop {
            let weighed = self.weights.iter().enumerate().rev();
            // One in which nothing waits must not stand before those in which something does.
            let waiting = weighed.filter(|(_, weight)| weight.bytes > 0 && weighs(weight) > 0);
            let (number, _) = waiting.max_by_key(|(_, weight)| weighs(weight))?;
            if self.is_free(number, &is_free) {
                return Some(self.range(number));
            }
            self.weights[number] = Weight::default();
        }
    }

    /// Of those that are free and for which anything waits, the first that ends behind a bound.
    fn first(self, after: &Bound, is_free: impl Fn(NodeId) -> bool) -> Option<Range> {
        let ends = self.parts.get(1..).unwrap_or_default();
        let from = ends.partition_point(|next| next.range.low <= *after);
        let mut waiting = (from..self.weights.len()).filter(|&number| self.weights[number].bytes > 0);
        waiting.find(|&number| self.is_free(number, &is_free)).map(|number| self.range(number))
    }
}

/// No less than one: what is little weighs something too.
fn bytes_in<F: Fragment>(part: &Part<F>, range: &Range) -> u64 {
    part.portion_in(range).map_or(0, |portion| portion.bytes.max(1))
}

impl<F: Fragment> Run<F> {
    /// The parts that each fragment has left, side by side.
    fn fragments(&self) -> impl Iterator<Item = &[Arc<Part<F>>]> {
        self.parts.chunk_by(|one, other| one.fragment.id() == other.fragment.id())
    }

    /// What it takes in memory.
    fn held_bytes(&self) -> u64 {
        let held = |parts: &[Arc<Part<F>>]| {
            let needed = || total(parts.iter().map(|part| part.portion.bytes));
            parts[0].fragment.held_bytes().unwrap_or_else(needed)
        };
        total(self.fragments().map(held))
    }
}

impl<F: Fragment> RunSet<F> {
    /// What resident runs have, and what they take. A fragment stays whole until nothing of it is needed.
    pub(in super::super) fn kept(&self) -> Kept {
        let memory_bytes = total(self.residents().map(|run| run.held_bytes()));
        Kept { record_bytes: self.resident_bytes(), memory_bytes }
    }
}
