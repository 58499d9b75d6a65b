//! Machines without threads: whoever waits steps them, one at a time, in an order drawn from a seed.
//!
//! **Invariant:** no lock is held during a step, so a step may wake, spawn and use files. The clock
//! moves only when no machine has anything to do.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::time::Duration;

use super::slot::{Rest, Slot, Turn};
use super::strand::{self, Pause, Strand};
use super::{Machine, Step};
use crate::clock::{Clock, ManualClock};
use crate::rng::Rng;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};

/// More steps than any honest wait takes, which are a few thousand: machines that wake each other for nothing. On strands
/// that many take seconds, so a test fails rather than hangs.
const WAIT_STEPS_MAX: u64 = 1 << 20;
/// A strand that is given up has this many turns to unwind.
const UNWIND_TURNS_MAX: usize = 1 << 10;
/// Of this many yield points one lets others run.
const POINTS_A_PAUSE: u64 = 3;
/// This many steps of others at most, where it is the driver who yields.
const YIELD_STEPS_MAX: u64 = 12;

const _: () = assert!(POINTS_A_PAUSE > 1 && YIELD_STEPS_MAX > 0, "a seed decides whether a point pauses");
const _: () =
    assert!(YIELD_STEPS_MAX < UNWIND_TURNS_MAX as u64 && (UNWIND_TURNS_MAX as u64) < WAIT_STEPS_MAX);

pub(super) struct Stepper {
    clock: Arc<ManualClock>,
    epoch: AtomicU64,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    next_id: u64,
    slots: Vec<Slot>,
    /// How machines' steps are interleaved, if they are.
    strands: Option<Strands>,
}

