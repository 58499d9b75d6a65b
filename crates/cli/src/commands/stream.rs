//! `changes --stream` and `--listen`: the feed of changes for those who follow. The database is read beside whoever writes
//! it, so nobody who reads slowly, or not at all, keeps anybody from writing.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder};
use std::time::Duration;

use clap::Args;
use forebay::{Database, Error, requested_position};

use crate::args::Common;
use crate::args::parse::with_host;
use crate::clock::pause;
use crate::database::{Access, open};
use crate::failure::Failure;
use crate::screen;

/// It is looked again for what is new after so many moments.
const PAUSES: usize = 50;
/// A follower that does not ask, or takes nothing, for so long is gone; and so is a source that says nothing: it says
/// each second that it is there.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// So many followers are served at a time.
const FOLLOWERS_MAX: usize = 64;

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

pub(crate) fn run(path: &Path, since: u64, args: &StreamArgs, common: &Common) -> Result<(), Failure> {
    let db = open(path, common, Access::Read)?;
    if let Some(address) = &args.listen {
        return listen(&db, &with_host(address), common);
    }
    let mut stream = db.stream_changes(since, io::stdout().lock()).map_err(of_output)?;
    stream.advance().map_err(of_output)?;
    if args.on {
        let mut told = String::new();
        loop {
            wait();
            match db.refresh() {
                Err(error) if is_passing(&error) => tell_once(&error, &mut told),
                seen => {
                    seen?;
                    told.clear();
                }
            }
            stream.advance_if_new().map_err(of_output)?;
        }
    }
    stream.finish().map(drop).map_err(of_output)?;
    Ok(db.close()?)
}

/// Waits a second.
pub(crate) fn wait() {
    (0..PAUSES).for_each(|_| pause());
}

/// Whether looking again may mend it.
fn is_passing(error: &Error) -> bool {
    matches!(error, Error::Io { .. } | Error::TooManyFiles { .. }) && !error.is_not_found()
}

/// Tells what keeps this process from seeing what is new, unless that was told last.
fn tell_once(error: &Error, told: &mut String) {
    let reason = error.to_string();
    if reason != *told {
        tell!("forebay: {}; trying again", screen::message(&reason));
        *told = reason;
    }
}

/// Looks each second what is new, whoever follows: what the writer lets go of is not kept for this process.
fn look_on(db: &Database, is_seen: &AtomicBool) {
    let mut told = String::new();
    loop {
        let seen = db.refresh();
        is_seen.store(seen.is_ok(), Ordering::Relaxed);
        match seen {
            Ok(_) => told.clear(),
            Err(error) => tell_once(&error, &mut told),
        }
        wait();
    }
}

fn listen(db: &Database, address: &str, common: &Common) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::work(format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    if !common.is_quiet() {
        tell!("forebay: listening at {local}");
    }
    // Each follower that is served has one.
    let place = Arc::new(());
    let is_seen = &AtomicBool::new(true);
    thread::scope(|scope| {
        let looking = Builder::new().spawn_scoped(scope, move || look_on(db, is_seen));
        looking.map(drop).map_err(|error| Failure::work(format!("cannot look what is new: {error}")))?;
        for socket in listener.incoming() {
            // Without descriptors nobody comes in until somebody leaves.
            let Ok(socket) = socket else {
                wait();
                continue;
            };
            let from = socket.peer_addr().map_or_else(|_| "a follower".into(), |peer| peer.to_string());
            if Arc::strong_count(&place) > FOLLOWERS_MAX {
                tell!("forebay: {from}: {FOLLOWERS_MAX} are served already");
                continue;
            }
            let (taken, name) = (Arc::clone(&place), from.clone());
            let serving = Builder::new().spawn_scoped(scope, move || {
                let _taken = taken;
                if let Err(failure @ (Failure::Work(_) | Failure::Usage(_))) = serve(db, is_seen, &socket) {
                    tell!("forebay: {name}: {}", screen::message(&failure.to_string()));
                }
            });
            if let Err(error) = serving {
                tell!("forebay: {from}: cannot be served: {error}");
            }
        }
        Ok(())
    })
}

/// Has reads and writes of a socket end with an error where the other end does nothing for long.
pub(crate) fn bound_silence(socket: &TcpStream) -> io::Result<()> {
    socket.set_read_timeout(Some(SILENCE_MAX))?;
    socket.set_write_timeout(Some(SILENCE_MAX))
}

/// Serves a follower, for as long as it is seen what is new.
fn serve(db: &Database, is_seen: &AtomicBool, socket: &TcpStream) -> Result<(), Failure> {
    bound_silence(socket)
        .map_err(|error| Failure::work(format!("the socket cannot have timeouts: {error}")))?;
    let position = requested_position(socket)?;
    // It may have heard of more elsewhere, as a backup of just now has.
    db.refresh()?;
    let mut stream = db.stream_changes(position, socket).map_err(of_output)?;
    loop {
        stream.advance().map_err(of_output)?;
        wait();
        if !is_seen.load(Ordering::Relaxed) {
            // It comes again, and is told what there is then.
            return Ok(());
        }
    }
}

/// Whoever read the output may have gone away.
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
