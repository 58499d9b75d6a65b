//! How fast background work may go: a bucket of bytes that fills with time. Flushes take from it what they need, and
//! merges, before each step, wait until something is in it. So what flushes take merges go without, and no flush waits;
//! but once merges have waited for a second, one has a step, whatever flushes take.
//!
//! **Invariant:** nobody sleeps here. Whoever is to wait is told for how long, and leaves its thread to others.

use std::sync::Arc;
use std::time::Duration;

use forebay_base::limits::STEP_BYTES;
use forebay_base::{Error, Result};
use forebay_env::Clock;
use forebay_env::sync::{Mutex, Rank};

/// Merges that go no faster than this come to no end.
pub(crate) const RATE_BYTES_MIN: u64 = 64 << 10;
/// This part of a second's bytes may be taken at once, and is what a step of a merge takes.
const BURST_PART: u64 = 10;
/// What was taken beforehand keeps merges waiting for this long at most.
const DEBT_SECONDS: i64 = 1;
/// However much is flushed, one of all that wait has a step each time this has passed: they get on.
const PATIENCE: Duration = Duration::from_secs(1);
const NANOSECONDS: i128 = 1_000_000_000;

/// See the module.
pub(crate) struct Rate {
    /// Of the database that was opened last: databases of a pool may have others.
    clock: Mutex<Option<Arc<dyn Clock>>>,
    bucket: Mutex<Bucket>,
}

/// What may be worked through now.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// Of each second; 0 for no limit.
    rate_bytes: u64,
    /// Below 0 where more was taken than there was.
    left_bytes: i64,
    /// When it was filled.
    filled: Duration,
    /// Since when merges have been told to wait, and none had a step.
    waits_since: Option<Duration>,
}

impl Rate {
    /// Of so many bytes a second, and no limit where that is 0.
    pub(crate) fn new(rate_bytes: u64) -> Self {
        let bucket = Bucket { rate_bytes, ..Bucket::default() };
        Self { clock: Mutex::ranked(Rank::Leaf, None), bucket: Mutex::ranked(Rank::Leaf, bucket) }
    }

    /// Says what is wrong with a number of bytes a second.
    pub(crate) fn validate(rate_bytes: u64) -> Result<()> {
        match rate_bytes == 0 || rate_bytes >= RATE_BYTES_MIN {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "background_rate is {rate_bytes} bytes a second; it must be 0, for no limit, or at least {RATE_BYTES_MIN}"
            ))),
        }
    }

    /// A database is there that goes by it, and by this clock.
    pub(crate) fn join(&self, clock: &Arc<dyn Clock>) {
        let (before, now) = (self.now(), clock.now());
        *self.clock.lock() = Some(Arc::clone(clock));
        self.bucket.lock().change_clock(before, now);
    }

    /// From now on another one; what was taken beforehand is forgotten.
    pub(crate) fn set(&self, rate_bytes: u64) {
        let filled = self.now();
        *self.bucket.lock() = Bucket { rate_bytes, filled, ..Bucket::default() };
    }

    /// Bytes a second, 0 for no limit.
    pub(crate) fn bytes(&self) -> u64 {
        self.bucket.lock().rate_bytes
    }

    /// Takes out so many bytes, whether or not they are there.
    pub(crate) fn take(&self, bytes: u64) {
        let now = self.now();
        self.bucket.lock().take(bytes, now);
    }

    /// How long a merge that has something to do is to wait, if it is.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let now = self.now();
        self.bucket.lock().wait(now)
    }

    /// How much a merge works through in a step.
    pub(crate) fn step_bytes(&self) -> usize {
        let bucket = *self.bucket.lock();
        if bucket.rate_bytes == 0 { STEP_BYTES } else { STEP_BYTES.min(bucket.burst_bytes() as usize) }
    }

    fn now(&self) -> Duration {
        let clock = self.clock.lock().clone();
        clock.map(|clock| clock.now()).unwrap_or_default()
    }
}

impl Bucket {
    fn burst_bytes(&self) -> i64 {
        i64::try_from(self.rate_bytes / BURST_PART).unwrap_or(i64::MAX)
    }

    /// Adds what has come since it was filled. Less than a byte is left to the next time.
    fn fill(&mut self, now: Duration) {
        let rate = i128::from(self.rate_bytes);
        let elapsed = now.saturating_sub(self.filled).as_nanos() as i128;
        let come = rate * elapsed / NANOSECONDS;
        if come > 0 {
            let burst = i128::from(self.burst_bytes());
            self.left_bytes = (i128::from(self.left_bytes) + come).min(burst) as i64;
            self.filled = now;
        }
        debug_assert!(self.left_bytes <= self.burst_bytes(), "it holds a burst at most");
    }

