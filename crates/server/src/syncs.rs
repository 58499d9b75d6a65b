//! Waiting for the disk: one thread does it for all loops, which go on with whoever does not wait. Those that come while it
//! waits share the next sync.
//!
//! **Invariant:** the sync that answers a turn began behind the turn's commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};

use forebay::{Error, Result};
use forebay_env::sync::Mutex;

use crate::pushes::Bell;
use crate::shared::Shared;

/// What became of a sync that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Synced(OnceLock<Result<()>>);

impl Synced {
    /// Nothing while it is not over.
    pub(crate) fn outcome(&self) -> Option<&Result<()>> {
        self.0.get()
    }
}

/// Those that wait.
#[derive(Default)]
pub(crate) struct Syncs {
    waiting: Mutex<Vec<(Arc<Synced>, Arc<Bell>)>>,
    thread: OnceLock<Thread>,
    is_closed: AtomicBool,
}

impl Syncs {
    /// Has all that was committed until now on the disk, and then wakes a loop.
    pub(crate) fn submit(&self, bell: &Arc<Bell>) -> Arc<Synced> {
        let synced = Arc::default();
        self.waiting.lock().push((Arc::clone(&synced), Arc::clone(bell)));
        self.thread.get().into_iter().for_each(Thread::unpark);
        synced
    }

    /// Lets the thread end, once nobody waits.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.thread.get().into_iter().for_each(Thread::unpark);
    }

    fn run(&self, shared: &Shared) {
        loop {
            let waiting = std::mem::take(&mut *self.waiting.lock());
            if waiting.is_empty() {
                if self.is_closed.load(Ordering::SeqCst) {
                    return;
                }
                thread::park();
                continue;
            }
            let synced = catch_unwind(AssertUnwindSafe(|| shared.database.sync()));
            let outcome =
                synced.unwrap_or_else(|_| Err(Error::invalid("the sync failed inside; see the log")));
            shared.is_failing.fetch_or(outcome.is_err(), Ordering::Relaxed);
            // Each is told once, and all before the first loop looks.
            waiting.iter().for_each(|(synced, _)| drop(synced.0.set(outcome.clone())));
            let mut bells: Vec<Arc<Bell>> = waiting.into_iter().map(|(_, bell)| bell).collect();
            bells.dedup_by(|one, other| Arc::ptr_eq(one, other));
            bells.iter().for_each(|bell| bell.wake());
        }
    }
}

/// The thread.
pub(crate) fn spawn(shared: &Arc<Shared>) -> std::io::Result<JoinHandle<()>> {
    let run = {
        let shared = Arc::clone(shared);
        move || shared.syncs.run(&shared)
    };
    let thread = thread::Builder::new().name("forebay-sync".into()).spawn(run)?;
    let _ = shared.syncs.thread.set(thread.thread().clone());
    // Somebody may have come before.
    thread.thread().unpark();
    Ok(thread)
}
