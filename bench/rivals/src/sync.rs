//! When a write has to reach the device. Engines without a sync of their own in the background are all told by
//! the same clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_bench::{Durability, Setup};

/// What a write has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncWhen {
    Later,
    /// With everything before it.
    Now,
}

/// One for all writers of a database: clones share when the last sync was asked for.
#[derive(Clone)]
pub(crate) struct Pace {
    durability: Durability,
    interval: Duration,
    began: Instant,
    /// In microseconds from then.
    last: Arc<AtomicU64>,
}

impl Pace {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self::of(setup.durability, setup.sync_interval)
    }

    fn of(durability: Durability, interval: Duration) -> Self {
        Self { durability, interval, began: now(), last: Arc::default() }
    }

    /// Asked once for each write.
    pub(crate) fn next(&self) -> SyncWhen {
        self.next_at(now)
    }

    fn next_at(&self, now: impl Fn() -> Instant) -> SyncWhen {
        match self.durability {
            Durability::Memory => SyncWhen::Later,
            Durability::Disk => SyncWhen::Now,
            Durability::Os => {
                let now = now().duration_since(self.began).as_micros() as u64;
                let last = self.last.load(Ordering::Relaxed);
                if now.saturating_sub(last) < self.interval.as_micros() as u64 {
                    return SyncWhen::Later;
                }
                // Who is late finds that another one has asked.
                let asked = self.last.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
                if asked.is_ok() { SyncWhen::Now } else { SyncWhen::Later }
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "other engines run on the machine's own clock")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(durability: Durability) -> Pace {
        Pace::of(durability, Duration::from_secs(1))
    }

    #[test]
    fn an_interval_that_has_passed_asks_for_one_sync() {
        let pace = pace(Durability::Os);
        let start = pace.began;
        let mut ask = |millis| pace.next_at(|| start + Duration::from_millis(millis));
        assert_eq!(
            [999, 1000, 1001, 1999, 2500].map(&mut ask),
            [SyncWhen::Later, SyncWhen::Now, SyncWhen::Later, SyncWhen::Later, SyncWhen::Now]
        );
    }

    #[test]
    fn the_other_durabilities_do_not_look_at_the_clock() {
        let never = || -> Instant { unreachable!("nobody asks") };
        assert_eq!(pace(Durability::Memory).next_at(never), SyncWhen::Later);
        assert_eq!(pace(Durability::Disk).next_at(never), SyncWhen::Now);
    }
}
