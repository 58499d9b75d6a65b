//! `man`: manual pages, one for the program and one for each command.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;

/// Write manual pages into a directory: one of the program and one of each command
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  forebay man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The directory, made where it is missing
    dir: PathBuf,
}

#[expect(clippy::disallowed_methods, reason = "the pages are the user's files, not the database's")]
pub(crate) fn run(args: &ManArgs, program: clap::Command) -> Result<(), Failure> {
    let failed = |error| Failure::work(format!("cannot write to {}: {error}", args.dir.display()));
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    clap_mangen::generate_to(program, &args.dir).map_err(failed)
}
