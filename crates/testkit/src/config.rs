//! How a database and its tables are set up for a test: small in every respect, so that a few thousand
//! records make a deep tree.

mod draws;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::aggregate::Groupings;
use forebay::encryption::{KEY_BYTES, Key, OneKey};
use forebay::{Codec, Database, Layout, Options, Pool, PrefixFilter, ReadOptions, Result};
use forebay_env::{Env, Rng};

pub use self::draws::ordered_layouts;
pub(crate) use self::draws::{
    draw_groupings, draw_layout, draw_prefix_filter, draw_rate, draw_resident_layout,
};
use self::draws::{draw_pool, draw_prefix_filters, draw_reading, draw_resident};
use crate::tables::keeps_order;
use crate::{Keys, Merging, TABLES, Trip, Values};

/// The number of the third table.
pub const ASIDE: usize = 2;

/// How many databases are encrypted.
const ENCRYPTED_PERCENT: u32 = 12;
/// Of a hundred wide draws this many have a cube and windows.
const GROUPS_PERCENT: u32 = 30;
/// How many databases have no log.
const NO_LOG_PERCENT: u32 = 20;
/// Of a hundred tables aside whose entries expire this many merge operands.
const LIVES_PERCENT: u32 = 40;
/// Of a hundred tables with operands this many merge them by a rule of the engine's.
const GREATEST_PERCENT: u32 = 40;
/// Of a hundred wide draws this many have write buffers as they are unless anything is said of them.
const USUAL_BUFFERS_PERCENT: u32 = 15;
/// How many those are at most.
const USUAL_BUFFERS_MAX: usize = 3;

/// How many databases share a pool with their copies.
const POOL_PERCENT: u32 = 15;

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
    /// Which key prefixes filters know, too, of a table that keeps its keys in order.
    pub prefix_filter: [Option<PrefixFilter>; TABLES],
    /// Page compression.
    pub codec: Codec,
    /// How tables' handles read.
    pub reading: ReadOptions,
    /// Size of a write buffer, unless it is the usual part of the memory limit.
    pub write_buffer_bytes: Option<u64>,
    /// How many there are, if not as many as usual.
    pub write_buffers: Option<usize>,
    /// The part of the memory limit that tables keep records in, if it is not the usual one.
    pub resident_percent: Option<u32>,
    /// How many compactors there are.
    pub background_threads: usize,
    /// How readily lists are merged for the sake of lookups.
    pub read_compaction_ratio: f64,
    /// How much of the log is kept for its changes.
    pub keep_changes_bytes: u64,
    /// Whether there is one, or only where it is asked for.
    pub log: bool,
    /// How many bytes a second background work goes through, without a pool.
    pub background_rate_bytes: u64,
    /// How many files are open at a time.
    pub open_files_max: Option<usize>,
    /// The memory limit.
    pub memory_limit_bytes: u64,
    /// Where memory and threads come from instead, if there is one: all copies of these options have the same.
    pub pool: Option<Pool>,
    /// What keys look like.
    pub keys: Keys,
    /// How many there are.
    pub key_count: u64,
    /// What values look like.
    pub values: Values,
    /// What each table merges by.
    pub merging: [Merging; TABLES],
    /// Whether states are deleted, too.
    pub deletes_states: bool,
    /// How much files may take, by what lives of them.
    pub max_space_amplification: [Option<f64>; TABLES],
    /// How soon what is deleted leaves the files.
    pub reclaim_interval: [Option<Duration>; TABLES],
    /// From which length on values are kept apart.
    pub apart_bytes_min: [Option<u32>; TABLES],
    /// A third table.
    pub aside: Option<Aside>,
    /// A cube of these, and windows, beside the tables.
    pub groupings: Option<Groupings>,
    /// When code that tables ask panics.
    pub trip: Trip,
    /// Whether its files are encrypted.
    pub is_encrypted: bool,
}

/// A table beside the two: it keeps its keys in order, is dropped and made again, and does what only some tables do.
#[derive(Clone, Debug)]
pub struct Aside {
    /// How it is organised.
    pub layout: Layout,
    /// How long its entries live.
    pub time_to_live: Option<Duration>,
    /// Whether merges drop what [`is_dropped`] says.
    pub drops: bool,
    /// Of a hundred changes this many are to it: few leave it idle while others write.
    pub share_percent: u32,
}

