//! A tree of counts against the tree that moves records, and against itself with nothing remembered.

use std::collections::BTreeSet;

use forebay_base::record::Kind;
use forebay_base::{LastWriterWins, Order, Range};
use forebay_buffer_tree::{Counted, Edit, JobKind, JobPlan, Outcome, Portion, Tree, TreeOptions, Work};

use crate::harness::Harness;

const RECORD_BYTES: u64 = 32;

/// Drives a tree of counts.
struct Model {
    tree: Tree<Counted>,
    fragments: u32,
    written_bytes: u64,
    keys: Option<u64>,
}

impl Model {
    fn new(options: TreeOptions, keys: Option<u64>) -> Self {
        Self { tree: Tree::new(options), fragments: 0, written_bytes: 0, keys }
    }

    fn fragment(&mut self, records: u64, coverage: f64) -> (Counted, Portion) {
        self.fragments += 1;
        self.written_bytes += records * RECORD_BYTES;
        (Counted::new(self.fragments, coverage), Portion { bytes: records * RECORD_BYTES, records })
    }

    fn spill(&mut self, records: u64) {
        let coverage = self
            .keys
            .map_or(0.0, |keys| 1.0 - (1.0 - 1.0 / keys as f64).powi(i32::try_from(records).unwrap()));
        let records = self.keys.map_or(records, |keys| (keys as f64 * coverage) as u64);
        let (fragment, whole) = self.fragment(records, coverage);
        let outcome = Outcome::counted_flush(&self.tree, fragment, whole);
        self.apply(&self.tree.rebase(outcome).unwrap());
    }

    fn step(&mut self) -> bool {
        let edit = match self.tree.next_work(&BTreeSet::new()) {
            None => return false,
            Some(Work::Now(edit)) => edit,
            Some(Work::Job(plan)) => self.outcome(&plan),
        };
        self.apply(&edit);
        true
    }

    fn outcome(&mut self, plan: &JobPlan) -> Edit<Counted> {
        let node = self.tree.find(&plan.node).unwrap();
        let lists = &node.lists()[..plan.lists];
        let (union, sum) = Counted::union(lists.iter().map(|list| &list.fragment));
        let records: u64 = lists.iter().map(|list| list.records).sum();
        let kept = if sum > 0.0 { (records as f64 * union / sum) as u64 } else { records };
        let (fragment, whole) = self.fragment(kept, union);
        let outcome = Outcome::counted(&self.tree, plan, fragment, whole).unwrap();
        self.tree.rebase(outcome).unwrap()
    }

    fn apply(&mut self, edit: &Edit<Counted>) {
        self.tree.apply_in_place(edit).unwrap();
    }

    /// Nodes, lists and records.
    fn counts(&self) -> (u64, u64, u64) {
        let mut counts = (0, 0, 0);
        self.tree.for_each_node(&mut |_, node| {
            counts = (counts.0 + 1, counts.1 + node.lists().len() as u64, counts.2 + node.records());
        });
        counts
    }
}

fn near(told: u64, is: u64) -> bool {
    told.abs_diff(is) as f64 <= 0.15 * is as f64
}

#[test]
fn counting_comes_to_what_moving_records_comes_to() {
    let usual = TreeOptions { node_bytes: 16_000, fan_out: 8, lists_max: 24, ..TreeOptions::default() };
    for options in [
        usual,
        TreeOptions { fast_per_slow: 0, ..usual },
        TreeOptions { lists_max: 6, fast_per_slow: 2, ..usual },
        TreeOptions { fan_out: 64, ..usual },
    ] {
        let mut harness = Harness::new(Order::Hashed { seed: 5 }, LastWriterWins, options);
        let mut model = Model::new(options, None);
        for key in 0..40_000u64 {
            harness.write(Kind::Put, key.to_be_bytes().to_vec(), vec![7; 22]);
            if key % 500 == 499 {
                harness.seal();
                harness.finish();
                model.spill(500);
                while model.step() {}
            }
        }
        let (told, is) = (model.written_bytes, harness.store.traffic.written_bytes.get());
        let (mut nodes, mut records) = (0, 0);
        harness.tree.for_each_node(&mut |_, node| (nodes, records) = (nodes + 1, records + node.records()));
        println!("{options:?}: {told} bytes counted, {is} written; {:?}, {nodes} nodes", model.counts());
        assert!(near(told, is), "{told} bytes counted, {is} written, {options:?}");
        assert!(near(model.counts().0, nodes), "{:?} counted, {nodes} nodes, {options:?}", model.counts());
        assert_eq!(model.counts().2, records);
        assert_eq!(model.tree.height(), harness.tree.height());
    }
}

#[test]
fn a_tree_of_counts_is_sound_and_plans_as_if_it_remembered_nothing() {
    let usual = TreeOptions { node_bytes: 64_000, fan_out: 4, lists_max: 12, ..TreeOptions::default() };
    for (options, keys) in [
        (usual, None),
        (TreeOptions { fast_per_slow: 0, lists_max: 1, ..usual }, None),
        (TreeOptions { fan_out: 2, repeats_max: 1.3, ..usual }, Some(36_000)),
    ] {
        let mut model = Model::new(options, keys);
        for _ in 0..60 {
            model.spill(1600);
            loop {
                model.tree.check().unwrap();
                let fresh = model.tree.map(|fragment| Ok(*fragment)).unwrap();
                assert_eq!(model.tree.debt_bytes(), fresh.debt_bytes());
                assert_eq!(model.tree.next_work(&BTreeSet::new()), fresh.next_work(&BTreeSet::new()));
                if !model.step() {
                    break;
                }
            }
        }
        let (_, _, records) = model.counts();
        assert!(model.tree.height() > 2, "{} levels", model.tree.height());
        let all = keys.map_or(60 * 1600, |keys| (keys as f64 * options.repeats_max * 1.2) as u64);
        assert!(records <= all, "{records} records, {all} expected at most");
    }
}

/// A root that got a list between any two steps was spilled at each of them, and no leaf was ever reached.
#[test]
fn a_round_comes_to_its_end_though_lists_keep_coming_from_above() {
    let options = TreeOptions { node_bytes: 64_000, fan_out: 4, lists_max: 12, ..TreeOptions::default() };
    let mut model = Model::new(options, None);
    for _ in 0..60 {
        model.spill(1600);
        while model.step() {}
    }
    assert!(model.tree.height() > 2, "{} levels", model.tree.height());
    let (mut from, mut steps, mut merged) = (None, 0, 0);
    loop {
        model.spill(100);
        let Some((plan, then)) = model.tree.next_reclaim(&BTreeSet::new(), from.as_ref(), &Range::all())
        else {
            break;
        };
        merged += usize::from(plan.kind == JobKind::Merge);
        let edit = model.outcome(&plan);
        model.apply(&edit);
        steps += 1;
        assert!(steps < 1000, "{merged} leaves were merged, and there is no end");
        from = then;
        if from.is_none() {
            break;
        }
    }
    assert!(merged > 10, "{merged} of {steps} steps");
}
