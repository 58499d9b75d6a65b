//! `advise`: which layout for what is known of a table, and whether a table that is there should have another one.

mod running;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use forebay::Error;
use forebay::advise::{Advice, Limits, Machine, Popularity, Switch, Workload, Writes, advise, switch};
use serde::Serialize;

use crate::args::parse::parse_ttl;
use crate::args::{Common, Reading};
use crate::failure::Failure;
use crate::form::Form;
use crate::output::Output;
use forebay_units::{amounts, sizes};
use running::Running;

/// Name the layout and options for a workload, with the prices of those that come next
#[derive(Debug, Args)]
#[command(after_help = "Rates are a second's. Where only their proportions are known, give those.\n\n\
                        Examples:\n  forebay advise --record 100 --key 16 --records 50M --writes 20K --gets 2K --memory 1G\n  \
                        forebay advise --record 1K --records 2M --rewrites 20 --writes 100 --ranges 5 --space 2\n  \
                        forebay advise users.db users\n  \
                        forebay advise users.db users --writes 500 --gets 9000 --json")]
pub(crate) struct AdviseArgs {
    /// A database: what is not told below is taken from its table, and a switch is weighed
    #[arg(requires = "table")]
    db: Option<PathBuf>,
    /// The table's name
    table: Option<String>,
    #[command(flatten)]
    known: KnownArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    machine: MachineArgs,
    /// Every layout, and not only the one advised and three that come next
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// What is known of the workload.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
struct KnownArgs {
    /// Bytes of key and value of a record
    #[arg(long, value_name = "SIZE", required_unless_present = "db", value_parser = sizes::parse)]
    record: Option<u64>,
    /// Bytes of the key [default: 8]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    key: Option<u64>,
    /// How many distinct keys there will be, such as 200M
    #[arg(long, value_name = "N", required_unless_present = "db", value_parser = amounts::parse)]
    records: Option<u64>,
    /// How often each key is written again, on average [default: 0]
    #[arg(long, value_name = "X", value_parser = parse_number)]
    rewrites: Option<f64>,
    /// Writes a second
    #[arg(long, value_name = "RATE", value_parser = parse_number)]
    writes: Option<f64>,
    /// Of the writes, the share that deletes
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_number)]
    deletes: f64,
    /// What is written adds up, as counters and states do
    #[arg(long)]
    merge: bool,
    /// Lookups of single keys a second
    #[arg(long, value_name = "RATE", value_parser = parse_number)]
    gets: Option<f64>,
    /// Of the lookups, the share of keys that are not there
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_number)]
    absent: f64,
    /// Scans of ranges a second
    #[arg(long, value_name = "RATE", default_value_t = 0.0, value_parser = parse_number)]
    ranges: f64,
    /// Entries of a range
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = parse_number)]
    range_entries: f64,
    /// Keys have to be in order, whether or not ranges are read
    #[arg(long)]
    ordered: bool,
    /// Which keys are rewritten and read
    #[arg(long, value_name = "DRAW", default_value = "even")]
    keys: Draw,
}

/// How keys are drawn.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Draw {
    /// Each as often as any other
    Even,
    /// Few of them most of the time, by Zipf's law
    Zipf,
}

/// What it may cost.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// The most that the table may take on disk at any time
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    disk: Option<u64>,
    /// The same, by the bytes of keys and values that are there, such as 1.5
    #[arg(long, value_name = "X", value_parser = parse_number)]
    space: Option<f64>,
    /// The longest that a write may wait for merges, such as 200ms
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    longest_wait: Option<Duration>,
}

/// Where it runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
struct MachineArgs {
    /// Cores
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = parse_number)]
    cores: f64,
    /// Bytes that the device writes or reads in a second [default: 1 GB]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    bandwidth: Option<u64>,
    /// Single pages that the device reads in a second
    #[arg(long, value_name = "N", default_value = "100K", value_parser = amounts::parse)]
    device_reads: u64,
}

/// A number from 0 on, or a count with a unit.
fn parse_number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        Ok(_) => Err("give a number from 0 on".into()),
        Err(_) => amounts::parse(text).map(|number| number as f64),
    }
}

/// What the library calls a figure, and the option that gives it.
const OPTIONS: [(&str, &str); 12] = [
    ("absent_share", "--absent"),
    ("cores", "--cores"),
    ("deletes_share", "--deletes"),
    ("device_bytes_per_second", "--bandwidth"),
    ("device_reads_per_second", "--device-reads"),
    ("disk_bytes", "--disk"),
    ("gets_per_second", "--gets"),
    ("range_entries", "--range-entries"),
    ("ranges_per_second", "--ranges"),
    ("space_amplification_max", "--space"),
    ("wait_seconds_max", "--longest-wait"),
    ("writes_per_second", "--writes"),
];

