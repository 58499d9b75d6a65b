//! `savepoint`: all tables as they are now, kept in the database under a name, until they are dropped from it.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::args::{Common, Writing};
use crate::clock::Stopwatch;
use crate::database::{Access, open};
use crate::failure::Failure;
use crate::output::Output;

/// Keep all tables as they are now, in the database, under a name
///
/// It survives merges and restarts, and holds the files that it needs until it is dropped. `checkpoint` makes a copy
/// instead.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay savepoint users.db monday\n  \
    forebay get users.db users 1042 --savepoint monday\n  forebay rollback users.db monday --yes\n  \
    forebay savepoint users.db monday --drop")]
pub(crate) struct SavepointArgs {
    /// The database's directory
    db: PathBuf,
    /// The savepoint's name
    name: String,
    /// Give it up, and the files that only it needs
    #[arg(long)]
    drop: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &SavepointArgs, common: &Common) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let db = open(&args.db, common, Access::Write)?;
    let name = &args.name;
    if args.drop {
        db.drop_savepoint(name)?;
        db.close()?;
        return Output::only_json(common.form(), &json!({ "dropped": name }));
    }
    let sequence = db.savepoint(name)?;
    db.close()?;
    let seconds = watch.seconds();
    let object = json!({ "savepoint": name, "sequence": sequence, "seconds": seconds });
    let text = format_args!("savepoint {name}, up to record {sequence}, {seconds:.2} s").to_string();
    Output::summary(common, &object, text)
}
