//! What a database of a pool asks for, and that it keeps to what it gets. One that has its memory to itself does none of
//! this.

use std::time::Duration;

use forebay_env::sync::atomic::Ordering;

use crate::memory::{Memory, MemoryShares};
use crate::pool::{OWN_BYTES, Wish};

/// What was written of late is half forgotten after this time.
const HALF_LIFE: Duration = Duration::from_secs(1);
/// So many times what was written of late is of use: of each share a quarter is filled before it is written out.
const WRITTEN_TIMES: u64 = 16;
/// Filters and cached pages have a third of a share.
const READING_TIMES: u64 = 3;
/// Pages that were missed of late are wanted twice over.
const MISSED_TIMES: u64 = 2;
/// Without a lookup for this time nobody reads.
const READ_REST: Duration = Duration::from_secs(10);
/// Who wrote less than this of late has use for no more than who sleeps.
const WRITTEN_BYTES_MIN: u64 = 16 << 10;

/// What has been done to a database since it was opened.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    written_bytes: u64,
    missed_bytes: u64,
    lookups: u64,
}

/// What a database has use for, by what it has been asked for of late.
#[derive(Debug, Default)]
pub(super) struct Demand {
    looked_at: Duration,
    before: Seen,
    /// Of late.
    written_bytes: f64,
    missed_bytes: f64,
    /// Since when nobody reads.
    read_at: Option<Duration>,
}

impl Demand {
    /// Looks at what was done since the last look. `reading_bytes` are filters and cached pages.
    fn look(&mut self, now: Duration, seen: Seen, reading_bytes: u64) -> Option<u64> {
        debug_assert!(seen.written_bytes >= self.before.written_bytes, "what was written stays written");
        let lives = now.saturating_sub(self.looked_at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        let kept = 0.5_f64.powf(lives);
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        self.written_bytes = self.written_bytes * kept + since(seen.written_bytes, self.before.written_bytes);
        self.missed_bytes = self.missed_bytes * kept + since(seen.missed_bytes, self.before.missed_bytes);
        if seen.lookups > self.before.lookups {
            self.read_at = Some(now);
        }
        (self.looked_at, self.before) = (now, seen);
        let is_read = self.read_at.is_some_and(|read_at| now.saturating_sub(read_at) < READ_REST);
        let written = self.written_bytes as u64;
        let reading = match is_read {
            true => READING_TIMES * (reading_bytes + MISSED_TIMES * self.missed_bytes as u64),
            false => 0,
        };
        let writing = if written >= WRITTEN_BYTES_MIN { WRITTEN_TIMES.saturating_mul(written) } else { 0 };
        (is_read || writing > 0).then(|| reading.saturating_add(writing).saturating_add(OWN_BYTES))
    }

    /// Nobody writes any more, however much was written just before.
    fn forget_written(&mut self) {
        self.written_bytes = 0.0;
    }
}

impl MemoryShares {
    /// Tells the pool what this database holds and has use for, and keeps to the share that it gets.
    pub(crate) fn report(&self) {
        let Some(seat) = self.context.limit.seat() else { return };
        let memory = Memory::of(&self.versions);
        let metrics = &self.context.metrics;
        let wanted = {
            let mut demand = self.demand.lock();
            // Under the lock: whoever looks later sees no less.
            let seen = Seen {
                written_bytes: self.written_bytes(),
                missed_bytes: metrics.page_read_bytes.get(),
                lookups: metrics.gets.get() + metrics.page_reads.get() + metrics.cache_hits.get(),
            };
            if self.is_idle() && !self.context.limit.is_waited_for() {
                demand.forget_written();
            }
            demand.look(self.context.env.clock.now(), seen, memory.filters + memory.page_cache)
        };
        let kept_bytes = memory.filters + memory.page_search + memory.writing;
        let awake = |bytes: u64| Wish::Awake { bytes: bytes.saturating_add(memory.writing) };
        let wish = wanted.map_or(Wish::Asleep { kept_bytes }, awake);
        seat.report(held_bytes(&memory), wish);
        self.follow_share();
    }

