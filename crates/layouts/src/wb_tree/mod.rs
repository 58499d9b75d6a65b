//! The wb-tree (WB) tree on list files. The tree itself, its plans and its edits are the buffer-tree
//! crate's; here are its fragments, which are list files, and its face to the engine. See
//! `docs/layouts/wb_tree.md`.

mod describe;
mod expire;
mod portion;
mod rewrite;
mod simulate;
#[cfg(test)]
mod tests;
mod tombstones;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use forebay_base::merge::{Cursor, Direction, Merge};
use forebay_base::record::Shape;
use forebay_base::wire::Reader;
use forebay_base::{Bound, Range, Result};
use forebay_buffer_tree as tree;
use forebay_buffer_tree::{
    Edit, Expected, JobKind, JobPlan, JobStep, List, Node, Place, Portion, ReadTerms, Tree,
};
use forebay_env::guest;
use forebay_store::buffer::{Contents, Run};
use forebay_store::list::{FileMeta, Lookup, Reading, Search, Seeker};
use forebay_store::salvage::Gaps;
use forebay_store::{BufferCursor, Cause, ListCursor, ValueFiles, WriteBuffer};

use crate::files::{DataFile, Restored, Source};
use crate::files::{Fragment, TableContext, Writer, flushed, malformed_edit};
use crate::rule::answered;
use crate::rule::{Rule, RuleName};
use crate::seam::{
    Applied, Description, EXPIRED_SHARE, EXPIRED_SHARE_COMPACTING, FilePart, Inspect, Job, NodeKey, Outcome,
    Plan, Planned, Produced, Reads, Rebased, Stretch, TableVersion, Upkeep, Work,
};

use tombstones::Tombstones;

pub use simulate::SimulatedTree;

/// A WB tree of one table.
pub struct WbTree {
    pub(crate) tree: Tree<Fragment>,
    pub(crate) context: TableContext,
    /// Nodes to be rewritten for what that frees, the best first: found when it is asked for.
    wasteful: OnceLock<Vec<JobPlan>>,
}

impl WbTree {
    pub(crate) fn new(tree: Tree<Fragment>, context: TableContext) -> Self {
        Self { tree, context, wasteful: OnceLock::new() }
    }

    /// A tree as the manifest has it, without the list files of its lists.
    pub(crate) fn restore(version: &[u8], restored: &mut Restored<'_>) -> Result<Self> {
        let ids = Tree::<u64>::decode(&mut Reader::new(version)).ok_or_else(crate::files::malformed)?;
        let tree = ids.map(|&id| Fragment::of(restored.file(id)?).ok_or_else(crate::files::malformed))?;
        Ok(Self::new(tree, restored.context.clone()))
    }

    /// The plan of a job beside those who are at work on other nodes.
    fn plan(&self, job: JobPlan, busy: &BTreeSet<NodeKey>) -> Plan {
        debug_assert!(!busy.contains(&job.node.id), "at most one job works on a node");
        let node = self.tree.find(&job.node);
        debug_assert!(
            node.is_some_and(|node| job.lists <= node.lists().len()),
            "it is there, with its lists"
        );
        let bytes = node.map_or(0, |node| node.bytes());
        Plan::new(vec![job.node.id], bytes, job)
    }

    fn node_sources<'a>(
        &self,
        path: &'a [Arc<Node<Fragment>>],
        range: &'a Range,
        direction: Direction,
    ) -> impl Iterator<Item = Result<Source>> + 'a {
        let newest_first = path.iter().flat_map(|node| node.lists().iter().rev());
        let cursor =
            move |list: &List<Fragment>| ListCursor::new(&list.fragment.0, range, direction, Reading::Scan);
        newest_first.map(move |list| cursor(list).map(Source::List))
    }
}

impl Work for JobPlan {}
/// A write buffer becomes a list of the root.
impl Work for () {}

impl Produced for tree::Outcome<Fragment> {
    /// Nobody counts them.
    fn records(&self) -> u64 {
        0
    }

    fn files(&self) -> Vec<DataFile> {
        let lists = self.fragment().into_iter().map(|Fragment(list)| Arc::clone(list));
        lists.map(DataFile::List).collect()
    }
}

/// A job of the tree, with what it is counted as.
struct TreeJob<C> {
    job: tree::Job<C, Writer, Rule>,
    cause: Cause,
}

impl<C: Cursor + Send> Job for TreeJob<C> {
    fn step(&mut self, bytes_max: usize) -> Result<Option<Outcome>> {
        guest::take_failure();
        let outcome = match self.job.step(bytes_max)? {
            JobStep::Worked(_) => None,
            JobStep::Done(outcome) => Some(Outcome::new(outcome)),
        };
        answered(Ok(())).inspect_err(|_| outcome.iter().for_each(Outcome::discard))?;
        Ok(outcome)
    }

