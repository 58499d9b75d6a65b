//! Where trees are made and found: one directory, one supply of ids, one cache, one set of options.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::Order;
use forebay_base::codec::Codec;
use forebay_base::limits::BLOCK_BYTES;
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::{Clock, FileSystem};
use forebay_store::list::{DiskUse, FilterLevel, Trash};
use forebay_store::salvage::Gaps;
use forebay_store::{Metrics, ValueFiles, names};

use crate::cache::NodeCache;
use crate::file::OpenFiles;

/// How trees are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeOptions {
    /// Sorts records.
    pub order: Order,
    /// A node is sealed before it gets longer than this, unless two entries are. Old nodes stay as they are.
    pub node_bytes_max: usize,
    /// Longer values are kept apart from their keys.
    pub inline_value_bytes_max: usize,
    /// Filter memory once a tree has grown by half; 0 for no filter.
    pub filter_bits_per_key: u32,
    /// By what nodes and values of new files are compressed, each by itself. A file keeps the codec it was built with.
    pub codec: Codec,
}

impl TreeOptions {
    /// Nodes of a block, values in them that a reference would not shorten much, and filters that err about once in a
    /// hundred times.
    pub fn new(order: Order) -> Self {
        Self {
            order,
            node_bytes_max: BLOCK_BYTES,
            inline_value_bytes_max: 64,
            filter_bits_per_key: 10,
            codec: Codec::None,
        }
    }
}

/// What it takes to make and read trees. Cheap to clone.
#[derive(Clone)]
pub struct TreeStore {
    /// The files.
    pub fs: Arc<dyn FileSystem>,
    /// The database's directory.
    pub dir: PathBuf,
    /// The next file id of the database.
    pub next_id: Arc<AtomicU64>,
    /// Nodes in memory.
    pub cache: Arc<NodeCache>,
    /// Where long values may stand.
    pub values: Arc<ValueFiles>,
    /// Counters: what trees write and read counts as lists' does.
    pub metrics: Arc<Metrics>,
    /// Retired files.
    pub trash: Arc<Trash>,
    /// What the table's files take.
    pub disk: Arc<DiskUse>,
    /// The files that are open.
    pub files: Arc<OpenFiles>,
    /// How trees are made.
    pub options: TreeOptions,
    /// By which entries expire; `None` where they do not.
    pub expiry: Option<Arc<dyn Clock>>,
    /// Where damage is noted that is passed over; `None` where it is an error.
    pub salvage: Option<Arc<Gaps>>,
    /// How thin filters are in memory; those of files may have more.
    pub filter_level: Arc<FilterLevel>,
}

impl TreeStore {
    pub(crate) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn path(&self, id: u64) -> PathBuf {
        names::tree(&self.dir, id)
    }
}
