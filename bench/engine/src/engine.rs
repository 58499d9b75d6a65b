//! The seam between workloads and engines. Forebay's adapter lies beside this file; other engines' are in the
//! crate `forebay-bench-rivals`, outside the default build.

use std::path::Path;
use std::time::Duration;

/// What went wrong, in the engine's own words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// When a write has to be safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// No log, if the engine can do without.
    Memory,
    /// Survives a crash of the process on return; synced to the device at least every `sync_interval`.
    Os,
    /// Synced to the device before it returns.
    Disk,
}

/// What every engine is given alike. An adapter spends it as its engine is served best.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Setup {
    /// All memory that the engine may use: write buffers, filters, indexes, caches.
    pub memory_bytes: u64,
    pub durability: Durability,
    /// With [`Durability::Os`]: how old an unsynced write may get.
    pub sync_interval: Duration,
    /// Whether the workload scans in key order.
    pub ordered: bool,
    /// Whether values are counts that are added to: see [`Engine::add`].
    pub adds: bool,
    /// Whether there are transactions that read and write: see [`Engine::transactor`].
    pub transacts: bool,
    /// Keys are all of this length.
    pub key_bytes: usize,
    /// Values are all of this length.
    pub value_bytes: usize,
    /// About how many distinct keys there will be.
    pub records_expected: u64,
    /// Background threads that the engine may use.
    pub background_threads: usize,
    /// Filter bits a key, where the engine lets one choose; `None` for its own best.
    pub filter_bits_per_key: Option<u32>,
    /// Reads and writes that go around the kernel's page cache, where the engine has them.
    pub direct_io: bool,
    /// Threads that write at the same time.
    pub writers: u64,
    /// What only Forebay is told.
    pub forebay: TableOptions,
    /// What only an engine with levels of its own is told.
    pub leveled: LeveledOptions,
}

/// The shape of a leveled tree, where a workload asks for one; what is left out is the adapter's choice.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeveledOptions {
    /// The size that tables are cut to.
    pub file_bytes: Option<u64>,
    /// How many times as large as the level above a level is.
    pub level_ratio: Option<u64>,
}

/// The shape of Forebay's table, where a workload asks for one; what is left out is Forebay's own choice.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableOptions {
    /// Its organisation; in key order, where the workload asks for that.
    pub layout: Option<String>,
    /// Percent of the memory that tables may keep records in.
    pub resident_percent: Option<u32>,
    /// How long a write buffer is, by the memory.
    pub write_buffer_share: Option<f64>,
    /// Capacity of a node.
    pub node_bytes: Option<u64>,
    /// The most children of a node.
    pub fan_out: Option<usize>,
    /// Fast splits of a leaf for each slow one.
    pub fast_per_slow: Option<u32>,
    /// The most lists of a leaf before they are merged.
    pub lists_max: Option<usize>,
    /// How often a node may hold a key, on average, before it is spilled or merged.
    pub repeats_max: Option<f64>,
    /// How readily lists are merged for the sake of lookups; 0 for never.
    #[serde(alias = "relief_ratio")]
    pub read_compaction_ratio: Option<f64>,
    /// Filter bits a key, before what the command line gives every engine.
    pub filter_bits_per_key: Option<u32>,
    /// The most that the table's files may take, by what lives of them.
    pub max_space_amplification: Option<f64>,
    /// How soon what is deleted or overwritten leaves the files.
    pub reclaim_interval_seconds: Option<u64>,
    /// Values of at least this many bytes are kept apart from their keys.
    pub values_apart: Option<u32>,
    /// Whether there is a log: without one all is written at the durability `memory`.
    pub log: Option<bool>,
}

/// Puts of one length each, back to back: key, value, key, value.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub bytes: &'a [u8],
    pub key_bytes: usize,
    pub value_bytes: usize,
}

impl<'a> Batch<'a> {
    /// Keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let key_bytes = self.key_bytes;
        self.bytes.chunks_exact(key_bytes + self.value_bytes).map(move |record| record.split_at(key_bytes))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.bytes.len() / (self.key_bytes + self.value_bytes)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Whether a kind takes workloads that add to counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    No,
    /// And others.
    Too,
    /// And no others: for those it is no good, or the same as another kind.
    Only,
}

/// An engine that can be opened.
pub trait Kind: Sync {
    /// Its name in results, such as `forebay` or `rocksdb-leveled`.
    fn name(&self) -> &'static str;

    /// Its version, as it says itself.
    fn version(&self) -> String;

