//! An engine in small: a write buffer, flushes and jobs in flight, and at every edit a twin that recovers
//! from the edit's bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use forebay_base::combine::{Combine, Depth, Fold};
use forebay_base::merge::{Collapse, Cursor, Direction, LoserTree, Merge};
use forebay_base::record::Kind;
use forebay_base::wire::Reader;
use forebay_base::{Bound, Order, Range};
use forebay_buffer_tree::{
    Counts, Edit, Fragment, Job, JobPlan, JobStep, NodeId, Outcome, ReadTerms, Tree, TreeOptions, Work,
};

use crate::memory::{Buffer, Entry, Handle, MemoryStore, Walk, Writer};

type NodeJob<R> = Job<Merge<Walk>, Writer, R>;

/// A flush; its outcome waits for those before it.
struct Flush<R> {
    buffer: Buffer,
    job: Job<Buffer, Writer, R>,
    outcome: Option<Outcome<Handle>>,
}

/// What was done, by kind.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    pub(crate) edits: u64,
    pub(crate) spills: u64,
    pub(crate) fast_splits: u64,
    pub(crate) slow_splits: u64,
    pub(crate) merges: u64,
    pub(crate) inner_splits: u64,
    pub(crate) growths: u64,
    pub(crate) steps: u64,
    /// Edits whose tree had changed in their way since they were planned.
    pub(crate) late: u64,
    pub(crate) height_max: usize,
}

pub(crate) struct Harness<R> {
    pub(crate) order: Order,
    pub(crate) rule: R,
    pub(crate) store: MemoryStore,
    pub(crate) tree: Tree<Handle>,
    twin: Tree<u64>,
    /// As the twin, but shares nothing with any other tree.
    alone: Tree<u64>,
    references: BTreeMap<u64, i64>,
    pub(crate) written: Vec<Entry>,
    spills: VecDeque<Flush<R>>,
    pub(crate) jobs: Vec<(NodeJob<R>, Tree<Handle>)>,
    pub(crate) busy: BTreeSet<NodeId>,
    pub(crate) tally: Tally,
    /// The twin before each edit, and the edit.
    pub(crate) history: Vec<(Tree<u64>, Edit<u64>)>,
}

fn ids(tree: &Tree<Handle>) -> Vec<u8> {
    let mut bytes = Vec::new();
    tree.map(|fragment| Ok(fragment.id())).unwrap().encode(&mut bytes);
    bytes
}

impl<R: Combine + Copy> Harness<R> {
    pub(crate) fn new(order: Order, rule: R, options: TreeOptions) -> Self {
        Self {
            order,
            rule,
            store: MemoryStore::new(order),
            tree: Tree::new(options),
            twin: Tree::new(options),
            alone: Tree::new(options),
            references: BTreeMap::new(),
            written: Vec::new(),
            spills: VecDeque::new(),
            jobs: Vec::new(),
            busy: BTreeSet::new(),
            tally: Tally::default(),
            history: Vec::new(),
        }
    }

    pub(crate) fn write(&mut self, kind: Kind, key: Vec<u8>, value: Vec<u8>) {
        self.written.push(Entry { prefix: self.order.prefix(&key), key, kind, value });
    }

    pub(crate) fn flushes(&self) -> usize {
        self.spills.len()
    }

    pub(crate) fn seal(&mut self) {
        let buffer = Buffer::seal(std::mem::take(&mut self.written));
        let expected = buffer.expected();
        let job = Job::flush(&self.tree, buffer.clone(), &expected, self.rule, &self.store).unwrap();
        self.spills.push_back(Flush { buffer, job, outcome: None });
    }

    /// Steps one flush, and rebases those that are done, oldest first.
    pub(crate) fn step_root(&mut self, index: usize, bytes_max: usize) {
        self.tally.steps += 1;
        let spill = &mut self.spills[index];
        if spill.outcome.is_none()
            && let JobStep::Done(outcome) = spill.job.step(bytes_max).unwrap()
        {
            spill.outcome = Some(outcome);
        }
        while let Some(outcome) = self.spills.front_mut().and_then(|front| front.outcome.take()) {
            self.spills.pop_front();
            let edit = self.tree.rebase(outcome).unwrap();
            self.apply(&edit);
        }
    }

