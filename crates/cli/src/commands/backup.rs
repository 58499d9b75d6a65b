//! `backup`: one more backup of a database, in a directory that shares what backups have in common.

use std::path::PathBuf;

use clap::Args;
use forebay::Backups;
use forebay_units::sizes;
use serde_json::json;

use crate::args::{Common, Writing};
use crate::clock::Stopwatch;
use crate::database::{Access, open};
use crate::failure::Failure;
use crate::output::Output;

/// Take a backup of the database as it is now, copying only what no earlier one has
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  forebay backup users.db /mnt/backups/users\n  forebay backup users.db /mnt/backups/users --keep 30"
)]
pub(crate) struct BackupArgs {
    /// The database's directory
    db: PathBuf,
    /// The directory of backups, on any file system; it is made at the first one
    backups: PathBuf,
    /// Remove all but the newest so many once it is taken
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &BackupArgs, common: &Common) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let db = open(&args.db, common, Access::Write)?;
    let backups = Backups::open(&args.backups)?;
    let taken = backups.take(&db)?;
    db.close()?;
    if let Some(newest) = args.keep {
        backups.keep(newest as usize)?;
    }
    let (number, seconds) = (taken.number, watch.seconds());
    let [bytes, copied] = [taken.bytes, taken.copied_bytes].map(sizes::human);
    let object = json!({
        "backup": number,
        "last_sequence": taken.last_sequence,
        "bytes": taken.bytes,
        "copied_bytes": taken.copied_bytes,
        "seconds": seconds,
    });
    let text = format_args!("backup {number} of {bytes}, of which {copied} were copied, {seconds:.2} s");
    Output::summary(common, &object, text)
}
