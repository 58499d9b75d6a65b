//! Rangemerge (Rangemerge paper, section IV). Write buffers are kept in memory as resident runs. Once they take too
//! much, the key range that has the most of it is merged with what files have of it, and split where that grows too
//! long. So each range is at one place on disk, and memory holds what is worth the most to wait.

use std::cmp::Reverse;
use std::sync::Arc;

use forebay_base::{Bound, Range};
use forebay_buffer_tree::{Fragment, NodeId};

use super::super::key_ranges::{bounds, node_of};
use super::super::set::{Part, Run, RunSet, total};
use crate::files::ResidentBudget;

/// How much waits for a key range.
#[derive(Clone, Debug)]
struct Weight {
    range: Range,
    resident_bytes: u64,
    /// The memory that comes back with it: of each fragment in memory, its share among the ranges that still need it.
    /// So one that is half gone goes before one of which nothing is.
    held_bytes: u64,
    /// In all runs but the oldest.
    bytes: u64,
    on_disk: bool,
}

/// Fragments that are mostly needed no more may take this much, whatever the room is: beside what else there is that
/// is little.
const HELD_BYTES_FREE: u64 = 4 << 20;

/// Whether no write buffer can be taken into memory.
pub(super) fn is_full<F: Fragment>(set: &RunSet<F>, room: ResidentBudget) -> bool {
    too_much_waits(set, room) || too_much_is_held(set, room)
}

/// Whether resident runs of all tables have more than half of their room: the other half is for the write buffer that
/// comes next.
fn too_much_waits<F>(set: &RunSet<F>, room: ResidentBudget) -> bool {
    set.resident_bytes() + room.elsewhere_bytes > room.bytes / 2
}

/// Whether their fragments take all of it. Where a write buffer has little of each range they are of many ranges, and
/// stay until the last of those is merged.
fn too_much_is_held<F: Fragment>(set: &RunSet<F>, room: ResidentBudget) -> bool {
    set.held_bytes() > room.bytes.max(HELD_BYTES_FREE)
}

/// Bytes that wait above their limit: of what is in memory a share, so that the table that has the most owes the most.
pub(super) fn debt_bytes<F>(set: &RunSet<F>, room: ResidentBudget) -> u64 {
    let (own, limit) = (set.resident_bytes(), room.bytes / 2);
    if room.resides || own > 0 {
        let all = own + room.elsewhere_bytes;
        return (u128::from(all.saturating_sub(limit)) * u128::from(own) / u128::from(all.max(1))) as u64;
    }
    let upper = total(set.runs().iter().rev().skip(1).map(|run| run.bytes()));
    upper.saturating_sub(limit)
}

/// The range to be merged next, of those that `is_free` says yes to.
pub(super) fn victim<F: Fragment>(
    set: &RunSet<F>,
    room: ResidentBudget,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Range> {
    let weights = weights(set).into_iter().filter(|weight| is_free(node_of(&weight.range)));
    let heaviest = |weights: Vec<Weight>, bytes: fn(&Weight) -> u64| {
        let heaviest =
            weights.into_iter().max_by_key(|weight| (bytes(weight), Reverse(weight.range.low.clone())));
        heaviest.filter(|weight| weight.bytes > 0)
    };
    let upper = || set.runs().iter().take(set.runs().len().saturating_sub(1));
    let oldest = set.residents().next_back();
    let is_due = oldest.is_some_and(|run| run.below <= room.due_below);
    let chosen = if oldest.is_some() && too_much_is_held(set, room) {
        heaviest(weights.collect(), |weight| weight.held_bytes)
    } else if oldest.is_some() && too_much_waits(set, room) {
        heaviest(weights.collect(), |weight| weight.resident_bytes)
    } else if is_due || upper().count() > room.runs_max {
        // The log goes back to the oldest of them.
        let oldest = oldest.or_else(|| upper().next_back())?;
        let first = oldest.parts().first()?.range.low.clone();
        // The first may be set aside, and of one behind it nothing need wait.
        let is_due =
            |weight: &Weight| weight.bytes > 0 && weight.range.high.as_ref().is_none_or(|high| *high > first);
        let mut weights = weights;
        weights.find(is_due)
    } else if room.resides {
        heaviest(weights.filter(|weight| weight.on_disk).collect(), |weight| weight.bytes)
    } else if total(upper().map(|run| run.bytes())) > room.bytes / 2 {
        heaviest(weights.collect(), |weight| weight.bytes)
    } else {
        None
    };
    chosen.map(|weight| weight.range)
}

/// The next range, of those that end behind a bound, of which any run but the oldest has something.
pub(super) fn any<F: Fragment>(
    set: &RunSet<F>,
    after: &Bound,
    is_free: impl Fn(NodeId) -> bool,
) -> Option<Range> {
    let mut ranges = weights(set).into_iter().filter(|weight| weight.bytes > 0).map(|weight| weight.range);
    ranges.find(|range| range.high.as_ref().is_none_or(|high| high > after) && is_free(node_of(range)))
}

/// What waits for each key range.
fn weights<F: Fragment>(set: &RunSet<F>) -> Vec<Weight> {
    let bounds = bounds(set);
    let lows = [Bound::least()].into_iter().chain(bounds.iter().cloned());
    let highs = bounds.iter().cloned().map(Some).chain([None]);
    let mut weights: Vec<Weight> = lows
        .zip(highs)
        .map(|(low, high)| Weight {
            range: Range { low, high },
            resident_bytes: 0,
            held_bytes: 0,
            bytes: 0,
            on_disk: false,
        })
        .collect();
    let last = set.last_on_disk().map(|run| run.id());
    for run in set.runs().iter().filter(|run| Some(run.id()) != last) {
        for parts in run.fragments() {
            let needing = parts.iter().map(|part| ranges_of(part, &bounds).len() as u64).sum::<u64>();
            let share = parts[0].fragment.held_bytes().map(|bytes| bytes.div_ceil(needing));
            for part in parts {
                let ranges = ranges_of(part, &bounds);
                let whole = ranges.len() == 1;
                for weight in &mut weights[ranges] {
                    let bytes = if whole { part.portion.bytes.max(1) } else { bytes_in(part, &weight.range) };
                    weight.bytes = weight.bytes.saturating_add(bytes);
                    weight.resident_bytes += if run.is_resident() { bytes } else { 0 };
                    weight.held_bytes += share.unwrap_or(0);
                    weight.on_disk |= !run.is_resident();
                }
            }
        }
    }
    weights
}

/// The numbers of the ranges between these bounds that a part has something of, or might have.
fn ranges_of<F>(part: &Part<F>, bounds: &[Bound]) -> std::ops::Range<usize> {
    let first = bounds.partition_point(|bound| *bound <= part.range.low);
    let count =
        bounds[first..].partition_point(|bound| part.range.high.as_ref().is_none_or(|high| bound < high));
    debug_assert!(first + count <= bounds.len(), "a part lies in one range at least, and in none but these");
    first..first + count + 1
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
    /// What resident runs take. A fragment stays whole until nothing of it is needed.
    pub(in super::super) fn held_bytes(&self) -> u64 {
        total(self.residents().map(|run| run.held_bytes()))
    }
}
