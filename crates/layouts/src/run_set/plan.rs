//! Planning: what the policy wants, as one bounded merge. Pure.

mod evictions;
mod round;
mod slices;
mod sound;
mod within;

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::combine::Depth;
use forebay_base::{Bound, Range};
use forebay_buffer_tree::{self as tree, NodeId};

use self::evictions::Onto;
pub(super) use self::sound::lie_inside;
use super::job::BOUND_BYTES_MIN;
use super::key_ranges;
use super::policy::Policy;
use super::rules::{Flush, Step};
use super::set::{Edit, Part, Run, RunSet};
use crate::files::ResidentBudget;

/// What some runs have of some ranges, to become parts of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Slice {
    /// Newest first.
    pub(super) taken: Vec<(NodeId, Range)>,
    pub(super) act: Act,
    /// Where the result lies.
    pub(super) range: Range,
    pub(super) level: u32,
    /// Nothing older has anything of the range.
    pub(super) is_bottom: bool,
    /// See [`RunSet::breaks`]: of the set that it was planned on.
    pub(super) breaks: u64,
}

/// What is done with what is taken.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Act {
    /// Records come by themselves, from no run and no write buffer.
    #[default]
    Ingest,
    /// A write buffer comes with it, and makes a new run.
    Flush(Buffer),
    /// A write buffer stays in memory, of these ranges.
    KeepInMemory { buffer: Buffer, ranges: Vec<Range> },
    /// Resident runs go to disk, in which is all that log segments below this brought.
    WriteOut { below: u64 },
    /// It is merged into a run, or a new one; `goes_on` where more slices of that are to come.
    Merge { into: Option<NodeId>, goes_on: bool },
    /// What the other runs have is appended to the parts of one; `goes_on` as of a merge.
    Append { into: NodeId, goes_on: bool },
    /// A key range goes to the oldest run of files, or a new one: all that log segments below this brought of it.
    Evict {
        /// The whole of it, of which this may be a part. Nobody else may touch any of it meanwhile.
        key_range: Range,
        into: Option<NodeId>,
        /// The tree there that it is appended to, which nobody else may append to meanwhile.
        tree: Option<u64>,
        /// 0 where none of it was in memory.
        below: u64,
    },
    /// What a run has of a range is written anew where it is.
    Rewrite { run: NodeId },
}

/// A write buffer that comes into the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Buffer {
    /// How much it has; at least 1.
    pub(super) bytes: u64,
    /// The log segment behind the one that mirrors it.
    pub(super) below: u64,
}

impl Buffer {
    fn of(segment: u64, bytes: u64) -> Self {
        Self { bytes: bytes.max(1), below: segment + 1 }
    }
}

impl Act {
    /// The write buffer that comes with it, if one does.
    pub(super) fn buffer(&self) -> Option<Buffer> {
        match self {
            Self::Flush(buffer) | Self::KeepInMemory { buffer, .. } => Some(*buffer),
            _ => None,
        }
    }

    /// The log segment behind those of which all that is in the range comes to files with it; 0 where that is none.
    pub(super) fn below(&self) -> u64 {
        match self {
            Self::Flush(Buffer { below, .. }) | Self::KeepInMemory { buffer: Buffer { below, .. }, .. } => {
                *below
            }
            Self::WriteOut { below } | Self::Evict { below, .. } => *below,
            Self::Ingest | Self::Merge { .. } | Self::Append { .. } | Self::Rewrite { .. } => 0,
        }
    }

    /// The run that it goes to, where that is there.
    pub(super) fn target(&self) -> Option<NodeId> {
        match self {
            Self::Merge { into, .. } | Self::Evict { into, .. } => *into,
            Self::Append { into, .. } => Some(*into),
            Self::Rewrite { run } => Some(*run),
            Self::Ingest | Self::Flush(_) | Self::KeepInMemory { .. } | Self::WriteOut { .. } => None,
        }
    }

    /// The key range that is evicted, whole.
    pub(super) fn key_range(&self) -> Option<&Range> {
        match self {
            Self::Evict { key_range, .. } => Some(key_range),
            _ => None,
        }
    }

    /// Whether what other runs have is appended to trees of the run that it goes to.
    pub(super) fn appends(&self) -> bool {
        matches!(self, Self::Append { .. } | Self::Evict { tree: Some(_), .. })
    }

    /// Whether more slices are to come.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self, Self::Merge { goes_on: true, .. } | Self::Append { goes_on: true, .. })
    }

    /// A slice of a merge that is appended to the run it goes to, or merged with it.
    pub(super) fn of_merge(into: Option<NodeId>, appends: bool, goes_on: bool) -> Self {
        match into.filter(|_| appends) {
            Some(into) => Self::Append { into, goes_on },
            None => Self::Merge { into, goes_on },
        }
    }
}

/// What to do next.
pub(super) enum Next<F> {
    /// Moves no data.
    Edit(Edit<F>),
    Merge(Slice),
}

