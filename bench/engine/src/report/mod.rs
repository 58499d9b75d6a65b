//! What is told: one object a line, or a table.

mod summary;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::host::Machine;
use crate::host::cache::CacheDrop;
use crate::host::counters::Counters;
use crate::host::threads::Kind;
use crate::meter;
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
    pub(crate) cpu_seconds: f64,
    pub(crate) cpu_seconds_per_million: Option<f64>,
    pub(crate) generator_cpu_seconds: f64,
    /// Left out where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_seconds_by_thread: Option<ByThread>,
    /// Of the time of all cores, what this process took.
    #[serde(default)]
    pub(crate) processor_share: Option<f64>,
    /// What all processes took. Left out where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) machine_busy_share: Option<f64>,
    pub(crate) latency_us: Latency,
    /// Of lookups beside other work, which the latency leaves out.
    pub(crate) gets: Option<Gets>,
    pub(crate) longest_gap_ms: f64,
    pub(crate) throughput_cv: Option<f64>,
    pub(crate) operations_per_100_ms: Vec<u64>,
    /// Operations in the slowest and in the fastest second.
    #[serde(default)]
    pub(crate) slowest_second_operations: Option<u64>,
    #[serde(default)]
    pub(crate) fastest_second_operations: Option<u64>,
    /// How far it had come, at up to 200 moments.
    #[serde(default)]
    pub(crate) curve: Vec<Point>,
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
    pub(crate) lists_per_path: Option<f64>,
    pub(crate) peak_memory_bytes: Option<u64>,
    pub(crate) cgroup_peak_bytes: Option<u64>,
    /// How often a transaction was tried, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tries_per_operation: Option<f64>,
    pub(crate) page_cache_dropped: Option<CacheDrop>,
    /// Always none: a wrong answer ends the run.
    pub(crate) wrong_answers: u64,
    /// How things stood meanwhile, where the workload asks for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) samples: Vec<Sample>,
}

/// Processor time by what threads are there for; together it is that of the process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ByThread {
    pub(crate) writers: f64,
    pub(crate) sort: f64,
    pub(crate) flush: f64,
    pub(crate) compact: f64,
    pub(crate) house: f64,
    pub(crate) io: f64,
    /// Threads that have ended, too.
    pub(crate) others: f64,
}

impl ByThread {
    pub(crate) fn of(counters: &Counters) -> Option<Self> {
        let threads = counters.threads?;
        let seconds = |kind: Kind| threads.of(kind).as_secs_f64();
        Some(Self {
            writers: seconds(Kind::Writer),
            sort: seconds(Kind::Sort),
            flush: seconds(Kind::Flush),
            compact: seconds(Kind::Compact),
            house: seconds(Kind::House),
            io: seconds(Kind::Io),
            others: counters.cpu.saturating_sub(threads.sum()).as_secs_f64(),
        })
    }
}

/// How far a phase had come at a moment: what counts from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) seconds: f64,
    pub(crate) operations: u64,
    pub(crate) cpu_seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_seconds_by_thread: Option<ByThread>,
    pub(crate) write_bytes: Option<u64>,
    #[serde(default)]
    pub(crate) read_bytes: Option<u64>,
}

impl Point {
    pub(crate) fn new(seconds: f64, operations: u64, counters: &Counters) -> Self {
        Self {
            seconds,
            operations,
            cpu_seconds: counters.cpu.as_secs_f64(),
            cpu_seconds_by_thread: ByThread::of(counters),
            write_bytes: counters.process.map(|io| io.write_bytes),
            read_bytes: counters.process.map(|io| io.read_bytes),
        }
    }
}

/// How things stood at a moment of a phase. Bytes of tables count from when the engine was opened, where it tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Of the phase.
    pub(crate) seconds: f64,
    /// That are there.
    pub(crate) records: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) space_amplification: Option<f64>,
    pub(crate) table_bytes_written: Option<u64>,
    pub(crate) table_bytes_read: Option<u64>,
    /// What tables' files take, how much of that is of use, and what they may take, where that is bounded.
    pub(crate) table_bytes: Option<u64>,
    pub(crate) table_live_bytes: Option<u64>,
    pub(crate) table_limit_bytes: Option<u64>,
    pub(crate) lists_per_path: Option<f64>,
    /// What a range took, on average, where some were read.
    pub(crate) range_us: Option<f64>,
}

