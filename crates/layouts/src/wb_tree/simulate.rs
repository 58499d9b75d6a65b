//! A WB tree over counts: the tree's own planning, settling and applying, with jobs that move no records.
//!
//! **Model:** every write buffer's records are spread evenly over all prefixes, and a job is done before the
//! next write buffer arrives.

use std::collections::BTreeSet;

use forebay_base::{Error, Result};
use forebay_buffer_tree::{Counted, List, Node, Outcome, Portion, Tree, TreeOptions, Work};
use forebay_store::{Cause, ListFile};

use super::{cause_of, describe};
use crate::files::Fragment;
use crate::inventory::{Filters, Inventory, Keys, ListModel};
use crate::seam::LevelDescription;
use crate::simulation::{Path, Paths, Simulated, Sums};

/// A WB tree of one table that nobody fills.
pub struct SimulatedTree {
    pub(super) tree: Tree<Counted>,
    inventory: Inventory,
    keys: Keys,
    free_edits: u64,
}

impl SimulatedTree {
    /// An empty tree.
    pub fn new(options: TreeOptions, lists: ListModel, keys: Keys) -> Result<Self> {
        options.validate()?;
        Ok(Self::of(Tree::new(options), lists, keys))
    }

    pub(super) fn of(tree: Tree<Counted>, lists: ListModel, keys: Keys) -> Self {
        Self { tree, inventory: Inventory::new(lists), keys, free_edits: 0 }
    }

    fn portion(&self, records: u64) -> Portion {
        Portion { bytes: records * self.inventory.model().record_bytes, records }
    }

    fn commit(&mut self, outcome: Outcome<Counted>) -> Result<()> {
        let edit = self.tree.rebase(outcome)?;
        let changes = self.tree.apply_in_place(&edit)?;
        self.refer(changes);
        Ok(())
    }

    /// Does what is planned, as if it were done at once.
    pub(super) fn work(&mut self, work: Work<Counted>) -> Result<()> {
        let plan = match work {
            Work::Now(edit) => {
                self.free_edits += 1;
                let changes = self.tree.apply_in_place(&edit)?;
                self.refer(changes);
                return Ok(());
            }
            Work::Job(plan) => plan,
        };
        let node = self.tree.find(&plan.node).ok_or_else(|| Error::bug("a plan of no node"))?;
        let (cause, lists) = (cause_of(plan.kind), &node.lists()[..plan.lists]);
        lists.iter().for_each(|list| self.inventory.read(cause, list.records));
        let read: u64 = lists.iter().map(|list| list.records).sum();
        let (union, sum) = Counted::union(lists.iter().map(|list| &list.fragment));
        let written = if sum == 0.0 { read } else { (read as f64 * union / sum).round() as u64 };
        debug_assert!(written <= read, "a job makes no record");
        let fragment = Counted::new(self.inventory.next_id(), union);
        self.inventory.write(cause, read, written);
        let outcome = Outcome::counted(&self.tree, &plan, fragment, self.portion(written))?;
        self.commit(outcome)
    }

    /// Takes in a write buffer of this many records, and does all that it calls for: `each` is told beforehand.
    pub(super) fn flush_in(
        &mut self,
        records: u64,
        each: &mut dyn FnMut(&Tree<Counted>, &Work<Counted>),
    ) -> Result<u64> {
        let (written, coverage) = self.keys.collapse(records);
        let fragment = Counted::new(self.inventory.next_id(), coverage);
        self.inventory.write(Cause::Flush, records, written);
        let outcome = Outcome::counted_flush(&self.tree, fragment, self.portion(written));
        self.commit(outcome)?;
        let before: u64 = self.inventory.traffic().bytes_written.iter().sum();
        while let Some(work) = self.tree.next_work(&BTreeSet::new()) {
            each(&self.tree, &work);
            self.work(work)?;
        }
        let after: u64 = self.inventory.traffic().bytes_written.iter().sum();
        Ok(after - before)
    }

    fn refer(&mut self, changes: Vec<(Counted, i32)>) {
        changes.into_iter().for_each(|(file, by)| self.inventory.refer(file.number(), by));
    }

    fn walk(&self, node: &Node<Counted>, mut path: Path, filters: &Filters, sums: &mut Sums) {
        let share = share(node);
        for list in node.lists().iter().rev() {
            let wasted = filters.wasted_reads(list.fragment.number());
            path.pass(list.records as f64 / share, list.fragment.coverage(), wasted);
        }
        node.children().iter().for_each(|child| self.walk(child, path, filters, sums));
        if node.is_leaf() {
            sums.add(&path, share, self.keys);
        }
    }
}

impl Simulated for SimulatedTree {
    fn lag(&mut self, _: u64) {}

    fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    fn file_bytes(&self) -> u64 {
        self.inventory.holdings().file_bytes
    }

    fn file_bytes_max(&self) -> u64 {
        self.inventory.file_bytes_max()
    }

    fn free_edits(&self) -> u64 {
        self.free_edits
    }

    fn levels(&self) -> Vec<LevelDescription> {
        describe::levels(&self.tree)
    }

    fn check(&self) -> Result<(), String> {
        self.tree.check()
    }

    fn flush(&mut self, records: u64) -> Result<u64> {
        self.flush_in(records, &mut |_, _| {})
    }

    fn tree_memory_bytes(&self) -> u64 {
        let mut bytes = self.inventory.holdings().files * size_of::<ListFile>() as u64;
        self.tree.for_each_node(&mut |_, node| {
            bytes += (size_of::<Node<Fragment>>() + node.lists().len() * size_of::<List<Fragment>>()) as u64;
        });
        bytes
    }

    fn filters(&self) -> Filters {
        let mut parts = Vec::new();
        self.tree.for_each_node(&mut |_, node| {
            let share = share(node);
            parts.extend(node.lists().iter().map(|list| (list.fragment.number(), share)));
        });
        self.inventory.filters(parts.into_iter())
    }

    fn paths(&self) -> Paths {
        let mut sums = Sums::default();
        self.walk(self.tree.root(), Path::new(), &self.filters(), &mut sums);
        sums.finish()
    }
}

/// A node's share of all places.
fn share(node: &Node<Counted>) -> f64 {
    let range = node.range();
    let high = range.high.as_ref().map_or(2.0f64.powi(64), |high| high.prefix as f64);
    (high - range.low.prefix as f64) / 2.0f64.powi(64)
}
