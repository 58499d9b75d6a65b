//! The `forebay` command. `docs/cli.md` describes it for its users.
//!
//! Standard output carries answers and nothing else; progress and complaints go to standard error. The exit
//! code is 0, or 1 when the work failed, or 2 when the command line alone shows that it cannot work.

mod args;
mod clock;
mod commands;
mod counts;
mod failure;
mod input;
mod keys;
mod output;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
