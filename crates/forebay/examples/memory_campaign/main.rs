//! Holds `memory_limit` against what the system counts: every layout, limit and scenario in a process of its own.
//!
//! ```text
//! memory_campaign [--layouts A,B] [--limits MIB,MIB] [--scenarios A,B] [--records N] [--dir DIR]
//! ```
//!
//! What counts is the process's anonymous memory (`RssAnon` of `/proc/self/status`), sampled every two milliseconds:
//! the program's own pages are of files, and so are those that the kernel's cache holds. The promise is the limit and a
//! tenth, or the limit and 16 MiB, whichever is more. Prints a table; the exit code is 1 where a cell breaks the promise
//! or fails.

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

const LAYOUTS: [&str; 8] = [
    "write-buffer",
    "write-buffer:ordered",
    "no-merge",
    "geometric:r=3",
    "tiering:t=4",
    "leveling:t=4",
    "range-merge",
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
    println!("| layout | limit MiB | scenario | peak MiB | promised MiB | seconds | |");
    println!("| --- | ---: | --- | ---: | ---: | ---: | --- |");
    let mut holds = true;
    for layout in &asked.layouts {
        for &limit_mib in &asked.limits_mib {
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
                holds &= run(&cell)?;
            }
        }
    }
    Ok(holds)
}

/// Runs a cell in processes of its own, a phase each, and prints its line. With `MEMORY_STATS` in the environment phases
/// tell on standard error what they take, by owner.
fn run(cell: &Cell) -> Result<bool, Failure> {
    let started = std::time::Instant::now();
    let _ = std::fs::remove_dir_all(&cell.dir);
    let (mut peak_bytes, mut failure) = (0, None);
    for phase in cell.phases() {
        let output = Command::new(std::env::current_exe()?)
            .arg(CHILD)
            .args(cell.arguments(phase))
            .stderr(Stdio::inherit())
            .output()?;
        // A phase that is killed on purpose tells its peak before.
        let told = String::from_utf8_lossy(&output.stdout).lines().last().and_then(|line| line.parse().ok());
        match told {
            Some(told) => {
                if std::env::var_os("MEMORY_STATS").is_some() {
                    eprintln!("phase {phase}: peak {} MiB", told >> 20);
                }
                peak_bytes = peak_bytes.max(told);
            }
            None => failure = Some(format!("phase {phase} ended with {}", output.status)),
        }
    }
    let _ = std::fs::remove_dir_all(&cell.dir);
    let promised_bytes = promised_bytes(cell.limit_bytes);
    let holds = failure.is_none() && peak_bytes <= promised_bytes;
    let verdict = failure.unwrap_or_else(|| if holds { "" } else { "BROKEN" }.to_string());
    println!(
        "| {} | {} | {} | {} | {} | {:.0} | {verdict} |",
        cell.layout,
        cell.limit_bytes >> 20,
        cell.scenario,
        peak_bytes.div_ceil(1 << 20),
        promised_bytes >> 20,
        started.elapsed().as_secs_f64(),
    );
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
