//! Waiting for the disk: one thread does it for all loops, which go on with whoever does not wait. Those that come while it
//! waits share the next sync, and so do those that it has reason to [expect](gathering).
//!
//! **Invariant:** the sync that answers a turn began behind the turn's commit.

mod gathering;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use forebay::{Error, Result};
use forebay_env::sync::Mutex;

use crate::pushes::Bell;
use crate::shared::Shared;
use gathering::Gathering;

/// Others are waited for as long as this part of what a sync takes.
const PATIENCE_PARTS: u32 = 2;
/// But no longer.
const PATIENCE_MAX: Duration = Duration::from_millis(1);

/// What became of a sync that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Synced(OnceLock<Result<()>>);

impl Synced {
    /// Nothing while it is not over.
    pub(crate) fn outcome(&self) -> Option<&Result<()>> {
        self.0.get()
    }
}

/// Turns that wait, and their connections.
#[derive(Default)]
struct Waiting {
    turns: Vec<(Arc<Synced>, Arc<Bell>)>,
    gathering: Gathering,
}

/// Those that wait.
#[derive(Default)]
pub(crate) struct Syncs {
    waiting: Mutex<Waiting>,
    thread: OnceLock<Thread>,
    is_closed: AtomicBool,
}

impl Syncs {
    /// Has all that was committed until now on the disk, and then wakes a loop. Of each connection that waits for it the
    /// number of the sync is given that it has waited for last; that of this one is returned.
    pub(crate) fn submit(
        &self,
        bell: &Arc<Bell>,
        waited_for: impl Iterator<Item = u64>,
    ) -> (Arc<Synced>, u64) {
        let synced = Arc::default();
        let mut waiting = self.waiting.lock();
        waiting.turns.push((Arc::clone(&synced), Arc::clone(bell)));
        let number = waiting.gathering.add(waited_for);
        // Who is waited for comes to a thread that looks at the time already.
        let is_due = waiting.turns.len() == 1 || waiting.gathering.is_complete();
        drop(waiting);
        self.thread.get().into_iter().filter(|_| is_due).for_each(Thread::unpark);
        (synced, number)
    }

    /// Lets the thread end, once nobody waits.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.thread.get().into_iter().for_each(Thread::unpark);
    }

    fn run(&self, shared: &Shared) {
        let mut patience = Duration::ZERO;
        while let Some(turns) = self.next(patience) {
            let begin = Instant::now();
            let synced = catch_unwind(AssertUnwindSafe(|| shared.database.sync()));
            let outcome =
                synced.unwrap_or_else(|_| Err(Error::invalid("the sync failed inside; see the log")));
            patience = (patience + begin.elapsed() / PATIENCE_PARTS).min(2 * PATIENCE_MAX) / 2;
            shared.is_failing.fetch_or(outcome.is_err(), Ordering::Relaxed);
            // Each is told once, and all before the first loop looks.
            turns.iter().for_each(|(synced, _)| drop(synced.0.set(outcome.clone())));
            let mut bells: Vec<Arc<Bell>> = turns.into_iter().map(|(_, bell)| bell).collect();
            bells.dedup_by(|one, other| Arc::ptr_eq(one, other));
            bells.iter().for_each(|bell| bell.wake());
        }
    }

    /// The turns of the next sync, once there are some, and who is expected has come, or was waited for. `None` behind the
    /// last.
    fn next(&self, patience: Duration) -> Option<Vec<(Arc<Synced>, Arc<Bell>)>> {
        let mut wait: Option<(Instant, usize)> = None;
        loop {
            let mut waiting = self.waiting.lock();
            let is_closed = self.is_closed.load(Ordering::SeqCst);
            if waiting.turns.is_empty() {
                drop(waiting);
                if is_closed {
                    return None;
                }
                thread::park();
                continue;
            }
            let left = wait.map_or(patience, |(begin, _)| patience.saturating_sub(begin.elapsed()));
            if is_closed || left.is_zero() || waiting.gathering.is_complete() {
                waiting.gathering.begin(wait.map(|(_, missing)| missing));
                return Some(std::mem::take(&mut waiting.turns));
            }
            wait.get_or_insert_with(|| (Instant::now(), waiting.gathering.missing()));
            drop(waiting);
            thread::park_timeout(left);
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
