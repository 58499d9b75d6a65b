//! Loops: threads that have connections, and take turns.

mod connection;
mod round;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use forebay::{Database, Error, Result};
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::config::Config;
use crate::shared::Shared;
use connection::{CHUNK_BYTES, Connection};

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
/// Connections have the numbers from here on.
const FIRST: usize = 2;

/// A server that listens, and has not begun to answer.
pub struct Server {
    shared: Arc<Shared>,
    listener: std::net::TcpListener,
    loops: Vec<Loop>,
    wakers: Vec<Arc<Waker>>,
}

/// Ends a server, from any thread.
#[derive(Clone)]
pub struct Stopper {
    shared: Arc<Shared>,
    wakers: Vec<Arc<Waker>>,
}

impl Stopper {
    /// Has the server answer what it has read, and end.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // One that cannot be woken looks by itself within a second.
        self.wakers.iter().for_each(|waker| drop(waker.wake()));
    }
}

impl Server {
    /// Listens. Keys of the databases that `SELECT` names are in the tables `0` to `15`.
    pub fn bind(database: Database, config: Config) -> Result<Self> {
        if config.password.is_none() && !config.listen.ip().is_loopback() {
            return Err(Error::invalid(format!(
                "listening at {} needs a password, as others than this machine reach it; give one, or listen at 127.0.0.1",
                config.listen
            )));
        }
        let told = |error: io::Error| Error::invalid(format!("cannot listen at {}: {error}", config.listen));
        let listener = std::net::TcpListener::bind(config.listen).map_err(told)?;
        listener.set_nonblocking(true).map_err(told)?;
        let count = config.loops.max(1);
        let shared = Arc::new(Shared::new(database, config.clone())?);
        let (mut loops, mut wakers) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let one = Loop::new(&shared, &listener).map_err(told)?;
            wakers.push(Arc::clone(&one.waker));
            loops.push(one);
        }
        Ok(Self { shared, listener, loops, wakers })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap_or(self.shared.config.listen)
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper { shared: Arc::clone(&self.shared), wakers: self.wakers.clone() }
    }

    /// Answers until it is stopped; then syncs the database. An error is one of the loops' own: of sockets the
    /// connection ends, of the database a reply tells.
    pub fn run(self) -> Result<()> {
        let stopper = self.stopper();
        let Self { shared, listener, loops, .. } = self;
        let sweeper = crate::sweep::spawn(&shared);
        let threads: Vec<_> = loops
            .into_iter()
            .enumerate()
            .map(|(number, one)| {
                let stopper = stopper.clone();
                let run = move || {
                    let ended = one.run();
                    stopper.stop();
                    ended
                };
                thread::Builder::new().name(format!("forebay-loop-{number}")).spawn(run)
            })
            .collect();
        let mut ended = Ok(());
        for thread in threads {
            let outcome = thread.map(|thread| thread.join());
            let outcome = match outcome {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(io::Error::other("a loop has panicked")),
                Err(error) => {
                    stopper.stop();
                    Err(error)
                }
            };
            ended = ended.and(outcome);
        }
        drop(listener);
        ended = ended.and(sweeper.and_then(|sweeper| {
            sweeper.thread().unpark();
            sweeper.join().map_err(|_| io::Error::other("the sweeper has panicked"))
        }));
        shared.database.sync()?;
        ended.map_err(|error| Error::invalid(format!("the server ended: {error}")))
    }
}

/// A thread's connections.
struct Loop {
    shared: Arc<Shared>,
    poll: Poll,
    waker: Arc<Waker>,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Those that may have more than was looked at.
    ready: Vec<usize>,
    /// What is read comes here first.
    chunk: Box<[u8]>,
    /// In which second of the server it last looked for those that are silent.
    looked_at: u64,
}

/// Without anything to do a loop looks around so often.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
const EVENTS_MAX: usize = 1024;

impl Loop {
    fn new(shared: &Arc<Shared>, listener: &std::net::TcpListener) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let mut listener = TcpListener::from_std(listener.try_clone()?);
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let shared = Arc::clone(shared);
        Ok(Self {
            shared,
            poll,
            waker,
            listener,
            connections: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            chunk: vec![0; CHUNK_BYTES].into(),
            looked_at: 0,
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.shared.stopping.load(Ordering::SeqCst) {
            let pause = if self.ready.is_empty() { PAUSE } else { std::time::Duration::ZERO };
            match self.poll.poll(&mut events, Some(pause)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    WAKER => {}
                    LISTENER => self.accept(),
                    Token(number) => {
                        let number = number - FIRST;
                        if let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) {
                            connection.is_readable |=
                                event.is_readable() || event.is_read_closed() || event.is_error();
                            connection.is_writable |= event.is_writable();
                            self.ready.push(number);
                        }
                    }
                }
            }
            self.round();
            self.close_silent();
        }
        (0..self.connections.len()).for_each(|number| self.close(number));
        Ok(())
    }

    /// Takes all connections that wait.
    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => self.take(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Of one connection, or for a while: it comes again.
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, mut socket: mio::net::TcpStream) {
        let shared = &self.shared;
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        if shared.connections.load(Ordering::Relaxed) >= shared.config.connections_max {
            let _ = io::Write::write(&mut socket, b"-ERR max number of clients reached\r\n");
            return;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let interests = Interest::READABLE | Interest::WRITABLE;
        let _ = socket.set_nodelay(true);
        if self.poll.registry().register(&mut socket, Token(number + FIRST), interests).is_err() {
            self.free.push(number);
            return;
        }
        shared.connections.fetch_add(1, Ordering::Relaxed);
        self.connections[number] = Some(Connection::new(socket, shared));
    }

    fn close(&mut self, number: usize) {
        if let Some(mut connection) = self.connections[number].take() {
            connection.client.queue.leave(&self.shared);
            self.shared.buffers_bytes.fetch_sub(connection.counted_bytes, Ordering::Relaxed);
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            let _ = self.poll.registry().deregister(&mut connection.socket);
            self.free.push(number);
        }
    }

    /// Closes those that take none of their replies for too long. Looks at all of them, so once a second.
    fn close_silent(&mut self) {
        let now = self.shared.uptime_seconds();
        if std::mem::replace(&mut self.looked_at, now) == now {
            return;
        }
        let most = self.shared.config.silence_seconds_max;
        for number in 0..self.connections.len() {
            if self.connections[number].as_ref().is_some_and(|one| one.is_silent(now, most)) {
                self.close(number);
            }
        }
    }
}
