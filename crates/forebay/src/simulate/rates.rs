//! How long a load takes, from what it writes, reads and merges. The device, all cores, or one of the threads
//! that do one thing each is the bottleneck.

use forebay_base::{Error, Result};
use forebay_layouts::Layout;
use serde::Serialize;

/// What the machine does in a second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rates {
    /// Bytes that the device writes or reads in a second.
    pub device_bytes_per_second: f64,
    /// What it takes a core to bring one record from one place to the next: from the user to the log, from the
    /// write buffer to its list, through a merge.
    pub record_pass_nanoseconds: f64,
    /// Cores.
    pub cores: f64,
}

impl Rates {
    /// A device of 1 GB/s, and two cores as fast as one of the machine of `docs/figures.md` was with records of
    /// this many bytes.
    pub fn measured(layout: Layout, record_bytes: u64) -> Self {
        // In key order merges compare keys.
        let record_nanoseconds = if layout.is_ordered() { 90.0 } else { 70.0 };
        Self {
            device_bytes_per_second: 1e9,
            record_pass_nanoseconds: record_nanoseconds + 1.25 * record_bytes as f64,
            cores: 2.0,
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        let Self { device_bytes_per_second, record_pass_nanoseconds, cores } = *self;
        match [device_bytes_per_second, record_pass_nanoseconds, cores].iter().all(|rate| *rate > 0.0) {
            true => Ok(()),
            false => Err(Error::invalid(
                "the device's bandwidth, the time of a record pass and the cores must be above 0",
            )),
        }
    }
}

/// What keeps a load from being faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Bytes written and read.
    #[default]
    Device,
    /// All cores.
    Cores,
    /// The thread that writes full write buffers to lists.
    Flusher,
    /// The thread that spills, splits and merges.
    Compactor,
}

/// The time that a load takes of each resource.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// Of the device.
    pub device_seconds: f64,
    /// Of all cores together.
    pub cpu_seconds: f64,
    /// Of the thread that writes full write buffers to lists.
    pub flusher_seconds: f64,
    /// Of the thread that spills, splits and merges.
    pub compactor_seconds: f64,
    /// Of the load: the longest.
    pub seconds: f64,
    /// Records in a second.
    pub records_per_second: f64,
    /// Which was the longest.
    pub bound_by: Bound,
}

/// What a load moves.
#[derive(Clone, Copy)]
pub(super) struct Work {
    pub(super) records: u64,
    /// Bytes written and read, the log's among them.
    pub(super) device_bytes: u64,
    /// Records that went from a write buffer to a list.
    pub(super) flushed: u64,
    /// Records that went through merges behind that.
    pub(super) merged: u64,
}

impl Times {
    pub(super) fn of(work: &Work, rates: &Rates) -> Self {
        let pass = |records: u64| records as f64 * rates.record_pass_nanoseconds / 1e9;
        let device_seconds = work.device_bytes as f64 / rates.device_bytes_per_second;
        let (flusher_seconds, compactor_seconds) = (pass(work.flushed), pass(work.merged));
        let cpu_seconds = pass(work.records) + flusher_seconds + compactor_seconds;
        let bounds = [
            (device_seconds, Bound::Device),
            (cpu_seconds / rates.cores, Bound::Cores),
            (flusher_seconds, Bound::Flusher),
            (compactor_seconds, Bound::Compactor),
        ];
        let (seconds, bound_by) = bounds
            .into_iter()
            .fold((0.0, Bound::Device), |most, next| if next.0 > most.0 { next } else { most });
        let records_per_second = if seconds > 0.0 { work.records as f64 / seconds } else { 0.0 };
        Self {
            device_seconds,
            cpu_seconds,
            flusher_seconds,
            compactor_seconds,
            seconds,
            records_per_second,
            bound_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_resource_decides() {
        let rates = Rates { device_bytes_per_second: 1e9, record_pass_nanoseconds: 100.0, cores: 2.0 };
        let work = Work { records: 10_000_000, device_bytes: 500_000_000, flushed: 10_000_000, merged: 0 };
        let bound = |work: Work| {
            let times = Times::of(&work, &rates);
            (times.bound_by, times.seconds)
        };
        assert_eq!(bound(Work { device_bytes: 3_000_000_000, ..work }), (Bound::Device, 3.0));
        assert_eq!(bound(Work { merged: 5_000_000, ..work }), (Bound::Cores, 1.25));
        assert_eq!(bound(Work { merged: 40_000_000, ..work }), (Bound::Compactor, 4.0));
        let many = Rates { cores: 8.0, ..rates };
        assert_eq!(Times::of(&work, &many).bound_by, Bound::Flusher);
        assert_eq!(Times::of(&work, &rates).records_per_second, 1e7);
    }
}
