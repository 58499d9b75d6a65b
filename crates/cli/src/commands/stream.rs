//! `changes --stream` and `--listen`: the feed of changes for those who follow.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use clap::Args;
use forebay::{Database, Error, requested_position};

use crate::args::Common;
use crate::clock::pause;
use crate::database::{Access, open, options};
use crate::failure::Failure;
use crate::screen;

/// A database that another process has open is looked for again after so many moments.
const PAUSES: usize = 50;

#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    /// Write a stream of bytes to standard output, for `follow` or an archive
    #[arg(long, conflicts_with_all = ["table", "hex", "listen"])]
    stream: bool,
    /// Go on as commits come: look each second what is new
    #[arg(long, requires = "stream")]
    on: bool,
    /// Serve followers that connect to this port, or ADDRESS:PORT; the port alone is this machine's own. There is no
    /// password, and nothing is encrypted
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["table", "hex", "since"])]
    listen: Option<String>,
}

impl StreamArgs {
    /// Whether anything of it was asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        self.stream || self.listen.is_some()
    }
}

pub(crate) fn run(db: &Path, since: u64, args: &StreamArgs, common: &Common) -> Result<(), Failure> {
    match &args.listen {
        Some(address) => listen(db, &with_host(address), common),
        None if args.on => go_on(db, since, io::stdout().lock(), common),
        None => {
            let db = open(db, common, Access::Read)?;
            round(&db, since, io::stdout().lock())?;
            Ok(db.close()?)
        }
    }
}

/// A port alone is one of this machine.
pub(crate) fn with_host(address: &str) -> String {
    match address.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => address.to_string(),
    }
}

/// Writes what there is after a number, as a stream of its own. Returns the number of the last record.
fn round(db: &Database, since: u64, out: impl Write) -> Result<u64, Failure> {
    let mut stream = db.stream_changes(since, out).map_err(of_output)?;
    let position = stream.advance().map_err(of_output)?;
    stream.finish().map_err(of_output)?;
    Ok(position)
}

/// The same again and again. The database is opened anew each time: while it is open here, nobody can write to it.
fn go_on(path: &Path, since: u64, mut out: impl Write, common: &Common) -> Result<(), Failure> {
    let mut position = since;
    loop {
        match Database::open(path, options(common, Access::Read)) {
            Ok(db) => {
                position = round(&db, position, &mut out)?;
                db.close()?;
            }
            // Somebody writes to it.
            Err(Error::Locked { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        (0..PAUSES).for_each(|_| pause());
    }
}

fn listen(db: &Path, address: &str, common: &Common) -> Result<(), Failure> {
    // What is wrong with it is said before anybody comes.
    open(db, common, Access::Read)?.close()?;
    let failed = |error: io::Error| Failure::work(format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    if !common.is_quiet() {
        tell!("forebay: listening at {local}");
    }
    thread::scope(|scope| {
        for socket in listener.incoming().flatten() {
            scope.spawn(move || {
                let from = socket.peer_addr().map_or_else(|_| "a follower".into(), |peer| peer.to_string());
                if let Err(failure @ (Failure::Work(_) | Failure::Usage(_))) = serve(db, &socket, common) {
                    tell!("forebay: {from}: {}", screen::message(&failure.to_string()));
                }
            });
        }
    });
    Ok(())
}

fn serve(db: &Path, socket: &TcpStream, common: &Common) -> Result<(), Failure> {
    let position = requested_position(socket)?;
    go_on(db, position, socket, common)
}

/// Whoever read standard output may have gone away.
fn of_output(error: Error) -> Failure {
    match error {
        Error::Io {
            operation: "write",
            kind: io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset,
            ..
        } => Failure::OutputClosed,
        error => error.into(),
    }
}
