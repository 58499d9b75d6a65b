//! `cargo run --release -p forebay-torture -- kill|readers|power|full|faults`: campaigns against the real system, each with a count and
//! a seed.
//!
//! What the simulation does to a disk in memory, these do to the system's own: processes are killed, a file system
//! loses its power, a disk is full. The same model says what must be there.

#![expect(clippy::disallowed_methods, reason = "it is the system itself that is tried here")]

mod disk;
mod faults;
mod full;
mod history;
mod kernel;
mod kill;
mod oracle;
mod readers;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use forebay::Layout;
use forebay_testkit::golden::Files;

#[derive(Parser)]
#[command(about = "Campaigns against the real system: what is acknowledged must be there.")]
struct Cli {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Subcommand)]
enum Campaign {
    /// `kill -9` of a process that writes, at any moment; what it acknowledged is there.
    Kill(Asked),
    /// `kill -9` of processes that read beside the one that writes, or of that; what is seen is right, and nothing is left.
    Readers(Asked),
    /// The power of a file system goes, at any moment; what was acknowledged as durable is there. Needs root.
    Power(Asked),
    /// A small disk is full and is freed again, time after time; writes go on without opening anew. Needs root.
    Full(Asked),
    /// A fault at every file operation of a short history, once and from there on.
    Faults(Asked),
    /// Writes the databases of this build's format that every later build must open.
    Golden {
        /// The folder for them, such as `crates/forebay/tests/golden/v1`.
        to: PathBuf,
        /// Encrypted ones, such as `crates/forebay/tests/golden/encrypted-v1`.
        #[arg(long)]
        encrypted: bool,
    },
    /// The process that writes and is killed.
    #[command(hide = true)]
    Worker(worker::Task),
    /// A process that reads and is killed.
    #[command(hide = true)]
    Reader(worker::Task),
}

/// What all campaigns take.
#[derive(Args, Clone)]
struct Asked {
    /// How often, for each layout.
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// What everything is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One layout; else each in turn.
    #[arg(long)]
    layout: Option<Layout>,
    /// Where databases are made.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

impl Asked {
    /// The layouts to try. `wb-tree` is one of a table in hash order: any other may stand beside it.
    fn layouts(&self) -> Vec<Layout> {
        match self.layout {
            Some(layout) => vec![layout],
            None => std::iter::once(Layout::wb_tree()).chain(forebay_testkit::ordered_layouts()).collect(),
        }
    }
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().campaign {
        Campaign::Kill(asked) => kill::kill(&asked),
        Campaign::Readers(asked) => readers::run(&asked),
        Campaign::Power(asked) => kill::power(&asked),
        Campaign::Full(asked) => full::run(&asked),
        Campaign::Faults(asked) => faults::run(&asked),
        Campaign::Golden { to, encrypted } => {
            golden(&to, if encrypted { Files::Encrypted } else { Files::Plain })
        }
        Campaign::Worker(task) => worker::run(&task),
        Campaign::Reader(task) => readers::read(&task),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::FAILURE
        }
    }
}

fn golden(to: &Path, files: Files) -> forebay::Result<()> {
    for (path, bytes) in forebay_testkit::golden::write(files)? {
        let path = to.join(path);
        let made =
            std::fs::create_dir_all(path.parent().unwrap_or(to)).and_then(|()| std::fs::write(&path, bytes));
        made.map_err(|error| forebay::Error::Invalid(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}
