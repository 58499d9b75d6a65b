//! A socket of the net, or of this machine's files.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};

use crate::replication::Handed;

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

    pub(super) fn is_of_net(&self) -> bool {
        matches!(self, Self::Net(_))
    }

    /// Whence it comes, and where to, for people.
    pub(super) fn ends(&self) -> (String, String) {
        match self {
            Self::Net(socket) => {
                let [peer, local] = [socket.peer_addr(), socket.local_addr()]
                    .map(|end| end.map_or_else(|_| "?:0".into(), |end| end.to_string()));
                (peer, local)
            }
            Self::File(socket) => {
                let local = socket.local_addr().ok();
                let path = local.and_then(|local| Some(local.as_pathname()?.display().to_string()));
                let path = format!("{}:0", path.unwrap_or_else(|| "unix".into()));
                (path.clone(), path)
            }
        }
    }

    /// Has the system ask the other side, behind so many seconds of silence, whether it is still there.
    pub(super) fn keep_alive(&self, seconds: u64) {
        if let (Self::Net(socket), 1..) = (self, seconds) {
            let time = Duration::from_secs(seconds);
            // Some thrice, a third as long apart, as Redis does.
            let interval = (time / 3).max(Duration::from_secs(1));
            let asks = TcpKeepalive::new().with_time(time).with_interval(interval).with_retries(3);
            let _ = SockRef::from(socket).set_tcp_keepalive(&asks);
        }
    }

    /// Sends what it is given at once.
    pub(super) fn send_at_once(&self) {
        if let Self::Net(socket) = self {
            let _ = socket.set_nodelay(true);
        }
    }

    /// The same outside of a loop.
    pub(super) fn handed(self) -> Handed {
        match self {
            Self::Net(socket) => Handed::Net(socket.into()),
            Self::File(socket) => Handed::File(std::os::fd::OwnedFd::from(socket).into()),
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
