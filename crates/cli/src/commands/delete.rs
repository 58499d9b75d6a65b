//! `delete`: keys go.

use std::ffi::OsString;

use clap::Args;
use forebay::{Batch, Durability};
use serde_json::json;

use super::{Access, existing_table, key_list, open, parse_durability};
use crate::args::{Common, TableArgs};
use crate::failure::Failure;
use crate::keys::Notation;
use crate::output::Output;

/// Delete keys; deleting one that is absent changes nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay delete app.db settings colour size\n  \
    forebay delete app.db settings - < keys.txt")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    target: TableArgs,
    /// Keys, or - to read them from standard input, one a line
    #[arg(required = true, allow_negative_numbers = true, value_name = "KEY")]
    keys: Vec<OsString>,
    /// Keys are in hexadecimal
    #[arg(long)]
    hex: bool,
    /// What the deletion survives once the command returns: memory, os (a crash of the process), disk (of the machine)
    #[arg(long, default_value = "os", value_parser = parse_durability)]
    durability: Durability,
}

pub(crate) fn run(args: &DeleteArgs, common: &Common) -> Result<(), Failure> {
    let db = open(&args.target.db, common, Access::Write)?;
    let table = existing_table(&db, &args.target.table)?;
    let mut batch = Batch::new();
    let mut deletions = 0;
    key_list::in_groups(&args.keys, Notation::from_flag(args.hex), |keys| {
        for key in keys {
            batch.delete(&table, key);
        }
        db.write(&mut batch, args.durability)?;
        deletions += keys.len();
        Ok(())
    })?;
    drop(table);
    db.close()?;
    Output::only_json(common.form(), &json!({ "deletions": deletions }))
}
