//! What is told: one object a line, or a table.

mod summary;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::host::Machine;
use crate::host::cache::CacheDrop;
use crate::plan::CgroupState;

pub(crate) use summary::Summaries;
pub(crate) use table::Table;

/// One line of results.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Line {
    /// Opens each run.
    Setup(Setup),
    /// What a phase came to.
    Phase(Box<Phase>),
    /// A run that counts for nothing.
    Failure(Failed),
    /// An engine that cannot do a workload.
    Skipped(Failed),
    /// One engine's phase over all repetitions.
    Summary(Summary),
}

/// What a run's figures are to be read against.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) engine: String,
    pub(crate) version: String,
    pub(crate) workload: String,
    pub(crate) repetition: u32,
    pub(crate) bench_version: String,
    pub(crate) seed: u64,
    pub(crate) dir: PathBuf,
    pub(crate) records: u64,
    pub(crate) batch: u64,
    pub(crate) machine: Machine,
    pub(crate) cgroup: CgroupState,
    /// The engine's options in its own words.
    pub(crate) options: String,
    /// What every engine was given.
    pub(crate) setup: serde_json::Value,
}

/// Measures of a phase; `null` where there was nothing to measure or the system does not tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Phase {
    pub(crate) engine: String,
    pub(crate) version: String,
    pub(crate) workload: String,
    pub(crate) phase: String,
    pub(crate) repetition: u32,
    /// Records written, read or removed in the phase.
    pub(crate) operations: u64,
    /// Records that are there at its end.
    pub(crate) records: u64,
    pub(crate) seconds: f64,
    pub(crate) operations_per_second: Option<f64>,
    pub(crate) cpu_seconds_per_million: Option<f64>,
    pub(crate) generator_cpu_seconds: f64,
    pub(crate) latency_us: Latency,
    pub(crate) longest_gap_ms: f64,
    pub(crate) throughput_cv: Option<f64>,
    pub(crate) user_bytes: u64,
    pub(crate) write_bytes: Option<u64>,
    pub(crate) read_bytes: Option<u64>,
    pub(crate) device_write_bytes: Option<u64>,
    pub(crate) device_read_bytes: Option<u64>,
    pub(crate) write_amplification: Option<f64>,
    pub(crate) write_amplification_total: Option<f64>,
    pub(crate) disk_bytes: u64,
    pub(crate) space_amplification: Option<f64>,
    pub(crate) device_reads_per_get: Option<f64>,
    pub(crate) kernel_reads_per_get: Option<f64>,
    pub(crate) block_reads_per_get: Option<f64>,
    pub(crate) index_memory_bytes_per_key: Option<f64>,
    pub(crate) peak_memory_bytes: Option<u64>,
    pub(crate) cgroup_peak_bytes: Option<u64>,
    pub(crate) page_cache_dropped: Option<CacheDrop>,
    /// Always none: a wrong answer ends the run.
    pub(crate) wrong_answers: u64,
}

/// Of calls, in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p99_9: f64,
    pub(crate) p99_99: f64,
    pub(crate) max: f64,
}

impl Latency {
    /// From nanoseconds.
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            p50: at(0.5),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: histogram.max() as f64 / 1e3,
        }
    }
}

/// A run without result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) engine: String,
    pub(crate) workload: String,
    pub(crate) repetition: u32,
    pub(crate) reason: String,
}

/// Over repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) workload: String,
    pub(crate) phase: String,
    pub(crate) engine: String,
    pub(crate) repetitions: usize,
    pub(crate) operations_per_second: Spread,
    /// The first engine's median by this one's.
    pub(crate) first_engine_by_this: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// `part / whole`, where there is a whole.
pub(crate) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// `count` a second.
pub(crate) fn rate(count: u64, elapsed: Duration) -> Option<f64> {
    if count == 0 { None } else { ratio(count as f64, elapsed.as_secs_f64()) }
}
