//! What a layout costs under a workload.

use forebay_layouts::{Layout, TableOptions};
use serde::Serialize;

use super::measured::{
    BYTE_MOVED, ENTRY, ENTRY_BYTE, GET, JOB, PAGE_CACHED, PAGE_READ, PROBE, PUT, RANGE, SEEK, TREE_PASS,
    TREE_READS, VALUE_READ,
};
use super::reads::{PAGE_BYTES, ReadCompaction, cache_hits, first_share};
use super::{Machine, Workload, Writes};
use crate::Options;
use crate::simulate::{Keys, Load, Point, Rates, Simulation};

/// How often a simulated table is looked at, over the second half of its life.
const SAMPLES: u64 = 12;
/// Batches are this part of a write buffer at most: what does not fit any more leaves the rest of it empty.
const BATCH_PART: u64 = 64;
/// See [`Options::read_compaction_ratio`].
const READ_COMPACTION_RATIO: f64 = 8.0;

/// What may be advised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) layout: Layout,
    pub(super) values_apart: Option<u32>,
}

/// What a table costs, on average over its life; space and waits at their worst. Units are in the names. Times are the
/// machine's: those of the processor by its cores, and the device's behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields' names say what they are, with their units")]
pub struct Prices {
    /// What the workload takes of each second; above 1 the machine cannot keep up.
    pub busy_share: f64,
    /// Of that, the processor's part and the device's.
    pub processor_share: f64,
    pub device_share: f64,
    pub write_microseconds: f64,
    pub get_microseconds: f64,
    pub range_microseconds: f64,
    pub write_amplification: f64,
    pub device_reads_per_get: f64,
    pub device_reads_per_range: f64,
    pub lists_per_path: f64,
    pub disk_bytes_peak: u64,
    /// That by the bytes of keys and values that are there.
    pub space_amplification_peak: f64,
    /// What one write buffer makes be rewritten at most, less what the machine does while the next one fills.
    pub longest_wait_seconds: f64,
    /// Rewriting all that is there, once.
    pub rewrite_seconds: f64,
}

/// Processor and device time of one operation, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    processor: f64,
    device: f64,
}

impl Cost {
    fn seconds(self, machine: &Machine) -> f64 {
        debug_assert!(self.processor >= 0.0 && self.device >= 0.0, "nothing gives time back");
        self.processor / machine.cores + self.device
    }
}

/// Whether the cache may have a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cached {
    Usually,
    Never,
}

/// A table's life under one layout.
struct Life<'a> {
    workload: &'a Workload,
    machine: &'a Machine,
    rates: Rates,
    layout: Layout,
    /// Records that were written.
    records: f64,
    /// Of them, those that are not rewritten in the write buffer already.
    kept: f64,
    cache_bytes: f64,
    /// Bytes of records as lists have them.
    listed_bytes: f64,
    reads_values: f64,
    end: Point,
    samples: Vec<Point>,
}

impl Prices {
    pub(super) fn of(
        candidate: &Candidate,
        workload: &Workload,
        options: &Options,
        machine: &Machine,
    ) -> forebay_base::Result<Self> {
        Ok(Life::of(candidate, workload, options, machine)?.prices())
    }
}

/// The number of keys of which so many draws leave so many distinct ones.
fn drawn_from(keys: u64, draws: f64) -> u64 {
    let distinct = |from: f64| from * -(-draws / from).exp_m1();
    let (mut low, mut high) = (keys as f64, keys as f64 * 64.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if distinct(middle) < keys as f64 { low = middle } else { high = middle }
    }
    debug_assert!(high >= keys as f64, "more keys are drawn from than come");
    high.ceil() as u64
}

