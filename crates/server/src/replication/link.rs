//! The connection of a follower to its source: plain, or by TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay::{Error, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::resp::encoded;
use crate::tls::{certificates, provider, roots};

/// So long the source may take to be there, and to answer.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// A read waits so long at a time: then it is seen whether the server is to end.
pub(super) const READ_INTERVAL: Duration = Duration::from_millis(100);
/// A line that the source answers has at most so many bytes.
const LINE_BYTES_MAX: usize = 4096;

/// How the source is known, and shown who asks.
#[derive(Clone, Debug)]
pub struct SourceTls {
    /// Who vouches for the source, in PEM.
    pub ca: PathBuf,
    /// The certificate that the source is shown, and its key, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// Whom a server follows.
#[derive(Clone, Debug)]
pub struct Source {
    /// A name or an address.
    pub host: String,
    /// Its port of Redis's protocol.
    pub port: u16,
    /// The user there, and the password; `default` where there is a password alone.
    pub user: Option<String>,
    /// The same.
    pub password: Option<String>,
    /// Plain without.
    pub tls: Option<SourceTls>,
}

/// What bytes go by, both ways.
pub(super) trait Both: Read + Write + Send {}

impl<T: Read + Write + Send> Both for T {}

fn wrong(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

impl SourceTls {
    fn config(&self) -> Result<ClientConfig> {
        let told = |error: rustls::Error| Error::invalid(format!("{}: {error}", self.ca.display()));
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(told)?
            .with_root_certificates(roots(&self.ca)?);
        let Some((certificate, key)) = &self.certificate else { return Ok(builder.with_no_client_auth()) };
        let private = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| Error::invalid(format!("{}: no private key in PEM: {error}", key.display())))?;
        builder.with_client_auth_cert(certificates(certificate)?, private).map_err(|error| {
            Error::invalid(format!("{} and {}: {error}", certificate.display(), key.display()))
        })
    }
}

impl Source {
    /// Whether its files are good, and its name one.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(tls) = &self.tls else { return Ok(()) };
        self.name()?;
        tls.config().map(drop)
    }

    fn name(&self) -> Result<ServerName<'static>> {
        ServerName::try_from(self.host.clone())
            .map_err(|_| Error::invalid(format!("`{}` is no name that a certificate could have", self.host)))
    }

    /// Connects, says who it is, and has the source send what was committed after a number.
    pub(super) fn ask(&self, position: u64) -> Result<Box<dyn Both>> {
        let told = |error: io::Error| Error::invalid(format!("{}:{}: {error}", self.host, self.port));
        let mut stream = self.connect().map_err(told)?;
        let mut lines = Vec::new();
        if let Some(password) = &self.password {
            let user = self.user.as_deref().unwrap_or("default");
            lines.push(encoded(&[b"AUTH", user.as_bytes(), password.as_bytes()]));
        }
        lines.push(encoded(&[b"FB.REPLICATE", position.to_string().as_bytes()]));
        for line in lines {
            stream.write_all(&line).and_then(|()| stream.flush()).map_err(told)?;
            let answer = read_line(&mut *stream).map_err(told)?;
            if answer != "+OK" {
                let refused = answer.strip_prefix('-').unwrap_or(&answer);
                return Err(Error::invalid(format!("{}:{} answers: {refused}", self.host, self.port)));
            }
        }
        Ok(stream)
    }

    fn connect(&self) -> io::Result<Box<dyn Both>> {
        let mut outcome = Err(io::Error::new(ErrorKind::NotFound, "the name has no address"));
        for address in (&*self.host, self.port).to_socket_addrs()? {
            outcome = TcpStream::connect_timeout(&address, CONNECT_MAX);
            if outcome.is_ok() {
                break;
            }
        }
        let socket = outcome?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(READ_INTERVAL))?;
        socket.set_write_timeout(Some(CONNECT_MAX))?;
        let Some(tls) = &self.tls else { return Ok(Box::new(socket)) };
        let told = |error: Error| wrong(error.to_string());
        let (config, name) = (tls.config().map_err(told)?, self.name().map_err(told)?);
        let mut connection =
            ClientConnection::new(Arc::new(config), name).map_err(|error| wrong(error.to_string()))?;
        // What comes between two reads may take longer than one waits from then on.
        let mut socket = socket;
        socket.set_read_timeout(Some(CONNECT_MAX))?;
        let deadline = Instant::now() + CONNECT_MAX;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
            in_time(deadline)?;
        }
        socket.set_read_timeout(Some(READ_INTERVAL))?;
        Ok(Box::new(StreamOwned::new(connection, socket)))
    }
}

/// An error once it is later than that: who sends a byte now and then holds nobody for long.
fn in_time(deadline: Instant) -> io::Result<()> {
    if Instant::now() < deadline { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
}

/// Reads up to the end of a line, and no further.
fn read_line(from: &mut dyn Both) -> io::Result<String> {
    let (mut line, deadline) = (Vec::new(), Instant::now() + CONNECT_MAX);
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        match from.read(&mut byte) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted || is_pause(&error) => {}
            Err(error) => return Err(error),
        }
        in_time(deadline)?;
        if line.len() > LINE_BYTES_MAX {
            return Err(wrong("its answer is too long: is it a server of Forebay?".into()));
        }
    }
    line.truncate(line.len() - 2);
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Whether nothing has come yet.
pub(super) fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
