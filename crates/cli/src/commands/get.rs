//! `get`: the values of keys.

use std::ffi::OsString;

use clap::Args;
use forebay::{Database, Error, Snapshot, Table};
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
/// an absent one with the value null, and absence is no failure. A key whose bytes are damaged is told of at
/// the end, and with --json has an `error`; the exit code is 1 then.
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

/// What there is of a key, or the damage that hides it.
type Found = forebay::Result<Option<Vec<u8>>>;

#[derive(Default)]
struct Tally {
    keys: u64,
    found: u64,
    /// The first key that is damaged, as it was given, and what is.
    damaged: Option<(Vec<u8>, Error)>,
    /// How many are besides.
    damaged_more: u64,
}

impl Tally {
    fn note(&mut self, given: &[u8], found: &Found) {
        self.keys += 1;
        match found {
            Ok(value) => self.found += u64::from(value.is_some()),
            Err(error) if self.damaged.is_none() => self.damaged = Some((given.to_vec(), error.clone())),
            Err(_) => self.damaged_more += 1,
        }
    }

    /// What is to be told of damaged keys.
    fn failure(self, notation: Notation) -> Option<Failure> {
        let (key, error) = self.damaged?;
        let mut shown = Vec::new();
        if let Err(error) = notation.write(&key, &mut shown) {
            return Some(Failure::output(&error));
        }
        let more = match self.damaged_more {
            0 => String::new(),
            more => format!(" and {} more", thousands(more)),
        };
        let why = Failure::from(error);
        Some(Failure::work(format!("key `{}`{more} cannot be read: {why}", String::from_utf8_lossy(&shown))))
    }
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
    let is_short = tally.found < tally.keys;
    match tally.failure(Notation::from_flag(args.hex)) {
        Some(failure) => Err(failure),
        None if form == Form::Text && is_short => Err(Failure::Said),
        None => Ok(()),
    }
}

/// What there is of each key.
fn find(snapshot: &Snapshot, table: &Table, keys: &[Vec<u8>]) -> forebay::Result<Vec<Found>> {
    let alone = |key: &Vec<u8>| match snapshot.get(table, key) {
        Err(error) if !error.is_corruption() => Err(error),
        found => Ok(found),
    };
    match snapshot.multi_get(table, keys) {
        // It fails for all, and damage takes its own keys only.
        Err(error) if error.is_corruption() => keys.iter().map(alone).collect(),
        found => Ok(found?.into_iter().map(Ok).collect()),
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
        for (key, found) in keys.iter().zip(find(snapshot, table, keys)?) {
            tally.note(key, &found);
            match found {
                Ok(value) => output.answer(form, notation, key, value.as_deref())?,
                Err(error) => output.unread(form, notation, key, error)?,
            }
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
        for ((text, key), found) in texts.iter().zip(&keys).zip(find(snapshot, table, &keys)?) {
            tally.note(text, &found);
            match (form, found) {
                (Form::Json, Ok(state)) => sheet.row(Key::Shown, key, state.as_deref())?,
                (Form::Text, Ok(Some(state))) => sheet.row(Key::Hidden, key, Some(&state))?,
                (Form::Text, Ok(None)) => {}
                (_, Err(error)) => {
                    sheet.flush()?;
                    let mut output = Output::new(form);
                    output.unread(form, notation, text, error)?;
                    output.flush()?;
                }
            }
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