    pub(crate) fn start(&mut self, plan: &JobPlan) {
        assert!(self.busy.insert(plan.node.id), "busy nodes are left alone");
        let job = Job::start(&self.tree, plan, self.order, self.rule, &self.store).unwrap();
        self.jobs.push((job, self.tree.clone()));
    }

    /// Plans once; whether there was anything.
    pub(crate) fn plan(&mut self) -> bool {
        match self.tree.next_work(&self.busy) {
            Some(Work::Now(edit)) => self.apply(&edit),
            Some(Work::Job(plan)) => self.start(&plan),
            None => return false,
        }
        true
    }

    /// Plans a merge for the sake of lookups; whether there was one for this much.
    pub(crate) fn read_compact(&mut self, is_idle: bool, budget: u64) -> bool {
        let planned = self
            .tree
            .next_read_compaction(&self.busy, &ReadTerms { is_idle, budget, cost: &|portion| portion.bytes });
        planned.map(|(plan, _)| self.start(&plan)).is_some()
    }

    pub(crate) fn step_job(&mut self, index: usize, bytes_max: usize) {
        self.tally.steps += 1;
        let JobStep::Done(outcome) = self.jobs[index].0.step(bytes_max).unwrap() else { return };
        let (job, before) = self.jobs.swap_remove(index);
        let at = outcome.node().clone();
        let (then, now) = (before.find(&at).unwrap(), self.tree.find(&at).unwrap());
        let changed =
            then.lists().len() != now.lists().len() || then.children().len() != now.children().len();
        self.tally.late += u64::from(changed);
        let edit = self.tree.rebase(outcome).unwrap();
        self.apply(&edit);
        assert!(self.busy.remove(&job.node().id));
    }

    /// Does all that is to do, one thing after another.
    pub(crate) fn finish(&mut self) {
        loop {
            if !self.spills.is_empty() {
                self.step_root(0, usize::MAX);
            } else if !self.jobs.is_empty() {
                self.step_job(0, usize::MAX);
            } else if !self.plan() {
                return;
            }
        }
    }

    pub(crate) fn compact(&mut self) {
        self.finish();
        while let Some(plan) = self.tree.next_full_compaction(&self.busy) {
            self.start(&plan);
            self.finish();
        }
    }

    pub(crate) fn apply(&mut self, edit: &Edit<Handle>) {
        let (tree, changes) = self.tree.apply(edit).unwrap();
        self.count(edit);
        if self.looks_at_all() {
            tree.check().unwrap();
        }
        self.recover(edit, &tree);
        self.refer(&tree, changes);
        self.tree = tree;
        self.tally.height_max = self.tally.height_max.max(self.tree.height());
    }

    fn looks_at_all(&self) -> bool {
        self.tally.edits < 500 || self.tally.edits.is_multiple_of(16)
    }

    fn count(&mut self, edit: &Edit<Handle>) {
        let tally = &mut self.tally;
        tally.edits += 1;
        *match edit {
            Edit::Spill { .. } => &mut tally.spills,
            Edit::FastSplit { .. } => &mut tally.fast_splits,
            Edit::Rewrite { split: Some(_), .. } => &mut tally.slow_splits,
            Edit::Rewrite { .. } => &mut tally.merges,
            Edit::SplitInner { .. } => &mut tally.inner_splits,
            Edit::Grow { .. } => &mut tally.growths,
        } += 1;
    }

    /// Recovery equals live work: through the edit's bytes, and through the tree's. All of a tree is compared
    /// while it is young, and later now and then, for that takes as long as the tree is large.
    fn recover(&mut self, edit: &Edit<Handle>, live: &Tree<Handle>) {
        let edit = edit.map(Fragment::id);
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        let mut reader = Reader::new(&bytes);
        let read = Edit::decode(&mut reader).expect("an edit reads back");
        assert_eq!((&read, reader.remaining()), (&edit, 0));
        self.alone.apply_in_place(&read).unwrap();
        let after = self.twin.apply(&read).unwrap().0;
        self.history.push((std::mem::replace(&mut self.twin, after), read));
        if !self.looks_at_all() {
            return;
        }
        let (live, mut twin) = (ids(live), Vec::new());
        self.twin.encode(&mut twin);
        assert!(live == twin, "recovery differs from live work after {edit:?}");
        twin.clear();
        self.alone.encode(&mut twin);
        assert!(live == twin, "an edit in place differs from one that copies after {edit:?}");
        let again = Tree::decode(&mut Reader::new(&live)).expect("a tree reads back");
        twin.clear();
        again.encode(&mut twin);
        assert!(live == twin, "a tree reads back as it was");
    }

