//! An inter-level merge (Jungle paper, section 3): what upper runs have of a range is appended to the trees of the run
//! below. Where an append would leave more behind than may be, the tree is written anew with it instead. That is its
//! in-place merge, and the batch is written once.
//!
//! The work for one tree is a *subcompaction*. Subcompactions do not depend on each other, so they are done side by
//! side.

mod subcompactions;

use std::sync::Arc;

use forebay_base::codec::Codec;
use forebay_base::limits::BLOCK_BYTES;
use forebay_base::merge::{Extent, Merge};
use forebay_base::record::Shape;
use forebay_base::{Error, Range, Result};
use forebay_buffer_tree::{Expected, Portion};
use forebay_store::Cause;

use self::subcompactions::{Claimed, Subcompaction, SubcompactionQueue};
use super::job::{MergeJob, RunCursor};
use super::plan::{Made, Slice};
use super::policy::Policy;
use super::rules::Factors;
use super::set::{Part, Run, RunSet};
use super::writer::Writers;
use crate::files::DataFile;
use crate::files::TableContext;
use crate::rule::Rule;
use crate::seam::{Job, JobWorker, Outcome, Plan};

/// See the module.
pub(super) struct GrowJob {
    worker: SubcompactionWorker,
    /// An error, which is returned once no subcompaction is claimed: the next try needs the same files.
    failed: Option<Error>,
}

/// One of the workers of a job.
struct SubcompactionWorker {
    slice: Arc<GrowSlice>,
    subcompactions: Arc<SubcompactionQueue<DataFile, Done>>,
    current: Option<Begun>,
}

/// A subcompaction on its way. The merge lets go of its files before the subcompaction is anybody's again.
struct Begun {
    merge: MergeJob<Merge<RunCursor>>,
    claimed: Claimed<DataFile, Done>,
    /// About how much is left to be read.
    left_bytes: u64,
}

/// What is to be merged, and by what.
struct GrowSlice {
    policy: Policy,
    factors: Factors,
    file_bytes: u64,
    context: TableContext,
    rule: Rule,
    /// Newest first, with what is taken from each.
    uppers: Vec<(Arc<Run<DataFile>>, Range)>,
    slice: Slice,
}

/// The outcome of a subcompaction. Its files are discarded if the job does not take it.
struct Done {
    parts: Vec<Part<DataFile>>,
    /// What was there before, which is one of those where nothing came to it.
    before: Option<(u64, u64)>,
}

/// A part, and what is taken of it.
type Piece = (Arc<Part<DataFile>>, Range);

impl GrowJob {
    pub(super) fn new(set: &RunSet<DataFile>, slice: Slice, context: &TableContext) -> Result<Self> {
        let into = slice.act.target().and_then(|id| set.run(id)).ok_or_else(Plan::foreign)?;
        debug_assert!(set.policy.grows(into.level()), "only what is made of trees is appended to");
        let uppers = slice.taken.iter().filter(|(id, _)| *id != into.id());
        let uppers = uppers.map(|(id, range)| Some((Arc::clone(set.run(*id)?), range.clone())));
        let subcompactions = SubcompactionQueue::new(into, &slice.range);
        let slice = Arc::new(GrowSlice {
            policy: set.policy,
            factors: set.policy.factors(set),
            file_bytes: set.file_bytes,
            context: context.clone(),
            rule: context.code()?,
            uppers: uppers.collect::<Option<_>>().ok_or_else(Plan::foreign)?,
            slice,
        });
        Ok(Self { worker: SubcompactionWorker { slice, subcompactions, current: None }, failed: None })
    }
}

impl GrowSlice {
    /// What a subcompaction's range has above.
    fn sources(&self, subcompaction: &Subcompaction<DataFile>) -> Vec<Vec<Piece>> {
        let inside = |(run, taken): &(Arc<Run<DataFile>>, Range)| {
            let range = taken.intersect(&subcompaction.range);
            let parts = run.parts()[run.overlapping(&range)].iter();
            parts.map(|part| (Arc::clone(part), part.range.intersect(&range))).collect::<Vec<_>>()
        };
        self.uppers.iter().map(inside).collect()
    }

    /// About how long a batch is in a tree. Lists are counted as they were before they were compressed, trees behind that.
    fn bytes_in(&self, tree: Portion, batch: Portion) -> u64 {
        let alike = u128::from(batch.records) * u128::from(tree.bytes) / u128::from(tree.records.max(1));
        let is_packed = self.context.store.lists.options.codec != Codec::None && tree.records > 0;
        let bytes = if is_packed { batch.bytes.min(alike as u64) } else { batch.bytes };
        debug_assert!(bytes <= batch.bytes, "nothing is longer for being compressed");
        bytes
    }

