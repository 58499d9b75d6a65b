//! The command line as types. What each command takes stands beside the command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    aggregate, bench, changes, checkpoint, compact, delete, describe, destroy, get, layout, load, put,
    rollback, savepoint, savepoints, scan, simulate, stats, verify,
};
use crate::output::Form;
use forebay_bench::sizes;

const EXAMPLES: &str = "\
Examples:
  forebay load logs.db lines access.log
  forebay load users.db users users.csv --format csv --key id --value email --layout write-buffer:ordered
  forebay get users.db users 1042 --json
  forebay scan users.db users --prefix 10 --limit 20
  forebay stats users.db
  forebay aggregate --by word --top 10 book.txt
  forebay simulate --record 16 --records 1e12 --memory 8G

Exit codes: 0 success, 1 the work failed, 2 bad usage.";

/// A write-optimised key-value store, from the shell.
#[derive(Debug, Parser)]
#[command(name = "forebay", version, after_help = EXAMPLES, arg_required_else_help = true)]
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
    /// The most memory the database uses in all, or the groups of an aggregation, such as 64M or 2G
    #[arg(long, global = true, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) memory: Option<u64>,
    /// How much of the log a command that writes leaves for `changes`; without it, what is in lists goes
    #[arg(long, global = true, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) keep_changes: Option<u64>,
}

impl Common {
    /// Whether answers are text or JSON.
    pub(crate) fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
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
