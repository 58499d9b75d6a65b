//! Background work: explicit machines with a `step`, driven by threads or by a seeded stepper.
//!
//! A machine never blocks on another and never waits inside a step; it returns what it needs to go on.
//! So the same machines run on threads in production and one at a time, in an order drawn from a seed,
//! in simulation.
//!
//! **Invariant:** a wake that follows a change is never lost: whoever looked before the change looks
//! again after it.

mod bell;
mod executor;
mod queue;
mod slot;
mod stepper;
mod strand;
mod threads;

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::clock::{Clock, ManualClock};
use crate::sync::{Arc, thread::JoinHandle};
use bell::Bell;
use executor::Member;
use executor::is_shared_thread;
pub use executor::{Executor, ExecutorState};
use stepper::Stepper;
pub(crate) use strand::until_free;
pub use strand::yield_point;
pub use threads::text_of;

/// What a machine's step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Did some work; call again.
    Worked,
    /// Nothing to do until woken.
    Idle,
    /// Nothing to do until woken or until the clock reaches this.
    Until(Duration),
    /// Never call again.
    Finished,
}

/// One line of background work.
pub trait Machine: Send {
    /// Does a bounded piece of work. Must not wait on [`Jobs`].
    fn step(&mut self) -> Step;
    /// Whether others have a core before it, where both want one. Not where writers soon wait for what it does.
    fn yields(&self) -> bool {
        true
    }
}

/// How an owner's machines stand among those of others on an [`Executor`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Haste {
    /// Somebody may wait for what they do.
    #[default]
    Hasty,
    /// Nobody does: others come first, but for now and then.
    Leisure,
}

/// Does something once.
struct Once<F>(Option<F>);

impl<F: FnOnce() + Send> Machine for Once<F> {
    fn step(&mut self) -> Step {
        self.0.take().into_iter().for_each(|run| run());
        Step::Finished
    }

    /// Somebody waits for what it does.
    fn yields(&self) -> bool {
        false
    }
}

/// Who drives the machines.
#[derive(Clone)]
pub struct Jobs {
    driver: Driver,
}

#[derive(Clone)]
enum Driver {
    /// Each machine has a thread.
    Threads(Arc<Bell>),
    Executor(Arc<Member>),
    Stepper(Arc<Stepper>),
}

/// A spawned machine. Dropping it lets the machine run on.
pub struct Handle {
    running: Running,
}

enum Running {
    Thread(JoinHandle<()>),
    Shared(Arc<Member>, u64),
    Stepped(Arc<Stepper>, u64),
    /// Its thread could not be started; `panicked` tells.
    Never,
}

impl Handle {
    /// Why the machine does not run, if it could not be started.
    pub fn refused(&self) -> Option<&'static str> {
        matches!(self.running, Running::Never).then_some("a background thread could not be started")
    }

    /// Waits until the machine has finished, panicked or been abandoned.
    pub fn join(self) {
        match self.running {
            // Machines' panics are caught and kept for `panicked`: nothing to learn here.
            Running::Thread(thread) => drop(thread.join()),
            Running::Shared(member, id) => member.join(id),
            Running::Stepped(stepper, id) => stepper.wait(&mut || !stepper.holds(id)),
            Running::Never => {}
        }
    }
}

impl Jobs {
    /// One named thread per machine.
    pub fn threads(clock: Arc<dyn Clock>) -> Self {
        Self { driver: Driver::Threads(Arc::new(Bell::new(clock))) }
    }

    /// No thread: machines are stepped inside the waiting calls, in an order drawn from `seed`.
    pub fn stepper(clock: Arc<ManualClock>, seed: u64) -> Self {
        Self { driver: Driver::Stepper(Arc::new(Stepper::new(clock, seed))) }
    }

    /// Starts a machine.
    pub fn spawn(&self, name: &str, machine: Box<dyn Machine>) -> Handle {
        let running = match &self.driver {
            Driver::Threads(bell) => {
                threads::spawn(bell, name, machine).map_or(Running::Never, Running::Thread)
            }
            Driver::Executor(member) => member
                .spawn(name, machine)
                .map_or(Running::Never, |id| Running::Shared(Arc::clone(member), id)),
            Driver::Stepper(stepper) => {
                Running::Stepped(Arc::clone(stepper), stepper.spawn(name, machine, false))
            }
        };
        Handle { running }
    }

