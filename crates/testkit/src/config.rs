//! How a database and its two tables are set up for a test: small in every respect, so that a few thousand
//! records make a deep tree.

use std::path::Path;

use forebay::env::{Env, Rng};
use forebay::{Codec, Database, Layout, Options, OrderedTable, Result, Table};

use crate::{Keys, TABLES, Values};

/// One set of options.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether the first table keeps its keys in order; the second does the opposite.
    pub ordered: bool,
    /// Capacity of a node.
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
    /// The memory limit.
    pub memory_limit_bytes: u64,
    /// What keys look like.
    pub keys: Keys,
    /// How many there are.
    pub key_count: u64,
    /// What values look like.
    pub values: Values,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ordered: false,
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
            memory_limit_bytes: 1 << 20,
            keys: Keys::Mixed,
            key_count: 1000,
            values: Values::Short,
        }
    }
}

impl Config {
    /// Any options.
    pub fn draw(rng: &mut Rng) -> Self {
        Self {
            ordered: rng.chance(50),
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
        }
    }

    /// The database's options.
    pub fn options(&self, env: &Env) -> Options {
        Options::default()
            .memory_limit(self.memory_limit_bytes)
            .write_buffer(self.write_buffer_bytes)
            .write_buffers(self.write_buffers)
            .relief_ratio(self.relief_ratio)
            .env(env.clone())
    }

    /// Opens the database.
    pub fn open(&self, env: &Env, dir: &Path) -> Result<Database> {
        Database::open(dir, self.options(env))
    }
}

/// The two tables.
#[derive(Clone, Debug)]
pub struct Tables {
    plain: Vec<Table>,
    ordered: Vec<Option<OrderedTable>>,
}

impl Tables {
    /// Opens or makes the tables.
    pub fn open(db: &Database, config: &Config) -> Result<Self> {
        let (mut plain, mut ordered) = (Vec::new(), Vec::new());
        for number in 0..TABLES {
            let keeps_order = config.ordered == (number == 0);
            let layout = if keeps_order { Layout::write_buffer_ordered() } else { Layout::write_buffer() };
            let table = db
                .table(&format!("table-{number}"))
                .layout(layout)
                .node_bytes(config.node_bytes)
                .fan_out(config.fan_out)
                .fast_per_slow(config.fast_per_slow)
                .lists_max(config.lists_max)
                .repeats_max(config.repeats_max)
                .filter_bits_per_key(config.filter_bits_per_key)
                .codec(config.codec)
                .open()?;
            plain.push(table);
            ordered.push(if keeps_order {
                Some(db.table(&format!("table-{number}")).open_ordered()?)
            } else {
                None
            });
        }
        Ok(Self { plain, ordered })
    }

    /// A table.
    pub fn get(&self, table: usize) -> &Table {
        &self.plain[table]
    }

    /// A table that keeps its keys in order, if it does.
    pub fn ordered(&self, table: usize) -> Option<&OrderedTable> {
        self.ordered[table].as_ref()
    }
}