/// Of calls, in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
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
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: histogram.max() as f64 / 1e3,
        }
    }
}

/// Single lookups beside other work.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Gets {
    pub(crate) count: u64,
    pub(crate) latency_us: Latency,
    /// Processor time of the thread that asks: what a lookup takes where nothing takes the processor from it.
    pub(crate) cpu_us: Latency,
    /// Reads from the device that one lookup cost, where the engine counts them.
    pub(crate) device_reads: Option<Reads>,
}

/// Of single lookups.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Reads {
    pub(crate) mean: f64,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl Gets {
    pub(crate) fn of(taken: &meter::Gets) -> Self {
        let reads = &taken.device_reads;
        Self {
            count: taken.latency.len(),
            latency_us: Latency::of(&taken.latency),
            cpu_us: Latency::of(&taken.cpu),
            device_reads: (!reads.is_empty()).then(|| Reads {
                mean: reads.mean(),
                p50: reads.value_at_quantile(0.5),
                p99: reads.value_at_quantile(0.99),
                max: reads.max(),
            }),
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
    /// Of all engines together.
    pub(crate) runs: usize,
    /// `null` for a phase without operations, such as `drain`.
    pub(crate) operations_per_second: Option<Spread>,
    pub(crate) seconds: Spread,
    /// How many times as fast as this engine the first one is, by medians: of rates, and where there are none
    /// of seconds.
    pub(crate) first_engine_speedup: Option<f64>,
}

/// Over repetitions.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::threads::Threads;

    /// A phase that took a second, with the rest made up.
    pub(super) fn phase(engine: &str, phase: &str, repetition: u32, rate: Option<f64>) -> Phase {
        let zero = Latency { p50: 1.0, p95: 1.5, p99: 2.0, p99_9: 3.0, p99_99: 4.0, max: 5.0 };
        Phase {
            engine: engine.into(),
            version: "1".into(),
            workload: "w".into(),
            phase: phase.into(),
            repetition,
            operations: 1,
            records: 1,
            seconds: 1.0,
            operations_per_second: rate,
            cpu_seconds: 0.0,
            cpu_seconds_per_million: None,
            generator_cpu_seconds: 0.0,
            cpu_seconds_by_thread: None,
            processor_share: None,
            machine_busy_share: None,
            latency_us: zero,
            gets: None,
            longest_gap_ms: 0.0,
            throughput_cv: None,
            operations_per_100_ms: Vec::new(),
            slowest_second_operations: None,
            fastest_second_operations: None,
            curve: Vec::new(),
            user_bytes: 0,
            write_bytes: None,
            read_bytes: None,
            device_write_bytes: None,
            device_read_bytes: None,
            write_amplification: None,
            write_amplification_total: None,
            disk_bytes: 0,
            space_amplification: None,
            device_reads_per_get: None,
            kernel_reads_per_get: None,
            block_reads_per_get: None,
            index_memory_bytes_per_key: None,
            lists_per_path: None,
            peak_memory_bytes: None,
            cgroup_peak_bytes: None,
            page_cache_dropped: None,
            tries_per_operation: None,
            wrong_answers: 0,
            samples: Vec::new(),
        }
    }

    #[test]
    fn what_no_kind_of_thread_took_is_others() {
        let mut threads = Threads::default();
        threads.add(Kind::Writer, Duration::from_secs(3));
        threads.add(Kind::Compact, Duration::from_secs(2));
        let counters =
            Counters { cpu: Duration::from_secs(9), threads: Some(threads), ..Counters::default() };
        let told = ByThread::of(&counters).unwrap();
        assert_eq!((told.writers, told.compact, told.others), (3.0, 2.0, 4.0));
        assert_eq!(ByThread::of(&Counters { threads: None, ..counters }), None);
    }

    #[test]
    fn a_line_survives_the_way_to_the_driver() {
        let line = Line::Phase(Box::new(phase("a", "load", 1, Some(2.5))));
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.starts_with(r#"{"type":"phase","engine":"a""#), "{text}");
        let Line::Phase(read) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
        assert_eq!((read.operations_per_second, read.wrong_answers), (Some(2.5), 0));
    }

    #[test]
    fn rows_are_as_wide_as_their_head() {
        let mut table = Table::default();
        let row = table.text(&Line::Phase(Box::new(phase("a", "load", 1, Some(2.5))))).unwrap();
        assert_eq!(row.len(), table::head().len());
    }
}
