//! `scan`: many records, in key order where the table has one.

use clap::Args;
use forebay::{Database, Snapshot, Table};

use super::aggregate::{Key, Shown};
use crate::args::key_range::{KeyRange, RangeArgs, bounds};
use crate::args::{Common, Reading, TableArgs};
use crate::database::{Access, hash_ordered, open, table_at};
use crate::failure::Failure;
use crate::form::Form;
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
    #[command(flatten)]
    range: RangeArgs,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// At most this many records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// As it was at this savepoint, rather than now
    #[arg(long, value_name = "NAME")]
    savepoint: Option<String>,
    /// Keys and values are in hexadecimal
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

pub(crate) fn run(args: &ScanArgs, common: &Common) -> Result<(), Failure> {
    let notation = Notation::from_flag(args.hex);
    let wanted = args.range.parse(notation)?;
    let db = open(&args.target.db, common, Access::Read)?;
    print(&db, args, common.form(), wanted)?;
    Ok(db.close()?)
}

fn print(db: &Database, args: &ScanArgs, form: Form, wanted: KeyRange) -> Result<(), Failure> {
    let notation = Notation::from_flag(args.hex);
    let name = &args.target.table;
    let (snapshot, table) = table_at(db, name, args.savepoint.as_deref())?;
    let shown = Shown::of(&snapshot, name)?;
    let most = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let Some(shown) = shown else {
        let mut output = Output::new(form);
        for entry in start(&snapshot, &table, args, &wanted)?.take(most) {
            let (key, value) = entry?;
            output.record(form, notation, &key, &value)?;
        }
        return output.flush();
    };
    let wanted = match notation {
        Notation::Plain => wanted.map(|text| shown.prefix(&text))?,
        Notation::Hex => wanted,
    };
    let mut sheet = shown.sheet(form, notation)?;
    for entry in start(&snapshot, &table, args, &wanted)?.take(most) {
        let (key, state) = entry?;
        sheet.row(Key::Shown, &key, Some(&state))?;
    }
    sheet.flush()
}

/// Entries on their way to the output.
type Entries = Box<dyn Iterator<Item = forebay::Result<(Vec<u8>, Vec<u8>)>>>;

fn start(snapshot: &Snapshot, table: &Table, args: &ScanArgs, wanted: &KeyRange) -> Result<Entries, Failure> {
    let name = &args.target.table;
    let layout = snapshot.tables().into_iter().find(|(other, _)| other == name).map(|(_, layout)| layout);
    if !layout.is_some_and(|layout| layout.is_ordered()) {
        if args.reverse || !matches!(wanted, KeyRange::All) {
            return Err(hash_ordered(name));
        }
        return Ok(Box::new(snapshot.iter(table)?));
    }
    let table = snapshot.ordered_table(name)?;
    let scan = match wanted {
        KeyRange::Prefix(prefix) => snapshot.prefix(&table, prefix)?,
        KeyRange::All => snapshot.range(&table, ..)?,
        KeyRange::Between(from, to) => snapshot.range(&table, bounds(from, to))?,
    };
    Ok(if args.reverse { Box::new(scan.rev()) } else { Box::new(scan) })
}
