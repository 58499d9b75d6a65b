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
mod clock;
mod commands;
mod failure;
mod input;
mod keys;
mod output;
mod screen;
mod temporary;
mod usage;
mod written;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error),
    };
    let form = cli.common.form();
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(form),
    }
}
