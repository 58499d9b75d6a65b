//! What `load` is told.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use forebay::{Durability, Layout, PrefixFilter};

use crate::args::parse::{
    LAYOUT_HELP, parse_durability, parse_layout, parse_space_amplification, parse_ttl, parse_values_apart,
};
use crate::args::{TableArgs, Writing};
use crate::input::format::Format;

const EXAMPLES: &str = "\
Formats, by the name of the file by default:
  lines      a line is a key; values are empty. Of files whose names tell no other
  csv, tsv   --key and --value choose columns, by number from 1 or by name in the first row
  jsonl      --key and --value choose fields; without --value the value is the whole line
  parquet    --key and --value choose columns, by number from 1 or by name
  fixed:K,V  binary records of K key bytes and V value bytes
Inputs that are gzip or zstd data are unpacked.

Examples:
  forebay load words.db words /usr/share/dict/words
  forebay load users.db users users.csv --key id --value email
  forebay load users.db events - --format jsonl --key id < events.jsonl
  forebay load big.db records records.bin --format fixed:8,8 --memory 512M --json
  LC_ALL=C sort -u words.txt | forebay load words.db words - --sorted";

/// Load records from a file or from standard input, making the database and the table where they are missing
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(super) target: TableArgs,
    /// The input; - is standard input
    #[arg(default_value = "-")]
    pub(super) file: PathBuf,
    #[arg(long, value_parser = parse_layout, help = LAYOUT_HELP)]
    pub(super) layout: Option<Layout>,
    /// Have a new table's filters know the first bytes of keys, too: N of them, or until:BYTE for all up to such a byte. A
    /// scan of a prefix then passes over lists that have none of it. For layouts in key order
    #[arg(long, value_name = "N|until:BYTE", value_parser = str::parse::<PrefixFilter>)]
    pub(super) prefix_filter: Option<PrefixFilter>,
    /// The most that a new table's files may take, by what lives of them: at least 1.25
    #[arg(long, value_name = "RATIO", value_parser = parse_space_amplification)]
    pub(super) max_space_amplification: Option<f64>,
    /// How long the entries of a new table live, such as 90s, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    pub(super) ttl: Option<Duration>,
    /// Keep a new table's values of at least this many bytes apart from their keys: each is written once
    #[arg(long, value_name = "SIZE", value_parser = parse_values_apart)]
    pub(super) values_apart: Option<u32>,
    /// How the input is written: lines, csv, tsv, jsonl, parquet, fixed:KEY,VALUE [default: as the name of the file
    /// says, else lines]
    #[arg(long, value_parser = str::parse::<Format>)]
    pub(super) format: Option<Format>,
    /// The column or field of the key [csv, tsv, parquet: 1]
    #[arg(long, value_name = "COLUMN|N")]
    pub(super) key: Option<String>,
    /// The column or field of the value [csv, tsv, parquet: 2; jsonl: the whole line]
    #[arg(long, value_name = "COLUMN|N")]
    pub(super) value: Option<String>,
    /// The first row of csv or tsv names the columns; so it does where --key or --value is a name
    #[arg(long)]
    pub(super) header: bool,
    /// What a record survives once it is acknowledged: memory, os (a crash of the process), disk (of the machine)
    #[arg(long, default_value = "os", value_parser = parse_durability)]
    pub(super) durability: Durability,
    /// Write no log: records go to lists alone, and a crash before the end may leave any part of them. Once the command
    /// has returned they survive a crash of the machine
    #[arg(long, conflicts_with_all = ["durability", "sorted", "keep_changes"])]
    pub(super) no_log: bool,
    /// Records a commit
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) batch: u32,
    /// Count malformed records and go on
    #[arg(long)]
    pub(super) skip_bad: bool,
    /// Keys ascend as bytes, each once: records go straight to lists, all or none of them, and survive a crash of the
    /// machine. For layouts of runs; a new table gets leveling
    #[arg(long, conflicts_with_all = ["durability", "batch"])]
    pub(super) sorted: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

impl LoadArgs {
    /// What the records survive by themselves.
    pub(super) fn durability(&self) -> Durability {
        if self.no_log { Durability::Memory } else { self.durability }
    }
}