    /// Tells the pool what a database holds that is only read: its share, and beside that what it cannot help to hold, as
    /// its buffers are as long as those of whoever writes.
    pub(crate) fn tell_held(&self) {
        if let Some(seat) = self.context.limit.seat() {
            let memory = Memory::of(&self.versions);
            let held_bytes = held_bytes(&memory).max(seat.share_bytes() + memory.write_buffers);
            seat.report(held_bytes, Wish::Fixed);
        }
    }

    /// Keeps to a share that is another one by now.
    pub(crate) fn follow_share(&self) {
        if self.followed_bytes.load(Ordering::Relaxed) == self.context.limit.bytes() {
            return;
        }
        let _one_at_a_time = self.sharing.lock();
        // Of two at once, the one that comes later looks later.
        let now = self.context.limit.bytes();
        if self.followed_bytes.swap(now, Ordering::Relaxed) != now {
            self.context.metrics.memory.set_limit(now);
            self.share();
        }
    }

    /// Whether the active write buffer is longer than there is memory for and nobody fills it, so that it is better
    /// written out.
    pub(crate) fn wants_shorter_buffer(&self) -> bool {
        self.context.limit.seat().is_some_and(|seat| {
            let active = self.versions.look(|state| state.active.capacity() as u64);
            let is_long = active > self.context.buffers().bytes;
            is_long && self.is_idle() && held_bytes(&Memory::of(&self.versions)) > seat.share_bytes()
        })
    }

    /// Whether all rests in a database of a pool: there is nothing to look at for a while, unless somebody
    /// [writes](Self::note_write). Its housekeeper must look once more after this, and rest only if nothing is to be
    /// made durable.
    pub(crate) fn begin_rest(&self) -> bool {
        let rests = self.context.limit.seat().is_some() && self.is_idle();
        self.rests.store(rests, Ordering::SeqCst);
        rests
    }

    /// Ends that. Says whether it was so.
    pub(crate) fn end_rest(&self) -> bool {
        self.rests.load(Ordering::SeqCst) && self.rests.swap(false, Ordering::SeqCst)
    }
}

/// What counts as a share: all but what merges take to read, which is the pool's.
fn held_bytes(memory: &Memory) -> u64 {
    debug_assert!(memory.total >= memory.merging, "it is in the sum");
    OWN_BYTES + memory.total - memory.merging
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn written(written_bytes: u64) -> Seen {
        Seen { written_bytes, ..Seen::default() }
    }

    #[test]
    fn who_fills_buffers_wants_longer_ones_and_who_rests_wants_nothing() {
        let mut demand = Demand::default();
        assert_eq!(demand.look(at(1.0), written(0), 0), None);
        let mut buffer = 64 << 10;
        let mut all = 0;
        for turn in 1..10 {
            all += buffer;
            let share = demand.look(at(1.0 + 0.05 * turn as f64), written(all), 0).expect("it is written to");
            assert!(share >= 8 * buffer, "{share} after buffers of {buffer}");
            buffer = share / 4;
        }
        let later = demand.look(at(30.0), written(all), 0);
        assert_eq!(later, None, "long ago");
        // A few short records a second are nothing to make room for.
        assert_eq!(
            (1..100).find_map(|turn| demand.look(at(30.0 + turn as f64), written(all + 100 * turn), 0)),
            None
        );
    }

    #[test]
    fn who_reads_keeps_what_is_read_and_gets_what_is_missed() {
        let mut demand = Demand::default();
        let seen = |missed_bytes, lookups| Seen { missed_bytes, lookups, ..Seen::default() };
        assert_eq!(demand.look(at(1.0), seen(0, 5), 1000), Some(OWN_BYTES + 3000));
        assert_eq!(demand.look(at(2.0), seen(500, 6), 1000), Some(OWN_BYTES + 3 * (1000 + 2 * 500)));
        assert!(demand.look(at(11.0), seen(500, 6), 1000).is_some(), "not long ago");
        assert_eq!(demand.look(at(13.0), seen(500, 6), 1000), None);
    }
}
