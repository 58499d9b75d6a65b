//! `delete`: keys go.

use std::ffi::OsString;

use clap::Args;
use forebay::{Batch, Database, Durability};
use serde_json::json;

use super::aggregate::writable;
use crate::args::key_list;
use crate::args::key_range::{KeyRange, RangeArgs, bounds};
use crate::args::parse::parse_durability;
use crate::args::{Common, TableArgs, Writing};
use crate::database::{Access, existing_table, has_ranges, open};
use crate::failure::Failure;
use crate::keys::Notation;
use crate::output::Output;

/// What is given in place of keys.
const RANGE: [&str; 3] = ["from", "to", "prefix"];

/// Delete keys, or all keys of a range; deleting one that is absent changes nothing
///
/// --from, --to and --prefix need a key-ordered table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay delete app.db settings colour size\n  \
    forebay delete app.db settings - < keys.txt\n  \
    forebay delete logs.db lines --from 2024 --to 2025\n  \
    forebay delete logs.db lines --prefix tmp/")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    target: TableArgs,
    /// Keys, or - to read them from standard input, one a line
    #[arg(required_unless_present_any = RANGE, conflicts_with_all = RANGE, allow_negative_numbers = true, value_name = "KEY")]
    keys: Vec<OsString>,
    #[command(flatten)]
    range: RangeArgs,
    /// Keys are in hexadecimal
    #[arg(long)]
    hex: bool,
    /// What the deletion survives once the command returns: memory, os (a crash of the process), disk (of the machine)
    #[arg(long, default_value = "os", value_parser = parse_durability)]
    durability: Durability,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &DeleteArgs, common: &Common) -> Result<(), Failure> {
    let notation = Notation::from_flag(args.hex);
    let range = args.range.parse(notation)?;
    let db = open(&args.target.db, common, Access::Write)?;
    writable(&db, &args.target.table)?;
    let report = match &range {
        KeyRange::All => {
            let (deletions, sequence) = delete_keys(&db, args, notation)?;
            json!({ "deletions": deletions, "sequence": sequence })
        }
        KeyRange::Between(..) | KeyRange::Prefix(_) => {
            json!({ "ranges": 1, "sequence": delete_range(&db, args, &range)? })
        }
    };
    db.close()?;
    Output::only_json(common.form(), &report)
}

fn delete_keys(db: &Database, args: &DeleteArgs, notation: Notation) -> Result<(usize, u64), Failure> {
    let table = existing_table(db, &args.target.table)?;
    let mut batch = Batch::new();
    let (mut deletions, mut sequence) = (0, 0);
    key_list::in_groups(&args.keys, notation, |keys| {
        for key in keys {
            batch.delete(&table, key);
        }
        sequence = db.write(&mut batch, args.durability)?;
        deletions += keys.len();
        Ok(())
    })?;
    Ok((deletions, sequence))
}

fn delete_range(db: &Database, args: &DeleteArgs, range: &KeyRange) -> Result<u64, Failure> {
    let name = &args.target.table;
    has_ranges(&existing_table(db, name)?, name)?;
    let table = db.table(name).existing(true).open_ordered()?;
    let mut batch = Batch::new();
    match range {
        KeyRange::Prefix(prefix) => batch.delete_prefix(&table, prefix),
        KeyRange::Between(from, to) => batch.delete_range(&table, bounds(from, to)),
        KeyRange::All => {}
    }
    Ok(db.commit(batch, args.durability)?)
}
