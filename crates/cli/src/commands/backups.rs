//! `backups`: those that there are, and whether they are intact.

use std::path::PathBuf;

use clap::Args;
use forebay::Backups;
use forebay_units::sizes;

use crate::args::Common;
use crate::failure::{Failure, unless_closed};
use crate::form::Form;
use crate::output::Output;
use crate::screen;

/// List the backups, oldest first, and check them
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  forebay backups /mnt/backups/users\n  forebay backups /mnt/backups/users --verify"
)]
pub(crate) struct BackupsArgs {
    /// The directory of backups
    backups: PathBuf,
    /// Read every byte of each and check it
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(args: &BackupsArgs, common: &Common) -> Result<(), Failure> {
    let backups = Backups::open(&args.backups)?;
    let mut output = Output::new(common.form());
    let mut damaged = 0;
    for backup in backups.list()? {
        let told = match common.form() {
            Form::Text => {
                let bytes = sizes::human(backup.bytes);
                let (number, sequence, files) = (backup.number, backup.last_sequence, backup.files);
                output
                    .line(format_args!("backup {number}: up to record {sequence}, {bytes} in {files} files"))
            }
            Form::Json => output.json("backup", &backup),
        };
        unless_closed(told)?;
        if args.verify {
            for problem in backups.verify(backup.number)? {
                tell!("forebay: backup {}: {}", backup.number, screen::message(&problem.to_string()));
                damaged += 1;
            }
        }
    }
    unless_closed(output.flush())?;
    match damaged {
        0 => Ok(()),
        _ => Err(Failure::Said),
    }
}
