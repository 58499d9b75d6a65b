//! How a database and its two tables are set up for a test: small in every respect, so that a few thousand
//! records make a deep tree.

use std::path::Path;

use forebay::env::{Env, Rng};
use forebay::{Codec, Database, Layout, Options, Result};

use crate::{Keys, Merging, TABLES, Values};

/// One set of options.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether the first table keeps its keys in order; the second does the opposite.
    pub ordered: bool,
    /// How the one that keeps them in order is organised.
    pub ordered_layout: Layout,
    /// Capacity of a node, or of a run's file.
    pub node_bytes: u64,
    /// Children of a node.
    pub fan_out: usize,
    /// Fast splits to a slow one.
    pub fast_per_slow: u32,
    /// Lists of a leaf.
    pub lists_max: usize,
    /// Bound on memory amplification.
    pub repeats_max: f64,
    /// Filter memory.
    pub filter_bits_per_key: u32,
    /// Page compression.
    pub codec: Codec,
    /// Size of a write buffer.
    pub write_buffer_bytes: u64,
    /// How many there are.
    pub write_buffers: usize,
    /// How readily lists are merged for the sake of lookups.
    pub relief_ratio: f64,
    /// How much of the log is kept for its changes.
    pub keep_changes_bytes: u64,
    /// The memory limit.
    pub memory_limit_bytes: u64,
    /// What keys look like.
    pub keys: Keys,
    /// How many there are.
    pub key_count: u64,
    /// What values look like.
    pub values: Values,
    /// What each table merges by.
    pub merging: [Merging; TABLES],
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ordered: false,
            ordered_layout: Layout::write_buffer_ordered(),
            node_bytes: 8 << 10,
            fan_out: 4,
            fast_per_slow: 8,
            lists_max: 16,
            repeats_max: 2.0,
            filter_bits_per_key: 12,
            codec: Codec::None,
            write_buffer_bytes: 8 << 10,
            write_buffers: 3,
            relief_ratio: 8.0,
            keep_changes_bytes: 0,
            memory_limit_bytes: 1 << 20,
            keys: Keys::Mixed,
            key_count: 1000,
            values: Values::Short,
            merging: [Merging::None; TABLES],
        }
    }
}

/// Every organisation that keeps keys in order, with parameters that make it busy.
pub fn ordered_layouts() -> Vec<Layout> {
    let names = [
        "write-buffer:ordered",
        "no-merge",
        "immediate",
        "geometric:r=2",
        "geometric:r=3",
        "geometric:p=2",
        "range-merge",
        "leveling:t=3",
        "leveling",
        "tiering:t=2",
        "tiering:t=4",
        "jungle:c=1.5,t=3",
        "jungle",
    ];
    names.iter().map(|name| name.parse().expect("names of layouts")).collect()
}

/// One of them.
pub(crate) fn draw_layout(rng: &mut Rng) -> Layout {
    let layouts = ordered_layouts();
    layouts[rng.index(layouts.len())]
}

impl Config {
    /// Any options.
    pub fn draw(rng: &mut Rng) -> Self {
        Self {
            ordered: rng.chance(50),
            ordered_layout: draw_layout(rng),
            node_bytes: [2 << 10, 6 << 10, 20 << 10][rng.index(3)],
            fan_out: [2, 3, 8][rng.index(3)],
            fast_per_slow: [0, 1, 8][rng.index(3)],
            lists_max: [1, 4, 64][rng.index(3)],
            repeats_max: [1.2, 2.0, 100.0][rng.index(3)],
            filter_bits_per_key: [0, 4, 12][rng.index(3)],
            codec: [Codec::None, Codec::Lz4][rng.index(2)],
            write_buffer_bytes: [4 << 10, 8 << 10, 16 << 10][rng.index(3)],
            write_buffers: [2, 3, 5][rng.index(3)],
            // In so small a database, lookups seldom pay for a merge at what they really cost.
            relief_ratio: [0.0, 8.0, 1e6][rng.index(3)],
            memory_limit_bytes: 1 << 20,
            keys: Keys::ALL[rng.index(5)],
            key_count: [20, 200, 2000][rng.index(3)],
            values: Values::ALL[rng.index(4)],
            merging: [Merging::ALL[rng.index(6)], Merging::ALL[rng.index(6)]],
            keep_changes_bytes: [0, 30 << 10, u64::MAX][rng.index(3)],
        }
    }

    /// The database's options.
    pub fn options(&self, env: &Env) -> Options {
        Options::default()
            .memory_limit(self.memory_limit_bytes)
            .write_buffer(self.write_buffer_bytes)
            .write_buffers(self.write_buffers)
            .relief_ratio(self.relief_ratio)
            .keep_changes(self.keep_changes_bytes)
            .env(env.clone())
    }

    /// Opens the database.
    pub fn open(&self, env: &Env, dir: &Path) -> Result<Database> {
        Database::open(dir, self.options(env))
    }
}
