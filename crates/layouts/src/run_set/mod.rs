//! Run sets: key-ordered tables as stacks of sorted runs, under one of several [policies](Policy). See
//! `docs/layouts/run_set.md`.
//!
//! 1. The value is runs of parts of list files, and edits of it ([set](set), [apply](apply), [wire](wire)).
//! 2. A policy says what is merged ([rules](rules)); [plan](plan) makes a bounded slice of it.
//! 3. One executor runs all of them ([job](job)).
//! 4. Runs may be resident: in memory, until their key ranges are merged ([marks](marks)).

mod apply;
mod breaks;
mod check;
mod describe;
mod expire;
mod find;
mod grow;
mod job;
mod key_ranges;
mod marks;
mod plan;
mod policy;
mod rebase;
mod rewrite;
mod rules;
mod set;
mod simulate;
#[cfg(test)]
mod tests;
mod upkeep;
mod wire;
mod writer;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use forebay_base::merge::{Cursor, Direction, Extent, Merge};
use forebay_base::record::Shape;
use forebay_base::wire::Reader;
use forebay_base::{Bound, Range, Result};
use forebay_buffer_tree::{Expected, Fragment as _, NodeId, Portion, TreeOptions};
use forebay_store::buffer::{Contents, Run as BufferRun};
use forebay_store::list::{FileMeta, Lookup, Reading, Seeker};
use forebay_store::{BufferCursor, Cause, ValueFiles, WriteBuffer};

use crate::files::{
    DataFile, Files, ResidentBudget, Restored, Source, TableContext, flushed, malformed, malformed_edit,
};
use crate::seam::{
    Applied, Description, EXPIRED_SHARE, FilePart, Inspect, Job, NodeKey, Outcome, Plan, Planned, Reads,
    Rebased, Stretch, TableVersion,
};

use grow::GrowJob;
use job::{MergeJob, RunCursor, Within};
pub(crate) use plan::Slice;
use plan::{Act, Next};
pub use policy::Policy;
use set::total;
pub use set::{Edit, Part, RangeDrop, Replace, Reside, Run, RunSet, Taken};
pub use simulate::SimulatedRuns;
use writer::{Writers, like_first};

/// The runs of one table.
pub struct RunSetTable {
    pub(crate) set: RunSet<DataFile>,
    /// Kept for other layouts.
    pub(crate) options: TreeOptions,
    pub(crate) context: TableContext,
    /// Whether any of its files may be a tree.
    has_trees: bool,
    /// Parts to be rewritten for what that frees, the best first: found when it is asked for.
    wasteful: OnceLock<Vec<(NodeId, Range)>>,
    /// Of its key ranges in memory, what the fullest takes: counted when it is asked for.
    fullest_bytes: OnceLock<u64>,
}

impl RunSetTable {
    pub(crate) fn new(set: RunSet<DataFile>, options: TreeOptions, context: TableContext) -> Self {
        let has_trees = set.parts().any(|part| part.fragment.list().is_none());
        let (wasteful, fullest_bytes) = (OnceLock::new(), OnceLock::new());
        Self { set, options, context, has_trees, wasteful, fullest_bytes }
    }

    /// Runs as the manifest has them.
    pub(crate) fn restore(version: &[u8], policy: Policy, restored: &mut Restored<'_>) -> Result<Self> {
        let mut from = Reader::new(version);
        let options = TreeOptions::decode(&mut from).ok_or_else(malformed)?;
        let ids = RunSet::<u64>::decode(&mut from, policy, options.node_bytes).ok_or_else(malformed)?;
        let set = ids.map(|&id| restored.file(id))?;
        Ok(Self::new(set, options, restored.context.clone()))
    }

    /// A walk over what each run has of what is taken from it.
    fn cursors(&self, slice: &Slice, cause: Cause) -> Result<Vec<RunCursor>> {
        let reading = self.context.files(cause).reading(slice.taken.len());
        let cursor = |(id, range): &(NodeId, Range)| {
            let run = self.set.run(*id).ok_or_else(Plan::foreign)?;
            let parts = run.parts()[run.overlapping(range)].iter();
            let parts: VecDeque<_> =
                parts.map(|part| (part.fragment.clone(), part.range.intersect(range))).collect();
            RunCursor::new(parts, reading)
        };
        slice.taken.iter().map(cursor).collect()
    }

    fn room(&self) -> ResidentBudget {
        self.context.room(self.set.kept())
    }

    /// The parts that a slice takes something from.
    fn parts<'a>(&'a self, slice: &'a Slice) -> impl Iterator<Item = &'a Arc<Part<DataFile>>> {
        let runs = slice.taken.iter().filter_map(|(id, range)| Some((self.set.run(*id)?, range)));
        runs.flat_map(|(run, range)| &run.parts()[run.overlapping(range)])
    }

