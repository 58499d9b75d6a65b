//! What a server is told.

use std::net::SocketAddr;
use std::path::PathBuf;

use std::sync::Arc;

use forebay::Durability;

use crate::replication::Source;
use crate::tls::TlsFiles;

/// Who may look at what the server does, which needs no password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watchers {
    /// Programs of this machine.
    ThisMachine,
    /// Whoever reaches it.
    Anyone,
}

/// Whom a server tells what those should know who run it.
#[derive(Clone)]
pub struct Teller(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for Teller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Teller")
    }
}

/// How a server listens, and what it allows.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens, by TLS where there are certificates and no `tls_listen`. Beyond loopback it wants a password, or
    /// certificates of clients.
    pub listen: SocketAddr,
    /// Where it listens for TLS besides.
    pub tls_listen: Option<SocketAddr>,
    /// A socket in the file system, where it listens besides.
    pub unix: Option<PathBuf>,
    /// Who may use that: the file's rights.
    pub unix_mode: u32,
    /// Certificates.
    pub tls: Option<TlsFiles>,
    /// Threads that have connections.
    pub loops: usize,
    /// What a reply says to have survived, for connections that do not ask for more by `FB.DURABILITY`.
    pub durability: Durability,
    /// A password of the user `default`; where nobody gives it one, none is asked for.
    pub password: Option<String>,
    /// The file of users; without there is one, who may do all.
    pub acl_file: Option<PathBuf>,
    /// The most connections at a time.
    pub connections_max: usize,
    /// What all connections may keep of requests and replies together, in bytes.
    pub buffers_bytes_max: usize,
    /// The longest argument of a request, in bytes: not beyond what a value may have.
    pub argument_bytes_max: usize,
    /// Values from this length on, in bytes, stand apart from their keys in tables that the server makes: they are written
    /// once, and merges hold none of them. `None` for an encrypted database, which keeps values with their keys.
    pub apart_bytes_min: Option<u32>,
    /// The folder in which `FB.CHECKPOINT` makes copies; nowhere without.
    pub checkpoints: Option<PathBuf>,
    /// Where it can be looked at by HTTP; nowhere without. Beyond loopback only for [`Watchers::Anyone`].
    pub metrics: Option<SocketAddr>,
    /// Who may look.
    pub watchers: Watchers,
    /// What takes longer, in microseconds, stands in the slow log.
    pub slow_microseconds: u64,
    /// Of which kinds of writes subscribers are told, by letters as in Redis; of none where empty.
    pub events: String,
    /// Whom it follows, where [`Server::follow`](crate::Server::follow) makes it.
    pub source: Option<Source>,
    /// Whom it tells how following goes.
    pub teller: Option<Teller>,
    /// A connection is closed that has taken nothing of its replies for so long.
    pub silence_seconds_max: u64,
    /// After so long without a word the system asks whether the other side of a connection is still there; never, where 0.
    pub keepalive_seconds: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 6379)),
            tls_listen: None,
            unix: None,
            unix_mode: 0o700,
            tls: None,
            loops: 1,
            durability: Durability::Os,
            password: None,
            acl_file: None,
            connections_max: 10_000,
            buffers_bytes_max: 256 << 20,
            argument_bytes_max: 64 << 20,
            apart_bytes_min: Some(64 << 10),
            checkpoints: None,
            metrics: None,
            watchers: Watchers::ThisMachine,
            slow_microseconds: 10_000,
            events: String::new(),
            source: None,
            teller: None,
            silence_seconds_max: 60,
            keepalive_seconds: 300,
        }
    }
}

impl Config {
    /// Tells those who run the server.
    pub(crate) fn tell(&self, text: &str) {
        self.teller.iter().for_each(|teller| (teller.0)(text));
    }

    /// Whether others than this machine come to an address, and are asked for no certificate.
    pub(crate) fn lets_strangers(&self, address: SocketAddr, is_encrypted: bool) -> bool {
        let knows_clients = is_encrypted && self.tls.as_ref().is_some_and(TlsFiles::knows_clients);
        !address.ip().is_loopback() && !knows_clients
    }

    /// Whether `listen` is for TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some() && self.tls_listen.is_none()
    }

    /// What one reply may have, and what one command may look through to write, in bytes: those for whole containers are
    /// refused beyond. A reply's memory may be twice as long, and others want some.
    pub(crate) fn reply_bytes_max(&self) -> usize {
        self.buffers_bytes_max / 4
    }
}