/// What a simulation has whose machines stop between two lines.
struct Strands {
    /// Apart from the order of the steps, which stays what it is.
    rng: Rng,
    idle: Vec<Strand>,
    /// Steps and turns that have come to something: then a lock may be free.
    turns: u64,
    /// How often somebody yielded, by point.
    pauses: BTreeMap<&'static str, u64>,
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
        let state = State { rng: Rng::new(seed), next_id: 0, slots: Vec::new(), strands: None };
        Self { clock, epoch: AtomicU64::new(0), state: Mutex::new(state) }
    }

    pub(super) fn spawn(&self, name: &str, machine: Box<dyn Machine>, may_wait: bool) -> u64 {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        debug_assert!(state.slots.iter().all(|slot| slot.id < id), "an id is never given again");
        let (machine, name) = (Some(machine), name.to_owned());
        let rest = Rest::None;
        state.slots.push(Slot { id, name, machine, paused: None, may_wait, began: 0, rest, turns: 0 });
        id
    }

    /// From now on machines' steps may stop between two lines.
    pub(super) fn interleave(self: &Arc<Self>, seed: u64) {
        strand::drives(self);
        let strands = Strands { rng: Rng::new(seed), idle: Vec::new(), turns: 0, pauses: BTreeMap::new() };
        self.state.lock().strands.get_or_insert(strands);
    }

    pub(super) fn pauses(&self) -> BTreeMap<&'static str, u64> {
        self.state.lock().strands.as_ref().map_or_else(BTreeMap::new, |strands| strands.pauses.clone())
    }

    /// Whether somebody who passes this point stops there.
    pub(super) fn draws_pause(&self, name: &'static str) -> bool {
        let Some(strands) = &mut self.state.lock().strands else { return false };
        let pauses = strands.rng.below(POINTS_A_PAUSE) == 0;
        *strands.pauses.entry(name).or_default() += u64::from(pauses);
        pauses
    }

    /// The driver is at a yield point.
    pub(super) fn let_others_run(self: &Arc<Self>, name: &'static str) {
        if !self.draws_pause(name) {
            return;
        }
        let steps =
            self.state.lock().strands.as_mut().map_or(0, |strands| strands.rng.below(YIELD_STEPS_MAX));
        self.turned();
        for _ in 0..steps {
            if !self.step_one() {
                return;
            }
        }
    }

    /// Whether a step has stopped in its midst.
    pub(super) fn has_paused(&self) -> bool {
        self.state.lock().slots.iter().any(|slot| slot.paused.is_some())
    }

    /// Something has come of somebody's turn.
    fn turned(&self) {
        self.state.lock().strands.iter_mut().for_each(|strands| strands.turns += 1);
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
        // One may hold what another wants as it unwinds.
        let mut paused: Vec<Strand> = Vec::new();
        for Slot { machine, paused: stopped, .. } in abandoned {
            paused.extend(stopped);
            // Outside the lock: what machines drop may look at the jobs again.
            drop(machine);
        }
        for _ in 0..UNWIND_TURNS_MAX {
            paused.retain(|strand| !matches!(strand.cancel(), Pause::Done(..) | Pause::Panicked(_)));
            if paused.is_empty() {
                return;
            }
        }
    }

    pub(super) fn wait(self: &Arc<Self>, ready: &mut dyn FnMut() -> bool) {
        self.drive(None, ready);
    }

    pub(super) fn wait_until(self: &Arc<Self>, deadline: Duration, ready: &mut dyn FnMut() -> bool) -> bool {
        self.drive(Some(deadline), ready)
    }

    pub(super) fn step_some(self: &Arc<Self>, steps: usize) {
        refuse_inside_a_step();
        self.turned();
        for _ in 0..steps {
            if !self.step_one() {
                return;
            }
        }
    }

    /// Steps machines until `ready` (true) or until the clock reaches `deadline` (false).
    fn drive(self: &Arc<Self>, deadline: Option<Duration>, ready: &mut dyn FnMut() -> bool) -> bool {
        if strand::is_strand() {
            return self.wait_on_strand(deadline, ready);
        }
        refuse_inside_a_step();
        self.turned();
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

    /// The same on a strand: somebody else drives.
    fn wait_on_strand(&self, deadline: Option<Duration>, ready: &mut dyn FnMut() -> bool) -> bool {
        assert!(strand::may_wait(), "{WAITED_INSIDE}");
        loop {
            let seen = self.epoch.load(Ordering::SeqCst);
            if ready() {
                return true;
            }
            if deadline.is_some_and(|deadline| deadline <= self.clock.now()) {
                return false;
            }
            strand::pause(Pause::Waiting { seen, deadline });
        }
    }

    /// Steps one machine that has something to do, if there is any.
    fn step_one(self: &Arc<Self>) -> bool {
        let seen = self.epoch.load(Ordering::SeqCst);
        let Some((id, turn, may_wait)) = self.take_random(seen) else { return false };
        let (machine, step) = match turn {
            Turn::Begins(mut machine) if !self.interleaves() => {
                let stepping = Stepping::begin();
                let step = machine.step();
                drop(stepping);
                (machine, step)
            }
            turn => match self.give_turn(id, turn, may_wait) {
                Some(ended) => ended,
                None => return true,
            },
        };
        self.turned();
        let mut state = self.state.lock();
        // The slot is gone if all was abandoned meanwhile; then the machine goes too.
        let Some(slot) = state.slots.iter_mut().find(|slot| slot.id == id) else { return true };
        let seen = slot.began;
        let rest = match step {
            Step::Worked => Some(Rest::None),
            Step::Idle => Some(Rest::While { seen, deadline: None }),
            Step::Until(deadline) => Some(Rest::While { seen, deadline: Some(deadline) }),
            Step::Finished => None,
        };
        debug_assert!(slot.machine.is_none() && slot.paused.is_none(), "a machine has one turn at a time");
        if let Some(rest) = rest {
            slot.rest = rest;
            slot.machine = Some(machine);
            return true;
        }
        state.slots.retain(|slot| slot.id != id);
        drop(state);
        // What it drops may look at the jobs again.
        drop(machine);
        true
    }

    fn interleaves(&self) -> bool {
        self.state.lock().strands.is_some()
    }

    /// Lets a step begin or go on. What came of it, once it has ended.
    fn give_turn(self: &Arc<Self>, id: u64, turn: Turn, may_wait: bool) -> Option<(Box<dyn Machine>, Step)> {
        let (strand, pause) = match turn {
            Turn::GoesOn(strand) => {
                let pause = strand.go_on();
                (strand, pause)
            }
            Turn::Begins(machine) => {
                let idle = self.state.lock().strands.as_mut().and_then(|strands| strands.idle.pop());
                let strand = idle.or_else(|| Strand::new(self));
                let strand = strand.unwrap_or_else(|| panic!("cannot start a thread for a strand"));
                let pause = strand.step(machine, may_wait);
                (strand, pause)
            }
        };
        let mut state = self.state.lock();
        let State { slots, strands, .. } = &mut *state;
        let turns = strands.as_mut().map_or(0, |strands| {
            strands.turns += u64::from(!matches!(pause, Pause::Blocked(false)));
            strands.turns
        });
        let rest = match pause {
            Pause::Done(machine, step) => {
                if let Some(strands) = strands {
                    strands.idle.push(strand);
                }
                return Some((machine, step));
            }
            Pause::Panicked(panic) => {
                slots.retain(|slot| slot.id != id);
                drop(state);
                // Whoever panics already is told of no other panic.
                if !std::thread::panicking() {
                    resume_unwind(panic);
                }
                return None;
            }
            Pause::Ready => Rest::None,
            Pause::Blocked(_) => Rest::Blocked { turns },
            Pause::Waiting { seen, deadline } => Rest::While { seen, deadline },
        };
        if let Some(slot) = slots.iter_mut().find(|slot| slot.id == id) {
            debug_assert!(
                slot.machine.is_none() && slot.paused.is_none(),
                "a machine has one turn at a time"
            );
            (slot.rest, slot.paused) = (rest, Some(strand));
        }
        None
    }

    fn take_random(&self, epoch: u64) -> Option<(u64, Turn, bool)> {
        let now = self.clock.now();
        let state = &mut *self.state.lock();
        let turns = state.strands.as_ref().map_or(0, |strands| strands.turns);
        let count = state.slots.iter().filter(|slot| slot.runnable(epoch, now, turns)).count();
        let chosen = state.rng.index(count);
        debug_assert!(chosen < count || count == 0);
        let slot = state.slots.iter_mut().filter(|slot| slot.runnable(epoch, now, turns)).nth(chosen)?;
        let paused = slot.paused.take().map(Turn::GoesOn);
        slot.turns += 1;
        slot.began = if paused.is_some() { slot.began } else { epoch };
        Some((slot.id, paused.or_else(|| slot.machine.take().map(Turn::Begins))?, slot.may_wait))
    }

    /// All machines rest: lets time pass until the first of them, or the waiter, wants to go on.
    fn advance_to_next(&self, deadline: Option<Duration>) {
        let first = self.state.lock().slots.iter().filter_map(Slot::deadline).chain(deadline).min();
        match first {
            Some(first) => self.clock.advance_to(first),
            None => panic!("simulation stuck: nothing will ever wake the idle machines: {}", self.names()),
        }
    }

    /// The machines, and how many turns each has had: those that spin had the most.
    fn names(&self) -> String {
        let state = self.state.lock();
        let told = state.slots.iter().map(|slot| format!("{} ({} turns)", slot.name, slot.turns));
        told.collect::<Vec<_>>().join(", ")
    }
}

const WAITED_INSIDE: &str = "a machine waited inside its own step; return Step::Idle instead";

fn refuse_inside_a_step() {
    assert!(!STEPPING.get(), "{WAITED_INSIDE}");
}