impl<'a> Life<'a> {
    fn of(
        candidate: &Candidate,
        workload: &'a Workload,
        options: &Options,
        machine: &'a Machine,
    ) -> forebay_base::Result<Self> {
        let layout = candidate.layout;
        let mut table = TableOptions::new(layout, options.buffer_bytes(layout));
        table.apart_bytes_min = candidate.values_apart;
        if workload.writes == Writes::Operands {
            table.tree.repeats_max = table.tree.repeats_max.min(1.5);
        }
        let value_bytes = (workload.value_bytes as f64 * (1.0 - workload.deletes_share)).round() as u64;
        let records = workload.keys as f64 * (1.0 + workload.rewrites);
        let buffer_records =
            options.buffer_bytes(layout) as f64 / (workload.key_bytes + value_bytes + 8) as f64;
        let new_share = 1.0 / (1.0 + workload.rewrites);
        let kept = new_share + (1.0 - new_share) * first_share(workload, buffer_records);
        debug_assert!((0.0..=1.0).contains(&kept), "a write is kept or rewritten in its write buffer");
        let simulated = (records * kept).ceil();
        let keys = match simulated > workload.keys as f64 * 1.001 {
            true => Keys::DrawnFrom(drawn_from(workload.keys, simulated)),
            false => Keys::Unique,
        };
        let load = Load { key_bytes: workload.key_bytes, value_bytes, records: simulated as u64, keys };
        let listed_bytes = load.listed_bytes(&table) as f64;
        let usual = Rates::measured(layout, listed_bytes as u64);
        let times = if layout.grows_trees() { TREE_PASS } else { 1.0 };
        let rates = Rates {
            record_pass_nanoseconds: times * usual.record_pass_nanoseconds,
            device_bytes_per_second: machine.device_bytes_per_second,
            cores: machine.cores,
        };
        let apart = listed_bytes < (workload.key_bytes + value_bytes) as f64;
        let batch_bytes = (options.buffer_bytes(layout) / BATCH_PART) as usize;
        let simulation = Simulation::by_batches(options.clone(), table, load, rates, batch_bytes)?;
        let sizes = (1..=SAMPLES).map(|at| load.records * (SAMPLES + at) / (2 * SAMPLES));
        let samples = simulation.points(sizes.filter(|&size| size > 0), &mut |_| {})?;
        let end = samples.last().cloned().unwrap_or_default();
        let division = options.division();
        let mut life = Self {
            workload,
            machine,
            rates,
            layout,
            records,
            kept,
            cache_bytes: 0.0,
            listed_bytes,
            reads_values: f64::from(u8::from(apart)),
            end,
            samples,
        };
        let filters = life.mean(|point| point.filter_memory_bytes_resident as f64);
        let room = division.reading_bytes() as f64 - filters;
        life.cache_bytes = room.max(division.cache_bytes_min() as f64);
        Ok(life)
    }

    fn mean(&self, of: impl Fn(&Point) -> f64) -> f64 {
        self.samples.iter().map(of).sum::<f64>() / self.samples.len().max(1) as f64
    }

    fn prices(&self) -> Prices {
        let Self { workload, machine, .. } = *self;
        let passes = self.read_compaction();
        let (write, amplification) = self.write(passes.passes);
        let (get, reads_per_get) = self.get(passes.lists);
        let (range, reads_per_range) = self.range(passes.lists);
        let costs = [write, get, range];
        let seconds = costs.map(|cost| cost.seconds(machine));
        let rates = [workload.writes_per_second, workload.gets_per_second, workload.ranges_per_second];
        let device_share: f64 = costs.iter().zip(rates).map(|(cost, rate)| cost.device * rate).sum();
        let busy_share: f64 = seconds.iter().zip(rates).map(|(cost, rate)| cost * rate).sum();
        let peak = self.samples.iter().map(|point| point.disk_bytes_peak).max().unwrap_or(0);
        Prices {
            busy_share,
            processor_share: busy_share - device_share,
            device_share,
            write_microseconds: seconds[0] * 1e6,
            get_microseconds: seconds[1] * 1e6,
            range_microseconds: seconds[2] * 1e6,
            write_amplification: amplification,
            device_reads_per_get: reads_per_get,
            device_reads_per_range: reads_per_range,
            lists_per_path: passes.lists,
            disk_bytes_peak: peak,
            space_amplification_peak: peak as f64 / workload.live_bytes().max(1.0),
            longest_wait_seconds: self.longest_wait(),
            rewrite_seconds: self.rewrite(),
        }
    }

    /// Lists on a path once lookups have had some merged: in trees of nodes alone.
    fn read_compaction(&self) -> ReadCompaction {
        let lists = self.mean(|point| point.lists_per_path);
        let Workload { writes_per_second, gets_per_second, ranges_per_second, .. } = *self.workload;
        if !self.layout.has_nodes() {
            return ReadCompaction { lists, passes: 0.0 };
        }
        let wasted_reads = self.mean(|point| point.device_reads_per_get_absent) / lists.max(1.0);
        let of_get = PROBE + wasted_reads * PAGE_READ;
        let waste = (of_get * gets_per_second + SEEK * ranges_per_second) / 1e9;
        let pass = self.rates.record_pass_nanoseconds / 1e9 + self.moved_seconds(2.0 * self.listed_bytes);
        let buffers = self.records / (self.end.records as f64 / self.end.write_buffers_filled.max(1) as f64);
        let paid = READ_COMPACTION_RATIO * waste / writes_per_second.max(1e-9);
        ReadCompaction::of(lists, buffers, pass, paid)
    }

    fn moved_seconds(&self, bytes: f64) -> f64 {
        bytes / self.machine.device_bytes_per_second
    }

