//! What the compressed aggregator is told, and how large its parts are.

use std::fmt;

use forebay_base::limits::VALUE_BYTES_MAX;
use forebay_env::Jobs;
use forebay_env::sync::Arc;

use super::hashing::Hashing;
use super::stream::SEGMENT_BYTES;
use crate::spilled::SpillTarget;
use crate::stages::Stages;

/// A leaf is split once its chunks take this share of the memory, within these bounds.
const LEAF_SHARE: usize = 64;
const LEAF_BYTES_MIN: usize = 16 << 10;
const LEAF_BYTES_MAX: usize = 256 << 10;
/// A leaf is merged once this many bytes were added to it for each that its chunks take.
pub(super) const TAIL_RATIO: f64 = 1.5;
/// Keys that come again and again have this share of the memory, or less.
const HOT_SHARE: usize = 16;
const HOT_BYTES_MAX: usize = 1 << 20;
/// Leaves that may wait for each worker.
pub(super) const QUEUE_PER_WORKER: usize = 2;
/// Where memory is short and merging gives back less than one part in this many, it does not suffice.
pub(super) const SLACK: usize = 32;
/// What a thread merges with takes this many times what a leaf's chunks take: the records that were added, their order,
/// and what sorting them takes,
const SCRATCH_LEAVES: usize = 6;
/// and this much for chunks.
const SCRATCH_BYTES: usize = 64 << 10;

/// Where memory is short and there is another place for groups, that has this share of the memory,
const SPILLED_SHARE: usize = 4;
/// but this much at least.
const SPILLED_BYTES_MIN: usize = 1 << 20;

/// How a [`CompressedAggregator`] works.
///
/// [`CompressedAggregator`]: super::CompressedAggregator
#[derive(Clone)]
pub struct AggregatorOptions {
    pub(super) memory_limit_bytes: usize,
    pub(super) threads: usize,
    pub(super) adders: usize,
    pub(super) jobs: Option<Jobs>,
    pub(super) spill: Option<Arc<dyn SpillTarget>>,
    pub(super) state_bytes_max: usize,
    pub(super) hashing: Hashing,
    pub(super) stages: Option<Arc<Stages>>,
}

impl Default for AggregatorOptions {
    /// 1 GiB of memory, two threads.
    fn default() -> Self {
        Self {
            memory_limit_bytes: 1 << 30,
            threads: 2,
            adders: 1,
            jobs: None,
            spill: None,
            state_bytes_max: VALUE_BYTES_MAX,
            hashing: Hashing::WHOLE,
            stages: None,
        }
    }
}

impl AggregatorOptions {
    /// Memory for everything.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit_bytes = bytes;
        self
    }

    /// How many threads work: one that adds and others behind it. With 1 it does all by itself.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// How many threads add at the same time without waiting for one another, 1 by default; more may add. From 2 on
    /// groups are divided by their hashes between four trees for each, and each of these threads keeps up to 4 KiB of
    /// records for each tree, of all together a thirty-second part of the memory at most.
    pub fn adders(mut self, adders: usize) -> Self {
        self.adders = adders.clamp(1, ADDERS_MAX);
        self
    }

    /// Goes on in another place where memory does not suffice. Then a quarter of the memory, 1 MiB at least, is kept for
    /// what that takes.
    pub fn spill_to(mut self, place: impl SpillTarget + 'static) -> Self {
        self.spill = Some(Arc::new(place));
        self
    }

    /// The longest state that is kept; less than it is in tests.
    #[doc(hidden)]
    pub fn state_bytes_max(mut self, bytes: usize) -> Self {
        self.state_bytes_max = bytes;
        self
    }

    /// Lets many keys have equal hashes, of which there are as many as so many bits have; in tests.
    #[doc(hidden)]
    pub fn colliding(mut self, bits: u32) -> Self {
        self.hashing = Hashing::colliding(bits);
        self
    }

    /// Counts what each stage of merging takes.
    pub fn stages(mut self, stages: Arc<Stages>) -> Self {
        self.stages = Some(stages);
        self
    }

    /// Who drives the workers; a seeded stepper in tests.
    #[doc(hidden)]
    pub fn jobs(mut self, jobs: Jobs) -> Self {
        self.jobs = Some(jobs);
        self
    }
}

