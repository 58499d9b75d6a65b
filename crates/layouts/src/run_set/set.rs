//! The value: sorted runs, newest first, and the edits that make one value of another.
//!
//! A *run* is sorted and has a key at most once. It is made of *parts*, side by side: each stands for the records of
//! a fragment inside a range. A merge takes what several runs have of a range and puts what is left of it into one
//! run. So a large merge is done in slices, one edit each, and files are given up as it goes on.
//!
//! A run may be *resident*: its fragments are in memory, made of one log segment, which is kept until nothing is left
//! of the run. The manifest knows nothing of it: after a crash the segment is read again, but for the ranges of which
//! files have all by then ([marks](super::marks)).
//!
//! **Invariant:** of two runs, the one in front has the newer record of any key that both have. Levels never fall from
//! front to back. ([`check`](super::check) says so; `apply` refuses what would break it.)

use std::sync::Arc;

use forebay_base::merge::Direction;
use forebay_base::{Bound, Range, Result};
use forebay_buffer_tree::{Fragment, NodeId, Portion};

use super::breaks::Breaks;
use super::marks::Marks;
use super::policy::Policy;

/// What a run has of a range.
#[derive(Clone, PartialEq, Debug)]
pub struct Part<F> {
    /// No record lies outside.
    pub range: Range,
    /// Where they are; it may have more than the range.
    pub fragment: F,
    /// About how much that is.
    pub portion: Portion,
    /// It was merged with everything older: there are no tombstones and no operands.
    pub is_bottom: bool,
}

/// Parts side by side, in order.
#[derive(Clone, Debug)]
pub struct Run<F> {
    pub(super) id: NodeId,
    /// What the policy counts it to.
    pub(super) level: u32,
    /// It is in memory alone.
    pub(super) is_resident: bool,
    /// Where resident runs may lie in front and behind: it is newer than what log segments below this brought.
    pub(super) below: u64,
    pub(super) parts: Vec<Arc<Part<F>>>,
}

/// A merge of whole runs of which slices are still to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Underway {
    /// What is left to be merged, newest first; `into` may be one of them.
    pub(super) inputs: Vec<NodeId>,
    pub(super) into: NodeId,
    pub(super) level: u32,
}

/// A table's runs.
#[derive(Clone, Debug)]
pub struct RunSet<F> {
    pub(super) policy: Policy,
    /// A file ends once it has this many bytes.
    pub(super) file_bytes: u64,
    /// About how long the write buffers are that bring most, with values that they leave in the log.
    pub(super) unit_bytes: u64,
    /// Newest first.
    pub(super) runs: Vec<Arc<Run<F>>>,
    pub(super) underway: Vec<Underway>,
    pub(super) marks: Marks,
    pub(super) next_id: u64,
    /// What came between a job's plan and its end.
    pub(super) breaks: Breaks,
}

impl<F> Run<F> {
    /// The part that a record would be in.
    #[inline]
    pub(super) fn find(&self, prefix: u64, key: &[u8]) -> Option<&Part<F>> {
        let behind = self.parts.partition_point(|part| part.range.low.place(prefix, key).is_ge());
        let part = self.parts.get(behind.checked_sub(1)?)?;
        part.range.is_below_high(prefix, key).then_some(&**part)
    }

    /// The number of the first part that ends behind a bound.
    pub(super) fn first_behind(&self, bound: &Bound) -> usize {
        self.parts.partition_point(|part| part.range.high.as_ref().is_some_and(|high| high <= bound))
    }

    /// The numbers of the parts that have something of a range.
    pub(crate) fn overlapping(&self, range: &Range) -> std::ops::Range<usize> {
        let first = self.first_behind(&range.low);
        let last = match &range.high {
            Some(high) => self.parts.partition_point(|part| part.range.low < *high),
            None => self.parts.len(),
        };
        first..last.max(first)
    }

    pub(super) fn id(&self) -> NodeId {
        self.id
    }

    pub(super) fn level(&self) -> u32 {
        self.level
    }

    pub(super) fn is_resident(&self) -> bool {
        self.is_resident
    }

    pub(crate) fn parts(&self) -> &[Arc<Part<F>>] {
        &self.parts
    }

    pub(super) fn portion(&self) -> Portion {
        self.parts.iter().fold(Portion::default(), |sum, part| sum.saturating_add(part.portion))
    }

    pub(crate) fn bytes(&self) -> u64 {
        total(self.parts.iter().map(|part| part.portion.bytes))
    }
}

