//! `destroy`: a table, or the whole database, goes.

use clap::Args;
use forebay::Database;
use serde_json::json;

use super::aggregate::{INPUTS, groups_told};
use crate::args::{Common, DatabaseArgs, Writing};
use crate::database::{Access, known_table, open};
use crate::failure::Failure;
use crate::output::Output;
use crate::screen;

/// Delete a table, or, without one, the whole database; nothing asks again
///
/// A directory that is not a database is left as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay destroy users.db users\n  forebay destroy users.db")]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    target: DatabaseArgs,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &DestroyArgs, common: &Common) -> Result<(), Failure> {
    let path = &args.target.db;
    match &args.target.table {
        None => {
            Database::destroy(path)?;
            if path.exists() {
                let path = screen::message(&path.display().to_string());
                tell!("forebay: {path} stays: it has files that are not the database's");
            }
        }
        Some(name) => {
            let db = open(path, common, Access::Write)?;
            drop(known_table(&db, name)?);
            // Groups go with what tells which files they are of, or these would not be counted again.
            let inputs = format!("{name}{INPUTS}");
            let told = groups_told(&db, &inputs);
            db.drop_table(name)?;
            match told {
                Ok(Some(_)) => db.drop_table(&inputs)?,
                Ok(None) => {}
                // Damaged groups are what one wants to be rid of; whether that table is theirs is not known.
                Err(failure) => {
                    let inputs = screen::message(&inputs);
                    tell!("forebay: table `{inputs}` stays, as it cannot be read: {failure}");
                }
            }
            db.close()?;
        }
    }
    Output::only_json(
        common.form(),
        &json!({ "destroyed": path.display().to_string(), "table": args.target.table }),
    )
}
