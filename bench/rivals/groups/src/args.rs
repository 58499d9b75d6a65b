//! The command line.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::engines::Setting;
use crate::inputs::Kind;

const EXAMPLES: &str = "\
An engine may be followed by settings: forebay:threads=1, forebay:adders=2, forebay:shared=1
(one that adds as if others did), forebay:trees=2, forebay:finalizes=4
(so many times, the last of them at the end), forebay:stages=1 (processor time by stage), and threads for those that
take them. The tree of the thesis runs where it is named: thesis:fan_out=64:buffer=30M:roots=4:trees=5:packing=columns
(off, rows, columns or apart).

Examples:
  forebay-bench-groups words
  forebay-bench-groups numbers --adds 100000000 --groups 50000000 --engines forebay,hashbrown,duckdb --repeat 3
  forebay-bench-groups words --key-bytes 32 --engines forebay,forebay:trees=2,sparsehash";

/// Count keys by one engine after the other, each in a process of its own, and tell what that took in JSON lines
#[derive(Clone, Debug, Parser)]
#[command(version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) campaign: CampaignArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Be one of the processes that a campaign starts
    #[command(hide = true)]
    Child(ChildArgs),
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CampaignArgs {
    /// What keys are
    #[arg(value_enum, default_value = "words")]
    pub(crate) kind: Kind,
    /// Keys that are added
    #[arg(long, value_name = "N", default_value = "20000000")]
    pub(crate) adds: NonZeroU64,
    /// Different keys that they are drawn from
    #[arg(long, value_name = "N", default_value = "2500000")]
    pub(crate) groups: NonZeroU64,
    /// Give all words this length
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(6..=70))]
    pub(crate) key_bytes: Option<u8>,
    /// Engines, with commas between them; all by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) engines: Vec<Setting>,
    /// How often each engine counts; rounds go over all engines
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// What results call the workload; the keys' kind by default
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where the keys are written, and removed
    #[arg(long, default_value = ".")]
    pub(crate) dir: PathBuf,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ChildArgs {
    #[arg(long)]
    pub(crate) engine: Setting,
    #[arg(long)]
    pub(crate) file: PathBuf,
    #[arg(long, value_enum)]
    pub(crate) kind: Kind,
    #[arg(long)]
    pub(crate) key_bytes_max: usize,
    #[arg(long)]
    pub(crate) adds: u64,
}
