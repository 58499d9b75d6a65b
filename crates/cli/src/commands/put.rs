//! `put`: one record.

use std::ffi::OsString;

use clap::Args;
use forebay::{Batch, Durability, Layout};
use serde_json::json;

use super::{Access, open, parse_durability, parse_layout, table_with_layout};
use crate::args::{Common, TableArgs};
use crate::failure::Failure;
use crate::keys::Notation;
use crate::output::Output;

/// Set a key to a value, making the database and the table where they are missing
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay put app.db settings colour blue\n  \
    forebay put app.db settings --hex 00ff 01\n  forebay put app.db settings -- -key-with-dash value")]
pub(crate) struct PutArgs {
    #[command(flatten)]
    target: TableArgs,
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    /// The value
    #[arg(allow_negative_numbers = true)]
    value: OsString,
    /// Key and value are in hexadecimal
    #[arg(long)]
    hex: bool,
    /// How a new table is organised: write-buffer, write-buffer:ordered
    #[arg(long, value_parser = parse_layout)]
    layout: Option<Layout>,
    /// What the record survives once the command returns: memory, os (a crash of the process), disk (of the machine)
    #[arg(long, default_value = "os", value_parser = parse_durability)]
    durability: Durability,
}

pub(crate) fn run(args: &PutArgs, common: &Common) -> Result<(), Failure> {
    let notation = Notation::from_flag(args.hex);
    let key = notation.parse(args.key.as_encoded_bytes()).map_err(Failure::Usage)?;
    let value = notation.parse(args.value.as_encoded_bytes()).map_err(Failure::Usage)?;
    let db = open(&args.target.db, common, Access::Create)?;
    let table = table_with_layout(&db, &args.target.table, args.layout)?;
    let mut batch = Batch::new();
    batch.put(&table, &key, &value);
    let sequence = db.commit(batch, args.durability)?;
    drop(table);
    db.close()?;
    Output::only_json(common.form(), &json!({ "records": 1, "sequence": sequence }))
}
