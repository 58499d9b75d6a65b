//! An inter-level merge (Jungle paper, section 3): what upper runs have of a range is appended to the trees of the run
//! below. Where an append would leave more behind than may be, the tree is written anew with it instead. That is its
//! in-place merge, and the batch is written once.
//!
//! What comes to one tree is a *leg* of it. Legs have nothing to do with each other, so they are done side by side.

mod legs;

use std::sync::Arc;

use forebay_base::limits::BLOCK_BYTES;
use forebay_base::merge::{Extent, Merge};
use forebay_base::record::Shape;
use forebay_base::{Error, Range, Result};
use forebay_buffer_tree::{Expected, Portion};
use forebay_store::Cause;

use self::legs::{InHand, Leg, Legs};
use super::job::{MergeJob, RunCursor};
use super::plan::{Made, Slice};
use super::policy::Policy;
use super::set::{Part, Run, RunSet};
use super::writer::Writers;
use crate::files::Means;
use crate::{DataFile, Help, Job, Outcome, Plan, Rule};

/// See the module.
pub(super) struct GrowJob {
    hand: Hand,
    /// Told once nobody has a leg in hand any more: who tries again needs the same files.
    failed: Option<Error>,
}

/// One of those who work on it.
struct Hand {
    slice: Arc<GrowSlice>,
    legs: Arc<Legs<DataFile, Done>>,
    here: Option<Begun>,
}

/// A leg on its way. The merge lets go of its files before the leg is anybody's again.
struct Begun {
    merge: MergeJob<Merge<RunCursor>>,
    in_hand: InHand<DataFile, Done>,
    /// About how much is left to be read.
    left_bytes: u64,
}

/// What is to be merged, and by what.
struct GrowSlice {
    policy: Policy,
    file_bytes: u64,
    means: Means,
    rule: Rule,
    /// Newest first, with what is taken from each.
    uppers: Vec<(Arc<Run<DataFile>>, Range)>,
    slice: Slice,
}

/// What has come of a leg. What nobody takes is for nobody.
struct Done {
    parts: Vec<Part<DataFile>>,
    /// What was there before, which is one of those where nothing came to it.
    before: Option<(u64, u64)>,
}

/// A part, and what is taken of it.
type Piece = (Arc<Part<DataFile>>, Range);

impl GrowJob {
    pub(super) fn new(set: &RunSet<DataFile>, slice: Slice, means: &Means) -> Result<Self> {
        let into = slice.into.and_then(|id| set.run(id)).ok_or_else(Plan::foreign)?;
        let uppers = slice.taken.iter().filter(|(id, _)| *id != into.id());
        let uppers = uppers.map(|(id, range)| Some((Arc::clone(set.run(*id)?), range.clone())));
        let legs = Legs::new(into, &slice.range);
        let slice = Arc::new(GrowSlice {
            policy: set.policy,
            file_bytes: set.file_bytes,
            means: means.clone(),
            rule: means.code()?,
            uppers: uppers.collect::<Option<_>>().ok_or_else(Plan::foreign)?,
            slice,
        });
        Ok(Self { hand: Hand { slice, legs, here: None }, failed: None })
    }
}

impl GrowSlice {
    /// What a leg's range has above.
    fn sources(&self, leg: &Leg<DataFile>) -> Vec<Vec<Piece>> {
        let inside = |(run, taken): &(Arc<Run<DataFile>>, Range)| {
            let range = taken.intersect(&leg.range);
            let parts = run.parts()[run.overlapping(&range)].iter();
            parts.map(|part| (Arc::clone(part), part.range.intersect(&range))).collect::<Vec<_>>()
        };
        self.uppers.iter().map(inside).collect()
    }

