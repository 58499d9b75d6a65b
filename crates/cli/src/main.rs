//! The `forebay` command. `docs/guide/command.md` describes it for its users.
//!
//! Standard output carries answers and nothing else; progress and complaints go to standard error. The exit
//! code is 0, or 1 when the work failed, or 2 when the command has to be called otherwise.

/// Writes a line to standard error. Whoever reads it may have gone away, which is no reason to stop.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

mod args;
mod cli;
mod clock;
mod commands;
mod database;
mod failure;
mod form;
mod input;
mod kernel;
mod keys;
mod output;
mod progress;
mod screen;
mod temporary;
mod usage;
mod written;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

fn main() -> ExitCode {
    let line = match cli::Cli::try_parse() {
        Ok(line) => line,
        Err(error) => return usage::report(&error, cli::Cli::command()),
    };
    let form = line.common.form();
    match cli::run(&line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(form),
    }
}
