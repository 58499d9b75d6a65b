//! What a database gives to those who follow it.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use forebay_base::Result;

use crate::api::Database;
use crate::changes::{ChangeStream, serve};
use crate::context::refuse_guests;
use crate::versions::Versions;

impl Database {
    /// Keeps so much of the log for its [changes](Self::changes) from now on, as [`Options::keep_changes`] does at an
    /// opening. The database keeps this number. With a lower one what is too much goes at once.
    ///
    /// [`Options::keep_changes`]: crate::Options::keep_changes
    pub fn keep_changes(&self, bytes: u64) -> Result<()> {
        refuse_guests()?;
        self.engine().context.log()?;
        self.engine().versions.keep_changes(bytes)
    }

    /// How much of the log is kept for its changes.
    pub fn kept_changes_bytes(&self) -> u64 {
        self.engine().versions.lock().feed.keep_bytes
    }

    /// The changes after a number as a stream of bytes, for a [`Follower`](crate::Follower) or an archive: each
    /// [`advance`](ChangeStream::advance) writes what was committed since the one before. It has whole commits, and all
    /// that is needed to make their tables elsewhere; what comes in by ingest is not in it, and ends it for whoever has not
    /// got that otherwise.
    ///
    /// ```no_run
    /// # fn main() -> forebay::Result<()> {
    /// # let db = forebay::Database::open("users.db", forebay::Options::default())?;
    /// let mut stream = db.stream_changes(0, std::io::stdout())?;
    /// loop {
    ///     stream.advance()?;
    ///     if !stream.wait() {
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream_changes<W: Write>(&self, since: u64, out: W) -> Result<ChangeStream<W>> {
        refuse_guests()?;
        ChangeStream::begin(&self.engine().versions, since, out)
    }

    /// What serves followers, on threads of their own. Let their sockets have timeouts: see [`ChangeServer::serve`].
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = forebay::Database::open("users.db", forebay::Options::default().keep_changes(1 << 30))?;
    /// let (server, listener) = (db.change_server(), std::net::TcpListener::bind("127.0.0.1:7070")?);
    /// std::thread::spawn(move || {
    ///     let silence_max = Some(std::time::Duration::from_secs(30));
    ///     for socket in listener.incoming().flatten() {
    ///         let server = server.clone();
    ///         let bounded = socket.set_read_timeout(silence_max).and(socket.set_write_timeout(silence_max));
    ///         std::thread::spawn(move || bounded.is_ok().then(|| server.serve(socket)));
    ///     }
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn change_server(&self) -> ChangeServer {
        ChangeServer { versions: Arc::clone(&self.engine().versions) }
    }
}

/// Serves the changes of a database to those who follow it: see [`Database::change_server`]. It does not keep the database
/// open.
#[derive(Clone)]
pub struct ChangeServer {
    versions: Arc<Versions>,
}

impl ChangeServer {
    /// Serves one follower over a socket, or whatever else goes both ways, from where it says that it is, and goes on as
    /// commits come: the other end of [`Follower::follow`](crate::Follower::follow). Returns once the database is closed; an
    /// error tells that the follower is gone, or cannot go on. There is no password, and nothing is encrypted.
    ///
    /// A socket needs timeouts for reads and for writes: while a follower that is there and takes nothing is written to,
    /// this waits, also where the database is closed, and holds write buffers and log segments of that moment.
    pub fn serve(&self, stream: impl Read + Write) -> Result<()> {
        refuse_guests()?;
        serve(&self.versions, stream)
    }
}

impl fmt::Debug for ChangeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeServer")
    }
}
