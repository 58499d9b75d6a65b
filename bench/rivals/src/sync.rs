//! When a write has to reach the device. Engines without a sync of their own in the background are all told by
//! the same clock.

use std::time::{Duration, Instant};

use forebay_bench::{Durability, Setup};

/// What a write has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncWhen {
    Later,
    /// With everything before it.
    Now,
}

pub(crate) struct Pace {
    durability: Durability,
    interval: Duration,
    last: Instant,
}

impl Pace {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self { durability: setup.durability, interval: setup.sync_interval, last: now() }
    }

    /// Asked once for each write.
    pub(crate) fn next(&mut self) -> SyncWhen {
        self.next_at(now)
    }

    fn next_at(&mut self, now: impl Fn() -> Instant) -> SyncWhen {
        match self.durability {
            Durability::Memory => SyncWhen::Later,
            Durability::Disk => SyncWhen::Now,
            Durability::Os => {
                let now = now();
                if now.duration_since(self.last) < self.interval {
                    return SyncWhen::Later;
                }
                self.last = now;
                SyncWhen::Now
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
        Pace { durability, interval: Duration::from_secs(1), last: now() }
    }

    #[test]
    fn an_interval_that_has_passed_asks_for_one_sync() {
        let mut pace = pace(Durability::Os);
        let start = pace.last;
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