/// All together. What a manifest says of parts may be more than there can be.
pub(super) fn total(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

impl<F> RunSet<F> {
    /// No runs yet.
    pub fn new(policy: Policy, file_bytes: u64) -> Self {
        Self {
            policy,
            file_bytes,
            unit_bytes: 0,
            runs: Vec::new(),
            underway: Vec::new(),
            marks: Marks::default(),
            next_id: 1,
            breaks: Breaks::default(),
        }
    }

    /// The same runs under another policy. Their files have all that log segments below `below` brought, if nothing is
    /// resident.
    pub(crate) fn under(&self, policy: Policy, below: u64) -> Self
    where
        F: Clone,
    {
        let mut set = Self { policy, ..self.clone() };
        if set.residents().next().is_none() {
            set.mark_all(below);
        }
        set
    }

    /// The same runs, of which new files are this long.
    pub(crate) fn with_file_bytes(&self, file_bytes: u64) -> Self
    where
        F: Clone,
    {
        Self { file_bytes, ..self.clone() }
    }

    /// Adds a run behind all others.
    pub(crate) fn push_run(&mut self, level: u32, parts: Vec<Arc<Part<F>>>) {
        debug_assert!(self.runs.last().is_none_or(|newer| newer.level <= level), "levels never fall");
        let id = NodeId(self.next_id);
        self.next_id += 1;
        self.unit_bytes = self.unit_bytes.max(self.file_bytes);
        self.runs.push(Arc::new(Run { id, level, is_resident: false, below: 0, parts }));
    }

    /// Notes that its files have all that log segments below this one brought.
    pub(crate) fn mark_all(&mut self, below: u64) {
        self.marks.raise(&Range::all(), below);
    }

    /// The resident runs, newest first.
    pub(super) fn residents(&self) -> impl DoubleEndedIterator<Item = &Arc<Run<F>>> {
        self.runs.iter().filter(|run| run.is_resident)
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        total(self.residents().map(|run| run.bytes()))
    }

    /// The oldest run of files.
    pub(super) fn last_on_disk(&self) -> Option<&Arc<Run<F>>> {
        self.runs.iter().rfind(|run| !run.is_resident)
    }

    /// The runs, newest first.
    pub fn runs(&self) -> &[Arc<Run<F>>] {
        &self.runs
    }

    pub(super) fn run(&self, id: NodeId) -> Option<&Arc<Run<F>>> {
        self.runs.iter().find(|run| run.id == id)
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &Arc<Part<F>>> {
        self.runs.iter().flat_map(|run| &run.parts)
    }

    /// The runs of each level, top first.
    pub(super) fn levels(&self) -> impl Iterator<Item = &[Arc<Run<F>>]> {
        self.runs.chunk_by(|left, right| left.level == right.level)
    }

    /// The same with other handles to fragments.
    pub fn map<G>(&self, mut change: impl FnMut(&F) -> Result<G>) -> Result<RunSet<G>> {
        let mut runs = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let part = |part: &Arc<Part<F>>| {
                let Part { range, portion, is_bottom, .. } = &**part;
                let fragment = change(&part.fragment)?;
                Ok(Arc::new(Part {
                    range: range.clone(),
                    fragment,
                    portion: *portion,
                    is_bottom: *is_bottom,
                }))
            };
            let parts = run.parts.iter().map(part).collect::<Result<_>>()?;
            let Run { id, level, is_resident, below, .. } = **run;
            runs.push(Arc::new(Run { id, level, is_resident, below, parts }));
        }
        Ok(RunSet {
            policy: self.policy,
            file_bytes: self.file_bytes,
            unit_bytes: self.unit_bytes,
            runs,
            underway: self.underway.clone(),
            marks: self.marks.clone(),
            next_id: self.next_id,
            breaks: self.breaks.clone(),
        })
    }

    /// Whether what is older than the last of these runs, or none of them, has nothing of a range.
    pub(super) fn is_bottom(&self, inputs: &[NodeId], range: &Range) -> bool {
        let older = match self.runs.iter().rposition(|run| inputs.contains(&run.id)) {
            Some(last) => &self.runs[last + 1..],
            None => &self.runs[..],
        };
        older.iter().all(|run| run.overlapping(range).is_empty())
    }

    /// What of a range to walk next, from `from` on or just below it: where no run has more than one part. `None` when
    /// nothing is left.
    pub(super) fn stretch(
        &self,
        from: Option<&Bound>,
        within: &Range,
        direction: Direction,
    ) -> Option<Range> {
        let range = match direction {
            Direction::Forward => {
                let low = from.unwrap_or(&within.low).clone();
                let end = |run: &Arc<Run<F>>| {
                    let part = run.parts.get(run.first_behind(&low))?;
                    if part.range.low <= low { part.range.high.clone() } else { Some(part.range.low.clone()) }
                };
                let high = self.runs.iter().filter_map(end).chain(within.high.clone()).min();
                Range { low, high }
            }
            Direction::Backward => {
                let high = from;
                let start = |run: &Arc<Run<F>>| {
                    let below =
                        run.parts.partition_point(|part| high.is_none_or(|high| part.range.low < *high));
                    let part = run.parts.get(below.checked_sub(1)?)?;
                    let end = part.range.high.as_ref().filter(|end| high.is_none_or(|high| *end < high));
                    Some(end.unwrap_or(&part.range.low).clone())
                };
                let low = self.runs.iter().filter_map(start).chain([within.low.clone()]).max()?;
                Range { low, high: high.cloned() }
            }
        };
        debug_assert!(
            self.runs.iter().all(|run| run.overlapping(&range).len() <= 1),
            "no run has more than one part of a stretch"
        );
        (!range.is_empty()).then_some(range)
    }
}

/// One change of a run set.
#[derive(Clone, PartialEq, Debug)]
pub enum Edit<F> {
    /// What some runs had of some ranges, and perhaps a write buffer, became parts of one run.
    Replace(Replace<F>),
    /// A write buffer became a resident run.
    Reside(Reside<F>),
    /// All that runs had of a range is gone.
    RangeDrop(RangeDrop),
    /// A run goes to another level as it is.
    Relabel {
        /// The run.
        run: NodeId,
        /// Where to.
        level: u32,
    },
}

/// See [`Edit::Replace`].
#[derive(Clone, PartialEq, Debug)]
pub struct Replace<F> {
    /// Bytes of the write buffer; 0 where there is none.
    pub flushed_bytes: u64,
    /// It came by no write buffer and from no run.
    pub is_ingest: bool,
    /// All that log segments below this brought of `range` is in files from now on; 0 where that is as before. Of an
    /// ingest: what they brought is older.
    pub below: u64,
    /// Where this happens.
    pub range: Range,
    /// What is taken from runs of files, newest first.
    pub taken: Vec<Taken>,
    /// The run that the new parts belong to. Where it is not there, it is made right behind the oldest of those taken
    /// from, or in front of all that are on disk; of an ingest, in front of all.
    pub into: NodeId,
    /// Its level.
    pub level: u32,
    /// What there is now, in order.
    pub parts: Vec<Part<F>>,
    /// More slices of the same merge are to come.
    pub goes_on: bool,
}

/// See [`Edit::Reside`]. No manifest has such an edit.
#[derive(Clone, PartialEq, Debug)]
pub struct Reside<F> {
    /// The log segment behind the one that the write buffer mirrors.
    pub below: u64,
    /// What there is, in order.
    pub parts: Vec<Part<F>>,
}

/// See [`Edit::RangeDrop`].
#[derive(Clone, PartialEq, Debug)]
pub struct RangeDrop {
    /// What is gone.
    pub range: Range,
    /// And with it what log segments below this brought of it; 0 where files had all.
    pub below: u64,
    /// What is taken from runs of files.
    pub taken: Vec<Taken>,
}

/// What is taken from a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The run.
    pub run: NodeId,
    /// All that it has of this range.
    pub range: Range,
    /// What stays of the first part, below the range.
    pub below: Option<Portion>,
    /// What stays of the last part, behind the range.
    pub above: Option<Portion>,
}

