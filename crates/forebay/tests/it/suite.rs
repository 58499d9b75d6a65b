//! The same operations give the same answers on every option set, and equal a `BTreeMap`.
//!
//! Both orders, three node sizes, three fan-outs and three split ratios, each with keys, values, page
//! compression and filters of its own; all so small that trees get deep. A failing run prints its seed.

use std::path::Path;

use forebay::{Codec, PrefixFilter};
use forebay_env::{Env, Rng};
use forebay_testkit::{Config, Generator, Harness, Keys, Merging, Op, Values};

const NODE_BYTES: [u64; 3] = [2 << 10, 6 << 10, 20 << 10];
const FAN_OUTS: [usize; 3] = [2, 4, 16];

/// Does operations drawn from the seed, and compares every answer.
fn run(config: Config, seed: u64, operations: usize) {
    println!("seed {seed}, {config:?}");
    let mut rng = Rng::new(seed);
    let mut generator = Generator::new(rng.fork(), &config);
    let mut harness = Harness::new(Env::memory(rng.next_u64()), config, Path::new("/db")).unwrap();
    for number in 0..operations {
        let op = generator.draw();
        harness.apply(&op).unwrap_or_else(|error| panic!("operation {number}, {op:?}: {error}"));
    }
    harness.check_copies().unwrap();
    harness.apply(&Op::Reopen).unwrap();
    harness.check_all().unwrap();
    harness.apply(&Op::Verify).unwrap();
    harness.apply(&Op::Compact(0)).unwrap();
    harness.apply(&Op::Compact(1)).unwrap();
    harness.check_all().unwrap();
    harness.close().unwrap();
}

/// Every node size and fan-out at this order and ratio; the other options follow from the seed.
fn run_all(ordered: bool, fast_per_slow: u32) {
    let mut seed = 1000 * u64::from(ordered) + 100 * u64::from(fast_per_slow);
    for node_bytes in NODE_BYTES {
        for fan_out in FAN_OUTS {
            seed += 1;
            let mut rng = Rng::new(seed);
            let drawn = Config::draw(&mut rng);
            run(Config { ordered, node_bytes, fan_out, fast_per_slow, ..drawn }, seed, 1200);
        }
    }
}

#[test]
fn hash_order_with_slow_splits_equals_the_model() {
    run_all(false, 0);
}

#[test]
fn hash_order_with_one_fast_split_to_a_slow_one_equals_the_model() {
    run_all(false, 1);
}

#[test]
fn hash_order_with_eight_fast_splits_to_a_slow_one_equals_the_model() {
    run_all(false, 8);
}

#[test]
fn key_order_with_slow_splits_equals_the_model() {
    run_all(true, 0);
}

#[test]
fn key_order_with_one_fast_split_to_a_slow_one_equals_the_model() {
    run_all(true, 1);
}

#[test]
fn key_order_with_eight_fast_splits_to_a_slow_one_equals_the_model() {
    run_all(true, 8);
}

#[test]
fn every_kind_of_key_and_value_equals_the_model() {
    let mut seed = 5000;
    for keys in Keys::ALL {
        for values in Values::ALL {
            seed += 1;
            let codec = if seed % 2 == 0 { Codec::Lz4 } else { Codec::None };
            let filter_bits_per_key = [0, 4, 12][seed as usize % 3];
            let prefixes = [PrefixFilter::Bytes(1), PrefixFilter::Bytes(9), PrefixFilter::Until(b'a')];
            let prefix_filter = prefixes.map(Some);
            let small = Config { keys, values, codec, filter_bits_per_key, ..Config::default() };
            run(Config { prefix_filter, ordered: seed % 2 == 0, ..small }, seed, 500);
        }
    }
}

#[test]
fn every_kind_of_merging_equals_the_model() {
    let mut seed = 6000;
    for merging in [Merging::Operands, Merging::Tally, Merging::Bag] {
        for keys in [Keys::Fixed, Keys::Mixed] {
            for ordered in [false, true] {
                seed += 1;
                let (key_count, lists_max) = ([20, 400][seed as usize % 2], [2, 16][seed as usize / 2 % 2]);
                let merging = [merging, merging, Merging::None];
                let config = Config { merging, keys, ordered, key_count, lists_max, ..Config::default() };
                run(Config { deletes_states: true, ..config.clone() }, seed, 700);
                run(config, seed, 700);
            }
        }
    }
}

