//! Looking at a directory that somebody else may write meanwhile.

use forebay_base::{Error, Result};
use forebay_env::LockMode;
use forebay_store::names;

use crate::open::{Found, Looking, look};

/// How often it is looked at anew while somebody writes.
const TRIES_MAX: usize = 100;

/// Looks, under a lease. What was found to be damaged may only have been half written: so where somebody writes it is
/// looked at in another way, in which the log ends where no sound frame stands. Where nobody does, damage is damage.
pub(crate) fn look_beside(looking: &Looking<'_>) -> Result<Found> {
    let mut error = match look(looking, false) {
        Err(error) => error,
        found => return found,
    };
    let (fs, lock) = (&*looking.env.fs, looking.dir.join(names::LOCK));
    for _ in 0..TRIES_MAX {
        match fs.lock(&lock, LockMode::Shared) {
            Err(Error::Locked { .. }) => match look(looking, true) {
                Err(other) => error = other,
                found => return found,
            },
            // Whoever wrote has ended, and nobody begins meanwhile.
            Ok(_alone) => return look(looking, false),
            Err(_) => return Err(error),
        }
    }
    Err(error)
}
