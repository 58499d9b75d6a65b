//! Locks, condition variables and atomics, from std, or under `cfg(shuttle)` from shuttle.
//!
//! **Invariant:** poisoning never leaks. A panic under a lock is reported by whoever panicked (see
//! [`Jobs::panicked`](crate::Jobs::panicked)); the next owner of the lock goes on.
//!
//! `make shuttle` runs tests under its scheduler, which picks every interleaving by seed.
//!
//! `Arc` is std's everywhere: its counts are not what we check.

mod rank;
mod striped;

#[cfg(shuttle)]
use shuttle::sync as backend;
#[cfg(not(shuttle))]
use std::sync as backend;

use std::hint;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use crate::jobs::until_free;

#[cfg(shuttle)]
pub(crate) use shuttle::thread;
#[cfg(not(shuttle))]
pub(crate) use std::thread;

pub use backend::{RwLockReadGuard, RwLockWriteGuard};
pub use rank::Rank;
pub use std::sync::{Arc, Weak};
pub use striped::{Apart, Striped, thread_number};
/// A bare thread, for tests; the engine's work runs on [`Jobs`](crate::Jobs).
pub use thread::spawn;

/// Atomics of the chosen backend.
pub mod atomic {
    pub use super::backend::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
}

/// A lock that was tried for, if nobody held it.
fn free<G>(tried: Result<G, TryLockError<G>>) -> Option<G> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// How long a thread naps that waits for a lock [by turns](Mutex::lock_by_turns), and how often.
const NAP: Duration = Duration::from_micros(100);
const NAPS_MAX: usize = 10;

/// Mutual exclusion without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    inner: backend::Mutex<T>,
    rank: Rank,
}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Self {
        Self::ranked(Rank::Unordered, value)
    }

    /// An unlocked mutex with a place in the [order](Rank) of locks.
    pub fn ranked(rank: Rank, value: T) -> Self {
        Self { inner: backend::Mutex::new(value), rank }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.rank.check();
        let free = self.try_lock().or_else(|| until_free(|| self.try_lock()));
        free.unwrap_or_else(|| self.guard(self.inner.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// As [`lock`](Self::lock), for a lock that is held shortly, by threads that soon come again. Were it handed from
    /// one to the other each time, all that it guards would go from core to core each time, and so would a sleep and a
    /// wake by the kernel, each many times as long as the lock is held. So who finds it held naps, and who has it works
    /// a while with all of it at hand.
    pub fn lock_by_turns(&self) -> MutexGuard<'_, T> {
        self.rank.check();
        let attempt = || self.try_lock();
        let free = attempt().or_else(|| until_free(attempt));
        let is_checked = cfg!(any(shuttle, miri));
        let rested = free.or_else(|| {
            (0..if is_checked { 0 } else { NAPS_MAX }).find_map(|nap| {
                // Most who hold it have let go after a few turns of the processor's own.
                match nap {
                    0 => (0..16).for_each(|_| hint::spin_loop()),
                    _ => thread::sleep(NAP),
                }
                self.try_lock()
            })
        });
        rested.unwrap_or_else(|| self.lock())
    }

    /// The lock, if nobody holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        free(self.inner.try_lock()).map(|inner| self.guard(inner))
    }

    fn guard<'a>(&self, inner: backend::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { inner, held: self.rank.hold() }
    }

    /// The value, when nobody else can hold the lock.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value in place, when nobody else can hold the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a [`Mutex`] guards, for as long as this is held.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    inner: backend::MutexGuard<'a, T>,
    held: rank::Held,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// Many readers or one writer, without poisoning.
#[derive(Debug, Default)]
pub struct RwLock<T>(backend::RwLock<T>);

impl<T> RwLock<T> {
    /// An unlocked lock.
    pub fn new(value: T) -> Self {
        Self(backend::RwLock::new(value))
    }

    /// Waits until no writer holds the lock.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        let attempt = || free(self.0.try_read());
        let free = attempt().or_else(|| until_free(attempt));
        free.unwrap_or_else(|| self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until nobody holds the lock.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let attempt = || free(self.0.try_write());
        let free = attempt().or_else(|| until_free(attempt));
        free.unwrap_or_else(|| self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Waiting for another thread's change to what a [`Mutex`] guards. Wakes may be spurious.
#[derive(Debug, Default)]
pub struct Condvar(backend::Condvar);

impl Condvar {
    /// A condition nobody waits for.
    pub fn new() -> Self {
        Self(backend::Condvar::new())
    }

    /// Unlocks the mutex, waits for a notification, locks it again. In a simulation whoever could notify may have
    /// stopped between two lines: then others run meanwhile.
    pub fn wait_of<'a, T>(&self, mutex: &'a Mutex<T>, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let mut guard = Some(guard);
        let mut passed = false;
        let again = until_free(|| {
            guard = None;
            // Not before others have had a turn.
            std::mem::replace(&mut passed, true).then(|| mutex.try_lock()).flatten()
        });
        match (again, guard) {
            (Some(guard), _) => guard,
            (None, Some(guard)) => self.wait(guard),
            (None, None) => mutex.lock(),
        }
    }

    /// Unlocks, waits for a notification, locks again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let MutexGuard { inner, held } = guard;
        MutexGuard { inner: self.0.wait(inner).unwrap_or_else(PoisonError::into_inner), held }
    }

    /// As `wait`, for `timeout` at most; look at a clock to know which it was.
    pub fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        let MutexGuard { inner, held } = guard;
        let waited = self.0.wait_timeout(inner, timeout).unwrap_or_else(PoisonError::into_inner);
        MutexGuard { inner: waited.0, held }
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes every waiter.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
