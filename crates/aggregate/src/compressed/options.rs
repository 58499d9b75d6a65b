//! What the compressed aggregator is told, and how large its parts are.

use forebay_buffer_tree::TreeOptions;
use forebay_env::Jobs;

/// A node holds so many bytes, before packing.
const NODE_BYTES_MAX: u64 = 1 << 20;
const NODE_BYTES_MIN: u64 = 4 << 10;
const FAN_OUT: usize = 256;
/// A leaf is merged once all its lists hold so many times what the longest does.
const REPEATS_MAX: f64 = 1.7;
const LISTS_MAX: usize = 1024;
/// A root buffer takes this share of the memory, within these bounds.
const ROOT_SHARE: usize = 32;
const ROOT_BYTES_MIN: usize = 16 << 10;
const ROOT_BYTES_MAX: usize = 4 << 20;
/// Keys that come again and again have this share of the memory, or less.
const HOT_SHARE: usize = 16;
const HOT_BYTES_MAX: usize = 1 << 20;
/// Root buffers that may wait.
pub(super) const SEALED_MAX: usize = 2;
/// Where memory is short, merging gives back one part in so many more than is needed.
pub(super) const SLACK: usize = 16;
/// What a worker takes to merge: this share of the memory, within these bounds.
const WORKER_SHARE: usize = 8;
const WORKER_BYTES_MIN: usize = 128 << 10;
const WORKER_BYTES_MAX: usize = 2 << 20;

/// How a [`CompressedAggregator`] works.
#[derive(Clone, Debug)]
pub struct AggregatorOptions {
    pub(super) memory_limit_bytes: usize,
    pub(super) threads: usize,
    pub(super) jobs: Option<Jobs>,
}

impl Default for AggregatorOptions {
    /// 1 GiB of memory, two threads.
    fn default() -> Self {
        Self { memory_limit_bytes: 1 << 30, threads: 2, jobs: None }
    }
}

impl AggregatorOptions {
    /// Memory for everything.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit_bytes = bytes;
        self
    }

    /// How many threads work: the one that adds and others behind it. With 1 it does all by itself.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Who drives the workers; a seeded stepper in tests.
    #[doc(hidden)]
    pub fn jobs(mut self, jobs: Jobs) -> Self {
        self.jobs = Some(jobs);
        self
    }
}

/// How large parts are.
pub(super) struct Sizes {
    /// A root buffer is sealed at so many bytes.
    pub(super) root_bytes: usize,
    pub(super) hot_bytes: usize,
    /// What root buffers, what is hot and merging may take besides fragments.
    pub(super) overhead_bytes: usize,
}

impl Sizes {
    pub(super) fn new(memory_max: usize, threads: usize) -> Self {
        let root_bytes = (memory_max / ROOT_SHARE).clamp(ROOT_BYTES_MIN, ROOT_BYTES_MAX);
        let hot_bytes = (memory_max / HOT_SHARE).min(HOT_BYTES_MAX);
        let worker_bytes = (memory_max / WORKER_SHARE).clamp(WORKER_BYTES_MIN, WORKER_BYTES_MAX);
        // What grows has up to twice what it needs.
        let roots = 2 * (SEALED_MAX + 1) * root_bytes;
        Self { root_bytes, hot_bytes, overhead_bytes: roots + hot_bytes + threads.max(1) * worker_bytes }
    }
}

/// The tree for so much memory. All splits are slow: a leaf that is full is merged, for its keys may repeat.
pub(super) fn tree_options(memory_max: usize) -> TreeOptions {
    TreeOptions {
        node_bytes: (memory_max as u64 / 16).clamp(NODE_BYTES_MIN, NODE_BYTES_MAX),
        fan_out: FAN_OUT,
        fast_per_slow: 0,
        lists_max: LISTS_MAX,
        repeats_max: REPEATS_MAX,
    }
}
