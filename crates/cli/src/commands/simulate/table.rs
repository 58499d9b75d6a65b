//! A forecast for a person.

use std::fmt;

use forebay::simulate::{Bound, Forecast, Point};

use crate::output::thousands;
use forebay_units::sizes::human;

pub(super) struct Table<'a>(pub(super) &'a Forecast);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.assumed(f)?;
        self.times(f)?;
        self.traffic(f)?;
        self.reads(f)?;
        self.memory(f)?;
        self.levels(f)?;
        self.growth(f)
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, value: impl fmt::Display) -> fmt::Result {
    writeln!(f, "{name:<36}{value}")
}

fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("{:.1} min", seconds / 60.0),
        seconds if seconds < 172_800.0 => format!("{:.1} h", seconds / 3600.0),
        seconds => format!("{:.1} days", seconds / 86_400.0),
    }
}

fn bound_by(bound: Bound) -> &'static str {
    match bound {
        Bound::Device => "the device",
        Bound::Cores => "all cores",
        Bound::Flusher => "the thread that writes full write buffers to lists",
        Bound::Compactor => "the thread that merges",
    }
}

impl Table<'_> {
    fn assumed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Forecast { end, rates, .. } = self.0;
        let keys = match self.0.distinct_keys {
            None => "no key twice".to_string(),
            Some(keys) => format!("{} distinct keys", thousands(keys)),
        };
        let keys =
            keys + &self.0.zipf_exponent.map_or(String::new(), |exponent| format!(" by Zipf {exponent}"));
        row(f, "layout", &self.0.layout)?;
        let (key, value) = (self.0.key_bytes, self.0.value_bytes);
        row(f, "records", format_args!("{} of {key} + {value} B, {keys}", thousands(end.records)))?;
        row(f, "data", human(end.data_bytes))?;
        let (limit, buffer) = (human(self.0.memory_limit_bytes), human(self.0.write_buffer_bytes));
        row(f, "memory", format_args!("{limit}, write buffers of {buffer}"))?;
        let (node, fan_out) = (human(self.0.node_bytes), self.0.fan_out);
        let (fast, bits) = (self.0.fast_per_slow, self.0.filter_bits_per_key);
        if self.0.has_nodes {
            row(f, "nodes", format_args!("{node}, fan-out {fan_out}, {} lists a leaf", self.0.lists_max))?;
            row(f, "splits, filters", format_args!("{fast} fast splits to a slow one, {bits} bits a key"))?;
        } else {
            row(f, "files, filters", format_args!("{node}, {bits} bits a key"))?;
        }
        let (device, pass) = (rates.device_bytes_per_second / 1e6, rates.record_pass_nanoseconds);
        row(
            f,
            "machine",
            format_args!("{device:.0} MB/s, {} cores, {pass:.0} ns a record pass", rates.cores),
        )?;
        writeln!(f)
    }

    fn times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = &self.0.end.times;
        row(f, "records/s", thousands(times.records_per_second as u64))?;
        row(f, "time", format_args!("{}, bound by {}", duration(times.seconds), bound_by(times.bound_by)))?;
        row(f, "  of the device", duration(times.device_seconds))?;
        row(f, "  of all cores together", duration(times.cpu_seconds))?;
        row(f, "  of the thread that flushes", duration(times.flusher_seconds))?;
        row(f, "  of the thread that merges", duration(times.compactor_seconds))
    }

    fn traffic(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = &self.0.end;
        let by_user = |bytes: u64| bytes as f64 / end.data_bytes.max(1) as f64;
        row(f, "write amplification", format_args!("{:.2}", end.write_amplification))?;
        row(f, "  log", format_args!("{:.2}", by_user(end.log_bytes)))?;
        for (cause, &bytes) in &end.list_bytes_written {
            let jobs = thousands(end.jobs_done.get(cause).copied().unwrap_or(0));
            let name = format!("  {}", cause.replace('_', " "));
            row(f, &name, format_args!("{:.2} in {jobs} jobs", by_user(bytes)))?;
        }
        let read = by_user(end.list_bytes_read.values().sum());
        row(f, "read by jobs, by data", format_args!("{read:.2}"))?;
        let burst = &end.burst;
        row(
            f,
            "rewritten for one write buffer",
            format_args!(
                "{:.1} / {:.1} / {:.1} write buffers (p50 / p99 / max)",
                burst.p50, burst.p99, burst.max
            ),
        )?;
        let (now, peak) = (end.space_amplification, end.space_amplification_peak);
        row(f, "space amplification", format_args!("{now:.2}, at most {peak:.2}"))?;
        let (now, peak) = (human(end.disk_bytes), human(end.disk_bytes_peak));
        row(f, "disk", format_args!("{now}, at most {peak}, {} list files", thousands(end.list_files)))?;
        if end.value_file_bytes > 0 {
            row(f, "  value files", human(end.value_file_bytes))?;
        }
        if self.0.distinct_keys.is_some() {
            row(f, "records in lists for each key", format_args!("{:.2}", end.repeats))?;
        }
        Ok(())
    }

    fn reads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = &self.0.end;
        let (lists, most) = (end.lists_per_path, end.lists_per_path_max);
        row(f, "lists on a path", format_args!("{lists:.1}, at most {most}"))?;
        let (present, absent) = (end.device_reads_per_get_present, end.device_reads_per_get_absent);
        row(f, "device reads of a get", format_args!("{present:.3} present, {absent:.3} absent"))
    }

    fn memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = &self.0.end;
        let (wanted, room) = (human(end.filter_memory_bytes), human(end.filter_memory_bytes_max));
        let kept = human(end.filter_memory_bytes_resident);
        row(f, "memory: filters", format_args!("{wanted}, room for {room}: {kept} once thinned"))?;
        row(f, "memory: page search", human(end.page_search_memory_bytes))?;
        row(f, "memory: nodes and lists", human(end.tree_memory_bytes))?;
        row(f, "filter + page search B/record", format_args!("{:.2}", end.memory_bytes_per_record))
    }

    fn levels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:>6}{:>12}{:>14}{:>14}{:>14}", "level", "nodes", "lists", "most a node", "data")?;
        for level in &self.0.end.levels {
            let (nodes, lists) = (thousands(level.nodes as u64), thousands(level.lists as u64));
            let (most, data) = (level.lists_max, human(level.bytes));
            writeln!(f, "{:>6}{nodes:>12}{lists:>14}{most:>14}{data:>14}", level.level)?;
        }
        Ok(())
    }

    fn growth(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.growth.is_empty() {
            return Ok(());
        }
        let head =
            ["records", "data", "records/s", "written", "space", "lists", "present", "absent", "filters"];
        writeln!(f)?;
        for (index, name) in head.iter().enumerate() {
            write!(f, "{name:>0$}", if index == 0 { 24 } else { 12 })?;
        }
        writeln!(f)?;
        self.0.growth.iter().chain([&self.0.end]).try_for_each(|point| growth_row(f, point))
    }
}

