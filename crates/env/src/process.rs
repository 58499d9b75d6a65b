//! What the process may use and has used.

use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit, setrlimit};

/// What a process has one of. A child of a fork gets its own: in its parent's a thread may have held a lock, which
/// nobody gives back in the child, and what is in it is of files of the parent's. Two cases stay: where a thread of the
/// parent's makes the parent's own just as it forks, the child waits for that without end; and a process finds that of
/// an ancestor whose number it has, as in a namespace of numbers of its own, or long after the ancestor's end.
pub(crate) struct OfProcess<T>(OnceLock<Box<Generation<T>>>);

/// A process's; that of its child's follows.
struct Generation<T> {
    process: u32,
    own: T,
    next: OfProcess<T>,
}

impl<T: Default> OfProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    pub(crate) fn get(&self) -> &T {
        self.of(id())
    }

    fn of(&self, process: u32) -> &T {
        let mut at = self;
        loop {
            let made = || Box::new(Generation { process, own: T::default(), next: Self::new() });
            let found = at.0.get_or_init(made);
            if found.process == process {
                return &found.own;
            }
            at = &found.next;
        }
    }
}

/// The number of the process.
pub fn id() -> u32 {
    std::process::id()
}

/// How many files the process may have open.
pub fn files_max() -> usize {
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

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_types, reason = "a lock that some thread of a parent's holds")]
    fn a_child_has_its_own_while_its_parents_is_locked() {
        static OWN: OfProcess<Mutex<u32>> = OfProcess::new();
        let parent = OWN.of(7).lock().unwrap();
        *OWN.of(8).lock().unwrap() = 1;
        *OWN.of(9).lock().unwrap() = 2;
        assert_eq!((*parent, *OWN.of(8).lock().unwrap(), *OWN.of(9).lock().unwrap()), (0, 1, 2));
    }
}
