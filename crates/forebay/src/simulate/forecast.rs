//! The answer of a simulation, as numbers and as a table.

use std::collections::BTreeMap;

use forebay_layouts::LevelDescription;
use forebay_layouts::{Simulated, TableOptions};
use forebay_store::metrics::CAUSES;
use serde::Serialize;

use super::rates::Work;
use super::{Keys, Load, Progress, Rates, Simulation, Times};
use crate::Options;

/// What a load comes to. Units are in the names.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the fields' names say what they are, with their units")]
pub struct Forecast {
    pub layout: String,
    /// Whether that is a tree of nodes, and not runs of files.
    #[serde(skip)]
    pub has_nodes: bool,
    pub key_bytes: u64,
    pub value_bytes: u64,
    /// `None` where no key comes twice.
    pub distinct_keys: Option<u64>,
    /// Of a load that comes upon low keys more often than on others.
    pub zipf_exponent: Option<f64>,
    pub memory_limit_bytes: u64,
    pub write_buffer_bytes: u64,
    pub node_bytes: u64,
    pub fan_out: usize,
    pub fast_per_slow: u32,
    pub lists_max: usize,
    pub repeats_max: f64,
    pub filter_bits_per_key: u32,
    /// What times are predicted from.
    pub rates: Rates,
    /// At the end.
    #[serde(flatten)]
    pub end: Point,
    /// On the way there.
    pub growth: Vec<Point>,
}

/// How things stand after this many records. As far as they have the same names, these are the figures of
/// [`Stats`](crate::Stats).
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "the fields' names say what they are, with their units")]
pub struct Point {
    pub records: u64,
    pub data_bytes: u64,
    pub write_buffers_filled: u64,
    #[serde(flatten)]
    pub times: Times,
    /// The log's and all lists' bytes by bytes of keys and values.
    pub write_amplification: f64,
    pub log_bytes: u64,
    pub list_bytes_written: BTreeMap<String, u64>,
    pub list_bytes_read: BTreeMap<String, u64>,
    pub jobs_done: BTreeMap<String, u64>,
    pub free_edits: u64,
    /// What one write buffer makes be rewritten, in write buffers.
    pub burst: Bursts,
    pub space_amplification: f64,
    /// The most disk space that was needed at any time, by bytes of records that lists hold now.
    pub space_amplification_peak: f64,
    pub disk_bytes: u64,
    pub disk_bytes_peak: u64,
    /// Of the disk's, where values stand apart.
    pub value_file_bytes: u64,
    pub list_files: u64,
    pub list_records: u64,
    pub list_record_bytes: u64,
    /// Records in lists by distinct keys.
    pub repeats: f64,
    pub nodes: u64,
    pub levels: Vec<LevelDescription>,
    pub lists_per_path: f64,
    pub lists_per_path_max: u64,
    /// Of a key that lists hold; no page is cached.
    pub device_reads_per_get_present: f64,
    pub device_reads_per_get_absent: f64,
    /// Filters and page search, for each record in lists.
    pub memory_bytes_per_record: f64,
    pub filter_memory_bytes: u64,
    /// What the limit leaves room for; beyond it filters are made thinner.
    pub filter_memory_bytes_max: u64,
    pub filter_memory_bytes_resident: u64,
    pub page_search_memory_bytes: u64,
    pub tree_memory_bytes: u64,
}

