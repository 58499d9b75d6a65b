//! `alter`: other options for a table.

use std::time::Duration;

use clap::{ArgGroup, Args};
use forebay::{Codec, PrefixFilter, TableBuilder};
use forebay_units::{sizes, times};
use serde_json::json;

use crate::args::parse::{parse_space_amplification, parse_ttl, parse_values_apart};
use crate::args::{Common, TableArgs, Writing};
use crate::clock::Stopwatch;
use crate::database::{Access, known_table, open};
use crate::failure::Failure;
use crate::output::Output;

/// Give a table other options; what is written from then on goes by them
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("altered").required(true).multiple(true),
    after_help = "Examples:\n  forebay alter users.db users --codec lz4\n  \
                  forebay alter users.db users --max-space-amplification none --filter-bits 16"
)]
pub(crate) struct AlterArgs {
    #[command(flatten)]
    target: TableArgs,
    /// Compression of lists, page by page: none, lz4
    #[arg(long, group = "altered", value_parser = parse_codec)]
    codec: Option<Codec>,
    /// Filter memory for each key of each list
    #[arg(long, group = "altered", value_name = "BITS")]
    filter_bits: Option<u32>,
    /// Which first bytes of keys filters know, too: N of them, until:BYTE for all up to such a byte, or none
    #[arg(long, group = "altered", value_name = "N|until:BYTE", value_parser = parse_prefix_filter)]
    prefix_filter: Option<Prefixes>,
    /// Capacity of a node
    #[arg(long, group = "altered", value_name = "SIZE", value_parser = sizes::parse)]
    node_bytes: Option<u64>,
    /// The most children of a node
    #[arg(long, group = "altered", value_name = "N")]
    fan_out: Option<usize>,
    /// Fast splits of a leaf for each slow one
    #[arg(long, group = "altered", value_name = "N")]
    fast_per_slow: Option<u32>,
    /// The most lists of a leaf
    #[arg(long, group = "altered", value_name = "N")]
    lists_max: Option<usize>,
    /// How often a node may hold a key on average
    #[arg(long, group = "altered", value_name = "X")]
    repeats_max: Option<f64>,
    /// Bound files by this many times the live bytes; none for no bound
    #[arg(long, group = "altered", value_name = "RATIO", value_parser = parse_bound)]
    max_space_amplification: Option<f64>,
    /// How soon deleted data leave the files; none for no such time
    #[arg(long, group = "altered", value_name = "TIME", value_parser = parse_interval)]
    reclaim_interval: Option<Duration>,
    /// How long entries live that are put from now on, in a table whose entries expire
    #[arg(long, group = "altered", value_name = "TIME", value_parser = parse_ttl)]
    ttl: Option<Duration>,
    /// Keep values of at least this many bytes apart, in a table that keeps some apart
    #[arg(long, group = "altered", value_name = "SIZE", value_parser = parse_values_apart)]
    values_apart: Option<u32>,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

const NONE: &str = "none";

/// A prefix filter, or none of them.
#[derive(Clone, Copy, Debug)]
struct Prefixes(Option<PrefixFilter>);

impl From<Prefixes> for Option<PrefixFilter> {
    fn from(prefixes: Prefixes) -> Self {
        prefixes.0
    }
}

fn parse_prefix_filter(text: &str) -> Result<Prefixes, String> {
    PrefixFilter::or_none(text).map(Prefixes).map_err(|error| error.to_string())
}

fn parse_codec(text: &str) -> Result<Codec, String> {
    match text {
        NONE => Ok(Codec::None),
        "lz4" => Ok(Codec::Lz4),
        _ => Err("there are none and lz4".into()),
    }
}

fn parse_bound(text: &str) -> Result<f64, String> {
    if text == NONE { Ok(f64::INFINITY) } else { parse_space_amplification(text) }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    if text == NONE { Ok(Duration::MAX) } else { times::parse(text) }
}

pub(crate) fn run(args: &AlterArgs, common: &Common) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let db = open(&args.target.db, common, Access::Write)?;
    let name = &args.target.table;
    known_table(&db, name)?;
    altered(db.table(name), args).alter()?;
    db.close()?;
    let seconds = watch.seconds();
    let text = format_args!("{name}: altered, in {seconds:.1} s").to_string();
    Output::summary(common, &json!({ "table": name, "seconds": seconds }), text)
}

/// With what is asked for.
fn altered(mut table: TableBuilder, args: &AlterArgs) -> TableBuilder {
    macro_rules! ask {
        ($($option:ident = $asked:expr),*) => {
            $(if let Some(asked) = $asked {
                table = table.$option(asked);
            })*
        };
    }
    ask!(
        codec = args.codec,
        filter_bits_per_key = args.filter_bits,
        prefix_filter = args.prefix_filter,
        node_bytes = args.node_bytes,
        fan_out = args.fan_out,
        fast_per_slow = args.fast_per_slow,
        lists_max = args.lists_max,
        repeats_max = args.repeats_max,
        max_space_amplification = args.max_space_amplification,
        reclaim_interval = args.reclaim_interval,
        time_to_live = args.ttl,
        values_apart = args.values_apart
    );
    table
}
