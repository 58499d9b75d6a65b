//! Strands: code of a simulation that stops between two lines and goes on later. Each is a thread, of which one at a
//! time runs: whoever drives lets it run, until it pauses or is done.
//!
//! It pauses where it would wait; where a lock is held by another strand, or by the driver; and at a [`yield_point`],
//! if the seed says so. So an interleaving is drawn from the seed like everything else.
//!
//! **Invariant:** of the driver and its strands one runs at a time.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Weak;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::stepper::Stepper;
use super::{Machine, Step};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::Builder;

/// Whether any simulation of this process has strands: everybody else pays for one look at this.
static INTERLEAVES: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The strand that this thread is.
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
    /// Whose strands this thread has driven.
    static DRIVEN: RefCell<Vec<Weak<Stepper>>> = const { RefCell::new(Vec::new()) };
}

/// What a strand knows of itself.
struct Here {
    stepper: Weak<Stepper>,
    paused: Sender<Pause>,
    go: Receiver<Go>,
    /// It is to end where it stands.
    cancelled: bool,
    may_wait: bool,
}

/// What a strand is told.
enum Go {
    /// To do a step. The flag tells whether the machine may wait in it.
    Step(Box<dyn Machine>, bool),
    On,
    Cancel,
}

/// Why a strand gives the turn back.
pub(super) enum Pause {
    /// It can go on at any time.
    Ready,
    /// It wants a lock that somebody holds. The flag tells whether it has done something since its turn began, for
    /// which others may have waited.
    Blocked(bool),
    /// For a change after this epoch, or for the clock.
    Waiting {
        seen: u64,
        deadline: Option<Duration>,
    },
    Done(Box<dyn Machine>, Step),
    Panicked(Box<dyn Any + Send>),
}

/// Unwinds a strand whose simulation is given up.
struct Cancelled;

/// A strand, as its driver has it.
pub(super) struct Strand {
    go: Sender<Go>,
    paused: Receiver<Pause>,
}

impl Strand {
    pub(super) fn new(stepper: &Arc<Stepper>) -> Option<Self> {
        let (go, told) = channel();
        let (pause, paused) = channel();
        let here = Here {
            stepper: Arc::downgrade(stepper),
            paused: pause,
            go: told,
            cancelled: false,
            may_wait: false,
        };
        Builder::new().name("strand".into()).spawn(move || live(here)).ok()?;
        Some(Self { go, paused })
    }

    /// Does a machine's step, up to its end or to the first pause.
    pub(super) fn step(&self, machine: Box<dyn Machine>, may_wait: bool) -> Pause {
        self.tell(Go::Step(machine, may_wait))
    }

    /// Lets it run to its end or to the next pause.
    pub(super) fn go_on(&self) -> Pause {
        self.tell(Go::On)
    }

    /// Unwinds it, as far as it gets.
    pub(super) fn cancel(&self) -> Pause {
        self.tell(Go::Cancel)
    }

    fn tell(&self, go: Go) -> Pause {
        let gone = |_| Pause::Panicked(Box::new("a strand has ended"));
        match self.go.send(go) {
            Ok(()) => self.paused.recv().unwrap_or_else(gone),
            Err(_) => Pause::Panicked(Box::new("a strand has ended")),
        }
    }
}

/// The life of a strand's thread: it ends with the driver's half.
fn live(here: Here) {
    HERE.set(Some(here));
    while let Ok(go) = with_here(|here| here.go.recv()) {
        let Go::Step(mut machine, may_wait) = go else { continue };
        with_here(|here| (here.cancelled, here.may_wait) = (false, may_wait));
        let pause = match catch_unwind(AssertUnwindSafe(|| machine.step())) {
            Ok(step) => Pause::Done(machine, step),
            Err(panic) => {
                // What it drops may want locks.
                let dropped = catch_unwind(AssertUnwindSafe(|| drop(machine)));
                Pause::Panicked(dropped.err().unwrap_or(panic))
            }
        };
        if with_here(|here| here.paused.send(pause)).is_err() {
            return;
        }
    }
}

/// Calls `look` on the strand that this thread is.
fn with_here<T>(look: impl FnOnce(&mut Here) -> T) -> T {
    HERE.with_borrow_mut(|here| match here {
        Some(here) => look(here),
        None => unreachable!("asked on strands only"),
    })
}

pub(super) fn is_strand() -> bool {
    INTERLEAVES.load(Ordering::Relaxed) && HERE.with_borrow(Option::is_some)
}

/// Whether what this strand does may wait.
pub(super) fn may_wait() -> bool {
    with_here(|here| here.may_wait)
}

/// Gives the turn back until it is this strand's again.
pub(super) fn pause(pause: Pause) {
    let cancelled = with_here(|here| {
        let go = here.paused.send(pause).map(|()| here.go.recv());
        here.cancelled |= !matches!(go, Ok(Ok(Go::On)));
        here.cancelled
    });
    if cancelled && !std::thread::panicking() {
        resume_unwind(Box::new(Cancelled));
    }
}

/// Between two lines: on a thread of a real program, nothing; in a simulation that
/// [interleaves](super::Jobs::interleave), others may run here. The name tells where it is, in
/// [`Jobs::pauses`](super::Jobs::pauses).
#[inline]
pub fn yield_point(name: &'static str) {
    if INTERLEAVES.load(Ordering::Relaxed) && !std::thread::panicking() {
        yield_here(name);
    }
}

#[cold]
fn yield_here(name: &'static str) {
    if is_strand() {
        let stepper = with_here(|here| here.stepper.upgrade());
        if stepper.is_some_and(|stepper| stepper.draws_pause(name)) {
            pause(Pause::Ready);
        }
        return;
    }
    for stepper in driven() {
        stepper.let_others_run(name);
    }
}

/// Notes that this thread drives the stepper's strands. From here on, and not from the first strand on, or a seed would
/// do otherwise in a process that has had some before.
pub(super) fn drives(stepper: &Arc<Stepper>) {
    INTERLEAVES.store(true, Ordering::Relaxed);
    DRIVEN.with_borrow_mut(|driven| {
        driven.retain(|known| known.strong_count() > 0);
        if !driven.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(stepper))) {
            driven.push(Arc::downgrade(stepper));
        }
    });
}

fn driven() -> Vec<Arc<Stepper>> {
    DRIVEN.with_borrow(|driven| driven.iter().filter_map(Weak::upgrade).collect())
}

/// Somebody holds a lock, or has not done what is waited for. In a simulation with strands that must be one that has
/// paused: lets others run until `attempt` succeeds. `None` where there are none.
pub(crate) fn until_free<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    if !INTERLEAVES.load(Ordering::Relaxed) {
        return None;
    }
    if is_strand() {
        let mut is_first = true;
        loop {
            if let Some(got) = attempt() {
                return Some(got);
            }
            pause(Pause::Blocked(std::mem::take(&mut is_first)));
        }
    }
    let mut got = None;
    for stepper in driven().into_iter().filter(|stepper| stepper.has_paused()) {
        stepper.wait(&mut || {
            got = attempt();
            got.is_some() || !stepper.has_paused()
        });
        if got.is_some() {
            break;
        }
    }
    got
}
