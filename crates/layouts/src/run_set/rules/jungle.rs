//! Jungle: levels as in [leveling](super::leveling), of trees. What comes down is appended to the trees that it falls
//! to, so a merge writes its input and the nodes that change, and nothing of what was there. A tree whose file is more
//! than C times as long as what lives of it is written anew: with the batch that would take it there, or by itself.
//!
//! A level's share is C times leveling's, counted by how long its files are; or leveling's, by what lives: both with
//! values that are pointed to. Trees are kept near the length of a file: a long one is written as
//! several, short ones join a neighbour once there are many of them. Neither makes a tree that the other would change
//! at once.

use forebay_base::Range;
use forebay_base::limits::BLOCK_BYTES;
use forebay_buffer_tree::{Fragment, NodeId, Portion};

use super::super::policy::LevelSizes;
use super::super::set::{Part, Run, RunSet};
use super::Step;
use super::factors::Factors;
use super::leveling::{self, Levels, Measure};

/// A tree is split when this much of it lives, in files' lengths: into parts of two thirds of one at least.
const SPLIT: f64 = 1.5;
/// It joins a neighbour when less lives, if both together are not longer than the last of these, and the mean of the
/// level is below the second.
const SHORT: f64 = 0.2;
const SHORT_MEAN: f64 = 0.25;
const JOINED: f64 = 0.9;

const _: () = assert!(
    JOINED < SPLIT && SPLIT / 2.0 > SHORT && SPLIT / 2.0 > SHORT_MEAN && 2.0 * SHORT < JOINED,
    "what was joined is not split at once, nor is what was split joined"
);
/// This many write buffers of level 0 are merged down at once, about as many as memory holds. A batch copies the nodes
/// that it changes: the more records it has, the fewer copied nodes for each.
const GATHERED: usize = 8;
/// A file that was just written is no longer than what lives of it and this: its end is a whole block.
const SLACK_BYTES: u64 = 4 * BLOCK_BYTES as u64;

/// What levels may have.
pub(super) fn levels(ratio: u32, factor: f64, sizes: LevelSizes, inline_bytes: u32) -> Levels {
    let measure = match sizes {
        LevelSizes::Live => Measure::Live,
        LevelSizes::Total => Measure::Files { factor, inline_bytes },
    };
    Levels { ratio, gathered: GATHERED, measure }
}

pub(super) fn next<F: Fragment>(
    set: &RunSet<F>,
    levels: Levels,
    factors: &Factors,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    if let Some(step) = leveling::form(set) {
        return leveling::free(step, is_free);
    }
    // Writers wait for what was gathered, and for nothing that follows.
    if let Some(step) = leveling::first(set, levels, &is_free) {
        return Some(step);
    }
    let grown = set.runs.iter().filter(|run| run.level > 0 && is_free(run.id));
    let runs: Vec<&Run<F>> = grown.map(|run| &**run).collect();
    let is_last = |run: &Run<F>| set.runs.last().is_some_and(|last| last.id == run.id);
    // Where a level has no room, what is written anew might be on its way down next.
    let has_room = |run: &Run<F>| is_last(run) || levels.fullness(set, run) <= 1.0;
    let rewritten = rewrite(&runs, SPLIT * set.file_bytes as f64, set.file_bytes, factors, has_room);
    rewritten.or_else(|| leveling::push(set, levels, is_free, |run| victim(set, run)))
}

/// Trees that are to be written anew by themselves: what joins is, so joining comes first. One is split from so many
/// live bytes on.
pub(super) fn rewrite<F: Fragment>(
    runs: &[&Run<F>],
    live_bytes_max: f64,
    file_bytes: u64,
    factors: &Factors,
    has_room: impl Fn(&Run<F>) -> bool,
) -> Option<Step> {
    let (run, range) = join(runs, file_bytes as f64)
        .or_else(|| worst(runs.iter().filter(|run| has_room(run)), factors))
        .or_else(|| split(runs, live_bytes_max))?;
    Some(Step::Rewrite { run, range })
}

/// How long a level's files are, with values that they point to. Short records are written anew with what comes, so that
/// nothing lies beside them: they count as if it did, or there would be C times as many of them to be written anew.
pub(in super::super) fn length_of<F: Fragment>(run: &Run<F>, factor: f64, inline_bytes: u32) -> f64 {
    // Two parts of one tree lie side by side.
    let files = run.parts.chunk_by(|one, other| one.fragment.id() == other.fragment.id());
    let length = |parts: &[std::sync::Arc<Part<F>>]| {
        let whole = parts.iter().map(|part| part.whole_bytes()).fold(0, u64::saturating_add);
        let grown = parts.iter().filter_map(|part| part.fragment.grown_bytes()).max();
        match grown.filter(|_| !parts.iter().any(|part| lies_in_leaves(part.portion, inline_bytes))) {
            Some(grown) => grown as f64,
            None => factor * whole as f64,
        }
    };
    files.map(length).sum()
}

/// How many times as long a part's file is as what lives of it.
fn length<F: Fragment>(part: &Part<F>) -> f64 {
    let live = part.portion.bytes.max(1);
    part.fragment.grown_bytes().map_or(1.0, |grown| grown as f64 / live as f64)
}

/// Whether a part's file is more than this many times as long as what lives of it.
pub(super) fn is_over<F: Fragment>(part: &Part<F>, factor: f64) -> bool {
    let longest = factor * part.portion.bytes as f64 + SLACK_BYTES as f64;
    part.fragment.grown_bytes().is_some_and(|grown| grown as f64 > longest)
}