    /// Begins the merge of a subcompaction to which something comes, and tells about how many bytes that reads.
    fn merge(
        &self,
        subcompaction: &Subcompaction<DataFile>,
        mut sources: Vec<Vec<Piece>>,
    ) -> Result<(MergeJob<Merge<RunCursor>>, u64)> {
        let Subcompaction { range, target, .. } = subcompaction;
        let batch = portion_of(&sources);
        let (files, rule, depth) = (self.context.files(Cause::Merge), self.rule.clone(), self.slice.depth());
        let grows = |part: &&Arc<Part<DataFile>>| {
            let bytes = self.bytes_in(part.portion, batch);
            part.range == *range && !self.factors.rebuilds(self.slice.level, part, bytes)
        };
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
            false => self.policy.file_bytes(self.slice.level, bytes, self.file_bytes),
        };
        let shape = Shape::Variable;
        let reading = self.context.files(Cause::Merge).reading(sources.len());
        let cursor = |parts: Vec<Piece>| {
            let parts = parts.into_iter().map(|(part, range)| (part.fragment.clone(), range));
            RunCursor::new(parts.collect(), reading)
        };
        let sources = sources.into_iter().map(cursor).collect::<Result<Vec<_>>>()?;
        let input = Merge::new(sources, Extent { bytes, records, uniform: None, shape })?;
        let is_bottom = self.slice.is_bottom && is_bottom;
        let slice = Slice { range: range.clone(), is_bottom, ..self.slice.clone() };
        let expected = Expected { range: range.clone(), bytes, records, shape };
        Ok((MergeJob::new(slice, input, expected, self.rule.clone(), writers, file_bytes), bytes))
    }
}

impl SubcompactionWorker {
    /// Works through about this many bytes, of one subcompaction or of several. `false` where there is none for it.
    fn step(&mut self, bytes_max: usize) -> Result<bool> {
        if self.subcompactions.are_over() {
            self.current = None;
        }
        let (mut left_bytes, mut has_worked) = (bytes_max as u64, false);
        while left_bytes > 0 && (self.current.is_some() || self.begin()?) {
            has_worked = true;
            let Some(begun) = &mut self.current else { continue };
            let outcome = begun.merge.step(left_bytes as usize)?;
            // More than was thought comes of what was compressed.
            let done_bytes =
                if begun.left_bytes == 0 { left_bytes } else { begun.left_bytes.min(left_bytes) };
            begun.left_bytes = begun.left_bytes.saturating_sub(done_bytes);
            // What is begun and what is finished take their time, too.
            left_bytes = left_bytes.saturating_sub(done_bytes.max(BLOCK_BYTES as u64));
            if let Some(outcome) = outcome
                && let Some(Begun { merge, claimed, .. }) = self.current.take()
            {
                drop(merge);
                let made: Made<DataFile> = outcome.take()?;
                let before = claimed.subcompaction().target.as_ref().map(|part| part.fragment.version());
                claimed.done(Done { parts: made.parts, before });
            }
        }
        Ok(has_worked)
    }

    /// Takes a subcompaction. What is there stays where nothing comes to it.
    fn begin(&mut self) -> Result<bool> {
        debug_assert!(self.current.is_none(), "a worker does one subcompaction after the other");
        let Some(claimed) = self.subcompactions.take() else { return Ok(false) };
        let subcompaction = claimed.subcompaction();
        let sources = self.slice.sources(subcompaction);
        if sources.iter().any(|pieces| !pieces.is_empty()) {
            let (merge, left_bytes) = self.slice.merge(subcompaction, sources)?;
            self.current = Some(Begun { merge, claimed, left_bytes });
            return Ok(true);
        }
        let part = subcompaction.target.as_ref().map(|part| Part {
            portion: part.portion_inside(&subcompaction.range),
            range: subcompaction.range.clone(),
            ..Part::clone(part)
        });
        let before = part.as_ref().map(|part| part.fragment.version());
        claimed.done(Done { parts: part.into_iter().collect(), before });
        Ok(true)
    }
}

fn portion_of(sources: &[Vec<Piece>]) -> Portion {
    let portions = sources.iter().flatten().map(|(part, range)| part.portion_inside(range));
    portions.fold(Portion::default(), Portion::saturating_add)
}

impl Job for GrowJob {
    fn step(&mut self, bytes_max: usize) -> Result<Option<Outcome>> {
        if self.failed.is_none() {
            match self.worker.step(bytes_max) {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(error) => {
                    self.worker.subcompactions.abandon();
                    self.worker.current = None;
                    self.failed = Some(error);
                }
            }
        }
        if self.failed.is_some() && !self.worker.subcompactions.are_claimed() {
            return self.failed.take().map_or(Ok(None), Err);
        }
        let Some(subcompactions) = self.worker.subcompactions.finish() else { return Ok(None) };
        let mut made = Made::new(self.worker.slice.slice.clone(), Vec::new());
        for mut done in subcompactions {
            let versions = done.parts.iter().map(|part| part.fragment.version());
            made.kept.extend(versions.filter(|now| Some(*now) == done.before));
            made.parts.append(&mut done.parts);
        }
        Ok(Some(Outcome::new(made)))
    }

    fn cause(&self) -> Cause {
        Cause::Merge
    }

    fn worker(&self) -> Option<Box<dyn JobWorker>> {
        self.worker.beside()
    }

    fn waits(&self) -> bool {
        self.worker.current.is_none() && self.worker.subcompactions.wait()
    }
}

impl JobWorker for SubcompactionWorker {
    fn step(&mut self, bytes_max: usize) -> bool {
        // What it fails at waits for the job, which says why.
        Self::step(self, bytes_max).unwrap_or_else(|_| {
            self.subcompactions.leave_to_job();
            false
        })
    }

    fn beside(&self) -> Option<Box<dyn JobWorker>> {
        let (slice, subcompactions) = (Arc::clone(&self.slice), Arc::clone(&self.subcompactions));
        subcompactions.wants_worker().then(|| Box::new(Self { slice, subcompactions, current: None }) as _)
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        let files = self.parts.iter().map(|part| &part.fragment);
        files.filter(|file| Some(file.version()) != self.before).for_each(DataFile::discard);
    }
}

impl Drop for GrowJob {
    fn drop(&mut self) {
        self.worker.subcompactions.abandon();
    }
}
