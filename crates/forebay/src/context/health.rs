//! How background work does: what its machines fail at, and whether the compactor has found anything to do. Machines
//! write it; writers and users that wait for them read it.

use std::collections::BTreeMap;

use forebay_base::Error;
use forebay_env::sync::atomic::{AtomicBool, Ordering};
use forebay_env::sync::{Mutex, Rank};

/// The machines that others wait for.
pub(crate) const FLUSH: &str = "forebay-flush";
pub(crate) const COMPACT: &str = "forebay-compact";

pub(crate) struct Health {
    /// Why a machine does not get on, until it does.
    troubles: Mutex<BTreeMap<&'static str, Error>>,
    compactor_is_idle: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            troubles: Mutex::ranked(Rank::Leaf, BTreeMap::new()),
            compactor_is_idle: AtomicBool::new(true),
        }
    }
}

impl Health {
    /// Why the first machine that does not get on does not.
    pub(crate) fn any_trouble(&self) -> Option<Error> {
        self.troubles.lock().values().next().cloned()
    }

    /// Why a machine does not get on, if so.
    pub(crate) fn trouble_at(&self, machine: &str) -> Option<Error> {
        self.troubles.lock().get(machine).cloned()
    }

    pub(crate) fn fails(&self, machine: &'static str, error: Error) {
        self.troubles.lock().insert(machine, error);
    }

    /// Notes that a machine gets on. Says whether it did not.
    pub(crate) fn recovers(&self, machine: &str) -> bool {
        self.troubles.lock().remove(machine).is_some()
    }

    /// Forgets failures that no retry would have mended: what they failed at is taken up again.
    pub(crate) fn forget_lasting(&self) {
        self.troubles.lock().retain(|_, trouble| !trouble.is_lasting());
    }

    /// Whether the compactor has found nothing that it could do: waiting for it would be in vain.
    pub(crate) fn compactor_is_idle(&self) -> bool {
        self.compactor_is_idle.load(Ordering::Relaxed)
    }

    /// Notes whether the compactor has found nothing to do. Returns what was known before.
    pub(crate) fn set_compactor_is_idle(&self, is_idle: bool) -> bool {
        self.compactor_is_idle.swap(is_idle, Ordering::Relaxed)
    }
}

/// Whether an error may keep a machine from all else: one that lasts is set aside with its nodes; of a contradiction it
/// is not known.
pub(crate) fn may_stop_work(error: &Error) -> bool {
    !error.is_lasting() || error.is_bug()
}
