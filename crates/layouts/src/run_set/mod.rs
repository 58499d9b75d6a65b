//! Run sets: key-ordered tables as stacks of sorted runs, under one of several [policies](Policy). See
//! `docs/layouts/run_set.md`.
//!
//! 1. The value is runs of parts of list files, and edits of it ([set](set), [apply](apply), [wire](wire)).
//! 2. A policy says what is merged ([policy](policy)); [plan](plan) makes a bounded slice of it.
//! 3. One executor runs all of them ([job](job)).

mod apply;
mod describe;
mod job;
mod plan;
mod policy;
mod set;
mod simulate;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use forebay_base::merge::{Cursor, Direction, Extent, Merge};
use forebay_base::record::Shape;
use forebay_base::wire::Reader;
use forebay_base::{Bound, Error, Range, Record, Result};
use forebay_buffer_tree::{Expected, Fragment as _, NodeId, Portion, Terms, TreeOptions};
use forebay_store::buffer::{Contents, Run as BufferRun};
use forebay_store::list::{FileMeta, Lookup, Reading, Search};
use forebay_store::{BufferCursor, Cause, ListCursor, ListFile, ListStore, WriteBuffer};

use crate::catalog::{Applied, Catalog, Job, NodeKey, Outcome, Plan, Planned, Stretch, Work};
use crate::convert::tree_of;
use crate::files::{Files, Fragment};
use crate::restore::{Restored, malformed};
use crate::write_buffer::{Description, WriteBufferTree};
use crate::{Layout, TableOptions, TableRule};

use job::{MergeJob, RunCursor};
use plan::Next;
pub(crate) use plan::{Made, Slice};
pub use policy::Policy;
pub use set::{Edit, Part, Replace, Run, RunSet, Taken};
pub use simulate::SimulatedRuns;

/// The runs of one table.
pub struct RunSetTable {
    pub(crate) set: RunSet<Fragment>,
    /// Kept for other layouts.
    pub(crate) options: TreeOptions,
    pub(crate) store: ListStore,
    pub(crate) rule: Arc<TableRule>,
    pub(crate) merge_memory_bytes: usize,
}

impl RunSetTable {
    /// Runs as the manifest has them.
    pub(crate) fn restore(catalog: &[u8], policy: Policy, restored: &mut Restored<'_>) -> Result<Self> {
        let mut from = Reader::new(catalog);
        let options = TreeOptions::decode(&mut from).ok_or_else(malformed)?;
        let ids = RunSet::<u64>::decode(&mut from, policy, options.node_bytes).ok_or_else(malformed)?;
        let set = ids.map(|&id| restored.fragment(id))?;
        let Restored { store, rule, merge_memory_bytes, .. } = restored;
        let (store, rule) = (store.clone(), Arc::clone(rule));
        Ok(Self { set, options, store, rule, merge_memory_bytes: *merge_memory_bytes })
    }

    fn files(&self, cause: Cause) -> Files {
        Files { store: self.store.clone(), cause, merge_memory_bytes: self.merge_memory_bytes }
    }

    /// A walk over what each run has of what is taken from it.
    fn cursors(&self, slice: &Slice, reading: Reading) -> Result<Vec<RunCursor>> {
        let cursor = |(id, range): &(NodeId, Range)| {
            let run = self.set.run(*id).ok_or_else(Plan::foreign)?;
            let parts = run.parts[run.overlapping(range)].iter();
            let parts: VecDeque<_> =
                parts.map(|part| (Arc::clone(&part.fragment.0), part.range.intersect(range))).collect();
            RunCursor::new(parts, reading)
        };
        slice.taken.iter().map(cursor).collect()
    }

    /// What there is to be merged, at most.
    fn expected(&self, slice: &Slice) -> Expected {
        let mut expected = Expected { range: slice.range.clone(), ..Expected::default() };
        for (id, range) in &slice.taken {
            let Some(run) = self.set.run(*id) else { continue };
            for part in &run.parts[run.overlapping(range)] {
                expected.bytes = expected.bytes.saturating_add(part.portion.bytes);
                expected.records = expected.records.saturating_add(part.portion.records);
                expected.shape = Shape::join(expected.shape, part.fragment.shape());
            }
        }
        expected
    }

