//! Machines without threads: whoever waits steps them, one at a time, in an order drawn from a seed.
//!
//! **Invariant:** no lock is held during a step, so a step may wake, spawn and use files. The clock
//! moves only when no machine has anything to do.

use std::cell::Cell;
use std::time::Duration;

use super::{Machine, Step};
use crate::clock::{Clock, ManualClock};
use crate::rng::Rng;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};

/// More steps than any honest wait takes: machines that wake each other for nothing.
const WAIT_STEPS_MAX: u64 = 1 << 26;

pub(super) struct Stepper {
    clock: Arc<ManualClock>,
    epoch: AtomicU64,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    next_id: u64,
    slots: Vec<Slot>,
}

struct Slot {
    id: u64,
    name: String,
    /// Out while it is being stepped.
    machine: Option<Box<dyn Machine>>,
    rest: Rest,
}

/// Why a machine is not to be stepped now.
#[derive(Clone, Copy)]
enum Rest {
    None,
    /// Until the epoch is no longer this, or the clock reaches the deadline.
    While {
        seen: u64,
        deadline: Option<Duration>,
    },
}

impl Slot {
    fn runnable(&self, epoch: u64, now: Duration) -> bool {
        let rested = match self.rest {
            Rest::None => true,
            Rest::While { seen, deadline } => {
                seen != epoch || deadline.is_some_and(|deadline| deadline <= now)
            }
        };
        rested && self.machine.is_some()
    }

    fn deadline(&self) -> Option<Duration> {
        match self.rest {
            Rest::None => None,
            Rest::While { deadline, .. } => deadline,
        }
    }
}

thread_local! {
    /// The machine this thread is stepping, so that waiting inside a step is told from deadlock.
    static STEPPING: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as stepping, also while a panic unwinds.
struct Stepping;

impl Stepping {
    fn begin() -> Self {
        STEPPING.set(true);
        Self
    }
}

impl Drop for Stepping {
    fn drop(&mut self) {
        STEPPING.set(false);
    }
}

impl Stepper {
    pub(super) fn new(clock: Arc<ManualClock>, seed: u64) -> Self {
        let state = State { rng: Rng::new(seed), next_id: 0, slots: Vec::new() };
        Self { clock, epoch: AtomicU64::new(0), state: Mutex::new(state) }
    }

    pub(super) fn spawn(&self, name: &str, machine: Box<dyn Machine>) -> u64 {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.slots.push(Slot { id, name: name.to_owned(), machine: Some(machine), rest: Rest::None });
        id
    }

    pub(super) fn holds(&self, id: u64) -> bool {
        self.state.lock().slots.iter().any(|slot| slot.id == id)
    }

    pub(super) fn wake(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub(super) fn abandon(&self) {
        let abandoned = std::mem::take(&mut self.state.lock().slots);
        // Outside the lock: what machines drop may look at the jobs again.
        drop(abandoned);
    }

    pub(super) fn wait(&self, ready: &mut dyn FnMut() -> bool) {
        self.drive(None, ready);
    }

    pub(super) fn wait_until(&self, deadline: Duration, ready: &mut dyn FnMut() -> bool) -> bool {
        self.drive(Some(deadline), ready)
    }

    pub(super) fn step_some(&self, steps: usize) {
        refuse_inside_a_step();
        for _ in 0..steps {
            if !self.step_one() {
                return;
            }
        }
    }

    /// Steps machines until `ready` (true) or until the clock reaches `deadline` (false).
    fn drive(&self, deadline: Option<Duration>, ready: &mut dyn FnMut() -> bool) -> bool {
        refuse_inside_a_step();
        for _ in 0..WAIT_STEPS_MAX {
            if ready() {
                return true;
            }
            if deadline.is_some_and(|deadline| deadline <= self.clock.now()) {
                return false;
            }
            if !self.step_one() {
                self.advance_to_next(deadline);
            }
        }
        panic!(
            "simulation stuck: machines keep working, but what is waited for does not come: {}",
            self.names()
        );
    }

    /// Steps one machine that has something to do, if there is any.
    fn step_one(&self) -> bool {
        let seen = self.epoch.load(Ordering::SeqCst);
        let Some((id, mut machine)) = self.take_random(seen) else { return false };
        let stepping = Stepping::begin();
        let step = machine.step();
        drop(stepping);
        let rest = match step {
            Step::Worked => Rest::None,
            Step::Idle => Rest::While { seen, deadline: None },
            Step::Until(deadline) => Rest::While { seen, deadline: Some(deadline) },
            Step::Finished => {
                self.state.lock().slots.retain(|slot| slot.id != id);
                return true;
            }
        };
        // The slot is gone if all was abandoned meanwhile; then the machine goes too.
        if let Some(slot) = self.state.lock().slots.iter_mut().find(|slot| slot.id == id) {
            slot.rest = rest;
            slot.machine = Some(machine);
        }
        true
    }

    fn take_random(&self, epoch: u64) -> Option<(u64, Box<dyn Machine>)> {
        let now = self.clock.now();
        let state = &mut *self.state.lock();
        let count = state.slots.iter().filter(|slot| slot.runnable(epoch, now)).count();
        let chosen = state.rng.index(count);
        let slot = state.slots.iter_mut().filter(|slot| slot.runnable(epoch, now)).nth(chosen)?;
        Some((slot.id, slot.machine.take()?))
    }

    /// All machines rest: lets time pass until the first of them, or the waiter, wants to go on.
    fn advance_to_next(&self, deadline: Option<Duration>) {
        let first = self.state.lock().slots.iter().filter_map(Slot::deadline).chain(deadline).min();
        match first {
            Some(first) => self.clock.advance_to(first),
            None => panic!("simulation stuck: nothing will ever wake the idle machines: {}", self.names()),
        }
    }

    fn names(&self) -> String {
        let state = self.state.lock();
        state.slots.iter().map(|slot| slot.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

fn refuse_inside_a_step() {
    assert!(!STEPPING.get(), "a machine waited inside its own step; return Step::Idle instead");
}
