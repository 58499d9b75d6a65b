//! Where a server listens, and whom it may listen to.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use forebay::{Error, Result};

use super::socket::Socket;
use crate::acl::Acl;
use crate::config::Config;

/// The most that a server has.
pub(super) const LISTENERS_MAX: usize = 3;

/// One place.
pub(super) enum Listener {
    /// An address; whether what comes there is encrypted.
    Net(TcpListener, bool),
    /// A file, with its number in the file system: another server may have put another one in its place.
    File(UnixListener, PathBuf, u64),
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::File(_, path, number) = self
            && std::fs::symlink_metadata(&*path).is_ok_and(|found| found.ino() == *number)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    /// All places of a server, of which the first is that of `listen`.
    pub(super) fn open_all(config: &Config, acl: &Acl) -> Result<Vec<Self>> {
        if config.tls_listen.is_some() && config.tls.is_none() {
            return Err(Error::invalid("listening for TLS needs a certificate and a key"));
        }
        let first = Self::open(config, acl, config.listen, config.is_encrypted())?;
        let second = config.tls_listen.map(|address| Self::open(config, acl, address, true)).transpose()?;
        let file = config.unix.as_ref().map(|path| {
            let told =
                |error: io::Error| Error::invalid(format!("cannot listen at {}: {error}", path.display()));
            open_file(path, config.unix_mode).map_err(told)
        });
        Ok(std::iter::once(first).chain(second).chain(file.transpose()?).collect())
    }

    fn open(config: &Config, acl: &Acl, address: SocketAddr, is_encrypted: bool) -> Result<Self> {
        if acl.default_user().is_open() && config.lets_strangers(address, is_encrypted) {
            return Err(Error::invalid(format!(
                "listening at {address} needs a password, users, or TLS with certificates of clients, as others than this machine \
                 reach it; give one, or listen at 127.0.0.1"
            )));
        }
        let told = |error: io::Error| Error::invalid(format!("cannot listen at {address}: {error}"));
        let socket = TcpListener::bind(address).map_err(told)?;
        socket.set_nonblocking(true).map_err(told)?;
        Ok(Self::Net(socket, is_encrypted))
    }

    /// Its address, and whether what comes there is encrypted.
    pub(super) fn address(&self) -> Option<(SocketAddr, bool)> {
        match self {
            Self::Net(socket, is_encrypted) => Some((socket.local_addr().ok()?, *is_encrypted)),
            Self::File(..) => None,
        }
    }
}

/// A socket at a path, in the place of one that nobody answers at. It is made where nobody else can come until it has its
/// rights.
fn open_file(path: &Path, mode: u32) -> io::Result<Listener> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::other(
                "something that is no socket is there; give another path, or remove it",
            ));
        }
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(io::Error::other("another server answers there")),
        },
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    let folder = parent.join(format!(".{}", std::process::id()));
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let made = folder.join("s");
    let bound = UnixListener::bind(&made).and_then(|socket| {
        socket.set_nonblocking(true)?;
        std::fs::set_permissions(&made, std::fs::Permissions::from_mode(mode))?;
        let number = std::fs::symlink_metadata(&made)?.ino();
        std::fs::rename(&made, path)?;
        Ok(Listener::File(socket, path.into(), number))
    });
    if bound.is_err() {
        let _ = std::fs::remove_file(&made);
    }
    let _ = std::fs::remove_dir(&folder);
    bound
}

/// The same in the events of a loop.
pub(super) enum Polled {
    Net(mio::net::TcpListener, bool),
    File(mio::net::UnixListener),
}

impl Polled {
    pub(super) fn new(listener: &Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Net(socket, is_encrypted) => {
                Self::Net(mio::net::TcpListener::from_std(socket.try_clone()?), *is_encrypted)
            }
            Listener::File(socket, ..) => Self::File(mio::net::UnixListener::from_std(socket.try_clone()?)),
        })
    }

    pub(super) fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Self::Net(socket, _) => socket,
            Self::File(socket) => socket,
        }
    }

    /// The next one, and whether it is to be encrypted.
    pub(super) fn accept(&self) -> io::Result<(Socket, bool)> {
        match self {
            Self::Net(socket, is_encrypted) => Ok((Socket::Net(socket.accept()?.0), *is_encrypted)),
            Self::File(socket) => Ok((Socket::File(socket.accept()?.0), false)),
        }
    }
}
