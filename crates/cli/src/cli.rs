//! The program's command line: every command that there is, a line each for what it takes and what runs it.

use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};

use crate::args::Common;
use crate::commands::{
    advise, aggregate, alter, backup, backups, bench, changes, checkpoint, compact, completions, delete,
    describe, destroy, dump, follow, get, layout, load, man, merge, put, rescue, restore, rollback,
    savepoint, savepoints, scan, serve, simulate, stats, top, verify,
};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  forebay load logs.db lines access.log
  forebay load users.db users users.csv --key id --value email --layout wb-tree:ordered
  forebay get users.db users 1042 --json
  forebay scan users.db users --prefix 10 --limit 20
  forebay stats users.db
  forebay aggregate --by word --top 10 book.txt
  forebay simulate --record 16 --records 1e12 --memory 8G
  forebay advise --record 100 --records 50M --writes 20K --gets 2K --memory 1G

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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Load(load::LoadArgs),
    Put(put::PutArgs),
    Merge(merge::MergeArgs),
    Get(get::GetArgs),
    Delete(delete::DeleteArgs),
    Scan(scan::ScanArgs),
    Changes(changes::ChangesArgs),
    Follow(follow::FollowArgs),
    Serve(Box<serve::ServeArgs>),
    Top(top::TopArgs),
    Stats(stats::StatsArgs),
    Describe(describe::DescribeArgs),
    Dump(dump::DumpArgs),
    Verify(verify::VerifyArgs),
    Rescue(rescue::RescueArgs),
    Compact(compact::CompactArgs),
    Layout(layout::LayoutArgs),
    Alter(alter::AlterArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Backup(backup::BackupArgs),
    Backups(backups::BackupsArgs),
    Restore(restore::RestoreArgs),
    Savepoint(savepoint::SavepointArgs),
    Savepoints(savepoints::SavepointsArgs),
    Rollback(rollback::RollbackArgs),
    Destroy(destroy::DestroyArgs),
    Aggregate(Box<aggregate::AggregateArgs>),
    Bench(Box<bench::BenchArgs>),
    Simulate(simulate::SimulateArgs),
    Advise(Box<advise::AdviseArgs>),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Runs the command.
pub(crate) fn run(line: &Cli) -> Result<(), Failure> {
    let common = &line.common;
    match &line.command {
        Command::Load(args) => load::run(args, &args.writing.of(common)),
        Command::Put(args) => put::run(args, &args.writing.of(common)),
        Command::Merge(args) => merge::run(args, &args.writing.of(common)),
        Command::Get(args) => get::run(args, &args.reading.of(common)),
        Command::Delete(args) => delete::run(args, &args.writing.of(common)),
        Command::Scan(args) => scan::run(args, &args.reading.of(common)),
        Command::Changes(args) => changes::run(args, &args.reading.of(common)),
        Command::Follow(args) => follow::run(args, &args.reading.of(common)),
        Command::Serve(args) => serve::run(args, &args.writing.of(common)),
        Command::Top(args) => top::run(args, common),
        Command::Stats(args) => stats::run(args, &args.reading.of(common)),
        Command::Describe(args) => describe::run(args, &args.reading.of(common)),
        Command::Dump(args) => dump::run(args, common),
        Command::Verify(args) => verify::run(args, &args.reading.of(common)),
        Command::Rescue(args) => rescue::run(args, &args.reading.of(common)),
        Command::Compact(args) => compact::run(args, &args.writing.of(common)),
        Command::Layout(args) => layout::run(args, &args.writing.of(common)),
        Command::Alter(args) => alter::run(args, &args.writing.of(common)),
        Command::Checkpoint(args) => checkpoint::run(args, &args.writing.of(common)),
        Command::Backup(args) => backup::run(args, &args.writing.of(common)),
        Command::Backups(args) => backups::run(args, common),
        Command::Restore(args) => restore::run(args, common),
        Command::Savepoint(args) => savepoint::run(args, &args.writing.of(common)),
        Command::Savepoints(args) => savepoints::run(args, &args.reading.of(common)),
        Command::Rollback(args) => rollback::run(args, &args.writing.of(common)),
        Command::Destroy(args) => destroy::run(args, &args.writing.of(common)),
        Command::Aggregate(args) => aggregate::run(args, &args.reading.of(common)),
        Command::Bench(args) => bench::run(args, &args.reading.of(common)),
        Command::Advise(args) => advise::run(args, &args.reading.of(common)),
        Command::Simulate(args) => simulate::run(args, &args.reading.of(common)),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => man::run(args, Cli::command()),
    }
}
