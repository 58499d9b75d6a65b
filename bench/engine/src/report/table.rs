//! Results as a table for a person: a row for each phase, rows of one width.

use std::fmt::Write;

use forebay_units::sizes;

use super::{Line, Phase, Setup, Spread, Summary};
use crate::plan::CgroupState;

/// Name, width, and what stands in the column.
type Column = (&'static str, usize, fn(&Phase) -> Option<String>);

const COLUMNS: &[Column] = &[
    ("phase", 17, |row| Some(row.phase.clone())),
    ("rep", 4, |row| Some(row.repetition.to_string())),
    ("operations", 11, |row| Some(row.operations.to_string())),
    ("seconds", 9, |row| Some(format!("{:.2}", row.seconds))),
    ("ops/s", 10, |row| row.operations_per_second.map(|rate| format!("{rate:.0}"))),
    ("cpu us/op", 10, |row| row.cpu_seconds_per_million.map(|cpu| format!("{cpu:.3}"))),
    ("p50 us", 9, |row| latency(row, row.latency_us.p50)),
    ("p99 us", 9, |row| latency(row, row.latency_us.p99)),
    ("p99.9 us", 9, |row| latency(row, row.latency_us.p99_9)),
    ("max us", 9, |row| latency(row, row.latency_us.max)),
    ("get p99", 9, |row| row.gets.map(|gets| format!("{:.1}", gets.latency_us.p99))),
    ("get max", 9, |row| row.gets.map(|gets| format!("{:.1}", gets.latency_us.max))),
    ("gap ms", 8, |row| latency(row, row.longest_gap_ms)),
    ("cv", 6, |row| row.throughput_cv.map(|cv| format!("{cv:.2}"))),
    ("w-amp", 7, |row| {
        row.write_amplification_total.or(row.write_amplification).map(|amp| format!("{amp:.2}"))
    }),
    ("s-amp", 7, |row| row.space_amplification.map(|amp| format!("{amp:.2}"))),
    ("reads/get", 10, |row| {
        row.device_reads_per_get.or(row.kernel_reads_per_get).map(|reads| format!("{reads:.3}"))
    }),
    ("mem B/key", 10, |row| row.index_memory_bytes_per_key.map(|bytes| format!("{bytes:.2}"))),
    ("peak MiB", 9, |row| row.peak_memory_bytes.map(|bytes| (bytes >> 20).to_string())),
];

/// Lines to a person.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Engine and workload of the last row.
    last: Option<(String, String)>,
    summarised: bool,
}

impl Table {
    /// The text of a line, without its newline; `None` for a line that a person need not see.
    pub(crate) fn text(&mut self, line: &Line) -> Option<String> {
        match line {
            Line::Setup(setup) => {
                let of = (setup.engine.clone(), setup.workload.clone());
                let is_new = self.last.as_ref() != Some(&of);
                self.last = Some(of);
                is_new.then(|| format!("{}\n{}", about(setup), head()))
            }
            Line::Phase(phase) => Some(row(|(_, _, text)| text(phase).unwrap_or_else(|| "-".into()))),
            // A person reads it on standard error.
            Line::Failure(_) => None,
            Line::Skipped(skipped) => {
                Some(format!("\n{} on {}: skipped, as {}", skipped.workload, skipped.engine, skipped.reason))
            }
            // Of a single run it would say nothing new.
            Line::Summary(summary) if summary.runs == 1 => None,
            Line::Summary(summary) => {
                let heading = if self.summarised { String::new() } else { format!("{}\n", summary_head()) };
                self.summarised = true;
                Some(heading + &summary_row(summary))
            }
        }
    }
}

fn about(setup: &Setup) -> String {
    let memory = |bytes: Option<u64>| bytes.map_or_else(|| "?".into(), sizes::human);
    let cgroup = match &setup.cgroup {
        CgroupState::Off => "no cgroup".into(),
        CgroupState::Unavailable(reason) => reason.clone(),
        CgroupState::Limited { limit_bytes, .. } => format!("cgroup of {}", sizes::human(*limit_bytes)),
    };
    format!(
        "\n{} on {} {}: {} records, batches of {}, seed {}, {cgroup}; {} cores, {}, Linux {}\n  {}",
        setup.workload,
        setup.engine,
        setup.version,
        setup.records,
        setup.batch,
        setup.seed,
        setup.machine.cores,
        memory(setup.machine.memory_bytes),
        setup.machine.kernel,
        setup.options,
    )
}

/// The names of the columns.
pub(super) fn head() -> String {
    row(|(name, _, _)| (*name).to_string())
}

/// The first column is aligned to the left, numbers to the right.
fn row(text: impl Fn(&Column) -> String) -> String {
    let mut line = String::new();
    for (index, column) in COLUMNS.iter().enumerate() {
        let (text, width) = (text(column), column.1);
        let _ = if index == 0 { write!(line, "{text:<width$}") } else { write!(line, "{text:>width$}") };
    }
    line
}

/// A phase without operations is one long call.
fn latency(row: &Phase, figure: f64) -> Option<String> {
    (row.operations > 0).then(|| short(figure))
}

fn short(number: f64) -> String {
    if number < 100.0 { format!("{number:.2}") } else { format!("{number:.0}") }
}

fn summary_head() -> String {
    format!(
        "\n{:<16}{:<18}{:<20}{:>5}{:>12}{:>12}{:>12}{:>10}{:>9}",
        "workload", "phase", "engine", "reps", "median/s", "min/s", "max/s", "median s", "speedup"
    )
}

fn summary_row(summary: &Summary) -> String {
    let Summary { workload, phase, engine, repetitions, operations_per_second: rates, seconds, .. } = summary;
    let rate = |of: fn(&Spread) -> f64| {
        rates.as_ref().map_or_else(|| "-".into(), |rates| format!("{:.0}", of(rates)))
    };
    let (median, min, max) = (rate(|rates| rates.median), rate(|rates| rates.min), rate(|rates| rates.max));
    let speedup = summary.first_engine_speedup.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}"));
    format!(
        "{workload:<16}{phase:<18}{engine:<20}{repetitions:>5}{median:>12}{min:>12}{max:>12}{:>10.2}{speedup:>9}",
        seconds.median
    )
}
