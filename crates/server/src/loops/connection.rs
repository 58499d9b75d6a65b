//! A connection: what it has sent, what it is to get.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use forebay::Error;

use super::stream::Stream;
use crate::clients::Ask;
use crate::commands::{self, Client};
use crate::jobs::Slot;
use crate::pushes::Seat;
use crate::resp::{Limits, Reply, Requests, Spans, Wrong};
use crate::shared::Shared;
use crate::syncs::Synced;

/// Of one that has not logged in: all that it can have us keep is less than 80 KiB.
const UNKNOWN: Limits = Limits { arguments_max: 10, argument_bytes_max: 2 << 10 };
/// More than the longest request of that kind takes.
const UNKNOWN_BYTES_MAX: usize = 24 << 10;
/// It is closed once it was refused more than this.
const REFUSALS_MAX: u32 = 32;
/// Of one that has.
const ARGUMENTS_MAX: usize = 1 << 20;
/// So much is read in a turn, and no more while so much is to be sent.
const READ_BYTES_MAX: usize = 1 << 20;
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// Memory that a buffer keeps while it has nothing.
const KEPT_BYTES_MAX: usize = 16 << 10;
/// The same of requests.
const KEPT_REQUESTS_MAX: usize = 64;

/// See the module.
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) requests: Requests,
    /// Whole requests that were not done yet.
    pub(super) waiting: Vec<Spans>,
    /// It broke the protocol behind them.
    pub(super) wrong: Option<Wrong>,
    pub(super) reply: Reply,
    /// So much of the replies is sent.
    sent: usize,
    /// It is behind where more than this is not. With one reply more, which may be the longest, it holds less than all may.
    unsent_bytes_max: usize,
    pub(super) client: Client,
    pub(super) is_readable: bool,
    /// The other side sends nothing more, says an event, and none comes behind that: it is read to its end.
    pub(super) is_read_to_end: bool,
    /// Nobody is there, says an event.
    pub(super) is_gone: bool,
    pub(super) is_writable: bool,
    /// It may have whole requests that nobody has looked at.
    pub(super) has_more: bool,
    /// Something may be there that it waits for.
    pub(super) is_woken: bool,
    /// Where it stands among those that wait until a moment.
    pub(super) deadline: Option<Instant>,
    /// What it waits for before anything else of it is done.
    pub(super) job: Option<Arc<Slot>>,
    /// Replies that wait for the disk.
    pub(super) gate: Option<Gate>,
    /// The number of the sync that it has waited for last; 0 for none.
    pub(super) waited_for: u64,
    /// Until this second of the server nothing of it is sent, or done.
    pub(super) held_until: Option<u64>,
    /// Its next command waits until a pause is over.
    pub(super) is_paused: bool,
    /// It sends nothing more.
    pub(super) is_ending: bool,
    /// It has ended, or broken the protocol: what is to be sent is sent, and that is all.
    pub(super) is_over: bool,
    /// The turn of its loop in which it was answered last.
    pub(super) served_in: u64,
    /// So much it is in the sum of all.
    pub(super) counted_bytes: usize,
    /// When it took something last while there was something.
    took_at: Option<u64>,
}

/// Replies from here on wait for a sync.
pub(super) struct Gate {
    replies_from: usize,
    /// They answer so many.
    requests: usize,
    synced: Arc<Synced>,
}

impl Connection {
    pub(super) fn new(stream: Stream, shared: &Arc<Shared>, seat: Seat) -> Self {
        let (address, ends) = (stream.socket.address(), stream.socket.ends());
        Self {
            stream,
            requests: Requests::default(),
            waiting: Vec::new(),
            wrong: None,
            reply: Reply::default(),
            sent: 0,
            unsent_bytes_max: READ_BYTES_MAX.min(shared.config.reply_bytes_max() / 4),
            client: Client::new(shared, seat, address, ends),
            is_readable: true,
            is_read_to_end: false,
            is_gone: false,
            is_writable: true,
            has_more: false,
            is_woken: false,
            deadline: None,
            job: None,
            gate: None,
            waited_for: 0,
            held_until: None,
            is_paused: false,
            is_ending: false,
            is_over: false,
            served_in: 0,
            counted_bytes: 0,
            took_at: None,
        }
    }

    /// Whether no loop is to have it any more: it is a follower's.
    pub(super) fn is_given(&self) -> bool {
        let is_late = self.is_over || self.gate.is_some() || self.held_until.is_some();
        self.client.follower.is_some() && !is_late
    }

    /// What it was answered, and has not taken.
    pub(super) fn take_unsent(&mut self) -> Vec<u8> {
        let unsent = self.reply.bytes.split_off(self.sent);
        (self.sent, self.reply.bytes) = (0, Vec::new());
        unsent
    }

