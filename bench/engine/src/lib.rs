//! Workloads as data, and one driver that runs them against any engine behind [`Engine`].
//!
//! A program that has engines calls [`run`] with its parsed [`BenchArgs`], or [`main`] with its whole command
//! line. Both start the program again, one process a run, so [`Program::words`] have to lead back to them.

mod answers;
mod args;
mod chunk;
mod counts;
mod data;
mod driver;
pub mod engine;
mod forebay;
mod host;
mod launch;
mod meter;
mod oracle;
mod pause;
mod phases;
mod pick;
mod plan;
mod report;
mod run;
mod sort;
mod stop;
#[cfg(test)]
mod tests;
mod workload;

use std::ffi::OsString;
use std::process::ExitCode;

use ::forebay_env::RealClock;
use clap::Parser;
use forebay_units::sizes;

pub use crate::forebay::Forebay;
pub use args::BenchArgs;
pub use engine::{
    Adds, Batch, Change, Durability, Engine, Failure, Kind, LeveledOptions, Observation, Setup, TableOptions,
    Transactor, Writer,
};
pub use launch::{Program, end_all};
pub use sort::Sort;
pub use stop::Stop;

use driver::Output;
use plan::Role;
use report::{Failed, Line};

/// Whether results are for a person or for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A table.
    Text,
    /// One JSON object a line.
    Json,
}

/// Does what the arguments say. `memory` is what each engine may use, instead of the workloads' own.
pub fn run(program: &Program<'_>, args: &BenchArgs, form: Form, memory: Option<u64>) -> Result<(), Stop> {
    if args.child {
        run_child(program)
    } else if args.list {
        driver::list(form)
    } else {
        driver::run(program, args, form, memory)
    }
}

/// A whole command line of its own.
#[derive(Debug, Parser)]
#[command(version)]
struct Standalone {
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// The most memory that an engine uses in all, such as 64M or 2G
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    memory: Option<u64>,
    #[command(flatten)]
    bench: BenchArgs,
}

/// The main function of a program that does nothing but run benchmarks of these engines. The first of them
/// is the one that the others are compared with. `args` begins with the program's name.
pub fn main(kinds: &[&dyn Kind], args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = match Standalone::try_parse_from(args) {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let form = if parsed.json { Form::Json } else { Form::Text };
    match run(&Program { kinds, words: &[] }, &parsed.bench, form, parsed.memory) {
        Ok(()) | Err(Stop::OutputClosed) => ExitCode::SUCCESS,
        Err(Stop::Told) => ExitCode::FAILURE,
        Err(stop @ Stop::Work(_)) => {
            eprintln!("forebay: {stop}");
            ExitCode::FAILURE
        }
        Err(stop @ Stop::Usage(_)) => {
            eprintln!("forebay: {stop}");
            ExitCode::from(2)
        }
    }
}

/// One of the processes that a benchmark starts: its failure is a line like its results.
fn run_child(program: &Program<'_>) -> Result<(), Stop> {
    let plan = launch::read_plan()?;
    let kind = program
        .kind(&plan.engine)
        .ok_or_else(|| Stop::Work(format!("there is no engine `{}`", plan.engine)))?;
    if let Role::LoadFrom(record) = plan.role {
        return Ok(phases::load_until_killed(kind, &plan, record)?);
    }
    let mut output = Output::new(Form::Json);
    let mut emit = |line| output.told(&line).map_err(|stop| Failure::from(stop.to_string()));
    match run::run(program, kind, &plan, &RealClock::new(), &mut emit) {
        Ok(()) => Ok(()),
        Err(failure) => {
            let (engine, workload) = (plan.engine, plan.workload.name);
            let reason = failure.to_string();
            let failed = Failed { engine, workload, repetition: plan.repetition, reason };
            output.told(&Line::Failure(failed))?;
            Err(Stop::Told)
        }
    }
}
