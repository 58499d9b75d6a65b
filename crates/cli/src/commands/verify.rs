//! `verify`: every byte of every file is read and checked.

use std::io::IsTerminal;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Common, Reading};
use crate::database::{Access, open};
use crate::failure::Failure;
use crate::form::Form;
use crate::output::{Output, counted};
use crate::screen;
use forebay_units::sizes;

/// Read every byte and check it; tell every problem with its file and offset
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  forebay verify users.db || echo damaged")]
pub(crate) struct VerifyArgs {
    /// The database's directory
    db: std::path::PathBuf,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

pub(crate) fn run(args: &VerifyArgs, common: &Common) -> Result<(), Failure> {
    let form = common.form();
    let db = open(&args.db, common, Access::Read)?;
    let bar = if form == Form::Text && !common.is_quiet() && std::io::stderr().is_terminal() {
        let style =
            ProgressStyle::with_template("{bar:32} {bytes} of {total_bytes} checked, {bytes_per_sec}");
        ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    } else {
        ProgressBar::hidden()
    };
    let outcome = db.verify(&mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = outcome?;
    Output::summary(
        common,
        &report,
        format_args!(
            "{}, {}, {}, {}; log: {}, {}, {}; checked: {}",
            counted(report.files, "file"),
            counted(report.pages, "page"),
            counted(report.records, "record"),
            sizes::human(report.bytes),
            counted(report.log_frames, "commit"),
            counted(report.log_records, "record"),
            sizes::human(report.log_bytes),
            match report.problems.len() {
                0 => "no problem".to_string(),
                count => counted(count as u64, "problem"),
            }
        ),
    )?;
    for problem in &report.problems {
        tell!("forebay: {}", screen::message(problem));
    }
    db.close()?;
    if report.problems.is_empty() {
        return Ok(());
    }
    // Some tell themselves what to do.
    let is_advised =
        |problem: &String| problem.contains("forebay rescue") || problem.contains("written anew");
    if !report.problems.iter().any(is_advised) {
        tell!(
            "forebay: restore the database from a checkpoint, or save what is intact with `forebay rescue`"
        );
    }
    Err(Failure::Said)
}
