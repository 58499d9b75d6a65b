//! Samples this process's anonymous memory, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(2);

/// The most that was seen so far.
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    pub(crate) fn start() -> Self {
        let peak = Arc::new(AtomicU64::new(0));
        let kept = Arc::clone(&peak);
        std::thread::spawn(move || {
            loop {
                kept.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                std::thread::sleep(INTERVAL);
            }
        });
        Self(peak)
    }

    pub(crate) fn peak_bytes(&self) -> u64 {
        self.0.fetch_max(anonymous_bytes(), Ordering::Relaxed).max(anonymous_bytes())
    }
}

/// The process's anonymous memory by now; 0 where the system does not tell.
pub(crate) fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}
