//! `dump`: what stands in the files of a database.

use std::path::PathBuf;

use clap::Args;
use forebay::{Database, Options};

use crate::args::Common;
use crate::database::by_key;
use crate::failure::Failure;
use crate::form::Form;
use crate::output::Output;

/// Print what stands in the roots, manifests and log of a database, entry by entry: to look into one that cannot be
/// opened
///
/// Nothing is opened, locked or changed. Of a database that is open the last entries may be torn.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay dump users.db\n  forebay dump users.db 00000002.log --json")]
pub(crate) struct DumpArgs {
    /// The database's directory
    db: PathBuf,
    /// One file of it instead of all
    file: Option<String>,
}

pub(crate) fn run(args: &DumpArgs, common: &Common) -> Result<(), Failure> {
    let mut output = Output::new(common.form());
    let (mut told, mut is_there) = (Ok(()), false);
    let dumped = Database::dump_with(&by_key(common, Options::default()), &args.db, &mut |entry| {
        if args.file.as_ref().is_some_and(|file| *file != entry.file) {
            return Ok(());
        }
        is_there = true;
        told = match common.form() {
            Form::Text => output.line(&entry),
            Form::Json => output.json("dump", &entry),
        };
        // It is told below; nobody looks at this one.
        told.as_ref().copied().map_err(|_| forebay::Error::Invalid(String::new()))
    });
    told?;
    dumped?;
    if let (false, Some(file)) = (is_there, &args.file) {
        return Err(Failure::work(format!(
            "{} has no file {file} that can be dumped: FOREBAY, CURRENT, or one that ends in .manifest or .log",
            args.db.display()
        )));
    }
    output.flush()
}
