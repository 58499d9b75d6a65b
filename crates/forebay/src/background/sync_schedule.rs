//! When the log is synced in the background: late enough that most of it need not be. What a full write buffer held is
//! durable once it is flushed, and at high rates that comes before the interval is over.

use std::collections::VecDeque;
use std::time::Duration;

/// Decides when a sync is due.
#[derive(Debug)]
pub(super) struct SyncSchedule {
    /// How old a record may become that is not durable.
    interval: Duration,
    /// Times and the numbers of the last records by then, so what comes behind one is no older. The first is the newest
    /// one up to which all is durable.
    marks: VecDeque<(Duration, u64)>,
    /// When to look again.
    pub(super) next: Duration,
}

/// It looks this often in an interval while something is not durable, but no more often than each millisecond.
const LOOKS: u32 = 8;
const TICK_MIN: Duration = Duration::from_millis(1);

impl SyncSchedule {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, marks: VecDeque::from([(Duration::ZERO, 0)]), next: Duration::ZERO }
    }

    /// Whether the log must be synced now, of whose records up to `last` those up to `durable` are durable.
    pub(super) fn look(&mut self, now: Duration, durable: u64, last: u64) -> bool {
        debug_assert!(durable <= last, "what is durable was appended");
        while self.marks.get(1).is_some_and(|&(_, sequence)| sequence <= durable) {
            self.marks.pop_front();
        }
        let tick = (self.interval / LOOKS).max(TICK_MIN).min(self.interval);
        let oldest = self.marks.front().map_or(Duration::ZERO, |&(time, _)| time);
        let has_all = durable == last;
        let is_due = !has_all && now.saturating_sub(oldest).saturating_add(tick) > self.interval;
        if is_due {
            // The oldest stays in case that fails.
            self.marks.truncate(1);
        }
        self.marks.push_back((now, last));
        self.next = now.saturating_add(if has_all { self.interval } else { tick });
        is_due
    }

    /// What was due has failed: it is tried again after this long.
    pub(super) fn put_off(&mut self, now: Duration, pause: Duration) {
        self.next = self.next.max(now.saturating_add(pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(80);

    /// Looks whenever that is due while a record a millisecond comes. Returns how often the log was synced, and how old
    /// the oldest record became that was not durable.
    fn run(milliseconds: u64, flushed: impl Fn(u64) -> u64) -> (u32, u64) {
        let mut schedule = SyncSchedule::new(INTERVAL);
        let (mut synced, mut syncs, mut oldest) = (0, 0, 0);
        for now in 0..milliseconds {
            // Record n comes at n milliseconds.
            let durable = synced.max(flushed(now));
            oldest = oldest.max(now - durable);
            let time = Duration::from_millis(now);
            if time >= schedule.next && schedule.look(time, durable, now) {
                (synced, syncs) = (now, syncs + 1);
            }
        }
        (syncs, oldest)
    }

    #[test]
    fn no_record_waits_for_longer_than_the_interval() {
        let (syncs, oldest) = run(8_000, |_| 0);
        assert!((95..=115).contains(&syncs) && oldest <= 80, "{syncs} syncs, {oldest} ms");
    }

    #[test]
    fn what_is_flushed_in_time_is_not_synced() {
        // Buffers of 20 records, each flushed by the time the next one is full: but for the first look, after a rest.
        let (syncs, oldest) = run(8_000, |now| (now / 20).saturating_sub(1) * 20);
        assert!(syncs <= 1 && oldest <= 80, "{syncs} syncs, {oldest} ms");
        // And of which a flush takes too long.
        let (syncs, oldest) = run(8_000, |now| (now / 50).saturating_sub(1) * 50);
        assert!((1..=160).contains(&syncs) && oldest <= 80, "{syncs} syncs, {oldest} ms");
    }

    #[test]
    fn a_record_after_a_rest_is_synced_at_the_next_look() {
        let mut schedule = SyncSchedule::new(INTERVAL);
        let at = Duration::from_secs(9);
        assert!(!schedule.look(at, 5, 5));
        assert_eq!(schedule.next, at + INTERVAL);
        assert!(schedule.look(at + INTERVAL, 5, 6));
        // It failed.
        let at = schedule.next;
        assert!(schedule.look(at, 5, 7));
        let at = schedule.next;
        assert!(!schedule.look(at, 7, 7) && schedule.next == at + INTERVAL);
    }

    /// Records that came before the first look are as old as the clock.
    #[test]
    fn a_first_look_that_is_late_syncs() {
        for late in [20, 50, 70, 71, 79] {
            let mut schedule = SyncSchedule::new(INTERVAL);
            let mut at = Duration::from_millis(late);
            while !schedule.look(at, 0, 5) {
                at = schedule.next;
            }
            assert!(at <= INTERVAL, "{late} ms: synced at {at:?}");
        }
    }

    #[test]
    fn a_short_interval_is_kept_by_a_look_each_millisecond() {
        let mut schedule = SyncSchedule::new(TICK_MIN);
        assert!(schedule.look(Duration::from_secs(1), 0, 1));
        assert_eq!(schedule.next, Duration::from_secs(1) + TICK_MIN);
    }

    #[test]
    fn never_is_never() {
        let mut schedule = SyncSchedule::new(Duration::MAX);
        assert!(!(0..50).any(|n| schedule.look(Duration::from_secs(n << 30), 0, n)));
    }
}
