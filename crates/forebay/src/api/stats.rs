//! What can be seen of a database from outside: counters, gauges, and the trees themselves.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use forebay_base::expiry::NEVER;
use forebay_layouts::LevelDescription;
use forebay_store::leases::Held;
use forebay_store::log::Log;
use forebay_store::metrics::{CAUSES, Counter, Percentiles};
use serde::{Deserialize, Serialize};

use crate::changes::buffered_records;
use crate::engine::Engine;
use crate::history::SavepointStats;
use crate::memory::Memory;
use crate::space::TableSpaceStats;
use crate::versions::{SnapshotStats, TableState};

/// Counters since the database was opened, and gauges of now. Units are in the names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct Stats {
    /// Records that writers gave.
    pub user_records: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// The number of the last record that was accepted, ever.
    pub last_sequence: u64,
    /// The number up to which records survive a power loss; all that is there, where the database is open for reading.
    pub durable_sequence: u64,
    /// Records that are in the log and in no list or tree yet.
    pub unlisted_records: u64,
    /// Bytes of those in the log.
    pub unlisted_bytes: u64,
    /// Bytes written to the device for each byte of keys and values accepted.
    pub write_amplification: f64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Bytes written to manifests.
    pub manifest_bytes: u64,
    /// Bytes written to lists, by cause.
    pub list_bytes_written: BTreeMap<String, u64>,
    /// Bytes read from lists by background work, by cause.
    pub list_bytes_read: BTreeMap<String, u64>,
    /// Spills, slow splits and merges done.
    pub jobs_done: BTreeMap<String, u64>,
    /// Splits that moved no data, of leaves and of inner nodes.
    pub free_edits: u64,
    /// Seconds that writers have waited, all together.
    pub stall_seconds: f64,
    /// Bytes of records a second that background work may go through; 0 for no limit.
    pub background_rate_bytes: u64,
    /// Bytes of records that flushes and merges have gone through.
    pub background_bytes: u64,
    /// Seconds that merges have waited for the [rate](crate::Options::background_rate), those of all threads together.
    pub merge_wait_seconds: f64,
    /// Bytes of background work that writers have caused and that is still to be done.
    pub debt_bytes: u64,
    /// How long commits took, in microseconds.
    pub commit_latency_us: Percentiles,
    /// How long lookups took, in microseconds: of one in sixteen.
    pub get_latency_us: Percentiles,
    /// Keys that were looked up.
    pub gets: u64,
    /// Those of them that write buffers answered.
    pub gets_from_buffer: u64,
    /// Pages read from files by lookups and scans, for each lookup.
    pub device_reads_per_get: f64,
    /// Pages read from files by lookups and scans.
    pub device_reads: u64,
    /// Bytes of those.
    pub device_read_bytes: u64,
    /// Pages that the page cache had.
    pub cache_hits: u64,
    /// Questions to filters, by lookups for a key and by scans for a key prefix.
    pub filter_probes: u64,
    /// Lists that scans passed over, because their filters [denied the key prefix](crate::TableBuilder::prefix_filter).
    pub prefix_denials: u64,
    /// Questions of lookups that a filter did not deny, of keys that were not there. Those of scans are not followed up.
    pub filter_false_positives: u64,
    /// Bytes of lists, value files and the log's records, for each byte of records in lists and of values that they have
    /// pointers to, outdated ones included.
    pub space_amplification: f64,
    /// Bytes on disk: lists, trees, value files and the log.
    pub disk_bytes: u64,
    /// Of them, the log's that are in lists or tables' memory already: kept for changes, or for those tables.
    pub kept_log_bytes: u64,
    /// Values that are kept apart from their keys.
    pub values: ValueStats,
    /// Lists and trees.
    pub list_files: u64,
    /// Records in lists and trees, every version of a key and every tombstone counted: an upper bound of how many keys there are.
    pub list_records: u64,
    /// Bytes of those.
    pub list_record_bytes: u64,
    /// Memory now, by owner.
    pub memory: Memory,
    /// Memory of filters and page search, for each record in lists.
    pub memory_bytes_per_record: f64,
    /// Each table's levels.
    pub tables: Vec<TableStats>,
    /// Snapshots that are held, oldest first, with what they hold of all tables.
    pub snapshots: Vec<SnapshotStats>,
    /// Savepoints, oldest first.
    pub savepoints: Vec<SavepointStats>,
    /// Processes that read the database beside the one that writes it, and what each of them holds.
    pub readers: Vec<ReaderStats>,
}