    /// The job of a slice, over its runs and perhaps something newer.
    fn job<C: Cursor + Send + 'static>(
        &self,
        slice: &Slice,
        sources: Vec<C>,
        expected: Expected,
        flushed_bytes: u64,
        cause: Cause,
    ) -> Result<Box<dyn Job>> {
        let Expected { bytes, records, shape, .. } = expected;
        let merge = Merge::new(sources, Extent { bytes, records, uniform: None, shape })?;
        let (rule, files) = (self.rule.code()?, self.files(cause));
        Ok(Box::new(MergeJob::new(
            slice.clone(),
            merge,
            expected,
            flushed_bytes,
            rule,
            files,
            self.set.file_bytes,
        )))
    }

    fn planned(&self, slice: Slice) -> Plan {
        Plan { nodes: slice.runs(), bytes: self.expected(&slice).bytes, work: Work::Runs(slice) }
    }
}

impl Catalog for RunSetTable {
    fn find(&self, lookups: &[Lookup<'_>], each: &mut dyn FnMut(usize, &Record<'_>) -> bool) -> Result<u64> {
        let mut search = Search::new(lookups);
        for (number, lookup) in lookups.iter().enumerate() {
            let parts = self.set.runs().iter().filter_map(|run| run.find(lookup.prefix, lookup.key));
            parts.for_each(|part| search.add(number, &part.fragment.0));
        }
        search.finish(each)
    }

    fn stretch(&self, from: Option<&Bound>, within: &Range, direction: Direction) -> Result<Option<Stretch>> {
        let Some(range) = self.set.stretch(from, within, direction) else { return Ok(None) };
        let parts = self.set.runs().iter().flat_map(|run| &run.parts[run.overlapping(&range)]);
        let cursor = |part: &Arc<Part<Fragment>>| {
            ListCursor::new(&part.fragment.0, &part.range.intersect(&range), direction, Reading::Scan)
        };
        let sources = parts.map(cursor).collect::<Result<_>>()?;
        Ok(Some(Stretch { range, sources }))
    }

    fn plan_absorption(&self, contents: &Contents, busy: &BTreeSet<NodeKey>) -> Plan {
        self.planned(self.set.flush(contents.bytes, busy))
    }

    fn absorb(
        &self,
        plan: &Plan,
        buffer: &Arc<WriteBuffer>,
        run: Arc<BufferRun>,
        contents: &Contents,
    ) -> Result<Box<dyn Job>> {
        let Work::Runs(slice) = &plan.work else { return Err(Plan::foreign()) };
        let mut expected = self.expected(slice);
        expected.bytes = expected.bytes.saturating_add(contents.bytes);
        expected.records = expected.records.saturating_add(contents.records);
        expected.shape = Shape::join(expected.shape, contents.shape);
        let (input, flushed_bytes) =
            (BufferCursor::whole(buffer, run, self.store.options.order), contents.bytes.max(1));
        if slice.taken.is_empty() {
            return self.job(slice, vec![input], expected, flushed_bytes, Cause::RootSpill);
        }
        let older = self.cursors(slice, self.files(Cause::RootSpill).reading(slice.taken.len()))?;
        let mut sources: Vec<Box<dyn Cursor + Send>> = vec![Box::new(input)];
        sources.extend(older.into_iter().map(|cursor| Box::new(cursor) as Box<dyn Cursor + Send>));
        self.job(slice, sources, expected, flushed_bytes, Cause::RootSpill)
    }

    fn ingest(&self, input: Box<dyn Cursor + Send>) -> Result<Option<Box<dyn Job>>> {
        // Nobody knows how much is to come: files as long as they may be, of records like the first.
        let first = input.prefix().map_or(0, |_| input.record().encoded_bytes() as u64);
        let (bytes, shape) = (self.set.file_bytes, Shape::Variable);
        let expected = Expected { range: Range::all(), bytes, records: bytes / first.max(1), shape };
        let slice = Slice { range: Range::all(), ..Slice::default() };
        self.job(&slice, vec![input], expected, 0, Cause::RootSpill).map(Some)
    }

    fn next_work(&self, busy: &BTreeSet<NodeKey>) -> Option<Planned> {
        Some(match self.set.next_work(busy)? {
            Next::Edit(edit) => Planned::Edit(encode(&edit)),
            Next::Merge(slice) => Planned::Job(self.planned(slice)),
        })
    }

