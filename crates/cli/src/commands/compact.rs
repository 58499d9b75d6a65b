//! `compact`: all that can be dropped is dropped now.

use clap::Args;
use forebay::{Database, Rewrite};
use serde_json::json;

use crate::args::key_range::{KeyRange, RangeArgs, bounds};
use crate::args::{Common, DatabaseArgs, Writing};
use crate::clock::Stopwatch;
use crate::database::{Access, has_ranges, known_table, open};
use crate::failure::Failure;
use crate::keys::Notation;
use crate::output::Output;

/// Merge each table down to its newest records, giving back the space of old ones
///
/// With --from, --to or --prefix only what a key-ordered table has there: deleted records and former values of the
/// range are gone from its files afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay compact users.db\n  forebay compact users.db users --json\n  \
    forebay compact users.db logins --to 2024")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    target: DatabaseArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// Write anew what is merged already, too: by the options of now, and the newest data key. `older-keys`: only what
    /// is encrypted by an older one
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    rewrite: Option<Rewrite>,
    /// Keys are in hexadecimal
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &CompactArgs, common: &Common) -> Result<(), Failure> {
    let range = args.range.parse(Notation::from_flag(args.hex))?;
    if args.target.table.is_none() && !matches!(range, KeyRange::All) {
        return Err(Failure::Usage("--from, --to and --prefix need a TABLE".into()));
    }
    if args.rewrite.is_some() && !matches!(range, KeyRange::All) {
        return Err(Failure::Usage(
            "--rewrite is for whole tables: leave out --from, --to and --prefix".into(),
        ));
    }
    let watch = Stopwatch::start();
    let db = open(&args.target.db, common, Access::Write)?;
    let names = match &args.target.table {
        Some(name) => vec![name.clone()],
        None => db.tables().into_iter().map(|(name, _)| name).collect(),
    };
    for name in &names {
        compact(&db, name, &range, args.rewrite)?;
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

fn compact(db: &Database, name: &str, range: &KeyRange, rewrite: Option<Rewrite>) -> Result<(), Failure> {
    let table = known_table(db, name)?;
    if let Some(what) = rewrite {
        return Ok(table.rewrite(what)?);
    }
    if let KeyRange::All = range {
        return Ok(table.compact()?);
    }
    has_ranges(&table, name)?;
    let table = db.snapshot().ordered_table(name)?;
    let compacted = match range {
        KeyRange::Prefix(prefix) => table.compact_prefix(prefix),
        KeyRange::Between(from, to) => table.compact_range(bounds(from, to)),
        KeyRange::All => table.compact(),
    };
    Ok(compacted?)
}