    /// Whether it is to be asked nothing before something else has happened.
    pub(super) fn waits(&self) -> bool {
        self.job.is_some()
            || self.client.follower.is_some()
            || self.client.blocked.is_some()
            || self.gate.is_some()
            || self.held_until.is_some()
            || self.is_paused
    }

    /// Does what another connection has asked of it. `false` where that is to end.
    pub(super) fn heed(&mut self, shared: &Shared) -> bool {
        let is_woken = [Ask::WakeWithNothing, Ask::WakeWithError].map(|ask| self.client.known.takes(ask));
        if is_woken != [false; 2] && self.client.stop_waiting(shared) {
            (self.is_woken, self.has_more) = (false, true);
            match is_woken[1] {
                true => self.tell(|reply| reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK")),
                false => self.tell(commands::time_out),
            }
        }
        !self.client.known.takes(Ask::End)
    }

    /// Tells it what its last request has come to, later, unless that is to have no reply.
    pub(super) fn tell(&mut self, tell: impl FnOnce(&mut Reply)) {
        if !self.client.is_hushed {
            tell(&mut self.reply);
        }
    }

    /// Whether the command that waits is to be done again.
    pub(super) fn is_due_again(&self) -> bool {
        self.is_woken && self.gate.is_none() && self.held_until.is_none()
    }

    /// Has its last replies, to so many requests, sent once a sync has succeeded.
    pub(super) fn hold(&mut self, replies_from: usize, requests: usize, synced: Arc<Synced>) {
        debug_assert!(self.gate.is_none() && replies_from <= self.reply.bytes.len());
        self.gate = Some(Gate { replies_from, requests, synced });
    }

    /// Lets replies go that waited for a sync, if that is over. Says whether it is.
    pub(super) fn release(&mut self) -> bool {
        let over = self.gate.take_if(|gate| gate.synced.outcome().is_some());
        if let Some(gate) = over
            && let Some(Err(error)) = gate.synced.outcome()
        {
            self.fail(gate.replies_from, gate.requests, error);
        }
        self.gate.is_none()
    }

    /// Tells an error in place of its last replies, to so many requests, and ends: nobody knows what of them was kept, and
    /// what `SELECT`, `MULTI` or `HELLO` have changed is not what its client was told.
    pub(super) fn fail(&mut self, replies_from: usize, requests: usize, error: &Error) {
        self.client.work = None;
        self.job.take().iter().for_each(|job| job.leave());
        self.reply.bytes.truncate(replies_from);
        (0..requests).for_each(|_| self.reply.error(&format!("ERR {error}")));
        self.is_over = true;
    }

    pub(super) fn limits(&self, shared: &Shared) -> Limits {
        match self.client.is_known {
            true => {
                Limits { arguments_max: ARGUMENTS_MAX, argument_bytes_max: shared.config.argument_bytes_max }
            }
            false => UNKNOWN,
        }
    }

    /// Whether it takes replies slower than it asks: then it has to wait.
    pub(super) fn is_behind(&self) -> bool {
        let most = if self.client.is_known { self.unsent_bytes_max } else { KEPT_BYTES_MAX };
        self.reply.bytes.len() - self.sent > most
    }

    /// Whether it has taken none of its replies for too long, or has not said who it is.
    pub(super) fn is_silent(&self, now: u64, most: u64) -> bool {
        let is_known = self.client.is_known && self.stream.is_open();
        let since = if is_known { self.took_at } else { Some(self.client.since) };
        since.is_some_and(|at| now.saturating_sub(at) > most)
    }

    /// Whether it only guesses.
    pub(super) fn is_refused(&self) -> bool {
        !self.client.is_known && self.client.refusals > REFUSALS_MAX
    }

    /// Whether more of it may be read: whatever is whole of what was read is done first.
    pub(super) fn may_read(&self) -> bool {
        self.is_readable && !self.has_more && self.waiting.is_empty() && self.wrong.is_none()
    }

    /// Reads what there is, up to a bound, by way of `chunk`, and takes that from what a round may read. `false` once it
    /// has ended.
    pub(super) fn read(&mut self, chunk: &mut [u8], left: &mut usize) -> bool {
        debug_assert!(self.waiting.is_empty(), "spans of requests that wait stay where they are");
        let mut most = match self.client.is_known {
            true => READ_BYTES_MAX,
            false => UNKNOWN_BYTES_MAX.saturating_sub(self.requests.rest_bytes()),
        };
        while self.is_readable && most > 0 && *left > 0 {
            let bytes_max = chunk.len().min(most);
            let chunk = &mut chunk[..bytes_max];
            match self.stream.read(chunk) {
                Ok(0) => return false,
                Ok(bytes) => {
                    self.requests.extend(&chunk[..bytes]);
                    (most, *left) = (most - bytes, left.saturating_sub(bytes));
                    // A short read has emptied the socket; what comes after is an event. Of records it has emptied one.
                    self.is_readable =
                        bytes == chunk.len() || self.is_read_to_end || self.stream.is_encrypted();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Ends it from this side, and reads what came meanwhile: else the other side might lose what was sent to it.
    pub(super) fn say_goodbye(&mut self, chunk: &mut [u8]) {
        self.stream.say_goodbye(chunk, READ_BYTES_MAX);
    }

    /// Forgets requests that were done.
    pub(super) fn forget(&mut self, done: usize) {
        self.waiting.drain(..done);
        self.requests.forget(&self.waiting);
        if self.waiting.is_empty() && self.waiting.capacity() > KEPT_REQUESTS_MAX {
            self.waiting = Vec::new();
        }
    }

    /// Sends what the socket takes. `false` once nobody is there.
    pub(super) fn send(&mut self, shared: &Shared) -> bool {
        let end = self.gate.as_ref().map_or(self.reply.bytes.len(), |gate| gate.replies_from);
        while self.sent < end && self.is_writable {
            match self.stream.write(&self.reply.bytes[self.sent..end]) {
                Ok(0) => return false,
                Ok(bytes) => {
                    self.sent += bytes;
                    self.took_at = Some(shared.uptime_seconds());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        if self.is_writable {
            match self.stream.flush() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_writable = false,
                Err(_) => return false,
                Ok(()) => {}
            }
        }
        // One that always asks for more may never have got all.
        if self.sent > self.unsent_bytes_max || self.sent == self.reply.bytes.len() {
            self.gate.iter_mut().for_each(|gate| gate.replies_from -= self.sent);
            self.reply.bytes.drain(..std::mem::take(&mut self.sent));
        }
        if self.reply.bytes.is_empty() {
            self.took_at = self.took_at.filter(|_| self.stream.has_unsent());
            if self.reply.bytes.capacity() > KEPT_BYTES_MAX {
                self.reply.bytes = Vec::new();
            }
        } else if self.gate.as_ref().is_some_and(|gate| gate.replies_from == self.sent) {
            self.took_at = self.took_at.filter(|_| self.stream.has_unsent());
        } else if self.took_at.is_none() {
            self.took_at = Some(shared.uptime_seconds());
        }
        true
    }

    /// Takes messages that wait for it, as far as it is not behind. `false` where it has missed some.
    pub(super) fn take_messages(&mut self, shared: &Shared) -> bool {
        let feed = self.client.feed.as_ref().filter(|_| self.gate.is_none());
        let (is_told, is_last) =
            feed.map_or((false, false), |feed| feed.write(&mut self.reply, self.sent + READ_BYTES_MAX));
        if is_told {
            shared.feeds.wake();
        }
        if is_last {
            self.client.feed = None;
        }
        match &self.client.subscriptions.outbox {
            Some(outbox) => outbox.write(&mut self.reply, self.sent + READ_BYTES_MAX),
            None => true,
        }
    }

    pub(super) fn has_replies(&self) -> bool {
        self.sent < self.reply.bytes.len() || self.stream.has_unsent()
    }

    /// What closing it gives back, as far as nobody is at it: with a job, and messages that wait for it.
    pub(super) fn held_bytes(&self) -> usize {
        let job = self.job.as_ref().map_or(0, |job| job.bytes);
        self.counted_bytes + job + self.client.waiting_bytes()
    }

    /// Counts its memory in the sum of all; a job counts by itself.
    pub(super) fn count(&mut self, shared: &Shared) {
        let waiting = self.waiting.capacity() * size_of::<Spans>();
        let bytes = self.requests.memory_bytes()
            + self.stream.memory_bytes()
            + waiting
            + self.reply.bytes.capacity()
            + self.client.queue.memory_bytes()
            + self.client.subscriptions.memory_bytes()
            + self.client.blocked_bytes();
        let replies = self.reply.bytes.len() - self.sent + self.client.subscriptions.waiting_bytes();
        self.client.tell(self.reply.version, (self.requests.rest_bytes(), replies, bytes));
        let before = std::mem::replace(&mut self.counted_bytes, bytes);
        shared.buffers_bytes.fetch_add(bytes, Ordering::Relaxed);
        shared.buffers_bytes.fetch_sub(before, Ordering::Relaxed);
    }
}
