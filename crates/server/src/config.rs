//! What a server is told.

use std::net::SocketAddr;

use forebay::Durability;

/// How a server listens, and what it allows.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens. Beyond loopback it wants a password.
    pub listen: SocketAddr,
    /// Threads that have connections.
    pub loops: usize,
    /// What a reply says to have survived, for connections that do not ask for more by `FB.DURABILITY`.
    pub durability: Durability,
    /// What `AUTH` asks for; none where empty.
    pub password: Option<String>,
    /// The most connections at a time.
    pub connections_max: usize,
    /// What all connections may keep of requests and replies together, in bytes.
    pub buffers_bytes_max: usize,
    /// The longest argument of a request, in bytes: not beyond what a value may have.
    pub argument_bytes_max: usize,
    /// What one reply may have, and what one command may look through to write, in bytes: those for whole containers are
    /// refused beyond.
    pub reply_bytes_max: usize,
    /// A connection is closed that has taken nothing of its replies for so long.
    pub silence_seconds_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 6379)),
            loops: 1,
            durability: Durability::Os,
            password: None,
            connections_max: 10_000,
            buffers_bytes_max: 256 << 20,
            argument_bytes_max: 64 << 20,
            reply_bytes_max: 64 << 20,
            silence_seconds_max: 60,
        }
    }
}