/// What a merge or a flush made, to be rebased on the runs as they are by then.
#[derive(Clone, Debug)]
pub(crate) struct Made<F> {
    pub(super) slice: Slice,
    pub(super) parts: Vec<Part<F>>,
    /// Fragments among them that were there before, in these versions.
    pub(super) kept: BTreeSet<(u64, u64)>,
}

impl<F> Made<F> {
    /// Of parts that are all new.
    pub(super) fn new(slice: Slice, parts: Vec<Part<F>>) -> Self {
        Self { slice, parts, kept: BTreeSet::new() }
    }
}

impl Slice {
    /// How far records of one key are merged.
    pub(super) fn depth(&self) -> Depth {
        if self.is_bottom { Depth::Bottom } else { Depth::Partial }
    }

    /// Whether long values of a write buffer may stay in its segment: not where records stay in memory with them.
    pub(super) fn leaves_values(&self) -> bool {
        debug_assert!(self.act.buffer().is_some(), "only a write buffer has a segment");
        !matches!(self.act, Act::KeepInMemory { .. })
    }

    /// What nobody else may touch meanwhile: runs, or a key range.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        let nodes: BTreeSet<NodeId> = match &self.act {
            Act::Evict { key_range, tree, .. } => {
                let tree = tree.map(key_ranges::node_of_tree);
                [key_ranges::node_of(key_range)].into_iter().chain(tree).collect()
            }
            act => self.taken.iter().map(|(run, _)| *run).chain(act.target()).collect(),
        };
        nodes.into_iter().collect()
    }
}

impl<F: tree::Fragment> RunSet<F> {
    /// What to do next, leaving busy runs alone: a merge that goes on, or what the policy wants; of both the one
    /// higher up, where runs come faster.
    pub(super) fn next_work(&self, busy: &BTreeSet<NodeId>, room: ResidentBudget) -> Option<Next<F>> {
        let next = self.find_work(busy, room)?;
        debug_assert_eq!(self.check_next(&next, busy), Ok(()), "what is planned can be done");
        Some(next)
    }

    fn find_work(&self, busy: &BTreeSet<NodeId>, room: ResidentBudget) -> Option<Next<F>> {
        if !self.policy.keeps_new_records_resident() || !room.resides {
            if let Some(slice) = self.write_out(busy) {
                return Some(Next::Merge(slice));
            }
            if self.residents().any(|run| busy.contains(&run.id)) {
                // They are on their way as a whole.
                return None;
            }
        }
        let step = self.policy.next(self, room, |id| self.is_free(id, busy));
        let begun = self.next_underway(busy);
        let is_higher = |step: &Step| begun.as_ref().is_none_or(|slice| self.level_of(step) < slice.level);
        match step.filter(is_higher) {
            Some(step) => self.plan(step),
            None => begun.map(Next::Merge),
        }
    }

    /// How a write buffer of this many bytes comes in, which a log segment mirrors: whether it stays in memory, and
    /// with which of the newest runs it is merged.
    pub(super) fn flush(
        &self,
        segment: u64,
        bytes: u64,
        busy: &BTreeSet<NodeId>,
        room: ResidentBudget,
    ) -> Slice {
        let buffer = Buffer::of(segment, bytes);
        let residents = self.residents_end();
        let mut flush = self.policy.flush(self, bytes, residents);
        debug_assert!(
            (residents..=self.runs.len()).contains(&flush.runs),
            "resident runs go to disk with a newer write buffer, and no others than there are"
        );
        // A key range that is being merged takes something of each.
        let is_evicting = self.policy.merges_key_ranges() && !busy.is_empty();
        let mut taken = self.runs[..flush.runs].iter();
        let is_free = taken.all(|run| !is_evicting && self.is_free(run.id, busy));
        if (self.policy.keeps_new_records_resident() && room.resides) || (!is_free && residents > 0) {
            let act = Act::KeepInMemory { buffer, ranges: vec![Range::all()] };
            return Slice { act, breaks: self.breaks.count(), ..Slice::default() };
        }
        if !is_free {
            flush = Flush { runs: 0, level: 0 };
        }
        let slice = self.front(flush, Act::Flush(buffer));
        debug_assert_eq!(self.check_plan(&slice, busy), Ok(()), "a write buffer can come in so");
        slice
    }

    /// What of a write buffer that was flushed before a crash stays in memory: the ranges of which files lack it.
    pub(super) fn reload(&self, segment: u64, bytes: u64) -> Option<Slice> {
        let ranges = self.marks.lacking(segment);
        let is_wanted = !ranges.is_empty();
        let act = Act::KeepInMemory { buffer: Buffer::of(segment, bytes), ranges };
        is_wanted.then_some(Slice { act, ..Slice::default() })
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
        is_free.then(|| self.front(Flush { runs, level: 0 }, Act::WriteOut { below }))
    }

