//! How much memory a database may take: as much as it was told, or its share of a pool, in which it has a seat.

use std::path::Path;
use std::sync::Arc;

use forebay_base::Result;
use forebay_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use forebay_env::{Haste, Jobs};

use super::arbiter::{SHARE_BYTES_MIN, Wish};
use super::{OWN_BYTES, Shared};
use crate::options::Options;

/// See the module.
pub(crate) enum Limit {
    /// As long as it is open.
    Fixed(u64),
    /// By what others want.
    Seat(Seat),
}

impl Limit {
    /// Of a database that is being opened.
    pub(crate) fn new(options: &Options, dir: &Path, jobs: &Jobs) -> Result<Self> {
        let Some(pool) = &options.pool else { return Ok(Self::Fixed(options.memory_limit_bytes())) };
        // Without background work nobody gives anything back.
        let wish = if options.read_only { Wish::Fixed } else { Wish::Asleep { kept_bytes: 0 } };
        pool.shared().join(&dir.display().to_string(), jobs, wish).map(Self::Seat)
    }

    /// How much it is now.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Seat(seat) => {
                let share = seat.share_bytes();
                debug_assert!(share >= SHARE_BYTES_MIN, "a share of {share} bytes");
                share - OWN_BYTES
            }
        }
    }

    /// The seat, if there is a pool.
    pub(crate) fn seat(&self) -> Option<&Seat> {
        match self {
            Self::Fixed(_) => None,
            Self::Seat(seat) => Some(seat),
        }
    }

    /// The right to begin a merge; `None` as long as others of the pool have all that there are.
    pub(crate) fn begin_job(&self) -> Option<Permit> {
        match self {
            Self::Fixed(_) => Some(Permit(None)),
            Self::Seat(Seat { pool, number, is_at_leisure, .. }) => {
                let haste = match is_at_leisure.load(Ordering::Relaxed) {
                    true => Haste::Leisure,
                    false => Haste::Hasty,
                };
                let may_begin = pool.permits.lock().take(*number, haste);
                may_begin.then(|| Permit(Some((Arc::clone(pool), haste))))
            }
        }
    }

    /// Whether somebody may wait for the database's merges from now on.
    pub(crate) fn set_haste(&self, haste: Haste) {
        if let Self::Seat(seat) = self {
            seat.is_at_leisure.store(haste == Haste::Leisure, Ordering::Relaxed);
        }
    }

    /// The database is closed, and nothing in it gives anything back any more: what it has others may have. Handles that
    /// are left read with the least.
    pub(crate) fn leave(&self) {
        if let Self::Seat(Seat { pool, number, share_bytes, .. }) = self {
            pool.leave(*number);
            share_bytes.store(SHARE_BYTES_MIN, Ordering::Relaxed);
        }
    }
}

/// A database's place in a pool.
pub(crate) struct Seat {
    pub(super) pool: Arc<Shared>,
    pub(super) number: u64,
    pub(super) share_bytes: Arc<AtomicU64>,
    pub(super) is_at_leisure: AtomicBool,
}

impl Seat {
    /// What it may take, with what a database takes in any case.
    pub(crate) fn share_bytes(&self) -> u64 {
        self.share_bytes.load(Ordering::Relaxed)
    }

    /// Tells what the database holds and wants. Its share is another one at once, as far as that can be.
    pub(crate) fn report(&self, held_bytes: u64, wish: Wish) {
        self.pool.report(self.number, held_bytes, wish);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.pool.leave(self.number);
    }
}

/// Lasts as long as a merge does.
pub(crate) struct Permit(Option<(Arc<Shared>, Haste)>);

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((pool, haste)) = &self.0 {
            let next = pool.permits.lock().give_back(*haste);
            pool.tell(next);
        }
    }
}
