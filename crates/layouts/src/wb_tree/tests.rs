//! The WB tree over counts: its files, what lookups meet in it, and what it decides.

use std::collections::BTreeSet;

use forebay_base::Order;
use forebay_base::codec::Codec;
use forebay_buffer_tree::{Counted, TreeOptions};
use forebay_store::list::ListOptions;

mod dialogue;

use super::simulate::SimulatedTree;
use crate::inventory::{Keys, ListModel};
use crate::simulation::Simulated;

const RECORD_BYTES: u64 = 16;

fn lists(filter_memory_bytes_max: u64) -> ListModel {
    let order = Order::Hashed { seed: 0 };
    let options = ListOptions {
        order,
        filter_bits_per_key: 10,
        prefix_filter: None,
        codec: Codec::None,
        apart_bytes_min: None,
    };
    ListModel { options, record_bytes: RECORD_BYTES, key_bytes: 8, pointed_bytes: 0, filter_memory_bytes_max }
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
        let mut tree = SimulatedTree::new(options(64), lists(filter_memory_bytes_max), Keys::Unique).unwrap();
        (0..30).for_each(|_| assert!(tree.flush(40_000).is_ok()));
        tree.paths()
    };
    let (none, all) = (with(0), with(u64::MAX));
    assert_eq!(none.lists_mean, all.lists_mean);
    assert!(none.reads_absent > 0.99 * none.lists_mean, "{none:?}");
    assert!(all.reads_absent < 0.02 * all.lists_mean && all.reads_present < 1.2, "{all:?}");
    assert!(none.reads_present > none.lists_mean / 3.0 && none.reads_present < none.lists_mean, "{none:?}");
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
