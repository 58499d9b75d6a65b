//! What one run is: the driver writes it, the process that runs it reads it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Setup;
use crate::data::Records;
use crate::host::cache::CacheDrop;
use crate::workload::Workload;

/// With durability `os`: how old an unsynced write may get. What benchmarks of databases usually take.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// One workload on one engine, once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) role: Role,
    pub(crate) engine: String,
    pub(crate) workload: Workload,
    pub(crate) repetition: u32,
    pub(crate) seed: u64,
    /// The database's directory.
    pub(crate) dir: PathBuf,
    pub(crate) tuning: Tuning,
    pub(crate) cache_drop: CacheDrop,
    pub(crate) cgroup: CgroupState,
}

/// What the process has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// All phases.
    Run,
    /// Load from this record on, until it is killed.
    LoadFrom(u64),
}

/// What the command line gives every engine alike, beside memory and durability.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tuning {
    pub(crate) background_threads: usize,
    pub(crate) filter_bits_per_key: Option<u32>,
    pub(crate) direct_io: bool,
}

/// What limits the memory of the process and its page cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CgroupState {
    /// Nobody asked.
    Off,
    /// It was asked for and cannot be had.
    Unavailable(String),
    /// A limit, and the file that tells the most memory held.
    Limited { limit_bytes: u64, peak_file: PathBuf },
}

impl Plan {
    pub(crate) fn setup(&self) -> Setup {
        let workload = &self.workload;
        Setup {
            memory_bytes: workload.memory(),
            durability: workload.durability,
            sync_interval: SYNC_INTERVAL,
            ordered: workload.ordered,
            adds: workload.adds(),
            transacts: workload.transacts(),
            key_bytes: workload.key_bytes,
            value_bytes: workload.value_bytes,
            records_expected: workload.records_expected(),
            background_threads: self.tuning.background_threads,
            filter_bits_per_key: self.tuning.filter_bits_per_key,
            direct_io: self.tuning.direct_io,
            writers: workload.writers,
            forebay: workload.forebay.clone(),
            leveled: workload.leveled.clone(),
        }
    }

    pub(crate) fn records(&self) -> Records {
        let workload = &self.workload;
        Records::new(self.seed, workload.key_bytes, workload.value_bytes, workload.keys)
    }
}
