//! [`Executor`]: a few threads that step the machines of any number of owners, in turns.
//!
//! Some threads have normal priority, for machines that writers soon wait for; the others yield to those. Where nothing
//! is ready, one of them all sleeps until the next machine is due, and the others until somebody wakes them.
//!
//! **Invariant:** where a machine is ready that its threads may step, one of those is awake, or about to be.

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::bell::Bell;
use super::queue::{CLASSES, Class, Queue, Rest, Turn, Turns};
use super::threads::text_of;
use super::{Driver, Haste, Jobs, Machine, Step, threads};
use crate::clock::Clock;
use crate::process::yield_to_others;
use crate::sync::thread::{Builder, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};

/// So many threads have normal priority at most, beside those that yield.
const PROMPT_THREADS_MAX: usize = 2;

/// What a thread does.
type Life = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Whether this is an executor's thread: what it waited for might want it.
    static IS_SHARED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread steps the machines of many owners, and must wait for none.
pub(super) fn is_shared_thread() -> bool {
    IS_SHARED.get()
}

/// Threads that many databases share. They begin with the first machine, and end once all of this is dropped.
#[derive(Clone)]
pub struct Executor(Arc<Crew>);

/// Ends the threads.
struct Crew(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    threads: usize,
    state: Mutex<State>,
    /// By class: rung where a machine is ready.
    bells: [Condvar; 2],
    /// Rung for who sleeps until the next machine is due.
    timer_bell: Condvar,
}

#[derive(Default)]
struct State {
    queue: Queue,
    /// What each thread is at.
    at_work: Vec<Option<u64>>,
    /// By class: how many threads there are.
    threads: [usize; 2],
    /// By class: how many wait for their bell.
    idle: [usize; 2],
    /// Of which class the thread is that sleeps until the next machine is due.
    timekeeper: Option<Class>,
    is_over: bool,
}

/// One owner's view of it.
pub(super) struct Member {
    executor: Executor,
    owner: u64,
    turns: Arc<Turns>,
}

/// What an executor is at.
#[derive(Clone, Debug, Default)]
pub struct ExecutorState {
    /// Of each thread whose machine it steps, and the machine's name; `None` where it waits.
    pub threads: Vec<Option<(String, String)>>,
    /// Machines that wait for a thread.
    pub ready: usize,
    /// Machines that wait for something to do.
    pub resting: usize,
}

impl Executor {
    /// With this many threads that yield to others, and one or two that do not.
    pub fn new(threads: usize, clock: Arc<dyn Clock>) -> Self {
        let shared = Shared {
            clock,
            threads: threads.max(1),
            state: Mutex::default(),
            bells: Default::default(),
            timer_bell: Condvar::new(),
        };
        Self(Arc::new(Crew(Arc::new(shared))))
    }

    /// Background work of another owner, whose times are those of this clock.
    pub fn jobs(&self, label: &str, clock: Arc<dyn Clock>) -> Jobs {
        let owner = self.shared().state.lock().queue.add_owner(label);
        let turns = Arc::new(Turns::new(Arc::new(Bell::new(clock))));
        Jobs { driver: Driver::Executor(Arc::new(Member { executor: self.clone(), owner, turns })) }
    }

    /// What its threads are at.
    pub fn look(&self) -> ExecutorState {
        let state = self.shared().state.lock();
        let (ready, resting) = state.queue.counts();
        let threads = state.at_work.iter().map(|id| state.queue.name((*id)?)).collect();
        ExecutorState { threads, ready, resting }
    }

    /// How many threads it has, once there is something to do.
    pub fn threads(&self) -> usize {
        self.shared().threads + self.shared().prompt_threads()
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.bells.iter().chain([&self.0.timer_bell]).for_each(Condvar::notify_all);
    }
}

impl Member {
    pub(super) fn bell(&self) -> &Bell {
        &self.turns.bell
    }

    pub(super) fn threads(&self) -> usize {
        self.executor.shared().threads
    }

    /// Takes in a machine. `None` where no thread can be started; `panicked` tells.
    pub(super) fn spawn(&self, name: &str, machine: Box<dyn Machine>) -> Option<u64> {
        let shared = self.executor.shared();
        if let Err(reason) = shared.start() {
            self.bell().remember(reason);
            return None;
        }
        let mut state = shared.state.lock();
        let id = state.queue.add(self.owner, name, &self.turns, machine);
        shared.rouse(&state);
        Some(id)
    }

    /// Runs what may wait, on a thread of its own.
    pub(super) fn fork(&self, name: &str, machine: Box<dyn Machine>) -> Option<JoinHandle<()>> {
        threads::spawn(&self.turns.bell, name, machine)
    }

    pub(super) fn wake(&self) {
        self.turns.bell.wake();
        if self.turns.any_rests() {
            let shared = self.executor.shared();
            let mut state = shared.state.lock();
            state.queue.wake(self.owner);
            shared.rouse(&state);
        }
    }

    pub(super) fn set_haste(&self, haste: Haste) {
        self.executor.shared().state.lock().queue.set_haste(self.owner, haste);
    }

    /// Waits until a machine is gone.
    pub(super) fn join(&self, id: u64) {
        self.bell().wait(&mut || !self.executor.shared().state.lock().queue.holds(id));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.executor.shared().state.lock().queue.remove_owner(self.owner);
    }
}

impl Shared {
    fn prompt_threads(&self) -> usize {
        self.threads.min(PROMPT_THREADS_MAX)
    }

