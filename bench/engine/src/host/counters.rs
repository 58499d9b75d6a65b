//! Counters of the kernel: processor time of this process, its threads and the machine, and bytes between this process,
//! the block layer and the device.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{major, minor};

use super::process_cpu;
use super::threads::Threads;

const SECTOR_BYTES: u64 = 512;

/// Counters at one moment, or what was added to them between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) cpu: Duration,
    /// Of that, what threads of known kinds took; `None` where the kernel does not tell.
    pub(crate) threads: Option<Threads>,
    pub(crate) machine: Option<Machine>,
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

/// What all cores did, for whoever it was, in ticks of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    busy_ticks: u64,
    all_ticks: u64,
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
            threads: Threads::now(),
            machine: Machine::now(),
            process: process.as_deref().and_then(parse_process),
            device: device.counters(),
        }
    }

    /// What was added since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let io = |now: Option<Io>, then: Option<Io>| Some(now?.combine(then?, u64::saturating_sub));
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            threads: self
                .threads
                .zip(earlier.threads)
                .map(|(now, then)| now.combine(then, Duration::saturating_sub)),
            machine: self
                .machine
                .zip(earlier.machine)
                .map(|(now, then)| now.combine(then, u64::saturating_sub)),
            process: io(self.process, earlier.process),
            device: io(self.device, earlier.device),
        }
    }

    /// The sum of two additions; what only one of them tells is that one's.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let io = |one: Io, two: Io| one.combine(two, u64::saturating_add);
        let threads = |one: Threads, two: Threads| one.combine(two, Duration::saturating_add);
        let machine = |one: Machine, two: Machine| one.combine(two, u64::saturating_add);
        Self {
            cpu: self.cpu + other.cpu,
            threads: both(self.threads, other.threads, threads),
            machine: both(self.machine, other.machine, machine),
            process: both(self.process, other.process, io),
            device: both(self.device, other.device, io),
        }
    }
}

fn both<T>(one: Option<T>, two: Option<T>, with: impl Fn(T, T) -> T) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(with(one, two)),
        (one, two) => one.or(two),
    }
}

impl Machine {
    fn now() -> Option<Self> {
        parse_machine(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// How much of all cores' time was worked, by anybody.
    pub(crate) fn busy_share(&self) -> Option<f64> {
        (self.all_ticks > 0).then(|| self.busy_ticks as f64 / self.all_ticks as f64)
    }

    fn combine(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            busy_ticks: with(self.busy_ticks, other.busy_ticks),
            all_ticks: with(self.all_ticks, other.all_ticks),
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

/// The first line of `/proc/stat`: user, nice, system, idle, waiting for the device, interrupts, soft ones, and what the
/// machine below took. Guests, behind that, are in the user's already.
fn parse_machine(text: &str) -> Option<Machine> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, waiting, interrupts, soft, stolen] = ticks.try_into().ok()?;
    let busy_ticks = user + nice + system + interrupts + soft;
    Some(Machine { busy_ticks, all_ticks: busy_ticks + idle + waiting + stolen })
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
        let machine = "cpu  10 1 4 60 20 2 3 5 7 0\ncpu0 5 0 2 30 10 1 1 2 3 0\n";
        assert_eq!(parse_machine(machine), Some(Machine { busy_ticks: 20, all_ticks: 105 }));
        assert_eq!((parse_machine("cpu 1 2\n"), parse_machine("")), (None, None));
    }

    #[test]
    fn differences_and_sums_of_what_is_told() {
        let io = |bytes| Some(Io { reads: 1, read_bytes: bytes, write_bytes: 2 * bytes });
        let at = |bytes, device| Counters {
            cpu: Duration::from_secs(bytes),
            machine: Some(Machine { busy_ticks: bytes, all_ticks: 2 * bytes }),
            process: io(bytes),
            device,
            ..Counters::default()
        };
        let delta = at(9, io(9)).since(&at(4, None));
        assert_eq!((delta.threads, delta.machine.unwrap().busy_share()), (None, Some(0.5)));
        assert_eq!((delta.cpu, delta.device), (Duration::from_secs(5), None));
        assert_eq!(delta.process.unwrap().write_bytes, 10);
        assert_eq!(delta.plus(&at(1, None)).process.unwrap().read_bytes, 6);
    }
}