    /// What was `before` by one clock is `now` by another one: what has come by then stays.
    fn change_clock(&mut self, before: Duration, now: Duration) {
        self.fill(before);
        let same = |then: Duration| now.saturating_sub(before.saturating_sub(then));
        (self.filled, self.waits_since) = (same(self.filled), self.waits_since.map(same));
        debug_assert!(self.filled <= now, "it was filled before now, by the new clock, too");
    }

    fn take(&mut self, bytes: u64, now: Duration) {
        if self.rate_bytes == 0 {
            return;
        }
        self.fill(now);
        let (bytes, rate) =
            [bytes, self.rate_bytes].map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)).into();
        self.left_bytes = self.left_bytes.saturating_sub(bytes).max(rate.saturating_mul(-DEBT_SECONDS));
    }

    fn wait(&mut self, now: Duration) -> Option<Duration> {
        if self.rate_bytes == 0 {
            return None;
        }
        self.fill(now);
        let (lacking, rate) = (1 - i128::from(self.left_bytes), i128::from(self.rate_bytes));
        debug_assert!(
            lacking <= 1 + rate * i128::from(DEBT_SECONDS),
            "no more was taken than comes in a second"
        );
        let waited = now.saturating_sub(*self.waits_since.get_or_insert(now));
        if lacking <= 0 || waited >= PATIENCE {
            self.waits_since = None;
            return None;
        }
        let until_filled = Duration::from_nanos((lacking * NANOSECONDS / rate) as u64 + 1);
        Some(until_filled.min(PATIENCE.saturating_sub(waited)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1 << 20;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Steps of a tenth of a second's bytes, each as soon as it may be: so many bytes a second, and no more.
    #[test]
    fn merges_go_as_fast_as_they_may() {
        let mut bucket = Bucket { rate_bytes: RATE, ..Bucket::default() };
        let (mut now, mut taken) = (at(5000), 0);
        let begun = now;
        while now < begun + at(10_000) {
            match bucket.wait(now) {
                Some(wait) => now += wait,
                None => {
                    bucket.take(RATE / 10, now);
                    taken += RATE / 10;
                }
            }
        }
        assert!((10 * RATE..11 * RATE).contains(&taken), "{taken} bytes in 10 s");
    }

    #[test]
    fn a_flush_takes_what_it_needs_and_merges_wait_for_that() {
        let mut bucket = Bucket { rate_bytes: RATE, ..Bucket::default() };
        bucket.take(RATE / 2, at(1000));
        let wait = bucket.wait(at(1000)).unwrap();
        assert!((at(390)..at(410)).contains(&wait), "{wait:?}");
        assert_eq!(bucket.wait(at(1000) + wait), None);
        // However much that is, they get on.
        bucket.take(u64::MAX, at(2000));
        let wait = bucket.wait(at(2000)).unwrap();
        assert!(wait <= at(1001), "{wait:?}");
        assert_eq!(bucket.wait(at(2000) + wait), None);
    }

    /// Flushes take twice what there is, for as long as anybody likes: a tenth of the rate is left to merges.
    #[test]
    fn merges_get_on_beside_flushes_without_end() {
        let mut bucket = Bucket { rate_bytes: RATE, ..Bucket::default() };
        let mut steps = 0;
        for tick in 0..1000 {
            let now = at(1000 + 10 * tick);
            bucket.take(RATE / 50, now);
            if bucket.wait(now).is_none() {
                bucket.take(RATE / 10, now);
                steps += 1;
            }
        }
        assert!((8..=12).contains(&steps), "{steps} in 10 s");
    }

    /// Each opening in a pool brings a clock of its own.
    #[test]
    fn another_clock_takes_nothing_away() {
        let mut bucket = Bucket { rate_bytes: RATE, ..Bucket::default() };
        bucket.take(RATE / 2, at(1000));
        (1..=100).for_each(|n| bucket.change_clock(at(1000 + 10 * n), at(1000 + 10 * n)));
        assert_eq!(bucket.wait(at(2000)), None);
        // By this one less time has passed, by that one more, and nothing comes by that.
        bucket.change_clock(at(2000), at(77));
        bucket.take(RATE / 2, at(77));
        bucket.change_clock(at(77), at(1_000_000));
        let wait = bucket.wait(at(1_000_000)).unwrap();
        assert!((at(390)..at(410)).contains(&wait), "{wait:?}");
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let rate = Rate::new(0);
        rate.take(u64::MAX);
        assert_eq!((rate.wait(), rate.step_bytes()), (None, STEP_BYTES));
        rate.set(RATE);
        rate.take(1);
        assert!(rate.wait().is_some() && rate.step_bytes() == RATE as usize / 10);
        for (bytes, is_valid) in [(0, true), (1, false), (RATE_BYTES_MIN, true), (u64::MAX, true)] {
            assert_eq!(Rate::validate(bytes).is_ok(), is_valid, "{bytes}");
        }
    }
}
