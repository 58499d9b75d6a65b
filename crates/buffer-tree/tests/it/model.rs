//! Random writes against a sorted map, with several jobs in flight, over orders, rules and shapes of trees.

use std::collections::BTreeMap;

use forebay_base::combine::Combine;
use forebay_base::record::Kind;
use forebay_base::{LastWriterWins, Order};
use forebay_buffer_tree::TreeOptions;

use crate::harness::{Harness, Tally};
use crate::random::{Random, for_seeds};

/// Adds little-endian numbers: a lost or a doubled operand shows.
#[derive(Clone, Copy)]
pub(crate) struct Sum;

fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_le_bytes)
}

impl Combine for Sum {
    fn fold(&self, _key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&number(newer).wrapping_add(number(older)).to_le_bytes());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    None,
    Sums,
}

struct Model<'a, R> {
    random: &'a mut Random,
    harness: Harness<R>,
    expected: BTreeMap<Vec<u8>, Vec<u8>>,
    operands: Operands,
    keys: u64,
}

impl<R: Combine + Copy> Model<'_, R> {
    fn key(&mut self) -> Vec<u8> {
        // The first eight bytes of ten keys are the same.
        format!("user{:05}", self.random.below(self.keys)).into_bytes()
    }

    fn write(&mut self) {
        let key = self.key();
        if self.random.one_in(5) {
            self.expected.remove(&key);
            self.harness.write(Kind::Delete, key, Vec::new());
        } else if self.operands == Operands::Sums {
            let add = self.random.below(1 << 40);
            let fresh = self.random.one_in(4);
            let old = self.expected.get(&key).filter(|_| !fresh).map_or(0, |value| number(value));
            self.expected.insert(key.clone(), old.wrapping_add(add).to_le_bytes().to_vec());
            let kind = if fresh { Kind::Put } else { Kind::Merge };
            self.harness.write(kind, key, add.to_le_bytes().to_vec());
        } else {
            let length = self.random.below(24);
            let value: Vec<u8> = (0..length).map(|_| self.random.below(256) as u8).collect();
            self.expected.insert(key.clone(), value.clone());
            self.harness.write(Kind::Put, key, value);
        }
    }

    /// One random act.
    fn act(&mut self, buffer_records: usize) {
        let roots = self.harness.flushes();
        let bytes_max = 1 + self.random.below(300) as usize;
        match self.random.below(8) {
            0 if self.harness.written.len() < buffer_records => (0..20).for_each(|_| self.write()),
            0 if roots < 3 => self.harness.seal(),
            1..=3 if roots > 0 => {
                let index = self.random.below(roots as u64) as usize;
                self.harness.step_root(index, bytes_max);
            }
            4 if self.harness.jobs.len() < 6 => _ = self.harness.plan(),
            5 if self.harness.jobs.len() < 6 => {
                let (is_idle, budget) = (self.random.below(2) == 0, self.random.below(1 << 16));
                self.harness.read_compact(is_idle, budget);
            }
            _ if !self.harness.jobs.is_empty() => {
                let index = self.random.below(self.harness.jobs.len() as u64) as usize;
                self.harness.step_job(index, bytes_max * 4);
            }
            _ => _ = self.harness.plan(),
        }
    }

    fn compare(&mut self) {
        for _ in 0..10 {
            let key = self.key();
            assert_eq!(
                self.harness.get(&key),
                self.expected.get(&key).cloned(),
                "{:?}",
                String::from_utf8(key)
            );
        }
    }

    fn compare_all(&self) {
        let order = self.harness.order;
        let mut expected: Vec<_> = self.expected.clone().into_iter().collect();
        expected.sort_by_key(|(key, _)| (order.prefix(key), key.clone()));
        assert!(self.harness.scan() == expected, "a scan differs from the model");
        self.harness.check_content();
        self.harness.check_paths();
    }

    fn run(&mut self, acts: u64) {
        for act in 0..acts {
            self.act(60);
            if act % 50 == 0 {
                self.compare();
            }
            if act % 1500 == 0 {
                self.compare_all();
            }
        }
        self.compare_all();
        self.harness.finish();
        self.compare_all();
        self.harness.compact();
        self.compare_all();
        self.harness
            .tree
            .for_each_node(&mut |_, node| assert!(node.is_fully_merged(), "a compaction leaves one list"));
        // What is still in the buffer is not in the tree.
        self.harness.seal();
        self.harness.compact();
        let mut records = 0;
        self.harness.tree.for_each_node(&mut |_, node| records += node.records());
        assert_eq!(records, self.expected.len() as u64, "a compacted tree holds each key once");
    }
}

fn options(fan_out: usize, fast_per_slow: u32, node_bytes: u64) -> TreeOptions {
    TreeOptions { node_bytes, fan_out, fast_per_slow, lists_max: 6, repeats_max: 2.0 }
}

fn run<R: Combine + Copy>(
    random: &mut Random,
    order: Order,
    rule: R,
    options: TreeOptions,
    operands: Operands,
) -> Tally {
    let harness = Harness::new(order, rule, options);
    let mut model = Model { random, harness, expected: BTreeMap::new(), operands, keys: 6000 };
    model.run(4_000);
    std::mem::take(&mut model.harness.tally)
}

fn run_shapes(order: Order, seeds: std::ops::Range<u64>) {
    for_seeds(seeds, |random, seed| {
        let fan_out = [2, 4, 8][seed as usize % 3];
        let fast_per_slow = [0, 1, 8][seed as usize / 3 % 3];
        let node_bytes = [160, 300, 500][(seed as usize + seed as usize / 3 + seed as usize / 9) % 3];
        let options = options(fan_out, fast_per_slow, node_bytes);
        let tallies = [
            run(random, order, LastWriterWins, options, Operands::None),
            run(random, order, Sum, options, Operands::Sums),
        ];
        for tally in tallies {
            println!("{order:?} {seed} {options:?}: {tally:?}");
            let high = if fan_out < 8 || node_bytes == 160 { 4 } else { 3 };
            assert!(tally.height_max >= high, "the tree is {} levels high", tally.height_max);
            assert!(
                tally.late > 5 && tally.growths > 0 && tally.inner_splits > 0 && tally.slow_splits > 0,
                "{tally:?}"
            );
        }
    });
}

#[test]
fn hashed_trees_equal_the_model() {
    run_shapes(Order::Hashed { seed: 7 }, 0..9);
}

#[test]
fn lexical_trees_equal_the_model() {
    run_shapes(Order::Lexical, 100..109);
}

#[test]
fn trees_of_colliding_hashes_equal_the_model() {
    run_shapes(Order::Colliding { bits: 3 }, 200..209);
}
