//! Counters and gauges. They observe and do not steer, but for the gauges of memory, by which the engine decides
//! whether filters are made thinner.

use std::sync::Arc;
use std::time::Duration;

use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::sync::{Mutex, Striped};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::memory::MemoryUse;

/// Why bytes were written to or read from lists and trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A full write buffer went to the root's children.
    Flush,
    /// A full inner node went to its children.
    Spill,
    /// A leaf was merged and split.
    SlowSplit,
    /// A leaf was merged in place.
    Merge,
}

impl Cause {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Spill => "spill",
            Self::SlowSplit => "slow_split",
            Self::Merge => "merge",
        }
    }
}

/// Every cause, in order of its counters.
pub const CAUSES: [Cause; 4] = [Cause::Flush, Cause::Spill, Cause::SlowSplit, Cause::Merge];

/// A sum that only grows, to which many threads add.
#[derive(Debug, Default)]
pub struct Counter(Striped<AtomicU64>);

impl Counter {
    /// Adds.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.own().fetch_add(amount, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.all().map(|part| part.load(Ordering::Relaxed)).sum()
    }
}

/// How much there is of something now.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Adds.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Subtracts.
    #[inline]
    pub fn subtract(&self, amount: u64) {
        let before = self.0.fetch_sub(amount, Ordering::Relaxed);
        debug_assert!(before >= amount, "what goes was counted: {amount} of {before}");
    }

    /// How much it is.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram of latencies in nanoseconds, up to an hour, to three digits. It takes memory from the first one on.
#[derive(Debug, Default)]
pub struct Latency(Striped<Mutex<Option<Histogram<u64>>>>);

/// Percentiles in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many were measured.
    pub count: u64,
    /// Half were faster.
    pub p50: f64,
    /// 99 of 100 were faster.
    pub p99: f64,
    /// 999 of 1,000 were faster.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
}

impl Latency {
    /// Adds one measurement.
    pub fn record(&self, took: Duration) {
        let mut guard = self.0.own().lock();
        if guard.is_none() {
            *guard = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).ok();
        }
        if let Some(histogram) = guard.as_mut() {
            histogram.saturating_record(took.as_nanos().max(1) as u64);
        }
    }

    /// What was measured so far.
    pub fn percentiles(&self) -> Percentiles {
        let parts: Vec<_> = self.0.all().map(|part| part.lock()).collect();
        let mut parts = parts.iter().filter_map(|part| part.as_ref());
        match (parts.next(), parts.next()) {
            (None, _) => Percentiles::default(),
            (Some(only), None) => Percentiles::of(only),
            (Some(first), Some(next)) => {
                let mut sum = first.clone();
                for part in std::iter::once(next).chain(parts) {
                    let added = sum.add(part);
                    debug_assert!(added.is_ok(), "all have the same bounds");
                }
                Percentiles::of(&sum)
            }
        }
    }
}

impl Percentiles {
    fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            count: histogram.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1e3,
        }
    }
}

impl Metrics {
    /// Of a database that may take this much memory in all.
    pub fn within(memory_limit_bytes: u64) -> Self {
        Self { memory: Arc::new(MemoryUse::new(memory_limit_bytes)), ..Self::default() }
    }
}

/// All counters of one open database.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Records accepted.
    pub user_records: Counter,
    /// Bytes of their keys and values.
    pub user_bytes: Counter,
    /// Bytes written to the log, frames and padding included.
    pub log_bytes: Counter,
    /// Bytes written to manifests.
    pub manifest_bytes: Counter,
    /// Syncs of the log.
    pub log_syncs: Counter,
    /// Bytes written to list files and trees by cause, in the order of [`CAUSES`].
    pub list_bytes_written: [Counter; 4],
    /// Bytes read from list files and trees by background work, by cause.
    pub list_bytes_read: [Counter; 4],
    /// Point lookups.
    pub gets: Counter,
    /// Lookups answered by a write buffer.
    pub gets_from_buffer: Counter,
    /// Filters asked, by lookups for a key and by scans for a key prefix.
    pub filter_probes: Counter,
    /// Lists that scans passed over, for their filters denied the key prefix.
    pub prefix_denials: Counter,
    /// Pages that then did not hold the key that was looked up.
    pub filter_false: Counter,
    /// Pages read from files by lookups and scans; of trees, nodes and values; and values in value files.
    pub page_reads: Counter,
    /// Bytes of those pages.
    pub page_read_bytes: Counter,
    /// Pages found in the cache.
    pub cache_hits: Counter,
    /// Bytes of values that merges have moved from one value file to another.
    pub value_bytes_moved: Counter,
    /// Bytes of records that flushes and merges have gone through.
    pub background_bytes: Counter,
    /// Nanoseconds that merges waited for others to have gone no faster than they may.
    pub merge_wait_nanoseconds: Counter,
    /// Nanoseconds that writers waited for background work.
    pub stall_nanoseconds: Counter,
    /// What work takes of the memory.
    pub memory: Arc<MemoryUse>,
    /// Memory of resident filters.
    pub filter_memory_bytes: Gauge,
    /// Memory of page indexes and digests.
    pub index_memory_bytes: Gauge,
    /// Commit latency.
    pub commit_latency: Latency,
    /// Lookup latency.
    pub get_latency: Latency,
    /// Spills, slow splits and merges finished, by cause.
    pub jobs_done: [Counter; 4],
    /// Edits that moved no data: fast splits, splits of inner nodes, growth.
    pub free_edits: Counter,
}
