//! `compact`: all that can be dropped is dropped now.

use clap::Args;
use serde_json::json;

use crate::args::{Common, DatabaseArgs, Writing};
use crate::clock::Stopwatch;
use crate::database::{Access, known_table, open};
use crate::failure::Failure;
use crate::output::Output;

/// Merge each table down to its newest records, giving back the space of old ones
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay compact users.db\n  forebay compact users.db users --json")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    target: DatabaseArgs,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &CompactArgs, common: &Common) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let db = open(&args.target.db, common, Access::Write)?;
    let names = match &args.target.table {
        Some(name) => vec![name.clone()],
        None => db.tables().into_iter().map(|(name, _)| name).collect(),
    };
    for name in &names {
        known_table(&db, name)?.compact()?;
    }
    let space_amplification = db.stats().space_amplification;
    db.close()?;
    let seconds = watch.seconds();
    Output::summary(
        common,
        &json!({ "tables": names, "seconds": seconds, "space_amplification": space_amplification }),
        format_args!("compacted {} in {seconds:.1} s", names.join(", ")),
    )
}
