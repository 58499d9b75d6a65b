//! What is written, batch by batch: batch `n` of a seed is the same in every process, so that the one that is killed
//! and the one that judges agree without a word.

use forebay::{Durability, Layout};
use forebay_env::Rng;
use forebay_testkit::{Change, Config, Generator, Keys, Merging, Op, Values};

/// The database's options: tiny, so that a few hundred batches go all the way down.
pub(crate) fn config(layout: Layout, seed: u64) -> Config {
    let mut rng = Rng::new(seed ^ 0x636f_6e66);
    let ordered_layout = if layout.is_ordered() { layout } else { Layout::wb_tree_ordered() };
    Config {
        // The first table has the layout that was asked for, of either order.
        ordered: layout.is_ordered(),
        ordered_layout,
        node_bytes: 4 << 10,
        write_buffer_bytes: Some([4 << 10, 16 << 10][rng.index(2)]),
        memory_limit_bytes: 1 << 20,
        key_count: 300,
        keys: Keys::Mixed,
        values: Values::ALL[rng.index(4)],
        merging: [
            Merging::None,
            [Merging::Tally, Merging::Operands, Merging::Bag][rng.index(3)],
            Merging::None,
        ],
        keep_changes_bytes: [0, 30 << 10][rng.index(2)],
        ..Config::default()
    }
}

/// What stands before a batch, and the batch.
pub(crate) struct Batch {
    pub(crate) before: Vec<Op>,
    pub(crate) changes: Vec<Change>,
    pub(crate) durability: Durability,
}

/// Batch `number` of a seed. Each draws its own weights.
pub(crate) fn batch(config: &Config, seed: u64, number: u64) -> Batch {
    let rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
    let mut generator = Generator::new(rng, config).without_turns();
    let mut before = Vec::new();
    loop {
        match generator.draw() {
            Op::Commit(changes, durability) => return Batch { before, changes, durability },
            op @ (Op::Flush | Op::Compact(_) | Op::Rewrite(..) | Op::CompactRange(..) | Op::Sync)
                if before.is_empty() && number.is_multiple_of(7) =>
            {
                before.push(op);
            }
            _ => {}
        }
    }
}
