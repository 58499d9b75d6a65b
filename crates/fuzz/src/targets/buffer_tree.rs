//! The buffer tree, as a tree of counts: flushes and jobs in flight, each rebased onto the tree as it is by then. No
//! record is lost or made, references are what a recount says, and a twin recovers from the edits' bytes.

use std::collections::{BTreeMap, BTreeSet};

use forebay_base::wire::Reader;
use forebay_buffer_tree::{
    Counted, Edit, Fragment, JobPlan, NodeId, Outcome, Portion, Tree, TreeOptions, Work,
};
use forebay_env::Rng;

use crate::draws::one_of;

const RECORD_BYTES: u64 = 10;

/// A tree, and what is on its way to it.
struct Life {
    tree: Tree<Counted>,
    twin: Tree<u64>,
    busy: BTreeSet<NodeId>,
    flushes: Vec<Outcome<Counted>>,
    jobs: Vec<(NodeId, Outcome<Counted>)>,
    references: BTreeMap<u64, i64>,
    fragments: u32,
    /// Of flushes on their way, and in the tree.
    flushing: Vec<u64>,
    records: u64,
    /// Each edit, and the tree before it.
    history: Vec<(Tree<u64>, Edit<u64>)>,
}

pub(crate) fn fuzz(rng: &mut Rng) {
    history(rng);
}

/// A life, edit by edit.
pub(crate) fn history(rng: &mut Rng) -> Vec<(Tree<u64>, Edit<u64>)> {
    let options = TreeOptions {
        node_bytes: one_of(rng, &[200, 1000, 5000]),
        fan_out: one_of(rng, &[2, 4, 8]),
        fast_per_slow: one_of(rng, &[0, 1, 8]),
        lists_max: one_of(rng, &[1, 3, 12]),
        repeats_max: 2.0,
    };
    let mut life = Life::new(options);
    for _ in 0..300 {
        life.act(rng);
    }
    while let Some(plan) = life.finish() {
        life.start(&plan);
    }
    life.tree.for_each_node(&mut |_, node| assert!(node.is_fully_merged(), "a compaction leaves one list"));
    life.history
}

impl Life {
    fn new(options: TreeOptions) -> Self {
        Self {
            tree: Tree::new(options),
            twin: Tree::new(options),
            busy: BTreeSet::new(),
            flushes: Vec::new(),
            jobs: Vec::new(),
            references: BTreeMap::new(),
            fragments: 0,
            flushing: Vec::new(),
            records: 0,
            history: Vec::new(),
        }
    }

    fn act(&mut self, rng: &mut Rng) {
        match rng.index(5) {
            0 if self.flushes.len() < 3 => self.flush(1 + rng.below(60)),
            1 if !self.flushes.is_empty() => self.finish_flush(),
            2 | 3 if !self.jobs.is_empty() => self.finish_job(rng.index(self.jobs.len())),
            _ => self.plan(),
        }
    }

    /// Does all that is to do; what a full compaction would do next.
    fn finish(&mut self) -> Option<JobPlan> {
        loop {
            let before = self.history.len();
            (0..self.flushes.len()).for_each(|_| self.finish_flush());
            self.plan();
            (0..self.jobs.len()).for_each(|_| self.finish_job(0));
            if self.history.len() == before {
                return self.tree.next_full_compaction(&self.busy);
            }
        }
    }

    fn fragment(&mut self, records: u64) -> (Counted, Portion) {
        self.fragments += 1;
        (Counted::new(self.fragments, 0.0), Portion { bytes: records * RECORD_BYTES, records })
    }

    fn flush(&mut self, records: u64) {
        let (fragment, whole) = self.fragment(records);
        self.flushes.push(Outcome::counted_flush(&self.tree, fragment, whole));
        self.flushing.push(records);
    }

    /// Flushes enter the tree in their order.
    fn finish_flush(&mut self) {
        let (outcome, records) = (self.flushes.remove(0), self.flushing.remove(0));
        self.records += records;
        let edit = self.tree.rebase(outcome).expect("the root is there");
        self.apply(&edit);
    }

    fn plan(&mut self) {
        match self.tree.next_work(&self.busy) {
            None => {}
            Some(Work::Now(edit)) => self.apply(&edit),
            Some(Work::Job(plan)) => self.start(&plan),
        }
    }

    fn start(&mut self, plan: &JobPlan) {
        let node = self.tree.find(&plan.node).expect("what is planned is there");
        let records = node.lists()[..plan.lists].iter().map(|list| list.records).sum();
        let (fragment, whole) = self.fragment(records);
        let outcome = Outcome::counted(&self.tree, plan, fragment, whole).expect("it is as it was planned");
        assert!(self.busy.insert(plan.node.id), "a busy node is left alone");
        self.jobs.push((plan.node.id, outcome));
    }

    fn finish_job(&mut self, number: usize) {
        let (node, outcome) = self.jobs.remove(number);
        let edit = self.tree.rebase(outcome).expect("a busy node stays");
        self.apply(&edit);
        self.busy.remove(&node);
    }

    fn apply(&mut self, edit: &Edit<Counted>) {
        let (tree, changes) = self.tree.apply(edit).expect("it was made for this tree");
        assert_eq!(tree.check(), Ok(()));
        let mut records = 0;
        tree.for_each_node(&mut |_, node| records += node.records());
        assert_eq!(records, self.records, "no record is lost or made");
        for (fragment, change) in changes {
            *self.references.entry(fragment.id()).or_default() += i64::from(change);
        }
        self.references.retain(|_, count| *count != 0);
        let mut recount = BTreeMap::new();
        tree.fragments().iter().for_each(|fragment| *recount.entry(fragment.id()).or_default() += 1);
        assert_eq!(self.references, recount, "references");
        self.recover(edit, &tree);
        self.tree = tree;
    }

    /// What is recovered from bytes is what there is.
    fn recover(&mut self, edit: &Edit<Counted>, live: &Tree<Counted>) {
        let mut bytes = Vec::new();
        edit.map(Fragment::id).encode(&mut bytes);
        let edit = Edit::decode(&mut Reader::new(&bytes)).expect("an edit reads back");
        let twin = self.twin.apply(&edit).expect("it fits the twin too").0;
        let live = live.map(|fragment| Ok(fragment.id())).expect("names are no reads");
        assert_eq!(encoded(&live), encoded(&twin), "recovery differs from live work");
        let again = Tree::decode(&mut Reader::new(&encoded(&twin))).expect("a tree reads back");
        assert_eq!(encoded(&again), encoded(&twin));
        self.history.push((std::mem::replace(&mut self.twin, twin), edit));
    }
}

pub(crate) fn encoded(tree: &Tree<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    tree.encode(&mut bytes);
    bytes
}
