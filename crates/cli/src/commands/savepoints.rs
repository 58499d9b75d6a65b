//! `savepoints`: what is kept under a name, and what it costs.

use std::path::PathBuf;

use clap::Args;

use crate::args::{Common, Reading};
use crate::commands::backups::moment;
use crate::database::{Access, open};
use crate::failure::Failure;
use crate::form::Form;
use crate::output::Output;

/// List the savepoints, oldest first, and what each holds
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  forebay savepoints users.db --json")]
pub(crate) struct SavepointsArgs {
    /// The database's directory
    db: PathBuf,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

pub(crate) fn run(args: &SavepointsArgs, common: &Common) -> Result<(), Failure> {
    let db = open(&args.db, common, Access::Read)?;
    let mut output = Output::new(common.form());
    for savepoint in db.savepoints() {
        match common.form() {
            Form::Text => {
                output.line(format_args!("{savepoint}; of {}", moment(savepoint.taken_at_milliseconds)))?;
            }
            Form::Json => output.json("savepoint", &savepoint)?,
        }
    }
    output.flush()?;
    Ok(db.close()?)
}
