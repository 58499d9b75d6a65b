//! What the process may use and has used.

use rustix::process::{Resource, getrlimit, setrlimit};

/// The number of the process.
pub fn id() -> u32 {
    std::process::id()
}

/// How many files the process may have open.
pub(crate) fn files_max() -> usize {
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX))
}

/// Lets the process hold as many open files as the system allows.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // Where it is refused the old limit stands, and opening a file too many is an error that says so.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// The most memory the process has held at a time, in bytes; `None` where the system does not tell.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Lets other threads have a core before this one, where both want it: merges yield to writers, readers and
/// flushes. An error changes nothing but latencies.
pub(crate) fn yield_to_others() {
    let _ = rustix::process::nice(NICE);
}

/// A third of the share of a core that a thread of normal priority gets.
const NICE: i32 = 5;
