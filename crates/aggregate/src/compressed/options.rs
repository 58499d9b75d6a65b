//! What the compressed aggregator is told, and how large its parts are.

use forebay_env::Jobs;

/// A leaf is split once its chunks take this share of the memory, within these bounds.
const LEAF_SHARE: usize = 64;
const LEAF_BYTES_MIN: usize = 16 << 10;
const LEAF_BYTES_MAX: usize = 256 << 10;
/// A leaf is merged once so many bytes were added to it for each that its chunks take.
pub(super) const TAIL_RATIO: f64 = 1.5;
pub(super) const SEGMENT_BYTES: usize = 4 << 10;
/// Keys that come again and again have this share of the memory, or less.
const HOT_SHARE: usize = 16;
const HOT_BYTES_MAX: usize = 1 << 20;
/// Leaves that may wait for each worker.
pub(super) const QUEUE_PER_WORKER: usize = 2;
/// Where memory is short and merging gives back less than one part in so many, it does not suffice.
pub(super) const SLACK: usize = 32;

/// How a [`CompressedAggregator`] works.
///
/// [`CompressedAggregator`]: super::CompressedAggregator
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
    /// A leaf is split once its chunks take so many bytes.
    pub(super) leaf_bytes: usize,
    /// A leaf is not merged before so many bytes were added to it.
    pub(super) tail_bytes_min: usize,
    pub(super) hot_bytes: usize,
    /// What merges may take until they have given back what they merged.
    pub(super) reserve_bytes: usize,
}

impl Sizes {
    pub(super) fn new(memory_max: usize, threads: usize) -> Self {
        let leaf_bytes = (memory_max / LEAF_SHARE).clamp(LEAF_BYTES_MIN, LEAF_BYTES_MAX);
        Self {
            leaf_bytes,
            tail_bytes_min: leaf_bytes / 4,
            hot_bytes: (memory_max / HOT_SHARE).min(HOT_BYTES_MAX),
            reserve_bytes: threads.max(1) * 4 * leaf_bytes,
        }
    }
}
