//! `get`: the values of keys.

use std::ffi::OsString;

use clap::Args;
use forebay::{Database, Snapshot, Table};
use serde_json::json;

use super::aggregate::{Key, Shown};
use crate::args::key_list;
use crate::args::{Common, Reading, TableArgs};
use crate::clock::Stopwatch;
use crate::database::{Access, open, table_at};
use crate::failure::Failure;
use crate::form::Form;
use crate::keys::Notation;
use crate::output::{Output, thousands};

/// Print the values of keys, one a line
///
/// A key that is absent prints nothing and makes the exit code 1. With --json every key prints an object,
/// an absent one with the value null, and absence is no failure.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay get app.db settings colour\n  \
    forebay get app.db settings colour size --json\n  forebay get app.db settings - --json < keys.txt")]
pub(crate) struct GetArgs {
    #[command(flatten)]
    target: TableArgs,
    /// Keys, or - to read them from standard input, one a line
    #[arg(required = true, allow_negative_numbers = true, value_name = "KEY")]
    keys: Vec<OsString>,
    /// As it was at this savepoint, rather than now
    #[arg(long, value_name = "NAME")]
    savepoint: Option<String>,
    /// Keys and values are in hexadecimal
    #[arg(long)]
    hex: bool,
    /// At the end tell on standard error how many keys were there, the rate, and device reads a key
    #[arg(long)]
    report: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Default)]
struct Tally {
    keys: u64,
    found: u64,
}

pub(crate) fn run(args: &GetArgs, common: &Common) -> Result<(), Failure> {
    let form = common.form();
    let db = open(&args.target.db, common, Access::Read)?;
    let (snapshot, table) = table_at(&db, &args.target.table, args.savepoint.as_deref())?;
    let watch = Stopwatch::start();
    let tally = print_values(args, form, &snapshot, &table)?;
    if args.report {
        report(&db, form, &tally, watch.seconds());
    }
    drop((snapshot, table));
    db.close()?;
    match form {
        Form::Text if tally.found < tally.keys => Err(Failure::Said),
        _ => Ok(()),
    }
}

fn print_values(args: &GetArgs, form: Form, snapshot: &Snapshot, table: &Table) -> Result<Tally, Failure> {
    let notation = Notation::from_flag(args.hex);
    if let Some(shown) = Shown::of(snapshot, &args.target.table)? {
        return print_groups(args, form, snapshot, table, &shown);
    }
    let mut output = Output::new(form);
    let mut tally = Tally::default();
    key_list::in_groups(&args.keys, notation, |keys| {
        let values = snapshot.multi_get(table, keys)?;
        for (key, value) in keys.iter().zip(&values) {
            output.answer(form, notation, key, value.as_deref())?;
            tally.keys += 1;
            tally.found += u64::from(value.is_some());
        }
        output.flush()
    })?;
    Ok(tally)
}

/// The same of groups, whose keys and states are not what is shown.
fn print_groups(
    args: &GetArgs,
    form: Form,
    snapshot: &Snapshot,
    table: &Table,
    shown: &Shown,
) -> Result<Tally, Failure> {
    let notation = Notation::from_flag(args.hex);
    let mut sheet = shown.sheet(form, notation)?;
    let mut tally = Tally::default();
    key_list::in_groups(&args.keys, notation, |texts| {
        let key = |text: &Vec<u8>| match notation {
            Notation::Plain => shown.key(text),
            Notation::Hex => Ok(text.clone()),
        };
        let keys = texts.iter().map(key).collect::<Result<Vec<_>, _>>()?;
        for (key, state) in keys.iter().zip(snapshot.multi_get(table, &keys)?) {
            match form {
                Form::Json => sheet.row(Key::Shown, key, state.as_deref())?,
                Form::Text if state.is_some() => sheet.row(Key::Hidden, key, state.as_deref())?,
                Form::Text => {}
            }
            tally.keys += 1;
            tally.found += u64::from(state.is_some());
        }
        sheet.flush()
    })?;
    Ok(tally)
}

fn report(db: &Database, form: Form, tally: &Tally, seconds: f64) {
    let rate = tally.keys as f64 / seconds.max(1e-9);
    let device_reads = db.stats().device_reads as f64 / (tally.keys as f64).max(1.0);
    match form {
        Form::Json => tell!(
            "{}",
            json!({
                "type": "summary",
                "keys": tally.keys,
                "found": tally.found,
                "seconds": seconds,
                "gets_per_second": rate,
                "device_reads_per_get": device_reads,
            })
        ),
        Form::Text => tell!(
            "{} of {} keys found in {seconds:.3} s: {} gets/s, {device_reads:.3} device reads each",
            thousands(tally.found),
            thousands(tally.keys),
            thousands(rate as u64),
        ),
    }
}
