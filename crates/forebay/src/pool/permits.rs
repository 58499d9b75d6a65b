//! How many merges a pool's databases have under way: each takes memory to read and to write until it is done, whether
//! or not a thread steps it just now. Who asks has something to merge. Where not all can begin, those with the fewest
//! under way come first, and of these who came first; of those at leisure, for whose merges nobody waits and which get
//! few turns of the threads, one has a merge at a time, and that after all others.
//!
//! Whoever's turn it is is told, and answers: it asks once more, or [declines](Permits::leave). Who does neither for a
//! while has lost its turn.
//!
//! **Invariant:** there are never more than `max`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use forebay_env::{Haste, Jobs};

use super::Shared;

/// Who keeps another one waiting for this time has lost its turn: it may have no thread, or a disk that hangs.
const TURN_LASTS: Duration = Duration::from_secs(1);
/// So many are databases' at leisure.
const LEISURELY_MAX: usize = 1;

/// See the module. Databases go by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    max: usize,
    /// By database, those that have any.
    taken: BTreeMap<u64, usize>,
    leisurely: usize,
    waiting: VecDeque<Waiting>,
    /// Whose turn it is, since there is room.
    offered: Option<u64>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    haste: Haste,
    /// Since when, by its own clock, it is another one's turn.
    since: Option<Duration>,
}

impl Permits {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.values().sum()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn taken_by(&self, number: u64) -> usize {
        self.taken.get(&number).copied().unwrap_or(0)
    }

    /// Whether this one may begin a merge, `now` by its own clock. Else it is told once it may.
    fn take(&mut self, number: u64, haste: Haste, now: Duration) -> bool {
        debug_assert!(self.taken() <= self.max, "{} of {} have begun", self.taken(), self.max);
        if self.offered == Some(number) || self.was_kept_waiting(number, now) {
            self.offered = None;
        }
        let kept_back = usize::from(self.offered.is_some());
        let has_room = self.taken() + kept_back < self.max && self.may_begin(haste);
        if has_room && !self.comes_after_others(number, haste) {
            *self.taken.entry(number).or_default() += 1;
            self.leisurely += usize::from(haste == Haste::Leisure);
            // Should it have use for another one it asks again.
            self.waiting.retain(|waiting| waiting.number != number);
            return true;
        }
        match self.waiting.iter_mut().find(|waiting| waiting.number == number) {
            Some(waiting) => waiting.haste = haste,
            None => self.waiting.push_back(Waiting { number, haste, since: None }),
        }
        false
    }

    /// One is done.
    fn give_back(&mut self, number: u64, haste: Haste) {
        let before = self.taken_by(number);
        debug_assert!(before > 0, "what is given back was taken");
        match before {
            0 | 1 => drop(self.taken.remove(&number)),
            _ => drop(self.taken.insert(number, before - 1)),
        }
        self.leisurely -= usize::from(haste == Haste::Leisure);
    }

    /// A database has nothing to merge, or does so no more.
    fn leave(&mut self, number: u64) {
        self.waiting.retain(|waiting| waiting.number != number);
        self.offered = self.offered.filter(|offered| *offered != number);
    }

    /// Whose turn it is from now on, if it is somebody's who waits.
    fn offer(&mut self) -> Option<u64> {
        if self.offered.is_some() || self.taken() >= self.max {
            return None;
        }
        let may_begin = |waiting: &&Waiting| self.may_begin(waiting.haste);
        let order = |waiting: &&Waiting| (waiting.haste as usize, self.taken_by(waiting.number));
        let next = self.waiting.iter().filter(may_begin).min_by_key(order)?.number;
        self.waiting.retain(|waiting| waiting.number != next);
        self.waiting.iter_mut().for_each(|waiting| waiting.since = None);
        self.offered = Some(next);
        self.offered
    }

    fn may_begin(&self, haste: Haste) -> bool {
        haste == Haste::Hasty || self.leisurely < LEISURELY_MAX
    }

    /// Whether somebody waits who has less under way, and no more leisure.
    fn comes_after_others(&self, number: u64, haste: Haste) -> bool {
        let own = self.taken_by(number);
        self.waiting.iter().any(|other| {
            self.may_begin(other.haste)
                && other.haste as usize <= haste as usize
                && self.taken_by(other.number) < own
        })
    }

    /// Whether somebody else has had the turn for long, and done nothing.
    fn was_kept_waiting(&mut self, number: u64, now: Duration) -> bool {
        let waiting = self.waiting.iter_mut().find(|waiting| waiting.number == number);
        let Some(waiting) = waiting.filter(|_| self.offered.is_some()) else { return false };
        now.saturating_sub(*waiting.since.get_or_insert(now)) >= TURN_LASTS
    }
}

