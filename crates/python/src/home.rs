//! [`Home`]: what a class of Python's holds, in the process that made it. A fork copies memory and no threads: whatever the
//! child did with it, or dropped, could wait for a thread that is not there.
//!
//! **Invariant:** in a child nothing of the parent's is used or dropped.
//!
//! **Invariant:** from within a function of Python's that the engine called nothing here is used: the engine may hold locks
//! that would be waited for. What is dropped there is dropped by another thread.

use std::cell::Cell;
use std::sync::LazyLock;
use std::thread::{Builder, JoinHandle};

use forebay::Error;
use forebay_env::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use forebay_env::sync::{Arc, Mutex, Weak};
use pyo3::Python;

use crate::failure::{Failure, Outcome};
use crate::kernel::attached;

/// How many forks lie between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// What is closed before the interpreter goes. It is locked with the interpreter's lock, and for a moment only: so no fork
/// comes amid it.
static OPEN: LazyLock<Mutex<Vec<Opened>>> = LazyLock::new(Mutex::default);

/// Threads that drop what was let go of amid a call of a function of Python's. It is locked as [`OPEN`] is.
static DROPPING: LazyLock<Mutex<Vec<JoinHandle<()>>>> = LazyLock::new(Mutex::default);

/// Whether threads of the engine may wait for the interpreter's lock, since there are functions in Python.
static CALLS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is in a function of Python's that was called from here.
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
}

/// Functions in Python are called from now on, by any thread.
pub(crate) fn expect_calls() {
    CALLS.store(true, Ordering::Relaxed);
}

/// Calls a function of Python's, from within which nothing of Forebay's is let in.
pub(crate) fn calling<T>(call: impl FnOnce() -> T) -> T {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            IS_CALLING.set(self.0);
        }
    }
    let _back = Back(IS_CALLING.replace(true));
    call()
}

/// In which process it was opened, and what.
type Opened = (u32, Weak<dyn Close>);

/// What has threads or files of its own.
pub(crate) trait Close: Send + Sync {
    /// Ends it; there is nobody who could be told of an error.
    fn close_at_exit(&self);
}

/// Has this closed before the interpreter goes, if it is there by then.
pub(crate) fn register<T: Close + 'static>(_py: Python<'_>, opened: &Arc<T>) {
    let weak: Weak<dyn Close> = Arc::downgrade(&(Arc::clone(opened) as Arc<dyn Close>));
    let mut open = OPEN.lock();
    open.retain(|(_, known)| known.strong_count() > 0);
    open.push((GENERATION.load(Ordering::Relaxed), weak));
}

/// Closes all that this process has opened.
pub(crate) fn close_all(py: Python<'_>) {
    let generation = GENERATION.load(Ordering::Relaxed);
    let open = std::mem::take(&mut *OPEN.lock());
    let dropping = std::mem::take(&mut *DROPPING.lock());
    py.detach(|| {
        for thread in dropping {
            // What it dropped is gone, also where that panicked.
            let _ = thread.join();
        }
        for (_, opened) in open.iter().filter(|(of, _)| *of == generation) {
            if let Some(opened) = opened.upgrade() {
                opened.close_at_exit();
            }
        }
    });
}

/// This process is the child of a fork.
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // They are threads of the parent's.
    std::mem::forget(std::mem::take(&mut *DROPPING.lock()));
}

/// Drops something by a thread of its own: here the engine may hold locks, or what is dropped would wait for this very
/// thread.
fn drop_elsewhere(inner: impl Send + 'static) {
    // Where no thread can be started it is dropped here all the same.
    let drop_it = move || drop(inner);
    let begin = || Builder::new().name("forebay-drop".into()).spawn(drop_it).ok();
    attached(|py| {
        let Some(thread) = py.detach(begin) else { return };
        let mut dropping = DROPPING.lock();
        dropping.retain(|thread| !thread.is_finished());
        dropping.push(thread);
    });
}

/// See the module.
pub(crate) struct Home<T: Send + 'static> {
    /// Always there until it is dropped.
    inner: Option<T>,
    generation: u32,
}

impl<T: Send + 'static> Home<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner: Some(inner), generation: GENERATION.load(Ordering::Relaxed) }
    }

    /// What is here, unless that is the parent's.
    #[inline]
    pub(crate) fn get(&self) -> Outcome<&T> {
        match &self.inner {
            Some(_) if IS_CALLING.get() => {
                let told = "Forebay is called from within update, merge, evaluate or samples of a function; these may \
                            work on what they are given alone";
                Err(Error::invalid(told).into())
            }
            Some(inner) if self.generation == GENERATION.load(Ordering::Relaxed) => Ok(inner),
            _ => Err(Failure::Forked),
        }
    }
}

impl<T: Send + 'static> Drop for Home<T> {
    fn drop(&mut self) {
        let inner = self.inner.take();
        if self.generation != GENERATION.load(Ordering::Relaxed) {
            std::mem::forget(inner);
        } else if IS_CALLING.get() {
            drop_elsewhere(inner);
        } else if CALLS.load(Ordering::Relaxed) {
            // Whoever is waited for may wait for the interpreter's lock.
            let mut inner = Some(inner);
            let is_there = attached(|py| {
                let inner = inner.take();
                py.detach(|| drop(inner));
            });
            debug_assert!(is_there.is_none() || inner.is_none(), "it was dropped once");
        }
    }
}
