//! `checkpoint`: a second database that shares the files of the first.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::args::{Common, Writing};
use crate::clock::Stopwatch;
use crate::database::{Access, open};
use crate::failure::Failure;
use crate::output::Output;

/// Make a copy of the database as it is now, lists hard-linked, on the same file system
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  forebay checkpoint users.db backups/users-monday.db")]
pub(crate) struct CheckpointArgs {
    /// The database's directory
    db: PathBuf,
    /// The directory to make; it must be new or empty
    destination: PathBuf,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &CheckpointArgs, common: &Common) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let db = open(&args.db, common, Access::Write)?;
    db.checkpoint(&args.destination)?;
    db.close()?;
    let seconds = watch.seconds();
    let place = args.destination.display();
    let object = json!({ "checkpoint": place.to_string(), "seconds": seconds });
    Output::summary(common, &object, format_args!("checkpoint in {place}, {seconds:.2} s"))
}