    fn refer(&mut self, tree: &Tree<Handle>, changes: Vec<(Handle, i32)>) {
        let mut touched = BTreeSet::new();
        for (fragment, change) in changes {
            assert!(touched.insert(fragment.id()), "one entry for each fragment");
            *self.references.entry(fragment.id()).or_default() += i64::from(change);
        }
        if !self.looks_at_all() {
            return;
        }
        self.references.retain(|_, count| *count != 0);
        let mut recount = BTreeMap::new();
        tree.fragments().iter().for_each(|fragment| *recount.entry(fragment.id()).or_default() += 1);
        assert_eq!(self.references, recount, "reference counts");
    }

    pub(crate) fn check_content(&self) {
        self.tree.check_content(&self.store, Counts::Exact).unwrap();
    }

    /// The value of a key: buffers, then the path's lists, newest first.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let at = self.order.bound(key);
        let only = Range {
            low: at.clone(),
            high: Some(Bound { prefix: at.prefix, key: [key, &[0]].concat().into() }),
        };
        let mut fold = Fold::default();
        let mut sources = self.buffers(&only);
        for node in self.tree.path(at.prefix, key) {
            assert!(node.range().contains(at.prefix, key));
            sources.extend(node.lists().iter().rev().map(|list| self.walk(&list.fragment, &only)));
        }
        for mut source in sources {
            while source.prefix().is_some() {
                if !fold.add(&self.rule, &source.record()) {
                    return fold.finish(key, Depth::Bottom).map(|record| record.value.to_vec());
                }
                source.advance().unwrap();
            }
        }
        fold.finish(key, Depth::Bottom).map(|record| record.value.to_vec())
    }

    fn walk(&self, fragment: &Handle, range: &Range) -> Box<dyn Cursor> {
        Box::new(self.store.walk(fragment, range))
    }

    fn buffers(&self, range: &Range) -> Vec<Box<dyn Cursor>> {
        let active = Buffer::seal(self.written.clone());
        let sealed = self.spills.iter().rev().map(|spill| &spill.buffer);
        std::iter::once(&active)
            .chain(sealed)
            .map(|buffer| Box::new(buffer.inside(range)) as Box<dyn Cursor>)
            .collect()
    }

    /// Everything in order, leaf by leaf.
    pub(crate) fn scan(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        let mut low = Some(Bound::least());
        while let Some(at) = low {
            let (path, range) = self.tree.leaf_path(&at);
            assert_eq!(range.low, at);
            let mut sources = self.buffers(&range);
            for node in &path {
                sources.extend(node.lists().iter().rev().map(|list| self.walk(&list.fragment, &range)));
            }
            let merge = LoserTree::new(sources, Direction::Forward);
            let mut collapse = Collapse::new(merge, self.rule, Depth::Bottom);
            let mut keep = |_, record: &forebay_base::Record<'_>| {
                found.push((record.key.to_vec(), record.value.to_vec()));
                Ok(())
            };
            collapse.run(usize::MAX, &mut keep).unwrap();
            low = range.high;
        }
        found
    }

    /// The leaves from the end are the leaves from the start.
    pub(crate) fn check_paths(&self) {
        let mut leaves = Vec::new();
        self.tree.for_each_node(&mut |_, node| leaves.extend(node.is_leaf().then(|| node.id())));
        let mut backward = Vec::new();
        let mut at = None;
        while let Some((path, range)) = self.tree.leaf_path_before(at.as_ref()) {
            assert_eq!(path.len(), self.tree.height());
            backward.extend(path.last().map(|leaf| leaf.id()));
            at = Some(range.low);
        }
        backward.reverse();
        assert_eq!(leaves, backward);
    }
}
