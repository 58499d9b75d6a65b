//! The driver: every engine, workload and repetition in turn, each in a fresh process.
//!
//! 1. Memory is touched once, so that no run pays for what the machine gives out for the first time.
//! 2. Of each workload the engines take turns, A B C A B C, so that what changes on the machine meets all.
//! 3. What a run prints is passed on line by line; rates are kept for the summary.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::args::BenchArgs;
use crate::host::cache::CacheDrop;
use crate::host::cgroup::Cgroup;
use crate::host::{self, disk, memory};
use crate::launch::Program;
use crate::plan::{CgroupState, Plan, Role, Tuning};
use crate::report::{Failed, Line, Summaries, Table};
use crate::stop::Stop;
use crate::workload::{self, Workload};
use crate::{Adds, Failure, Form, Kind};

/// Lists the workloads that are built in.
pub(crate) fn list(form: Form) -> Result<(), Stop> {
    let workloads = workload::embedded().map_err(|error| match error {
        workload::WorkloadError::Unknown(reason) | workload::WorkloadError::Bad(reason) => Stop::Work(reason),
    })?;
    let mut output = Output::new(form);
    for workload in workloads {
        match form {
            Form::Json => output.json(&workload)?,
            Form::Text => output.line(&format!("{:<16}{}", workload.name, workload.description))?,
        }
    }
    Ok(())
}

/// Runs what the arguments ask for.
pub(crate) fn run(
    program: &Program<'_>,
    args: &BenchArgs,
    form: Form,
    memory: Option<u64>,
) -> Result<(), Stop> {
    let workloads = args.workloads(memory)?;
    let kinds = chosen(program, &args.engines)?;
    let folder = args.folder();
    memory::touch(workloads.iter().map(|one| one.memory() + one.data_bytes()).max().unwrap_or(0));
    let mut driver = Driver {
        program: *program,
        args,
        folder,
        output: Output::new(form),
        summaries: Summaries::default(),
        failures: 0,
    };
    let outcome = driver.run_all(&workloads, &kinds);
    if !args.keep {
        // What is left behind by a failure of the file system is told by that failure.
        let _ = disk::remove(&driver.folder);
    }
    outcome
}

/// The engines of these names, or all.
fn chosen<'a>(program: &Program<'a>, names: &[String]) -> Result<Vec<&'a dyn Kind>, Stop> {
    if names.is_empty() {
        return Ok(program.kinds.to_vec());
    }
    let known = || program.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        program
            .kind(name)
            .ok_or_else(|| Stop::Usage(format!("there is no engine `{name}`; there are {}", known())))
    };
    names.iter().map(find).collect()
}

/// Why the engine cannot do the workload, if so.
fn misfit(workload: &Workload, kind: &dyn Kind) -> Option<&'static str> {
    match (kind.adds(), workload.adds()) {
        _ if workload.ordered && !kind.is_ordered() => Some("it keeps keys in no order"),
        _ if workload.transacts() && !kind.transacts() => Some("it has no transactions that read and write"),
        (Adds::No, true) => Some("it cannot add to a value"),
        (Adds::Only, false) => Some("it is there for adding only"),
        _ => None,
    }
}

struct Driver<'a> {
    program: Program<'a>,
    args: &'a BenchArgs,
    /// Where the databases of all runs are.
    folder: PathBuf,
    output: Output,
    summaries: Summaries,
    failures: u32,
}

