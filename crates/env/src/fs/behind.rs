//! [`Helpers`]: threads that write for whoever goes on meanwhile, where the files are the machine's. Those of other file
//! systems do at once what they are given: the same calls come in the same order.
//!
//! They are threads, and not the kernel's queue, since a write that makes a file longer takes the file's lock: the
//! kernel would hand it to a thread of its own.
//!
//! **Invariant:** what is done behind owns all that it touches: nobody frees or changes a buffer that the system may
//! still read.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::thread::Builder;
use crate::sync::{Arc, Condvar, Mutex};

/// So many write at a time at most: more gain nothing on one device.
const HELPERS_MAX: usize = 4;

type Work = Box<dyn FnOnce() + Send>;

/// Who does what others need not wait for.
pub struct Helpers {
    /// Threads, which begin when they are first needed. `None` where all is done at once.
    shared: Option<Arc<Shared>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    bell: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    threads: usize,
    resting: usize,
    is_over: bool,
}

impl Helpers {
    /// Threads.
    pub(super) fn threads() -> Self {
        Self { shared: Some(Arc::default()) }
    }

    /// Whoever begins something does it.
    pub(super) const fn at_once() -> Self {
        Self { shared: None }
    }

    /// Has something done meanwhile, or at once.
    pub fn begin<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Behind<T> {
        let Some(shared) = &self.shared else { return Behind(State::Done(work())) };
        let outcome = Arc::new(Outcome { done: Mutex::new(None), bell: Condvar::new() });
        let told = Arc::clone(&outcome);
        let work = move || {
            let done = catch_unwind(AssertUnwindSafe(work)).ok();
            *told.done.lock() = Some(done);
            told.bell.notify_all();
        };
        shared.give(Box::new(work));
        Behind(State::Begun(outcome))
    }
}

impl Shared {
    fn give(self: &Arc<Self>, work: Work) {
        let mut queue = self.queue.lock();
        queue.waiting.push_back(work);
        if queue.resting < queue.waiting.len() && queue.threads < HELPERS_MAX {
            let shared = Arc::clone(self);
            let started = Builder::new().name("forebay-io".to_owned()).spawn(move || shared.help());
            queue.threads += usize::from(started.is_ok());
        }
        debug_assert!(queue.threads <= HELPERS_MAX && queue.resting <= queue.threads);
        // Where no thread could be started, it is this one's.
        let alone = if queue.threads == 0 { queue.waiting.pop_back() } else { None };
        drop(queue);
        match alone {
            Some(work) => work(),
            None => self.bell.notify_one(),
        }
    }

    /// The life of one helper. All that was given is done before it ends.
    fn help(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(work) = queue.waiting.pop_front() {
                drop(queue);
                work();
                queue = self.queue.lock();
            } else if queue.is_over {
                return;
            } else {
                queue.resting += 1;
                queue = self.bell.wait(queue);
                queue.resting -= 1;
            }
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        let Some(shared) = &self.shared else { return };
        shared.queue.lock().is_over = true;
        shared.bell.notify_all();
    }
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.shared.as_ref().map(|shared| shared.queue.lock().threads);
        f.debug_struct("Helpers").field("threads", &threads).finish()
    }
}

struct Outcome<T> {
    /// `Some(None)` where it panicked.
    done: Mutex<Option<Option<T>>>,
    bell: Condvar,
}

/// What was begun. Dropping it lets that go on.
#[must_use = "what is done behind may fail"]
pub struct Behind<T>(State<T>);

enum State<T> {
    Done(T),
    Begun(Arc<Outcome<T>>),
}

impl<T> Behind<T> {
    /// Waits until it is done. `None` where it panicked.
    pub fn wait(self) -> Option<T> {
        let outcome = match self.0 {
            State::Done(done) => return Some(done),
            State::Begun(outcome) => outcome,
        };
        let mut done = outcome.done.lock();
        loop {
            if let Some(done) = done.take() {
                return done;
            }
            done = outcome.bell.wait(done);
        }
    }
}
