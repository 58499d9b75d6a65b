//! How much of a merge is done in one go, and where that begins and ends.

use std::sync::Arc;

use forebay_base::{Bound, Range};
use forebay_buffer_tree::{Fragment, NodeId};

use super::super::set::{Edit, Part, Replace, Run, RunSet, Taken, total};
use super::{Act, Next, Slice};

/// A slice of a merge is about this many files long.
pub(super) const SLICE_FILES: u64 = 4;
/// Where it would be longer than that, because so many runs have long parts, it ends within one.
const SLICE_FILES_MAX: u64 = 16;

impl<F: Fragment> RunSet<F> {
    /// What a run has of a range, to be written anew where it is.
    pub(in super::super) fn in_place(&self, run: &Run<F>, range: &Range) -> Slice {
        debug_assert!(!run.is_resident && !run.overlapping(range).is_empty(), "files have something there");
        Slice {
            taken: vec![(run.id, range.clone())],
            range: range.clone(),
            act: Act::Rewrite { run: run.id },
            level: run.level,
            is_bottom: self.is_bottom(&[run.id], range),
            breaks: self.breaks.count(),
        }
    }

    /// A part goes down: as it is, where nothing of the next level is in its range, else merged with what is.
    pub(in super::super) fn push(&self, run: &Run<F>, number: usize) -> Option<Next<F>> {
        let part = run.parts.get(number)?;
        let level = run.level + 1;
        let next = self.runs.iter().find(|other| other.level == level);
        let overlapping = next.map_or(&[][..], |next| &next.parts[next.overlapping(&part.range)]);
        let is_moved = overlapping.is_empty() && !Self::has_file_elsewhere(run, part);
        if is_moved {
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
        }
        let range = overlapping.iter().fold(part.range.clone(), |range, other| Range {
            low: range.low.min(other.range.low.clone()),
            high: range.high.zip(other.range.high.clone()).map(|(one, other)| one.max(other)),
        });
        let into = next.map(|next| next.id);
        let taken: Vec<_> =
            [(run.id, part.range.clone())].into_iter().chain(into.map(|id| (id, range.clone()))).collect();
        let runs: Vec<NodeId> = taken.iter().map(|(run, _)| *run).collect();
        let is_bottom = self.is_bottom(&runs, &range);
        let act = Act::of_merge(into, self.policy.grows(level), false);
        Some(Next::Merge(Slice { taken, act, range, level, is_bottom, breaks: self.breaks.count() }))
    }

    /// Whether another part of a run has the same file as this one. Were it a tree, each would be appended to in a run of its
    /// own by a job that knows nothing of the other one's, if not under this policy, then under the next.
    fn has_file_elsewhere(run: &Run<F>, part: &Part<F>) -> bool {
        let has_file = |other: &&Arc<Part<F>>| other.fragment.id() == part.fragment.id();
        run.parts.iter().filter(has_file).nth(1).is_some()
    }

    /// The first slice of what these runs still have to be merged; `into` may be one of them. It ends where a part of
    /// the largest run ends, so that few files are cut.
    pub(super) fn slice(&self, inputs: &[NodeId], into: Option<NodeId>, level: u32) -> Option<Slice> {
        let runs: Vec<&Run<F>> = inputs.iter().filter_map(|&id| self.run(id)).map(|run| &**run).collect();
        let others = || runs.iter().filter(|run| Some(run.id) != into);
        let mut low = others().map(|run| &run.parts[0].range.low).min()?.clone();
        let target = runs.iter().find(|run| Some(run.id) == into);
        if let Some(part) = target.and_then(|run| run.parts.get(run.first_behind(&low))) {
            low = low.min(part.range.low.clone());
        }
        let appends = target.is_some() && self.policy.grows(level);
        let mut high = match target.filter(|_| appends) {
            Some(target) => self.appended_end(&others().copied().collect::<Vec<_>>(), target, &low),
            None => self.slice_end(&runs, &Range { low: low.clone(), high: None }, SLICE_FILES),
        };
        if let (Some(target), Some(end)) = (target, high.as_ref())
            && let Some(part) =
                target.parts.get(target.first_behind(end)).filter(|part| part.range.low < *end)
        {
            high = part.range.high.clone();
        }
        let is_cut = |part: &Part<F>| high.as_ref().is_some_and(|end| part.range.low < *end);
        debug_assert!(
            high.as_ref().zip(target).is_none_or(|(end, target)| {
                target.parts.get(target.first_behind(end)).is_none_or(|part| !is_cut(part))
            }),
            "a slice ends within no part of the run that it goes to"
        );
        let goes_on =
            high.as_ref().is_some_and(|high| others().any(|run| run.first_behind(high) < run.parts.len()));
        let range = Range { low, high: high.filter(|_| goes_on) };
        let taken = inputs.iter().map(|&id| (id, range.clone())).collect();
        let is_bottom = self.is_bottom(inputs, &range);
        let act = Act::of_merge(into, appends, goes_on);
        Some(Slice { taken, act, range, level, is_bottom, breaks: self.breaks.count() })
    }

    /// Where there is enough to be appended for one go between `low` and this bound. What is there already counts for
    /// nothing: it stays.
    fn appended_end(&self, inputs: &[&Run<F>], target: &Run<F>, low: &Bound) -> Option<Bound> {
        let end = self.slice_end(inputs, &Range { low: low.clone(), high: None }, SLICE_FILES);
        let (mut low, mut bytes) = (low.clone(), 0);
        for part in &target.parts[target.first_behind(&low)..] {
            let high = part.range.high.as_ref()?;
            let range = Range { low, high: Some(high.clone()) };
            let parts = inputs.iter().flat_map(|run| &run.parts[run.overlapping(&range)]);
            let here = parts.filter_map(|part| part.portion_in(&range)).map(|portion| portion.bytes);
            bytes = total(here.chain([bytes]));
            if bytes >= SLICE_FILES.saturating_mul(self.file_bytes)
                || end.as_ref().is_some_and(|end| end <= high)
            {
                return Some(high.clone());
            }
            low = high.clone();
        }
        end
    }

    /// Where about this many files' worth lies between the beginning of a range and this bound; `None` for its end.
    pub(in super::super) fn slice_end(&self, runs: &[&Run<F>], within: &Range, files: u64) -> Option<Bound> {
        let left =
            |run: &Run<F>| total(run.parts[run.overlapping(within)].iter().map(|part| part.portion.bytes));
        let whole = total(runs.iter().map(|run| left(run)));
        let guide = runs.iter().max_by_key(|run| left(run))?;
        // The others are taken to lie as the largest does.
        let enough = files as f64 * self.file_bytes as f64 * left(guide) as f64 / whole.max(1) as f64;
        let mut sum = 0_u64;
        let last = guide.parts[guide.overlapping(within)].iter().find(|part| {
            sum = sum.saturating_add(part.portion.bytes);
            sum as f64 >= enough
        })?;
        let most = enough * (SLICE_FILES_MAX / files) as f64;
        if sum as f64 <= most {
            return last.range.high.clone();
        }
        let before = sum - last.portion.bytes;
        let mut range = last.range.intersect(within);
        let is_long = |range: &Range| {
            last.portion_in(range).is_some_and(|portion| before.saturating_add(portion.bytes) as f64 > enough)
        };
        while is_long(&range)
            && let Some(middle) = last.fragment.middle(&range)
        {
            range.high = Some(middle);
        }
        debug_assert!(range.high.as_ref().is_none_or(|high| *high > within.low), "a slice comes on");
        range.high
    }
}
