//! Loops: threads that have connections, and take turns.

mod connection;
mod doors;
mod listeners;
mod requests;
mod round;
mod rows;
mod socket;
mod stopper;
mod stream;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use forebay::{Database, Error, Follower, Result};
use mio::{Events, Interest, Poll, Token};

use crate::config::Config;
use crate::jobs::WORKERS;
use crate::observe::Sampler;
use crate::observe::http::Port;
use crate::shared::Shared;
use crate::tls::Certificates;
use connection::{CHUNK_BYTES, Connection};
use doors::{Door, connections_max};
use listeners::{LISTENERS_MAX, Listener, Polled};
use stopper::Ends;

pub use stopper::Stopper;

const WAKER: Token = Token(0);
/// Listeners have the numbers from here on,
const LISTENER: usize = 1;
/// and connections from here.
const FIRST: usize = LISTENER + LISTENERS_MAX;

/// A server that listens, and has not begun to answer.
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
    /// For those who look.
    port: Option<Port>,
    loops: Vec<Loop>,
    doors: Arc<[Door]>,
}

impl Server {
    /// Listens. Keys of the databases that `SELECT` names are in the tables `0` to `15`. Where that fails, a database that
    /// was just made, and in which nothing is, goes again.
    pub fn bind(database: Database, config: Config) -> Result<Self> {
        let is_empty = database.tables().is_empty() && database.last_sequence() == 0;
        let database = Arc::new(database);
        let bound = Self::open(Arc::clone(&database), Config { source: None, ..config }, None);
        bound.inspect_err(|_| {
            // What failed before is told.
            let _ = Arc::into_inner(database).filter(|_| is_empty).map(Database::take_back);
        })
    }

    /// The same of one that follows [`Config::source`], and takes no writes until it is promoted.
    pub fn follow(follower: Follower, config: Config) -> Result<Self> {
        if config.source.is_none() {
            return Err(Error::invalid("a server that follows needs a source"));
        }
        Self::open(follower.share(), config, Some(follower))
    }

    fn open(database: Arc<Database>, config: Config, follower: Option<Follower>) -> Result<Self> {
        let listen = config.listen;
        let told = |error: io::Error| Error::invalid(format!("cannot listen at {listen}: {error}"));
        let config = Config { connections_max: config.connections_max.min(connections_max()), ..config };
        let polls =
            (0..config.loops.max(1)).map(|_| Poll::new()).collect::<io::Result<Vec<_>>>().map_err(told)?;
        let doors = polls.iter().map(Door::new).collect::<io::Result<Arc<[Door]>>>().map_err(told)?;
        let shared = Arc::new(Shared::new(database, config, follower)?);
        let listeners = Listener::open_all(&shared.config, &shared.acl)?;
        let one = |(number, poll)| Loop::new(&shared, &listeners, poll, Arc::clone(&doors), number);
        let loops = polls.into_iter().enumerate().map(one).collect::<io::Result<_>>().map_err(told)?;
        let port = Port::open(&shared)?;
        Ok(Self { shared, listeners, port, loops, doors })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listeners[0].address().map_or(self.shared.config.listen, |(address, _)| address)
    }

