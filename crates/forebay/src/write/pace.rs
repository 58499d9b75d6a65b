//! Writers go no faster than background work for long: each waits for a share of what it adds to a debt to be worked
//! off.

use forebay_base::limits::STEP_BYTES;
use forebay_env::sync::atomic::{AtomicU64, Ordering};

use crate::write::Writer;

/// What background work has done, and what writers wait for of it.
#[derive(Default)]
pub(crate) struct Pace {
    /// Bytes that background work has gone through.
    done_bytes: AtomicU64,
    /// How many that are to be for all that writers have owed.
    due_bytes: AtomicU64,
    /// How much of the oldest sealed buffer is flushed, from 0 to 1, as the bits of an `f64`.
    flushed_share: AtomicU64,
}

impl Pace {
    /// Adds to the work that is done.
    pub(crate) fn add(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn flushed_share(&self) -> f64 {
        f64::from_bits(self.flushed_share.load(Ordering::Relaxed))
    }

    pub(crate) fn set_flushed_share(&self, share: f64) {
        debug_assert!((0.0..=1.0).contains(&share), "{share} is no share");
        self.flushed_share.store(share.to_bits(), Ordering::Relaxed);
    }

    /// Adds to what all writers owe, as far as that is not worked off. Returns how much is to be done by then.
    fn owe(&self, bytes: u64) -> u64 {
        let done = self.done_bytes.load(Ordering::Relaxed);
        let later = |due: u64| due.max(done).saturating_add(bytes);
        let before =
            self.due_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due| Some(later(due)));
        before.map_or(done, later)
    }

    /// Whether this much work is done, up to one step that may be missing.
    fn has_done(&self, due: u64, lent: u64) -> bool {
        self.done_bytes.load(Ordering::Relaxed).saturating_add(lent) >= due
    }

    /// Forgives what all writers owe.
    fn forgive(&self) {
        self.due_bytes.fetch_min(self.done_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Writer {
    /// Waits for a share of a debt to be worked off, in proportion to the bytes that a writer has added.
    #[cold]
    pub(super) fn work_off(&self, bytes: u64, debt: u64, owed_for_space: u64) {
        let soft = self.free_debt_bytes;
        debug_assert!(soft > 0, "some debt costs nothing");
        // At twice the soft limit a writer waits for four bytes of work for each of its own, and so on.
        let owed = (bytes as u128 * 4 * debt.saturating_sub(soft) as u128 / soft as u128) as u64;
        let due = self.pace.owe(owed.max(owed_for_space));
        // Work is done a step at a time: who owes less than one waits for it only once all together owe one. Where
        // space is short nothing is lent.
        let lent = if owed_for_space > 0 { 0 } else { self.context.buffers().bytes.min(STEP_BYTES as u64) };
        let started = self.context.env.clock.now();
        let _waiter = self.context.begin_wait();
        self.context.env.jobs.wait(&mut || {
            let is_small = owed_for_space == 0 && self.versions.debt(&self.versions.state()) <= soft;
            let is_paid =
                self.pace.has_done(due, lent) || is_small || self.context.health.compactors_are_idle();
            let give_up =
                self.space.trouble().is_some() || self.context.fatal().is_some() || self.context.is_closing();
            give_up || (is_paid && !self.outruns_flush(&self.versions.state()))
        });
        if !self.pace.has_done(due, lent) {
            self.pace.forgive();
        }
        self.context.stalled_since(started);
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    /// Ten writers who owe a tenth of a step each wait for one step, and not for ten.
    #[test]
    fn who_owes_little_waits_for_little() {
        let (pace, step) = (Pace::default(), 1000);
        let dues: Vec<u64> = (0..10).map(|_| pace.owe(step / 10)).collect();
        assert!(dues.iter().all(|&due| pace.has_done(due, step)));
        let next = pace.owe(step / 10);
        assert!(!pace.has_done(next, step));
        pace.add(step);
        assert!(pace.has_done(next, step) && !pace.has_done(next, 0));
        // What was done before counts for nobody who owes later.
        pace.add(100 * step);
        assert_eq!(pace.owe(1), 101_001);
    }

    #[test]
    fn what_is_forgiven_is_owed_by_nobody() {
        let pace = Pace::default();
        pace.add(10);
        assert_eq!(pace.owe(5000), 5010);
        pace.forgive();
        assert_eq!(pace.owe(1), 11);
    }
}