    /// What there is to be merged, at most: the parts, and something newer.
    fn expected(&self, slice: &Slice, newer: Portion, shape: Shape) -> Expected {
        let portions = self.parts(slice).map(|part| part.portion);
        let Portion { bytes, records } = portions.fold(newer, Portion::saturating_add);
        let shape = self.parts(slice).fold(shape, |shape, part| Shape::join(shape, part.fragment.shape()));
        Expected { range: slice.range.clone(), bytes, records, shape }
    }

    /// The job of a slice, over its runs and perhaps something newer.
    fn job<C: Cursor + Send + 'static>(
        &self,
        slice: &Slice,
        sources: Vec<C>,
        expected: Expected,
        files: Files,
    ) -> Result<Box<dyn Job>> {
        let Expected { bytes, records, shape, .. } = expected;
        let merge = Merge::new(sources, Extent { bytes, records, uniform: None, shape })?;
        let rule = self.context.code()?;
        let writers = match self.set.policy.grows(slice.level) {
            true => Writers::trees(files, rule.clone(), slice.depth()),
            false => Writers::lists(files),
        };
        let file_bytes = self.set.policy.file_bytes(slice.level, bytes, self.set.file_bytes);
        let job = MergeJob::new(slice.clone(), merge, expected, rule, writers, file_bytes);
        Ok(match self.set.file_ends(slice) {
            ends if ends.is_empty() => Box::new(job),
            ends => Box::new(job.end_files_at(ends, self.set.bound_bytes_min())),
        })
    }

    /// The job of a write buffer that stays in memory, in files that end where key ranges do.
    fn residing<C: Cursor + Send + 'static>(
        &self,
        slice: &Slice,
        input: C,
        expected: Expected,
        bounds: Vec<Bound>,
    ) -> Result<MergeJob<C>> {
        let rule = self.context.code()?;
        let writers = Writers::lists(self.context.memory());
        let job = MergeJob::new(slice.clone(), input, expected, rule, writers, self.set.file_bytes);
        Ok(job.end_files_at(bounds, job::BOUND_BYTES_MIN).with_even_files())
    }

    fn planned(&self, slice: Slice) -> Plan {
        let bytes = total(self.parts(&slice).map(|part| part.portion.bytes));
        Plan::new(slice.nodes(), bytes, slice)
    }
}

impl TableVersion for RunSetTable {
    fn plan_flush(&self, segment: u64, contents: &Contents, busy: &BTreeSet<NodeKey>) -> Option<Plan> {
        let room = self.room();
        let slice = self.set.flush(segment, contents.bytes, busy, room);
        let waits = matches!(slice.act, Act::KeepInMemory { .. }) && self.set.policy.is_full(&self.set, room);
        (!waits).then(|| self.planned(slice))
    }

    fn plan_reload(&self, segment: u64, contents: &Contents) -> Option<Plan> {
        self.set.reload(segment, contents.bytes).map(|slice| self.planned(slice))
    }

    fn flush(
        &self,
        plan: &Plan,
        buffer: &Arc<WriteBuffer>,
        run: Arc<BufferRun>,
        contents: &Contents,
    ) -> Result<Box<dyn Job>> {
        let slice: &Slice = plan.work()?;
        let slice = &Slice { is_bottom: slice.is_bottom && !plan.keeps_tombstones, ..slice.clone() };
        let apart = self.context.apart(buffer).filter(|_| slice.leaves_values());
        let (newer, shape) = flushed(contents, apart.as_ref());
        let expected = self.expected(slice, newer, shape);
        let input = BufferCursor::whole(buffer, run, self.context.store.order(), apart);
        if let Act::KeepInMemory { ranges, .. } = &slice.act {
            let (input, bounds) = (Within::new(input, ranges)?, key_ranges::bounds(&self.set));
            return Ok(Box::new(self.residing(slice, input, expected, bounds)?));
        }
        if slice.taken.is_empty() {
            return self.job(slice, vec![input], expected, self.context.files(Cause::Flush));
        }
        let mut sources: Vec<Box<dyn Cursor + Send>> = vec![Box::new(input)];
        let boxed = |older| Box::new(older) as Box<dyn Cursor + Send>;
        sources.extend(self.cursors(slice, Cause::Flush)?.into_iter().map(boxed));
        self.job(slice, sources, expected, self.context.files(Cause::Flush))
    }

    fn ingest(
        &self,
        input: Box<dyn Cursor + Send>,
        expected: Option<Expected>,
    ) -> Result<Option<Box<dyn Job>>> {
        let expected = expected.unwrap_or_else(|| like_first(&*input, self.set.file_bytes));
        self.job(&Slice::default(), vec![input], expected, self.context.files(Cause::Flush)).map(Some)
    }

