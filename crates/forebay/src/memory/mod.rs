//! Who has memory now.

mod filters;
mod idle;
mod pinned;
mod share;

use std::sync::Arc;

use forebay_env::sync::atomic::{AtomicBool, AtomicU64};
use forebay_env::sync::{Mutex, Rank};
use forebay_store::Owner;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::versions::Versions;

pub(crate) use idle::IdleWatch;
use share::Demand;

/// Who gets how much of the memory limit, for now.
pub(crate) struct MemoryShares {
    context: Arc<Context>,
    versions: Arc<Versions>,
    /// Nobody has written for a while.
    is_idle: AtomicBool,
    /// Memory that writing needs may still be with those who read.
    has_lent: AtomicBool,
    /// How much had been written when that began.
    idle_from_bytes: AtomicU64,
    /// Memory is shared by one at a time: who still reckons with what is lent must not do so behind who takes it back.
    sharing: Mutex<()>,
    /// What filters took, and what their share was, when nothing of them could be given back.
    in_vain: Mutex<Option<(u64, u64)>>,
    /// How many lists there were when it was last looked at what they stand for, and how many that may be again by now.
    lists_noted: AtomicU64,
    lists_paid: AtomicU64,
    /// In a pool: what this database has use for, the share that it keeps to, and that its housekeeper rests.
    demand: Mutex<Demand>,
    followed_bytes: AtomicU64,
    rests: AtomicBool,
}

impl MemoryShares {
    pub(crate) fn new(versions: &Arc<Versions>) -> Self {
        let (context, versions) = (Arc::clone(&versions.context), Arc::clone(versions));
        let (is_idle, has_lent) = (AtomicBool::new(false), AtomicBool::new(false));
        let (sharing, in_vain) = (Mutex::default(), Mutex::ranked(Rank::Leaf, None));
        let idle_from_bytes = AtomicU64::new(0);
        let (lists_noted, lists_paid) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            context,
            versions,
            is_idle,
            has_lent,
            idle_from_bytes,
            sharing,
            in_vain,
            lists_noted,
            lists_paid,
            demand: Mutex::default(),
            followed_bytes: AtomicU64::new(0),
            rests: AtomicBool::new(false),
        }
    }

    /// Shares memory for the first time, before anything is read.
    pub(crate) fn begin(&self) {
        self.share_memory();
        self.plan_filters(filters::SHARES_PLANNED[0]);
    }
}

/// Memory by owner, in bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Memory {
    /// The memory limit.
    pub limit: u64,
    /// Write buffers, also those that only snapshots see.
    pub write_buffers: u64,
    /// The order over the records of write buffers.
    pub buffer_indexes: u64,
    /// Records that tables keep in memory and no file has.
    pub resident_records: u64,
    /// Filters of lists and trees.
    pub filters: u64,
    /// What finds the page of a key in a list.
    pub page_search: u64,
    /// Pages of lists and nodes of trees.
    pub page_cache: u64,
    /// What merges read lists and trees into.
    pub merging: u64,
    /// Lists and trees that are being written, with their filters.
    pub writing: u64,
    /// What scans read into, and the pages that they stand on.
    pub scanning: u64,
    /// All of these.
    pub total: u64,
}

impl Memory {
    pub(crate) fn of(versions: &Versions) -> Self {
        let (context, metrics, state) = (&versions.context, &versions.context.metrics, versions.state());
        let buffers = state.sealed.iter().chain([&state.active]);
        let of = |owner| metrics.memory.now(owner);
        let memory = Self {
            limit: context.limit.bytes(),
            write_buffers: context.pool.held_bytes(),
            buffer_indexes: buffers.map(|buffer| buffer.index_bytes() as u64).sum(),
            resident_records: versions.resident_bytes(),
            filters: metrics.filter_memory_bytes.get(),
            page_search: metrics.index_memory_bytes.get(),
            page_cache: versions.lists.cache.memory_bytes() + versions.trees.cache.memory_bytes(),
            merging: of(Owner::Merging),
            writing: of(Owner::Writing),
            scanning: of(Owner::Scanning) + of(Owner::Standing),
            total: 0,
        };
        let Self { write_buffers, buffer_indexes, filters, page_search, page_cache, .. } = memory;
        // Records in memory with their own filters and page search.
        let resident = of(Owner::Resident);
        let kept = write_buffers + buffer_indexes + resident + filters + page_search + page_cache;
        Self { total: kept + memory.merging + memory.writing + memory.scanning, ..memory }
    }

    /// Each owner by a name for people.
    pub(crate) fn rows(&self) -> [(&'static str, u64); 11] {
        let Self {
            filters,
            page_search,
            page_cache,
            resident_records,
            write_buffers,
            buffer_indexes,
            merging,
            writing,
            scanning,
            total,
            limit,
        } = *self;
        [
            ("filters", filters),
            ("page search", page_search),
            ("page cache", page_cache),
            ("resident records", resident_records),
            ("write buffers", write_buffers),
            ("buffer indexes", buffer_indexes),
            ("merges", merging),
            ("files being written", writing),
            ("scans", scanning),
            ("in all", total),
            ("limit", limit),
        ]
    }
}
