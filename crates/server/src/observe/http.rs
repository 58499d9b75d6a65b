//! A port of its own for whoever looks: `/`, a page; `/stats.json`; `/metrics`; `/healthz`. It reads and tells, and does
//! nothing else.
//!
//! Each connection is one request, on a thread of its own, of which there are few. What a program of this machine asks for in
//! the name of a page of somewhere else is refused, by the name that it knows the server by.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use forebay::{Error, Result};
use forebay_env::sync::RwLock;
use mio::{Events, Interest, Poll, Token, Waker};

use super::numbers;
use crate::config::Watchers;
use crate::shared::Shared;

const PAGE: &str = include_str!("page.html");
/// A request has no more than this, before it ends within that.
const REQUEST_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 48;
const PATIENCE: Duration = Duration::from_secs(2);
/// An answer has to be taken within this.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// So many are answered at a time; others are turned away.
const THREADS_MAX: usize = 8;

/// What is looked at, until the server stops.
type Watched = Arc<RwLock<Option<Arc<Shared>>>>;

/// What listens for them.
pub(crate) struct Port {
    shared: Arc<Shared>,
    watched: Watched,
    listener: TcpListener,
    poll: Poll,
    pub(crate) waker: Arc<Waker>,
    threads: Arc<AtomicUsize>,
}

impl Port {
    /// Listens, if the server was told where.
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Option<Self>> {
        let Some(address) = shared.config.metrics else { return Ok(None) };
        if !address.ip().is_loopback() && shared.config.watchers != Watchers::Anyone {
            return Err(Error::invalid(format!(
                "metrics at {address} would be shown to others than this machine; say `--metrics-for-anyone`, or listen at \
                 127.0.0.1"
            )));
        }
        let told =
            |error: io::Error| Error::invalid(format!("cannot listen at {address} for metrics: {error}"));
        Self::listen(shared, address).map(Some).map_err(told)
    }

    fn listen(shared: &Arc<Shared>, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), Token(0))?);
        let shared = Arc::clone(shared);
        let watched = Arc::new(RwLock::new(Some(Arc::clone(&shared))));
        Ok(Self { shared, watched, listener, poll, waker, threads: Arc::default() })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers until the server is stopped.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut polled = mio::net::TcpListener::from_std(self.listener.try_clone()?);
        self.poll.registry().register(&mut polled, Token(1), Interest::READABLE)?;
        let mut events = Events::with_capacity(8);
        while !self.shared.stopping.load(Ordering::SeqCst) {
            match self.poll.poll(&mut events, Some(Duration::from_secs(1))) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                polled => polled?,
            }
            while let Ok((socket, _)) = self.listener.accept() {
                self.take(socket);
            }
        }
        // Those who look meanwhile are waited for: the database is closed behind this, by whoever has it alone.
        *self.watched.write() = None;
        Ok(())
    }

    fn take(&self, socket: TcpStream) {
        let threads = Arc::clone(&self.threads);
        if threads.fetch_add(1, Ordering::Relaxed) >= THREADS_MAX {
            threads.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let place = Place(threads);
        let watched = Arc::clone(&self.watched);
        let run = move || {
            let _place = place;
            // Who does not take the answer has none.
            drop(answer(&watched, socket));
        };
        // Where there is no thread the place is free again.
        drop(thread::Builder::new().name("forebay-http".into()).spawn(run));
    }
}

/// One of the threads. It is free again however the answer ends.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is sent.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn new(status: &'static str, kind: &'static str, body: impl Into<String>) -> Self {
        Self { status, kind, body: body.into() }
    }

    fn refused(status: &'static str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", format!("{status}\n"))
    }
}

fn answer(watched: &Watched, mut socket: TcpStream) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    let Some(request) = request(&mut socket)? else { return Ok(()) };
    let answer = watched.read().as_ref().map(|shared| answer_to(shared, &request));
    let Some(Answer { status, kind, body }) = answer else { return Ok(()) };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'\r\n\r\n",
        body.len()
    );
    write(&mut socket, &[head.as_bytes(), body.as_bytes()].concat())?;
    socket.shutdown(Shutdown::Write)
}

/// Writes all of it: who takes a byte now and then does not keep a thread.
fn write(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let (begin, mut rest) = (Instant::now(), bytes);
    while !rest.is_empty() {
        let left = ANSWER_PATIENCE.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_write_timeout(Some(left))?;
        match socket.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The bytes of a request's head, once they are there; nothing where they do not come.
fn request(socket: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let (begin, mut bytes, mut chunk) = (Instant::now(), Vec::new(), [0; 2048]);
    loop {
        let left = PATIENCE.saturating_sub(begin.elapsed());
        if left.is_zero() || bytes.len() > REQUEST_BYTES_MAX {
            return Ok(None);
        }
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut chunk)? {
            0 => return Ok(None),
            read => bytes.extend_from_slice(&chunk[..read]),
        }
        if bytes.windows(4).any(|some| some == b"\r\n\r\n") {
            return Ok(Some(bytes));
        }
    }
}

fn answer_to(shared: &Arc<Shared>, request: &[u8]) -> Answer {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    if !parsed.parse(request).is_ok_and(|status| status.is_complete()) {
        return Answer::refused("400 Bad Request");
    }
    if parsed.method != Some("GET") {
        return Answer::refused("405 Method Not Allowed");
    }
    let host = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"));
    if shared.config.watchers == Watchers::ThisMachine
        && !host.is_some_and(|host| is_of_this_machine(host.value))
    {
        return Answer::refused("421 Misdirected Request");
    }
    let failed = || Answer::refused("500 Internal Server Error");
    match parsed.path.unwrap_or_default().split('?').next().unwrap_or_default() {
        "/" => Answer::new("200 OK", "text/html; charset=utf-8", PAGE),
        "/metrics" => numbers::metrics(shared).map_or_else(
            |_| failed(),
            |text| Answer::new("200 OK", "text/plain; version=0.0.4; charset=utf-8", text),
        ),
        "/stats.json" => numbers::json(shared)
            .map_or_else(|_| failed(), |text| Answer::new("200 OK", "application/json", text)),
        "/healthz" => match shared.is_failing.load(Ordering::Relaxed) {
            false => Answer::new("200 OK", "text/plain; charset=utf-8", "ok\n"),
            true => Answer::new("503 Service Unavailable", "text/plain; charset=utf-8", "writes fail\n"),
        },
        _ => Answer::refused("404 Not Found"),
    }
}

/// Whether a name is an address, or that of this machine: no name that somebody else gives.
fn is_of_this_machine(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_refused() {
        for host in ["localhost", "LOCALHOST:9100", "127.0.0.1:9100", "[::1]:9100", "10.0.0.7"] {
            assert!(is_of_this_machine(host.as_bytes()), "{host}");
        }
        for host in ["", "example.org", "localhost.example.org:9100", "127.0.0.1.example.org", "\u{e4}"] {
            assert!(!is_of_this_machine(host.as_bytes()), "{host}");
        }
        assert!(!is_of_this_machine(b"\xff"));
    }
}
