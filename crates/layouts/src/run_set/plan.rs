//! Planning: what the policy wants, as one bounded merge. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::{Bound, Error, Range, Result};
use forebay_buffer_tree::{self as tree, NodeId};
use forebay_store::ListFile;

use super::policy::{Flush, Policy, Room, Step, range_merge};
use super::set::{Cut, Edit, Part, Replace, Reside, Run, RunSet, Taken};
use crate::files::Fragment;

/// A slice of a merge is about so many files long.
const SLICE_FILES: u64 = 4;
/// Where it would be longer than that, because so many runs have long parts, it ends within one.
const SLICE_FILES_MAX: u64 = 16;

/// What some runs have of some ranges, to become parts of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Slice {
    /// Newest first.
    pub(super) taken: Vec<(NodeId, Range)>,
    /// Bytes of a write buffer that comes with them; 0 where there is none.
    pub(super) flushed_bytes: u64,
    /// It stays in memory, of these ranges.
    pub(super) resides: Option<Vec<Range>>,
    /// The log segment behind those of which all that is in the range comes with them; 0 where that is none.
    pub(super) below: u64,
    /// Where the result lies.
    pub(super) range: Range,
    /// `None` for a new run.
    pub(super) into: Option<NodeId>,
    pub(super) level: u32,
    /// More slices are to come.
    pub(super) goes_on: bool,
    /// Of a key range on its way to its place, by what it is known.
    pub(super) evicted: Option<NodeId>,
    /// Nothing older has anything of the range.
    pub(super) is_bottom: bool,
    /// See [`RunSet::breaks`]: of the set that it was planned on.
    pub(super) breaks: u64,
}

/// What to do next.
pub(super) enum Next<F> {
    /// Moves no data.
    Edit(Edit<F>),
    Merge(Slice),
}

/// What a merge or a flush made, to be settled with the runs as they are by then.
#[derive(Clone, Debug)]
pub struct Made<F> {
    pub(super) slice: Slice,
    pub(super) parts: Vec<Part<F>>,
}

impl Made<Fragment> {
    /// The list files that were written.
    pub(crate) fn files(&self) -> impl Iterator<Item = Arc<ListFile>> {
        self.parts.iter().map(|part| Arc::clone(&part.fragment.0))
    }

    pub(crate) fn records(&self) -> u64 {
        self.parts.iter().map(|part| part.portion.records).sum()
    }
}

impl Slice {
    /// Whether its records come by themselves: from no run, and by no write buffer.
    pub(super) fn is_ingest(&self) -> bool {
        self.taken.is_empty() && self.flushed_bytes == 0
    }

