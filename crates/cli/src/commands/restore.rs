//! `restore`: a database of a backup.

use std::path::PathBuf;

use clap::Args;
use forebay::Backups;
use serde_json::json;

use crate::args::Common;
use crate::clock::Stopwatch;
use crate::failure::Failure;
use crate::output::Output;

/// Make a database of a backup, the newest unless another is named, checking every byte
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  forebay restore /mnt/backups/users users.db\n  forebay restore /mnt/backups/users monday.db --backup 12"
)]
pub(crate) struct RestoreArgs {
    /// The directory of backups
    backups: PathBuf,
    /// The directory to make; it must be new or empty
    destination: PathBuf,
    /// Which one, by its number
    #[arg(long, value_name = "NUMBER")]
    backup: Option<u64>,
}

pub(crate) fn run(args: &RestoreArgs, common: &Common) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let backups = Backups::open(&args.backups)?;
    let number = match args.backup {
        Some(number) => number,
        None => backups.newest()?,
    };
    backups.restore(number, &args.destination)?;
    let (place, seconds) = (args.destination.display(), watch.seconds());
    let object = json!({ "backup": number, "restored": place.to_string(), "seconds": seconds });
    Output::summary(common, &object, format_args!("backup {number} is {place}, {seconds:.2} s"))
}
