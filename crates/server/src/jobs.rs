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

use crate::commands::{Answer, Call};
use crate::held::Held;
use crate::observe::{Request, shown};
use crate::pushes::Bell;
use crate::resp::Reply;
use crate::shared::Shared;

/// So many jobs are done at a time.
pub(crate) const WORKERS: usize = 2;

type Run = Box<dyn FnOnce(&mut Reply, &Slot) -> Answer + Send>;

/// What is to be done.
pub(crate) struct Work {
    run: Run,
    /// Memory that it holds meanwhile.
    held: Held,
    /// The request, for the slow log.
    shown: Request,
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Work({} bytes)", self.held.bytes())
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
        let held = Held::new(bytes, &self.turn.shared.buffers_bytes);
        self.client.work = Some(Work { run: Box::new(run), held, shown: request });
        Ok(())
    }
}

/// Where a connection finds the reply.
pub(crate) struct Slot {
    /// Until a thread takes it.
    work: Mutex<Option<Work>>,
    /// What the work holds, for whom the connection would be closed.
    pub(crate) bytes: usize,
    is_left: AtomicBool,
    reply: Mutex<Option<Vec<u8>>>,
}

impl Slot {
    /// Nobody waits for the reply any more. What was not begun is given up, with its memory.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
        drop(self.work.lock().take());
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
    version: u8,
    slot: Arc<Slot>,
    bell: Arc<Bell>,
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
    pub(crate) fn submit(&self, work: Work, version: u8, bell: &Arc<Bell>) -> Arc<Slot> {
        let bytes = work.held.bytes();
        let slot = Slot {
            work: Mutex::new(Some(work)),
            bytes,
            is_left: AtomicBool::new(false),
            reply: Mutex::default(),
        };
        let slot = Arc::new(slot);
        let task = Task { version, slot: Arc::clone(&slot), bell: Arc::clone(bell) };
        // Once they are closed no loop asks any more.
        let sent = self.to.lock().as_ref().map(|to| to.send(task).is_ok());
        debug_assert!(sent != Some(false), "the receiver is here");
        slot
    }

    /// Does jobs until they are closed.
    pub(crate) fn run(&self, shared: &Shared) {
        loop {
            let next = self.from.lock().recv();
            let Ok(Task { version, slot, bell }) = next else { return };
            let mut reply = Reply { bytes: Vec::new(), version };
            let work = slot.work.lock().take();
            if let Some(Work { run, held, shown }) = work {
                let begin = Instant::now();
                let done = catch_unwind(AssertUnwindSafe(|| run(&mut reply, &slot)));
                let done = done.unwrap_or_else(|_| Err("ERR the command failed inside; see the log".into()));
                if let Err(refusal) = done {
                    reply.bytes.clear();
                    reply.error(&refusal.0);
                }
                drop(held);
                shared.slow.note(begin.elapsed(), || shared.database.unix_milliseconds(), || shown);
                *slot.reply.lock() = Some(reply.bytes);
                bell.wake();
            }
        }
    }

    /// Lets the threads end, once what waits is done.
    pub(crate) fn close(&self) {
        self.to.lock().take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Their memory was no longer counted, and was kept until a thread came to them.
    #[test]
    fn what_waits_for_a_thread_goes_with_who_asked() {
        let (jobs, sum, kept) = (Jobs::new(), Arc::default(), Arc::new(()));
        let poll = mio::Poll::new().expect("a poll");
        let waker = mio::Waker::new(poll.registry(), mio::Token(0)).expect("a waker");
        let bell = Arc::new(Bell::new(Arc::new(waker)));
        let seen = Arc::downgrade(&kept);
        let run = Box::new(move |_: &mut Reply, _: &Slot| {
            drop(kept);
            Ok(())
        });
        let work = Work { run, held: Held::new(1000, &sum), shown: shown(&[b"X"], 0) };
        let slot = jobs.submit(work, 2, &bell);
        assert_eq!((sum.load(Ordering::Relaxed), seen.strong_count()), (1000, 1));
        slot.leave();
        assert_eq!((sum.load(Ordering::Relaxed), seen.strong_count()), (0, 0));
    }
}
