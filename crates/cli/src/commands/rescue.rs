//! `rescue`: what is intact of a damaged database, in a new one.

use std::path::PathBuf;

use clap::Args;
use forebay::{Error, Options, Rescue};

use crate::args::{Common, Reading};
use crate::failure::Failure;
use crate::output::{Output, counted};
use crate::screen;

/// Copy what is intact of a damaged database to a new one, and tell what is not
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1 where anything could not be read; the new database is there all the same.\n\n\
    Example:\n  forebay rescue users.db rescued.db"
)]
pub(crate) struct RescueArgs {
    /// The damaged database's directory; it is not changed
    db: PathBuf,
    /// The directory to make
    destination: PathBuf,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

pub(crate) fn run(args: &RescueArgs, common: &Common) -> Result<(), Failure> {
    let options = common.memory.map_or_else(Options::default, |bytes| Options::default().memory_limit(bytes));
    let rescued = Rescue::new(options).run(&args.db, &args.destination, &mut |_, _| ());
    let report = rescued.map_err(|error| match error {
        Error::Invalid(reason) => Failure::Usage(reason),
        error => error.into(),
    })?;
    let records: u64 = report.tables.iter().map(|table| table.records).sum();
    let (tables, place) = (report.tables.len() as u64, args.destination.display());
    let text = format!("{}, {} in {place}", counted(tables, "table"), counted(records, "record"));
    Output::summary(common, &report, text)?;
    for damage in &report.damage {
        tell!("forebay: {}", screen::message(&damage.to_string()));
    }
    let mut is_whole = report.damage.is_empty();
    for table in &report.tables {
        if let Some(why) = &table.left_out {
            tell!("forebay: left out: {}", screen::message(why));
            is_whole = false;
        }
    }
    for file in &report.unnamed_files {
        tell!(
            "forebay: {} is named by no table; left where it is",
            screen::message(&file.display().to_string())
        );
    }
    for name in &report.savepoints {
        tell!("forebay: savepoint {} is not in the new database", screen::message(name));
    }
    if is_whole { Ok(()) } else { Err(Failure::Said) }
}
