//! Long commands: threads of their own do them, so that no loop waits. A connection has one at a time, and asks for nothing
//! more until its reply is there.
//!
//! **Invariant:** the reply of a job goes to the connection that asked, behind all that it was told before, or nowhere.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use forebay_env::sync::Mutex;
use mio::Waker;

use crate::commands::{Answer, Call};
use crate::observe::{Request, shown};
use crate::resp::Reply;
use crate::shared::Shared;

/// So many jobs are done at a time.
pub(crate) const WORKERS: usize = 2;

type Run = Box<dyn FnOnce(&mut Reply, &Slot) -> Answer + Send>;

/// What is to be done.
pub(crate) struct Work {
    run: Run,
    /// Memory that it holds meanwhile.
    bytes: usize,
    /// The request, for the slow log.
    shown: Request,
}

impl Work {
    pub(crate) fn new(
        bytes: usize,
        shown: Request,
        run: impl FnOnce(&mut Reply, &Slot) -> Answer + Send + 'static,
    ) -> Self {
        Self { run: Box::new(run), bytes, shown }
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Work({} bytes)", self.bytes)
    }
}

impl Call<'_, '_> {
    /// Has a thread do it, behind the turn. It holds so many bytes of memory meanwhile.
    pub(crate) fn later(
        &mut self,
        bytes: usize,
        run: impl FnOnce(&mut Reply, &Slot) -> Answer + Send + 'static,
    ) -> Answer {
        if self.turn.is_in_transaction() {
            return Err("ERR the command takes long, and cannot stand in a transaction".into());
        }
        let request = shown(self.arguments, 0);
        self.client.work = Some(Work::new(bytes, request, run));
        Ok(())
    }
}

/// Where a connection finds the reply.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) bytes: usize,
    is_left: AtomicBool,
    reply: Mutex<Option<Vec<u8>>>,
}

impl Slot {
    /// Nobody waits for the reply any more.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// An error once nobody waits: for a job to end soon.
    pub(crate) fn check(&self) -> Answer {
        if self.is_left.load(Ordering::Relaxed) { Err("ERR nobody waits for it".into()) } else { Ok(()) }
    }

    /// The reply, once it is there.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        self.reply.lock().take()
    }
}

struct Task {
    run: Run,
    shown: Request,
    version: u8,
    slot: Arc<Slot>,
    waker: Arc<Waker>,
}

/// Those that wait.
pub(crate) struct Jobs {
    to: Mutex<Option<Sender<Task>>>,
    from: Mutex<Receiver<Task>>,
}

impl Jobs {
    pub(crate) fn new() -> Self {
        let (to, from) = channel();
        Self { to: Mutex::new(Some(to)), from: Mutex::new(from) }
    }

    /// Has a thread do it, and then wakes a loop.
    pub(crate) fn submit(&self, work: Work, version: u8, waker: &Arc<Waker>) -> Arc<Slot> {
        let Work { run, bytes, shown } = work;
        let slot = Arc::new(Slot { bytes, is_left: AtomicBool::new(false), reply: Mutex::new(None) });
        let task = Task { run, shown, version, slot: Arc::clone(&slot), waker: Arc::clone(waker) };
        // Once they are closed no loop asks any more.
        let sent = self.to.lock().as_ref().map(|to| to.send(task).is_ok());
        debug_assert!(sent != Some(false), "the receiver is here");
        slot
    }

    /// Does jobs until they are closed.
    pub(crate) fn run(&self, shared: &Shared) {
        loop {
            let next = self.from.lock().recv();
            let Ok(Task { run, shown, version, slot, waker }) = next else { return };
            let mut reply = Reply { bytes: Vec::new(), version };
            if slot.check().is_ok() {
                let begin = Instant::now();
                let done = catch_unwind(AssertUnwindSafe(|| run(&mut reply, &slot)));
                let done = done.unwrap_or_else(|_| Err("ERR the command failed inside; see the log".into()));
                if let Err(refusal) = done {
                    reply.bytes.clear();
                    reply.error(&refusal.0);
                }
                shared.slow.note(begin.elapsed(), || shared.database.unix_milliseconds(), || shown);
                *slot.reply.lock() = Some(reply.bytes);
                // A loop that cannot be woken looks by itself within a second.
                drop(waker.wake());
            }
        }
    }

    /// Lets the threads end, once what waits is done.
    pub(crate) fn close(&self) {
        self.to.lock().take();
    }
}