    /// A write, with its share of all merges: so many more than the planner has counted.
    fn write(&self, passes: f64) -> (Cost, f64) {
        let (end, simulated) = (&self.end, self.end.records.max(1) as f64);
        let jobs: u64 = end.jobs_done.values().sum();
        let lists: u64 = end.list_bytes_written.values().sum();
        let read: u64 = end.list_bytes_read.values().sum();
        let log = end.log_bytes as f64 / simulated;
        let merged = (lists as f64 / simulated + passes * self.listed_bytes) * self.kept;
        let moved = log + merged + (read as f64 / simulated + passes * self.listed_bytes) * self.kept;
        let pass = self.rates.record_pass_nanoseconds / 1e9;
        let processor = (PUT + BYTE_MOVED * moved) / 1e9
            + (end.times.cpu_seconds / simulated + passes * pass + jobs as f64 * JOB / 1e9 / simulated)
                * self.kept;
        let put_bytes = end.data_bytes as f64 / simulated;
        (Cost { processor, device: self.moved_seconds(moved) }, (log + merged) / put_bytes)
    }

    /// What pages cost that are asked for, of which the cache has some.
    fn pages(&self, pages: f64) -> (Cost, f64) {
        let table_bytes = self.mean(|point| (point.disk_bytes - point.value_file_bytes) as f64);
        let read = pages * (1.0 - cache_hits(self.workload, self.cache_bytes, table_bytes));
        debug_assert!(read <= pages, "the cache answers some");
        let processor = (read * PAGE_READ + (pages - read) * PAGE_CACHED) / 1e9;
        let device = read / self.machine.device_reads_per_second;
        (Cost { processor, device }, read)
    }

    /// Pages that are read one by one beside those of lists: nodes of trees, and values that stand apart from their
    /// keys. The cache keeps those of gets as it does any others, but not those of ranges.
    fn beside(&self, pages: f64, cached: Cached) -> (Cost, f64) {
        let table_bytes = self.mean(|point| point.disk_bytes as f64);
        let hits = match cached {
            Cached::Usually => cache_hits(self.workload, self.cache_bytes, table_bytes),
            Cached::Never => 0.0,
        };
        let read = pages * (1.0 - hits);
        let device = read / self.machine.device_reads_per_second;
        (Cost { processor: read * VALUE_READ / 1e9, device }, read)
    }

    fn get(&self, lists: f64) -> (Cost, f64) {
        let all = self.mean(|point| point.lists_per_path).max(1.0);
        // Lists that lookups have had merged waste nothing.
        let left = (lists / all).min(1.0);
        let absent = self.mean(|point| point.device_reads_per_get_absent) * left;
        let found = self.mean(|point| point.device_reads_per_get_present) - self.reads_values;
        let wasted = (found - 1.0).max(0.0) * left;
        let present = match self.workload.writes {
            Writes::Puts => 1.0 + wasted,
            // All operands of a key are read.
            Writes::Operands => self.mean(|point| point.repeats).max(1.0) + wasted,
        };
        let share = self.workload.absent_share;
        let (pages, reads) = self.pages(present * (1.0 - share) + absent * share);
        let nodes = if self.layout.grows_trees() { TREE_READS } else { 0.0 };
        let (beside, more) = self.beside(nodes + self.reads_values * (1.0 - share), Cached::Usually);
        let processor = (GET + PROBE * lists) / 1e9 + pages.processor + beside.processor;
        (Cost { processor, device: pages.device + beside.device }, reads + more)
    }

    fn range(&self, lists: f64) -> (Cost, f64) {
        if !self.layout.is_ordered() {
            return (Cost::default(), 0.0);
        }
        let entries = self.workload.range_entries;
        let bytes = entries * self.listed_bytes;
        let (pages, reads) = self.pages(lists + bytes / PAGE_BYTES);
        // What was rewritten lies elsewhere in its tree's file.
        let is_beside =
            self.layout.grows_trees() && self.workload.value_bytes > u64::from(self.layout.inline_bytes());
        let scattered = if is_beside { self.workload.rewrites.min(1.0) } else { 0.0 };
        let (beside, more) = self.beside(entries * (self.reads_values + scattered), Cached::Never);
        let own = RANGE + SEEK * lists + ENTRY * entries + ENTRY_BYTE * bytes;
        let processor = own / 1e9 + pages.processor + beside.processor;
        (Cost { processor, device: pages.device + beside.device }, reads + more)
    }

    /// What the worst write buffer calls for, less what is done while the spare ones fill.
    fn longest_wait(&self) -> f64 {
        let buffer_records = self.end.records as f64 / self.end.write_buffers_filled.max(1) as f64;
        let worst = self.end.burst.max * buffer_records;
        let pass = self.rates.record_pass_nanoseconds / 1e9 / self.machine.cores;
        let work = worst * (pass + self.moved_seconds(2.0 * self.listed_bytes));
        (work - buffer_records / self.workload.writes_per_second.max(1e-9)).max(0.0)
    }

    fn rewrite(&self) -> f64 {
        let records = self.mean(|point| point.list_records as f64);
        let pass = self.rates.record_pass_nanoseconds / 1e9 / self.machine.cores;
        records * (pass + self.moved_seconds(2.0 * self.listed_bytes))
    }
}