/// A process that reads a database that another one writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct ReaderStats {
    /// Its number; 0 where that is not known.
    pub process: u64,
    /// Bytes of files that are kept because it may need them: they go once it has
    /// [read on](crate::Database::refresh), or ends.
    pub held_bytes: u64,
    /// Why nothing more is known of it, if so, with the path: it may be dead, and everything is kept until that is
    /// mended or removed.
    pub trouble: Option<String>,
}

/// Values that are kept apart from their keys, of all tables.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct ValueStats {
    /// Files of such.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// About what of that lists have pointers to.
    pub live_bytes: u64,
    /// Bytes that merges have moved from one file to another.
    pub moved_bytes: u64,
}

impl ReaderStats {
    fn all(engine: &Engine) -> Vec<Self> {
        let held = engine.versions.lists.trash.held_by_readers(&*engine.context.env.fs);
        let of = |(Held { process, trouble, .. }, held_bytes)| Self { process, held_bytes, trouble };
        held.into_iter().map(of).collect()
    }
}

impl ValueStats {
    fn of(engine: &Engine) -> Self {
        let files = engine.versions.lists.values.all();
        Self {
            files: files.len() as u64,
            file_bytes: files.iter().map(|file| file.bytes()).fold(0, u64::saturating_add),
            live_bytes: engine.versions.value_use().values().sum::<f64>() as u64,
            moved_bytes: engine.context.metrics.value_bytes_moved.get(),
        }
    }
}

/// A table's levels, and what it takes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableStats {
    /// Its name.
    pub name: String,
    /// Its layout, as the command writes it.
    pub layout: String,
    /// Its levels, top first.
    pub levels: Vec<LevelDescription>,
    /// How much of it is copied, from 0 to 1, while it is being given another order.
    pub reordered_share: Option<f64>,
    /// What it takes on disk.
    pub space: TableSpaceStats,
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// To the log, manifests, lists, trees and value files.
fn bytes_written(metrics: &forebay_store::Metrics) -> u64 {
    let list_bytes: u64 = metrics.list_bytes_written.iter().map(Counter::get).sum();
    metrics.log_bytes.get() + metrics.manifest_bytes.get() + list_bytes + metrics.value_bytes_moved.get()
}

fn by_cause(counters: &[Counter; 4]) -> BTreeMap<String, u64> {
    CAUSES.iter().zip(counters).map(|(cause, counter)| (cause.name().to_string(), counter.get())).collect()
}

impl TableStats {
    fn of(engine: &Engine, table: &TableState, levels: Vec<LevelDescription>) -> Self {
        let (name, layout) = (table.name.clone(), table.options.layout.to_string());
        let progress = engine.versions.reordered(table.id);
        let reordered_share = progress.map(|(done, all)| ratio(done, all));
        Self { name, layout, levels, reordered_share, space: engine.space.space_of(table) }
    }
}

