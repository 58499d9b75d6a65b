//! `stats`: what the database did and what it costs.

use std::time::Duration;

use clap::Args;

use crate::args::{Common, DatabaseArgs, Reading};
use crate::database::{Access, known_table, open};
use crate::failure::Failure;
use crate::form::Form;
use crate::output::Output;

/// How long it waits for the numbers of a process that has the database open to write.
const PATIENCE: Duration = Duration::from_secs(2);

/// Print amplifications, stalls, latencies, lists by level and memory by owner
///
/// What was accepted, written and stalled, and write amplification, count from when the database was opened: by the
/// process that has it open to write, or, where none has, by this command, for which they are 0. All else is as it is now.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  forebay stats users.db --json")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    target: DatabaseArgs,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

pub(crate) fn run(args: &StatsArgs, common: &Common) -> Result<(), Failure> {
    let db = open(&args.target.db, common, Access::Read)?;
    let mut stats = match db.writer_stats(PATIENCE)? {
        Some(stats) => stats,
        None => db.stats(),
    };
    if let Some(name) = &args.target.table {
        known_table(&db, name)?;
        stats.tables.retain(|table| table.name == *name);
    }
    let mut output = Output::new(common.form());
    match common.form() {
        Form::Text => output.line(stats.to_string().trim_end())?,
        Form::Json => output.json("stats", &stats)?,
    }
    output.flush()?;
    Ok(db.close()?)
}
