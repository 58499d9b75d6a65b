//! The command line as types. What each command takes stands beside the command.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::commands::ttl::parse_ttl;
use crate::commands::{
    aggregate, bench, changes, checkpoint, compact, completions, delete, describe, destroy, get, layout,
    load, man, put, rescue, rollback, savepoint, savepoints, scan, simulate, stats, verify,
};
use crate::output::Form;
use forebay_units::sizes;

const EXAMPLES: &str = "\
Examples:
  forebay load logs.db lines access.log
  forebay load users.db users users.csv --key id --value email --layout wb-tree:ordered
  forebay get users.db users 1042 --json
  forebay scan users.db users --prefix 10 --limit 20
  forebay stats users.db
  forebay aggregate --by word --top 10 book.txt
  forebay simulate --record 16 --records 1e12 --memory 8G

Exit codes: 0 success, 1 the work failed, 2 bad usage (call it otherwise), 128 and its number for a signal.";

/// With the commit, where whoever built it said which.
static VERSION: LazyLock<String> =
    LazyLock::new(|| match option_env!("FOREBAY_COMMIT").filter(|commit| !commit.is_empty()) {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").into(),
    });

/// A write-optimised key-value store, from the shell.
#[derive(Debug, Parser)]
#[command(name = "forebay", version = VERSION.as_str(), max_term_width = 100, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Print one JSON object a line; progress and messages go to standard error
    #[arg(long, global = true)]
    json: bool,
    /// Print answers and errors only: no progress, and nothing of what the work came to
    #[arg(long, short, global = true)]
    quiet: bool,
    /// What [`Memory`], [`Reading`] or [`Writing`] say, where the command takes them.
    #[arg(skip)]
    pub(crate) memory: Option<u64>,
    #[arg(skip)]
    pub(crate) wait: Option<Duration>,
    #[arg(skip)]
    pub(crate) keep_changes: Option<u64>,
}

/// What every command takes that works in memory of a given size.
#[derive(Debug, Clone, Args)]
pub(crate) struct Memory {
    /// The most memory the database uses in all, or the groups of an aggregation, such as 64M or 2G
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    memory: Option<u64>,
}

/// What every command takes that opens a database.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reading {
    #[command(flatten)]
    memory: Memory,
    /// How long to wait while the database is open elsewhere, such as 30s; without it that is an error at once
    #[arg(long, value_name = "TIME", value_parser = parse_ttl)]
    wait: Option<Duration>,
}

/// What every command takes that writes to a database.
#[derive(Debug, Clone, Args)]
pub(crate) struct Writing {
    #[command(flatten)]
    reading: Reading,
    /// How much of the log to leave for `changes`; without it, what is in lists goes
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    keep_changes: Option<u64>,
}

impl Memory {
    /// What holds for a command that takes this.
    pub(crate) fn of(&self, common: &Common) -> Common {
        Common { memory: self.memory, ..common.clone() }
    }
}

impl Reading {
    /// What holds for a command that takes this.
    pub(crate) fn of(&self, common: &Common) -> Common {
        Common { wait: self.wait, ..self.memory.of(common) }
    }
}

impl Writing {
    /// What holds for a command that takes this.
    pub(crate) fn of(&self, common: &Common) -> Common {
        Common { keep_changes: self.keep_changes, ..self.reading.of(common) }
    }
}

impl Common {
    /// Whether answers are text or JSON.
    pub(crate) fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }

    /// Whether a person is told how the work goes and what it came to.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Load(load::LoadArgs),
    Put(put::PutArgs),
    Get(get::GetArgs),
    Delete(delete::DeleteArgs),
    Scan(scan::ScanArgs),
    Changes(changes::ChangesArgs),
    Stats(stats::StatsArgs),
    Describe(describe::DescribeArgs),
    Verify(verify::VerifyArgs),
    Rescue(rescue::RescueArgs),
    Compact(compact::CompactArgs),
    Layout(layout::LayoutArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Savepoint(savepoint::SavepointArgs),
    Savepoints(savepoints::SavepointsArgs),
    Rollback(rollback::RollbackArgs),
    Destroy(destroy::DestroyArgs),
    Aggregate(Box<aggregate::AggregateArgs>),
    Bench(Box<bench::BenchArgs>),
    Simulate(simulate::SimulateArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// The database, and one of its tables.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// The database's directory
    pub(crate) db: PathBuf,
    /// The table's name
    pub(crate) table: String,
}

/// The database, and perhaps one of its tables.
#[derive(Debug, Args)]
pub(crate) struct DatabaseArgs {
    /// The database's directory
    pub(crate) db: PathBuf,
    /// One table instead of all of them
    pub(crate) table: Option<String>,
}
