//! An inter-level merge (Jungle paper, section 3): what upper runs have of a range is appended to the trees of the run
//! below, one after the other. Where an append would leave more behind than may be, the tree is written anew with it
//! instead. That is its in-place merge, and the batch is written once.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::merge::{Extent, Merge};
use forebay_base::record::Shape;
use forebay_base::{Range, Result};
use forebay_buffer_tree::{Expected, Portion};
use forebay_store::Cause;

use super::job::{MergeJob, RunCursor};
use super::plan::{Made, Slice};
use super::policy::Policy;
use super::set::{Part, Run, RunSet};
use super::writer::Writers;
use crate::files::Means;
use crate::{DataFile, Job, Outcome, Plan, Rule};

/// See the module.
pub(super) struct GrowJob {
    policy: Policy,
    file_bytes: u64,
    means: Means,
    rule: Rule,
    /// Newest first, with what is taken from each.
    uppers: Vec<(Arc<Run<DataFile>>, Range)>,
    waiting: VecDeque<Leg>,
    /// The leg under way.
    here: Option<MergeJob<Merge<RunCursor>>>,
    /// What its target was before.
    before: Option<(u64, u64)>,
    made: Made<DataFile>,
}

/// A part, and what is taken of it.
type Piece = (Arc<Part<DataFile>>, Range);

/// A stretch of the range: a part of the run below, or what lies between two.
struct Leg {
    range: Range,
    target: Option<Arc<Part<DataFile>>>,
}

impl GrowJob {
    pub(super) fn new(set: &RunSet<DataFile>, slice: Slice, means: &Means) -> Result<Self> {
        let into = slice.into.and_then(|id| set.run(id)).ok_or_else(Plan::foreign)?;
        let uppers = slice.taken.iter().filter(|(id, _)| *id != into.id());
        let uppers = uppers.map(|(id, range)| Some((Arc::clone(set.run(*id)?), range.clone())));
        Ok(Self {
            policy: set.policy,
            file_bytes: set.file_bytes,
            means: means.clone(),
            rule: means.code()?,
            uppers: uppers.collect::<Option<_>>().ok_or_else(Plan::foreign)?,
            waiting: legs(into, &slice.range),
            here: None,
            before: None,
            made: Made::new(slice, Vec::new()),
        })
    }

    /// Begins a leg, or keeps what is there where nothing comes to it.
    fn begin(&mut self, leg: Leg) -> Result<()> {
        let Leg { range, target } = leg;
        let inside = |(run, taken): &(Arc<Run<DataFile>>, Range)| {
            let range = taken.intersect(&range);
            let parts = run.parts()[run.overlapping(&range)].iter();
            parts.map(|part| (Arc::clone(part), part.range.intersect(&range))).collect::<Vec<_>>()
        };
        let mut sources: Vec<_> = self.uppers.iter().map(inside).collect();
        if sources.iter().all(Vec::is_empty) {
            if let Some(part) = target {
                self.made.kept.insert(part.fragment.version());
                self.made.parts.push(Part {
                    portion: portion_in(&part, &range),
                    range,
                    ..Part::clone(&part)
                });
            }
            return Ok(());
        }
        let batch = portion_of(&sources);
        let (files, rule, depth) =
            (self.means.files(Cause::Merge), self.rule.clone(), self.made.slice.depth());
        let grows =
            |part: &&Arc<Part<DataFile>>| part.range == range && !self.policy.rebuilds(part, batch.bytes);
        let grown = target.as_ref().filter(grows);
        let grown = grown.and_then(|part| Some((part.fragment.tree()?.clone(), part.is_bottom)));
        // Of a file that other parts have a later version of, a next one would lack what that has.
        let grown = grown.filter(|(tree, _)| tree.is_newest());
        let (writers, is_bottom) = match grown {
            Some((tree, is_bottom)) => (Writers::append(files, tree, rule, depth), is_bottom),
            None => {
                sources.extend(target.as_ref().map(|part| vec![(Arc::clone(part), range.clone())]));
                (Writers::trees(files, rule, depth), true)
            }
        };
        let Portion { bytes, records } = portion_of(&sources);
        let file_bytes = match writers.appends() {
            true => u64::MAX,
            false => self.policy.file_bytes(self.made.slice.level, bytes, self.file_bytes),
        };
        let shape = Shape::Variable;
        let reading = self.means.files(Cause::Merge).reading(sources.len());
        let cursor = |parts: Vec<Piece>| {
            let parts = parts.into_iter().map(|(part, range)| (part.fragment.clone(), range));
            RunCursor::new(parts.collect(), reading)
        };
        let sources = sources.into_iter().map(cursor).collect::<Result<Vec<_>>>()?;
        let input = Merge::new(sources, Extent { bytes, records, uniform: None, shape })?;
        let is_bottom = self.made.slice.is_bottom && is_bottom;
        let slice = Slice { range: range.clone(), is_bottom, ..self.made.slice.clone() };
        let expected = Expected { range, bytes, records, shape };
        self.here = Some(MergeJob::new(slice, input, expected, self.rule.clone(), writers, file_bytes));
        self.before = target.map(|part| part.fragment.version());
        Ok(())
    }

    /// Takes what a leg has made. A tree to which nothing came is the one before.
    fn end(&mut self, parts: Vec<Part<DataFile>>) {
        let stayed = parts.iter().map(|part| part.fragment.version()).filter(|now| Some(*now) == self.before);
        self.made.kept.extend(stayed);
        self.made.parts.extend(parts);
    }
}

/// The parts of a run inside a range, and what lies between them.
fn legs(run: &Run<DataFile>, range: &Range) -> VecDeque<Leg> {
    let mut legs = VecDeque::new();
    let mut low = Some(range.low.clone());
    for part in &run.parts()[run.overlapping(range)] {
        let here = part.range.intersect(range);
        if let Some(low) = low.take().filter(|low| *low < here.low) {
            legs.push_back(Leg { range: Range { low, high: Some(here.low.clone()) }, target: None });
        }
        low = here.high.clone();
        legs.push_back(Leg { range: here, target: Some(Arc::clone(part)) });
    }
    let rest = low.map(|low| Range { low, high: range.high.clone() }).filter(|rest| !rest.is_empty());
    legs.extend(rest.map(|range| Leg { range, target: None }));
    legs
}

fn portion_in(part: &Part<DataFile>, range: &Range) -> Portion {
    part.fragment.portion_inside(&part.range, part.portion, range)
}

fn portion_of(sources: &[Vec<Piece>]) -> Portion {
    let portions = sources.iter().flatten().map(|(part, range)| portion_in(part, range));
    portions.fold(Portion::default(), Portion::saturating_add)
}

impl Job for GrowJob {
    fn step(&mut self, bytes_max: usize) -> Result<Option<Outcome>> {
        if let Some(job) = &mut self.here {
            if let Some(Outcome::Runs(made)) = job.step(bytes_max)? {
                self.here = None;
                self.end(made.parts);
            }
            return Ok(None);
        }
        match self.waiting.pop_front() {
            Some(leg) => self.begin(leg).map(|()| None),
            None => {
                let nothing = Made::new(Slice::default(), Vec::new());
                Ok(Some(Outcome::Runs(std::mem::replace(&mut self.made, nothing))))
            }
        }
    }

    fn cause(&self) -> Cause {
        Cause::Merge
    }
}

impl Drop for GrowJob {
    /// What was not handed on is for nobody.
    fn drop(&mut self) {
        self.made.files().for_each(DataFile::discard);
    }
}
