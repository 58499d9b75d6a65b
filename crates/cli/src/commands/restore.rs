//! `restore`: a database of a backup, and of what was committed after it, up to a moment.

use std::path::PathBuf;

use clap::Args;
use forebay::{Applied, Backup, Backups, StreamEnd, Until};
use serde_json::json;

use crate::args::Common;
use crate::args::moment::parse_until;
use crate::clock::Stopwatch;
use crate::commands::backups::{moment, of_backup};
use crate::commands::follow::{apply_all, object_of, open_follower};
use crate::database::{Access, open};
use crate::failure::Failure;
use crate::input::open::bytes_of;
use crate::output::Output;

/// Make a database of a backup, the newest unless another is named, checking that every byte is as it was copied
///
/// With --until it is the newest that has nothing later. With --changes it goes on from there by streams of
/// `changes --stream` that were kept in files, up to their end or to the moment that --until names.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  forebay restore /mnt/backups/users users.db\n  forebay restore /mnt/backups/users monday.db --backup 12\n  \
    forebay restore /mnt/backups/users users.db --changes may.changes june.changes --until 2026-06-12T09:30:00Z"
)]
pub(crate) struct RestoreArgs {
    /// The directory of backups
    backups: PathBuf,
    /// The directory to make; it must be new or empty
    destination: PathBuf,
    /// Which one, by its number
    #[arg(long, value_name = "NUMBER")]
    backup: Option<u64>,
    /// Streams of changes to apply behind it, oldest first; what the backup has of them is passed over
    #[arg(long, value_name = "FILE", num_args = 1..)]
    changes: Vec<PathBuf>,
    /// Stop before what is newer: a record's number, or a time such as 2026-06-12T09:30:00Z. Of times it is as exact as
    /// the streams were written often
    #[arg(long, value_name = "MOMENT", value_parser = parse_until)]
    until: Option<Until>,
}

pub(crate) fn run(args: &RestoreArgs, common: &Common) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let backups = Backups::open(&args.backups)?;
    // Before anything is made: a name that is wrong would leave the backup alone, which looks finished.
    args.changes.iter().try_for_each(|path| bytes_of(path).map(drop))?;
    let number = choose(&backups, args)?;
    backups.restore(number, &args.destination).map_err(of_backup)?;
    let applied = if args.changes.is_empty() { None } else { Some(go_on(args, common)?) };
    if applied.is_none() && common.key_file.is_some() {
        try_key(args, common)?;
    }
    let (place, seconds) = (args.destination.display(), watch.seconds());
    let mut object = json!({ "backup": number, "restored": place.to_string(), "seconds": seconds });
    let behind = match &applied {
        None => String::new(),
        Some(applied) => {
            object["changes"] = object_of(applied);
            // Nothing may have come after that, or a stream may be missing: only who asks knows.
            let short = match (args.until, applied.at_milliseconds, applied.end) {
                (Some(Until::Time(wanted)), Some(at), StreamEnd::Finished) if at < wanted => {
                    format!(", which end at {}, before --until,", moment(at))
                }
                _ => String::new(),
            };
            format!(" and changes up to record {}{short}", applied.position)
        }
    };
    Output::summary(common, &object, format_args!("backup {number}{behind} is {place}, {seconds:.2} s"))
}

/// The backup to begin with: what it has cannot be taken back.
fn choose(backups: &Backups, args: &RestoreArgs) -> Result<u64, Failure> {
    let Some(until) = args.until else {
        return args.backup.map_or_else(|| backups.newest().map_err(of_backup), Ok);
    };
    let is_early = |backup: &&Backup| match until {
        Until::Sequence(wanted) => backup.last_sequence <= wanted,
        Until::Time(wanted) => backup.taken_at_milliseconds <= wanted,
        Until::End => true,
    };
    let all = backups.list().map_err(of_backup)?;
    let named = |backup: &&Backup| args.backup.is_none_or(|number| backup.number == number);
    match (all.iter().filter(named).rfind(is_early), all.iter().find(named)) {
        (Some(newest), _) => Ok(newest.number),
        (None, Some(Backup { number, last_sequence, .. })) => Err(Failure::work(format!(
            "backup {number} is later than --until: it has records up to {last_sequence}; begin with an older one, or, \
             where changes were kept from the start, with `follow` and a new directory"
        ))),
        // It says which there are.
        (None, None) => args.backup.map_or_else(|| Ok(backups.newest()?), Ok),
    }
}

/// Opens what was restored by the key that was given. To restore takes none, so that a wrong one would show only once the
/// database is needed.
fn try_key(args: &RestoreArgs, common: &Common) -> Result<(), Failure> {
    let opened = open(&args.destination, common, Access::Read).and_then(|db| Ok(db.close()?));
    opened.map_err(|failure| {
        Failure::work(format!("{failure}; {} is the backup all the same", args.destination.display()))
    })
}

/// Applies what came behind the backup.
fn go_on(args: &RestoreArgs, common: &Common) -> Result<Applied, Failure> {
    let mut follower = open_follower(&args.destination, common)?;
    let begun = follower.position();
    let applied = apply_all(&mut follower, &args.changes, args.until.unwrap_or_default());
    let position = follower.position();
    let closed = follower.close();
    let place = args.destination.display();
    let applied = applied.map_err(|failure| match failure {
        // It looks finished, and is in the way of another try.
        Failure::Work(reason) if position == begun => Failure::Work(format!(
            "{reason}; {place} is the backup and nothing behind it, and `forebay destroy {place}` removes it"
        )),
        failure => failure,
    })?;
    closed?;
    match (args.until, applied.end) {
        (_, StreamEnd::CutOff | StreamEnd::Behind) => Err(Failure::work(format!(
            "the changes are cut off behind record {position}; {place} is as of then"
        ))),
        (Some(Until::Sequence(wanted)), StreamEnd::Finished) if position < wanted => Err(Failure::work(
            format!("the changes end with record {position}, before {wanted}; {place} is as of then"),
        )),
        // The backup was taken in time, whatever is told of its records later.
        _ => Ok(applied),
    }
}
