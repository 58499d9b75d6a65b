//! What splits cost (the paper's table 2), and leaves that cannot be split.

use forebay_base::record::Kind;
use forebay_base::{LastWriterWins, Order};
use forebay_buffer_tree::{JobKind, TreeOptions, Work};

use crate::harness::Harness;

const NODE_BYTES: u64 = 8000;

/// Spills 16 nodes' worth of new keys into leaves under the root; the I/O of splitting after 2 and after 16,
/// in nodes' worths.
fn split_io(node_bytes: u64, fast_per_slow: u32) -> (f64, f64) {
    let options = TreeOptions { node_bytes, fan_out: 1000, fast_per_slow, lists_max: 1000, repeats_max: 1e9 };
    let mut harness = Harness::new(Order::Hashed { seed: 3 }, LastWriterWins, options);
    let (mut spilled, mut early, mut key) = (0, 0.0, 0u64);
    let mut io = 0.0;
    while spilled < 16 * NODE_BYTES {
        for _ in 0..10 {
            harness.write(Kind::Put, key.to_be_bytes().to_vec(), vec![7; 22]);
            key += 1;
        }
        spilled += 10 * 32;
        harness.seal();
        harness.finish();
        let traffic = &harness.store.traffic;
        io = (traffic.read_bytes.get() + traffic.written_bytes.get() - spilled) as f64 / NODE_BYTES as f64;
        if spilled <= 2 * NODE_BYTES {
            early = io;
        }
    }
    (early, io)
}

#[test]
fn fast_splits_do_the_least_io() {
    let (slow_early, slow) = split_io(NODE_BYTES, 0);
    let (_, large) = split_io(4 * NODE_BYTES, 0);
    let (fast_early, fast) = split_io(NODE_BYTES, 4);
    println!(
        "I/O of splits while 16B are spilled: slow {slow:.1}B, slow with leaves of 4B {large:.1}B, fast {fast:.1}B"
    );
    assert!(fast_early == 0.0 && slow_early > 1.0, "the first splits of a lineage are free");
    assert!(fast < 0.7 * slow && fast < large, "table 2 says 32B, 63B and 56B");
}

#[test]
fn a_leaf_of_one_key_is_tried_again_only_when_it_has_grown() {
    let options =
        TreeOptions { node_bytes: 1000, fast_per_slow: 8, lists_max: 1000, ..TreeOptions::default() };
    let mut harness = Harness::new(Order::Lexical, LastWriterWins, options);
    for round in 0..20 {
        harness.write(Kind::Put, b"one".to_vec(), vec![round; 1200]);
        harness.seal();
        harness.finish();
        let leaf = &harness.tree.root().children()[0];
        assert!(leaf.lists().len() <= 2, "one key above the threshold is merged when it has doubled");
    }
    let leaf = &harness.tree.root().children()[0];
    assert!(leaf.unsplittable_bytes() > 1200 && harness.tally.slow_splits == 0, "{:?}", harness.tally);
    assert!(harness.tree.debt_bytes() < 1200, "what cannot be paid is no debt");
    // A second key makes it splittable.
    harness.write(Kind::Put, b"two".to_vec(), vec![0; 1200]);
    harness.seal();
    harness.finish();
    assert_eq!(harness.tree.root().children().len(), 2);
    assert_eq!(harness.tree.debt_bytes(), 0, "a large record alone in its leaf is no debt");
    assert_eq!(harness.scan().len(), 2);
}

#[test]
fn the_fullest_node_comes_first_and_busy_ones_are_left_alone() {
    let options = TreeOptions { node_bytes: 1000, fast_per_slow: 0, ..TreeOptions::default() };
    let mut harness = Harness::new(Order::Lexical, LastWriterWins, options);
    for key in 0..100u64 {
        harness.write(Kind::Put, key.to_be_bytes().to_vec(), vec![0; 30]);
    }
    harness.seal();
    while harness.flushes() > 0 {
        harness.step_root(0, 100);
    }
    let Some(Work::Job(plan)) = harness.tree.next_work(&harness.busy) else {
        panic!("a full leaf is slowly split")
    };
    assert_eq!((plan.kind, plan.lists), (JobKind::SlowSplit, 1));
    assert!(harness.tree.debt_bytes() > 2500);
    assert!(harness.tree.next_work(&[plan.node.id].into()).is_none());
    harness.finish();
    assert_eq!(harness.tree.debt_bytes(), 0);
}

#[test]
fn idle_time_merges_each_byte_about_twice_at_most() {
    let options = TreeOptions { node_bytes: 1 << 30, lists_max: 1000, ..TreeOptions::default() };
    for records_a_spill in [1, 10, 100] {
        let mut harness = Harness::new(Order::Hashed { seed: 3 }, LastWriterWins, options);
        let (mut spilled, mut lists_max) = (0, 0);
        for key in 0..2000u64 {
            harness.write(Kind::Put, key.to_be_bytes().to_vec(), vec![7; 22]);
            if key % records_a_spill == 0 {
                harness.seal();
                harness.finish();
                spilled = harness.tree.root().children()[0].bytes();
                while harness.read_compact(true, 0) {
                    harness.finish();
                }
                lists_max = lists_max.max(harness.tree.root().children()[0].lists().len() as u64);
            }
        }
        let merged = harness.store.traffic.read_bytes.get();
        println!("{merged} bytes merged of {spilled}, {lists_max} lists at most");
        assert!(merged <= 3 * spilled, "{merged} bytes merged of {spilled}");
        assert!(lists_max <= 1 + 1000 / records_a_spill, "{lists_max} lists");
        assert!(!harness.read_compact(false, spilled / 2), "what is not while idle must be paid for");
    }
}
