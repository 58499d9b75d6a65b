//! `merge`: one operand.

use std::ffi::OsString;

use clap::Args;
use forebay::{Batch, Database, Durability, Layout, StoredRule};

use super::aggregate::writable;
use crate::args::parse::{LAYOUT_HELP, parse_durability, parse_layout, parse_rule};
use crate::args::{Common, TableArgs, Writing};
use crate::commands::record::write_one;
use crate::failure::Failure;

/// Merge an operand into a key, by the table's rule, without reading what is there
///
/// A new table gets the rule that --rule names and keeps it: append (with a delimiter between, as in append:,), max or
/// min (by the order of bytes), add (numbers of 8 bytes, little-endian; other operands are refused).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay merge app.db friends ada bob --rule append:,\n  \
    forebay merge app.db friends ada eve\n  forebay merge app.db counts --hex 00ff 0100000000000000 --rule add")]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    target: TableArgs,
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    /// What is merged into its value
    #[arg(allow_negative_numbers = true)]
    operand: OsString,
    /// Key and operand are in hexadecimal
    #[arg(long)]
    hex: bool,
    /// The rule of a new table: append, append:DELIMITER, max, min or add
    #[arg(long, value_parser = parse_rule)]
    rule: Option<StoredRule>,
    #[arg(long, value_parser = parse_layout, help = LAYOUT_HELP)]
    layout: Option<Layout>,
    /// What the record survives once the command returns: memory, os (a crash of the process), disk (of the machine)
    #[arg(long, default_value = "os", value_parser = parse_durability)]
    durability: Durability,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &MergeArgs, common: &Common) -> Result<(), Failure> {
    let record = [&args.key, &args.operand];
    write_one(&args.target, record, args.hex, common, |db, key, operand| merge(db, args, key, operand))
}

fn merge(db: &Database, args: &MergeArgs, key: &[u8], operand: &[u8]) -> Result<u64, Failure> {
    let name = &args.target.table;
    writable(db, name)?;
    let is_there = db.tables().iter().any(|(table, _)| table == name);
    if !is_there && args.rule.is_none() {
        return Err(Failure::Usage(format!(
            "there is no table `{name}` yet; give it a --rule, such as append:,"
        )));
    }
    let is_decimal = !args.hex && str::from_utf8(operand).is_ok_and(|text| text.parse::<i64>().is_ok());
    if (operand.len() != 8 || is_decimal) && adds(db, args, is_there) {
        return Err(Failure::Usage(format!(
            "`{name}` adds numbers of 8 bytes, little-endian: give key and operand with --hex, such as 0500000000000000 \
             for 5"
        )));
    }
    let asked = args.layout.into_iter().fold(db.table(name), |table, layout| table.layout(layout));
    let table = args.rule.iter().fold(asked, |table, rule| table.merge_rule(rule.clone())).open()?;
    let mut batch = Batch::new();
    batch.merge(&table, key, operand);
    Ok(db.commit(batch, args.durability)?)
}

/// Whether the table has, or is to have, the rule `add`, to which the bytes of any operand are a number.
fn adds(db: &Database, args: &MergeArgs, is_there: bool) -> bool {
    let add = StoredRule::add();
    match is_there {
        true => db.table(&args.target.table).existing(true).merge_rule(add).open().is_ok(),
        false => args.rule == Some(add),
    }
}