    fn cause(&self) -> Cause {
        self.cause
    }
}

impl TableVersion for WbTree {
    fn plan_flush(&self, _: u64, _: &Contents, _: &BTreeSet<NodeKey>) -> Option<Plan> {
        Some(Plan::new(Vec::new(), 0, ()))
    }

    fn flush(
        &self,
        _plan: &Plan,
        buffer: &Arc<WriteBuffer>,
        run: Arc<Run>,
        contents: &Contents,
    ) -> Result<Box<dyn Job>> {
        let apart = self.context.apart(buffer);
        let (Portion { bytes, records }, shape) = flushed(contents, apart.as_ref());
        let expected = Expected { range: Range::all(), bytes, records, shape };
        let input = BufferCursor::whole(buffer, run, self.context.store.order(), apart);
        let files = self.context.files(Cause::Flush);
        let job = tree::Job::flush(&self.tree, input, &expected, self.context.code()?, &files)?;
        Ok(Box::new(TreeJob { job, cause: Cause::Flush }))
    }

    /// A list has a filter for so many records: how much is to come must be known.
    fn ingest(
        &self,
        input: Box<dyn Cursor + Send>,
        expected: Option<Expected>,
    ) -> Result<Option<Box<dyn Job>>> {
        let Some(expected) = expected else { return Ok(None) };
        let files = self.context.files(Cause::Flush);
        let job = tree::Job::flush(&self.tree, input, &expected, self.context.code()?, &files)?;
        Ok(Some(Box::new(TreeJob { job, cause: Cause::Flush })))
    }

    fn next_work(&self, busy: &BTreeSet<NodeKey>) -> Option<Planned> {
        match self.tree.next_work(busy) {
            Some(tree::Work::Now(edit)) => Some(Planned::Edit(encode(&edit))),
            Some(tree::Work::Job(job)) => Some(Planned::Job(self.plan(job, busy))),
            None => {
                let collection = || self.next_collection(busy).map(|job| Planned::Job(self.plan(job, busy)));
                self.next_expired(busy, EXPIRED_SHARE).or_else(collection)
            }
        }
    }

    fn start(&self, plan: &Plan) -> Result<Box<dyn Job>> {
        let plan: &JobPlan = plan.work()?;
        let cause = cause_of(plan.kind);
        let files = self.context.files(cause);
        let job: tree::Job<Merge<ListCursor>, _, _> =
            tree::Job::start(&self.tree, plan, self.context.store.order(), self.context.code()?, &files)?;
        Ok(Box::new(TreeJob { job, cause }))
    }

    fn rebase(&self, outcome: Outcome) -> Result<Rebased> {
        Ok(Rebased { edit: encode(&self.tree.rebase(outcome.take()?)?), is_lasting: true })
    }

    fn apply(&self, edit: &[u8], file: &dyn Fn(u64) -> Option<DataFile>) -> Result<Applied> {
        let edit = Edit::<u64>::decode(&mut Reader::new(edit)).ok_or_else(malformed_edit)?;
        let edit = edit.map(self.context.find(edit.fragment().into_iter(), file, Fragment::of)?);
        let (tree, references) = self.tree.apply(&edit)?;
        if cfg!(invariants) {
            let (lists, before) = (tree.fragments().len() as i64, self.tree.fragments().len() as i64);
            let more: i64 = references.iter().map(|(_, by)| i64::from(*by)).sum();
            assert_eq!(lists, before + more, "each list more or fewer is a reference");
        }
        let version = Arc::new(Self::new(tree, self.context.clone()));
        let references = references.into_iter().map(|(Fragment(list), by)| (DataFile::List(list), by));
        Ok(Applied { version, references: references.collect() })
    }

    fn takes(&self, outcome: &Outcome) -> bool {
        outcome.of::<tree::Outcome<Fragment>>().is_some()
    }
}