/// The part with the worst file of those that are over.
fn worst<'a, F: Fragment + 'a>(
    runs: impl Iterator<Item = &'a &'a Run<F>>,
    factors: &Factors,
) -> Option<(NodeId, Range)> {
    let parts = runs.flat_map(|run| run.parts.iter().map(move |part| (*run, part)));
    let over = parts.filter(|(run, part)| is_over(part, factors.of(run.level)));
    let (run, part) = over.max_by(|(_, left), (_, right)| length(left).total_cmp(&length(right)))?;
    Some((run.id, part.range.clone()))
}

/// A part of which too much lives.
fn split<F: Fragment>(runs: &[&Run<F>], live_bytes_max: f64) -> Option<(NodeId, Range)> {
    let mut parts = runs.iter().flat_map(|run| run.parts.iter().map(move |part| (run.id, part)));
    let is_long = |part: &Part<F>| {
        let live = part.portion.bytes;
        // One that was just written as it is did not fall apart: its records may be that long.
        let is_fresh =
            part.fragment.grown_bytes().is_some_and(|grown| grown <= live.saturating_add(SLACK_BYTES));
        live as f64 > live_bytes_max && !is_fresh
    };
    let (run, part) = parts.find(|(_, part)| is_long(part))?;
    Some((run, part.range.clone()))
}

/// A short part and the shorter of its neighbours, in a level that has many short ones.
fn join<F>(runs: &[&Run<F>], file_bytes: f64) -> Option<(NodeId, Range)> {
    let bytes = |part: &Part<F>| part.portion.bytes as f64;
    let is_scattered =
        |run: &&&Run<F>| (run.bytes() as f64) < SHORT_MEAN * file_bytes * run.parts.len() as f64;
    let pairs = runs
        .iter()
        .filter(is_scattered)
        .flat_map(|run| run.parts.windows(2).map(move |pair| (run.id, &pair[0], &pair[1])));
    let fits = pairs.filter(|(_, left, right)| {
        bytes(left).min(bytes(right)) < SHORT * file_bytes
            && bytes(left) + bytes(right) <= JOINED * file_bytes
    });
    let sum = |left: &Part<F>, right: &Part<F>| left.portion.bytes.saturating_add(right.portion.bytes);
    let (run, left, right) = fits.min_by_key(|(_, left, right)| sum(left, right))?;
    Some((run, Range { low: left.range.low.clone(), high: right.range.high.clone() }))
}

/// How long the trees are at most that this much is written to.
pub(super) fn tree_bytes(bytes: u64, file_bytes: u64) -> u64 {
    // What is not long enough to be split is written as one.
    let longest = (SPLIT * file_bytes as f64) as u64;
    if bytes <= longest { longest } else { file_bytes }
}

/// The part whose file is longest for what lives of it: what is dead of it goes without being written again. Among
/// those that are about equal the one that overlaps the least.
fn victim<F: Fragment>(set: &RunSet<F>, run: &Run<F>) -> Option<usize> {
    let rank = |number: usize| {
        let quarters = (4.0 * length(&run.parts[number])) as u64;
        (u64::MAX - quarters, leveling::cost_below(set, run, number))
    };
    let ranks: Vec<_> = (0..run.parts.len()).map(rank).collect();
    (0..ranks.len()).min_by(|&left, &right| {
        ranks[left].0.cmp(&ranks[right].0).then(ranks[left].1.total_cmp(&ranks[right].1))
    })
}

/// Whether a part is written anew with a batch: it is no tree, or a batch appended to it would take its file over C if
/// all keys were there already, or copy about all of it.
pub(super) fn rebuilds<F: Fragment>(
    part: &Part<F>,
    batch_bytes: u64,
    factor: f64,
    inline_bytes: u32,
) -> bool {
    let Some(grown) = part.fragment.grown_bytes() else { return true };
    let live = part.portion.bytes as f64;
    let copied = copied_bytes(part.portion, batch_bytes as f64, inline_bytes);
    grown.saturating_add(batch_bytes) as f64 + copied > factor * live + SLACK_BYTES as f64
        || copied > ALL * live
}

/// A batch that copies more than this share of a tree had better take the rest along.
const ALL: f64 = 0.9;
/// Records of which the key and all that goes with it are this long, and the value as long as may lie in leaves, are
/// taken to be there.
const AROUND_BYTES: f64 = 32.0;

/// Whether values are short enough to lie in leaves.
fn lies_in_leaves(tree: Portion, inline_bytes: u32) -> bool {
    tree.bytes as f64 <= (f64::from(inline_bytes) + AROUND_BYTES) * tree.records.max(1) as f64
}

/// What a leaf has of a record whose value is elsewhere.
const ENTRY_BYTES: f64 = 32.0;

/// About how much of a tree's leaves a batch of evenly spread keys copies: all that it falls on.
fn copied_bytes(tree: Portion, batch_bytes: f64, inline_bytes: u32) -> f64 {
    let records = tree.records.max(1) as f64;
    let record_bytes = tree.bytes.max(1) as f64 / records;
    let entry_bytes = if lies_in_leaves(tree, inline_bytes) { record_bytes } else { ENTRY_BYTES };
    let leaves = (records * entry_bytes / BLOCK_BYTES as f64).max(1.0);
    let touched = 1.0 - (-batch_bytes / record_bytes / leaves).exp();
    records * entry_bytes * touched
}