    /// Starts the threads that do not run. Fewer than wanted do, if there is one of each class; where the system has none
    /// now, the next machine tries again.
    fn start(self: &Arc<Self>) -> Result<(), String> {
        self.start_by(&mut |name, life| Builder::new().name(name.into()).spawn(life).map(drop))
    }

    fn start_by(self: &Arc<Self>, spawn: &mut dyn FnMut(&str, Life) -> io::Result<()>) -> Result<(), String> {
        let mut state = self.state.lock();
        for class in CLASSES {
            let (wanted, name) = match class {
                Class::Prompt => (self.prompt_threads(), "forebay-prompt"),
                Class::Yielding => (self.threads, "forebay-pool"),
            };
            while state.threads[class as usize] < wanted {
                let (shared, thread) = (Arc::clone(self), state.at_work.len());
                match spawn(name, Box::new(move || shared.live(class, thread))) {
                    Ok(()) => {
                        state.at_work.push(None);
                        state.threads[class as usize] += 1;
                    }
                    Err(_) if state.threads[class as usize] > 0 => break,
                    Err(error) => return Err(format!("cannot start thread {name}: {error}")),
                }
            }
        }
        Ok(())
    }

    /// Sees to it that somebody steps what is ready, and that somebody sleeps until the next machine is due.
    fn rouse(&self, state: &State) {
        for class in CLASSES.into_iter().filter(|class| state.queue.has_ready(*class)) {
            if state.idle[class as usize] > 0 {
                self.bells[class as usize].notify_one();
            } else if state.timekeeper == Some(class) {
                self.timer_bell.notify_one();
            }
        }
    }

    /// The life of one thread.
    fn live(&self, class: Class, thread: usize) {
        if class == Class::Yielding {
            yield_to_others();
        }
        IS_SHARED.set(true);
        let mut state = self.state.lock();
        while !state.is_over {
            state.queue.fire(self.clock.now());
            match state.queue.take(class) {
                Some(turn) => {
                    state.at_work[thread] = Some(turn.id);
                    self.rouse(&state);
                    self.hand_time_on(&state);
                    drop(state);
                    state = self.step(turn);
                    state.at_work[thread] = None;
                }
                None => state = self.rest(class, state),
            }
        }
    }

    /// Whoever kept the time has something else to do.
    fn hand_time_on(&self, state: &State) {
        if state.timekeeper.is_none() && state.queue.next_deadline().is_some() {
            let idle = CLASSES.into_iter().find(|class| state.idle[*class as usize] > 0);
            idle.into_iter().for_each(|class| self.bells[class as usize].notify_one());
        }
    }

    /// Waits for a machine to be ready.
    fn rest<'a>(&'a self, class: Class, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        // What has become due may be another class's.
        self.rouse(&state);
        let deadline = state.queue.next_deadline().filter(|_| state.timekeeper.is_none());
        let Some(deadline) = deadline else {
            state.idle[class as usize] += 1;
            state = self.bells[class as usize].wait(state);
            state.idle[class as usize] -= 1;
            return state;
        };
        state.timekeeper = Some(class);
        let left = deadline.saturating_sub(self.clock.now());
        state = self.timer_bell.wait_timeout(state, left);
        state.timekeeper = None;
        state
    }

    /// Gives a machine its turn.
    fn step(&self, mut turn: Turn) -> MutexGuard<'_, State> {
        let turns = Arc::clone(&turn.turns);
        // Read before the step, so that a wake during it is not slept through.
        let seen = turns.bell.epoch();
        // After a panic the machine is only dropped, so a half-changed one is never seen.
        let stepped = catch_unwind(AssertUnwindSafe(|| turn.machine.step()));
        let rest = match &stepped {
            Ok(Step::Worked) => Some(Rest::None),
            Ok(Step::Idle) => Some(Rest::UntilWoken),
            Ok(Step::Until(deadline)) => Some(Rest::Until(self.at(&turns.bell, *deadline))),
            Ok(Step::Finished) | Err(_) => None,
        };
        if let Some(rest) = rest {
            let mut state = self.state.lock();
            let before = state.queue.next_deadline();
            state.queue.put_back(turn, rest, seen);
            let next = state.queue.next_deadline();
            if state.timekeeper.is_some()
                && next.is_some_and(|next| before.is_none_or(|before| next < before))
            {
                // It sleeps for too long.
                self.timer_bell.notify_one();
            }
            return state;
        }
        let Turn { id, machine, .. } = turn;
        // Who waits for its end finds nothing of it. What goes with it may be a user's, and panic.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(machine)));
        let mut state = self.state.lock();
        let panic = stepped.err().or(dropped.err()).map(|panic| {
            let name = state.queue.name(id).map(|(_, name)| name).unwrap_or_default();
            format!("{name} panicked: {}", text_of(&*panic))
        });
        let owner = state.queue.remove(id);
        owner.into_iter().for_each(|owner| state.queue.wake(owner));
        drop(state);
        match panic {
            Some(panic) => turns.bell.remember(panic),
            None => turns.bell.wake(),
        }
        // It may be what holds the last of this.
        drop(turns);
        self.state.lock()
    }

    /// A time of an owner's clock, on this one.
    fn at(&self, bell: &Bell, deadline: Duration) -> Duration {
        self.clock.now().saturating_add(deadline.saturating_sub(bell.clock.now()))
    }
}
