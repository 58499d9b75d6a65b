//! How connections come in: whichever loop wakes first lets them in, and each of the loops gets its share.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_env::sync::Mutex;
use mio::{Interest, Poll, Token, Waker};

use super::connection::Connection;
use super::socket::Socket;
use super::stream::Stream;
use super::{FIRST, Loop, WAKER};
use crate::pushes::{Bell, Seat};
use crate::replication::Given;

/// A socket, and whether it is to be encrypted.
type Arrived = (Socket, bool);

/// Where a loop is woken, and handed connections.
pub(super) struct Door {
    bell: Arc<Bell>,
    handed: Mutex<Vec<Arrived>>,
}

impl Door {
    pub(super) fn new(poll: &Poll) -> io::Result<Self> {
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Self { bell: Arc::new(Bell::new(waker)), handed: Mutex::new(Vec::new()) })
    }

    pub(super) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    pub(super) fn wake(&self) {
        self.bell.wake();
    }
}

/// So many connections leave the database half of the files that the process may have open, and some.
pub(super) fn connections_max() -> usize {
    (forebay_env::process::files_max() / 2).saturating_sub(32).max(1)
}

impl Loop {
    /// Lets in all connections that wait.
    pub(super) fn accept(&mut self, listener: usize) {
        loop {
            let Some(found) = self.listeners.get(listener) else { return };
            match found.accept() {
                Ok(arrived) => self.deal(arrived),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Of one that has gone already: the next may wait behind it.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                // Files are short, or memory is. No event says when that is over.
                Err(_) => {
                    self.is_deaf = true;
                    return;
                }
            }
        }
    }

    /// Gives a connection to the loop whose turn it is.
    fn deal(&mut self, (mut socket, is_encrypted): Arrived) {
        let shared = &self.shared;
        let number = shared.accepted.fetch_add(1, Ordering::Relaxed);
        let most = shared.config.connections_max;
        // Of this machine's files some more come in: whoever has filled the server by the net is not among those.
        let most = if socket.is_of_net() {
            most - shared.config.unix.as_ref().map_or(0, |_| most / 32)
        } else {
            most
        };
        let is_full = shared.connections.fetch_add(1, Ordering::Relaxed) >= most;
        if is_full && !shared.clients.make_room() {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            if !is_encrypted {
                let _ = socket.write(b"-ERR max number of clients reached\r\n");
            }
            return;
        }
        let target = number as usize % self.doors.len();
        if target == self.number {
            return self.take((socket, is_encrypted));
        }
        self.doors[target].handed.lock().push((socket, is_encrypted));
        self.doors[target].wake();
    }

    /// Gives a connection to a thread that has it from here on: a follower's.
    pub(super) fn give(&mut self, number: usize) {
        let Some(mut connection) = self.connections[number].take() else { return };
        self.free.push(number);
        self.shared.buffers_bytes.fetch_sub(connection.counted_bytes, Ordering::Relaxed);
        let _ = self.poll.registry().deregister(&mut connection.stream.socket);
        connection.client.leave(&self.shared);
        let unsent = connection.take_unsent();
        let Connection { stream, mut client, .. } = connection;
        let (socket, tls) = stream.into_parts();
        if let Some(place) = client.follower.take() {
            let given = Given { socket: socket.handed(), tls, unsent, client };
            self.shared.followers.serve(&self.shared, given, place);
        }
    }

    pub(super) fn take_handed(&mut self) {
        let handed = std::mem::take(&mut *self.doors[self.number].handed.lock());
        handed.into_iter().for_each(|arrived| self.take(arrived));
    }

    /// Takes a connection that is counted.
    fn take(&mut self, (mut socket, is_encrypted): Arrived) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let interests = Interest::READABLE | Interest::WRITABLE;
        socket.send_at_once();
        socket.keep_alive(self.shared.config.keepalive_seconds);
        let registered = self.poll.registry().register(&mut socket, Token(number + FIRST), interests);
        let tls = self.shared.tls.as_deref().filter(|_| is_encrypted);
        match registered.and_then(|()| Stream::new(socket, tls)) {
            Ok(stream) => {
                let seat = Seat { bell: Arc::clone(self.doors[self.number].bell()), number };
                let mut connection = Connection::new(stream, &self.shared, seat);
                // Those who come go before nobody who waits.
                connection.served_in = self.turns;
                self.connections[number] = Some(connection);
            }
            Err(_) => {
                self.free.push(number);
                self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}