impl<F: Fragment> RunSet<F> {
    /// Takes off a run what lies in a range: what stays of the parts at both ends.
    pub(super) fn taken(&self, run: NodeId, range: &Range) -> Taken {
        let mut taken = Taken { run, range: range.clone(), below: None, above: None };
        let Some(entry) = self.run(run) else { return taken };
        let parts = &entry.parts[entry.overlapping(range)];
        if let Some(first) = parts.first().filter(|first| first.range.low < range.low) {
            taken.below = first.portion_in(&Range { low: Bound::least(), high: Some(range.low.clone()) });
        }
        if let (Some(last), Some(high)) = (parts.last(), &range.high)
            && last.range.high.as_ref().is_none_or(|end| end > high)
        {
            taken.above = last.portion_in(&Range { low: high.clone(), high: None });
        }
        taken
    }
}

impl<F: Fragment> Run<F> {
    /// Its bytes, and those of values that stand elsewhere.
    pub(super) fn whole_bytes(&self) -> u64 {
        total(self.parts.iter().map(|part| part.whole_bytes()))
    }
}

impl<F: Fragment> Part<F> {
    /// As of a run.
    pub(super) fn whole_bytes(&self) -> u64 {
        self.portion.bytes.saturating_add(self.fragment.pointed_bytes(self.portion))
    }

    /// About how much of it lies in a range; `None` where that is certainly nothing.
    pub(crate) fn portion_in(&self, range: &Range) -> Option<Portion> {
        let below = |at: &Bound| self.fragment.share_below(&self.range, at);
        let low = if range.low <= self.range.low { 0.0 } else { below(&range.low) };
        let ends_within = match (&range.high, &self.range.high) {
            (None, _) => false,
            (Some(high), Some(end)) => high < end,
            (Some(_), None) => true,
        };
        let high = range.high.as_ref().filter(|_| ends_within).map_or(1.0, below);
        debug_assert!(
            (0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high),
            "a range has no more of a part than there is"
        );
        let of = |whole: u64| (whole as f64 * (high - low).max(0.0)).round() as u64;
        // Shares between are estimates, and say nothing for certain.
        (high > 0.0 && low < 1.0)
            .then(|| Portion { bytes: of(self.portion.bytes), records: of(self.portion.records) })
    }
}