impl Stats {
    pub(crate) fn of(engine: &Engine) -> Self {
        let (metrics, state) = (&engine.context.metrics, engine.versions.state());
        let (values, memory) = (ValueStats::of(engine), Memory::of(&engine.versions));
        let (mut files, mut tables, mut list_records, mut list_record_bytes) =
            (BTreeMap::new(), Vec::new(), 0, 0);
        for table in state.tables.values() {
            let on_disk = table.version.files().into_iter().filter(|file| !file.is_resident());
            files.extend(on_disk.map(|file| (file.id(), file.bytes())));
            let levels = table.version.describe().levels;
            list_records += levels.iter().map(|level| level.records).sum::<u64>();
            list_record_bytes += levels.iter().map(|level| level.bytes).sum::<u64>();
            if !table.is_hidden() {
                tables.push(TableStats::of(engine, table, levels));
            }
        }
        let buffers = state.sealed.iter().chain([&state.active]);
        let log_on_disk: u64 = buffers.map(|buffer| buffer.len() as u64).sum();
        let unlisted_records = buffered_records(&engine.versions.view()).sum();
        let (flushed, kept_log_bytes) = engine.versions.lock().flushed_and_kept();
        // Opened for reading, nothing is written: the last record is the last one of the log.
        let (log, last) = (engine.context.log.as_ref(), flushed + unlisted_records);
        let kept_bytes = engine.history.bytes_kept() + kept_log_bytes;
        let disk_bytes = files.values().sum::<u64>() + values.file_bytes + log_on_disk + kept_bytes;
        Self {
            user_records: metrics.user_records.get(),
            user_bytes: metrics.user_bytes.get(),
            last_sequence: log.map_or(last, Log::last_sequence),
            durable_sequence: log.map_or_else(|| engine.seen_durable(last), Log::durable_sequence),
            unlisted_records,
            unlisted_bytes: log_on_disk,
            write_amplification: ratio(bytes_written(metrics), metrics.user_bytes.get()),
            log_bytes: metrics.log_bytes.get(),
            log_syncs: metrics.log_syncs.get(),
            manifest_bytes: metrics.manifest_bytes.get(),
            list_bytes_written: by_cause(&metrics.list_bytes_written),
            list_bytes_read: by_cause(&metrics.list_bytes_read),
            jobs_done: by_cause(&metrics.jobs_done),
            free_edits: metrics.free_edits.get(),
            stall_seconds: metrics.stall_nanoseconds.get() as f64 / 1e9,
            background_rate_bytes: engine.context.limit.rate().bytes(),
            background_bytes: metrics.background_bytes.get(),
            merge_wait_seconds: metrics.merge_wait_nanoseconds.get() as f64 / 1e9,
            debt_bytes: engine.versions.debt(&engine.versions.state()),
            commit_latency_us: metrics.commit_latency.percentiles(),
            get_latency_us: metrics.get_latency.percentiles(),
            gets: metrics.gets.get(),
            gets_from_buffer: metrics.gets_from_buffer.get(),
            device_reads_per_get: ratio(metrics.page_reads.get(), metrics.gets.get()),
            device_reads: metrics.page_reads.get(),
            device_read_bytes: metrics.page_read_bytes.get(),
            cache_hits: metrics.cache_hits.get(),
            filter_probes: metrics.filter_probes.get(),
            prefix_denials: metrics.prefix_denials.get(),
            filter_false_positives: metrics.filter_false.get(),
            space_amplification: ratio(disk_bytes, list_record_bytes + values.live_bytes + log_on_disk),
            disk_bytes,
            kept_log_bytes,
            values,
            list_files: files.len() as u64,
            list_records,
            list_record_bytes,
            memory_bytes_per_record: ratio(memory.filters + memory.page_search, list_records),
            memory,
            tables,
            snapshots: engine.versions.snapshots(None),
            savepoints: engine.history.savepoints(),
            readers: ReaderStats::all(engine),
        }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: String| writeln!(f, "{name:<34}{value:>20}");
        row("records accepted", self.user_records.to_string())?;
        row("bytes accepted", self.user_bytes.to_string())?;
        row("write amplification", format!("{:.2}", self.write_amplification))?;
        row("  log bytes", self.log_bytes.to_string())?;
        for (cause, bytes) in &self.list_bytes_written {
            row(&format!("  {} bytes", cause.replace('_', " ")), bytes.to_string())?;
        }
        row("space amplification", format!("{:.2}", self.space_amplification))?;
        row("bytes on disk", self.disk_bytes.to_string())?;
        row("  kept log bytes", self.kept_log_bytes.to_string())?;
        if self.values.files > 0 {
            row("value files", self.values.files.to_string())?;
            row("  bytes", self.values.file_bytes.to_string())?;
            row("  live bytes, about", self.values.live_bytes.to_string())?;
        }
        row("list files", self.list_files.to_string())?;
        row("records in lists", self.list_records.to_string())?;
        row("records in the log only", self.unlisted_records.to_string())?;
        row("last record's number", self.last_sequence.to_string())?;
        row("stall seconds", format!("{:.3}", self.stall_seconds))?;
        if self.background_rate_bytes > 0 {
            row("background bytes a second", self.background_rate_bytes.to_string())?;
            row("  merge wait seconds", format!("{:.3}", self.merge_wait_seconds))?;
        }
        row("debt bytes", self.debt_bytes.to_string())?;
        row("commit p50 / p99 / max us", spread(&self.commit_latency_us))?;
        row("gets", self.gets.to_string())?;
        row("device reads per get", format!("{:.3}", self.device_reads_per_get))?;
        row("get p50 / p99 / max us", spread(&self.get_latency_us))?;
        self.memory
            .rows()
            .into_iter()
            .try_for_each(|(name, bytes)| row(&format!("memory: {name}"), bytes.to_string()))?;
        row("filter + page search B/record", format!("{:.2}", self.memory_bytes_per_record))?;
        if self.unlisted_records > 0 && self.list_records == 0 {
            writeln!(f, "all records are in the log still, so tables have no levels yet")?;
        }
        for table in &self.tables {
            writeln!(f, "table {} ({})", table.name, table.layout)?;
            for level in &table.levels {
                let LevelDescription { level, nodes, lists, lists_max, bytes, records, in_memory } = level;
                let place = if *in_memory { " in memory" } else { "" };
                write!(
                    f,
                    "  level {level}{place}: {nodes} nodes, {lists} lists (at most {lists_max} a node), "
                )?;
                writeln!(f, "{records} records, {bytes} bytes")?;
            }
            table.space.fmt(f)?;
        }
        for snapshot in &self.snapshots {
            let SnapshotStats { number, age_seconds, held_bytes, own_bytes } = snapshot;
            write!(f, "snapshot {number}, {age_seconds} s old: holds {held_bytes} bytes, ")?;
            writeln!(f, "{own_bytes} of them alone")?;
        }
        for savepoint in &self.savepoints {
            writeln!(f, "savepoint {savepoint}")?;
        }
        for ReaderStats { process, held_bytes, trouble } in &self.readers {
            if let Some(trouble) = trouble {
                writeln!(f, "a process may be reading: {held_bytes} bytes are kept for it: {trouble}")?;
                continue;
            }
            writeln!(f, "process {process} reads: {held_bytes} bytes are kept for it")?;
        }
        Ok(())
    }
}

/// A time in the largest unit of which it is a whole number, as the command takes it.
pub(crate) fn time_text(time: Duration) -> String {
    const UNITS: [(u128, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    if time == Duration::MAX || time.as_millis() >= u128::from(NEVER) {
        return "forever".into();
    }
    let milliseconds = time.as_millis();
    let whole = |(unit, _): &&(u128, &str)| milliseconds > 0 && milliseconds.is_multiple_of(*unit);
    match UNITS.iter().find(whole) {
        Some((unit, name)) => format!("{}{name}", milliseconds / unit),
        None => format!("{milliseconds}ms"),
    }
}

fn spread(latency: &Percentiles) -> String {
    format!("{:.0} / {:.0} / {:.0}", latency.p50, latency.p99, latency.max)
}
