//! [`Server`]: a connection that asks for numbers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// A server that says nothing for so long is not there.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than all numbers take.
const REPLY_BYTES_MAX: usize = 256 << 20;

pub(super) struct Server {
    address: String,
    socket: BufReader<TcpStream>,
}

impl Server {
    pub(super) fn connect(
        address: &str,
        user: Option<&str>,
        password: Option<&str>,
    ) -> Result<Self, Failure> {
        let told = |error: std::io::Error| Failure::work(format!("no server at {address}: {error}"));
        let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
        for candidate in address.to_socket_addrs().map_err(told)? {
            match TcpStream::connect_timeout(&candidate, PATIENCE) {
                Ok(socket) => {
                    socket.set_read_timeout(Some(PATIENCE)).map_err(told)?;
                    let mut server = Self { address: address.into(), socket: BufReader::new(socket) };
                    if let Some(password) = password {
                        server.check_is_plain()?;
                        let words = [Some("AUTH"), user, Some(password)];
                        server.ask(&words.into_iter().flatten().collect::<Vec<_>>())?;
                    }
                    return Ok(server);
                }
                Err(error) => last = error,
            }
        }
        Err(told(last))
    }

    /// Makes sure that a server of the protocol listens there, and not one for TLS, before it is told a password.
    fn check_is_plain(&mut self) -> Result<(), Failure> {
        let told = |reason: &str| Failure::work(format!("{}: {reason}", self.address));
        let mut line = Vec::new();
        let asked = self.socket.get_mut().write_all(b"PING\r\n");
        let read = asked.and_then(|()| (&mut self.socket).take(4096).read_until(b'\n', &mut line));
        match read.is_ok() && (line == b"+PONG\r\n" || line.starts_with(b"-NOAUTH")) {
            true => Ok(()),
            false => Err(told(
                "no server answers there in the clear, and is told no password; `forebay top` knows no TLS",
            )),
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Its numbers of now.
    pub(super) fn stats<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let text = self.ask(&["FB.STATS"])?;
        serde_json::from_slice(&text).map_err(|error| {
            Failure::work(format!("{} is a server of another version: its numbers: {error}", self.address))
        })
    }

    /// What it answers: a text.
    fn ask(&mut self, words: &[&str]) -> Result<Vec<u8>, Failure> {
        let (address, name) = (self.address.clone(), words[0]);
        let told = |reason: String| Failure::work(format!("{address}: {name}: {reason}"));
        let mut request = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| request.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        let sent = self.socket.get_mut().write_all(request.as_bytes());
        sent.map_err(|error| told(error.to_string()))?;
        let mut line = Vec::new();
        let read = (&mut self.socket).take(4096).read_until(b'\n', &mut line);
        read.map_err(|error| told(error.to_string()))?;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        match text.split_at_checked(1) {
            Some(("+", rest)) => Ok(rest.into()),
            Some(("-", rest)) => Err(told(format!("the server says: {rest}"))),
            Some(("$", length)) => {
                let length = length.parse::<usize>().ok().filter(|length| *length <= REPLY_BYTES_MAX);
                let length = length.ok_or_else(|| told(format!("`{text}` is no answer")))?;
                let mut bytes = vec![0; length + 2];
                self.socket.read_exact(&mut bytes).map_err(|error| told(error.to_string()))?;
                bytes.truncate(length);
                Ok(bytes)
            }
            None => Err(told("the server has closed the connection".into())),
            _ => Err(told(format!("`{text}` is no answer of a server of `forebay serve`"))),
        }
    }
}
