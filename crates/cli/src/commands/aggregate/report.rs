//! The last words of an aggregation.

use forebay_aggregate::Aggregate;
use serde::Serialize;

use super::groups::Groups;
use super::inputs::Tally;
use super::labels::Labels;
use crate::args::Common;
use crate::failure::Failure;
use crate::form::Form;
use crate::output::{Output, counted, thousands};
use forebay_units::sizes;

/// Whether standard output holds the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stdout {
    Free,
    Taken,
}

/// What an aggregation came to.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    records: u64,
    groups: u64,
    skipped: u64,
    refused_values: u64,
    /// Files whose last record has no end yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished_files: Option<u64>,
    /// Files that the store had counted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_files: Option<u64>,
    /// From the first byte read until every group's state was there.
    seconds: f64,
    records_per_second: f64,
    /// What showing them took.
    output_seconds: f64,
    input_bytes: u64,
    memory_bytes: usize,
    /// None where a database keeps them, or there are none.
    bytes_per_group: Option<f64>,
    spilled: bool,
    peak_memory_bytes: Option<u64>,
}

impl Report {
    /// Of an aggregation of which nothing was shown yet.
    pub(super) fn new<A: Aggregate>(
        tally: Tally,
        input_bytes: u64,
        groups: &Groups<A>,
        labels: &Labels,
        seconds: f64,
    ) -> Self {
        Self {
            records: tally.records,
            groups: 0,
            skipped: tally.skipped,
            refused_values: tally.refused_values,
            unfinished_files: groups.held.is_stored().then_some(tally.unfinished_files),
            known_files: groups.held.is_stored().then_some(tally.known_files),
            seconds,
            records_per_second: tally.records as f64 / seconds.max(1e-9),
            output_seconds: 0.0,
            input_bytes,
            memory_bytes: groups.memory_bytes_peak + labels.memory_bytes(),
            bytes_per_group: None,
            spilled: groups.held.is_spilled(),
            peak_memory_bytes: None,
        }
    }

    /// This many groups are shown.
    pub(super) fn shown(&mut self, groups: u64, seconds: f64) {
        self.groups = groups;
        self.output_seconds = seconds;
        let is_stored = self.known_files.is_some();
        self.bytes_per_group = (!is_stored && groups > 0).then(|| self.memory_bytes as f64 / groups as f64);
        self.peak_memory_bytes = forebay_env::process::peak_memory_bytes();
        // A database's buffers count whole, though what nothing was written to yet takes no memory.
        let most = self.peak_memory_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        self.memory_bytes = self.memory_bytes.min(most.unwrap_or(usize::MAX));
    }

    /// Tells it to a program; to a person where standard output is free for it.
    pub(super) fn print(&self, common: &Common, stdout: Stdout) -> Result<(), Failure> {
        let form = common.form();
        if form == Form::Text && common.is_quiet() {
            return Ok(());
        }
        let mut remarks = Vec::new();
        if self.skipped > 0 {
            remarks.push(format!("{} skipped", counted(self.skipped, "malformed record")));
        }
        if self.refused_values > 0 {
            // A value that several functions refuse counts for each.
            let times = counted(self.refused_values, "time");
            remarks.push(format!("{times} a function refused a value and took it as missing"));
        }
        if form == Form::Text && stdout == Stdout::Taken {
            remarks.iter().for_each(|remark| tell!("forebay: {remark}"));
            return Ok(());
        }
        let mut output = Output::new(form);
        match form {
            Form::Json => output.json("summary", self)?,
            Form::Text => {
                output.line(format_args!(
                    "{}, {}, {} of input in {:.2} s: {} records/s",
                    counted(self.records, "record"),
                    counted(self.groups, "group"),
                    sizes::human(self.input_bytes),
                    self.seconds,
                    thousands(self.records_per_second as u64),
                ))?;
                if let Some(bytes) = self.bytes_per_group {
                    output.line(format_args!(
                        "groups took {} of memory{}, {bytes:.1} bytes each",
                        sizes::human(self.memory_bytes as u64),
                        if self.spilled { " and temporary files" } else { "" },
                    ))?;
                }
                if let Some(files @ 1..) = self.known_files {
                    output.line(format_args!("{} had been read before", counted(files, "file")))?;
                }
                for remark in remarks {
                    output.line(remark)?;
                }
            }
        }
        output.flush()
    }
}
