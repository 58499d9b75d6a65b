//! `rollback`: all tables become what they were at a savepoint.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::args::{Common, Writing};
use crate::clock::Stopwatch;
use crate::database::{Access, missing, open};
use crate::failure::Failure;
use crate::output::Output;

/// Make all tables what they were at a savepoint; what was written since is lost, unless another savepoint has it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  forebay rollback users.db monday --yes")]
pub(crate) struct RollbackArgs {
    /// The database's directory
    db: PathBuf,
    /// The savepoint's name
    name: String,
    /// Do it; without this it is only said what would be lost
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &RollbackArgs, common: &Common) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let name = &args.name;
    let access = if args.yes { Access::Write } else { Access::Read };
    let db = open(&args.db, common, access)?;
    let savepoints = db.savepoints();
    let savepoint = savepoints.iter().find(|savepoint| savepoint.name == *name);
    let names = savepoints.iter().map(|savepoint| &savepoint.name[..]);
    let sequence = savepoint.ok_or_else(|| missing("savepoint", name, names))?.sequence;
    if !args.yes {
        let lost = match db.stats().last_sequence {
            last if last > sequence => format!("everything written after record {sequence} would be lost"),
            _ => format!(
                "nothing was written after record {sequence}, but tables that were made, dropped, loaded with --sorted or \
                 given another layout since would be as they were"
            ),
        };
        return Err(Failure::Usage(format!(
            "{lost}; add --yes, and take a savepoint first if it may be wanted again"
        )));
    }
    db.rollback(name)?;
    db.close()?;
    let seconds = watch.seconds();
    let object = json!({ "savepoint": name, "sequence": sequence, "seconds": seconds });
    let text = format_args!("rolled back to {name}, record {sequence}, {seconds:.2} s").to_string();
    Output::summary(common, &object, text)
}