    /// Where it listens for TLS besides.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.listeners.get(1)?.address().map(|(address, _)| address)
    }

    /// Its certificates, which can be read again.
    pub fn certificates(&self) -> Option<Certificates> {
        self.shared.tls.as_ref().map(|tls| Certificates(Arc::clone(tls)))
    }

    /// Where it can be looked at.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.port.as_ref()?.address()
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper::new(&self.shared.stopping, &self.doors, self.port.as_ref().map(|port| &port.waker))
    }

    /// Answers until it is stopped; then closes the database. An error is one of the loops' own, or of that: of sockets
    /// the connection ends, of the database a reply tells.
    pub fn run(self) -> Result<()> {
        let stopper = self.stopper();
        let Self { shared, listeners, port, loops, .. } = self;
        let syncer = crate::syncs::spawn(&shared)
            .map_err(|error| Error::invalid(format!("cannot begin to answer: {error}")))?;
        let watched =
            port.map(|port| thread::Builder::new().name("forebay-metrics".into()).spawn(move || port.run()));
        let feeds = crate::feeds::spawn(&shared);
        let following = crate::replication::spawn(&shared);
        let sweeper = crate::sweep::spawn(&shared);
        let threads: Vec<_> = loops
            .into_iter()
            .enumerate()
            .map(|(number, one)| {
                let ends = Ends(stopper.clone());
                let run = move || {
                    let _ends = ends;
                    one.run()
                };
                thread::Builder::new().name(format!("forebay-loop-{number}")).spawn(run)
            })
            .collect();
        let workers: Vec<_> = (0..WORKERS).map(|number| work(&shared, number)).collect();
        let mut ended = Ok(());
        for thread in threads {
            let outcome = match thread.map(thread::JoinHandle::join) {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(io::Error::other("a loop has panicked")),
                Err(error) => Err(error),
            };
            ended = ended.and(outcome);
        }
        shared.jobs.close();
        shared.syncs.close();
        drop(syncer.join());
        workers.into_iter().flatten().for_each(|worker| drop(worker.join()));
        // Without it nobody can look, and the server goes on.
        watched.into_iter().flatten().for_each(|watched| drop(watched.join()));
        drop(listeners);
        shared.followers.end();
        ended = ended.and(following.and_then(|following| match following.map(thread::JoinHandle::join) {
            Some(Err(_)) => Err(io::Error::other("the thread that follows has panicked")),
            _ => Ok(()),
        }));
        shared.feeds.wake();
        ended = ended.and(feeds.and_then(|feeds| {
            feeds.join().map_err(|_| io::Error::other("the thread of the feeds has panicked"))
        }));
        ended = ended.and(sweeper.and_then(|sweeper| {
            sweeper.thread().unpark();
            sweeper.join().map_err(|_| io::Error::other("the sweeper has panicked"))
        }));
        let database = Arc::clone(&shared.database);
        drop(shared);
        match Arc::try_unwrap(database) {
            Ok(database) => database.close()?,
            Err(database) => database.sync()?,
        }
        ended.map_err(|error| Error::invalid(format!("the server ended: {error}")))
    }
}

/// A thread that does what takes long. Without any such commands wait for ever, and the loops go on.
fn work(shared: &Arc<Shared>, number: usize) -> Option<thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new().name(format!("forebay-job-{number}")).spawn(move || shared.jobs.run(&shared)).ok()
}

/// A thread's connections.
struct Loop {
    shared: Arc<Shared>,
    poll: Poll,
    listeners: Vec<Polled>,
    /// Where others hand connections in, of all loops.
    doors: Arc<[Door]>,
    number: usize,
    /// Somebody may wait to be let in, though no event says so.
    is_deaf: bool,
    /// Nothing more is read.
    is_ending: bool,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Those that may have more than was looked at.
    ready: Vec<usize>,
    /// Those that wait for a job.
    working: Vec<usize>,
    /// Those that wait for the disk.
    syncing: Vec<usize>,
    /// Those that wait until a pause is over.
    paused: Vec<usize>,
    /// Until when connections wait that wait for something to take, with their numbers.
    deadlines: BTreeSet<(Instant, usize)>,
    /// How many turns there were.
    turns: u64,
    /// Which requests are looked at for hot keys.
    sampler: Sampler,
    /// What is read comes here first.
    chunk: Box<[u8]>,
    /// In which second of the server it last looked for those that are silent.
    looked_at: u64,
}

/// Without anything to do a loop looks around so often.
const PAUSE: Duration = Duration::from_secs(1);
/// A loop that ends waits so long for clients to take what they asked.
const ENDING_MAX: Duration = Duration::from_secs(5);
const ENDING_PAUSE: Duration = Duration::from_millis(10);
const EVENTS_MAX: usize = 1024;

