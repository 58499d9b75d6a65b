//! `scan`: many records, in key order where the table has one.

use std::ffi::OsString;
use std::ops::Bound;

use clap::Args;
use forebay::{Database, Scan};

use super::{Access, existing_table, open};
use crate::args::{Common, TableArgs};
use crate::failure::Failure;
use crate::keys::Notation;
use crate::output::Output;

/// Print records as key<TAB>value, in key order where the table has one
///
/// A hash-ordered table gives all its records in no particular order; --from, --to, --prefix and --reverse
/// need a key-ordered one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay scan users.db users --prefix 10 --limit 20\n  \
    forebay scan users.db users --from a --to n --reverse\n  forebay scan users.db users --json | head")]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    target: TableArgs,
    /// The first key
    #[arg(long, value_name = "KEY", conflicts_with = "prefix", allow_negative_numbers = true)]
    from: Option<OsString>,
    /// The key to stop before
    #[arg(long, value_name = "KEY", conflicts_with = "prefix", allow_negative_numbers = true)]
    to: Option<OsString>,
    /// Only keys that begin like this
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    prefix: Option<OsString>,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// At most so many records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Keys and values are in hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Which keys, and whether the table must have an order to give them.
enum Wanted {
    All,
    Range(Option<Vec<u8>>, Option<Vec<u8>>),
    Prefix(Vec<u8>),
}

pub(crate) fn run(args: &ScanArgs, common: &Common) -> Result<(), Failure> {
    let notation = Notation::from_flag(args.hex);
    let wanted = wanted(args, notation)?;
    let db = open(&args.target.db, common, Access::Read)?;
    let scan = start(&db, args, &wanted)?;
    let mut output = Output::new();
    for entry in
        scan.take(args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)))
    {
        let (key, value) = entry?;
        output.record(common.form(), notation, &key, &value)?;
    }
    output.flush()?;
    Ok(db.close()?)
}

fn wanted(args: &ScanArgs, notation: Notation) -> Result<Wanted, Failure> {
    let key = |text: &Option<OsString>| {
        let bytes = text.as_ref().map(|text| notation.parse(text.as_encoded_bytes()));
        bytes.transpose().map(|key| key.map(|key| key.into_owned())).map_err(Failure::Usage)
    };
    Ok(match (key(&args.prefix)?, key(&args.from)?, key(&args.to)?) {
        (Some(prefix), ..) => Wanted::Prefix(prefix),
        (None, None, None) => Wanted::All,
        (None, from, to) => Wanted::Range(from, to),
    })
}

fn start(db: &Database, args: &ScanArgs, wanted: &Wanted) -> Result<Scan, Failure> {
    let name = &args.target.table;
    let table = existing_table(db, name)?;
    if !table.layout()?.is_ordered() {
        if args.reverse || !matches!(wanted, Wanted::All) {
            return Err(Failure::work(format!(
                "table {name:?} is hash-ordered: --from, --to, --prefix and --reverse need a key-ordered table \
                 (load it with a layout such as write-buffer:ordered or leveling)"
            )));
        }
        return Ok(table.iter()?);
    }
    drop(table);
    let table = db.table(name).existing(true).open_ordered()?;
    let (from, to) = match wanted {
        Wanted::Prefix(prefix) if args.reverse => return Ok(table.prefix_reverse(prefix)?),
        Wanted::Prefix(prefix) => return Ok(table.prefix(prefix)?),
        Wanted::All => (Bound::Unbounded, Bound::Unbounded),
        Wanted::Range(from, to) => (
            from.as_deref().map_or(Bound::Unbounded, Bound::Included),
            to.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        ),
    };
    Ok(if args.reverse { table.range_reverse((from, to))? } else { table.range((from, to))? })
}