    /// Whether `direct_io` makes a difference to it.
    fn has_direct_io(&self) -> bool {
        false
    }

    /// Whether it keeps keys in order and so can scan.
    fn is_ordered(&self) -> bool {
        true
    }

    /// Whether it adds to counts.
    fn adds(&self) -> Adds {
        Adds::No
    }

    /// Whether it has transactions that read and write.
    fn transacts(&self) -> bool {
        false
    }

    /// The options it is opened with, as text to be kept beside the results.
    fn options(&self, setup: &Setup) -> String;

    /// Opens the database in an empty directory, or the one that is there already.
    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure>;
}

/// What an engine tells of its tables; bytes count from when it was opened.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Bytes written to tables, the log not among them.
    pub table_bytes_written: u64,
    /// Bytes that background work read from tables.
    pub table_bytes_read: u64,
    /// What tables' files take on disk.
    pub table_bytes: u64,
    /// About how much of that each key that is there would take once.
    pub table_live_bytes: u64,
    /// What the files may take, where something bounds that.
    pub table_limit_bytes: Option<u64>,
    /// See [`Engine::lists_per_path`].
    pub lists_per_path: f64,
}

/// What puts to an open engine, beside others.
pub trait Writer: Send {
    /// See [`Engine::put`].
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure>;
}

/// Makes a new value of a key's own, or of none.
pub type Change<'a> = dyn FnMut(Option<&[u8]>, &mut Vec<u8>) + 'a;

/// What reads and writes in transactions, beside others.
pub trait Transactor: Send {
    /// Reads keys of one length, back to back, and gives each the value that `change` makes of its own, or of none; all
    /// of them or, where another one was quicker, all again. A key may come twice. Returns how often it was tried.
    fn transact(&mut self, keys: &[u8], key_bytes: usize, change: &mut Change<'_>) -> Result<u64, Failure>;
}

/// An open engine, used by one thread.
pub trait Engine {
    /// Writes all puts of a batch at once; a batch of one by the engine's call for a single put.
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure>;

    /// One more writer, for a thread of its own, where the engine takes several.
    fn writer(&self) -> Option<Box<dyn Writer + '_>> {
        None
    }

    /// One more thread's transactions, where the engine has such as read and write.
    fn transactor(&self) -> Option<Box<dyn Transactor + '_>> {
        None
    }

    /// Adds to counts, where [`Setup::adds`] was told. A value is a count of eight bytes, little-endian; it is added to
    /// what the key has, and a key that is absent gets it. A key may come several times in a batch.
    fn add(&mut self, _batch: Batch<'_>) -> Result<(), Failure> {
        Err("it cannot add to a value".into())
    }

    /// Removes keys of one length each, back to back, in one batch.
    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure>;

    /// Appends the key's value to `value`; `false` where the key is absent.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure>;

    /// Looks many keys of one length up at once. `each` is told, in any order, the number of a key and its
    /// value, or `None` where it is absent.
    fn multi_get(
        &mut self,
        keys: &[u8],
        key_bytes: usize,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Failure> {
        let mut value = Vec::new();
        for (number, key) in keys.chunks_exact(key_bytes).enumerate() {
            value.clear();
            let found = self.get(key, &mut value)?;
            each(number, found.then_some(&value[..]));
        }
        Ok(())
    }

    /// Shows `each` at most `limit` entries in key order, beginning at the first key not below `from`.
    fn scan(&mut self, from: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure>;

    /// Shows `each` every key once with its value, in any order.
    fn for_each(&mut self, _each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        Err("it cannot show all that it has".into())
    }

    /// Returns when everything written is in the engine's tables and no background work is left: the debt is
    /// paid.
    fn drain(&mut self) -> Result<(), Failure>;

    /// Reads from the device that lookups cost so far, if the engine counts them.
    fn device_reads(&self) -> Option<u64> {
        None
    }

    /// Bytes of memory that the engine says it takes for filters and for finding pages, if it says so.
    fn index_memory_bytes(&self) -> Option<u64> {
        None
    }

    /// Sorted lists, runs or tables that a lookup may meet on its way down, on average, if the engine says so.
    fn lists_per_path(&self) -> Option<f64> {
        None
    }

    /// What it tells of its tables at this moment, if it does.
    fn observe(&self) -> Option<Observation> {
        None
    }

    /// Gives the table another organisation, in use.
    fn set_layout(&mut self, _layout: &str) -> Result<(), Failure> {
        Err("it cannot change its organisation".into())
    }

    /// Closes in order.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}
