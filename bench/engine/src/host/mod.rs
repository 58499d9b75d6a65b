//! The machine: what it is, what this process has used of it, and the few things it is told to do.
//!
//! This folder and `launch.rs` are where the bench touches files and processes of its own. Its clock is env's;
//! what an engine does goes through the engine.

pub(crate) mod cache;
pub(crate) mod cgroup;
pub(crate) mod counters;
pub(crate) mod disk;
pub(crate) mod memory;
pub(crate) mod threads;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What results are read against.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) kernel: String,
}

impl Machine {
    pub(crate) fn here() -> Self {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self { cores: cores(), memory_bytes: memory::total_bytes(), kernel: kernel.trim().into() }
    }
}

/// Processors that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Processor time of this process, all its threads, dead ones too.
pub(crate) fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

/// Processor time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
