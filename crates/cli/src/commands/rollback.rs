//! `rollback`: all tables become what they were at a savepoint.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::args::{Common, Writing};
use crate::clock::Stopwatch;
use crate::database::{Access, open};
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
    let savepoint = db.savepoints().into_iter().find(|savepoint| savepoint.name == *name);
    let savepoint = savepoint.ok_or_else(|| Failure::work(format!("there is no savepoint `{name}`")))?;
    let sequence = savepoint.sequence;
    if !args.yes {
        return Err(Failure::Usage(format!(
            "everything written after record {sequence} would be lost; add --yes, and take a savepoint first if it may be \
             wanted again"
        )));
    }
    db.rollback(name)?;
    db.close()?;
    let seconds = watch.seconds();
    let object = json!({ "savepoint": name, "sequence": sequence, "seconds": seconds });
    let text = format_args!("rolled back to {name}, record {sequence}, {seconds:.2} s").to_string();
    Output::summary(common, &object, text)
}
