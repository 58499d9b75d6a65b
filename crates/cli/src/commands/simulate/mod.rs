//! `simulate`: what a load would cost, without data.

mod goal;
mod table;

use std::io::IsTerminal;

use clap::Args;
use forebay::simulate::{Forecast, Keys, Load, Rates, Simulation};
use forebay::{Error, Layout, Options, TableOptions};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::parse::{parse_layout, parse_values_apart};
use crate::args::{Common, Memory};
use crate::failure::Failure;
use crate::form::Form;
use crate::output::Output;
use forebay_units::{amounts, sizes};
use goal::Goal;

/// Predict what a load would write, read, keep and take, without data
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forebay simulate --record 16 --records 6.25e12 --memory 8G\n  \
                        forebay simulate --record 64 --records 200M --memory 512M --points 8\n  \
                        forebay simulate --record 16 --records 1e9 --distinct 100M --json\n  \
                        forebay simulate --record 1100 --key 100 --records 10M --memory 1G --compare\n  \
                        forebay simulate --record 256 --records 100M --memory 1G --goal space")]
pub(crate) struct SimulateArgs {
    /// The table's layout, such as wb-tree, leveling:t=10, tiering or jungle:c=2
    #[arg(long, value_name = "LAYOUT", default_value = "wb-tree", value_parser = parse_layout)]
    layout: Layout,
    /// Every layout beside the others, from cheap writes to cheap reads
    #[arg(long, conflicts_with_all = ["layout", "points"])]
    compare: bool,
    /// Every layout beside the others, the best for this first; `advise` weighs all of it for a workload
    #[arg(long, conflicts_with_all = ["layout", "points"])]
    goal: Option<Goal>,
    /// Bytes of key and value of every record
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    record: u64,
    /// Bytes of the key
    #[arg(long, value_name = "SIZE", default_value = "8", value_parser = sizes::parse)]
    key: u64,
    /// How many records are loaded, such as 200M or 1e12
    #[arg(long, value_name = "N", value_parser = amounts::parse)]
    records: u64,
    /// Draw keys from this many; without it no key comes twice
    #[arg(long, value_name = "N", value_parser = amounts::parse)]
    distinct: Option<u64>,
    /// Draw them by Zipf with this exponent, such as 0.99, low keys the more often
    #[arg(long, value_name = "E", requires = "distinct", conflicts_with_all = ["compare", "goal"], value_parser = hundredths)]
    zipf: Option<u32>,
    /// Write as fast as writers are let, so that merges lag behind; else each write buffer comes once all is done
    #[arg(long, conflicts_with_all = ["compare", "goal"])]
    saturated: bool,
    /// Tell how things stand at this many sizes, each twice the one before
    #[arg(long, value_name = "N", default_value_t = 1)]
    points: u32,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    pub(crate) reading: Memory,
}

/// Options of a table, and of its write buffers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
struct TreeArgs {
    /// Size of a write buffer
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    write_buffer: Option<u64>,
    /// Percent of the memory that range-merge may keep records in [default: 40]
    #[arg(long, value_name = "N")]
    resident_percent: Option<u32>,
    /// Capacity of a node
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    node_bytes: Option<u64>,
    /// The most children of a node
    #[arg(long, value_name = "N")]
    fan_out: Option<usize>,
    /// Fast splits of a leaf for each slow one
    #[arg(long, value_name = "N")]
    fast_per_slow: Option<u32>,
    /// The most lists of a leaf
    #[arg(long, value_name = "N")]
    lists_max: Option<usize>,
    /// How often a node may hold a key on average
    #[arg(long, value_name = "X")]
    repeats_max: Option<f64>,
    /// Filter memory for each key of each list
    #[arg(long, value_name = "BITS")]
    filter_bits: Option<u32>,
    /// Keep values of at least this many bytes apart from their keys
    #[arg(long, value_name = "SIZE", value_parser = parse_values_apart)]
    values_apart: Option<u32>,
}

/// What times are predicted from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
struct MachineArgs {
    /// Bytes that the device writes or reads in a second [default: 1 GB]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    write_bandwidth: Option<u64>,
    /// What a core takes to bring a record one place further [default: as measured]
    #[arg(long, value_name = "NS")]
    cpu_nanoseconds: Option<f64>,
    /// Cores [default: 2]
    #[arg(long, value_name = "N")]
    cores: Option<f64>,
}

