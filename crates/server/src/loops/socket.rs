//! A socket of the net, or of this machine's files.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

/// See the module.
pub(super) enum Socket {
    Net(TcpStream),
    File(UnixStream),
}

impl Socket {
    /// Who is on the other side, if that has an address.
    pub(super) fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Net(socket) => socket.peer_addr().ok().map(|address| address.ip().to_canonical()),
            Self::File(_) => None,
        }
    }

    /// Sends what it is given at once.
    pub(super) fn send_at_once(&self) {
        if let Self::Net(socket) = self {
            let _ = socket.set_nodelay(true);
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Net(socket) => socket.shutdown(how),
            Self::File(socket) => socket.shutdown(how),
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Net(socket) => socket,
            Self::File(socket) => socket,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Net(socket) => socket.read(bytes),
            Self::File(socket) => socket.read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Net(socket) => socket.write(bytes),
            Self::File(socket) => socket.write(bytes),
        }
    }

    fn write_vectored(&mut self, bytes: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Net(socket) => socket.write_vectored(bytes),
            Self::File(socket) => socket.write_vectored(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.source().register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.source().reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.source().deregister(registry)
    }
}