/// An error of the library, with the options of the command in the place of the fields' names.
fn by_options(reason: &str) -> String {
    let word = |word: &str| {
        OPTIONS
            .iter()
            .find(|(field, _)| *field == word)
            .map_or(word.to_string(), |(_, option)| (*option).into())
    };
    reason.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The answer to a program.
#[derive(Serialize)]
struct Answer<'a> {
    advice: &'a [Advice],
    switch: Option<&'a Switch>,
}

/// More writes than this many times the memory take long to count.
const LONG_PARTS: f64 = 200.0;
/// What is shown besides the one advised.
const NEAREST: usize = 3;

pub(crate) fn run(args: &AdviseArgs, common: &Common) -> Result<(), Failure> {
    let running = match (&args.db, &args.table) {
        (Some(db), Some(table)) => Some(Running::of(db, table, common)?),
        _ => None,
    };
    let workload = workload(args, running.as_ref())?;
    let limits = limits(args, common);
    let told = |error: Error| match error {
        Error::Invalid(reason) => Failure::Usage(by_options(&reason)),
        error => error.into(),
    };
    let written_bytes =
        workload.keys as f64 * (1.0 + workload.rewrites) * (workload.key_bytes + workload.value_bytes) as f64;
    if written_bytes > LONG_PARTS * limits.memory_bytes as f64 && !common.is_quiet() {
        tell!("forebay: all that is written is many times the memory: counting that may take minutes");
    }
    let mut advice = advise(&workload, &limits).map_err(told)?;
    let weighed = match &running {
        // One that cannot answer what is asked has no price to be held against.
        Some(running) if workload.wants_order() && !running.layout.is_ordered() => None,
        Some(running) => {
            let (layout, apart) = (running.layout, running.values_apart);
            Some(switch(layout, apart, &advice[0], &workload, &limits).map_err(told)?)
        }
        None => None,
    };
    if !args.all {
        advice.truncate(1 + NEAREST);
    }
    let mut output = Output::new(common.form());
    match common.form() {
        Form::Json => {
            let answer = Answer { advice: &advice, switch: weighed.as_ref() };
            output.json("advice", &answer)?;
        }
        Form::Text => {
            let shown = table::Ranking { workload: &workload, advice: &advice, switch: weighed.as_ref() };
            output.line(shown.to_string().trim_end())?;
        }
    }
    output.flush()
}

fn limits(args: &AdviseArgs, common: &Common) -> Limits {
    let usual = Limits::default();
    let MachineArgs { cores, bandwidth, device_reads } = args.machine;
    Limits {
        memory_bytes: common.memory.unwrap_or(usual.memory_bytes),
        disk_bytes: args.limits.disk,
        space_amplification_max: args.limits.space,
        wait_seconds_max: args.limits.longest_wait.map(|wait| wait.as_secs_f64()),
        machine: Machine {
            cores,
            device_bytes_per_second: bandwidth
                .map_or(usual.machine.device_bytes_per_second, |bytes| bytes as f64),
            device_reads_per_second: device_reads as f64,
        },
    }
}

/// What is told, and what is not told as the table has it.
fn workload(args: &AdviseArgs, running: Option<&Running>) -> Result<Workload, Failure> {
    let known = &args.known;
    let seen = running.map(Running::workload).unwrap_or_default();
    let key_bytes = known.key.unwrap_or(if running.is_some() { seen.key_bytes } else { 8 });
    let record = known.record.unwrap_or(seen.key_bytes + seen.value_bytes);
    let Some(value_bytes) = record.checked_sub(key_bytes) else {
        return Err(Failure::Usage(format!("a record of {record} bytes has no key of {key_bytes}")));
    };
    let rates = [known.writes.unwrap_or(seen.writes_per_second), known.gets.unwrap_or(seen.gets_per_second)];
    if rates.iter().sum::<f64>() + known.ranges <= 0.0 {
        return Err(Failure::Usage("nothing is written or read: give --writes, --gets or --ranges".into()));
    }
    Ok(Workload {
        key_bytes,
        value_bytes,
        keys: known.records.unwrap_or(seen.keys),
        rewrites: known.rewrites.unwrap_or(seen.rewrites),
        writes_per_second: rates[0],
        writes: if known.merge { Writes::Operands } else { seen.writes },
        deletes_share: known.deletes,
        gets_per_second: rates[1],
        absent_share: known.absent,
        ranges_per_second: known.ranges,
        range_entries: known.range_entries,
        ordered: known.ordered || seen.ordered,
        popularity: match known.keys {
            Draw::Even => Popularity::Even,
            Draw::Zipf => Popularity::Zipf,
        },
    })
}
