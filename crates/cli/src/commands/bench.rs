//! `bench`: workloads against the engine. All of it is in the crate of that name.

use clap::Args;
use forebay_bench::{Forebay, Program, Stop};

use crate::args::{Common, Memory};
use crate::failure::Failure;
use crate::form::Form;
use crate::temporary::Temporary;

/// Run workloads on a new database and measure them
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    bench: forebay_bench::BenchArgs,
    #[command(flatten)]
    pub(crate) reading: Memory,
}

pub(crate) fn run(args: &BenchArgs, common: &Common) -> Result<(), Failure> {
    let form = match common.form() {
        Form::Text => forebay_bench::Form::Text,
        Form::Json => forebay_bench::Form::Json,
    };
    // The driver removes it, and a signal does.
    let _folder = args.bench.temporary().map(|folder| Temporary::make(|| Ok(folder), |folder| folder));
    let program = Program { kinds: &[&Forebay], words: &["bench"] };
    forebay_bench::run(&program, &args.bench, form, common.memory).map_err(|stop| match stop {
        Stop::Usage(reason) => Failure::Usage(reason),
        Stop::Work(reason) => Failure::Work(reason),
        Stop::Told => Failure::Said,
        Stop::OutputClosed => Failure::OutputClosed,
    })
}
