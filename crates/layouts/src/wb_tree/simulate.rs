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
use crate::inventory::{Inventory, Keys, ListModel};
use crate::seam::LevelDescription;
use crate::simulation::{Path, Paths, Simulated, Sums};

/// A WB tree of one table that nobody fills.
pub struct SimulatedTree {
    tree: Tree<Counted>,
    inventory: Inventory,
    keys: Keys,
    free_edits: u64,
}

impl SimulatedTree {
    /// An empty tree.
    pub fn new(options: TreeOptions, lists: ListModel, keys: Keys) -> Result<Self> {
        options.validate()?;
        let (tree, inventory) = (Tree::new(options), Inventory::new(lists));
        Ok(Self { tree, inventory, keys, free_edits: 0 })
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

    fn refer(&mut self, changes: Vec<(Counted, i32)>) {
        changes.into_iter().for_each(|(file, by)| self.inventory.refer(file.number(), by));
    }

    fn walk(&self, node: &Node<Counted>, mut path: Path, sums: &mut Sums) {
        let share = share(node);
        for list in node.lists().iter().rev() {
            path.pass(list.records as f64 / share, list.fragment.coverage());
        }
        node.children().iter().for_each(|child| self.walk(child, path, sums));
        if node.is_leaf() {
            sums.add(&path, share, self.keys);
        }
    }
}

impl Simulated for SimulatedTree {
    fn inventory(&self) -> &Inventory {
        &self.inventory
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
        let (written, coverage) = self.keys.collapse(records);
        let fragment = Counted::new(self.inventory.next_id(), coverage);
        self.inventory.write(Cause::Flush, records, written);
        let outcome = Outcome::counted_flush(&self.tree, fragment, self.portion(written));
        self.commit(outcome)?;
        let before: u64 = self.inventory.traffic().bytes_written.iter().sum();
        while let Some(work) = self.tree.next_work(&BTreeSet::new()) {
            match work {
                Work::Now(edit) => {
                    self.free_edits += 1;
                    let changes = self.tree.apply_in_place(&edit)?;
                    self.refer(changes);
                }
                Work::Job(plan) => {
                    let node = self.tree.find(&plan.node).ok_or_else(|| Error::bug("a plan of no node"))?;
                    let (cause, lists) = (cause_of(plan.kind), &node.lists()[..plan.lists]);
                    lists.iter().for_each(|list| self.inventory.read(cause, list.records));
                    let read: u64 = lists.iter().map(|list| list.records).sum();
                    let (union, sum) = Counted::union(lists.iter().map(|list| &list.fragment));
                    let written = if sum == 0.0 { read } else { (read as f64 * union / sum).round() as u64 };
                    let fragment = Counted::new(self.inventory.next_id(), union);
                    self.inventory.write(cause, read, written);
                    let outcome = Outcome::counted(&self.tree, &plan, fragment, self.portion(written))?;
                    self.commit(outcome)?;
                }
            }
        }
        let after: u64 = self.inventory.traffic().bytes_written.iter().sum();
        Ok(after - before)
    }

    fn tree_memory_bytes(&self) -> u64 {
        let mut bytes = self.inventory.holdings().files * size_of::<ListFile>() as u64;
        self.tree.for_each_node(&mut |_, node| {
            bytes += (size_of::<Node<Fragment>>() + node.lists().len() * size_of::<List<Fragment>>()) as u64;
        });
        bytes
    }

    fn paths(&self) -> Paths {
        let mut sums = Sums::default();
        self.walk(self.tree.root(), Path::new(self.inventory.wasted_reads()), &mut sums);
        sums.finish()
    }
}

/// A node's share of all places.
fn share(node: &Node<Counted>) -> f64 {
    let range = node.range();
    let high = range.high.as_ref().map_or(2.0f64.powi(64), |high| high.prefix as f64);
    (high - range.low.prefix as f64) / 2.0f64.powi(64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use forebay_base::Order;
    use forebay_base::codec::Codec;
    use forebay_store::list::ListOptions;

    use super::*;

    const RECORD_BYTES: u64 = 16;

    fn lists(filter_memory_bytes_max: u64) -> ListModel {
        let order = Order::Hashed { seed: 0 };
        let options = ListOptions { order, filter_bits_per_key: 10, codec: Codec::None };
        ListModel { options, record_bytes: RECORD_BYTES, key_bytes: 8, filter_memory_bytes_max }
    }

    fn options(lists_max: usize) -> TreeOptions {
        TreeOptions { node_bytes: 1 << 20, fan_out: 8, lists_max, ..TreeOptions::default() }
    }

    #[test]
    fn files_live_as_long_as_lists_refer_to_them() {
        for (lists_max, keys) in [(16, Keys::Unique), (2, Keys::Unique), (16, Keys::DrawnFrom(300_000))] {
            let mut tree = SimulatedTree::new(options(lists_max), lists(u64::MAX), keys).unwrap();
            for _ in 0..100 {
                tree.flush(50_000).unwrap();
                tree.check().unwrap();
                let live: BTreeSet<u32> = tree.tree.fragments().iter().map(Counted::number).collect();
                let holdings = tree.inventory().holdings();
                assert_eq!(holdings.files, live.len() as u64);
                assert!(holdings.file_bytes <= tree.inventory().file_bytes_max());
            }
            assert!(tree.levels().len() >= 2, "{:?}", tree.levels());
            let traffic = tree.inventory().traffic();
            assert_eq!((traffic.jobs[0], traffic.records_read[0]), (100, 5_000_000));
        }
    }

    #[test]
    fn lookups_cost_a_page_for_each_list_without_a_filter() {
        let with = |filter_memory_bytes_max| {
            let mut tree =
                SimulatedTree::new(options(64), lists(filter_memory_bytes_max), Keys::Unique).unwrap();
            (0..30).for_each(|_| assert!(tree.flush(40_000).is_ok()));
            tree.paths()
        };
        let (none, all) = (with(0), with(u64::MAX));
        assert_eq!(none.lists_mean, all.lists_mean);
        assert!(none.reads_absent > 0.99 * none.lists_mean, "{none:?}");
        assert!(all.reads_absent < 0.02 * all.lists_mean && all.reads_present < 1.2, "{all:?}");
        assert!(
            none.reads_present > none.lists_mean / 3.0 && none.reads_present < none.lists_mean,
            "{none:?}"
        );
    }

    #[test]
    fn keys_that_repeat_are_counted_once() {
        let mut tree = SimulatedTree::new(options(64), lists(u64::MAX), Keys::DrawnFrom(100_000)).unwrap();
        (0..40).for_each(|_| assert!(tree.flush(50_000).is_ok()));
        let records: u64 = tree.levels().iter().map(|level| level.records).sum();
        let keys = tree.paths().keys;
        assert!((99_000.0..100_001.0).contains(&keys), "{keys} keys");
        assert!(records as f64 <= 2.2 * keys, "{records} records of {keys} keys");
    }
}
