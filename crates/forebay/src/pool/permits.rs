//! How many merges a pool's databases have under way: each takes memory to read and to write until it is done, whether
//! or not a thread steps it just now. Databases have their turns as they come; of those at leisure, for whose merges
//! nobody waits and which get few turns of the threads, one has a merge at a time, and that after all others.
//!
//! **Invariant:** there are never more than `max`.

use std::collections::VecDeque;

use forebay_env::Haste;

/// A turn that was offered is another's after so many have been refused because of it: its database may have nothing to
/// do any more.
const REFUSALS_MAX: u32 = 64;
/// So many are databases' at leisure.
const LEISURELY_MAX: usize = 1;

/// See the module. Databases go by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    max: usize,
    taken: usize,
    leisurely: usize,
    waiting: VecDeque<(u64, Haste)>,
    /// Who has waited for the longest time, since there is room.
    offered: Option<u64>,
    refusals: u32,
}

impl Permits {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether this one may begin a merge. Else it is told once it may.
    pub(crate) fn take(&mut self, number: u64, haste: Haste) -> bool {
        debug_assert!(self.taken <= self.max, "{} of {} have begun", self.taken, self.max);
        let is_offered = self.offered == Some(number);
        if is_offered {
            self.offered = None;
        }
        let kept_back = usize::from(self.offered.is_some());
        if self.taken + kept_back < self.max && self.may_begin(haste) {
            self.taken += 1;
            self.leisurely += usize::from(haste == Haste::Leisure);
            self.refusals = 0;
            return true;
        }
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == number) {
            Some((_, known)) => *known = haste,
            None => self.waiting.push_back((number, haste)),
        }
        self.refusals += kept_back as u32;
        if self.refusals > REFUSALS_MAX {
            (self.offered, self.refusals) = (None, 0);
        }
        false
    }

    /// One is done, or finds nothing to do. Returns whose turn it is.
    pub(crate) fn give_back(&mut self, haste: Haste) -> Option<u64> {
        debug_assert!(self.taken > 0 && self.taken <= self.max, "{} of {}", self.taken, self.max);
        self.taken -= 1;
        self.leisurely -= usize::from(haste == Haste::Leisure);
        self.offer()
    }

    /// A database closes.
    pub(crate) fn leave(&mut self, number: u64) -> Option<u64> {
        self.waiting.retain(|(waiting, _)| *waiting != number);
        if self.offered != Some(number) {
            return None;
        }
        self.offered = None;
        self.offer()
    }

    fn may_begin(&self, haste: Haste) -> bool {
        haste == Haste::Hasty || self.leisurely < LEISURELY_MAX
    }

    fn offer(&mut self) -> Option<u64> {
        if self.offered.is_some() {
            return None;
        }
        self.refusals = 0;
        let first = |haste| self.waiting.iter().position(|(_, waiting)| *waiting == haste);
        let hasty = first(Haste::Hasty);
        let next = hasty.or_else(|| first(Haste::Leisure).filter(|_| self.may_begin(Haste::Leisure)))?;
        self.offered = self.waiting.remove(next).map(|(number, _)| number);
        self.offered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASTY: Haste = Haste::Hasty;
    const LEISURE: Haste = Haste::Leisure;

    #[test]
    fn databases_have_their_turns_as_they_come() {
        let mut permits = Permits::new(2);
        assert!(permits.take(1, HASTY) && permits.take(1, HASTY));
        assert!(!permits.take(1, HASTY) && !permits.take(2, HASTY));
        assert_eq!(permits.waiting(), 2);
        // Who is done comes again behind those who wait.
        assert_eq!(permits.give_back(HASTY), Some(1));
        assert!(permits.take(1, HASTY) && !permits.take(1, HASTY));
        assert_eq!(permits.give_back(HASTY), Some(2));
        assert!(!permits.take(1, HASTY) && permits.take(2, HASTY));
        assert_eq!(permits.give_back(HASTY), Some(1));
        // It has closed.
        assert_eq!(permits.leave(1), None);
        assert!(permits.take(3, HASTY));
        assert_eq!(permits.taken(), 2);
    }

    #[test]
    fn one_at_leisure_has_a_turn_after_all_others() {
        let mut permits = Permits::new(2);
        assert!(permits.take(1, LEISURE) && !permits.take(2, LEISURE), "one at a time");
        assert!(permits.take(3, HASTY) && !permits.take(4, HASTY));
        assert_eq!(permits.give_back(LEISURE), Some(4), "before the one that has waited for longer");
        assert!(permits.take(4, HASTY));
        assert_eq!(permits.give_back(HASTY), Some(2));
        // It has begun to be written meanwhile.
        assert!(permits.take(2, HASTY));
    }

    #[test]
    fn who_does_not_come_keeps_nobody_waiting() {
        let mut permits = Permits::new(1);
        assert!(permits.take(1, HASTY) && !permits.take(2, HASTY) && !permits.take(3, HASTY));
        assert_eq!(permits.give_back(HASTY), Some(2));
        let tries = (0..=REFUSALS_MAX + 1).take_while(|_| !permits.take(3, HASTY)).count();
        assert!(tries > 1 && permits.taken() == 1, "{tries}");
    }
}
