//! What callers await rather than wait for: threads of the engine's own that look keys up and commit, and the futures that
//! they complete. Threads are started when there is something to do that all others are busy with, and stay until the
//! database is closed.
//!
//! 1. Whoever asks gets a [`Pending`], and its [`Promise`] goes into the queue of a [`Crew`] with the work.
//! 2. Lookups are taken one by one, by as many threads as there are cores. Commits are taken together, by one: each
//!    is written, and then one write or sync makes all of them as durable as they want. What comes meanwhile is the next
//!    group.
//! 3. Under a stepper all is done at once, by who asks.
//!
//! **Invariant:** each promise is kept, if only by an error. No panic, of a waker or of the work for another, ends a
//! thread that others count on.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};

use forebay_base::{Error, Result};
use forebay_env::jobs::text_of;
use forebay_env::sync::{Condvar, Mutex, Rank};
use forebay_env::{Handle, Jobs};
use forebay_store::log::{Durability, Log};

use crate::context::Context;

/// What comes later: a future that the engine completes. It may be awaited anywhere, under any runtime; what it stands for
/// is done whether or not it is.
#[must_use = "what becomes of it is told to who awaits it"]
pub struct Pending<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

struct Slot<T> {
    outcome: Option<Result<T>>,
    waker: Option<Waker>,
}

impl<T> Pending<T> {
    /// A future, and what completes it.
    pub(crate) fn new() -> (Self, Promise<T>) {
        let slot = Arc::new(Mutex::ranked(Rank::Leaf, Slot { outcome: None, waker: None }));
        (Self { slot: Arc::clone(&slot) }, Promise { slot: Some(slot) })
    }

    /// One that is complete.
    pub(crate) fn ready(outcome: Result<T>) -> Self {
        let (pending, promise) = Self::new();
        promise.keep(outcome);
        pending
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        // Code of users, as is the drop of the one before, so with nothing locked.
        let waker = context.waker().clone();
        let mut slot = self.slot.lock();
        if let Some(outcome) = slot.outcome.take() {
            return Poll::Ready(outcome);
        }
        let before = slot.waker.replace(waker);
        drop(slot);
        drop(before);
        Poll::Pending
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = if self.slot.lock().outcome.is_some() { "complete" } else { "pending" };
        f.write_str(state)
    }
}

/// Completes a future.
pub(crate) struct Promise<T> {
    slot: Option<Arc<Mutex<Slot<T>>>>,
}

impl<T> Promise<T> {
    /// Tells who awaits it.
    pub(crate) fn keep(mut self, outcome: Result<T>) {
        self.complete(outcome);
    }

    fn complete(&mut self, outcome: Result<T>) {
        let Some(slot) = self.slot.take() else { return };
        let waker = {
            let mut slot = slot.lock();
            debug_assert!(slot.outcome.is_none(), "a promise is kept once");
            slot.outcome = Some(outcome);
            slot.waker.take()
        };
        // Code of users, so with nothing locked. What it panics at is not told: others are waiting to be woken.
        if let Some(waker) = waker {
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl<T> Drop for Promise<T> {
    /// What is not done any more, as the database is closed, or a thread has panicked.
    fn drop(&mut self) {
        self.complete(Err(Error::closed()));
    }
}

/// What work comes to: where it panics, an error. Under a stepper panics go through to the test.
fn guarded<T>(jobs: &Jobs, work: impl FnOnce() -> Result<T>) -> Result<T> {
    if jobs.is_stepper() {
        return work();
    }
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = text_of(&*panic);
        Err(Error::Panicked(format!("what was awaited panicked, and may have been done in part: {said}")))
    })
}

/// A commit that somebody awaits: how it is written, to memory at least, and what it wants to be then.
pub(crate) struct Commit {
    pub(crate) write: Box<dyn FnOnce() -> Result<u64> + Send>,
    pub(crate) durability: Durability,
    pub(crate) promise: Promise<u64>,
}

/// So many commits share a sync at most: the first of them is told once the last one is written.
const GROUP_COMMITS_MAX: usize = 1024;

/// Threads that take from one queue.
struct Crew<T> {
    jobs: Jobs,
    name: &'static str,
    threads_max: usize,
    /// How many are taken together.
    items_max: usize,
    serve: Box<dyn Fn(Vec<T>) + Send + Sync>,
    queue: Mutex<Queue<T>>,
    bell: Condvar,
}

struct Queue<T> {
    items: VecDeque<T>,
    threads: Vec<Handle>,
    /// How many of them have nothing to do.
    idle: usize,
    is_closed: bool,
}

impl<T: Send + 'static> Crew<T> {
    fn new(
        jobs: &Jobs,
        name: &'static str,
        (threads_max, items_max): (usize, usize),
        serve: impl Fn(Vec<T>) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let queue = Queue { items: VecDeque::new(), threads: Vec::new(), idle: 0, is_closed: false };
        Arc::new(Self {
            jobs: jobs.clone(),
            name,
            threads_max,
            items_max,
            serve: Box::new(serve),
            queue: Mutex::ranked(Rank::Leaf, queue),
            bell: Condvar::new(),
        })
    }