    /// What nobody else may touch meanwhile: runs, or a key range.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        if let Some(range) = self.evicted {
            return vec![range];
        }
        let runs = self.taken.iter().map(|(run, _)| *run).chain(self.into);
        runs.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl<F: tree::Fragment> RunSet<F> {
    /// What to do next, leaving busy runs alone: a merge that goes on, or what the policy wants; of both the one
    /// higher up, where runs come faster.
    pub(super) fn next_work(&self, busy: &BTreeSet<NodeId>, room: Room) -> Option<Next<F>> {
        if self.policy != Policy::RangeMerge
            && let Some(slice) = self.write_out(busy)
        {
            return Some(Next::Merge(slice));
        }
        let step = self.policy.next(self, room, |id| self.is_free(id, busy));
        let begun = self.next_underway(busy);
        let is_higher = |step: &Step| begun.as_ref().is_none_or(|slice| self.level_of(step) < slice.level);
        match step.filter(is_higher) {
            Some(step) => self.plan(step),
            None => begun.map(Next::Merge),
        }
    }

    /// How a write buffer of so many bytes comes in, which a log segment mirrors: whether it stays in memory, and with
    /// which of the newest runs it is merged.
    pub(super) fn flush(&self, segment: u64, bytes: u64, busy: &BTreeSet<NodeId>, room: Room) -> Slice {
        let (flushed_bytes, below) = (bytes.max(1), segment + 1);
        let residents = self.residents_end();
        let mut flush = self.policy.flush(self, bytes, residents);
        let is_free = self.runs[..flush.runs].iter().all(|run| self.is_free(run.id, busy));
        if (self.policy == Policy::RangeMerge && room.resides) || (!is_free && residents > 0) {
            let resides = Some(vec![Range::all()]);
            return Slice { flushed_bytes, resides, below, breaks: self.breaks, ..Slice::default() };
        }
        if !is_free {
            flush = Flush { runs: 0, level: 0 };
        }
        Slice { flushed_bytes, below, ..self.front(flush) }
    }

    /// What of a write buffer that was absorbed before a crash stays in memory: the ranges of which files lack it.
    pub(super) fn recall(&self, segment: u64, bytes: u64) -> Option<Slice> {
        let ranges = self.marks.lacking(segment);
        let slice = Slice { flushed_bytes: bytes.max(1), below: segment + 1, ..Slice::default() };
        (!ranges.is_empty()).then_some(Slice { resides: Some(ranges), ..slice })
    }

    /// Up to where runs are resident, or have resident ones behind them.
    fn residents_end(&self) -> usize {
        self.runs.iter().rposition(|run| run.is_resident).map_or(0, |last| last + 1)
    }

    /// Resident runs go to disk, for a policy that keeps none.
    fn write_out(&self, busy: &BTreeSet<NodeId>) -> Option<Slice> {
        let runs = self.residents_end();
        let is_free = self.runs[..runs].iter().all(|run| self.is_free(run.id, busy));
        let below = self.residents().next()?.below;
        is_free.then(|| Slice { below, ..self.front(Flush { runs, level: 0 }) })
    }

    /// The newest runs, whole.
    fn front(&self, Flush { runs, level }: Flush) -> Slice {
        let (inputs, older) = self.runs.split_at(runs);
        let taken = inputs.iter().map(|run| (run.id, Range::all())).collect();
        Slice { taken, level, is_bottom: older.is_empty(), breaks: self.breaks, ..Slice::default() }
    }

    /// What all runs have of a range, or of as much of it as is enough for one go.
    fn evict(&self, range: Range) -> Slice {
        let runs: Vec<&Run<F>> =
            self.runs.iter().filter(|run| !run.overlapping(&range).is_empty()).map(|run| &**run).collect();
        let evicted = Some(range_merge::node_of(&range));
        let last = self.last_on_disk().map(|run| run.id);
        let first_of = |run: &&Run<F>| Some(run.parts.get(run.first_behind(&range.low))?.range.low.clone());
        let mut range = range.clone();
        // It begins where something waits, or with the part that this falls into: else nothing might come of it.
        if let Some(first) = runs.iter().filter(|run| Some(run.id) != last).filter_map(first_of).min() {
            let is_before = |part: &Arc<Part<F>>| part.range.high.as_ref().is_some_and(|high| *high <= first);
            let rest = runs.iter().find(|run| Some(run.id) == last);
            if rest.is_none_or(|run| run.parts[run.overlapping(&range)].iter().all(is_before)) {
                range.low = first.max(range.low);
            }
        }
        // Writers wait for each: no more at a time than has to be.
        let end = self.slice_end(&runs, &range.low, 1);
        let range = range.intersect(&Range { low: Bound::least(), high: end });
        let taken = runs.iter().map(|run| (run.id, range.clone())).collect();
        let below = runs.iter().find(|run| run.is_resident).map_or(0, |run| run.below);
        let into = self.last_on_disk();
        let level = into.map_or(1, |run| run.level);
        let into = into.map(|run| run.id);
        let breaks = self.breaks;
        Slice { taken, below, range, into, level, evicted, is_bottom: true, breaks, ..Slice::default() }
    }

    pub(super) fn is_free(&self, id: NodeId, busy: &BTreeSet<NodeId>) -> bool {
        let goes_on = self.underway.iter().any(|merge| merge.into == id || merge.inputs.contains(&id));
        !goes_on && !busy.contains(&id)
    }

    /// The next slice of a merge that goes on.
    fn next_underway(&self, busy: &BTreeSet<NodeId>) -> Option<Slice> {
        let is_free = |id: &NodeId| !busy.contains(id);
        let free =
            self.underway.iter().filter(|merge| is_free(&merge.into) && merge.inputs.iter().all(is_free));
        let merge = free.min_by_key(|merge| merge.level)?;
        self.slice(&merge.inputs, Some(merge.into), merge.level)
    }

    /// The next step towards one run.
    pub(super) fn next_compaction(&self, busy: &BTreeSet<NodeId>) -> Option<Slice> {
        if !self.underway.is_empty() {
            return self.next_underway(busy);
        }
        if self.policy == Policy::RangeMerge
            && let Some(range) = range_merge::any(self, |id| self.is_free(id, busy))
        {
            return Some(self.evict(range));
        }
        if self.residents().next().is_some() {
            return None;
        }
        let last = self.runs.last()?;
        let is_done = self.runs.len() == 1 && last.parts.iter().all(|part| part.is_bottom);
        let inputs: Vec<NodeId> = self.runs.iter().map(|run| run.id).collect();
        if is_done || inputs.iter().any(|id| busy.contains(id)) {
            return None;
        }
        self.slice(&inputs, None, last.level)
    }

    fn level_of(&self, step: &Step) -> u32 {
        match step {
            Step::Merge { level, .. } | Step::Relabel { level, .. } => *level,
            Step::Push { run, .. } => self.run(*run).map_or(0, |run| run.level + 1),
            Step::Evict(_) => 0,
        }
    }

    fn plan(&self, step: Step) -> Option<Next<F>> {
        match step {
            Step::Merge { inputs, into, level } => self.slice(&inputs, into, level).map(Next::Merge),
            Step::Relabel { run, level } => Some(Next::Edit(Edit::Relabel { run, level })),
            Step::Push { run, part } => self.push(self.run(run)?, part),
            Step::Evict(range) => Some(Next::Merge(self.evict(range))),
        }
    }

    /// A part goes down: as it is, where nothing of the next level is in its range, else merged with what is.
    fn push(&self, run: &Run<F>, number: usize) -> Option<Next<F>> {
        let part = run.parts.get(number)?;
        let level = run.level + 1;
        let next = self.runs.iter().find(|other| other.level == level);
        let overlapping = next.map_or(&[][..], |next| &next.parts[next.overlapping(&part.range)]);
        let (Some(first), Some(last)) = (overlapping.first(), overlapping.last()) else {
            let taken = Taken { run: run.id, range: part.range.clone(), below: None, above: None };
            return Some(Next::Edit(Edit::Replace(Replace {
                flushed_bytes: 0,
                is_ingest: false,
                below: 0,
                range: part.range.clone(),
                taken: vec![taken],
                into: next.map_or(NodeId(self.next_id), |next| next.id),
                level,
                parts: vec![Part::clone(part)],
                goes_on: false,
            })));
        };
        let low = (&part.range.low).min(&first.range.low).clone();
        let high = part.range.high.clone().zip(last.range.high.clone()).map(|(part, last)| part.max(last));
        let range = Range { low, high };
        let into = next.map(|next| next.id);
        let taken: Vec<_> =
            [(run.id, part.range.clone())].into_iter().chain(into.map(|id| (id, range.clone()))).collect();
        let runs: Vec<NodeId> = taken.iter().map(|(run, _)| *run).collect();
        let is_bottom = self.is_bottom(&runs, &range);
        let breaks = self.breaks;
        Some(Next::Merge(Slice { taken, range, into, level, is_bottom, breaks, ..Slice::default() }))
    }

    /// The first slice of what these runs still have to be merged; `into` may be one of them. It ends where a part of
    /// the largest run ends, so that few files are cut.
    fn slice(&self, inputs: &[NodeId], into: Option<NodeId>, level: u32) -> Option<Slice> {
        let runs: Vec<&Run<F>> = inputs.iter().filter_map(|&id| self.run(id)).map(|run| &**run).collect();
        let others = || runs.iter().filter(|run| Some(run.id) != into);
        let mut low = others().map(|run| &run.parts[0].range.low).min()?.clone();
        let target = runs.iter().find(|run| Some(run.id) == into);
        if let Some(part) = target.and_then(|run| run.parts.get(run.first_behind(&low))) {
            low = low.min(part.range.low.clone());
        }
        let mut high = self.slice_end(&runs, &low, SLICE_FILES);
        if let (Some(target), Some(end)) = (target, high.as_ref())
            && let Some(part) =
                target.parts.get(target.first_behind(end)).filter(|part| part.range.low < *end)
        {
            high = part.range.high.clone();
        }
        let goes_on =
            high.as_ref().is_some_and(|high| others().any(|run| run.first_behind(high) < run.parts.len()));
        let range = Range { low, high: high.filter(|_| goes_on) };
        let taken = inputs.iter().map(|&id| (id, range.clone())).collect();
        let is_bottom = self.is_bottom(inputs, &range);
        let breaks = self.breaks;
        Some(Slice { taken, range, into, level, goes_on, is_bottom, breaks, ..Slice::default() })
    }

    /// Where about so many files' worth lies between `low` and this bound; `None` for the end.
    fn slice_end(&self, runs: &[&Run<F>], low: &Bound, files: u64) -> Option<Bound> {
        let left = |run: &Run<F>| {
            run.parts[run.first_behind(low)..].iter().map(|part| part.portion.bytes).sum::<u64>()
        };
        let whole: u64 = runs.iter().map(|run| left(run)).sum();
        let guide = runs.iter().max_by_key(|run| left(run))?;
        // The others are taken to lie as the largest does.
        let enough = (files * self.file_bytes) as f64 * left(guide) as f64 / whole.max(1) as f64;
        let mut sum = 0;
        let last = guide.parts[guide.first_behind(low)..].iter().find(|part| {
            sum += part.portion.bytes;
            sum as f64 >= enough
        })?;
        let most = enough * (SLICE_FILES_MAX / files) as f64;
        if sum as f64 <= most {
            return last.range.high.clone();
        }
        let before = sum - last.portion.bytes;
        let mut range = last.range.intersect(&Range { low: low.clone(), high: None });
        let is_long = |range: &Range| {
            last.portion_in(range).is_some_and(|portion| (before + portion.bytes) as f64 > enough)
        };
        while is_long(&range)
            && let Some(middle) = last.fragment.middle(&range)
        {
            range.high = Some(middle);
        }
        range.high
    }

    /// Whether an outcome may come in: what was merged with runs may not if something has broken in meanwhile.
    pub(super) fn takes(&self, made: &Made<F>) -> bool {
        made.slice.taken.is_empty() || made.slice.breaks == self.breaks
    }

    /// The edit that takes a range out of all runs.
    pub(super) fn cut(&self, range: &Range) -> Edit<F> {
        let below = self.residents().next().map_or(0, |run| run.below);
        let has_some = |run: &&Arc<Run<F>>| !run.is_resident && !run.overlapping(range).is_empty();
        let taken = self.runs.iter().filter(has_some).map(|run| self.taken(run.id, range)).collect();
        Edit::Cut(Cut { range: range.clone(), below, taken })
    }

    /// Whether no run has anything where these parts lie.
    fn has_nothing_at(&self, parts: &[Part<F>]) -> bool {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
        let hull = Range { low: first.range.low.clone(), high: last.range.high.clone() };
        self.runs.iter().all(|run| run.overlapping(&hull).is_empty())
    }

    /// Fits what a job made to the runs as they are.
    pub(super) fn settle(&self, made: Made<F>) -> Result<Edit<F>> {
        let Made { slice, parts } = made;
        let is_ingest = slice.is_ingest();
        let Slice { taken, flushed_bytes, resides, below, range, into, level, goes_on, .. } = slice;
        if resides.is_some() {
            return Ok(Edit::Reside(Reside { below, parts }));
        }
        if let Some((run, _)) = taken.iter().find(|(run, _)| self.run(*run).is_none()) {
            return Err(Error::invalid(format!("run {} went while it was merged", run.0)));
        }
        // Resident runs are not the manifest's business: they let go of what files have.
        let on_disk = taken.iter().filter(|(run, _)| self.run(*run).is_some_and(|run| !run.is_resident));
        let taken: Vec<Taken> = on_disk.map(|(run, range)| self.taken(*run, range)).collect();
        let below = if is_ingest { self.residents().next().map_or(0, |run| run.below) } else { below };
        let (into, level) = match self.last_on_disk() {
            // What has a range of its own needs no run of its own.
            Some(last) if is_ingest && self.has_nothing_at(&parts) => (last.id, last.level),
            _ => (into.unwrap_or(NodeId(self.next_id)), level),
        };
        let replace = Replace { flushed_bytes, is_ingest, below, range, taken, into, level, parts, goes_on };
        Ok(Edit::Replace(replace))
    }
}