/// What the third table's compaction filter drops.
pub fn is_dropped(key: &[u8], value: &[u8]) -> bool {
    key.iter().chain(value).fold(0u8, |sum, byte| sum.wrapping_add(*byte)) % 4 == 1
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ordered: false,
            ordered_layout: Layout::wb_tree_ordered(),
            node_bytes: 8 << 10,
            fan_out: 4,
            fast_per_slow: 8,
            lists_max: 16,
            repeats_max: 2.0,
            filter_bits_per_key: 12,
            prefix_filter: [None; TABLES],
            codec: Codec::None,
            reading: ReadOptions::default(),
            write_buffer_bytes: Some(8 << 10),
            write_buffers: Some(3),
            resident_percent: None,
            background_threads: 2,
            read_compaction_ratio: 8.0,
            keep_changes_bytes: 0,
            log: true,
            background_rate_bytes: 0,
            open_files_max: None,
            memory_limit_bytes: 1 << 20,
            pool: None,
            keys: Keys::Mixed,
            key_count: 1000,
            values: Values::Short,
            merging: [Merging::None; TABLES],
            deletes_states: false,
            max_space_amplification: [None; TABLES],
            reclaim_interval: [None; TABLES],
            apart_bytes_min: [None; TABLES],
            aside: None,
            groupings: None,
            trip: Trip::default(),
            is_encrypted: false,
        }
    }
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
            prefix_filter: draw_prefix_filters(&mut rng.clone().fork().fork().fork()),
            codec: [Codec::None, Codec::Lz4][rng.index(2)],
            reading: draw_reading(&mut rng.clone().fork().fork().fork().fork()),
            write_buffer_bytes: Some([4 << 10, 8 << 10, 16 << 10][rng.index(3)]),
            write_buffers: Some([2, 3, 5][rng.index(3)]),
            resident_percent: None,
            // In so small a database, lookups seldom pay for a merge at what they really cost.
            read_compaction_ratio: [0.0, 8.0, 1e6][rng.index(3)],
            open_files_max: None,
            background_rate_bytes: 0,
            memory_limit_bytes: 1 << 20,
            pool: None,
            keys: Keys::ALL[rng.index(6)],
            key_count: [20, 200, 2000][rng.index(3)],
            values: Values::ALL[rng.index(5)],
            merging: [Merging::ALL[rng.index(6)], Merging::ALL[rng.index(6)], Merging::None],
            deletes_states: rng.clone().fork().chance(50),
            keep_changes_bytes: [0, 30 << 10, u64::MAX][rng.index(3)],
            log: true,
            max_space_amplification: [None; TABLES],
            reclaim_interval: [None; TABLES],
            apart_bytes_min: [None; TABLES],
            aside: None,
            groupings: None,
            trip: Trip::default(),
            background_threads: [1, 2, 4][rng.index(3)],
            // By dice of its own: what else a seed means stays what it was.
            is_encrypted: rng.clone().fork().fork().fork().fork().chance(ENCRYPTED_PERCENT),
        }
    }

    /// Any options, and a third table.
    pub fn draw_wide(rng: &mut Rng) -> Self {
        let mut drawn = Self::draw(rng);
        let ttl =
            [None, None, Some(Duration::from_secs(1)), Some(Duration::from_secs(60)), Some(Duration::MAX)];
        let aside = Aside {
            layout: if rng.chance(30) { draw_resident_layout(rng) } else { draw_layout(rng) },
            time_to_live: ttl[rng.index(5)],
            drops: rng.chance(25),
            share_percent: [1, 10, 40, 80][rng.index(4)],
        };
        if aside.time_to_live.is_some() && rng.clone().fork().chance(LIVES_PERCENT) {
            drawn.merging[ASIDE] = Merging::Lives;
        }
        let mut greatest = rng.clone().fork().fork();
        for merging in &mut drawn.merging[..ASIDE] {
            if *merging == Merging::Operands && greatest.chance(GREATEST_PERCENT) {
                *merging = Merging::Greatest;
            }
        }
        let is_bounded = rng.chance(15);
        let bounds = [None, Some(1.25), Some(2.0)];
        let intervals = [None, None, Some(Duration::from_secs(10))];
        // By dice of its own: what else a seed means stays what it was.
        let mut more = rng.clone().fork();
        let apart_bytes_min: [_; TABLES] = std::array::from_fn(|_| [None, Some(1), Some(60)][more.index(3)]);
        let is_even = apart_bytes_min.iter().any(Option::is_some) && more.chance(40);
        let (keys, values) = if is_even { (Keys::Counted, Values::Even) } else { (drawn.keys, drawn.values) };
        // Sizes that follow the tables: they change where one that keeps records in memory comes or goes.
        let is_usual = more.chance(USUAL_BUFFERS_PERCENT);
        let reclaims = !drawn.ordered_layout.keeps_in_memory() && !aside.layout.keeps_in_memory();
        Self {
            max_space_amplification: std::array::from_fn(|_| bounds[rng.index(3)].filter(|_| is_bounded)),
            reclaim_interval: std::array::from_fn(|_| {
                intervals[rng.index(3)].filter(|_| reclaims && !is_even)
            }),
            open_files_max: [None, None, Some(16)][rng.index(3)],
            background_rate_bytes: draw_rate(&mut more.clone().fork().fork().fork().fork()),
            resident_percent: draw_resident(&mut more.clone().fork().fork().fork().fork().fork()),
            apart_bytes_min,
            keys,
            values,
            log: !more.clone().fork().fork().chance(NO_LOG_PERCENT),
            pool: more
                .clone()
                .fork()
                .fork()
                .fork()
                .chance(POOL_PERCENT)
                .then(|| draw_pool(&mut more.clone())),
            write_buffer_bytes: drawn.write_buffer_bytes.filter(|_| !is_usual),
            write_buffers: drawn.write_buffers.filter(|_| !is_usual),
            aside: Some(aside),
            groupings: more.clone().fork().chance(GROUPS_PERCENT).then(|| draw_groupings(&mut more)),
            ..drawn
        }
    }

    /// Which key prefixes a table's filters know, where it is one that may.
    pub(crate) fn prefix_filter(&self, table: usize) -> Option<PrefixFilter> {
        self.prefix_filter[table].filter(|_| self.filter_bits_per_key > 0 && keeps_order(self, table))
    }

    /// From which length on a table's values are kept apart, where it is one that may.
    pub fn apart_bytes_min(&self, table: usize) -> Option<u32> {
        let refuses = self.is_encrypted
            || self.merging[table] != Merging::None
            || self.max_space_amplification[table].is_some()
            || self.reclaim_interval[table].is_some();
        self.apart_bytes_min[table].filter(|_| !refuses)
    }

    /// How many tables there are.
    pub fn tables(&self) -> usize {
        TABLES - usize::from(self.aside.is_none())
    }

    /// How long entries of a table live.
    pub fn time_to_live(&self, table: usize) -> Option<Duration> {
        self.aside.as_ref().filter(|_| table == ASIDE)?.time_to_live
    }

    /// When what is written without more at a time expires, in milliseconds since 1970, if entries of a table do.
    pub(crate) fn usual_expiry(&self, table: usize, now: u64) -> Option<u64> {
        let ttl = u64::try_from(self.time_to_live(table)?.as_millis()).unwrap_or(u64::MAX);
        Some(match self.merging[table] {
            Merging::Lives => (now / ttl + 1).saturating_mul(ttl),
            _ => now.saturating_add(ttl),
        })
    }

    /// Whether a table's merges drop entries.
    pub(crate) fn drops(&self, table: usize) -> bool {
        // What a filter has dropped, an operand that comes later does not find, or does.
        table == ASIDE
            && self.merging[table] == Merging::None
            && self.aside.as_ref().is_some_and(|aside| aside.drops)
    }

    /// The database's options.
    pub fn options(&self, env: &Env) -> Options {
        let mut options = Options::default()
            .read_compaction_ratio(self.read_compaction_ratio)
            .keep_changes(self.keep_changes_bytes)
            .log(self.log)
            .env(env.clone());
        options = match &self.pool {
            Some(pool) => options.pool(pool),
            None => options
                .memory_limit(self.memory_limit_bytes)
                .background_threads(self.background_threads)
                .background_rate(self.background_rate_bytes),
        };
        if self.is_encrypted {
            options = options.encryption(Arc::new(OneKey::new("the test's", Key::new([42; KEY_BYTES]))));
        }
        if let Some(bytes) = self.write_buffer_bytes {
            options = options.write_buffer(bytes);
        }
        if let Some(count) = self.write_buffers {
            options = options.write_buffers(count);
        }
        if let Some(percent) = self.resident_percent {
            options = options.resident_percent(percent);
        }
        if let Some(files) = self.open_files_max {
            options = options.open_files_max(files);
        }
        options
    }

    /// How many write buffers there are at most.
    pub fn write_buffers_max(&self) -> usize {
        self.write_buffers.unwrap_or(USUAL_BUFFERS_MAX)
    }

    /// Log segments that are held for what tables keep in memory: three times what fills the room for that.
    pub(crate) fn held_segments_max(&self) -> usize {
        let least = 8;
        match (self.resident_percent, self.write_buffer_bytes) {
            (Some(percent), Some(bytes)) => {
                let room = self.memory_limit_bytes * u64::from(percent) / 100;
                (3 * room / bytes).clamp(least, 64) as usize
            }
            (None, Some(_)) => least as usize,
            // A buffer is a quarter of the room, or a little less.
            (_, None) => 2 * least as usize,
        }
    }

    /// Opens the database.
    pub fn open(&self, env: &Env, dir: &Path) -> Result<Database> {
        Database::open(dir, self.options(env))
    }
}
