//! Holds `memory_limit` against what the system counts: every layout, limit and phase in a process of its own.
//!
//! ```text
//! memory_campaign [--layouts A,B] [--limits MIB,MIB] [--scenarios A,B] [--records N] [--dir DIR]
//!                 [--format table|json]
//! ```
//!
//! What counts is the process's anonymous memory (`RssAnon` of `/proc/self/status`), sampled every two milliseconds:
//! the program's own pages are of files, and so are those that the kernel's cache holds. The promise is the limit and a
//! tenth, or the limit and 16 MiB, whichever is more. Prints a line for each phase; the exit code is 1 where one breaks
//! the promise or fails.

#![expect(
    clippy::disallowed_methods,
    reason = "a program of its own starts threads and processes, and reads files"
)]

mod meter;
mod scenario;

use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use scenario::{Cell, SCENARIOS};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

const LAYOUTS: [&str; 10] = [
    "wb-tree",
    "wb-tree:ordered",
    "no-merge",
    "immediate",
    "geometric:r=3",
    "tiering:t=4",
    "leveling:t=4",
    "range-merge",
    "range-merge:c=3",
    "jungle:c=4",
];
const LIMITS_MIB: [u64; 3] = [16, 64, 256];
const RECORDS: u64 = 10_000_000;
/// The argument by which the program calls itself.
const CHILD: &str = "--child";

/// What the command line asks for.
struct Asked {
    layouts: Vec<String>,
    limits_mib: Vec<u64>,
    scenarios: Vec<String>,
    records: u64,
    dir: PathBuf,
    form: Form,
}

/// How lines are printed.
#[derive(Clone, Copy)]
enum Form {
    Table,
    Json,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(CHILD) => child(&arguments[1..]).map(|()| true),
        _ => asked(&arguments).and_then(|asked| campaign(&asked)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("memory_campaign: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn asked(arguments: &[String]) -> Result<Asked, Failure> {
    let mut asked = Asked {
        layouts: LAYOUTS.map(String::from).to_vec(),
        limits_mib: LIMITS_MIB.to_vec(),
        scenarios: SCENARIOS.map(String::from).to_vec(),
        records: RECORDS,
        dir: std::env::temp_dir(),
        form: Form::Table,
    };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("{} wants a value", pair[0]).into()) };
        let list = || value.split(',').map(String::from).collect();
        match name.as_str() {
            "--layouts" => asked.layouts = list(),
            "--scenarios" => asked.scenarios = list(),
            "--limits" => asked.limits_mib = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--records" => asked.records = value.parse()?,
            "--dir" => asked.dir = value.into(),
            "--format" if value == "table" => asked.form = Form::Table,
            "--format" if value == "json" => asked.form = Form::Json,
            _ => return Err(format!("there is no argument {name}").into()),
        }
    }
    Ok(asked)
}

/// The most that the promise allows.
fn promised_bytes(limit_bytes: u64) -> u64 {
    limit_bytes + (limit_bytes / 10).max(16 << 20)
}

/// Runs all cells one after the other; says whether all keep the promise.
fn campaign(asked: &Asked) -> Result<bool, Failure> {
    if let Form::Table = asked.form {
        println!("| layout | limit MiB | scenario | phase | peak MiB | promised MiB | seconds | |");
        println!("| --- | ---: | --- | --- | ---: | ---: | ---: | --- |");
    }
    let mut holds = true;
    for &limit_mib in &asked.limits_mib {
        for layout in &asked.layouts {
            for scenario in &asked.scenarios {
                let cell = Cell {
                    layout: layout.clone(),
                    limit_bytes: limit_mib << 20,
                    scenario: scenario.clone(),
                    records: asked.records,
                    dir: asked.dir.join(format!("forebay-memory-{}", std::process::id())),
                };
                if !cell.is_for_layout() {
                    continue;
                }
                let _ = std::fs::remove_dir_all(&cell.dir);
                for phase in cell.phases() {
                    holds &= run(&cell, phase, asked.form)?;
                }
                let _ = std::fs::remove_dir_all(&cell.dir);
            }
        }
    }
    Ok(holds)
}

/// Runs a phase of a cell in a process of its own, and prints its line. With `MEMORY_STATS` in the environment phases
/// tell on standard error what they take, by owner.
fn run(cell: &Cell, phase: &str, form: Form) -> Result<bool, Failure> {
    let started = std::time::Instant::now();
    let output = Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .args(cell.arguments(phase))
        .stderr(Stdio::inherit())
        .output()?;
    let seconds = started.elapsed().as_secs_f64();
    // A phase that is killed on purpose tells its peak before.
    let told =
        String::from_utf8_lossy(&output.stdout).lines().last().and_then(|line| line.parse::<u64>().ok());
    let Cell { layout, limit_bytes, scenario, records, .. } = cell;
    let (promised_bytes, peak_bytes) = (promised_bytes(*limit_bytes), told.unwrap_or(0));
    let holds = told.is_some_and(|peak_bytes| peak_bytes <= promised_bytes);
    let verdict = match told {
        None => format!("it ended with {}", output.status),
        Some(_) if holds => String::new(),
        Some(_) => "BROKEN".into(),
    };
    match form {
        Form::Table => println!(
            "| {layout} | {} | {scenario} | {phase} | {} | {} | {seconds:.0} | {verdict} |",
            limit_bytes >> 20,
            peak_bytes.div_ceil(1 << 20),
            promised_bytes >> 20,
        ),
        Form::Json => println!(
            r#"{{"type":"memory","layout":"{layout}","limit_bytes":{limit_bytes},"scenario":"{scenario}","phase":"{phase}","records":{records},"peak_bytes":{peak_bytes},"promised_bytes":{promised_bytes},"seconds":{seconds:.1},"verdict":"{verdict}"}}"#,
        ),
    }
    Ok(holds)
}

fn child(arguments: &[String]) -> Result<(), Failure> {
    let (cell, phase) = Cell::of_arguments(arguments)?;
    let meter = meter::Meter::start();
    scenario::perform(&cell, &phase, &meter)?;
    println!("{}", meter.peak_bytes());
    if scenario::dies(&phase) {
        std::process::abort();
    }
    Ok(())
}