impl Loop {
    fn new(
        shared: &Arc<Shared>,
        listeners: &[Listener],
        poll: Poll,
        doors: Arc<[Door]>,
        number: usize,
    ) -> io::Result<Self> {
        let mut listeners = listeners.iter().map(Polled::new).collect::<io::Result<Vec<_>>>()?;
        for (number, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(listener.source(), Token(LISTENER + number), Interest::READABLE)?;
        }
        Ok(Self {
            shared: Arc::clone(shared),
            poll,
            listeners,
            doors,
            number,
            is_deaf: false,
            is_ending: false,
            connections: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            working: Vec::new(),
            syncing: Vec::new(),
            paused: Vec::new(),
            deadlines: BTreeSet::new(),
            turns: 0,
            sampler: Sampler::new(shared.random(u64::MAX)),
            chunk: vec![0; CHUNK_BYTES].into(),
            looked_at: 0,
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.shared.stopping.load(Ordering::SeqCst) {
            let pause = if self.ready.is_empty() { self.pause() } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(pause)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    WAKER => self.take_handed(),
                    Token(number) if number < FIRST => self.accept(number - LISTENER),
                    Token(number) => self.note(number - FIRST, event),
                }
            }
            self.collect();
            self.take_woken();
            self.time_out();
            self.resume();
            self.round();
            self.look_around();
        }
        self.answer_the_rest(&mut events);
        (0..self.connections.len()).for_each(|number| self.close(number));
        Ok(())
    }

    fn note(&mut self, number: usize, event: &mio::event::Event) {
        if let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) {
            connection.is_gone |= event.is_error() || event.is_write_closed();
            connection.is_read_to_end |= event.is_read_closed() || event.is_error();
            connection.is_readable |= event.is_readable() || connection.is_read_to_end;
            connection.is_writable |= event.is_writable();
            // Nobody is there to take what it waits for.
            let waits = connection.client.blocked.is_some() || connection.is_paused;
            connection.is_over |= connection.is_read_to_end && waits;
            self.ready.push(number);
        }
    }

    /// Answers what was read of requests, to whoever takes that, and reads no more.
    fn answer_the_rest(&mut self, events: &mut Events) {
        let begun = Instant::now();
        self.is_ending = true;
        loop {
            self.connections.iter_mut().flatten().for_each(|connection| {
                (connection.held_until, connection.is_paused) = (None, false);
            });
            self.collect();
            let waits = |found: &Connection| {
                let has_more = found.has_more || !found.waiting.is_empty();
                has_more && found.client.blocked.is_none() || found.has_replies()
            };
            let all = self.connections.iter().enumerate();
            self.ready = all.filter(|(_, one)| one.as_ref().is_some_and(waits)).map(|(at, _)| at).collect();
            if self.ready.is_empty() || begun.elapsed() > ENDING_MAX {
                return;
            }
            self.round();
            // Who takes nothing now may do so soon.
            if self.poll.poll(events, Some(ENDING_PAUSE)).is_ok() {
                events.iter().filter(|event| event.token().0 >= FIRST).for_each(|event| {
                    self.note(event.token().0 - FIRST, event);
                });
            }
        }
    }

    fn close(&mut self, number: usize) {
        if let Some(mut connection) = self.connections[number].take() {
            connection.client.leave(&self.shared);
            if let Some(at) = connection.deadline {
                self.deadlines.remove(&(at, number));
            }
            connection.job.iter().for_each(|job| job.leave());
            self.shared.buffers_bytes.fetch_sub(connection.counted_bytes, Ordering::Relaxed);
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            let _ = self.poll.registry().deregister(&mut connection.stream.socket);
            connection.stream.finish();
            if self.is_ending {
                connection.say_goodbye(&mut self.chunk);
            }
            self.free.push(number);
        }
    }
}
