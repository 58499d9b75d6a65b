//! Groups keys in memory by one engine after the other, each in a process of its own, and tells what that took.

#![expect(clippy::disallowed_methods, reason = "a program that measures reads files and the clock itself")]

mod args;
mod blocks;
mod campaign;
mod child;
mod engines;
mod inputs;
mod meter;
mod tally;
mod wheels;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

/// What went wrong, in words.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let Args { command, campaign } = Args::parse();
    let outcome = match command {
        Some(Command::Child(child)) => child::run(&child).map(|()| campaign::Outcome::Agreed),
        None => campaign::run(&campaign),
    };
    match outcome {
        Ok(campaign::Outcome::Agreed) => ExitCode::SUCCESS,
        Ok(campaign::Outcome::Failed) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("forebay-bench-groups: {error}");
            ExitCode::FAILURE
        }
    }
}
