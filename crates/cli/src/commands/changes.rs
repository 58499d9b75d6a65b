//! `changes`: what was written, commit by commit, as far as the log still has it, for people or for followers.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use forebay::{Change, ChangeBatch, Operation};

use crate::args::{Common, Reading};
use crate::commands::stream::{self, StreamArgs};
use crate::database::{Access, known_table, open};
use crate::failure::Failure;
use crate::form::Form;
use crate::keys::Notation;
use crate::output::Output;

/// Print what was written, in the order of commits, one change a line
///
/// A line is BATCH<TAB>TABLE<TAB>OPERATION<TAB>KEY, and what belongs to it: a value or an operand, or the key that a
/// deleted range ends before. BATCH is the number of the commit: lines of one commit share it, and --since goes on
/// behind it. The log has what is not in lists yet, and what it was told to keep: see --keep-changes. With --stream or
/// --listen it is for followers: see `follow`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay changes users.db --since 1042\n  \
    forebay changes users.db --table users --json\n  \
    forebay changes users.db --stream --since 1042 > users.changes\n  \
    forebay changes users.db --listen 7070")]
pub(crate) struct ChangesArgs {
    /// The database's directory
    db: PathBuf,
    /// Only what was committed after this number; 0 is for all that the log has
    #[arg(long, value_name = "N", default_value_t = 0)]
    since: u64,
    /// One table instead of all of them
    #[arg(long)]
    table: Option<String>,
    /// Keys and values are in hexadecimal
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    streaming: StreamArgs,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

pub(crate) fn run(args: &ChangesArgs, common: &Common) -> Result<(), Failure> {
    if args.streaming.is_wanted() {
        return stream::run(&args.db, args.since, &args.streaming, common);
    }
    let db = open(&args.db, common, Access::Read)?;
    if let Some(wanted) = &args.table {
        known_table(&db, wanted)?;
    }
    let (form, notation) = (common.form(), Notation::from_flag(args.hex));
    let mut output = Output::new(form);
    for batch in db.changes(args.since)? {
        let ChangeBatch { last_sequence, changes } = batch?;
        let wanted = |change: &&Change| args.table.as_ref().is_none_or(|name| **name == *change.table);
        for change in changes.iter().filter(wanted) {
            output.write(|out| match form {
                Form::Text => write_text(out, notation, last_sequence, change),
                Form::Json => write_json(out, notation, last_sequence, change),
            })?;
        }
    }
    output.flush()?;
    Ok(db.close()?)
}

/// What an operation is called, and what belongs to it.
fn parts(operation: &Operation) -> (&'static str, Vec<(&'static str, &[u8])>) {
    match operation {
        Operation::Put { key, value, .. } => ("put", vec![("key", key), ("value", value)]),
        Operation::Delete { key } => ("delete", vec![("key", key)]),
        Operation::Merge { key, operand, .. } => ("merge", vec![("key", key), ("operand", operand)]),
        Operation::DeleteRange { low, high } => {
            let high = high.as_ref().map(|high| ("high", &high[..]));
            ("delete-range", [("low", &low[..])].into_iter().chain(high).collect())
        }
        _ => ("unknown", Vec::new()),
    }
}

fn write_text(out: &mut impl Write, notation: Notation, batch: u64, change: &Change) -> io::Result<()> {
    let (name, parts) = parts(&change.operation);
    write!(out, "{batch}\t{}\t{name}", change.table)?;
    for (_, bytes) in parts {
        out.write_all(b"\t")?;
        notation.write(bytes, out)?;
    }
    out.write_all(b"\n")
}

fn write_json(out: &mut impl Write, notation: Notation, batch: u64, change: &Change) -> io::Result<()> {
    let (name, parts) = parts(&change.operation);
    write!(out, "{{\"type\":\"change\",\"batch\":{batch},\"sequence\":{},\"table\":", change.sequence)?;
    serde_json::to_writer(&mut *out, &*change.table)?;
    write!(out, ",\"operation\":\"{name}\"")?;
    for (name, bytes) in parts {
        out.write_all(b",")?;
        notation.write_json(name, bytes, out)?;
    }
    if let Operation::Put { expiry_milliseconds: Some(expiry), .. }
    | Operation::Merge { expiry_milliseconds: Some(expiry), .. } = change.operation
    {
        write!(out, ",\"expiry_milliseconds\":{expiry}")?;
    }
    out.write_all(b"}\n")
}
