//! How background work does: what its machines fail at, and whether the compactors have found anything to do. Machines
//! write it; writers and users that wait for them read it.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_base::Error;
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_env::sync::{Mutex, Rank};

use crate::options::BACKGROUND_THREADS_MAX;

/// The machines that others wait for.
pub(crate) const FLUSH: &str = "forebay-flush";
pub(crate) const COMPACT: &str = "forebay-compact";

pub(crate) struct Health {
    /// Why a machine does not get on, until it does, by its name and its number.
    troubles: Mutex<BTreeMap<(&'static str, usize), Trouble>>,
    /// How many compactors there are.
    compactors: usize,
    /// A bit for each compactor that has found nothing to do.
    idle: AtomicU64,
}

struct Trouble {
    error: Error,
    /// When it tries again, whoever wakes it before.
    next_try: Duration,
}

impl Health {
    pub(crate) fn new(compactors: usize) -> Self {
        debug_assert!((1..=BACKGROUND_THREADS_MAX).contains(&compactors), "each compactor has a bit");
        let idle = AtomicU64::new(all(compactors));
        Self { troubles: Mutex::ranked(Rank::Leaf, BTreeMap::new()), compactors, idle }
    }

    pub(crate) fn compactors(&self) -> usize {
        self.compactors
    }

    /// Why the first machine that does not get on does not.
    pub(crate) fn any_trouble(&self) -> Option<Error> {
        self.troubles.lock().values().next().map(|trouble| trouble.error.clone())
    }

    /// Why a machine of this name does not get on, if so: what may keep it from all else before what may not.
    pub(crate) fn trouble_at(&self, machine: &str) -> Option<Error> {
        let troubles = self.troubles.lock();
        let of_machine =
            || troubles.iter().filter(|((name, _), _)| *name == machine).map(|(_, trouble)| &trouble.error);
        of_machine().find(|error| may_stop_work(error)).or_else(|| of_machine().next()).cloned()
    }

    /// Notes why a machine does not get on, and when it tries again.
    pub(crate) fn fails(&self, machine: (&'static str, usize), error: Error, next_try: Duration) {
        self.troubles.lock().insert(machine, Trouble { error, next_try });
    }

    /// Until when a machine leaves alone what it has failed at.
    pub(crate) fn rests(&self, machine: (&'static str, usize), now: Duration) -> Option<Duration> {
        let next_try = self.troubles.lock().get(&machine)?.next_try;
        Some(next_try).filter(|next_try| *next_try > now)
    }

    /// Notes that a machine gets on. Says whether it did not.
    pub(crate) fn recovers(&self, machine: (&'static str, usize)) -> bool {
        self.troubles.lock().remove(&machine).is_some()
    }

    /// Forgets failures that no retry would have mended: what they failed at is taken up again.
    pub(crate) fn forget_lasting(&self) {
        self.troubles.lock().retain(|_, trouble| !trouble.error.is_lasting());
    }

    /// Whether all compactors have found nothing that they could do: waiting for them would be in vain.
    pub(crate) fn compactors_are_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire) == all(self.compactors)
    }

    /// Notes whether a compactor has found nothing to do. Returns what was known before. It is not idle any more under
    /// the lock under which its work was planned: whoever finds nothing beside that sees so.
    pub(crate) fn set_idle(&self, compactor: usize, is_idle: bool) -> bool {
        let bit = 1 << compactor;
        let before = match is_idle {
            true => self.idle.fetch_or(bit, Ordering::AcqRel),
            false => self.idle.fetch_and(!bit, Ordering::AcqRel),
        };
        before & bit != 0
    }

    /// What compactors have found before does not count any more: they are to look again.
    pub(crate) fn forget_idle(&self) {
        self.idle.store(0, Ordering::Release);
    }
}

/// A bit for each of this many.
fn all(compactors: usize) -> u64 {
    u64::MAX >> (u64::BITS as usize - compactors)
}

/// Whether an error may keep a machine from all else: one that lasts is set aside with its nodes; of a contradiction it
/// is not known.
pub(crate) fn may_stop_work(error: &Error) -> bool {
    !error.is_lasting() || error.is_bug()
}