    /// Begins the merge of a leg to which something comes, and tells about how many bytes that reads.
    fn merge(
        &self,
        leg: &Leg<DataFile>,
        mut sources: Vec<Vec<Piece>>,
    ) -> Result<(MergeJob<Merge<RunCursor>>, u64)> {
        let Leg { range, target, .. } = leg;
        let batch = portion_of(&sources);
        let (files, rule, depth) = (self.means.files(Cause::Merge), self.rule.clone(), self.slice.depth());
        let grows =
            |part: &&Arc<Part<DataFile>>| part.range == *range && !self.policy.rebuilds(part, batch.bytes);
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
        let reading = self.means.files(Cause::Merge).reading(HANDS * sources.len());
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

/// So many share the memory of merges.
const HANDS: usize = 2;

impl Hand {
    /// Works through about so many bytes, of one leg or of several. `false` where there is none for it.
    fn step(&mut self, bytes_max: usize) -> Result<bool> {
        if self.legs.are_over() {
            self.here = None;
        }
        let (mut left_bytes, mut has_worked) = (bytes_max as u64, false);
        while left_bytes > 0 && (self.here.is_some() || self.begin()?) {
            has_worked = true;
            let Some(begun) = &mut self.here else { continue };
            let outcome = begun.merge.step(left_bytes as usize)?;
            let done_bytes = begun.left_bytes.min(left_bytes);
            begun.left_bytes -= done_bytes;
            // What is begun and what is finished take their time, too.
            left_bytes = left_bytes.saturating_sub(done_bytes.max(BLOCK_BYTES as u64));
            if let Some(Outcome::Runs(made)) = outcome
                && let Some(Begun { merge, in_hand, .. }) = self.here.take()
            {
                drop(merge);
                let before = in_hand.leg().target.as_ref().map(|part| part.fragment.version());
                in_hand.done(Done { parts: made.parts, before });
            }
        }
        Ok(has_worked)
    }

    /// Takes a leg. What is there stays where nothing comes to it.
    fn begin(&mut self) -> Result<bool> {
        let Some(in_hand) = self.legs.take() else { return Ok(false) };
        let leg = in_hand.leg();
        let sources = self.slice.sources(leg);
        if sources.iter().any(|pieces| !pieces.is_empty()) {
            let (merge, left_bytes) = self.slice.merge(leg, sources)?;
            self.here = Some(Begun { merge, in_hand, left_bytes });
            return Ok(true);
        }
        let part = leg.target.as_ref().map(|part| Part {
            portion: portion_in(part, &leg.range),
            range: leg.range.clone(),
            ..Part::clone(part)
        });
        let before = part.as_ref().map(|part| part.fragment.version());
        in_hand.done(Done { parts: part.into_iter().collect(), before });
        Ok(true)
    }
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
        if self.failed.is_none() {
            match self.hand.step(bytes_max) {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(error) => {
                    self.hand.legs.abandon();
                    self.hand.here = None;
                    self.failed = Some(error);
                }
            }
        }
        if self.failed.is_some() && !self.hand.legs.are_in_hand() {
            return self.failed.take().map_or(Ok(None), Err);
        }
        let Some(legs) = self.hand.legs.finish() else { return Ok(None) };
        let mut made = Made::new(self.hand.slice.slice.clone(), Vec::new());
        for mut done in legs {
            let versions = done.parts.iter().map(|part| part.fragment.version());
            made.kept.extend(versions.filter(|now| Some(*now) == done.before));
            made.parts.append(&mut done.parts);
        }
        Ok(Some(Outcome::Runs(made)))
    }

    fn cause(&self) -> Cause {
        Cause::Merge
    }

    fn help(&self) -> Option<Box<dyn Help>> {
        let (slice, legs) = (Arc::clone(&self.hand.slice), Arc::clone(&self.hand.legs));
        Some(Box::new(Hand { slice, legs, here: None }))
    }

    fn waits(&self) -> bool {
        self.hand.here.is_none() && self.hand.legs.wait()
    }
}

impl Help for Hand {
    fn step(&mut self, bytes_max: usize) -> bool {
        // What it fails at waits for the job, which says why.
        Self::step(self, bytes_max).unwrap_or(false)
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
        self.hand.legs.abandon();
    }
}
