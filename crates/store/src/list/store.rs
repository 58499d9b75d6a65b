//! Where lists are made and found: one directory, one supply of ids, one cache, one set of options.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::codec::Codec;
use forebay_base::{Order, PrefixFilter};
use forebay_env::fs::MemoryFs;
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::{Clock, FileSystem};

use super::disk::DiskUse;
use super::filter::{Allowance, FilterKind, FilterLevel};
use super::resident_limit::ResidentLimit;
use super::trash::{Leaving, Trash};
use crate::cache::PageCache;
use crate::metrics::Metrics;
use crate::names;
use crate::salvage::Gaps;
use crate::values::{ValueFiles, ValueShare};

/// What the manifest keeps of a file of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMeta {
    /// Its id, which names it.
    pub id: u64,
    /// Its length. Of a tree: as far as the version reaches.
    pub bytes: u64,
    /// The checksum of its footer or of its root, which holds the checksums of all the rest.
    pub digest: u32,
    /// What is in it.
    pub kind: FileKind,
    /// What it has in value files. A tree names those, too, that earlier versions had values in.
    pub values: Arc<[ValueShare]>,
}

/// What a file of records is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A sorted list, which never changes.
    List,
    /// A copy-on-write tree, which may grow.
    Tree,
}

/// How a table's lists are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListOptions {
    /// Sorts records, and decides which kind of filter there is.
    pub order: Order,
    /// Filter memory; 0 for no filter.
    pub filter_bits_per_key: u32,
    /// Which key prefixes filters know, too; `None` for none. In key order alone.
    pub prefix_filter: Option<PrefixFilter>,
    /// Page compression.
    pub codec: Codec,
    /// Values of at least this many bytes stay in value files; `None` for none.
    pub apart_bytes_min: Option<u32>,
}

impl ListOptions {
    /// What filters of its lists are like.
    pub fn filter_kind(&self) -> FilterKind {
        FilterKind { is_ranked: self.order.is_uniform(), bits_per_key: self.filter_bits_per_key }
    }
}

/// What it takes to make and read the lists of one table. Cheap to clone.
#[derive(Clone)]
pub struct ListStore {
    /// The files.
    pub fs: Arc<dyn FileSystem>,
    /// The database's directory.
    pub dir: PathBuf,
    /// The next file id of the database.
    pub next_id: Arc<AtomicU64>,
    /// Pages in memory.
    pub cache: Arc<PageCache>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Retired files.
    pub trash: Arc<Trash>,
    /// Where long values are.
    pub values: Arc<ValueFiles>,
    /// What this table's files take.
    pub disk: Arc<DiskUse>,
    /// How this table's lists are made.
    pub options: ListOptions,
    /// By which entries expire; `None` where they do not.
    pub expiry: Option<Arc<dyn Clock>>,
    /// How thin filters are in memory; those of files may have more.
    pub filter_level: Arc<FilterLevel>,
    /// What tables may keep in memory.
    pub resident: Arc<ResidentLimit>,
    /// Where damage is noted that is passed over; `None` where it is an error.
    pub salvage: Option<Arc<Gaps>>,
    /// Whether this is a store of lists in memory.
    pub in_memory: bool,
}

impl ListStore {
    /// A store of lists in memory, made as this one's are. They are none of the device's, and neither cached nor
    /// counted as its own.
    pub fn in_memory(&self) -> Self {
        Self {
            fs: MemoryFs::new(),
            dir: PathBuf::new(),
            cache: Arc::new(PageCache::new(0)),
            metrics: Arc::new(Metrics { memory: Arc::clone(&self.metrics.memory), ..Metrics::default() }),
            trash: Arc::default(),
            in_memory: true,
            // It takes none.
            disk: Arc::default(),
            ..self.clone()
        }
    }

    /// How thin the filter of a list is to be that comes to the others.
    pub(super) fn filter_allowance(&self, density: f64, id: u64) -> Allowance {
        self.filter_level.allowance_beside(self.metrics.filter_memory_bytes.get(), density, id)
    }

    /// A fresh file id.
    pub fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn path(&self, id: u64) -> PathBuf {
        names::list(&self.dir, id)
    }

    /// Sees to it that a file goes that nobody reads any more: removing takes the device long, and memory no time.
    pub(super) fn retire(&self, path: PathBuf, bytes: u64) {
        self.disk.let_go(bytes);
        let file = Leaving::counted(path, &self.disk, bytes);
        match self.in_memory {
            true => self.trash.remove(&*self.fs, file),
            false => self.trash.add(file),
        }
    }

    /// Removes a file that was never finished.
    pub(crate) fn discard(&self, path: PathBuf) {
        self.trash.discard(&*self.fs, path);
    }
}
