//! The bell that wakes whoever sleeps: machines on threads of their own, and whoever waits for what machines do.
//!
//! **Invariant:** no wake is lost. A sleeper counts itself before it looks at the epoch; a waker moves
//! the epoch before it looks at the count. Both orders are sequentially consistent, so either the waker
//! sees the sleeper or the sleeper sees the new epoch; and the waker passes through the gate before it
//! rings, so a sleeper it saw has either not looked yet or is waiting already.

use std::time::Duration;

use crate::clock::Clock;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex};

pub(super) struct Bell {
    pub(super) clock: Arc<dyn Clock>,
    epoch: AtomicU64,
    sleepers: AtomicUsize,
    gate: Mutex<()>,
    rings: Condvar,
    panicked: Mutex<Option<String>>,
}

impl Bell {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            epoch: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            gate: Mutex::new(()),
            rings: Condvar::new(),
            panicked: Mutex::new(None),
        }
    }

    /// How often it was rung. To be read before one looks, so that a wake meanwhile is not slept through.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Sleeps until the epoch is no longer `seen`, or until `deadline`.
    pub(super) fn sleep(&self, seen: u64, deadline: Option<Duration>) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.gate.lock();
        while self.epoch() == seen {
            guard = match deadline.map(|deadline| deadline.saturating_sub(self.clock.now())) {
                None => self.rings.wait(guard),
                Some(Duration::ZERO) => break,
                Some(left) => self.rings.wait_timeout(guard, left),
            };
        }
        drop(guard);
        let sleepers = self.sleepers.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(sleepers > 0, "who wakes has counted itself");
    }

    pub(super) fn wake(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.gate.lock());
            self.rings.notify_all();
        }
    }

    pub(super) fn wait(&self, ready: &mut dyn FnMut() -> bool) {
        loop {
            let seen = self.epoch();
            if ready() {
                return;
            }
            self.sleep(seen, None);
        }
    }

    pub(super) fn wait_until(&self, deadline: Duration, ready: &mut dyn FnMut() -> bool) -> bool {
        loop {
            let seen = self.epoch();
            if ready() {
                return true;
            }
            if self.clock.now() >= deadline {
                return false;
            }
            self.sleep(seen, Some(deadline));
        }
    }

    /// Keeps what a machine has panicked with, if it is the first.
    pub(super) fn remember(&self, panic: String) {
        self.panicked.lock().get_or_insert(panic);
        self.wake();
    }

    pub(super) fn panicked(&self) -> Option<String> {
        self.panicked.lock().clone()
    }
}
