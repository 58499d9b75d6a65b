//! `load`: records from a file or a pipe into a table.
//!
//! 1. A source lends records out of its window; they go straight into a batch.
//! 2. A full batch is committed. When the commit returns, its records are *acknowledged*: safe at the chosen
//!    durability.
//! 3. A reporter beside it tells how far the load is.
//!
//! With `--sorted`, records go another way: [`sorted`].
//!
//! A bad record ends the load, once what stands before it is committed; with `--skip-bad` it is counted.

mod args;
mod pump;
mod reading;
mod report;
mod sorted;

use std::sync::Arc;

use forebay::{Database, Durability, Table};

use super::aggregate::writable;
use crate::args::{Common, LogUse};
use crate::clock::Stopwatch;
use crate::database::made::Made;
use crate::failure::Failure;
use crate::input::TroubleKind;
use crate::input::delimited::{Delimited, Dialect, Header};
use crate::input::fixed::Fixed;
use crate::input::format::{Column, Format};
use crate::input::header::untold_header;
use crate::input::jsonl::Jsonl;
use crate::input::lines::Lines;
use crate::input::open::open as open_input;
use crate::input::unpack::Packer;
use crate::input::window::Window;
use crate::progress::Progress;
use crate::temporary::at_signal;
pub(crate) use args::LoadArgs;
use pump::{OnBad, Pump, Sink, Stop, Tally};
use reading::{Input, parquet, unpacked};
use sorted::Sorted;

/// So many columns that are left out are named.
const NAMED_MAX: usize = 8;

/// What chooses the key and value of a record.
enum Choice {
    Whole,
    /// Whoever has chosen the value knows what is left out.
    Columns {
        dialect: Dialect,
        header: Header,
        key: Column,
        value: Column,
        is_value_chosen: bool,
    },
    Fields {
        key: String,
        value: Option<String>,
    },
    Parquet {
        key: Column,
        value: Column,
    },
}

pub(crate) fn run(args: &LoadArgs, common: &Common) -> Result<(), Failure> {
    let format = args.format.or_else(|| Format::of(&args.file)).unwrap_or(Format::Lines);
    let choice = choice(args, format)?;
    let input = open_input(&args.file)?;
    let (bytes, name) = (input.bytes, input.name.clone());
    let telling = |bytes| Arc::new(Progress::new(common, bytes));
    let (input, progress) = match &choice {
        Choice::Parquet { key, value } => {
            let progress = telling(bytes);
            (parquet(input, key, value, &progress)?, progress)
        }
        _ => {
            let (from, packer) = unpacked(input)?;
            // How much packed data hold is not known.
            (Input::Bytes(from), telling(bytes.filter(|_| packer == Packer::Nothing)))
        }
    };
    let log = if args.no_log { LogUse::None } else { LogUse::Usual };
    let (db, made) = Made::open(&args.target.db, &common.with_log(log))?;
    tell_at_signal(args, common, &progress);
    let watch = Stopwatch::start();
    let (outcome, mut tally) = match fill(args, (format, choice), &db, input, (&name, &progress)) {
        Ok(filled) => filled,
        Err(failure) => {
            made.undo(db);
            return Err(failure);
        }
    };
    tally.seconds = watch.seconds();
    if let Err(stop) = outcome {
        if tally.records == 0 {
            made.undo(db);
        } else if let Err(error) = db.close()
            && args.durability() == Durability::Memory
        {
            // Nothing is loaded for certain: closing is what makes it durable.
            return Err(error.into());
        }
        // Whatever closing may add else, or whoever reads no more, the first cause is the one to tell.
        let _ = report::acknowledged(common.form(), tally.records);
        return Err(stop.by_format(args.format, &args.file).into_failure(&name, tally.records));
    }
    let stats = db.stats();
    let closing = Stopwatch::start();
    db.close()?;
    report::print(common, &tally, &stats, closing.seconds())
}

/// Has a signal tell how much is loaded by then, as a malformed record does. What is sorted comes in at once, and what
/// is acknowledged in memory goes to files when it may: of neither is known what a signal leaves.
fn tell_at_signal(args: &LoadArgs, common: &Common, progress: &Arc<Progress>) {
    let (form, progress) = (common.form(), Arc::clone(progress));
    let is_known = !args.sorted && args.durability() != Durability::Memory;
    at_signal(move |signal| {
        progress.clear();
        report::stopped(form, signal, is_known.then(|| progress.acknowledged()));
    });
}

/// The table, made where it is missing; one that is there must have what is asked for.
fn open_table(args: &LoadArgs, db: &Database) -> Result<Table, Failure> {
    let mut table = db.table(&args.target.table);
    if let Some(layout) = args.layout {
        table = table.layout(layout);
    }
    if let Some(prefixes) = args.prefix_filter {
        table = table.prefix_filter(prefixes);
    }
    if let Some(most) = args.max_space_amplification {
        table = table.max_space_amplification(most);
    }
    if let Some(ttl) = args.ttl {
        table = table.time_to_live(ttl);
    }
    if let Some(bytes) = args.values_apart {
        table = table.values_apart(bytes);
    }
    Ok(table.open()?)
}