impl Driver<'_> {
    fn run_all(&mut self, workloads: &[Workload], kinds: &[&dyn Kind]) -> Result<(), Stop> {
        for workload in workloads {
            for repetition in 1..=self.args.repeat {
                for kind in kinds {
                    self.run_one(workload, repetition, *kind)?;
                }
            }
        }
        let first = kinds.first().map_or("", |kind| kind.name());
        for summary in std::mem::take(&mut self.summaries).finish(first) {
            self.output.told(&Line::Summary(summary))?;
        }
        if self.failures > 0 { Err(Stop::Told) } else { Ok(()) }
    }

    fn run_one(&mut self, workload: &Workload, repetition: u32, kind: &dyn Kind) -> Result<(), Stop> {
        let failed = |reason: String| {
            let (engine, workload) = (kind.name().to_string(), workload.name.clone());
            Failed { engine, workload, repetition, reason }
        };
        if let Some(reason) = misfit(workload, kind) {
            return self.output.told(&Line::Skipped(failed(reason.to_string())));
        }
        let dir = self.folder.join(kind.name()).join(format!("{}-{repetition}", workload.name));
        let told = |error: io::Error| Stop::Work(format!("cannot make {}: {error}", dir.display()));
        disk::make_empty(&dir).map_err(told)?;
        let outcome = self.run_in(workload, repetition, kind, &dir);
        if !self.args.keep {
            let _ = disk::remove(&dir);
        }
        match outcome {
            Ok(()) => Ok(()),
            Err(RunError::Output(stop)) => Err(stop),
            Err(RunError::Failed(reason)) => {
                self.failures += 1;
                eprintln!("forebay: {} on {}: {reason}", workload.name, kind.name());
                self.output.told(&Line::Failure(failed(reason)))
            }
        }
    }

    /// Runs a process and passes on what it prints.
    fn run_in(
        &mut self,
        workload: &Workload,
        repetition: u32,
        kind: &dyn Kind,
        dir: &Path,
    ) -> Result<(), RunError> {
        let (group, cgroup) = self.cgroup(workload);
        let plan = Plan {
            role: Role::Run,
            engine: kind.name().into(),
            workload: workload.clone(),
            repetition,
            seed: self.args.seed,
            dir: dir.to_path_buf(),
            tuning: Tuning {
                background_threads: self.args.background_threads.map_or_else(host::cores, usize::from),
                filter_bits_per_key: self.args.filter_bits,
                direct_io: self.args.direct_io,
            },
            cache_drop: CacheDrop::Machine,
            cgroup,
        };
        let mut taken = Ok(());
        let mut running = self.program.start_in(&plan, |process| {
            taken = group.as_ref().map_or(Ok(()), |group| group.take(process));
        })?;
        taken.map_err(|error| RunError::Failed(error.to_string()))?;
        let mut failure = None;
        for line in BufReader::new(running.output()?).lines() {
            let line: Line = serde_json::from_str(&line.map_err(Failure::from)?).map_err(Failure::from)?;
            match &line {
                Line::Phase(phase) => self.summaries.add(phase),
                Line::Failure(failed) => {
                    failure = Some(failed.reason.clone());
                    continue;
                }
                _ => {}
            }
            self.output.told(&line).map_err(RunError::Output)?;
        }
        let status = running.wait().map_err(Failure::from)?;
        match failure {
            Some(reason) => Err(RunError::Failed(reason)),
            None if status.success() => Ok(()),
            None => {
                let why = if group.is_some() { "; its cgroup may be too small" } else { "" };
                Err(RunError::Failed(format!("the process ended early: {status}{why}")))
            }
        }
    }

    /// The cgroup that was asked for, and what becomes known of it.
    fn cgroup(&self, workload: &Workload) -> (Option<Cgroup>, CgroupState) {
        let Some(size) = self.args.cgroup else { return (None, CgroupState::Off) };
        let limit_bytes = size.bytes(workload.memory());
        match Cgroup::new(&format!("forebay-bench.{}", std::process::id()), limit_bytes) {
            Ok(group) => {
                let peak_file = group.peak_file();
                (Some(group), CgroupState::Limited { limit_bytes, peak_file })
            }
            Err(error) => (None, CgroupState::Unavailable(error.to_string())),
        }
    }
}

/// Why a run has no result.
enum RunError {
    /// The run's own fault; others go on.
    Failed(String),
    /// Nobody can be told.
    Output(Stop),
}

impl From<Failure> for RunError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.to_string())
    }
}

/// Standard output.
pub(crate) struct Output {
    form: Form,
    table: Table,
}

impl Output {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, table: Table::default() }
    }

    /// A line of results.
    pub(crate) fn told(&mut self, line: &Line) -> Result<(), Stop> {
        match self.form {
            Form::Json => self.json(line),
            Form::Text => match self.table.text(line) {
                Some(text) => self.line(&text),
                None => Ok(()),
            },
        }
    }

    fn json(&mut self, object: &impl Serialize) -> Result<(), Stop> {
        self.line(&serde_json::to_string(object).map_err(Failure::from)?)
    }

    fn line(&mut self, text: &str) -> Result<(), Stop> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Stop::output(&error))
    }
}