    /// Hands an item to whoever is free.
    fn hand(self: &Arc<Self>, item: T) {
        if self.jobs.is_stepper() {
            return (self.serve)(vec![item]);
        }
        let mut queue = self.queue.lock();
        if queue.is_closed {
            // Whoever awaits it is told.
            return drop(queue);
        }
        queue.items.push_back(item);
        if queue.idle < queue.items.len() && queue.threads.len() < self.threads_max {
            let crew = Arc::clone(self);
            let thread = self.jobs.fork(self.name, move || crew.work());
            if thread.refused().is_none() {
                queue.threads.push(thread);
            }
        }
        if queue.threads.is_empty() {
            let items = queue.items.drain(..).collect();
            drop(queue);
            return (self.serve)(items);
        }
        drop(queue);
        self.bell.notify_one();
    }

    fn work(&self) {
        loop {
            let mut queue = self.queue.lock();
            while queue.items.is_empty() {
                if queue.is_closed {
                    return;
                }
                queue.idle += 1;
                debug_assert!(queue.idle <= self.threads_max, "only threads of the crew wait here");
                queue = self.bell.wait(queue);
                queue.idle -= 1;
            }
            let taken = queue.items.len().min(self.items_max);
            let items = queue.items.drain(..taken).collect();
            drop(queue);
            // Whatever panics, it goes on: it counts as one of the threads, so nobody starts another in its place.
            let _ = catch_unwind(AssertUnwindSafe(|| (self.serve)(items)));
        }
    }

    /// Does what is left, and ends all threads.
    fn close(&self) {
        let threads = {
            let mut queue = self.queue.lock();
            queue.is_closed = true;
            std::mem::take(&mut queue.threads)
        };
        self.bell.notify_all();
        threads.into_iter().for_each(Handle::join);
        // What nobody has done, if there is any, holds the engine, which holds this; and somebody awaits it.
        let left = std::mem::take(&mut self.queue.lock().items);
        drop(left);
    }
}

/// A lookup that somebody awaits.
type Lookup = Box<dyn FnOnce() + Send>;

/// See the module.
pub(crate) struct Deferred {
    lookups: Arc<Crew<Lookup>>,
    commits: Arc<Crew<Commit>>,
}

impl Deferred {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        let jobs = &context.env.jobs;
        let look_up = |lookups: Vec<Lookup>| lookups.into_iter().for_each(|look_up| look_up());
        let by_commits = Arc::clone(context);
        Self {
            lookups: Crew::new(jobs, "forebay-lookups", (jobs.parallelism(), 1), look_up),
            commits: Crew::new(jobs, "forebay-commits", (1, GROUP_COMMITS_MAX), move |commits| {
                commit_all(&by_commits, commits);
            }),
        }
    }

    /// Has somebody look something up.
    pub(crate) fn look_up<T: Send + 'static>(
        &self,
        look_up: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (pending, promise) = Pending::new();
        let jobs = self.lookups.jobs.clone();
        self.lookups.hand(Box::new(move || promise.keep(guarded(&jobs, look_up))));
        pending
    }

    /// Has somebody write something, and make it durable with others.
    pub(crate) fn commit(
        &self,
        durability: Durability,
        write: impl FnOnce() -> Result<u64> + Send + 'static,
    ) -> Pending<u64> {
        let (pending, promise) = Pending::new();
        self.commits.hand(Commit { write: Box::new(write), durability, promise });
        pending
    }

    /// Does what is left, and ends all threads.
    pub(crate) fn close(&self) {
        self.lookups.close();
        self.commits.close();
    }
}

