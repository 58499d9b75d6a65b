//! Counters of the kernel: processor time, and bytes between this process, the block layer and the device.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{major, minor};

use super::process_cpu;

const SECTOR_BYTES: u64 = 512;

/// Counters at one moment, or what was added to them between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) cpu: Duration,
    /// Of this process; `None` where the kernel does not tell.
    pub(crate) process: Option<Io>,
    /// Of the device below the directory, whoever used it.
    pub(crate) device: Option<Io>,
}

/// Reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Io {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
}

/// Where the counters of a directory's device are.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    stat: Option<String>,
}

impl Device {
    /// Of the device that holds the directory, which must be there; a file system without a block device has
    /// none.
    pub(crate) fn of(dir: &Path) -> Self {
        let of_device = |device| format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
        Self { stat: dir.metadata().ok().map(|about| of_device(about.dev())) }
    }

    fn counters(&self) -> Option<Io> {
        parse_device(&std::fs::read_to_string(self.stat.as_ref()?).ok()?)
    }
}

impl Counters {
    /// As they are now.
    pub(crate) fn now(device: &Device) -> Self {
        let process = std::fs::read_to_string("/proc/self/io").ok();
        Self {
            cpu: process_cpu(),
            process: process.as_deref().and_then(parse_process),
            device: device.counters(),
        }
    }

    /// What was added since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let io = |now: Option<Io>, then: Option<Io>| Some(now?.combine(then?, u64::saturating_sub));
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            process: io(self.process, earlier.process),
            device: io(self.device, earlier.device),
        }
    }

    /// The sum of two additions; what only one of them tells is that one's.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let io = |one: Option<Io>, two: Option<Io>| match (one, two) {
            (Some(one), Some(two)) => Some(one.combine(two, u64::saturating_add)),
            (one, two) => one.or(two),
        };
        Self {
            cpu: self.cpu + other.cpu,
            process: io(self.process, other.process),
            device: io(self.device, other.device),
        }
    }
}

impl Io {
    fn combine(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            reads: with(self.reads, other.reads),
            read_bytes: with(self.read_bytes, other.read_bytes),
            write_bytes: with(self.write_bytes, other.write_bytes),
        }
    }
}

/// `/proc/self/io`. The kernel counts a page as written when it becomes dirty, or when it is written directly.
fn parse_process(text: &str) -> Option<Io> {
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(Io { reads: 0, read_bytes: number("read_bytes:")?, write_bytes: number("write_bytes:")? })
}

/// The first fields of a block device's `stat`: reads, merged reads, sectors read, time; the same of writes.
fn parse_device(text: &str) -> Option<Io> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    Some(Io {
        reads: *fields.first()?,
        read_bytes: fields.get(2)? * SECTOR_BYTES,
        write_bytes: fields.get(6)? * SECTOR_BYTES,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let process = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        assert_eq!(parse_process(process), Some(Io { reads: 0, read_bytes: 4096, write_bytes: 8192 }));
        let device = "     10        1       16        5       20        2       32        6\n";
        assert_eq!(parse_device(device), Some(Io { reads: 10, read_bytes: 8192, write_bytes: 16384 }));
        assert_eq!((parse_process("rchar: 9\n"), parse_device("1 2\n")), (None, None));
    }

    #[test]
    fn differences_and_sums_of_what_is_told() {
        let io = |bytes| Some(Io { reads: 1, read_bytes: bytes, write_bytes: 2 * bytes });
        let at = |bytes, device| Counters { cpu: Duration::from_secs(bytes), process: io(bytes), device };
        let delta = at(9, io(9)).since(&at(4, None));
        assert_eq!((delta.cpu, delta.device), (Duration::from_secs(5), None));
        assert_eq!(delta.process.unwrap().write_bytes, 10);
        assert_eq!(delta.plus(&at(1, None)).process.unwrap().read_bytes, 6);
    }
}
