//! `backups`: those that there are, and whether they are intact.

use std::path::PathBuf;

use clap::Args;
use forebay::{Backup, Backups, Error};
use forebay_aggregate::arrow::calendar::{Point, Zone};
use forebay_units::sizes;
use serde::Serialize;

use crate::args::Common;
use crate::failure::{Failure, unless_closed};
use crate::form::Form;
use crate::output::Output;

/// List the backups, oldest first, and check them
///
/// That none is damaged means that each is as it was copied. Whether the database was sound then, `verify` of it tells,
/// or of what was restored.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  forebay backups /mnt/backups/users\n  forebay backups /mnt/backups/users --verify"
)]
pub(crate) struct BackupsArgs {
    /// The directory of backups
    backups: PathBuf,
    /// Read every byte of each and check that it is as it was copied
    #[arg(long)]
    verify: bool,
}

/// A backup, as a program is told of it.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    backup: &'a Backup,
    /// How many of its files are damaged, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<usize>,
}

pub(crate) fn run(args: &BackupsArgs, common: &Common) -> Result<(), Failure> {
    let backups = Backups::open(&args.backups)?;
    let all = backups.list().map_err(of_backup)?;
    if all.is_empty() {
        // It is a wrong directory, and a check of it must not pass.
        backups.newest()?;
    }
    let mut output = Output::new(common.form());
    let mut damaged = 0;
    for backup in all {
        let problems = match args.verify {
            true => Some(backups.verify(backup.number).map_err(of_backup)?),
            false => None,
        };
        let told = match common.form() {
            Form::Text => {
                let bytes = sizes::human(backup.bytes);
                let (number, sequence, files) = (backup.number, backup.last_sequence, backup.files);
                let taken = moment(backup.taken_at_milliseconds);
                let state = match &problems {
                    None => "",
                    Some(problems) if problems.is_empty() => ", all as it was copied",
                    Some(_) => ", damaged",
                };
                output.line(format_args!(
                    "backup {number} of {taken}: up to record {sequence}, {bytes} in {files} files{state}"
                ))
            }
            Form::Json => {
                output.json("backup", &Told { backup: &backup, damaged: problems.as_ref().map(Vec::len) })
            }
        };
        unless_closed(told)?;
        for problem in problems.into_iter().flatten() {
            tell!("forebay: backup {}: {}", backup.number, of_backup(problem));
            damaged += 1;
        }
    }
    unless_closed(output.flush())?;
    match damaged {
        0 => Ok(()),
        _ => Err(Failure::Said),
    }
}

/// A time, as `--until` takes it.
pub(crate) fn moment(milliseconds: u64) -> Point {
    let value = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    Point { value, parts: 1000, zone: Zone::Utc }
}

/// Damage to a backup is none to the database, which has the way to mend it.
pub(crate) fn of_backup(error: Error) -> Failure {
    match error {
        Error::Corruption { file, offset, reason } => Failure::work(format!(
            "{} is damaged at offset {offset}: {reason}; that is a file of the backups, not of the database: move it away, and \
             another backup copies it anew where it still needs it; `backups --verify` tells which are whole",
            file.display()
        )),
        error => error.into(),
    }
}
