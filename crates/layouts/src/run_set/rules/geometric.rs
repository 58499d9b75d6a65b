//! Geometric partitioning (Lester, Moffat and Zobel; Rangemerge paper, section III.B). The k-th run has at most
//! (r-1) r^(k-1) write buffers, counted with the values that it points to.
//!
//! 1. A write buffer is a run by itself. If the first place is free and it fits, that is its place; else it waits, and
//!    is told by level 0.
//! 2. A run that does not come before the next one by its place is merged with as many as it takes until the result
//!    fits its place. The papers do this while the buffer is written; but then its writer waits for up to all runs.
//! 3. What comes in front of a merge that is under way is merged in the same way, to places before that one's.

use forebay_buffer_tree::{Fragment, NodeId};

use super::super::set::{Run, RunSet, total};
use super::{Flush, Step, merge};

/// What fits which place.
struct Places {
    unit_bytes: u64,
    ratio: u32,
    /// What has outgrown the last one stays there until r is larger.
    most: u32,
}

impl Places {
    fn of<F: Fragment>(set: &RunSet<F>, bytes: u64, shape: Shape) -> Self {
        let unit_bytes = set.unit_bytes.max(bytes).max(1);
        match shape {
            Shape::Ratio(ratio) => Self { unit_bytes, ratio, most: u32::MAX },
            Shape::Runs(most) => Self { unit_bytes, ratio: ratio_of(set, bytes, unit_bytes, most), most },
        }
    }

    /// The first place that this much fits: k, from 1.
    fn first_for(&self, bytes: u64) -> u32 {
        let ratio = u64::from(self.ratio);
        debug_assert!(ratio >= 2 && self.unit_bytes > 0, "each place has room for more than the one before");
        let mut capacity = (ratio - 1).saturating_mul(self.unit_bytes);
        let mut place = 1;
        while capacity < bytes && place < self.most {
            capacity = capacity.saturating_mul(ratio);
            place += 1;
        }
        place
    }

    /// The place of a run, which what waits has by its size.
    fn of_run<F: Fragment>(&self, run: &Run<F>) -> u32 {
        if run.level == 0 { self.first_for(run.whole_bytes()) } else { run.level.min(self.most) }
    }
}

/// What is given: r, or p.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Ratio(u32),
    Runs(u32),
}

pub(super) fn flush<F: Fragment>(set: &RunSet<F>, bytes: u64, residents: usize, shape: Shape) -> Flush {
    let place = Places::of(set, bytes, shape).first_for(bytes);
    let is_free = set.runs.get(residents).is_none_or(|next| place < next.level);
    Flush { runs: residents, level: if is_free { place } else { 0 } }
}

pub(super) fn next<F: Fragment>(
    set: &RunSet<F>,
    shape: Shape,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    let places = Places::of(set, 0, shape);
    let first = crowded(set, &places).next()?;
    // Behind those in front, which are where they should be.
    let least = first.checked_sub(1).map_or(1, |before| place_of(set, &places, before) + 1);
    let (mut sum, mut place) = (0, least);
    for (at, run) in set.runs.iter().enumerate().skip(first) {
        if at > first && place < place_of(set, &places, at) {
            return fit(set, first, at, place.min(run.level), is_free);
        }
        sum = run.whole_bytes().saturating_add(sum);
        place = places.first_for(sum).max(least);
    }
    fit(set, first, set.runs.len(), place, is_free)
}

/// Some runs get a place, which is no deeper than the level of the next run.
fn fit<F: Fragment>(
    set: &RunSet<F>,
    first: usize,
    end: usize,
    place: u32,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    debug_assert!(
        set.runs.get(end).is_none_or(|next| place <= next.level),
        "a place is no deeper than the level of the next run"
    );
    let runs = &set.runs[first..end];
    match runs {
        // Another organisation has left it too deep.
        [run] => is_free(run.id).then_some(Step::Relabel { run: run.id, level: place }),
        // Levels never fall, while inputs are there as well.
        _ => merge(runs, None, runs.last().map_or(place, |run| place.max(run.level)), is_free),
    }
}

/// Bytes of runs that wait for a place.
pub(super) fn debt_bytes<F: Fragment>(set: &RunSet<F>, shape: Shape) -> u64 {
    total(crowded(set, &Places::of(set, 0, shape)).map(|at| set.runs[at].bytes().min(set.unit_bytes)))
}

/// The runs that do not come before the next one by their places, newest first. Those that are being merged come
/// nowhere any more.
fn crowded<'a, F: Fragment>(set: &'a RunSet<F>, places: &'a Places) -> impl Iterator<Item = usize> + 'a {
    let is_crowded = move |&at: &usize| {
        at + 1 < set.runs.len()
            && underway_at(set, at).is_none()
            && places.of_run(&set.runs[at]) >= place_of(set, places, at + 1)
    };
    (0..set.runs.len()).filter(is_crowded)
}

/// The place of the run of this number: that of the merge which it is part of, if there is one.
fn place_of<F: Fragment>(set: &RunSet<F>, places: &Places, at: usize) -> u32 {
    underway_at(set, at).unwrap_or_else(|| places.of_run(&set.runs[at]))
}

/// The level of the merge that is under way with the run of this number.
fn underway_at<F>(set: &RunSet<F>, at: usize) -> Option<u32> {
    let id = set.runs[at].id;
    let mut merges = set.underway.iter();
    merges.find(|merge| merge.into == id || merge.inputs.contains(&id)).map(|merge| merge.level)
}

/// The least r by which all that there is, and what comes, fits the first `runs_max` places: r^p - 1 write buffers.
fn ratio_of<F: Fragment>(set: &RunSet<F>, bytes: u64, unit_bytes: u64, runs_max: u32) -> u32 {
    let whole = total(set.runs.iter().map(|run| run.whole_bytes()));
    let units = whole.saturating_add(bytes).div_ceil(unit_bytes);
    let fits = |ratio: u32| u64::from(ratio).checked_pow(runs_max).is_none_or(|places| places > units);
    // By halves: r is at most as large as the number of units.
    let (mut low, mut high) = (2, u32::try_from(units.saturating_add(1)).unwrap_or(u32::MAX).max(2));
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    debug_assert!(low == 2 || !fits(low - 1), "it is the least");
    low
}
