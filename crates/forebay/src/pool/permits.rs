//! How many merges a pool's databases have under way: each takes memory to read and to write until it is done, whether
//! or not a thread steps it just now. Databases have their turns as they come.
//!
//! **Invariant:** there are never more than `max`.

use std::collections::VecDeque;

/// A turn that was offered is another's after so many have been refused because of it: its database may have nothing to
/// do any more.
const REFUSALS_MAX: u32 = 64;

/// See the module. Databases go by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    max: usize,
    taken: usize,
    waiting: VecDeque<u64>,
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
    pub(crate) fn take(&mut self, number: u64) -> bool {
        let is_offered = self.offered == Some(number);
        let kept_back = usize::from(self.offered.is_some() && !is_offered);
        debug_assert!(self.taken <= self.max, "{} of {} have begun", self.taken, self.max);
        if self.taken + kept_back < self.max {
            self.taken += 1;
            self.offered = self.offered.filter(|_| !is_offered);
            self.refusals = 0;
            return true;
        }
        if !self.waiting.contains(&number) {
            self.waiting.push_back(number);
        }
        self.refusals += kept_back as u32;
        if self.refusals > REFUSALS_MAX {
            (self.offered, self.refusals) = (None, 0);
        }
        false
    }

    /// One is done, or finds nothing to do. Returns whose turn it is.
    pub(crate) fn give_back(&mut self) -> Option<u64> {
        debug_assert!(self.taken > 0 && self.taken <= self.max, "{} of {}", self.taken, self.max);
        self.taken -= 1;
        self.offer()
    }

    /// A database closes.
    pub(crate) fn leave(&mut self, number: u64) -> Option<u64> {
        self.waiting.retain(|waiting| *waiting != number);
        if self.offered != Some(number) {
            return None;
        }
        self.offered = None;
        self.offer()
    }

    fn offer(&mut self) -> Option<u64> {
        if self.offered.is_some() {
            return None;
        }
        self.refusals = 0;
        self.offered = self.waiting.pop_front();
        self.offered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_have_their_turns_as_they_come() {
        let mut permits = Permits::new(2);
        assert!(permits.take(1) && permits.take(1) && !permits.take(1) && !permits.take(2));
        assert_eq!(permits.waiting(), 2);
        // Who is done comes again behind those who wait.
        assert_eq!(permits.give_back(), Some(1));
        assert!(permits.take(1) && !permits.take(1));
        assert_eq!(permits.give_back(), Some(2));
        assert!(!permits.take(1) && permits.take(2));
        assert_eq!(permits.give_back(), Some(1));
        // It has closed.
        assert_eq!(permits.leave(1), None);
        assert!(permits.take(3));
        assert_eq!(permits.taken(), 2);
    }

    #[test]
    fn who_does_not_come_keeps_nobody_waiting() {
        let mut permits = Permits::new(1);
        assert!(permits.take(1) && !permits.take(2) && !permits.take(3));
        assert_eq!(permits.give_back(), Some(2));
        let tries = (0..=REFUSALS_MAX + 1).take_while(|_| !permits.take(3)).count();
        assert!(tries > 1 && permits.taken() == 1, "{tries}");
    }
}
