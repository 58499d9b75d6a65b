//! Machines on threads of their own, and the bell that wakes them.
//!
//! **Invariant:** no wake is lost. A sleeper counts itself before it looks at the epoch; a waker moves
//! the epoch before it looks at the count. Both orders are sequentially consistent, so either the waker
//! sees the sleeper or the sleeper sees the new epoch; and the waker passes through the gate before it
//! rings, so a sleeper it saw has either not looked yet or is waiting already.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::{Machine, Step};
use crate::clock::Clock;
use crate::process::yield_to_others;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::thread::{Builder, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex};

pub(super) struct Threads {
    clock: Arc<dyn Clock>,
    epoch: AtomicU64,
    sleepers: AtomicUsize,
    gate: Mutex<()>,
    bell: Condvar,
    panicked: Mutex<Option<String>>,
}

impl Threads {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            epoch: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            gate: Mutex::new(()),
            bell: Condvar::new(),
            panicked: Mutex::new(None),
        }
    }

    pub(super) fn spawn(self: &Arc<Self>, name: &str, machine: Box<dyn Machine>) -> Option<JoinHandle<()>> {
        let threads = Arc::clone(self);
        let thread_name = name.to_owned();
        let spawned =
            Builder::new().name(name.to_owned()).spawn(move || threads.drive(&thread_name, machine));
        match spawned {
            Ok(handle) => Some(handle),
            Err(e) => {
                self.remember(format!("cannot start thread {name}: {e}"));
                None
            }
        }
    }

    /// The life of one thread.
    fn drive(&self, name: &str, mut machine: Box<dyn Machine>) {
        if machine.yields() {
            yield_to_others();
        }
        loop {
            // Read before the step, so that a wake during it is not slept through.
            let seen = self.epoch.load(Ordering::SeqCst);
            // After a panic the machine is only dropped, so a half-changed one is never seen.
            match catch_unwind(AssertUnwindSafe(|| machine.step())) {
                Ok(Step::Worked) => {}
                Ok(Step::Idle) => self.sleep(seen, None),
                Ok(Step::Until(deadline)) => self.sleep(seen, Some(deadline)),
                Ok(Step::Finished) => return self.wake(),
                Err(panic) => return self.remember(format!("{name} panicked: {}", text_of(&*panic))),
            }
        }
    }

    /// Sleeps until the epoch is no longer `seen`, or until `deadline`.
    fn sleep(&self, seen: u64, deadline: Option<Duration>) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.gate.lock();
        while self.epoch.load(Ordering::SeqCst) == seen {
            guard = match deadline.map(|deadline| deadline.saturating_sub(self.clock.now())) {
                None => self.bell.wait(guard),
                Some(Duration::ZERO) => break,
                Some(left) => self.bell.wait_timeout(guard, left),
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
            self.bell.notify_all();
        }
    }

    pub(super) fn wait(&self, ready: &mut dyn FnMut() -> bool) {
        loop {
            let seen = self.epoch.load(Ordering::SeqCst);
            if ready() {
                return;
            }
            self.sleep(seen, None);
        }
    }

    pub(super) fn wait_until(&self, deadline: Duration, ready: &mut dyn FnMut() -> bool) -> bool {
        loop {
            let seen = self.epoch.load(Ordering::SeqCst);
            if ready() {
                return true;
            }
            if self.clock.now() >= deadline {
                return false;
            }
            self.sleep(seen, Some(deadline));
        }
    }

    fn remember(&self, panic: String) {
        self.panicked.lock().get_or_insert(panic);
        self.wake();
    }

    pub(super) fn panicked(&self) -> Option<String> {
        self.panicked.lock().clone()
    }
}

/// What a panic said.
pub fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
