//! Those who follow this server: each has a thread, which tells it what is committed over the connection by which it came.
//!
//! **Invariant:** nobody who writes waits for a follower, and the server ends without one that takes nothing.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use forebay::{Error, Result};
use forebay_env::sync::Mutex;
use rustls::{ServerConnection, StreamOwned};

use crate::commands::{Client, Refusal};
use crate::held::Held;
use crate::shared::Shared;

/// The command by which they come.
pub(crate) const NAME: &str = "FB.REPLICATE";
/// So many are served at a time.
pub(crate) const FOLLOWERS_MAX: usize = 16;
/// One that takes nothing for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// What is written at a time, and what TLS keeps of it.
const HELD_BYTES: usize = 192 << 10;

/// A socket that no loop has any more.
pub(crate) enum Handed {
    Net(TcpStream),
    File(UnixStream),
}

impl Handed {
    /// Has it wait for what it is told, for a while.
    fn bound(&self) -> io::Result<()> {
        match self {
            Self::Net(socket) => {
                socket.set_nonblocking(false)?;
                socket.set_read_timeout(Some(SILENCE_MAX))?;
                socket.set_write_timeout(Some(SILENCE_MAX))
            }
            Self::File(socket) => {
                socket.set_nonblocking(false)?;
                socket.set_read_timeout(Some(SILENCE_MAX))?;
                socket.set_write_timeout(Some(SILENCE_MAX))
            }
        }
    }

    fn again(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Net(socket) => Self::Net(socket.try_clone()?),
            Self::File(socket) => Self::File(socket.try_clone()?),
        })
    }

    fn end(&self) {
        let _ = match self {
            Self::Net(socket) => socket.shutdown(Shutdown::Both),
            Self::File(socket) => socket.shutdown(Shutdown::Both),
        };
    }

    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Net(socket) => socket.peer_addr().ok(),
            Self::File(_) => None,
        }
    }
}

impl Read for Handed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Net(socket) => socket.read(bytes),
            Self::File(socket) => socket.read(bytes),
        }
    }
}

impl Write for Handed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Net(socket) => socket.write(bytes),
            Self::File(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A follower, as `INFO` tells of it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) address: Option<SocketAddr>,
    /// The number of the last record that it was told.
    pub(crate) position: u64,
}

/// One that was let in, and wants what was committed after a number. It has its place until it goes.
#[derive(Debug)]
pub(crate) struct Place {
    position: u64,
    count: Arc<AtomicUsize>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A connection that a loop gives away.
pub(crate) struct Given {
    pub(crate) socket: Handed,
    pub(crate) tls: Option<Box<ServerConnection>>,
    /// What it was answered, and has not taken.
    pub(crate) unsent: Vec<u8>,
    pub(crate) client: Client,
}

/// One that is served.
struct One {
    socket: Handed,
    position: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Followers {
    all: Mutex<Vec<One>>,
    count: Arc<AtomicUsize>,
}

impl Followers {
    /// Lets one in, if there is room.
    pub(crate) fn let_in(&self, position: u64) -> std::result::Result<Place, Refusal> {
        if self.count.fetch_add(1, Ordering::SeqCst) >= FOLLOWERS_MAX {
            self.count.fetch_sub(1, Ordering::SeqCst);
            return Err(format!("ERR {FOLLOWERS_MAX} followers are served already").into());
        }
        Ok(Place { position, count: Arc::clone(&self.count) })
    }

    /// Those that are served now.
    pub(crate) fn told(&self) -> Vec<Told> {
        let all = self.all.lock();
        let is_there = |one: &&One| !one.thread.is_finished();
        let told = |one: &One| Told {
            address: one.socket.address(),
            position: one.position.load(Ordering::Relaxed),
        };
        all.iter().filter(is_there).map(told).collect()
    }

    /// Serves one, on a thread of its own. Where it cannot be, the connection ends. Whoever calls it has counted that.
    pub(crate) fn serve(&self, shared: &Arc<Shared>, given: Given, place: Place) {
        let Ok(socket) = given.socket.bound().and_then(|()| given.socket.again()) else {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        let position = Arc::new(AtomicU64::new(place.position));
        let run = {
            let (shared, position) = (Arc::clone(shared), Arc::clone(&position));
            move || {
                let _leaves = Leaves(Arc::clone(&shared));
                // It tells the follower what is wrong; that comes again.
                let _ = serve(&shared, given, &place, &position);
            }
        };
        match thread::Builder::new().name("forebay-follower".into()).spawn(run) {
            Ok(thread) => {
                let mut all = self.all.lock();
                all.retain(|one| !one.thread.is_finished());
                all.push(One { socket, position, thread });
            }
            Err(_) => {
                shared.connections.fetch_sub(1, Ordering::Relaxed);
                socket.end();
            }
        }
    }

    /// Ends all of them, also those that take nothing.
    pub(crate) fn end(&self) {
        for one in std::mem::take(&mut *self.all.lock()) {
            one.socket.end();
            drop(one.thread.join());
        }
    }
}

/// Counts a connection no more, however its thread ends.
struct Leaves(Arc<Shared>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends a connection that others have, too, however it was served: who is at the other end is told at once.
struct Ends(Option<Handed>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.iter().for_each(Handed::end);
    }
}

/// Tells a follower what is committed, until it goes, its user does, or the server ends.
fn serve(shared: &Shared, given: Given, place: &Place, position: &AtomicU64) -> Result<()> {
    let Given { socket, tls, unsent, mut client } = given;
    let _held = Held::new(HELD_BYTES, &shared.buffers_bytes);
    let _ends = Ends(socket.again().ok());
    let mut out: Box<dyn Write> = match tls {
        Some(tls) => Box::new(StreamOwned::new(*tls, socket)),
        None => Box::new(socket),
    };
    let told = |error: io::Error| Error::invalid(format!("the follower is gone: {error}"));
    out.write_all(&unsent).map_err(told)?;
    let mut changes = shared.database.stream_changes(place.position, out)?;
    while !shared.stopping.load(Ordering::SeqCst) && client.is_still_there(shared) && client.may_have(NAME) {
        position.store(changes.advance()?, Ordering::Relaxed);
        if !changes.wait() {
            break;
        }
    }
    drop(changes.finish());
    Ok(())
}
