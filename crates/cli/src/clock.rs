//! The one place that looks at the clock: for rates and latencies that are told to a person, and for `--wait`.

use std::thread;
use std::time::{Duration, Instant};

/// Time since a start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "times what is reported; no behaviour depends on it")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// How long ago it started.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// The same in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}

/// A moment until a database may be free.
#[expect(clippy::disallowed_methods, reason = "another process has it open, of which nothing else tells")]
pub(crate) fn pause() {
    thread::sleep(Duration::from_millis(20));
}
