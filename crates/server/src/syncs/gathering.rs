//! [`Gathering`]: whether a sync waits for more that could share it.
//!
//! Clients that write one request at a time come in as many groups as happened to form: while the disk is asked for one,
//! the other comes, and both have half a sync's worth each, for ever. Who knows that the first is about to come again,
//! as it did the last times, waits a little, and both become one.

/// Of this many syncs before, those are expected again that have waited for one.
const REMEMBERED: usize = 2;
/// A wait that is for nothing is not tried again for so many syncs, and each time for twice as many.
const REST_SYNCS_MAX: u32 = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Gathering {
    /// The number of the sync that is to come.
    number: u64,
    /// Connections that wait for it.
    come: usize,
    /// Those that have waited for the syncs before it, and for none since, the last first.
    missing: [usize; REMEMBERED],
    /// Syncs that wait for nobody, and how many they were the last time.
    rest: u32,
    rested: u32,
}

impl Default for Gathering {
    fn default() -> Self {
        Self { number: REMEMBERED as u64 + 1, come: 0, missing: [0; REMEMBERED], rest: 0, rested: 0 }
    }
}

impl Gathering {
    /// Takes connections of which each has waited last for the sync of the number given. Returns the number of the one that
    /// they wait for now.
    pub(super) fn add(&mut self, waited_for: impl Iterator<Item = u64>) -> u64 {
        for last in waited_for {
            let before = self.number.checked_sub(last + 1).and_then(|ago| usize::try_from(ago).ok());
            if let Some(missing) = before.and_then(|ago| self.missing.get_mut(ago)) {
                *missing = missing.saturating_sub(1);
            }
            self.come += 1;
        }
        self.number
    }

    /// Whether nobody is expected, or it would not pay to wait.
    pub(super) fn is_complete(&self) -> bool {
        self.rest > 0 || self.missing() == 0
    }

    /// Connections that are expected.
    pub(super) fn missing(&self) -> usize {
        self.missing.iter().sum()
    }

    /// The sync begins. `waited_for` says how many were missing when the wait for them began, if it did.
    pub(super) fn begin(&mut self, waited_for: Option<usize>) {
        self.rest = self.rest.saturating_sub(1);
        if let Some(expected) = waited_for {
            let is_worth_it = self.missing() * 2 <= expected;
            self.rested = if is_worth_it { 0 } else { (self.rested * 2).clamp(1, REST_SYNCS_MAX) };
            self.rest = self.rested;
        }
        self.missing.rotate_right(1);
        self.missing[0] = std::mem::take(&mut self.come);
        self.number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that come again behind each sync, in the groups in which they are.
    struct Clients(Vec<u64>);

    impl Clients {
        fn come(&mut self, gathering: &mut Gathering, which: std::ops::Range<usize>) {
            let number = gathering.add(self.0[which.clone()].iter().copied());
            self.0[which].fill(number);
        }
    }

    #[test]
    fn two_halves_become_one() {
        let (mut gathering, mut clients) = (Gathering::default(), Clients(vec![0; 16]));
        for half in [0..8, 8..16] {
            clients.come(&mut gathering, half);
            gathering.begin(None);
        }
        clients.come(&mut gathering, 0..8);
        assert_eq!((gathering.is_complete(), gathering.missing()), (false, 8));
        clients.come(&mut gathering, 8..16);
        assert!(gathering.is_complete());
        gathering.begin(Some(8));
        // From here on all come together, and the last of them ends the wait.
        for _ in 0..10 {
            clients.come(&mut gathering, 0..15);
            assert_eq!(gathering.missing(), 1);
            clients.come(&mut gathering, 15..16);
            assert!(gathering.is_complete());
            gathering.begin(Some(1));
        }
    }

    #[test]
    fn nobody_waits_long_for_those_who_are_gone() {
        let (mut gathering, mut clients) = (Gathering::default(), Clients(vec![0; 16]));
        clients.come(&mut gathering, 0..16);
        gathering.begin(None);
        let mut waits = 0;
        for _ in 0..300 {
            clients.come(&mut gathering, 0..1);
            let waited_for = (!gathering.is_complete()).then(|| gathering.missing());
            waits += usize::from(waited_for.is_some());
            gathering.begin(waited_for);
        }
        assert!((1..=REMEMBERED).contains(&waits), "{waits} waits for fifteen clients that have left");
    }

    /// Each comes once, so those that came last never come again.
    #[test]
    fn waits_for_strangers_get_rare() {
        let (mut gathering, mut waits) = (Gathering::default(), 0);
        for _ in 0..1000 {
            gathering.add([0, 0, 0].into_iter());
            let waited_for = (!gathering.is_complete()).then(|| gathering.missing());
            waits += usize::from(waited_for.is_some());
            gathering.begin(waited_for);
        }
        assert!(waits <= 1000 / REST_SYNCS_MAX as usize + 7, "{waits} waits for nothing of a thousand");
    }
}
