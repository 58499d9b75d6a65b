//! `follow`: a database that takes in what another one has committed.

use std::net::TcpStream;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay::{Applied, Error, Follower, StreamEnd, Until};
use serde_json::{Value, json};

use crate::args::moment::parse_until;
use crate::args::parse::with_host;
use crate::args::{Common, Reading};
use crate::commands::stream::{bound_silence, wait};
use crate::database::{Access, options, patiently};
use crate::failure::Failure;
use crate::input::open::open;
use crate::output::{Output, counted};

/// Apply what another database has committed, each commit once, to a copy of it
///
/// The streams are what `changes --stream` writes. DB is new, or a checkpoint or a backup of the source that nothing has
/// written to, or has followed before: then it goes on where it was, and what it has already is passed over. It can be
/// read meanwhile. Any command that writes to it makes it a database of its own, which follows no more.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay changes users.db --stream | forebay follow copy.db\n  \
    forebay follow copy.db monday.changes tuesday.changes\n  \
    forebay follow copy.db --connect 7070")]
pub(crate) struct FollowArgs {
    /// The directory of the database that follows
    db: PathBuf,
    /// Streams of changes, one after the other; - is standard input
    #[arg(default_value = "-")]
    streams: Vec<PathBuf>,
    /// Ask the source at this port, or ADDRESS:PORT, where `changes --listen` serves it or a program does, and go on as
    /// commits come; also when the source was gone for a while
    #[arg(long, value_name = "ADDRESS", conflicts_with = "streams")]
    connect: Option<String>,
    /// Stop before what is newer: a record's number, or a time such as 2026-06-12T09:30:00Z
    #[arg(long, value_name = "MOMENT", value_parser = parse_until)]
    until: Option<Until>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

pub(crate) fn run(args: &FollowArgs, common: &Common) -> Result<(), Failure> {
    let (mut follower, until) = (open_follower(&args.db, common)?, args.until.unwrap_or_default());
    let applied = match &args.connect {
        Some(address) => connect(&mut follower, &with_host(address), until, common)?,
        None => apply_all(&mut follower, &args.streams, until)?,
    };
    follower.close()?;
    tell_position(&applied, common)?;
    let position = applied.position;
    match applied.end {
        StreamEnd::CutOff => Err(Failure::work(format!(
            "the stream is cut off; what was whole of it is applied, up to record {position}: go on with `--since {position}`"
        ))),
        StreamEnd::Passed => Err(Failure::work(format!(
            "{} has records up to {position}, and the stream tells of some of them with a later time only; begin with an \
             older copy",
            args.db.display()
        ))),
        StreamEnd::Behind => Err(Failure::work(format!(
            "the stream's source was behind: {} has records up to {position}",
            args.db.display()
        ))),
        StreamEnd::Finished | StreamEnd::Reached => Ok(()),
    }
}

/// Opens a database to follow, or makes one.
pub(crate) fn open_follower(path: &Path, common: &Common) -> Result<Follower, Failure> {
    let options = options(common, Access::Create);
    Ok(patiently(common, || Follower::open(path, options.clone()))?)
}

/// Applies streams one after the other, up to a moment.
pub(crate) fn apply_all(
    follower: &mut Follower,
    streams: &[PathBuf],
    until: Until,
) -> Result<Applied, Failure> {
    let mut batches = 0;
    let mut last = None;
    for path in streams {
        let stream = open(path)?;
        let applied = follower.apply_named(stream.from, until, Path::new(&stream.name));
        let applied = applied.map_err(|error| of_stream(error, &stream.name, follower.position()))?;
        batches += applied.batches;
        last = Some(applied);
        if matches!(applied.end, StreamEnd::Reached | StreamEnd::Passed) {
            break;
        }
    }
    let mut applied = last.ok_or_else(|| Failure::Usage("name a stream of changes".into()))?;
    applied.batches = batches;
    Ok(applied)
}

/// Damage to a stream is no damage to the database.
fn of_stream(error: Error, name: &str, position: u64) -> Failure {
    match error {
        Error::Corruption { file, offset, reason } if file.as_os_str() == name => Failure::work(format!(
            "{name} is damaged at byte {offset}: {reason}; what comes before is applied, up to record {position}: go on with \
             another stream"
        )),
        error => error.into(),
    }
}

/// What a program is told of what was applied.
pub(crate) fn object_of(applied: &Applied) -> Value {
    json!({
        "position": applied.position,
        "batches": applied.batches,
        "at_milliseconds": applied.at_milliseconds,
        "end": applied.end,
    })
}

fn tell_position(applied: &Applied, common: &Common) -> Result<(), Failure> {
    let commits = counted(applied.batches, "commit");
    Output::summary(common, &object_of(applied), format_args!("{commits} up to record {}", applied.position))
}

/// Follows a source up to a moment, for as long as nothing is wrong with it or with the follower.
fn connect(
    follower: &mut Follower,
    address: &str,
    until: Until,
    common: &Common,
) -> Result<Applied, Failure> {
    // What keeps it from going on is told once.
    let mut told = String::new();
    loop {
        let reason = match TcpStream::connect(address) {
            Ok(socket) => {
                // Where that cannot be set it waits for longer.
                let _ = bound_silence(&socket);
                let applied = follower.follow_until(&socket, until)?;
                match applied.end {
                    StreamEnd::Reached | StreamEnd::Passed => return Ok(applied),
                    StreamEnd::Behind => {
                        format!(
                            "the source at {address} is behind record {}, or has not heard yet which tables were made and \
                             dropped by then",
                            applied.position
                        )
                    }
                    StreamEnd::Finished | StreamEnd::CutOff => String::new(),
                }
            }
            Err(error) => format!("no source at {address} yet: {error}"),
        };
        if reason != told && !reason.is_empty() && !common.is_quiet() {
            tell!("forebay: {reason}");
        }
        told = reason;
        wait();
    }
}
