//! Time: the machine's, or one that moves only when told.
//!
//! **Invariant:** `now` never goes back.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What time it is.
pub trait Clock: Send + Sync {
    /// Time since an arbitrary start; for measuring and for deadlines.
    fn now(&self) -> Duration;
    /// Wall-clock milliseconds since 1970; may jump. Only for what is kept over a restart, and for people to read.
    fn unix_milliseconds(&self) -> u64;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// A clock that starts at zero now.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_milliseconds(&self) -> u64 {
        SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as u64)
    }
}

/// A clock whose wall time never goes back either. Where the wall clock behind it is set back, time goes on from where it
/// was, as fast as [`now`](Clock::now).
pub struct SteadyClock {
    clock: Arc<dyn Clock>,
    /// By how many milliseconds the wall time is ahead of `now`: the most that ever was seen.
    ahead: AtomicU64,
}

impl SteadyClock {
    /// By this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, ahead: AtomicU64::new(0) }
    }

    /// From now on it is no earlier than this, in milliseconds since 1970.
    pub fn raise(&self, unix_milliseconds: u64) {
        let now = self.clock.now().as_millis() as u64;
        self.ahead.fetch_max(unix_milliseconds.saturating_sub(now), Ordering::Relaxed);
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn unix_milliseconds(&self) -> u64 {
        // In this order: what passes between the two must not count as time that the wall clock is ahead.
        let wall = self.clock.unix_milliseconds();
        let now = self.clock.now().as_millis() as u64;
        let (ahead, seen) = (wall.saturating_sub(now), self.ahead.load(Ordering::Relaxed));
        let most =
            if ahead > seen { self.ahead.fetch_max(ahead, Ordering::Relaxed).max(ahead) } else { seen };
        debug_assert!(most >= ahead, "it is never behind the wall clock");
        now.saturating_add(most)
    }
}

/// Where a [`ManualClock`] pretends to have started: 2024-01-01.
const MANUAL_START_UNIX_MILLISECONDS: u64 = 1_704_067_200_000;

/// A clock that stands still until [`advance`](ManualClock::advance)d.
#[derive(Debug, Default)]
pub struct ManualClock {
    now: Mutex<Duration>,
}

impl ManualClock {
    /// A clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `by` pass.
    pub fn advance(&self, by: Duration) {
        *self.now.lock() += by;
    }

    /// Lets time pass until `deadline`, if it is not past already.
    pub fn advance_to(&self, deadline: Duration) {
        let mut now = self.now.lock();
        let before = *now;
        *now = deadline.max(before);
        debug_assert!(before <= *now, "time never goes back");
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.now.lock()
    }

    fn unix_milliseconds(&self) -> u64 {
        MANUAL_START_UNIX_MILLISECONDS + self.now().as_millis() as u64
    }
}
