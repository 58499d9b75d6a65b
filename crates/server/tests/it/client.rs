//! A server in this process, over files in memory, and a client that says what it gets.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use forebay::env::Env;
use forebay::env::fs::MemoryFs;
use forebay::{Database, Options};
use forebay_server::{Config, Server, Stopper};

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Got>),
}

impl Got {
    pub(crate) fn ok() -> Self {
        Self::Simple("OK".into())
    }

    pub(crate) fn bulk(text: &str) -> Self {
        Self::Bulk(text.as_bytes().to_vec())
    }
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) stopper: Stopper,
    /// It may end with an error: its files fail.
    fails: bool,
    thread: Option<JoinHandle<forebay::Result<()>>>,
}

impl Running {
    pub(crate) fn new(config: Config) -> Self {
        Self::of(Self::open(&Self::files()), config)
    }

    pub(crate) fn files() -> Env {
        Env::simulated(MemoryFs::new(), 1)
    }

    pub(crate) fn open(files: &Env) -> Database {
        Database::open("/db", Options::default().env(files.clone())).expect("it opens")
    }

    pub(crate) fn of(database: Database, config: Config) -> Self {
        let config = Config { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..config };
        Self::from_server(Server::bind(database, config).expect("it listens"))
    }

    pub(crate) fn from_server(server: Server) -> Self {
        let (address, stopper) = (server.address(), server.stopper());
        let metrics = server.metrics_address();
        Self { address, metrics, stopper, fails: false, thread: Some(std::thread::spawn(|| server.run())) }
    }

    pub(crate) fn failing(self) -> Self {
        let mut failing = self;
        failing.fails = true;
        failing
    }

    /// A client, once there is room for one: others may be about to go.
    pub(crate) fn client_within(&self, tries: u32) -> Client {
        for _ in 0..tries {
            let mut client = self.client();
            if client.socket.write_all(b"PING\r\n").is_ok()
                && client.told().is_some_and(|line| line == "+PONG")
            {
                return client;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no room for a client after {tries} tries");
    }

    pub(crate) fn client(&self) -> Client {
        let socket = TcpStream::connect(self.address).expect("it listens");
        // A test that hangs says where.
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
        Client { from: BufReader::new(socket.try_clone().expect("it is a socket")), socket }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            let ended = ended.expect("it runs").expect("no loop panics");
            assert!(self.fails || ended.is_ok(), "it ends in order: {ended:?}");
        }
    }
}

pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    from: BufReader<TcpStream>,
}

pub(crate) fn encode(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend(format!("${}\r\n", argument.len()).into_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

impl Client {
    pub(crate) fn ask(&mut self, line: &str) -> Got {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.ask_bytes(&words)
    }

    pub(crate) fn ask_bytes(&mut self, arguments: &[&[u8]]) -> Got {
        self.socket.write_all(&encode(arguments)).expect("it is there");
        self.read()
    }

    /// Asks several lines at once.
    pub(crate) fn ask_all(&mut self, lines: &[String]) -> Vec<Got> {
        let words = |line: &String| encode(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        self.socket.write_all(&lines.iter().flat_map(words).collect::<Vec<_>>()).expect("it is there");
        lines.iter().map(|_| self.read()).collect()
    }

    /// The same of a server that may go meanwhile: nothing then.
    pub(crate) fn try_all(&mut self, lines: &[String]) -> Option<Vec<Got>> {
        let words = |line: &String| encode(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        self.socket.write_all(&lines.iter().flat_map(words).collect::<Vec<_>>()).ok()?;
        let mut all = Vec::new();
        for _ in lines {
            if self.from.fill_buf().map_or(true, <[u8]>::is_empty) {
                // What came before is told.
                break;
            }
            all.push(self.read());
        }
        Some(all).filter(|all| !all.is_empty())
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.from.read_until(b'\n', &mut line).expect("a reply comes");
        assert!(line.ends_with(b"\r\n"), "a line has an end: {}", line.escape_ascii());
        String::from_utf8_lossy(&line[..line.len() - 2]).into_owned()
    }

    /// The next line, if there is one.
    fn told(&mut self) -> Option<String> {
        let mut line = String::new();
        self.from.read_line(&mut line).ok().filter(|bytes| *bytes > 0).map(|_| line.trim_end().into())
    }

    /// Whether there is yet another line.
    pub(crate) fn has_line(&mut self) -> bool {
        self.told().is_some()
    }

    /// The next reply.
    pub(crate) fn read(&mut self) -> Got {
        let line = self.line();
        let (mark, rest) = line.split_at(1);
        let count = || rest.parse::<i64>().expect("a number");
        match mark {
            "+" => Got::Simple(rest.into()),
            "-" => Got::Error(rest.into()),
            ":" => Got::Int(count()),
            "_" => Got::Null,
            "$" | "=" if count() < 0 => Got::Null,
            "$" | "=" => {
                let mut bytes = vec![0; count() as usize + 2];
                self.from.read_exact(&mut bytes).expect("a reply comes");
                bytes.truncate(bytes.len() - 2);
                Got::Bulk(bytes)
            }
            "*" if count() < 0 => Got::Null,
            "," => Got::bulk(rest),
            "*" | "~" | ">" => Got::Array((0..count()).map(|_| self.read()).collect()),
            "%" => Got::Array((0..2 * count()).map(|_| self.read()).collect()),
            other => panic!("{other} begins no reply"),
        }
    }

    /// Whether the server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.from.read(&mut [0; 1]) {
            Ok(bytes) => bytes == 0,
            // Nothing came in the time that a test waits.
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}