    /// The newest runs, whole.
    fn front(&self, Flush { runs, level }: Flush, act: Act) -> Slice {
        let (inputs, older) = self.runs.split_at(runs);
        debug_assert!(older.first().is_none_or(|next| level <= next.level), "levels never fall");
        let taken = inputs.iter().map(|run| (run.id, Range::all())).collect();
        let (is_bottom, breaks) = (older.is_empty(), self.breaks.count());
        Slice { taken, act, level, is_bottom, breaks, ..Slice::default() }
    }

    /// Where files end that a slice makes, beside where they are long enough: where those of the oldest run of the level
    /// do that it goes to, if each stands for a stack.
    pub(super) fn file_ends(&self, slice: &Slice) -> Vec<Bound> {
        let run = self.runs.iter().rfind(|run| run.level == slice.level && !run.is_resident);
        let divides = self.policy.divides_among_files() && matches!(slice.act, Act::Merge { .. });
        // What it is itself merged with has no stacks any more: they would only become shorter.
        let stays = |run: &&Arc<Run<F>>| divides && slice.taken.iter().all(|(taken, _)| *taken != run.id);
        let Some(run) = run.filter(stays) else { return Vec::new() };
        let lows = run.parts[run.overlapping(&slice.range)].iter().map(|part| part.range.low.clone());
        lows.filter(|low| *low > slice.range.low).collect()
    }

    /// How much a file has at least that ends there.
    pub(super) fn bound_bytes_min(&self) -> u64 {
        (self.file_bytes / 8).max(BOUND_BYTES_MIN)
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
        let slice = self.slice(&merge.inputs, Some(merge.into), merge.level);
        debug_assert!(slice.is_some(), "a merge that is under way has something left");
        slice
    }

    /// The next step towards one run.
    pub(super) fn next_full_compaction(&self, busy: &BTreeSet<NodeId>) -> Option<Slice> {
        let slice = self.find_compaction(busy)?;
        debug_assert_eq!(self.check_plan(&slice, busy), Ok(()), "what is planned can be done");
        Some(slice)
    }

    fn find_compaction(&self, busy: &BTreeSet<NodeId>) -> Option<Slice> {
        if !self.underway.is_empty() {
            return self.next_underway(busy);
        }
        if self.policy.merges_key_ranges() {
            match self.policy.next_key_range(self, &Bound::least(), |id| self.is_free(id, busy)) {
                Some(range) => return Some(self.evict(range, Onto::Nothing)),
                // Whole runs have something of a key range that somebody is at work on, or that is set aside: merging
                // them would end there, and have made a new oldest run on the way, into which all ranges were to go
                // once more.
                None if !busy.is_empty() => return None,
                None => {}
            }
        }
        if self.residents().next().is_some() {
            return None;
        }
        let last = self.runs.last()?;
        let is_done = self.is_one_run();
        if is_done && !busy.contains(&last.id) {
            let sparse = last.parts.iter().find(|part| Policy::is_sparse(part));
            return sparse.map(|part| self.in_place(last, &part.range));
        }
        let inputs: Vec<NodeId> = self.runs.iter().map(|run| run.id).collect();
        if is_done || inputs.iter().any(|id| busy.contains(id)) {
            return None;
        }
        self.slice(&inputs, None, last.level)
    }

    /// Whether nothing is left to be merged.
    fn is_one_run(&self) -> bool {
        let [runs @ .., last] = &self.runs[..] else { return true };
        runs.is_empty() && last.parts.iter().all(|part| part.is_bottom)
    }

    fn level_of(&self, step: &Step) -> u32 {
        match step {
            Step::Merge { level, .. } | Step::Sink { level, .. } | Step::Relabel { level, .. } => *level,
            Step::Push { run, .. } => self.run(*run).map_or(0, |run| run.level + 1),
            Step::Rewrite { run, .. } => self.run(*run).map_or(0, |run| run.level),
            Step::Evict(_) => 0,
        }
    }

    fn plan(&self, step: Step) -> Option<Next<F>> {
        match step {
            Step::Merge { inputs, into, level } => self.slice(&inputs, into, level).map(Next::Merge),
            Step::Sink { inputs, range, into, level } => {
                let is_bottom = self.is_bottom(&inputs, &range);
                let taken = inputs.into_iter().map(|run| (run, range.clone())).collect();
                let act = Act::Merge { into, goes_on: false };
                Some(Next::Merge(Slice { taken, act, range, level, is_bottom, breaks: self.breaks.count() }))
            }
            Step::Relabel { run, level } => Some(Next::Edit(Edit::Relabel { run, level })),
            Step::Push { run, part } => self.push(self.run(run)?, part),
            Step::Rewrite { run, range } => Some(Next::Merge(self.in_place(self.run(run)?, &range))),
            Step::Evict(range) => Some(Next::Merge(self.evict(range, Onto::Trees))),
        }
    }
}