impl Reads for WbTree {
    fn find(&self, lookups: &[Lookup<'_>], seeker: &mut dyn Seeker) -> Result<u64> {
        let mut search = Search::new(lookups);
        if matches!(self.context.rule.name(), RuleName::States(_)) {
            search = search.taking_all();
        }
        for (number, lookup) in lookups.iter().enumerate() {
            for node in self.tree.path(lookup.prefix, lookup.key) {
                node.lists().iter().rev().for_each(|list| search.add(number, &list.fragment.0));
            }
        }
        search.finish(seeker)
    }

    fn stretch(&self, from: Option<&Bound>, within: &Range, direction: Direction) -> Result<Option<Stretch>> {
        let (path, leaf) = match direction {
            Direction::Forward => self.tree.leaf_path(from.unwrap_or(&within.low)),
            Direction::Backward => match self.tree.leaf_path_before(from) {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        let range = leaf.intersect(within);
        if range.is_empty() {
            return Ok(None);
        }
        let sources = self.node_sources(&path, &range, direction).collect::<Result<_>>()?;
        Ok(Some(Stretch { range, sources }))
    }

    fn portion(&self, range: &Range) -> Portion {
        portion::portion(self.tree.root(), range)
    }

    fn records(&self) -> u64 {
        let mut records = 0;
        self.tree.for_each_node(&mut |_, node| records += node.records());
        records
    }

    fn values(&self) -> &ValueFiles {
        &self.context.store.lists.values
    }
}

impl Upkeep for WbTree {
    fn next_full_compaction(&self, busy: &BTreeSet<NodeKey>) -> Option<Plan> {
        let expired = || self.next_expired(busy, EXPIRED_SHARE_COMPACTING).and_then(Planned::into_job);
        self.tree.next_full_compaction(busy).map(|job| self.plan(job, busy)).or_else(expired)
    }

    fn next_reclaim(
        &self,
        busy: &BTreeSet<NodeKey>,
        from: Option<&Place>,
        within: &Range,
    ) -> Option<(Plan, Option<Place>)> {
        let is_wanted = from.is_none() && *within == Range::all();
        let dead = || self.next_rewrite(busy).filter(|_| is_wanted).map(|job| (job, None));
        let (job, then) = self.tree.next_reclaim(busy, from, within).or_else(dead)?;
        Some((self.plan(job, busy), then))
    }

    fn next_rewrite_of(&self, busy: &BTreeSet<NodeKey>, files: &BTreeSet<u64>) -> Option<Plan> {
        let job = self.next_node(busy, |file| files.contains(&file.id()))?;
        Some(self.plan(job, busy))
    }

    fn next_read_compaction(&self, busy: &BTreeSet<NodeKey>, terms: &ReadTerms<'_>) -> Option<(Plan, u64)> {
        let read_compaction = self.tree.next_read_compaction(busy, terms);
        // Whoever rests may as well tidy up.
        let tidying = || self.next_rewrite(busy).filter(|_| terms.is_idle).map(|job| (job, 0));
        read_compaction.or_else(tidying).map(|(job, cost)| (self.plan(job, busy), cost))
    }

    fn delete_by_tombstones(&self, ranges: &[Range], gaps: &Arc<Gaps>) -> Result<Option<Box<dyn Job>>> {
        let parts = ranges.iter().map(|range| self.portion(range));
        let Portion { bytes, records } = parts.fold(Portion::default(), Portion::saturating_add);
        let expected = Expected { range: Range::all(), bytes, records, shape: Shape::Variable };
        let files = self.context.files(Cause::Flush);
        let reading = files.reading(self.tree.options().lists_max);
        let input = Tombstones::new(self.tree.clone(), ranges, reading, Arc::clone(gaps))?;
        let job = tree::Job::flush(&self.tree, input, &expected, self.context.code()?, &files)?;
        Ok(Some(Box::new(TreeJob { job, cause: Cause::Flush })))
    }

    fn debt_bytes(&self) -> u64 {
        self.tree.debt_bytes()
    }
}

impl Inspect for WbTree {
    fn files(&self) -> Vec<DataFile> {
        self.tree.fragments().into_iter().map(|Fragment(list)| DataFile::List(list)).collect()
    }

    fn named(&self, meta: FileMeta) -> DataFile {
        self.context.store.named(meta)
    }

    fn each_list(&self, visit: &mut dyn FnMut(FilePart<'_>)) {
        self.tree.for_each_node(&mut |_, node| {
            for list in node.lists() {
                let file = DataFile::List(Arc::clone(&list.fragment.0));
                let (range, portion) = (node.range(), list.portion());
                visit(FilePart { file, range, portion, is_bottom: list.is_bottom });
            }
        });
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Ok(ids) = self.tree.map(|fragment| Ok(tree::Fragment::id(fragment))) {
            ids.encode(&mut bytes);
        }
        bytes
    }

    fn describe(&self) -> Description {
        describe::describe(&self.tree)
    }
}

fn cause_of(kind: JobKind) -> Cause {
    match kind {
        JobKind::Spill => Cause::Spill,
        JobKind::SlowSplit => Cause::SlowSplit,
        JobKind::Merge => Cause::Merge,
    }
}

fn encode(edit: &Edit<Fragment>) -> Vec<u8> {
    let mut bytes = Vec::new();
    edit.map(tree::Fragment::id).encode(&mut bytes);
    bytes
}
