//! The command line of a benchmark, and what it makes of workloads.

use std::path::PathBuf;

use clap::Args;
use forebay_units::{amounts, sizes};

use crate::Durability;
use crate::stop::Stop;
use crate::workload::{self, Workload, WorkloadError};

const EXAMPLES: &str = "\
Examples:
  forebay bench --list
  forebay bench load-16 --repeat 5
  forebay bench get-present get-absent --records 2000000 --memory 64M --cgroup auto
  forebay bench my-workload.toml --dir /mnt/disk --json > results.jsonl";

/// Run workloads against the engine, each in a process of its own, and tell what they took
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// Names of workloads, or files that describe some
    #[arg(required_unless_present_any = ["list", "child"], value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// List the workloads that are built in
    #[arg(long)]
    pub(crate) list: bool,
    /// Records, instead of the workload's; operations follow in proportion
    #[arg(long, value_name = "N", value_parser = parse_count)]
    records: Option<u64>,
    /// Records a write call
    #[arg(long, value_name = "N", value_parser = parse_count)]
    batch: Option<u64>,
    /// Threads that `load` writes with, where an engine takes several
    #[arg(long, value_name = "N", value_parser = parse_count)]
    writers: Option<u64>,
    /// How many times as long as the workload's its bounds in seconds are
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = parse_times)]
    stretch: f64,
    /// What a write survives once it is acknowledged: memory, os, disk
    #[arg(long, value_parser = parse_durability)]
    durability: Option<Durability>,
    /// How often each workload is run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Where databases are made, and removed
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Of keys, values and draws
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) seed: u64,
    /// Leave the databases where they are
    #[arg(long)]
    pub(crate) keep: bool,
    /// Run in a memory cgroup of this size, page cache included; auto: half as much again as the engine's
    /// memory, and 64M
    #[arg(long, value_name = "SIZE|auto", value_parser = parse_cgroup)]
    pub(crate) cgroup: Option<CgroupSize>,
    /// Engines to run, with commas between them; all by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) engines: Vec<String>,
    /// Background threads that an engine may use; one a core by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) background_threads: Option<u16>,
    /// Filter bits a key, where an engine lets one choose
    #[arg(long, value_name = "N")]
    pub(crate) filter_bits: Option<u32>,
    /// Go around the page cache, where an engine can
    #[arg(long)]
    pub(crate) direct_io: bool,
    /// Be one of the processes that a benchmark starts
    #[arg(long, hide = true)]
    pub(crate) child: bool,
}

/// How large a cgroup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CgroupSize {
    /// By the engine's memory.
    Auto,
    Bytes(u64),
}

impl CgroupSize {
    pub(crate) fn bytes(self, memory_bytes: u64) -> u64 {
        match self {
            Self::Auto => memory_bytes / 2 * 3 + (64 << 20),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl BenchArgs {
    /// Where the databases of this process's runs are.
    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.join(format!("forebay-bench.{}", std::process::id()))
    }

    /// What goes when this process ends, however it ends.
    pub fn temporary(&self) -> Option<PathBuf> {
        let runs = !self.list && !self.child && !self.keep;
        runs.then(|| self.folder())
    }

    /// The workloads as they are to be run, with `memory` and the other options instead of their own.
    pub(crate) fn workloads(&self, memory: Option<u64>) -> Result<Vec<Workload>, Stop> {
        self.workloads.iter().map(|name| self.workload(name, memory)).collect()
    }

    fn workload(&self, name: &str, memory: Option<u64>) -> Result<Workload, Stop> {
        let mut workload = workload::find(name).map_err(|error| match error {
            WorkloadError::Unknown(reason) => Stop::Usage(reason),
            WorkloadError::Bad(reason) => Stop::Work(reason),
        })?;
        workload.records = self.records.unwrap_or(workload.records);
        workload.batch = self.batch.unwrap_or(workload.batch);
        workload.writers = self.writers.unwrap_or(workload.writers);
        workload.durability = self.durability.unwrap_or(workload.durability);
        workload.stretch(self.stretch);
        workload.memory_bytes = memory.or(workload.memory_bytes);
        // The file was right, so an option is at fault.
        workload.check().map_err(|complaint| Stop::Usage(format!("{name}: {complaint}")))?;
        Ok(workload)
    }
}

fn parse_count(text: &str) -> Result<u64, String> {
    match amounts::parse(text)? {
        0 => Err("give at least 1".into()),
        count => Ok(count),
    }
}

fn parse_times(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(times) if times > 0.0 && f64::is_finite(times) => Ok(times),
        _ => Err("give a number above 0".into()),
    }
}

fn parse_durability(text: &str) -> Result<Durability, String> {
    match text {
        "memory" => Ok(Durability::Memory),
        "os" => Ok(Durability::Os),
        "disk" => Ok(Durability::Disk),
        _ => Err("use memory, os or disk".into()),
    }
}

fn parse_cgroup(text: &str) -> Result<CgroupSize, String> {
    match text {
        "auto" => Ok(CgroupSize::Auto),
        _ => sizes::parse(text).map(CgroupSize::Bytes),
    }
}