/// Loads the input, called so, into the table. How it ended, and what it came to by then.
fn fill(
    args: &LoadArgs,
    wanted: (Format, Choice),
    db: &Database,
    input: Input,
    (name, progress): (&str, &Arc<Progress>),
) -> Result<(Result<(), Stop>, Tally), Failure> {
    writable(db, &args.target.table)?;
    let on_bad = if args.skip_bad { OnBad::Skip } else { OnBad::Stop };
    if args.sorted {
        let table = sorted::table(db, args)?;
        let (progress_too, tally) = (Arc::clone(progress), Tally::new());
        let mut sorted =
            Sorted { table: &table, progress: progress_too, on_bad, name: name.to_string(), tally };
        let outcome = progress.tell_while(|| start_source(&mut sorted, wanted, input, (name, progress)));
        return Ok((outcome, sorted.tally));
    }
    let table = open_table(args, db)?;
    let mut pump = Pump::new(db, &table, progress, args.durability(), args.batch as usize, on_bad);
    let outcome = progress.tell_while(|| start_source(&mut pump, wanted, input, (name, progress)));
    Ok((outcome, pump.tally()))
}

fn start_source(
    sink: &mut impl Sink,
    (format, choice): (Format, Choice),
    input: Input,
    (name, progress): (&str, &Progress),
) -> Result<(), Stop> {
    let window = match input {
        Input::Bytes(from) => Window::new(from),
        Input::Rows(rows) => return sink.take_all(*rows),
    };
    match (choice, format) {
        (Choice::Columns { dialect, header, key, value, is_value_chosen }, _) => {
            let rows = Delimited::new(window, dialect, header, &key, &value);
            let mut rows = rows.map_err(|trouble| header_trouble(*trouble))?;
            if header == Header::Absent {
                let untold = rows.untold_header().map_err(|trouble| header_trouble(*trouble))?;
                untold.into_iter().for_each(|row| progress.remark(&untold_header(name, &row, "loaded")));
            }
            let left_out = rows.left_out();
            if !is_value_chosen && !left_out.is_empty() {
                progress.remark(&format!("{name}: not loaded: {}", columns(&left_out)));
            }
            sink.take_all(rows)
        }
        (Choice::Fields { key, value }, _) => {
            sink.take_all(Jsonl::new(window, key, value).map_err(|trouble| header_trouble(*trouble))?)
        }
        (Choice::Whole, Format::Fixed { key_bytes, value_bytes }) => {
            sink.take_all(Fixed::new(window, key_bytes, value_bytes))
        }
        (Choice::Whole | Choice::Parquet { .. }, _) => sink.take_all(Lines::new(window)),
    }
}

/// Names columns, but for those of a very wide input.
fn columns(names: &[String]) -> String {
    let noun = if names.len() == 1 { "column" } else { "columns" };
    let more = names.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{noun} {}{more}", names[..names.len().min(NAMED_MAX)].join(", "))
}

fn header_trouble(trouble: TroubleKind) -> Stop {
    match trouble {
        TroubleKind::Bad(reason) => Stop::Header(reason),
        TroubleKind::Read(error) => Stop::Read(error),
    }
}

fn choice(args: &LoadArgs, format: Format) -> Result<Choice, Failure> {
    let usage = |reason: &str| Err(Failure::Usage(reason.into()));
    let chosen = args.key.is_some() || args.value.is_some();
    let dialect = match format {
        Format::Lines | Format::Fixed { .. } if chosen => {
            return usage("--key and --value choose columns of csv, tsv and parquet or fields of jsonl");
        }
        Format::Lines | Format::Jsonl | Format::Parquet | Format::Fixed { .. } if args.header => {
            return usage("--header is for csv and tsv");
        }
        Format::Lines | Format::Fixed { .. } => return Ok(Choice::Whole),
        Format::Jsonl => {
            return match &args.key {
                Some(key) => Ok(Choice::Fields { key: key.clone(), value: args.value.clone() }),
                None => usage("jsonl needs --key, the field of the key"),
            };
        }
        Format::Csv => Some(Dialect::Csv),
        Format::Tsv => Some(Dialect::Tsv),
        Format::Parquet if args.file.as_os_str() == "-" => {
            return usage("Parquet is read from files only, not from standard input");
        }
        Format::Parquet => None,
    };
    let column = |text: &Option<String>, default| match text {
        Some(text) => text.parse::<Column>().map_err(Failure::Usage),
        None => Ok(Column::Place(default)),
    };
    let (key, value) = (column(&args.key, 0)?, column(&args.value, 1)?);
    let Some(dialect) = dialect else { return Ok(Choice::Parquet { key, value }) };
    let is_name = |column: &Column| matches!(column, Column::Name(_));
    let header = match args.header || is_name(&key) || is_name(&value) {
        true => Header::Present,
        false => Header::Absent,
    };
    Ok(Choice::Columns { dialect, header, key, value, is_value_chosen: args.value.is_some() })
}