/// A distribution over all write buffers.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct Bursts {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl Bursts {
    fn of(bytes: &[u64], unit_bytes: u64) -> Self {
        let mut sorted = bytes.to_vec();
        sorted.sort_unstable();
        let at = |quantile: f64| {
            let rank = ((sorted.len() as f64 * quantile).ceil() as usize).saturating_sub(1);
            sorted.get(rank).copied().unwrap_or(0) as f64 / unit_bytes as f64
        };
        Self { p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

fn by_cause(counts: &[u64; 4]) -> BTreeMap<String, u64> {
    CAUSES.iter().zip(counts).map(|(cause, &count)| (cause.name().to_string(), count)).collect()
}

impl Simulation {
    /// How things stand once this many records were accepted: some are still in the active write buffer.
    pub(super) fn point(&self, tree: &dyn Simulated, state: &Progress, records: u64) -> Point {
        let (traffic, holdings) = (tree.inventory().traffic(), tree.inventory().holdings());
        let model = tree.inventory().model();
        let put_bytes = model.put_bytes();
        let log_bytes = self.buffer.log_bytes(records);
        let buffers = self.options.division().buffers(false);
        let log_live = self.buffer.log_bytes(records - state.records);
        let log_on_disk = match self.is_saturated {
            // Segments are made as long as they will be: those of all buffers, and the next.
            true => buffers.total_bytes() + buffers.bytes,
            false => log_live,
        };
        let written: u64 = traffic.bytes_written.iter().sum();
        let read: u64 = traffic.bytes_read.iter().sum();
        let flushed = traffic.records_read[0];
        let merged = traffic.records_read[1..].iter().sum();
        let work = Work { records, device_bytes: log_bytes + written + read, flushed, merged };
        let levels = tree.levels();
        let list_records: u64 = levels.iter().map(|level| level.records).sum();
        let list_record_bytes = list_records * model.record_bytes;
        let pointed_bytes = list_records * model.pointed_bytes;
        // All segments that were flushed, until more of them is dead than alive.
        let value_file_bytes = self.buffer.log_bytes(state.records).min(2 * pointed_bytes);
        let disk_bytes = tree.file_bytes() + log_on_disk + value_file_bytes;
        // While a write buffer is written to a list, the log has both it and the next.
        let disk_bytes_peak = tree.file_bytes_max() + log_on_disk.max(2 * buffers.bytes) + value_file_bytes;
        let paths = tree.paths();
        let resident = tree.filters().resident_bytes();
        Point {
            records,
            data_bytes: records * put_bytes,
            write_buffers_filled: state.bursts.len() as u64,
            times: Times::of(&work, &self.rates),
            write_amplification: ratio((log_bytes + written) as f64, (records * put_bytes) as f64),
            log_bytes,
            list_bytes_written: by_cause(&traffic.bytes_written),
            list_bytes_read: by_cause(&traffic.bytes_read),
            jobs_done: by_cause(&traffic.jobs),
            free_edits: tree.free_edits(),
            burst: Bursts::of(&state.bursts, self.options.division().buffers(false).bytes),
            space_amplification: ratio(
                disk_bytes as f64,
                (list_record_bytes + pointed_bytes + log_live) as f64,
            ),
            space_amplification_peak: ratio(
                disk_bytes_peak as f64,
                (list_record_bytes + pointed_bytes) as f64,
            ),
            disk_bytes,
            disk_bytes_peak,
            value_file_bytes,
            list_files: holdings.files,
            list_records,
            list_record_bytes,
            repeats: ratio(list_records as f64, paths.keys),
            nodes: levels.iter().map(|level| level.nodes as u64).sum(),
            levels,
            lists_per_path: paths.lists_mean,
            lists_per_path_max: paths.lists_max,
            device_reads_per_get_present: paths.reads_present + if pointed_bytes > 0 { 1.0 } else { 0.0 },
            device_reads_per_get_absent: paths.reads_absent,
            memory_bytes_per_record: ratio((resident + holdings.search_bytes) as f64, list_records as f64),
            filter_memory_bytes: holdings.filter_bytes,
            filter_memory_bytes_max: self.filter_bytes(),
            filter_memory_bytes_resident: resident,
            page_search_memory_bytes: holdings.search_bytes,
            tree_memory_bytes: tree.tree_memory_bytes(),
        }
    }
}

impl Forecast {
    pub(super) fn new(
        options: &Options,
        table: &TableOptions,
        load: &Load,
        rates: &Rates,
        end: Point,
        growth: Vec<Point>,
    ) -> Self {
        let tree = table.tree;
        Self {
            layout: table.layout.to_string(),
            has_nodes: table.layout.has_nodes(),
            key_bytes: load.key_bytes,
            value_bytes: load.value_bytes,
            distinct_keys: load.keys.distinct(),
            zipf_exponent: match load.keys {
                Keys::Zipf { exponent_percent, .. } => Some(f64::from(exponent_percent) / 100.0),
                Keys::Unique | Keys::DrawnFrom(_) => None,
            },
            memory_limit_bytes: options.memory_limit_bytes(),
            write_buffer_bytes: options.division().buffers(false).bytes,
            node_bytes: tree.node_bytes,
            fan_out: tree.fan_out,
            fast_per_slow: tree.fast_per_slow,
            lists_max: tree.lists_max,
            repeats_max: tree.repeats_max,
            filter_bits_per_key: table.filter_bits_per_key,
            rates: *rates,
            end,
            growth,
        }
    }
}