/// Several layouts under one load.
pub(super) struct Comparison<'a>(pub(super) &'a [Forecast]);

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["records/s", "written", "moved", "space", "peak", "lists", "present", "absent", "burst"];
        write!(f, "{:<24}", "layout")?;
        head.iter().try_for_each(|name| write!(f, "{name:>12}"))?;
        writeln!(f)?;
        for Forecast { layout, end, .. } in self.0 {
            let lists = end.list_bytes_written.values().chain(end.list_bytes_read.values()).sum::<u64>();
            let moved = lists as f64 / end.data_bytes.max(1) as f64;
            let rate = thousands(end.times.records_per_second as u64);
            write!(f, "{layout:<24}{rate:>12}{:>12.2}{moved:>12.2}", end.write_amplification)?;
            write!(f, "{:>12.2}{:>12.2}", end.space_amplification, end.space_amplification_peak)?;
            write!(f, "{:>12.1}{:>12.3}", end.lists_per_path, end.device_reads_per_get_present)?;
            writeln!(f, "{:>12.3}{:>12.1}", end.device_reads_per_get_absent, end.burst.max)?;
        }
        writeln!(
            f,
            "\nwritten: by data, log included. moved: written to and read from lists, by data. space, peak: by"
        )?;
        writeln!(
            f,
            "records, now and at most. lists: on a path. present, absent: device reads of a get. burst: write"
        )?;
        writeln!(f, "buffers that one write buffer makes be rewritten, at most")
    }
}

fn growth_row(f: &mut fmt::Formatter<'_>, point: &Point) -> fmt::Result {
    let (records, rate) = (thousands(point.records), thousands(point.times.records_per_second as u64));
    write!(f, "{records:>24}{:>12}{rate:>12}", human(point.data_bytes))?;
    write!(f, "{:>12.2}{:>12.2}", point.write_amplification, point.space_amplification)?;
    write!(f, "{:>12.1}{:>12.3}", point.lists_per_path, point.device_reads_per_get_present)?;
    writeln!(f, "{:>12.3}{:>12}", point.device_reads_per_get_absent, human(point.filter_memory_bytes))
}