/// Writes commits one after the other, then makes all of them as durable as they want at one go.
fn commit_all(context: &Context, commits: Vec<Commit>) {
    let jobs = &context.env.jobs;
    let mut written = Vec::with_capacity(commits.len());
    for Commit { write, durability, promise } in commits {
        match (guarded(jobs, write), durability) {
            (Ok(sequence), Durability::Os | Durability::Disk) => {
                written.push((sequence, durability, promise))
            }
            (outcome, _) => promise.keep(outcome),
        }
    }
    for wanted in [Durability::Os, Durability::Disk] {
        let of = |durability: &Durability| *durability == wanted;
        let last = written.iter().filter(|(_, durability, _)| of(durability)).map(|(last, ..)| *last).max();
        let Some(last) = last else { continue };
        let make = |log: &Log| match wanted {
            Durability::Disk => log.sync_to(last),
            _ => log.write_up_to(last),
        };
        // Where it is opened to be read nothing was written, and there is nothing to make durable.
        let made = guarded(jobs, || context.log.as_ref().map_or(Ok(()), make));
        let (done, rest) = written.into_iter().partition(|(_, durability, _)| of(durability));
        written = rest;
        let done: Vec<(u64, Durability, Promise<u64>)> = done;
        done.into_iter().for_each(|(sequence, _, promise)| promise.keep(made.clone().map(|()| sequence)));
    }
    debug_assert!(written.is_empty(), "each is told what became of it");
}

#[cfg(test)]
mod tests {
    use forebay_env::Env;

    use super::*;
    use crate::{Batch, Database, Options};

    #[test]
    fn what_is_committed_together_is_synced_once() {
        let options = Options::default().memory_limit(1 << 20).env(Env::memory(1));
        let db = Database::open("/db", options).unwrap();
        let (table, engine) = (db.table("t").open().unwrap(), Arc::clone(db.engine()));
        let mut pending = Vec::new();
        let commits =
            [Durability::Disk, Durability::Memory, Durability::Os, Durability::Disk].map(|durability| {
                let (future, promise) = Pending::new();
                pending.push(future);
                let (engine, mut batch) = (Arc::clone(&engine), Batch::new());
                batch.put(&table, "k", "v");
                let write =
                    move || engine.writer.write(batch.payload(engine.context.serial)?, Durability::Memory);
                Commit { write: Box::new(write), durability, promise }
            });
        let before = db.stats().log_syncs;
        commit_all(&engine.context, commits.into());
        assert_eq!((db.stats().log_syncs - before, db.durable_sequence()), (1, 4));
        let outcomes = pending.iter().map(|pending| pending.slot.lock().outcome.take().unwrap().unwrap());
        assert_eq!(outcomes.collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    /// Of a task whose executor is gone.
    struct Gone;

    impl task::Wake for Gone {
        fn wake(self: Arc<Self>) {
            panic!("its executor is gone");
        }
    }

    #[test]
    fn a_waker_that_panics_is_nobody_elses_trouble() {
        let waker = Waker::from(Arc::new(Gone));
        let mut context = task::Context::from_waker(&waker);
        let (mut pending, promise) = Pending::new();
        assert!(Pin::new(&mut pending).poll(&mut context).is_pending());
        promise.keep(Ok(7));
        assert!(matches!(Pin::new(&mut pending).poll(&mut context), Poll::Ready(Ok(7))));
    }

    #[test]
    fn a_panic_ends_neither_a_thread_nor_what_waits_behind_it() {
        let jobs = Env::real().jobs;
        let serve = |items: Vec<(u64, Promise<u64>)>| {
            for (number, promise) in items {
                assert!(number > 0, "no luck");
                promise.keep(Ok(number));
            }
        };
        let crew = Crew::new(&jobs, "crew", (1, 1), serve);
        let pending: Vec<_> = (0..4).map(|number| (number, Pending::new())).collect();
        let mut futures = Vec::new();
        for (number, (future, promise)) in pending {
            futures.push(future);
            crew.hand((number, promise));
        }
        crew.close();
        let outcome = |future: Pending<u64>| future.slot.lock().outcome.take().map(Result::ok);
        let outcomes: Vec<_> = futures.into_iter().map(outcome).collect();
        assert_eq!(outcomes, [Some(None), Some(Some(1)), Some(Some(2)), Some(Some(3))]);
        let error = guarded(&jobs, || -> Result<()> { panic!("no luck") }).unwrap_err();
        assert!(matches!(&error, Error::Panicked(said) if said.ends_with("no luck")), "{error}");
    }

    #[test]
    fn a_promise_that_nobody_keeps_is_an_error() {
        let (pending, promise) = Pending::<u64>::new();
        drop(promise);
        let outcome = pending.slot.lock().outcome.take();
        assert!(outcome.unwrap().unwrap_err().to_string().contains("closed"));
    }
}
