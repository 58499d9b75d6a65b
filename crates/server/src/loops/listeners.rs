//! Where a server listens, and whom it may listen to.

use std::io;
use std::net::{SocketAddr, TcpListener};

use forebay::{Error, Result};

use crate::config::Config;

/// The most that a server has.
pub(super) const LISTENERS_MAX: usize = 2;

/// One place.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) is_encrypted: bool,
}

impl Listener {
    /// All places of a server, of which the first is that of `listen`.
    pub(super) fn open_all(config: &Config) -> Result<Vec<Self>> {
        if config.tls_listen.is_some() && config.tls.is_none() {
            return Err(Error::invalid("listening for TLS needs a certificate and a key"));
        }
        let first = Self::open(config, config.listen, config.tls.is_some() && config.tls_listen.is_none())?;
        let second = config.tls_listen.map(|address| Self::open(config, address, true)).transpose()?;
        Ok(std::iter::once(first).chain(second).collect())
    }

    fn open(config: &Config, address: SocketAddr, is_encrypted: bool) -> Result<Self> {
        let is_asked = config.password.is_some()
            || is_encrypted && config.tls.as_ref().is_some_and(crate::TlsFiles::knows_clients);
        if !is_asked && !address.ip().is_loopback() {
            return Err(Error::invalid(format!(
                "listening at {address} needs a password, or TLS with certificates of clients, as others than this machine \
                 reach it; give one, or listen at 127.0.0.1"
            )));
        }
        let told = |error: io::Error| Error::invalid(format!("cannot listen at {address}: {error}"));
        let socket = TcpListener::bind(address).map_err(told)?;
        socket.set_nonblocking(true).map_err(told)?;
        Ok(Self { socket, is_encrypted })
    }
}

/// The same in the events of a loop.
pub(super) struct Polled {
    pub(super) socket: mio::net::TcpListener,
    pub(super) is_encrypted: bool,
}

impl Polled {
    pub(super) fn new(listener: &Listener) -> io::Result<Self> {
        let socket = mio::net::TcpListener::from_std(listener.socket.try_clone()?);
        Ok(Self { socket, is_encrypted: listener.is_encrypted })
    }
}
