//! `docs/figures.md` itself.

use std::fmt;

use serde_json::Value;

use super::log::Appends;
use super::{MEMORY, Measured, ROUNDS};

pub(super) struct Page<'a> {
    pub(super) records: u64,
    pub(super) measured: &'a [Measured],
    pub(super) log: (Appends, Option<Appends>),
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// The middle one by rate, so that all figures of a row are of one run.
fn median(loads: &[Value]) -> &Value {
    let mut sorted: Vec<&Value> = loads.iter().collect();
    sorted.sort_by(|left, right| {
        number(&left["records_per_second"]).total_cmp(&number(&right["records_per_second"]))
    });
    sorted[sorted.len() / 2]
}

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        writeln!(f, "# Figures\n")?;
        writeln!(f, "Made by `make figures RECORDS={}` on a machine with {cores} cores.", self.records)?;
        writeln!(
            f,
            "Every command has `--memory {MEMORY}`; keys are random; batches have 1,000 records; the"
        )?;
        writeln!(f, "durability is the default, `os`. Each load is the median of {ROUNDS}.\n")?;
        self.loads(f)?;
        self.lookups(f)?;
        self.log(f)
    }
}

impl Page<'_> {
    fn loads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## Loading: `forebay load DB t FILE --format fixed:K,V`\n")?;
        writeln!(
            f,
            "Batch latencies are in microseconds. Peak memory is the process's largest resident set.\n"
        )?;
        writeln!(
            f,
            "| record, layout | records | records/s | write amplification | stalls, s | batch p50 | p99 | p99.9 | max | peak memory, MiB |"
        )?;
        writeln!(f, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")?;
        for row in self.measured {
            let load = median(&row.loads);
            let latency = &load["batch_latency_us"];
            writeln!(
                f,
                "| {} | {} | {:.0} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
                row.name,
                row.records,
                number(&load["records_per_second"]),
                number(&load["write_amplification"]),
                number(&load["stall_seconds"]),
                number(&latency["p50"]),
                number(&latency["p99"]),
                number(&latency["p999"]),
                number(&latency["max"]),
                number(&load["peak_memory_bytes"]) / (1 << 20) as f64,
            )?;
        }
        writeln!(f)
    }

    fn lookups(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## Lookups: `forebay get DB t - --hex --report`\n")?;
        writeln!(
            f,
            "After each load, in a new process, so that no page is cached. The keys are of that part of the"
        )?;
        writeln!(f, "load that is in lists. Memory is that of filters and page search.\n")?;
        writeln!(
            f,
            "| record, layout | device reads, present | device reads, absent | gets/s, present | gets/s, absent | lists on a path | memory, B/record | space amplification |"
        )?;
        writeln!(f, "| --- | --- | --- | --- | --- | --- | --- | --- |")?;
        for row in self.measured {
            let levels = row.stats["tables"][0]["levels"].as_array().cloned().unwrap_or_default();
            let path: f64 =
                levels.iter().map(|level| number(&level["lists"]) / number(&level["nodes"])).sum();
            writeln!(
                f,
                "| {} | {:.3} | {:.3} | {:.0} | {:.0} | {path:.1} | {:.2} | {:.2} |",
                row.name,
                number(&row.present["device_reads_per_get"]),
                number(&row.absent["device_reads_per_get"]),
                number(&row.present["gets_per_second"]),
                number(&row.absent["gets_per_second"]),
                number(&row.stats["memory_bytes_per_record"]),
                number(&row.stats["space_amplification"]),
            )?;
        }
        writeln!(f)
    }

    fn log(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buffered, direct) = &self.log;
        writeln!(f, "## Appending one batch of 20 KiB to a preallocated log segment\n")?;
        writeln!(f, "| way | p50, us | p99, us |\n| --- | --- | --- |")?;
        writeln!(f, "| through the kernel's cache | {:.1} | {:.1} |", buffered.p50, buffered.p99)?;
        if let Some(direct) = direct {
            writeln!(f, "| direct | {:.1} | {:.1} |", direct.p50, direct.p99)?;
        }
        Ok(())
    }
}
