//! `put`: one record.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use forebay::{Batch, Database, Durability, Layout, Table};

use super::aggregate::writable;
use crate::args::parse::parse_ttl;
use crate::args::parse::{LAYOUT_HELP, parse_durability, parse_layout};
use crate::args::{Common, TableArgs, Writing};
use crate::commands::record::write_one;
use crate::failure::Failure;

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
    #[arg(long, value_parser = parse_layout, help = LAYOUT_HELP)]
    layout: Option<Layout>,
    /// How long the entry lives, such as 90s, 12h or 7d; the table must have been made for that, as a new one is
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    ttl: Option<Duration>,
    /// What the record survives once the command returns: memory, os (a crash of the process), disk (of the machine)
    #[arg(long, default_value = "os", value_parser = parse_durability)]
    durability: Durability,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &PutArgs, common: &Common) -> Result<(), Failure> {
    let record = [&args.key, &args.value];
    write_one(&args.target, record, args.hex, common, |db, key, value| put(db, args, key, value))
}

fn put(db: &Database, args: &PutArgs, key: &[u8], value: &[u8]) -> Result<u64, Failure> {
    writable(db, &args.target.table)?;
    let table = open_table(db, args)?;
    let mut batch = Batch::new();
    match args.ttl {
        None => batch.put(&table, key, value),
        Some(ttl) => batch.put_with_ttl(&table, key, value, ttl),
    }
    Ok(db.commit(batch, args.durability)?)
}

/// The table, made where it is missing: where the entry expires, one whose other entries live forever by default.
fn open_table(db: &Database, args: &PutArgs) -> Result<Table, Failure> {
    let name = &args.target.table;
    let is_there = db.tables().iter().any(|(table, _)| table == name);
    let table = args.layout.into_iter().fold(db.table(name), |table, layout| table.layout(layout));
    Ok(match args.ttl {
        Some(_) if !is_there => table.time_to_live(Duration::MAX).open()?,
        _ => table.open()?,
    })
}
