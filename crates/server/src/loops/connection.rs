//! A connection: what it has sent, what it is to get.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::net::TcpStream;

use crate::commands::Client;
use crate::resp::{Limits, Reply, Requests, Spans, Wrong};
use crate::shared::Shared;

/// Of one that has not logged in.
const UNKNOWN: Limits = Limits { arguments_max: 10, argument_bytes_max: 16 << 10 };
/// Of one that has.
const ARGUMENTS_MAX: usize = 1 << 20;
/// So much is read in a turn, and no more while so much is to be sent.
const READ_BYTES_MAX: usize = 1 << 20;
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// Memory that a buffer keeps while it has nothing.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// See the module.
pub(super) struct Connection {
    pub(super) socket: TcpStream,
    pub(super) requests: Requests,
    /// Whole requests that were not done yet.
    pub(super) waiting: Vec<Spans>,
    /// It broke the protocol behind them.
    pub(super) wrong: Option<Wrong>,
    pub(super) reply: Reply,
    /// So much of the replies is sent.
    sent: usize,
    pub(super) client: Client,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    /// It may have whole requests that nobody has looked at.
    pub(super) has_more: bool,
    /// It sends nothing more.
    pub(super) is_ending: bool,
    /// It has ended, or broken the protocol: what is to be sent is sent, and that is all.
    pub(super) is_over: bool,
    /// So much it is in the sum of all.
    pub(super) counted_bytes: usize,
    /// When it took something last while there was something.
    took_at: Option<u64>,
}

impl Connection {
    pub(super) fn new(socket: TcpStream, shared: &Arc<Shared>) -> Self {
        Self {
            socket,
            requests: Requests::default(),
            waiting: Vec::new(),
            wrong: None,
            reply: Reply::default(),
            sent: 0,
            client: Client::new(shared),
            is_readable: true,
            is_writable: true,
            has_more: false,
            is_ending: false,
            is_over: false,
            counted_bytes: 0,
            took_at: None,
        }
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
        self.reply.bytes.len() - self.sent > READ_BYTES_MAX
    }

    pub(super) fn is_silent(&self, now: u64, most: u64) -> bool {
        self.took_at.is_some_and(|at| now.saturating_sub(at) > most)
    }

    /// Reads what there is, up to a bound, by way of `chunk`. `false` once it has ended.
    pub(super) fn read(&mut self, chunk: &mut [u8]) -> bool {
        let mut read = 0;
        while self.is_readable && read < READ_BYTES_MAX {
            match self.socket.read(chunk) {
                Ok(0) => return false,
                Ok(bytes) => {
                    self.requests.extend(&chunk[..bytes]);
                    read += bytes;
                    // A short read has emptied the socket; what comes after is an event.
                    self.is_readable = bytes == chunk.len();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Sends what the socket takes. `false` once nobody is there.
    pub(super) fn send(&mut self, shared: &Shared) -> bool {
        while self.sent < self.reply.bytes.len() && self.is_writable {
            match self.socket.write(&self.reply.bytes[self.sent..]) {
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
        if self.sent > READ_BYTES_MAX {
            // One that always asks for more may never have got all.
            self.reply.bytes.drain(..std::mem::take(&mut self.sent));
        }
        if self.sent == self.reply.bytes.len() {
            (self.sent, self.took_at) = (0, None);
            self.reply.bytes.clear();
            if self.reply.bytes.capacity() > KEPT_BYTES_MAX {
                self.reply.bytes = Vec::new();
            }
        } else if self.took_at.is_none() {
            self.took_at = Some(shared.uptime_seconds());
        }
        true
    }

    pub(super) fn has_replies(&self) -> bool {
        self.sent < self.reply.bytes.len()
    }

    /// Counts its memory in the sum of all. `false` where that is more than there may be, and it has a large part.
    pub(super) fn count(&mut self, shared: &Shared) -> bool {
        let bytes =
            self.requests.memory_bytes() + self.reply.bytes.capacity() + self.client.queue.memory_bytes();
        let before = std::mem::replace(&mut self.counted_bytes, bytes);
        let all = shared.buffers_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes - before;
        shared.buffers_bytes.fetch_sub(before, Ordering::Relaxed);
        all <= shared.config.buffers_bytes_max || bytes <= CHUNK_BYTES
    }
}