    fn next_work(&self, busy: &BTreeSet<NodeKey>) -> Option<Planned> {
        match self.set.next_work(busy, self.room()) {
            Some(Next::Edit(edit)) => Some(Planned::Edit(encode(&edit))),
            Some(Next::Merge(slice)) => Some(Planned::Job(self.planned(slice))),
            None => self
                .next_expired(busy, EXPIRED_SHARE)
                .or_else(|| self.next_rewrite(busy).map(|slice| Planned::Job(self.planned(slice)))),
        }
    }

    fn start(&self, plan: &Plan) -> Result<Box<dyn Job>> {
        let slice: &Slice = plan.work()?;
        debug_assert!(slice.act.buffer().is_none(), "a plan for a write buffer is not for runs alone");
        if slice.act.appends() {
            return Ok(Box::new(GrowJob::new(&self.set, slice.clone(), &self.context)?));
        }
        let expected = self.expected(slice, Portion::default(), Shape::default());
        self.job(slice, self.cursors(slice, Cause::Merge)?, expected, self.context.files(Cause::Merge))
    }

    fn rebase(&self, outcome: Outcome) -> Result<Rebased> {
        let edit = self.set.rebase(outcome.take()?)?;
        Ok(Rebased { edit: encode(&edit), is_lasting: !matches!(edit, Edit::Reside(_)) })
    }

    fn apply(&self, edit: &[u8], file: &dyn Fn(u64) -> Option<DataFile>) -> Result<Applied> {
        let edit = Edit::<u64>::decode(&mut Reader::new(edit)).ok_or_else(malformed_edit)?;
        let edit = edit.map(self.context.find(edit.fragments(), file, Some)?);
        let (set, references) = self.set.apply(&edit)?;
        let has_trees = self.has_trees || references.iter().any(|(file, _)| file.list().is_none());
        if cfg!(invariants) {
            let is_list = |part: &Arc<Part<DataFile>>| part.fragment.list().is_some();
            assert!(has_trees || set.parts().all(is_list), "lookups ask trees where there may be some");
        }
        let (options, context) = (self.options, self.context.clone());
        Ok(Applied {
            version: Arc::new(Self {
                set,
                options,
                context,
                has_trees,
                wasteful: OnceLock::new(),
                fullest_bytes: OnceLock::new(),
            }),
            references,
        })
    }

    fn takes(&self, outcome: &Outcome) -> bool {
        outcome.of().is_some_and(|made| self.set.takes(made))
    }
}

impl Reads for RunSetTable {
    fn find(&self, lookups: &[Lookup<'_>], seeker: &mut dyn Seeker) -> Result<u64> {
        match self.has_trees {
            true => find::one_by_one(&self.set, lookups, seeker),
            false => find::together(&self.set, lookups, seeker),
        }
    }

    fn stretch(&self, from: Option<&Bound>, within: &Range, direction: Direction) -> Result<Option<Stretch>> {
        let Some(range) = self.set.stretch(from, within, direction) else { return Ok(None) };
        let parts = self.set.runs().iter().flat_map(|run| &run.parts[run.overlapping(&range)]);
        let cursor = |part: &Arc<Part<DataFile>>| {
            Source::new(&part.fragment, &part.range.intersect(&range), direction, Reading::Scan)
        };
        let sources: Vec<_> = parts.map(cursor).collect::<Result<_>>()?;
        debug_assert!(sources.len() <= self.set.runs().len(), "each run is one source at most");
        Ok(Some(Stretch { range, sources }))
    }

    fn portion(&self, range: &Range) -> Portion {
        let parts = self.set.runs().iter().flat_map(|run| &run.parts()[run.overlapping(range)]);
        parts.map(|part| part.portion_inside(range)).fold(Portion::default(), Portion::saturating_add)
    }

    fn records(&self) -> u64 {
        total(self.set.parts().map(|part| part.portion.records))
    }

    fn values(&self) -> &ValueFiles {
        &self.context.store.lists.values
    }
}

impl Inspect for RunSetTable {
    fn files(&self) -> Vec<DataFile> {
        self.set.parts().map(|part| part.fragment.clone()).collect()
    }

    fn named(&self, meta: FileMeta) -> DataFile {
        self.context.store.named(meta)
    }

    fn each_list(&self, visit: &mut dyn FnMut(FilePart<'_>)) {
        for part in self.set.parts() {
            let Part { range, portion, is_bottom, .. } = &**part;
            visit(FilePart { file: part.fragment.clone(), range, portion: *portion, is_bottom: *is_bottom });
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.options.encode(&mut bytes);
        if let Ok(ids) = self.set.map(|file| Ok(file.id())) {
            ids.encode(&mut bytes);
        }
        bytes
    }

    fn describe(&self) -> Description {
        describe::describe(&self.set)
    }
}

fn encode(edit: &Edit<DataFile>) -> Vec<u8> {
    let mut bytes = Vec::new();
    edit.map(DataFile::id).encode(&mut bytes);
    bytes
}