    /// Runs something beside the caller: on a thread, or, under a stepper, which [interleaves](Self::interleave) from
    /// then on, in turns with everybody else. It may wait.
    pub fn fork(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Handle {
        let machine = Box::new(Once(Some(run)));
        match &self.driver {
            Driver::Threads(_) => self.spawn(name, machine),
            Driver::Executor(member) => {
                Handle { running: member.fork(name, machine).map_or(Running::Never, Running::Thread) }
            }
            Driver::Stepper(stepper) => {
                // Unless it does so already.
                stepper.interleave(0);
                Handle { running: Running::Stepped(Arc::clone(stepper), stepper.spawn(name, machine, true)) }
            }
        }
    }

    /// Stepper: from now on steps stop between two lines, at [yield points](yield_point), and others run there, as the
    /// seed says; so do calls of whoever drives. Threads: nothing.
    pub fn interleave(&self, seed: u64) {
        if let Driver::Stepper(stepper) = &self.driver {
            stepper.interleave(seed);
        }
    }

    /// Stepper: how often somebody stopped at each yield point.
    pub fn pauses(&self) -> BTreeMap<&'static str, u64> {
        match &self.driver {
            Driver::Threads(_) | Driver::Executor(_) => BTreeMap::new(),
            Driver::Stepper(stepper) => stepper.pauses(),
        }
    }

    /// Something changed: idle machines and waiters look again.
    pub fn wake(&self) {
        match &self.driver {
            Driver::Threads(bell) => bell.wake(),
            Driver::Executor(member) => member.wake(),
            Driver::Stepper(stepper) => stepper.wake(),
        }
    }

    /// Blocks until `ready` is true; it is asked again after every wake. The stepper panics when
    /// nothing could ever make it true.
    pub fn wait(&self, ready: &mut dyn FnMut() -> bool) {
        match &self.driver {
            Driver::Threads(bell) => bell.wait(ready),
            Driver::Executor(member) => member.bell().wait(ready),
            Driver::Stepper(stepper) => stepper.wait(ready),
        }
    }

    /// As `wait`, but gives up when the clock reaches `deadline`. Tells whether `ready` came true.
    pub fn wait_until(&self, deadline: Duration, ready: &mut dyn FnMut() -> bool) -> bool {
        match &self.driver {
            Driver::Threads(bell) => bell.wait_until(deadline, ready),
            Driver::Executor(member) => member.bell().wait_until(deadline, ready),
            Driver::Stepper(stepper) => stepper.wait_until(deadline, ready),
        }
    }

    /// Stepper: up to `steps` random steps of machines that have work. Threads: nothing.
    pub fn step_some(&self, steps: usize) {
        if let Driver::Stepper(stepper) = &self.driver {
            stepper.step_some(steps);
        }
    }

    /// Stepper: lets `by` pass on its clock. Threads: nothing, time passes by itself.
    pub fn advance(&self, by: Duration) {
        if let Driver::Stepper(stepper) = &self.driver {
            stepper.advance(by);
        }
    }

    /// How many machines make progress at a time: the cores that this process may use, or an executor's threads. Of a
    /// stepper, as many as a small machine has.
    pub fn parallelism(&self) -> usize {
        match &self.driver {
            Driver::Threads(_) => std::thread::available_parallelism().map_or(1, usize::from),
            Driver::Executor(member) => member.threads(),
            Driver::Stepper(_) => 2,
        }
    }

    /// Executor: how its machines stand among those of others from now on. Else nothing.
    pub fn set_haste(&self, haste: Haste) {
        if let Driver::Executor(member) = &self.driver {
            member.set_haste(haste);
        }
    }

    /// Whether the calling thread steps machines of many owners: who waits here may wait for what it would step next.
    pub fn must_not_wait() -> bool {
        is_shared_thread()
    }

    /// Whether machines are stepped by whoever waits.
    pub fn is_stepper(&self) -> bool {
        matches!(self.driver, Driver::Stepper(_))
    }

    /// Stepper: drops all machines as they are; the power went. Threads: nothing.
    pub fn abandon(&self) {
        if let Driver::Stepper(stepper) = &self.driver {
            stepper.abandon();
        }
    }

    /// The first panic of a machine on a thread. The stepper lets panics through to the waiting test.
    pub fn panicked(&self) -> Option<String> {
        match &self.driver {
            Driver::Threads(bell) => bell.panicked(),
            Driver::Executor(member) => member.bell().panicked(),
            Driver::Stepper(_) => None,
        }
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.driver {
            Driver::Threads(_) => "Jobs(threads)",
            Driver::Executor(_) => "Jobs(executor)",
            Driver::Stepper(_) => "Jobs(stepper)",
        })
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}