pub(crate) fn run(args: &SimulateArgs, common: &Common) -> Result<(), Failure> {
    let Some(value_bytes) = args.record.checked_sub(args.key) else {
        return Err(Failure::Usage(format!("a record of {} bytes has no key of {}", args.record, args.key)));
    };
    let load = Load {
        key_bytes: args.key,
        value_bytes,
        records: args.records,
        keys: match (args.distinct, args.zipf) {
            (None, _) => Keys::Unique,
            (Some(keys), None) => Keys::DrawnFrom(keys),
            (Some(keys), Some(exponent_percent)) => Keys::Zipf { keys, exponent_percent },
        },
    };
    let options = options(args, common);
    let form = common.form();
    let compares = args.compare || args.goal.is_some();
    let layouts = match compares {
        true => COMPARED
            .iter()
            .map(|name| parse_layout(name).map_err(Failure::Usage))
            .collect::<Result<_, _>>()?,
        false => vec![args.layout],
    };
    let mut output = Output::new(form);
    let mut forecasts = Vec::new();
    for layout in layouts {
        let forecast = forecast(args, layout, load, &options, common)?;
        match form {
            // As soon as it is there, if none may come before it.
            Form::Json if args.goal.is_none() => output.json("forecast", &forecast)?,
            Form::Text if !compares => output.line(table::Table(&forecast).to_string().trim_end())?,
            _ => forecasts.push(forecast),
        }
    }
    if let Some(goal) = args.goal {
        goal.rank(&mut forecasts);
    }
    if form == Form::Json {
        forecasts.iter().try_for_each(|forecast| output.json("forecast", forecast))?;
    } else if !forecasts.is_empty() {
        output.line(table::Comparison(&forecasts).to_string().trim_end())?;
    }
    output.flush()
}

/// What [`SimulateArgs::compare`] compares.
const COMPARED: [&str; 20] = [
    "no-merge",
    "wb-tree",
    "wb-tree:ordered",
    "tiering:t=10",
    "tiering:t=4",
    "stacks:t=10",
    "stacks:t=4",
    "lazy-leveling:t=10",
    "lazy-leveling:t=4",
    "geometric:r=3",
    "geometric:r=2",
    "jungle:c=5",
    "jungle:c=2",
    "leveling:t=4",
    "leveling:t=10",
    "geometric:p=3",
    "geometric:p=2",
    "range-merge:c=3",
    "range-merge",
    "immediate",
];

fn hundredths(text: &str) -> Result<u32, String> {
    let exponent = text.parse::<f64>().ok().filter(|exponent| (0.0..=3.0).contains(exponent));
    exponent.map(|exponent| (exponent * 100.0).round() as u32).ok_or_else(|| "give a number up to 3".into())
}

fn forecast(
    args: &SimulateArgs,
    layout: Layout,
    load: Load,
    options: &Options,
    common: &Common,
) -> Result<Forecast, Failure> {
    let table = table(args, layout, options);
    let usage = |error: Error| Failure::Usage(error.to_string());
    let rates = rates(args, layout, load.listed_bytes(&table));
    let simulation = Simulation::new(options.clone(), table, load, rates).map_err(usage)?;
    let simulation = if args.saturated { simulation.saturated() } else { simulation };
    let bar = match common.form() == Form::Text && !common.is_quiet() && std::io::stderr().is_terminal() {
        true => ProgressBar::new(args.records).with_style(
            ProgressStyle::with_template("{bar:32} {percent} %, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        ),
        false => ProgressBar::hidden(),
    };
    let outcome = simulation.run(args.points, &mut |records| bar.set_position(records));
    bar.finish_and_clear();
    Ok(outcome?)
}

fn options(args: &SimulateArgs, common: &Common) -> Options {
    let mut options = Options::default();
    if let Some(bytes) = common.memory {
        options = options.memory_limit(bytes);
    }
    if let Some(bytes) = args.tree.write_buffer {
        options = options.write_buffer(bytes);
    }
    if let Some(percent) = args.tree.resident_percent {
        options = options.resident_percent(percent);
    }
    options
}

fn table(args: &SimulateArgs, layout: Layout, options: &Options) -> TableOptions {
    let mut table = TableOptions::new(layout, options.buffer_bytes(layout));
    let TreeArgs { node_bytes, fan_out, fast_per_slow, lists_max, repeats_max, filter_bits, .. } = args.tree;
    let tree = &mut table.tree;
    tree.node_bytes = node_bytes.unwrap_or(tree.node_bytes);
    tree.fan_out = fan_out.unwrap_or(tree.fan_out);
    tree.fast_per_slow = fast_per_slow.unwrap_or(tree.fast_per_slow);
    tree.lists_max = lists_max.unwrap_or(tree.lists_max);
    tree.repeats_max = repeats_max.unwrap_or(tree.repeats_max);
    table.filter_bits_per_key = filter_bits.unwrap_or(table.filter_bits_per_key);
    table.apart_bytes_min = args.tree.values_apart;
    table
}

fn rates(args: &SimulateArgs, layout: Layout, record_bytes: u64) -> Rates {
    let usual = Rates::measured(layout, record_bytes);
    let MachineArgs { write_bandwidth, cpu_nanoseconds, cores } = args.machine;
    Rates {
        device_bytes_per_second: write_bandwidth.map_or(usual.device_bytes_per_second, |bytes| bytes as f64),
        record_pass_nanoseconds: cpu_nanoseconds.unwrap_or(usual.record_pass_nanoseconds),
        cores: cores.unwrap_or(usual.cores),
    }
}