#[test]
fn every_ordered_layout_equals_the_model() {
    let mut seed = 7000;
    for ordered_layout in forebay_testkit::ordered_layouts() {
        for (keys, merging) in [
            (Keys::Fixed, Merging::None),
            (Keys::Mixed, Merging::Operands),
            (Keys::Mixed, Merging::Bag),
            (Keys::Fixed, Merging::Tally),
        ] {
            seed += 1;
            let node_bytes = [2 << 10, 16 << 10][seed as usize % 2];
            let merging = [merging, merging, Merging::None];
            let small = Config { ordered: true, node_bytes, deletes_states: true, ..Config::default() };
            let config = Config { ordered_layout, keys, merging, ..small };
            run(config, seed, 700);
        }
    }
}

/// Many compactors do what one does, in another order.
#[test]
fn any_number_of_compactors_equals_the_model() {
    let names = [
        "wb-tree:ordered",
        "geometric:r=2",
        "leveling:t=3",
        "tiering:t=2",
        "jungle:c=1.5,t=3",
        "range-merge",
        "range-merge:c=2",
    ];
    let layouts = names.map(|name| (true, name.parse().expect("the name of a layout")));
    for (seed, (ordered, ordered_layout)) in (8000..).zip(layouts.into_iter().chain([(false, layouts[0].1)]))
    {
        for background_threads in [1, 2, 4, 16] {
            let small = Config { ordered, ordered_layout, background_threads, ..Config::default() };
            run(Config { node_bytes: 2 << 10, fan_out: 3, lists_max: 4, ..small }, seed, 400);
        }
    }
}

/// The other tests prove little if their trees are but a root and a leaf.
#[test]
fn trees_of_the_suite_get_deep() {
    let config = Config { node_bytes: 2 << 10, fan_out: 2, key_count: 20_000, ..Config::default() };
    let mut generator = Generator::new(Rng::new(77), &config);
    let mut harness = Harness::new(Env::memory(77), config, Path::new("/db")).unwrap();
    for _ in 0..4000 {
        if let op @ Op::Commit(..) = generator.draw() {
            harness.apply(&op).unwrap();
        }
    }
    harness.apply(&Op::Flush).unwrap();
    harness.env.jobs.step_some(100_000);
    let levels: Vec<usize> = harness.db().stats().tables.iter().map(|table| table.levels.len()).collect();
    assert!(levels.iter().all(|&levels| levels >= 5), "{levels:?}");
    harness.check_all().unwrap();
}

/// A scan that starts above, or ends above, the highest key of a write buffer being spilled once looked the
/// bound up as if it were a low one: what was in the buffer was missing or came twice.
#[test]
fn bounds_above_everything_in_a_buffer_find_their_place() {
    let config = Config { ordered: true, keys: Keys::Fixed, values: Values::Empty, ..Config::default() };
    let mut harness = Harness::new(Env::memory(3), config, Path::new("/db")).unwrap();
    for number in 0..400u64 {
        // Keys of each buffer lie in a narrow stretch of their own.
        let key = ((number / 100) << 60 | number << 40).to_be_bytes().to_vec();
        let write = forebay_testkit::Write::Put(Vec::new());
        let change = forebay_testkit::Change { table: 0, key, write };
        harness.commit(&[change], forebay::Durability::Memory).unwrap();
        harness.env.jobs.step_some(1);
        for bound in [1u64 << 59, 1 << 61, 3 << 60, 5 << 60, u64::MAX] {
            let bound = bound.to_be_bytes().to_vec();
            for range in [
                forebay_testkit::Query::Range(
                    std::ops::Bound::Unbounded,
                    std::ops::Bound::Included(bound.clone()),
                ),
                forebay_testkit::Query::Range(
                    std::ops::Bound::Included(bound.clone()),
                    std::ops::Bound::Unbounded,
                ),
            ] {
                harness.apply(&Op::Read(0, range)).unwrap();
            }
        }
    }
}