impl Shared {
    /// Whether a database may begin a merge, `now` by its own clock.
    pub(super) fn begin_merge(&self, number: u64, haste: Haste, now: Duration) -> bool {
        self.at_permits(|permits| permits.take(number, haste, now))
    }

    pub(super) fn end_merge(&self, number: u64, haste: Haste) {
        self.at_permits(|permits| permits.give_back(number, haste));
    }

    /// A database has nothing to merge any more.
    pub(super) fn decline_merge(&self, number: u64) {
        self.at_permits(|permits| permits.leave(number));
    }

    /// Whatever happens, somebody else may have a turn by that.
    fn at_permits<T>(&self, what: impl FnOnce(&mut Permits) -> T) -> T {
        let mut permits = self.permits.lock();
        let outcome = what(&mut permits);
        let next = permits.offer();
        drop(permits);
        let jobs = next.and_then(|number| Some(self.seats.lock().by_number.get(&number)?.jobs.clone()));
        jobs.iter().for_each(Jobs::wake);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASTY: Haste = Haste::Hasty;
    const LEISURE: Haste = Haste::Leisure;
    const START: Duration = Duration::ZERO;

    fn done(permits: &mut Permits, number: u64, haste: Haste) -> Option<u64> {
        permits.give_back(number, haste);
        permits.offer()
    }

    #[test]
    fn databases_have_their_turns_as_they_come() {
        let mut permits = Permits::new(2);
        assert!(permits.take(1, HASTY, START) && permits.take(2, HASTY, START));
        assert!(!permits.take(3, HASTY, START) && !permits.take(4, HASTY, START));
        assert_eq!((permits.waiting(), permits.offer()), (2, None));
        // Who is done comes again behind those who wait.
        assert_eq!(done(&mut permits, 1, HASTY), Some(3));
        assert!(!permits.take(1, HASTY, START) && permits.take(3, HASTY, START));
        assert_eq!(done(&mut permits, 3, HASTY), Some(4));
        assert!(permits.take(4, HASTY, START));
        assert_eq!(done(&mut permits, 4, HASTY), Some(1));
        // It has closed.
        permits.leave(1);
        assert!(permits.offer().is_none() && permits.take(3, HASTY, START));
        assert_eq!(permits.taken(), 2);
    }

    /// One that had nearly all of them had the next one, too, where it had come first.
    #[test]
    fn who_has_the_fewest_comes_first() {
        let mut permits = Permits::new(5);
        assert!((0..4).all(|_| permits.take(1, HASTY, START)) && permits.take(2, HASTY, START));
        assert!([1, 2, 3, 4].iter().all(|number| !permits.take(*number, HASTY, START)));
        assert_eq!(done(&mut permits, 1, HASTY), Some(3));
        permits.give_back(1, HASTY);
        // There is room for one more, and another one waits who has none.
        assert!(!permits.take(1, HASTY, START) && !permits.take(2, HASTY, START));
        assert!(permits.take(3, HASTY, START));
        assert_eq!(permits.offer(), Some(4));
        assert!(permits.take(4, HASTY, START));
        assert_eq!(done(&mut permits, 1, HASTY), Some(1), "as many as the other one, and came first");
    }

    #[test]
    fn one_at_leisure_has_a_turn_after_all_others() {
        let mut permits = Permits::new(2);
        assert!(permits.take(1, LEISURE, START) && !permits.take(2, LEISURE, START), "one at a time");
        assert!(permits.take(3, HASTY, START) && !permits.take(4, HASTY, START));
        assert_eq!(done(&mut permits, 1, LEISURE), Some(4), "before the one that has waited for longer");
        assert!(permits.take(4, HASTY, START));
        assert_eq!(done(&mut permits, 4, HASTY), Some(2));
        // It has begun to be written meanwhile.
        assert!(permits.take(2, HASTY, START));
    }

    /// What one has no use for is another's at once, and what it leaves where it is after a while.
    #[test]
    fn who_does_not_come_keeps_nobody_waiting() {
        let mut permits = Permits::new(1);
        let at = Duration::from_millis;
        assert!(permits.take(1, HASTY, START));
        assert!([2, 3, 4].iter().all(|number| !permits.take(*number, HASTY, START)));
        assert_eq!(done(&mut permits, 1, HASTY), Some(2));
        permits.leave(2);
        assert_eq!(permits.offer(), Some(3));
        // Of two clocks one is far ahead.
        let tries = (0..100).take_while(|turn| !permits.take(4, HASTY, at(1_000_000 + 100 * turn))).count();
        assert_eq!((tries, permits.taken()), (10, 1));
        assert!(!permits.take(3, HASTY, at(1)));
    }
}