    fn next_compaction(&self, busy: &BTreeSet<NodeKey>) -> Option<Plan> {
        self.set.next_compaction(busy).map(|slice| self.planned(slice))
    }

    /// How many runs there are is the policy's to say.
    fn next_relief(&self, _busy: &BTreeSet<NodeKey>, _terms: &Terms<'_>) -> Option<(Plan, u64)> {
        None
    }

    fn start(&self, plan: &Plan) -> Result<Box<dyn Job>> {
        let Work::Runs(slice) = &plan.work else { return Err(Plan::foreign()) };
        let reading = self.files(Cause::Merge).reading(slice.taken.len());
        let sources = self.cursors(slice, reading)?;
        self.job(slice, sources, self.expected(slice), 0, Cause::Merge)
    }

    fn settle(&self, outcome: Outcome) -> Result<Vec<u8>> {
        let Outcome::Runs(made) = outcome else { return Err(Plan::foreign()) };
        Ok(encode(&self.set.settle(made)?))
    }

    fn apply(&self, edit: &[u8], file: &dyn Fn(u64) -> Option<Arc<ListFile>>) -> Result<Applied> {
        let malformed = || Error::invalid("an edit in the manifest is malformed");
        let edit = Edit::<u64>::decode(&mut Reader::new(edit)).ok_or_else(malformed)?;
        if edit.fragments().any(|&id| file(id).is_none()) {
            return Err(malformed());
        }
        let missing = ListFile::named(&self.store, FileMeta { id: 0, bytes: 0, digest: 0 });
        let edit = edit.map(|&id| Fragment(file(id).unwrap_or_else(|| Arc::clone(&missing))));
        let (set, references) = self.set.apply(&edit)?;
        let catalog = Arc::new(Self {
            set,
            options: self.options,
            store: self.store.clone(),
            rule: Arc::clone(&self.rule),
            merge_memory_bytes: self.merge_memory_bytes,
        });
        Ok(Applied { catalog, references: references.into_iter().map(|(file, by)| (file.0, by)).collect() })
    }

    fn takes(&self, outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Runs(made) if self.set.takes(made))
    }

    fn cut(&self, range: &Range) -> Option<Vec<u8>> {
        Some(encode(&self.set.cut(range)))
    }

    fn convert(&self, options: &TableOptions) -> Arc<dyn Catalog> {
        let Self { set, store, rule, merge_memory_bytes, .. } = self;
        let (store, rule, merge_memory_bytes) = (store.clone(), Arc::clone(rule), *merge_memory_bytes);
        match options.layout {
            Layout::WriteBuffer { .. } => {
                let tree = tree_of(set, options.tree);
                Arc::new(WriteBufferTree { tree, store, rule, merge_memory_bytes })
            }
            Layout::RunSet(policy) => {
                let set = RunSet { policy, ..set.clone() };
                Arc::new(Self { set, options: options.tree, store, rule, merge_memory_bytes })
            }
        }
    }

    fn debt_bytes(&self) -> u64 {
        self.set.policy.debt_bytes(&self.set)
    }

    fn records(&self) -> u64 {
        self.set.parts().map(|part| part.portion.records).sum()
    }

    fn portion(&self, range: &Range) -> Portion {
        let parts = self.set.runs().iter().flat_map(|run| &run.parts[run.overlapping(range)]);
        let held = parts.filter_map(|part| part.portion_in(range));
        held.fold(Portion::default(), Portion::saturating_add)
    }

    fn files(&self) -> Vec<Arc<ListFile>> {
        self.set.parts().map(|part| Arc::clone(&part.fragment.0)).collect()
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.options.encode(&mut bytes);
        if let Ok(ids) = self.set.map(|fragment| Ok(fragment.id())) {
            ids.encode(&mut bytes);
        }
        bytes
    }

    fn describe(&self) -> Description {
        describe::describe(&self.set)
    }
}

fn encode(edit: &Edit<Fragment>) -> Vec<u8> {
    let mut bytes = Vec::new();
    edit.map(|fragment| fragment.id()).encode(&mut bytes);
    bytes
}