impl fmt::Debug for AggregatorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AggregatorOptions")
            .field("memory_limit_bytes", &self.memory_limit_bytes)
            .field("threads", &self.threads)
            .field("spills", &self.spill.is_some())
            .finish_non_exhaustive()
    }
}

/// A leaf with fewer records than this is not split, however long they are,
pub(super) const LEAF_RECORDS_MIN: u64 = 64;
/// nor one that has this many bits more than leaves have on average.
pub(super) const LEAF_BITS_MORE: u32 = 6;

/// More threads than these share what they have for themselves.
const ADDERS_MAX: usize = 256;
/// Trees for each thread that adds, and in all.
const SHARDS_PER_ADDER: usize = 4;
const SHARDS_MAX: usize = 64;
/// What is staged takes this share of the memory at most.
const STAGED_SHARE: usize = 32;
/// Leaves that each tree has room for at least.
const LEAVES_PER_SHARD: usize = 4;

/// How large parts are.
#[derive(Default)]
pub(super) struct Sizes {
    /// A leaf is split once its chunks take this many bytes.
    pub(super) leaf_bytes: usize,
    /// A leaf is not merged before this many bytes were added to it.
    pub(super) tail_bytes_min: usize,
    /// What keys that come again and again may take; nothing where they stay in the leaves.
    pub(super) hot_bytes: usize,
    /// What is staged for trees may take.
    pub(super) staged_bytes: usize,
    /// There is a tree for each value of so many first bits of hashes.
    pub(super) shard_bits: u32,
    /// What groups in files may take; nothing where there are none.
    pub(super) spilled_bytes: usize,
    /// What merging may take besides segments.
    pub(super) scratch_bytes: usize,
    /// What merges may write more than they read.
    pub(super) reserve_bytes: usize,
}

impl Sizes {
    pub(super) fn new(options: &AggregatorOptions, state_bytes: Option<usize>) -> Self {
        let (memory_max, adders) = (options.memory_limit_bytes, options.adders);
        // Who adds merges too.
        let threads = options.threads.max(1) - 1 + adders;
        let spilled_bytes =
            options.spill.as_ref().map_or(0, |_| (memory_max / SPILLED_SHARE).max(SPILLED_BYTES_MIN));
        let memory_max = memory_max.saturating_sub(spilled_bytes);
        const { assert!(LEAF_BYTES_MIN <= LEAF_BYTES_MAX && HOT_SHARE > 0 && SLACK > 0) };
        let staged_max = memory_max / STAGED_SHARE / (adders * SEGMENT_BYTES);
        let shards = (SHARDS_PER_ADDER * adders).next_power_of_two().min(SHARDS_MAX).min(staged_max);
        let shard_bits = if adders > 1 { shards.max(1).ilog2() } else { 0 };
        let leaf_share = LEAF_SHARE.max(LEAVES_PER_SHARD << shard_bits);
        let leaf_bytes = (memory_max / leaf_share).clamp(LEAF_BYTES_MIN, LEAF_BYTES_MAX);
        Self {
            leaf_bytes,
            tail_bytes_min: leaf_bytes / 4,
            hot_bytes: state_bytes.map_or(0, |_| (memory_max / HOT_SHARE).min(adders * HOT_BYTES_MAX)),
            // One who adds alone stages nothing, or a little.
            staged_bytes: if adders > 1 { (adders << shard_bits) * SEGMENT_BYTES } else { 0 },
            shard_bits,
            spilled_bytes,
            scratch_bytes: threads * (SCRATCH_LEAVES * leaf_bytes + SCRATCH_BYTES),
            reserve_bytes: threads * leaf_bytes,
        }
    }

    /// The least memory that these sizes go with.
    pub(super) fn least_bytes(&self) -> usize {
        self.spilled_bytes
            + self.scratch_bytes
            + self.reserve_bytes
            + 2 * (self.hot_bytes + self.staged_bytes)
            + self.leaf_bytes
    }
}
